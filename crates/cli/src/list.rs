//! `kelos ls` and `kelos slots`.

use std::collections::BTreeMap;

use comfy_table::Cell;
use kelos_explain::failures::MOST_READ;
use kelos_model::time::Zone;
use kelos_wire::{Counts, FailureListDto, ListDto, ProblemDto, ScheduleDto, SlotDto, WorkflowDetailDto, WorkflowDto};

use crate::address::Query;
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::failures;
use crate::options::Door;
use crate::selection::zone_of;
use crate::text::{self as words, count};
use crate::times::Moment;
use crate::{days, render, times};

#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// Only workflows with this tag
    #[arg(long)]
    tag: Option<String>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
pub(crate) struct SlotsArgs {
    /// Only slots of this workflow
    workflow: Option<String>,
    /// Only slots in these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser())]
    state: Vec<String>,
    /// Only slots from this time on
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    from: Option<Moment>,
    /// Only slots before this time
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    to: Option<Moment>,
    /// Time zone of --from and --to, such as Europe/Berlin [default: that of the workflow's schedule, or of all workflows]
    #[arg(long, value_name = "ZONE", value_parser = times::zone)]
    zone: Option<Zone>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50, conflicts_with = "all")]
    limit: usize,
    /// Show all
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    door: Door,
}

fn state_parser() -> clap::builder::PossibleValuesParser {
    kelos_model::SlotState::ALL.map(kelos_model::SlotState::as_str).into()
}

/// Workflows whose counts are asked for; a longer list goes without.
const DETAILED: usize = 200;

pub(crate) fn workflows(args: &LsArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let mut query = Query::new();
    query.add_some("tag", args.tag.as_ref());
    let list: Reply<ListDto<WorkflowDto>> = client.get("list the workflows", "/workflows", &query)?;
    if args.door.form.json {
        words::json(&list);
        return Ok(0);
    }
    let rows = &list.items;
    if rows.is_empty() {
        words::line("no workflows");
    } else {
        let mut table = render::table(&["WORKFLOW", "SCHEDULE", "NEXT", "SLOTS", "NOTE"]);
        // An older server does not tell of them.
        let failures = failures::read(&client).map(|found| FailureCounts::of(&found)).unwrap_or_default();
        for row in rows {
            // A workflow that went away meanwhile has no details.
            let detail = (rows.len() <= DETAILED).then(|| client.workflow("read a workflow", &row.id).ok()).flatten();
            table.add_row(cells(row, detail.as_ref(), failures.note(&row.id)));
        }
        render::print(table);
    }
    say_problems(&client);
    Ok(0)
}

/// The number of failures of each workflow.
#[derive(Default)]
struct FailureCounts {
    by_workflow: BTreeMap<String, usize>,
    /// Whether there are more than a server reads.
    are_cut: bool,
}

impl FailureCounts {
    fn of(found: &FailureListDto) -> FailureCounts {
        let read: usize = found.by_workflow.values().sum();
        FailureCounts { by_workflow: found.by_workflow.clone(), are_cut: found.partial && read >= MOST_READ }
    }

    fn note(&self, workflow: &str) -> Option<String> {
        let number = *self.by_workflow.get(workflow)?;
        Some(if self.are_cut { format!("{number} failures or more") } else { count(number, "failure") })
    }
}

fn cells(row: &WorkflowDto, detail: Option<&WorkflowDetailDto>, failures: Option<String>) -> [Cell; 5] {
    let next = detail.and_then(|detail| detail.next_times.first()).filter(|_| row.enabled);
    let mut notes = Vec::new();
    notes.extend(failures);
    if let Some(frozen) = &row.frozen {
        notes.push(format!("frozen: {}", frozen.code));
    }
    let off = [(!row.enabled, "disabled"), (row.paused, "paused")];
    notes.extend(off.iter().filter(|(is_off, _)| *is_off).map(|(_, off)| (*off).to_owned()));
    match row.source.provenance.as_str() {
        "api" => notes.push("defined through the API".to_owned()),
        "code" => notes.push("defined by the program".to_owned()),
        _ => {}
    }
    if let Some(detail) = detail {
        notes.extend(detail.schedule_problem.clone());
        let problems = detail.problems.len();
        notes.extend((problems > 0).then(|| count(problems, "problem")));
    }
    notes.extend(row.description.clone());
    [
        Cell::new(&row.id),
        Cell::new(schedule(&row.schedule)),
        Cell::new(next.map_or_else(|| "-".to_owned(), |next| next.short())),
        Cell::new(detail.map_or_else(|| "-".to_owned(), |detail| counts(&detail.counts))),
        Cell::new(notes.join("; ")),
    ]
}

