//! `kelos export log`: the log as JSON lines of what goes into its digests.
//!
//! The first line has the digest before the first turn. Each turn is a line with its record, a line for each event with its columns as
//! they are stored, and a line with its deletions if it has any. The form is documented in `docs/audit.md`, and stays.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use kelos_model::WorkflowId;
use kelos_store::lines::{LinesError, TurnLines, before_line};
use kelos_store::{PageRequest, Queries, StoreError, StoredState};
use kelos_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::data::{self, Place};
use crate::failure::Failure;
use crate::text;

/// Turns that are read at a time.
const AT_ONCE: usize = 1_000;
/// The place of the workflow's name among the columns of an event.
const WORKFLOW: usize = 3;

#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// File to write; `-` writes to standard output
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// First turn; those whose history was removed are left out
    #[arg(long, value_name = "TURN", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    /// Last turn [default: the last one of the log]
    #[arg(long, value_name = "TURN", value_parser = clap::value_parser!(u64).range(1..))]
    to: Option<u64>,
    /// Only the events of this workflow and its slots, to be read: without the others no digest can be recomputed, so
    /// turn records are left out
    #[arg(long, value_name = "ID")]
    workflow: Option<WorkflowId>,
    /// Overwrite a file that exists
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &LogArgs) -> Result<u8, Failure> {
    let data = data::find(&args.place)?;
    let database = data.database();
    if !database.exists() {
        let failure = Failure::usage(format!("export {}: there is no such database", database.display()));
        return Err(failure.hint("name the folder of `kelos up` with --dir, or that of `kelos serve` with --db"));
    }
    if args.to.is_some_and(|to| to < args.from) {
        return Err(Failure::usage(format!(
            "export turns {} to {}: expected --from before --to",
            args.from,
            args.to.unwrap_or(0)
        )));
    }
    let store = SqliteStore::look(&database).map_err(|error| Failure::of_store(&error))?;
    let reader = store.reader().frozen().map_err(|error| Failure::of_store(&error))?;
    let mut out = open(args)?;
    let written = write_turns(&*reader, args, &mut out)?;
    out.flush().map_err(|error| unwritten(&args.file, &error))?;
    if args.file != Path::new("-") {
        let (turns, events) =
            (written.turns, text::count(usize::try_from(written.events).unwrap_or(usize::MAX), "event"));
        text::line(format!(
            "wrote {} and {events} to {}",
            text::count(usize::try_from(turns).unwrap_or(usize::MAX), "turn"),
            args.file.display()
        ));
    }
    Ok(0)
}

/// The numbers of turns and events that were written.
#[derive(Default)]
struct ExportCount {
    turns: u64,
    events: u64,
}

fn open(args: &LogArgs) -> Result<Box<dyn Write>, Failure> {
    if args.file == Path::new("-") {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if args.force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let file = options.open(&args.file).map_err(|error| {
        let failure = unwritten(&args.file, &error);
        if error.kind() == io::ErrorKind::AlreadyExists { failure.hint("--force overwrites it") } else { failure }
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    if file == Path::new("-") && error.kind() == io::ErrorKind::BrokenPipe {
        // A reader that went away is no failure, as with other filters.
        std::process::exit(0);
    }
    Failure::bad(format!("write {}: {error}", file.display()))
}

fn write_turns(reader: &dyn Queries, args: &LogArgs, out: &mut dyn Write) -> Result<ExportCount, Failure> {
    let is_whole = args.workflow.is_none();
    let to = args.to.unwrap_or(u64::MAX);
    let fail = |error: StoreError| Failure::of_store(&error);
    let line =
        |out: &mut dyn Write, value: Value| writeln!(out, "{value}").map_err(|error| unwritten(&args.file, &error));
    let mut written = ExportCount::default();
    let removed = reader.removed_history().map_err(fail)?.turn;
    let mut before = None;
    // The turn before the first one has the digest that goes into it.
    let mut from = args.from.checked_sub(2).filter(|from| *from > 0).map(|from| from.to_string());
    loop {
        let page = reader.turns(PageRequest::oldest(AT_ONCE).after(from.as_deref())).map_err(fail)?;
        for turn in page.rows {
            if turn.turn < args.from || turn.turn <= removed {
                before = Some(turn.digest);
                continue;
            }
            if turn.turn > to {
                return Ok(written);
            }
            if is_whole && written.turns == 0 {
                line(out, before_line(&before.unwrap_or_default()))?;
            }
            let lines = TurnLines::read(reader, &turn).map_err(failure)?;
            written.events += lines.events.iter().filter(|event| is_of(event, args.workflow.as_ref())).count() as u64;
            if is_whole {
                lines.all().try_for_each(|one| line(out, one))?;
            } else {
                let own = lines.events.into_iter().filter(|event| is_of(event, args.workflow.as_ref()));
                own.map(|event| json!({ "event": event })).try_for_each(|one| line(out, one))?;
            }
            written.turns += 1;
        }
        from = page.next;
        if from.is_none() {
            return Ok(written);
        }
    }
}

fn failure(error: LinesError) -> Failure {
    match error {
        LinesError::Store(error) => Failure::of_store(&error),
        damaged @ LinesError::Damaged { .. } => Failure::damaged(damaged.to_string()),
    }
}

fn is_of(event: &[Value], workflow: Option<&WorkflowId>) -> bool {
    workflow.is_none_or(|workflow| event.get(WORKFLOW).and_then(Value::as_str) == Some(workflow.as_str()))
}
