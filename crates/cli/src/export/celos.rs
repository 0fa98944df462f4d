//! `kelos export celos`: let another scheduler go on.

use std::path::PathBuf;

use jiff::Timestamp;
use kelos_door_celos::export::{ExportError, ExportOptions, ExportReport, export};
use kelos_door_celos::import::{ImportError, lead};
use kelos_engine::clock::whole_millis;
use kelos_store::{Journal, StoredState};
use kelos_store_sqlite::SqliteStore;
use serde_json::json;

use crate::data::{self, Place};
use crate::failure::Failure;
use crate::options::Form;
use crate::text::{self, count};

#[derive(clap::Args)]
pub(super) struct CelosArgs {
    /// Folder to write; created if missing
    #[arg(value_name = "DATABASE", value_hint = clap::ValueHint::DirPath)]
    database: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Write into a folder that is not empty, and overwrite files that differ
    #[arg(long)]
    force: bool,
    /// Preview only: write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(args: &CelosArgs) -> Result<u8, Failure> {
    let data = data::find(&args.place)?;
    if !data.database().exists() {
        let failure = Failure::usage(format!("export {}: there is no such database", data.database().display()));
        return Err(failure.hint("name the folder of `kelos up` with --dir, or that of `kelos serve` with --db"));
    }
    let mut store = SqliteStore::open(data.database()).map_err(|error| Failure::of_store(&error))?;
    let now = whole_millis(Timestamp::now());
    // A picture of what moves is no state to go on from.
    let lease = lead(&mut store, now).map_err(|error| match error {
        ImportError::InUse => data.in_use("export"),
        other => Failure::bad(other.to_string()),
    })?;
    let options = ExportOptions { now, force: args.force, dry_run: args.dry_run };
    let exported = export(&*store.reader(), &args.database, &options);
    store.release(lease).map_err(|error| Failure::bad(error.to_string()))?;
    let exported = exported.map_err(|error| refused(&error))?;
    if args.form.json {
        text::json(&json!({ "dryRun": args.dry_run, "exported": exported }));
    } else {
        print(args, &exported);
    }
    Ok(0)
}

fn refused(error: &ExportError) -> Failure {
    Failure::bad(error.to_string())
}

fn print(args: &CelosArgs, exported: &ExportReport) {
    for (id, slots) in &exported.workflows {
        text::line(format!("{id}: {}", count(*slots as usize, "slot")));
    }
    if exported.marked > 0 {
        let slots = count(exported.marked as usize, "unfinished slot");
        let why = "that Celos would not look at by itself (older than 7 days, or before startTime)";
        text::line(format!("{slots} {why}: marked for rerun, so that Celos goes on with them"));
    }
    if exported.unpaused > 0 {
        text::line(format!("{} ended", count(exported.unpaused as usize, "pause")));
    }
    data::tell(&exported.troubles);
    let files = usize::try_from(exported.written).unwrap_or(usize::MAX);
    let (would, rest) = if args.dry_run { ("would write", "; nothing was written") } else { ("wrote", "") };
    let same = exported.same;
    text::line(format!(
        "{would} {} into {}, {same} were the same{rest}",
        count(files, "file"),
        args.database.display()
    ));
}
