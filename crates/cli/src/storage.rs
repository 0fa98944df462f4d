//! `kelos storage`: what takes how much, how long history is kept, and what goes next.

use comfy_table::Cell;
use kelos_model::history::size_text;
use kelos_wire::{DatabaseDto, FoldersDto, RunFoldersDto, StorageDto, WorkerStorageDto};

use crate::address::Query;
use crate::client::Reply;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::{Because, Door};
use crate::{render, text as words};

/// Workflows that are printed.
const PRINTED: usize = 20;

#[derive(clap::Args)]
pub(crate) struct StorageArgs {
    /// Let history and folders of runs be removed as the settings say, including those from before the upgrade
    #[arg(long)]
    agree: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &StorageArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let found: Reply<StorageDto> = match args.agree {
        true => client.post("agree to the removal of history", "/storage/agree", &args.because.body())?,
        false => client.get("read what takes how much", "/storage", &Query::new())?,
    };
    if args.door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if args.agree {
        words::line("Agreed: history and folders of runs are removed as the settings say, from now on.");
        return Ok(0);
    }
    for line in lines(&found) {
        words::line(line);
    }
    if let Some(runs) = found.runs.as_ref().filter(|runs| !runs.workflows.is_empty()) {
        largest(runs);
    }
    Ok(0)
}

fn lines(found: &StorageDto) -> Vec<String> {
    let database = &found.database;
    let sizes =
        [(database.bytes, "in kelos.db"), (database.free_bytes, "of it free"), (database.log_bytes, "in kelos.db-wal")];
    let mut sizes: Vec<String> =
        sizes.into_iter().filter_map(|(bytes, place)| Some(format!("{} {place}", size_text(bytes?)))).collect();
    sizes.push(words::count(usize::try_from(database.events).unwrap_or(usize::MAX), "event"));
    sizes.push(words::count(usize::try_from(database.slots).unwrap_or(usize::MAX), "slot"));
    let mut lines = vec![format!("database   {}", sizes.join(", "))];
    lines.extend(removed_history(found));
    match &found.runs {
        Some(runs) => lines.push(format!("runs       {}, as of {}", folders(&runs.all), runs.looked_at.short())),
        None if found.terms.is_some() => {
            lines.push("runs       the folders are looked at for the first time".to_owned())
        }
        None => {}
    }
    lines.push(match &found.terms {
        Some(terms) => format!("kept       {terms}"),
        None => "kept       everything".to_owned(),
    });
    lines.extend(found.projects.iter().map(|own| format!("           in {}: {}", own.project, own.terms)));
    if let Some(runs) = &found.runs {
        lines.extend(outlook(found, runs));
    }
    if found.removed.folders > 0 {
        lines.push(format!("removed    {} since the server started", folders(&found.removed)));
    }
    lines.extend(found.workers.iter().map(of_worker));
    if let Some(leap) = &found.clock_leap {
        lines.push(format!(
            "Nothing is removed until somebody agrees, because {}: history may not be as old as it looks. If the clock is right, \
             `kelos storage --agree`",
            leap.words()
        ));
    }
    lines.extend(found.problem.iter().map(|problem| format!("problem    failed to {problem}")));
    lines
}

/// The line of a worker on another machine.
fn of_worker(WorkerStorageDto { worker, runs }: &WorkerStorageDto) -> String {
    let oldest = runs.oldest_at.as_ref().map(|at| format!(", the oldest of {}", at.short())).unwrap_or_default();
    let removed = match runs.removed.folders {
        0 => String::new(),
        _ => format!("; {} removed since it started", folders(&runs.removed)),
    };
    format!("worker     {worker}: {}{oldest}, as of {}{removed}", folders(&runs.all), runs.looked_at.short())
}

/// The history that is gone from the database, and that would go.
fn removed_history(found: &StorageDto) -> Vec<String> {
    let DatabaseDto { removed_until, removed_events, removed_runs, going_events, .. } = &found.database;
    let count = |of: u64, one: &str| words::count(usize::try_from(of).unwrap_or(usize::MAX), one);
    let mut lines = Vec::new();
    if let Some(until) = removed_until {
        let (events, runs) = (count(*removed_events, "event"), count(*removed_runs, "run"));
        lines.push(format!("           {events} and {runs} up to {} were removed", until.short()));
    }
    if found.database.consent.as_deref() == Some("missing") && *going_events > 0 {
        let events = count(*going_events, "event");
        lines.push(format!("           {events} would go: they stay until somebody agrees. `kelos storage --agree`"));
    }
    lines
}

