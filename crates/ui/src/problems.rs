//! Problems: unrepaired failures, files of definitions, sources of facts, checkpoints, endpoints that do not answer, runs that can't be started.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::Timestamp;
use kelos_engine::Status;
use kelos_explain::why;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::breach::THAWING;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotRef, SlotState};
use kelos_sandbox::{Problem, ProblemCode};
use kelos_storage::Health;
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};
use maud::{Markup, html};

use super::alerts::ALERTS;
use super::failures::{self, FailureSection};
use super::page::{Page, Tab, slot_href, workflow_href};
use super::{source, time, words};
use crate::viewer;

/// How many dispatched slots are checked for the reason why they do not run yet.
const ASKED: usize = 200;
/// Slots that are named for each reason.
const NAMED: usize = 10;

/// Slots whose start was put off, by the reason.
type DeferredStarts = BTreeMap<String, Vec<SlotRef>>;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let deferred = app.read(move |reader| deferred(reader, now)).await?;
    let frozen = app.read(frozen).await?;
    let failures = app.read(move |reader| failures::section(reader, now)).await?;
    let (view, mut problems) = (app.view().await?, app.node().problems());
    problems.retain(|problem| view.as_ref().is_none_or(|view| view.has_file(&problem.file)));
    // Names of machines belong to no project.
    let endpoints = if view.is_none() { app.node().storage().health() } else { Vec::new() };
    let broken: Vec<Health> = endpoints.into_iter().filter(|one| one.broken.is_some()).collect();
    let trouble = match app.handle().status() {
        Status::Troubled { reason } | Status::Damaged { reason } => Some(reason),
        _ => None,
    };
    let body = html! {
        // Files and endpoints cause no events, so the page is requested again.
        div data-events="" data-every="5" hidden {}
        h1 { "Problems" }
        div #problems data-live { (page(trouble.as_deref(), &failures, &frozen, &problems, &broken, &deferred)) }
    };
    Ok(Page::new(&app, "Problems").at(Tab::Problems).style("pages.css").script("live.js").show(&body))
}

/// Dispatched slots that were not started, with the answers of their executors.
fn deferred(reader: &dyn Queries, now: Timestamp) -> Result<DeferredStarts, StoreError> {
    let filter = SlotFilter { states: vec![SlotState::Dispatched], ..SlotFilter::default() };
    let mut deferred = DeferredStarts::new();
    for row in reader.slots(&filter, PageRequest::newest(ASKED))?.rows {
        let said = why::read(reader, &row.id, now, true, None)?.blockers;
        if !said.is_empty() {
            deferred.entry(said.join("; ")).or_default().push(row.id);
        }
    }
    Ok(deferred)
}

/// Frozen workflows, which wait until a person resumes them.
fn frozen(reader: &dyn Queries) -> Result<Vec<WorkflowRow>, StoreError> {
    Ok(reader.workflows(None)?.into_iter().filter(|row| row.frozen().is_some()).collect())
}

fn page(
    trouble: Option<&str>,
    failures: &FailureSection,
    frozen: &[WorkflowRow],
    problems: &[Problem],
    broken: &[Health],
    deferred: &DeferredStarts,
) -> Markup {
    html! {
        @let is_set_up = trouble.is_none() && frozen.is_empty() && problems.is_empty() && broken.is_empty() && deferred.is_empty();
        @if is_set_up && failures.is_empty() {
            p.headline { span.badge.good { "fine" } " Every file of definitions is loaded, every endpoint that was asked answers, no start is put off, and nothing has failed." }
        }
        @if let Some(reason) = trouble {
            h2 { "This server" }
            p.problem { "failed to " (reason) }
        }
        (failures.show())
        @if !frozen.is_empty() {
            h2 { "Frozen workflows" }
            p { "An internal check of the scheduler failed for them. All other workflows continue." }
            @for row in frozen { (left_alone(row)) }
            p.soft { "What to do: " (THAWING) "." }
        }
        @let is_of_source = |problem: &&Problem| matches!(problem.code, ProblemCode::SourceFails | ProblemCode::SourceNotice);
        @let is_of_server = |problem: &&Problem| problem.code == ProblemCode::BadCertificate;
        @for problem in problems.iter().filter(is_of_server) {
            h2 { "Certificate" }
            (definition(problem))
        }
        @let is_of_inbox = |problem: &&Problem| matches!(problem.code, ProblemCode::InboxFails | ProblemCode::RequestRefused);
        @let is_of_definition = |problem: &&Problem| {
            !(is_of_source(problem) || is_of_server(problem) || is_of_inbox(problem) || is_of_reader(problem))
        };
        @if problems.iter().any(|problem| is_of_definition(&problem)) {
            h2 { "Definitions" }
            @for problem in problems.iter().filter(is_of_definition) { (definition(problem)) }
        }
        @if problems.iter().any(|problem| is_of_source(&problem)) {
            h2 { "Sources of facts" }
            @for problem in problems.iter().filter(is_of_source) { (definition(problem)) }
        }
        @if problems.iter().any(|problem| is_of_inbox(&problem)) {
            h2 { "Requests of SQL transactions" }
            @for problem in problems.iter().filter(is_of_inbox) { (definition(problem)) }
        }
        (of_readers(problems))
        @if !broken.is_empty() {
            h2 { "Endpoints" }
            @for health in broken { (endpoint(health)) }
        }
        @if !deferred.is_empty() {
            h2 { "Starts that are put off" }
            @for (reason, slots) in deferred { (put_off(reason, slots)) }
        }
    }
}

