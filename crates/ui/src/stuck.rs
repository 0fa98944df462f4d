//! Slots that make no progress, worst first, with the reason and the actions.

use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use kelos_explain::stuck::{FLOOR, Kind, LATE, LONG, LOOKED_AT, Stuck, StuckReport, UNKNOWN, stuck};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::SlotState;
use maud::{Markup, html};

use super::documents::Document;
use super::page::{Page, Tab, slot_href, workflow_href};
use super::state::badge;
use super::{failures, time, words};
use crate::viewer;

pub(super) async fn show(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let found = stuck(app.handle()).await?;
    let body = html! {
        // Time alone makes slots late, and looking costs more than for other pages.
        div data-events="" data-every="15" data-batch="900" hidden {}
        h1 { "Stuck" }
        div #stuck data-live { (page(&found, now)) }
        (rules())
    };
    Ok(Page::new(&app, "Stuck").at(Tab::Stuck).style("pages.css").script("live.js").show(&body))
}

fn page(found: &StuckReport, now: Timestamp) -> Markup {
    html! {
        @if found.rows.is_empty() {
            p.headline { span.badge.good { "fine" } " Nothing is late, waiting for a retry, running long or failed." }
            p.soft { "Slots that make no progress appear here by themselves, worst first. " a href="/ui" { "The board" } " has all slots. " (Document::Stuck.link("What counts as stuck")) }
        } @else {
            p.headline { (summary(found)) }
            div.wide { table.stuck.cards {
                thead { tr { th { "How" } th { "Slot" } th { "Since" } th { "Beyond usual" } th { "Why" } th { "Next" } th { span.unseen { "Actions" } } } }
                tbody { @for row in &found.rows { (line(row, now)) } }
            } }
        }
        @if found.more > 0 { p.soft { "and " (found.more) " more that are less late" } }
        @if found.is_partial {
            p.note { "There are more live slots or failures than were examined; of each live state the oldest: " (LOOKED_AT) "." }
        }
    }
}

/// `3 late, 1 to be tried again`.
fn summary(found: &StuckReport) -> String {
    let slots =
        |kind: Kind| -> usize { found.rows.iter().filter(|row| row.kind == kind).map(|row| row.others + 1).sum() };
    let told = ALL.into_iter().map(|kind| (slots(kind), look(kind).1)).filter(|(slots, _)| *slots > 0);
    let told: Vec<String> = told.map(|(slots, words)| format!("{slots} {words}")).collect();
    format!("{}.", told.join(", "))
}

const ALL: [Kind; 8] =
    [Kind::Frozen, Kind::Overdue, Kind::Expiring, Kind::Late, Kind::Backoff, Kind::Long, Kind::Failed, Kind::Paused];

/// The colour and the name of a kind.
const fn look(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Expiring => ("bad", "about to expire"),
        Kind::Overdue => ("bad", "missed its deadline"),
        Kind::Late => ("bad", "late"),
        Kind::Backoff => ("again", "waits for its retry"),
        Kind::Long => ("goes", "running long"),
        Kind::Failed => ("bad", "failed"),
        Kind::Paused => ("ended", "paused"),
        Kind::Frozen => ("bad", "frozen"),
    }
}

fn line(row: &Stuck, now: Timestamp) -> Markup {
    let (class, told) = look(row.kind);
    html! {
        tr {
            td { span.badge .(class) { (told) } }
            td.subject {
                a href=(slot_href(&row.slot)) { (row.slot.short()) }
                @if let Some(state) = row.state { " " (badge(state)) }
                @if row.followers > 0 { br; span.soft { (failures::waiting(row.followers)) } }
                @if row.others > 0 {
                    br; a.soft href=(workflow_href(&row.slot.workflow)) { "and " (words::count(row.others as u64, "later slot")) }
                }
            }
            td data-head="Since" { (time::ago(row.since, now)) }
            td { (beyond(row)) }
            td.reason { (time::in_text(&row.reason)) }
            td { @if let Some(next) = row.next { (next_words(row.kind)) " " (time::ahead(next, now)) } }
            td { (actions(row)) }
        }
    }
}

fn beyond(row: &Stuck) -> Markup {
    html! {
        @if row.beyond > SignedDuration::ZERO && !matches!(row.kind, Kind::Failed | Kind::Paused | Kind::Frozen) { b { (words::span(row.beyond.as_secs())) } }
        @if let Some(usual) = row.usual { br; span.soft { "usually " (words::span(usual.as_secs())) } }
    }
}

const fn next_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Expiring => "expires",
        Kind::Backoff => "retried",
        _ => "checked",
    }
}

fn actions(row: &Stuck) -> Markup {
    let slot = slot_href(&row.slot);
    match row.state {
        _ if matches!(row.kind, Kind::Paused | Kind::Frozen) => html! {
            form method="post" action=(format!("{}/resume", workflow_href(&row.slot.workflow))) { (viewer::proof()) button { "Resume" } }
        },
        Some(state) if state.is_final() => html! { a.button.changes href=(format!("{slot}#actions")) { "Rerun…" } },
        Some(SlotState::Running | SlotState::Dispatched) => {
            html! { a.button href=(format!("{slot}#log")) { "Output" } }
        }
        _ => html! { a.button.changes href=(format!("{slot}#actions")) { "Act…" } },
    }
}

/// The meaning of the words in the table.
fn rules() -> Markup {
    let span = |span: SignedDuration| words::span(span.as_secs());
    html! {
        details {
            summary.soft { "What counts as stuck" }
            ul {
                li {
                    b { "Late" } ": it has not started, " (LATE) " times the p90 of its workflow’s latest slots after it was due, "
                    "and at least " (span(FLOOR)) ". With too little history: after "
                    (span(UNKNOWN)) ". A delay in its trigger is added. Slots of backfills, slots that collect facts and held slots are never late."
                }
                li { b { "About to expire" } ": it waits, and 80 % of its timeout has passed." }
                li { b { "Waits for its retry" } ": its run failed, and a retry is left." }
                li { b { "Running long" } ": " (LONG) " times the median, and at least " (span(FLOOR)) "." }
                li { b { "Failed" } ": it failed or expired, and was neither rerun, marked nor skipped since. Late slots that wait for it are counted in its row." }
                li { b { "Frozen" } ": it is due, and its workflow is frozen; " a href="/ui/problems" { "Problems" } " says why." }
                li { b { "Paused" } ": it is due, and a person has paused its workflow." }
            }
            p.soft { "Each row covers all slots of a workflow that are stuck in the same way, and names the oldest." }
        }
    }
}
