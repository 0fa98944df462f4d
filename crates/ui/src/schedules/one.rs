//! The sections of an event schedule, or of a program that event schedules run, on the page of a workflow.

use jiff::Timestamp;
use kelos_explain::schedules::decisions::{self, Decision, Kind};
use kelos_explain::schedules::overview::{self, FiringTime, Overview, PendingSlot};
use kelos_explain::schedules::{check, nothing_pending};
use kelos_model::time::text::span;
use kelos_model::workflow::{CatchUp, EventKeys, Keys, WorkflowRow};
use kelos_model::{Run, SlotState};
use kelos_store::{PageRequest, Queries, RunFilter, StoreError};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::list::{self, Line, switch};
use super::{act, words as told};
use crate::page::{slot_href, workflow_href};
use crate::state::badge;
use crate::{runs, settings, time, tree, words};

/// Decisions that are shown.
const DECISIONS: usize = 25;
/// Runs of a program that are shown, by whichever schedule they were started.
const RUNS: usize = 20;
/// Schedules of a program that are shown.
const SCHEDULES: usize = 100;
/// Times of the future that are shown.
const NEXT_TIMES: usize = 5;

/// The sections of a workflow's page that only event schedules or programs have.
pub(crate) enum Own {
    /// It is an event schedule.
    Schedule(Box<Schedule>),
    /// Event schedules run its job, or people start it.
    Program(Program),
}

pub(crate) struct Schedule {
    how: Overview,
    /// Whether its trigger waits for times.
    has_times: bool,
    next: Vec<FiringTime>,
    decisions: Vec<Decision>,
}

pub(crate) struct Program {
    lines: Vec<Line>,
    more: usize,
    /// Runs of its job, newest first.
    runs: Vec<Run>,
}

/// Reads it; none if a workflow has only slots by time or job id.
pub(crate) fn read(
    reader: &dyn Queries,
    row: &WorkflowRow,
    all: &[WorkflowRow],
    now: Timestamp,
) -> Result<Option<Own>, StoreError> {
    if row.definition.keys.events().is_some() {
        let decisions = decisions::read(reader, &row.id, None, DECISIONS)?.rows;
        let how = overview::read(reader, row, now)?;
        let next = next_times(row, how.next.clone());
        let has_times = !row.definition.trigger.firings().is_empty();
        return Ok(Some(Own::Schedule(Box::new(Schedule { how, has_times, next, decisions }))));
    }
    let runs_it = |other: &&WorkflowRow| other.present && other.id != row.id && *other.definition.program() == row.id;
    let schedules: Vec<&WorkflowRow> = all.iter().filter(runs_it).collect();
    if schedules.is_empty() && !matches!(row.definition.keys, Keys::Requests(_)) {
        return Ok(None);
    }
    let more = schedules.len().saturating_sub(SCHEDULES);
    let (mut lines, mut runs) = (Vec::new(), of(reader, row)?);
    for schedule in schedules.into_iter().take(SCHEDULES) {
        runs.extend(of(reader, schedule)?);
        lines.push((schedule.clone(), overview::read(reader, schedule, now)?));
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.seq));
    runs.truncate(RUNS);
    Ok(Some(Own::Program(Program { lines, more, runs })))
}

/// The latest runs of a workflow's own slots.
fn of(reader: &dyn Queries, row: &WorkflowRow) -> Result<Vec<Run>, StoreError> {
    Ok(reader
        .runs(&RunFilter { workflow: Some(row.id.clone()), ..RunFilter::default() }, PageRequest::newest(RUNS))?
        .rows)
}

fn next_times(row: &WorkflowRow, first: Option<FiringTime>) -> Vec<FiringTime> {
    let after = |time: &FiringTime| overview::next_time(&row.definition, time.at);
    std::iter::successors(first, after).take(NEXT_TIMES).collect()
}

impl Own {
    /// The section above its slots.
    pub(crate) fn show(&self, row: &WorkflowRow, now: Timestamp) -> Markup {
        match self {
            Own::Schedule(schedule) => schedule.show(row, now),
            Own::Program(program) => program.show(row, now),
        }
    }

    /// Its next cron time; none if it has none.
    pub(crate) fn next(&self) -> Option<Markup> {
        let Own::Schedule(schedule) = self else { return None };
        schedule.has_times.then(|| html! {
            @if schedule.next.is_empty() { p.soft { "None, as it is configured now." } }
            ul.plain { @for time in &schedule.next { li { (time::at(time.at)) span.soft { " " (time.cron) " in " (time.zone) } } } }
        })
    }
}

/// Whether a schedule is enabled, and what can be done with it.
pub(crate) fn state(row: &WorkflowRow) -> Markup {
    html! {
        @if row.definition.keys.events().is_some() {
            (switch(row))
            @if row.present && !row.enabled { " Facts that come don’t count." }
            @if row.present { (act::buttons(row, "page")) }
        }
        @if row.present && row.definition.keys.can_be_started() { (act::form(row)) }
    }
}

impl Schedule {
    fn show(&self, row: &WorkflowRow, now: Timestamp) -> Markup {
        html! {
            h2 { "Pending" }
            @if self.how.pending.is_empty() { p.soft { (sentence(&nothing_pending(row))) } }
            @for pending in &self.how.pending { (full(row, pending, now)) }
            h2 { "Recent decisions" }
            @if self.decisions.is_empty() { p.soft { "None yet." } } @else {
                div.wide { table.decisions {
                    thead { tr { th { "When" } th { "What" } th { "Slot" } th { "Why" } th { "It had" } } }
                    tbody { @for decision in &self.decisions { (decided(decision)) } }
                } }
            }
        }
    }
}