/// Whether a problem is one of what reads the log, or looks after the folders of runs.
fn is_of_reader(problem: &Problem) -> bool {
    use ProblemCode::{AlertFails, CheckpointFails, HistoryFails, TelemetryFails};
    matches!(problem.code, AlertFails | CheckpointFails | HistoryFails | TelemetryFails)
}

/// The problems of checkpoints, alerts, collectors and history, each kind under its heading.
fn of_readers(problems: &[Problem]) -> Markup {
    let kinds = [
        (ProblemCode::CheckpointFails, "Checkpoints", None),
        (ProblemCode::AlertFails, "Alerts", Some(ALERTS)),
        (ProblemCode::TelemetryFails, "Traces and lineage", None),
        (ProblemCode::HistoryFails, "History", Some("/ui/storage")),
    ];
    html! {
        @for (code, title, page) in kinds {
            @if problems.iter().any(|problem| problem.code == code) {
                h2 { @if let Some(page) = page { a href=(page) { (title) } } @else { (title) } }
                @for problem in problems.iter().filter(|problem| problem.code == code) { (definition(problem)) }
            }
        }
    }
}

fn left_alone(row: &WorkflowRow) -> Markup {
    let Some(freeze) = row.frozen() else { return html! {} };
    html! {
        article.problem {
            p {
                span.badge.bad { "frozen" } " " a href=(workflow_href(&row.id)) { (row.id) }
                " since " (time::at(freeze.at)) " · " code { (freeze.breach.invariant.code()) }
            }
            p { (freeze.breach) }
            @if !freeze.set_aside.is_empty() {
                p.soft { "Reports that are ignored until it is resumed: " (words::count(freeze.set_aside.len() as u64, "run")) "." }
            }
            form method="post" action=(format!("{}/resume", workflow_href(&row.id))) { (viewer::proof()) button { "Resume" } }
        }
    }
}

/// One problem of a file of definitions.
pub(super) fn definition(problem: &Problem) -> Markup {
    let (class, name) = if problem.is_error() { ("bad", "error") } else { ("again", "warning") };
    html! {
        article.problem {
            p {
                span.badge .(class) { (name) } " "
                code { (problem.file) @if problem.line > 0 { ":" (problem.line) ":" (problem.column) } }
                @if let Some(id) = &problem.workflow { " · " a href=(workflow_href(id)) { (id) } }
                " · " code { (problem.code) }
            }
            p { (problem.message) }
            @if let Some(line) = &problem.source_line { (source::excerpt(line, problem.line, problem.column)) }
            @if let Some(hint) = &problem.hint { p { b { "Hint: " } (hint) } }
            @if problem.kept_last_good { p.soft { "The last good version of this file is in use." } }
        }
    }
}

fn endpoint(health: &Health) -> Markup {
    let Some(broken) = &health.broken else { return html! {} };
    let wait = broken.next_try.as_secs();
    html! {
        article.problem {
            p { span.badge.bad { "down" } " " code { (health.endpoint) } " since " (time::at(broken.since)) }
            p { (broken.last_error) }
            p.soft {
                @if wait == 0 { "It is tried again with the next question." }
                @else { "Its circuit breaker is open; the next attempt is in " (words::span(i64::try_from(wait).unwrap_or(i64::MAX))) "." }
            }
        }
    }
}

fn put_off(reason: &str, slots: &[SlotRef]) -> Markup {
    html! {
        article.problem {
            p { span.badge.again { "deferred" } " " (words::count(slots.len() as u64, "slot")) ": " (reason) }
            ul.plain.inline {
                @for slot in slots.iter().take(NAMED) {
                    li { a href=(slot_href(slot)) { (slot.short()) } }
                }
                @if slots.len() > NAMED { li.soft { "and " (slots.len() - NAMED) " more" } }
            }
        }
    }
}
