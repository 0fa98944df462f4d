//! `kelos import celos`: the state database of Celos.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use kelos_door_celos::celos_db::Database;
use kelos_door_celos::import::{
    Definitions, ImportError, ImportOptions, ImportReport, ImportedWorkflow, PauseFate, import,
};
use kelos_engine::clock::whole_millis;
use kelos_model::time::parse_instant;
use kelos_sandbox::Problem;
use serde_json::json;

use super::store;
use crate::data::{self, Data, Place};
use crate::failure::Failure;
use crate::options::Form;
use crate::text::{self, count, short};
use crate::{apps, folder, render, times};

#[derive(clap::Args)]
pub(crate) struct CelosArgs {
    /// State database of Celos: the directory that its server was given as --db
    #[arg(value_name = "DATABASE", value_hint = clap::ValueHint::DirPath)]
    database: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Preview only: write nothing
    #[arg(long)]
    dry_run: bool,
    /// Reopen unfinished slots that Celos had dropped, because they were older than 7 days and not marked for rerun.
    /// Without it they are imported as expired
    #[arg(long)]
    revive_forgotten: bool,
    /// Reference time for the 7 days, and for the 14 days of a mark for rerun [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    as_of: Option<Timestamp>,
    #[command(flatten)]
    form: Form,
}

/// Slots, or files, that are named before the rest is only counted.
const NAMED: usize = 20;

pub(crate) fn run(args: &CelosArgs) -> Result<u8, Failure> {
    let celos = folder::existing("state database of Celos", &args.database)?;
    let data = data::find(&args.place)?;
    let folders = data.folders(&args.place)?;
    let registers = open(&celos)?.registers();
    let (definitions, problems) = Definitions::load(folders, apps::format(), registers)
        .map_err(|error| Failure::bad(format!("start a thread: {error}")))?;
    let now = whole_millis(Timestamp::now());
    let as_of = args.as_of.unwrap_or(now);
    let options = ImportOptions { now, as_of, revive: args.revive_forgotten, dry_run: args.dry_run };
    let mut store = store(&data, args.dry_run)?;
    let imported =
        import(&mut *store, open(&celos)?, &definitions, &options).map_err(|error| refused(&error, &data))?;
    if args.form.json {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        text::json(&json!({ "dryRun": args.dry_run, "imported": imported, "problems": problems }));
    } else {
        print(args, &imported, &problems, &data, as_of);
    }
    Ok(0)
}

fn open(celos: &Path) -> Result<Database, Failure> {
    Database::open(celos).map_err(|error| Failure::bad(error.to_string()))
}

fn refused(error: &ImportError, data: &Data) -> Failure {
    match error {
        ImportError::InUse => data.in_use("import"),
        other => Failure::bad(format!("import: {other}")),
    }
}

fn print(args: &CelosArgs, imported: &ImportReport, problems: &[Problem], data: &Data, as_of: Timestamp) {
    table(&imported.workflows);
    for one in &imported.workflows {
        notes(one, as_of);
    }
    for name in &imported.kept_registers {
        text::line(format!("kept: register {name} was set or deleted here"));
    }
    for problem in problems {
        folder::problem_lines(problem).iter().for_each(text::line);
    }
    data::tell(&imported.troubles);
    text::line(summary(args.dry_run, imported, data));
}

fn table(workflows: &[ImportedWorkflow]) {
    let mut table = render::table(&["workflow", "imported", "states", "same", "kept", "last in Celos"]);
    for one in workflows {
        let states: Vec<String> = one.imported.iter().map(|(state, slots)| format!("{slots} {state}")).collect();
        table.add_row(vec![
            one.id.clone(),
            one.slots().to_string(),
            states.join(", "),
            one.same.to_string(),
            one.kept.len().to_string(),
            one.last.as_deref().map(short).unwrap_or_default(),
        ]);
    }
    render::print(table);
}

/// Notes on a workflow beyond the numbers.
fn notes(one: &ImportedWorkflow, as_of: Timestamp) {
    let note = |words: String| text::line(format!("{}: {words}", one.id));
    if !one.defined {
        note("no script defines it: its slots are dormant until one does".to_owned());
    }
    match one.pause {
        Some(PauseFate::Paused) => note("paused, as it is in Celos".to_owned()),
        Some(PauseFate::Resumed) => note("paused in Celos, but resumed here: kept".to_owned()),
        Some(PauseFate::Same) | None => {}
    }
    if one.forgotten > 0 {
        let slots = count(one.forgotten as usize, "unfinished slot");
        note(format!(
            "{slots} that Celos had dropped because of their age came as expired (--revive-forgotten: as waiting)"
        ));
    }
    for kept in one.kept.iter().take(NAMED) {
        note(format!("kept: {} is {} here, {} in Celos", short(&kept.time), kept.here.as_str(), kept.there));
    }
    if one.kept.len() > NAMED {
        note(format!("kept: {} more", one.kept.len() - NAMED));
    }
    if let Some(gap) = gap(one, as_of) {
        note(gap);
    }
}

/// Slots that neither scheduler plans: they lie between Celos's last record and the planning window.
fn gap(one: &ImportedWorkflow, as_of: Timestamp) -> Option<String> {
    let last = parse_instant(one.last.as_deref()?).ok()?;
    let start = one.start_time.as_deref().and_then(|start| parse_instant(start).ok());
    let last = start.map_or(last, |start| last.max(start));
    let window = as_of.checked_sub(SignedDuration::from_hours(7 * 24)).ok()?;
    let window = text::to_the_second(window);
    (one.defined && text::to_the_second(last) < window).then(|| {
        let from = text::to_the_second(last);
        format!(
            "Celos's last record is older than 7 days: what lies between is not planned by itself; \
             kelos backfill {} --from {from} --to {window}",
            one.id
        )
    })
}

fn summary(dry_run: bool, imported: &ImportReport, data: &Data) -> String {
    if imported.is_nothing_new() {
        return format!("nothing new: {} has it already", data.database().display());
    }
    let slots: u32 = imported.workflows.iter().map(ImportedWorkflow::slots).sum();
    let what = format!(
        "{} of {} and {}",
        count(slots as usize, "slot"),
        count(imported.workflows.len(), "workflow"),
        count(imported.registers as usize, "register")
    );
    let place = data.database().display().to_string();
    if dry_run {
        format!("would import {what} into {place}; nothing was written")
    } else {
        format!("imported {what} into {place}")
    }
}