/// The folders that go, and when.
fn outlook(found: &StorageDto, runs: &RunFoldersDto) -> Vec<String> {
    let mut lines = Vec::new();
    let is_agreed = found.consent.as_deref() != Some("missing");
    if runs.going.folders > 0 {
        let when = if is_agreed { "goes       " } else { "would go   " };
        lines.push(format!("{when}{}", folders(&runs.going)));
    }
    if runs.held.folders > 0 {
        lines.push(format!("held       {}: live, or their outcome is not known", folders(&runs.held)));
    }
    if let (Some(at), Some(workflow)) = (&runs.next_at, &runs.next_workflow) {
        let soon =
            if runs.soon.folders > 0 { format!("; {} within 7 days", folders(&runs.soon)) } else { String::new() };
        lines.push(format!("next       {} of {workflow}{soon}", at.short()));
    }
    if !is_agreed && found.terms.is_some() && found.clock_leap.is_none() {
        lines.push(
            "Nothing is removed until somebody agrees, because these folders are older than this feature: `kelos storage --agree`"
                .to_owned(),
        );
    }
    lines
}

fn largest(runs: &RunFoldersDto) {
    let mut table = render::table(&["WORKFLOW", "FOLDERS", "SIZE"]);
    for one in runs.workflows.iter().take(PRINTED) {
        table.add_row([Cell::new(&one.workflow), Cell::new(one.folders), Cell::new(size_text(one.bytes))]);
    }
    render::print(table);
    let more = runs.more_workflows + runs.workflows.len().saturating_sub(PRINTED) as u64;
    if more > 0 {
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        words::line(format!("and {}", words::count(more, "more workflow")));
    }
}

fn folders(of: &FoldersDto) -> String {
    let count = words::count(usize::try_from(of.folders).unwrap_or(usize::MAX), "folder");
    format!("{count} with {}", size_text(of.bytes))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kelos_wire::{ClockLeapDto, WorkerFoldersDto};

    use super::*;

    fn tally(folders: u64, bytes: u64) -> FoldersDto {
        FoldersDto { folders, bytes }
    }

    #[test]
    fn each_worker_has_a_line() {
        let at = |second| Timestamp::from_second(second).unwrap().into();
        let (all, removed) = (tally(3, 9000), tally(1, 4000));
        let runs = WorkerFoldersDto { looked_at: at(86_400), all, oldest_at: Some(at(0)), removed };
        let workers = vec![WorkerStorageDto { worker: "gpu1:3f".to_owned(), runs }];
        let told = lines(&StorageDto { workers, ..StorageDto::default() });
        let expected = "worker     gpu1:3f: 3 folders with 9 kB, the oldest of 1970-01-01T00:00Z, as of 1970-01-02T00:00Z; \
                        1 folder with 4 kB removed since it started";
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }

    #[test]
    fn what_would_go_of_before_is_said_with_the_way_to_agree() {
        let runs = RunFoldersDto {
            all: tally(1200, 12_000_000),
            going: tally(1000, 10_000_000),
            held: tally(1, 4000),
            soon: tally(2, 8000),
            next_at: Some(Timestamp::from_second(86_400).unwrap().into()),
            next_workflow: Some("etl".to_owned()),
            ..RunFoldersDto::default()
        };
        let found = StorageDto {
            terms: Some("90 days".to_owned()),
            consent: Some("missing".to_owned()),
            runs: Some(runs.clone()),
            ..StorageDto::default()
        };
        let told = lines(&found).join("\n");
        for part in [
            "1200 folders with 12 MB",
            "would go   1000 folders with 10 MB",
            "next       1970-01-02T00:00Z of etl; 2 folders",
            "--agree",
        ] {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        assert!(!told.contains("worker  "), "{told}");
        let at = |second| Timestamp::from_second(second).unwrap().into();
        let leap = Some(ClockLeapDto { from: at(0), to: at(120 * 86_400) });
        let leapt = lines(&StorageDto { clock_leap: leap, ..found.clone() }).join("\n");
        let why = "because the clock went from 1970-01-01T00:00Z to 1970-05-01T00:00Z without a turn between: history may not be as old";
        assert!(leapt.contains(why) && leapt.contains("would go   1000 folders"), "{leapt}");
        assert!(!leapt.contains("older than this feature"), "{leapt}");
        let agreed = lines(&StorageDto { consent: Some("agreed".to_owned()), ..found }).join("\n");
        assert!(agreed.contains("goes       1000 folders") && !agreed.contains("--agree"), "{agreed}");
    }
}