fn schedule(schedule: &ScheduleDto) -> String {
    if let Some(on) = &schedule.depends_on {
        return format!("as {on}");
    }
    if let Some(template) = &schedule.job_id {
        return format!("jobs {template}");
    }
    if let Some(program) = &schedule.runs {
        return format!("runs {program}");
    }
    if schedule.on_request == Some(true) {
        return "on request".to_owned();
    }
    let times = match (&schedule.period, schedule.hours) {
        (Some(_), Some(hours)) if hours > 1 => format!("each {hours} hours"),
        (Some(period), _) => period.to_string(),
        (None, _) => schedule.cron.as_deref().map_or("", named).to_owned(),
    };
    match &schedule.zone {
        Some(zone) if zone != "UTC" => format!("{times} {zone}"),
        _ => times,
    }
}

/// The word that scripts have for a cron expression; else the expression.
fn named(cron: &str) -> &str {
    match cron {
        "0 * * * * ?" => "minutely",
        "0 0 * * * ?" => "hourly",
        "0 0 0 * * ?" => "daily",
        _ => cron,
    }
}

/// `164 succeeded, 2 waiting`, in the order of a slot's life.
pub(crate) fn counts(counts: &Counts) -> String {
    let known = kelos_model::SlotState::ALL.map(kelos_model::SlotState::as_str);
    let told = known.iter().filter_map(|state| Some((state, counts.get(*state).filter(|count| **count > 0)?)));
    let told: Vec<String> = told.map(|(state, count)| render::paint(&format!("{count} {state}"), state)).collect();
    if told.is_empty() { "-".to_owned() } else { told.join(", ") }
}

/// A list of workflows that lacks some is worth a word.
fn say_problems(client: &Client) {
    let Ok(problems) = client.get::<ListDto<ProblemDto>>("list the problems", "/problems", &Query::new()) else {
        return;
    };
    for problem in problems.items {
        let severity = if problem.severity == "warning" { "warning: " } else { "" };
        let (line, column) = (problem.line, problem.column);
        let place = if line > 0 { format!(":{line}:{column}") } else { String::new() };
        let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        words::note(format!("{}{place}: {severity}{}{hint}", problem.file, problem.message));
    }
}

pub(crate) fn slots(args: &SlotsArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let doing = "list the slots";
    let mut query = Query::new();
    // A filter that names nothing finds nothing; a name that is mistyped deserves an error.
    let workflow = args.workflow.as_ref().map(|name| client.workflow(doing, name)).transpose()?;
    query.add_some("workflow", workflow.as_ref().map(|workflow| &workflow.summary.id));
    if !args.state.is_empty() {
        query.add("state", args.state.join(","));
    }
    let local = args.from.iter().chain(&args.to).find(|time| time.is_local());
    let zone = match (&args.zone, &workflow, local) {
        (Some(zone), ..) => zone.clone(),
        (None, Some(workflow), _) => zone_of(workflow),
        (None, None, Some(time)) => in_common(&client, doing, time)?,
        (None, None, None) => Zone::utc(),
    };
    let ([from, to], understood) = times::range(doing, &zone, [args.from.as_ref(), args.to.as_ref()])?;
    query.add_some("from", from.map(words::wire));
    query.add_some("to", to.map(words::wire));
    understood.filter(|_| !args.door.form.json).into_iter().for_each(words::note);
    let limit = if args.all { usize::MAX } else { args.limit.max(1) };
    let (rows, more) = client.list::<Reply<SlotDto>>(doing, "/slots", &query, limit)?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    say_problems(&client);
    if rows.is_empty() {
        words::line("no slots");
        return Ok(0);
    }
    let which = if rows.iter().all(|row| row.slot.key.job.is_some()) { "JOB" } else { "TIME" };
    let zones = zones_of_days(&client, workflow);
    let mut table = render::table(&["WORKFLOW", which, "STATE", "SINCE", "RUNS", "NOTE"]);
    for row in &rows {
        table.add_row([
            Cell::new(&row.slot.workflow),
            Cell::new(days::key(zones.get(&row.slot.workflow), &row.slot.key)),
            render::state(row.state.as_str()),
            Cell::new(times::since(row.since)),
            Cell::new(row.last_run),
            Cell::new(note(row)),
        ]);
    }
    render::print(table);
    if more {
        words::line(format!("the newest {} of more; --all or --limit N prints the others", count(rows.len(), "slot")));
    }
    Ok(0)
}

