//! The log in words, newest first. Many alike events in a row are one line.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use kelos_explain::failures::{self as unrepaired, Failures};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::{EventRecord, WorkflowId};
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::page::{Page, Tab, segment};
use super::{asked, events, failures};

mod alike;

/// Events of a page.
const SHOWN: usize = 100;
/// Positions of the log that are read at a time.
const PIECE: u64 = 1000;
/// Positions of the log that one page searches.
const SEARCHED: u64 = 50_000;

/// The part of the log to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogQuery {
    /// Only of this workflow, its slots and backfills.
    workflow: Option<String>,
    /// Only actions of this person; `*` is any person.
    who: Option<String>,
    /// Also evaluations that changed nothing but the text.
    looks: Option<String>,
    /// Only before this position of the log.
    before: Option<u64>,
}

/// The same, read.
struct Filter {
    workflow: Option<WorkflowId>,
    who: Option<String>,
    looks: bool,
}

impl Filter {
    fn accepts(&self, record: &EventRecord) -> bool {
        if !self.looks && events::is_a_look(record) {
            return false;
        }
        match self.who.as_deref() {
            None => true,
            Some("*") => events::by(record).is_some(),
            Some(who) => events::by(record).is_some_and(|by| by == who),
        }
    }

    /// The query of the page that ends before a position.
    fn href(&self, before: Option<u64>) -> String {
        let parts = [
            self.workflow.as_ref().map(|id| format!("workflow={}", segment(id.as_str()))),
            self.who.as_ref().map(|who| format!("who={}", segment(who))),
            self.looks.then(|| "looks=1".to_owned()),
            before.map(|before| format!("before={before}")),
        ];
        let query: Vec<String> = parts.into_iter().flatten().collect();
        if query.is_empty() { "/ui/activity".to_owned() } else { format!("/ui/activity?{}", query.join("&")) }
    }
}

/// Events, newest first.
struct LogPage {
    rows: Vec<EventRecord>,
    /// The earliest position that was read.
    down_to: u64,
}

/// Reads the log backwards.
fn search(reader: &dyn Queries, filter: &Filter, before: Option<u64>) -> Result<LogPage, StoreError> {
    let mut end = match before {
        Some(before) => before.min(reader.last_seq()? + 1),
        None => reader.last_seq()? + 1,
    };
    let last = end.saturating_sub(SEARCHED);
    let mut rows = Vec::new();
    while end > 1 && end > last {
        let start = end.saturating_sub(PIECE).max(1);
        let about = filter.workflow.clone().map_or(About::Anything, About::Workflow);
        let piece = EventFilter { about, after: start - 1, until: end - 1 };
        for record in reader.events(&piece, PageRequest::newest(PIECE as usize))?.rows {
            let seq = record.seq;
            if filter.accepts(&record) {
                rows.push(record);
            }
            if rows.len() == SHOWN {
                return Ok(LogPage { rows, down_to: seq });
            }
        }
        end = start;
    }
    Ok(LogPage { rows, down_to: end })
}

pub(super) async fn show(
    wanted: Result<Query<LogQuery>, QueryRejection>,
    State(app): State<App>,
) -> Result<Response, Fault> {
    let wanted = asked::query(wanted)?;
    let workflow = asked::filled(wanted.workflow).map(|id| asked::workflow(&id)).transpose()?;
    let looks = asked::filled(wanted.looks).is_some();
    let filter = Filter { workflow, who: asked::filled(wanted.who), looks };
    let before = wanted.before;
    let now = app.handle().now();
    let (filter, found, failures) = app
        .read(move |reader| {
            let found = search(reader, &filter, before)?;
            Ok((filter, found, unrepaired::find(reader, now)?))
        })
        .await?;
    let body = page(&filter, before, &found, &failures);
    Ok(Page::new(&app, "Activity").at(Tab::Activity).style("pages.css").script("live.js").show(&body))
}

fn page(filter: &Filter, before: Option<u64>, found: &LogPage, failures: &Failures) -> Markup {
    let events = match &filter.workflow {
        Some(id) => format!("?workflow={}", segment(id.as_str())),
        None => String::new(),
    };
    html! {
        // Older pages do not change.
        @if before.is_none() { div data-events=(events) hidden {} }
        h1 { "Activity" }
        div #failures data-live { (failures::line(failures)) }
        (form(filter))
        div #events data-live {
            @if found.rows.is_empty() {
                p.soft {
                    @if found.down_to <= 1 { "Nothing of that has happened yet." }
                    @else { "Nothing of that has happened lately." }
                }
            }
            ol.activity reversed { @for group in alike::groups(&found.rows) { (alike::lines(group)) } }
            nav.bar aria-label="Pages of the log" {
                @if before.is_some() { a.button href=(filter.href(None)) { "Newest" } }
                @if found.down_to > 1 { a.button rel="next" href=(filter.href(Some(found.down_to))) { "Earlier" } }
            }
        }
    }
}

fn form(filter: &Filter) -> Markup {
    html! {
        form.bar method="get" action="/ui/activity" {
            label { "Workflow " input name="workflow" value=[filter.workflow.as_ref()] autocomplete="off"; }
            label { "Who " input name="who" value=[filter.who.as_ref()] placeholder="any user: *" autocomplete="off"; }
            label { input type="checkbox" name="looks" value="1" checked[filter.looks]; " evaluations of waiting slots too" }
            button { "Show" }
            @if filter.workflow.is_some() || filter.who.is_some() || filter.looks { a href="/ui/activity" { "everything" } }
        }
    }
}