fn sentence(told: &str) -> String {
    let first: String = told.chars().take(1).flat_map(char::to_uppercase).collect();
    format!("{first}{}.", told.chars().skip(1).collect::<String>())
}

/// A pending slot with everything it has collected and everything it lacks.
fn full(row: &WorkflowRow, pending: &PendingSlot, now: Timestamp) -> Markup {
    html! {
        section.pool {
            p.headline { (list::brief(row, pending)) }
            p.soft {
                a href=(slot_href(&pending.slot)) { (time::key(&pending.slot.key)) }
                ", " (pending.state) " since " (time::at(pending.since))
                @if let Some(at) = pending.expires { "; expires at " (time::at(at)) ", " (time::ahead(at, now)) }
            }
            @if let Some(said) = &pending.explanation {
                @if pending.state == SlotState::Held { (told::gates(said)) } @else { (tree::answered(said)) }
            }
            (had(pending))
        }
    }
}

fn had(pending: &PendingSlot) -> Markup {
    let had = pending.collected.as_deref().map(kelos_model::Collection::words).unwrap_or_default();
    html! { @if !had.is_empty() { p { "It has collected " (had.join(", ")) "." } } }
}

fn decided(decision: &Decision) -> Markup {
    let (class, word) = look(decision.kind);
    let had = decision.collected.as_deref().map(kelos_model::Collection::words).unwrap_or_default();
    html! {
        tr {
            td.when { (time::at(decision.at)) }
            td {
                @match decision.state.filter(|_| matches!(decision.kind, Kind::Fired | Kind::Pending)) {
                    Some(state) => (badge(state)),
                    None => span.badge .(class) { (word) },
                }
            }
            td { @if let Some(slot) = &decision.slot { a href=(slot_href(slot)) { (time::key(&slot.key)) } } }
            td.reason { (time::in_text(&decision.text)) }
            td.reason { (had.join(", ")) }
        }
    }
}

const fn look(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Pending => ("waits", "pending"),
        Kind::Fired => ("good", "fired"),
        Kind::Aborted => ("ended", "aborted"),
        Kind::Expired => ("bad", "expired"),
        Kind::Disabled => ("ended", "disabled"),
        Kind::Changed => ("ended", "changed"),
        Kind::Deleted => ("ended", "deleted"),
        Kind::Skipped => ("ended", "skipped"),
        Kind::Killed => ("ended", "killed"),
        Kind::Missed => ("again", "missed"),
        Kind::Schedule => ("plain", "schedule"),
    }
}

/// Warnings about definitions that look like mistakes.
pub(crate) fn warnings(row: &WorkflowRow) -> Markup {
    html! {
        @for warning in check::warnings(&row.definition) { p { span.badge.again { "warning" } " " (sentence(&warning)) } }
    }
}

impl Program {
    fn show(&self, row: &WorkflowRow, now: Timestamp) -> Markup {
        html! {
            h2 { "Event schedules that run it" }
            @if self.lines.is_empty() { p.soft { "None: people start it." } } @else { (list::table(&self.lines, now)) }
            @if self.more > 0 { p.soft { "and " (self.more) " more" } }
            h2 { "Its latest runs" }
            @if self.runs.is_empty() { p.soft { "None yet." } } @else {
                div.wide { table.runs {
                    thead { tr { th { "State" } th { "Run" } th { "By" } th { "Began" } th { "Took" } } }
                    tbody { @for run in &self.runs { (run_line(row, run)) } }
                } }
            }
        }
    }
}

fn run_line(row: &WorkflowRow, run: &Run) -> Markup {
    let began = run.started_at.unwrap_or(run.dispatched_at);
    let slot = &run.id.slot;
    html! {
        tr {
            td { (runs::badge(run.state)) }
            td { a href=(slot_href(slot)) { (time::key(&slot.key)) } " #" (run.id.number) }
            td {
                @if slot.workflow == row.id { span.soft { @if row.definition.keys.are_moments() { "a request" } @else { "its own schedule" } } }
                @else { a href=(workflow_href(&slot.workflow)) { (slot.workflow) } }
            }
            td { (time::at(began)) }
            td { @if let Some(end) = run.ended_at { (words::took(began, end)) } @else { "…" } }
        }
    }
}

/// The rows of an event schedule, beside its trigger and its constraints.
pub(crate) fn facts(events: &EventKeys) -> Markup {
    let seconds = |millis: u64| span(i64::try_from(millis / 1000).unwrap_or(i64::MAX));
    let properties: Map<String, Value> =
        events.properties.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    html! {
        dt { "Program" } dd { a href=(workflow_href(&events.program)) { (events.program) } }
        dt { "Expires" } dd { "when it has not been queued " (seconds(events.timeout_millis)) " after it began to collect" }
        @if let Some(end) = events.end_time { dt { "Ends" } dd { (time::at(end)) } }
        @if events.jitter_millis > 0 { dt { "Jitter" } dd { "up to " (seconds(events.jitter_millis)) " late" } }
        dt { "Misfires" } dd { (catch_up(events.catch_up)) }
        (settings::rows(&properties))
    }
}

const fn catch_up(policy: CatchUp) -> &'static str {
    match policy {
        CatchUp::Skip => "are not counted",
        CatchUp::Latest => "the latest of them counts",
        CatchUp::All => "all of them count, one after the other",
    }
}
