//! The log in words, newest first. Many alike events in a row are one line.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::failures::{self as unrepaired, Failures};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::EventRecord;
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError};
use maud::{Markup, html};

use super::page::{Page, Tab, segment};
use super::selection::unknown;
use super::{asked, failures, time};
use filter::{Condition, Filter, LogQuery};

mod alike;
mod filter;

/// Events of a page.
const SHOWN: usize = 100;
/// Positions of the log that are read at a time.
const PIECE: u64 = 1000;
/// Positions of the log that one page searches.
const SEARCHED: u64 = 50_000;

/// Events, newest first.
struct LogPage {
    rows: Vec<EventRecord>,
    /// The earliest position that was read.
    down_to: u64,
    /// When that was, if it is not the beginning of what was asked for.
    back_to: Option<Timestamp>,
    /// The sentence for a workflow that has never been.
    unknown: Option<String>,
}

/// Reads the log backwards.
fn search(reader: &dyn Queries, filter: &Filter, before: Option<u64>) -> Result<LogPage, StoreError> {
    let log_end = reader.last_seq()? + 1;
    let place = |at: Option<Timestamp>, otherwise: u64| at.map_or(Ok(otherwise), |at| place_of(reader, at, log_end));
    let start = place(filter.from.as_ref().map(|from| from.at), 1)?;
    let mut end = place(filter.to.as_ref().map(|to| to.at), log_end)?.min(before.unwrap_or(log_end));
    let last = end.saturating_sub(SEARCHED).max(start);
    let mut found =
        LogPage { rows: Vec::new(), down_to: end, back_to: None, unknown: unknown(reader, filter.workflow.as_ref())? };
    while end > last && found.rows.len() < SHOWN {
        let from = end.saturating_sub(PIECE).max(last);
        let about = filter.workflow.clone().map_or(About::Anything, About::Workflow);
        let piece = EventFilter { about, after: from - 1, until: end - 1 };
        for record in reader.events(&piece, PageRequest::newest(PIECE as usize))?.rows {
            if found.rows.len() == SHOWN {
                break;
            }
            found.down_to = record.seq;
            if filter.accepts(&record) {
                found.rows.push(record);
            }
        }
        if found.rows.len() < SHOWN {
            found.down_to = from;
        }
        end = from;
    }
    if found.down_to > start {
        found.back_to = moment_of(reader, found.down_to)?;
    }
    Ok(found)
}

/// The first position of the log that is not before a moment. Times grow with positions, unless the clock was set back.
fn place_of(reader: &dyn Queries, at: Timestamp, end: u64) -> Result<u64, StoreError> {
    let (mut low, mut high) = (1, end);
    while low < high {
        let middle = low.midpoint(high);
        if moment_of(reader, middle)?.is_none_or(|moment| moment < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The moment of a position of the log.
fn moment_of(reader: &dyn Queries, seq: u64) -> Result<Option<Timestamp>, StoreError> {
    let only = EventFilter { about: About::Anything, after: seq.saturating_sub(1), until: seq };
    Ok(reader.events(&only, PageRequest::oldest(1))?.rows.first().map(|record| record.at))
}

pub(super) async fn show(wanted: Result<Query<LogQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let (wanted, now) = (asked::query(wanted)?, app.handle().now());
    let before = wanted.before;
    let filter = Filter::read(wanted, now)?;
    let (filter, found, failures) = app
        .read(move |reader| {
            let found = search(reader, &filter, before)?;
            Ok((filter, found, unrepaired::find(reader, now)?))
        })
        .await?;
    let body = page(&filter, before, &found, &failures, now);
    Ok(Page::new(&app, "Activity").at(Tab::Activity).style("pages.css").script("live.js").show(&body))
}

fn page(filter: &Filter, before: Option<u64>, found: &LogPage, failures: &Failures, now: Timestamp) -> Markup {
    let events = match &filter.workflow {
        Some(id) => format!("?workflow={}", segment(id.as_str())),
        None => String::new(),
    };
    let is_past = before.is_some() || filter.to.as_ref().is_some_and(|to| to.at <= now);
    html! {
        // Older pages do not change.
        @if !is_past { div data-events=(events) hidden {} }
        h1 { "Activity" }
        div #failures data-live { (failures::line(failures)) }
        (form(filter))
        div #events data-live {
            @if found.rows.is_empty() { (nothing(filter, found)) }
            ol.activity reversed { @for group in alike::groups(&found.rows) { (alike::lines(group, now)) } }
            nav.bar aria-label="Pages of the log" {
                @if before.is_some() { a.button href=(filter.href(None)) { "Newest" } }
                @if found.back_to.is_some() { a.button rel="next" href=(filter.href(Some(found.down_to))) { "Earlier" } }
            }
        }
    }
}

/// Ways to find more where nothing is found.
fn nothing(filter: &Filter, found: &LogPage) -> Markup {
    let conditions = filter.conditions();
    html! {
        @if let Some(unknown) = &found.unknown { p.note { (unknown) } }
        @if conditions.is_empty() { p.soft { "Nothing has happened yet." } }
        @else {
            p.headline {
                "No event is like that"
                @if let Some(at) = found.back_to { " since " (time::at(at)) ", and this page searches no further back" }
                "."
            }
            p { "To find more:" }
            ul {
                @for condition in conditions {
                    li { a href=(filter.href_without(Some(condition), None)) { (remedy(condition)) } }
                }
                @if let Some(at) = found.back_to { li { a href=(filter.href(Some(found.down_to))) { "search before " (time::at(at)) } } }
            }
        }
    }
}

const fn remedy(condition: Condition) -> &'static str {
    match condition {
        Condition::Workflow => "of all workflows",
        Condition::Kind => "of any kind",
        Condition::Who => "by anybody, also by the scheduler itself",
        Condition::Time => "at any time",
        Condition::Looks => "without evaluations of waiting slots",
    }
}

fn form(filter: &Filter) -> Markup {
    let kind = filter.kind.as_deref().unwrap_or_default();
    let from = filter.from.as_ref().map(|from| &from.text);
    let to = filter.to.as_ref().map(|to| &to.text);
    html! {
        form.bar method="get" action="/ui/activity" role="search" {
            label { "Kind " select name="kind" {
                option value="" { "any" }
                @for name in filter.kinds() { option value=(name) selected[name == kind] { (name) } }
            } }
            label { "Workflow " input name="workflow" value=[filter.workflow.as_ref()] autocomplete="off"; }
            label { "Who " input name="who" value=[filter.who.as_ref()] placeholder="any user: *" size="12" autocomplete="off"; }
            label { "From " input name="from" value=[from] placeholder="yesterday, -2h, 06:00" autocomplete="off"; }
            label { "to " input name="to" value=[to] placeholder="now" size="12" autocomplete="off"; }
            label { input type="checkbox" name="looks" value="1" checked[filter.looks]; " evaluations of waiting slots too" }
            button { "Show" }
            @if !filter.conditions().is_empty() { a.button href="/ui/activity" { "Everything" } }
        }
    }
}