/// The zones of the workflows whose slots are about days: of one, or of all.
fn zones_of_days(client: &Client, one: Option<WorkflowDetailDto>) -> BTreeMap<String, Zone> {
    let all = match one {
        Some(one) => vec![one.summary],
        // Without them the slots still have names.
        None => client
            .get::<ListDto<WorkflowDto>>("list the workflows", "/workflows", &Query::new())
            .map_or_else(|_| Vec::new(), |all| all.items),
    };
    all.into_iter().filter_map(|row| Some((row.id, days::zone(&row.schedule)?))).collect()
}

/// The zone of all workflows, for a time that depends on it.
fn in_common(client: &Client, doing: &str, time: &Moment) -> Result<Zone, Failure> {
    let all: ListDto<WorkflowDto> = client.get(doing, "/workflows", &Query::new())?;
    let zones = all.items.iter().filter_map(|one| Some((one.id.as_str(), Zone::parse(one.zone.as_deref()?).ok()?)));
    times::in_common(doing, time, zones)
}

fn note(row: &SlotDto) -> String {
    let mut notes = Vec::new();
    let retries = row.retries;
    notes.extend(row.due.map(|due| format!("retry {retries} at {}", due.short())));
    if row.due.is_none() && retries > 0 {
        notes.push(format!("after {}", count(usize::try_from(retries).unwrap_or(usize::MAX), "failed attempt")));
    }
    notes.extend(row.backfill.as_ref().map(|name| format!("backfill {name}")));
    if let Some(collected) = &row.collected {
        notes.extend(collected.words.iter().cloned());
        let by = collected.asked.as_ref().map(|asked| asked.by.as_deref().unwrap_or("somebody"));
        notes.extend(by.map(|by| format!("asked by {by}")));
    }
    if row.priority != 0 {
        notes.push(format!("priority {}", row.priority));
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use kelos_wire::{AskedDto, CollectedDto};

    use super::*;

    #[test]
    fn schedules_are_told_by_the_words_of_scripts() {
        let told = |cron: &str, zone: &str| {
            let (cron, zone) = (Some(cron.to_owned()), Some(zone.to_owned()));
            schedule(&ScheduleDto { cron, zone, ..ScheduleDto::default() })
        };
        assert_eq!(told("0 0 * * * ?", "UTC"), "hourly");
        assert_eq!(told("0 0 0 * * ?", "Europe/Berlin"), "daily Europe/Berlin");
        assert_eq!(told("0 0 6 * * ?", "UTC"), "0 0 6 * * ?");
    }

    #[test]
    fn a_slot_says_why_it_is() {
        let collected = |words: &[&str], by: Option<&str>| SlotDto {
            collected: Some(CollectedDto {
                words: words.iter().map(|word| (*word).to_owned()).collect(),
                asked: Some(AskedDto { by: by.map(str::to_owned), ..AskedDto::default() }),
                ..CollectedDto::default()
            }),
            ..SlotDto::default()
        };
        assert_eq!(note(&collected(&[], Some("ann"))), "asked by ann");
        assert_eq!(note(&collected(&["1 partition of ds"], None)), "1 partition of ds; asked by somebody");
        let slot = SlotDto { retries: 1, backfill: Some("b".to_owned()), ..SlotDto::default() };
        assert_eq!(note(&slot), "after 1 failed attempt; backfill b");
    }
}
