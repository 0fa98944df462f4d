//! All backfills, newest first.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::backfill::{Progress, progress};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_model::backfill::Backfill;
use kelos_store::{BackfillFilter, Queries, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::{bar, done_when, href, standing};
use crate::documents::Document;
use crate::page::{Page, Tab, segment, workflow_href};
use crate::{asked, time};

/// Backfills of a page.
const SHOWN: usize = 25;
/// Backfills of a workflow that its own page shows.
const LATEST: usize = 5;

/// The part of the list to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Only of this workflow.
    workflow: Option<String>,
    /// Those that came before this one.
    before: Option<String>,
}

struct ListPage {
    workflow: Option<WorkflowId>,
    rows: Vec<Progress>,
    /// The last one on the page, if there are more.
    last: Option<String>,
    /// Whether newer ones are left out.
    is_later: bool,
    now: Timestamp,
}

pub(super) async fn show(wanted: Result<Query<ListQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let wanted = asked::query(wanted)?;
    let workflow = asked::filled(wanted.workflow).map(|id| asked::workflow(&id)).transpose()?;
    let (before, now) = (asked::filled(wanted.before), app.handle().now());
    let found = app.read(move |reader| read(reader, workflow, before, now)).await?;
    let page = Page::new(&app, "Backfills").at(Tab::Backfills).style("pages.css").script("live.js");
    Ok(page.show(&found.page()))
}

fn read(
    reader: &dyn Queries,
    workflow: Option<WorkflowId>,
    before: Option<String>,
    now: Timestamp,
) -> Result<ListPage, StoreError> {
    let all = of(reader, workflow.as_ref())?;
    let place = before.as_ref().and_then(|before| all.iter().position(|one| one.id.as_str() == before));
    let mut rest = all.into_iter().skip(place.map_or(0, |place| place + 1));
    let rows = rest.by_ref().take(SHOWN).map(|one| progress(reader, one, now)).collect::<Result<Vec<_>, _>>()?;
    let last = rest.next().and(rows.last()).map(|far| far.backfill.id.to_string());
    Ok(ListPage { workflow, rows, last, is_later: place.is_some(), now })
}

fn of(reader: &dyn Queries, workflow: Option<&WorkflowId>) -> Result<Vec<Backfill>, StoreError> {
    reader.backfills(&BackfillFilter { id: None, workflow: workflow.cloned() })
}

impl ListPage {
    fn page(&self) -> Markup {
        html! {
            div data-events="" hidden {}
            h1 { "Backfills" @if let Some(workflow) = &self.workflow { " of " a href=(workflow_href(workflow)) { (workflow) } } }
            p.bar {
                a.button href=(self.new_href()) { "New backfill…" }
                @if self.workflow.is_some() { a href="/ui/backfills" { "those of all workflows" } }
            }
            div #backfills data-live {
                @if self.rows.is_empty() { (self.empty()) } @else { (table(&self.rows, self.now, self.workflow.is_none())) }
                nav.bar aria-label="Pages of backfills" {
                    @if self.is_later { a.button href=(self.href(None)) { "Newest" } }
                    @if let Some(last) = &self.last { a.button rel="next" href=(self.href(Some(last))) { "Earlier" } }
                }
            }
        }
    }

    fn empty(&self) -> Markup {
        html! {
            p { "No backfill has been made" @if self.is_later { " before that" } "." }
            p.soft {
                "A backfill opens slots of the past: those that were never planned, or all of a range once more. They run after current work "
                "unless you change the priority, and can be paused. Also " code { "kelos backfill WORKFLOW --from TIME --to TIME" } ". "
                (Document::Backfills.link("More about backfills"))
            }
        }
    }

    fn new_href(&self) -> String {
        match &self.workflow {
            Some(workflow) => format!("/ui/new-backfill?workflow={}", segment(workflow.as_str())),
            None => "/ui/new-backfill".to_owned(),
        }
    }

    fn href(&self, before: Option<&str>) -> String {
        let workflow = self.workflow.as_ref().map(|id| format!("workflow={}", segment(id.as_str())));
        let before = before.map(|before| format!("before={}", segment(before)));
        let query: Vec<String> = [workflow, before].into_iter().flatten().collect();
        if query.is_empty() { "/ui/backfills".to_owned() } else { format!("/ui/backfills?{}", query.join("&")) }
    }
}

fn table(rows: &[Progress], now: Timestamp, named: bool) -> Markup {
    html! {
        div.wide {
            table.backfills {
                thead { tr {
                    th { "Backfill" } @if named { th { "Workflow" } } th { "Times" } th { "Priority" }
                    th.bar-cell { "Slots" } th { "Ended" } th { "Asked for" }
                } }
                tbody { @for far in rows { (row(far, now, named)) } }
            }
        }
    }
}

fn row(far: &Progress, now: Timestamp, named: bool) -> Markup {
    let one = &far.backfill;
    html! {
        tr {
            td { a href=(href(&one.id)) { (one.id) } " " (standing(far)) }
            @if named { td { a href=(workflow_href(&one.workflow)) { (one.workflow) } } }
            td { (time::at(one.range.start)) " to " (time::at(one.range.end)) }
            td { (one.priority) }
            td.bar-cell { (bar(far)) }
            td { (far.ended()) " of " (one.slots) @if far.left > 0 { p.soft { (done_when(&far.estimate, now)) } } }
            td { (one.by) ", " (time::ago(one.created_at, now)) @if let Some(reason) = &one.reason { p.soft { (reason) } } }
        }
    }
}

/// The latest backfills of a workflow.
pub(crate) struct Latest {
    rows: Vec<Progress>,
    /// How many earlier ones there are.
    more: usize,
}

/// The latest backfills of a workflow and how far they are.
pub(crate) fn latest(reader: &dyn Queries, id: &WorkflowId, now: Timestamp) -> Result<Latest, StoreError> {
    let mut all = of(reader, Some(id))?;
    let more = all.len().saturating_sub(LATEST);
    all.truncate(LATEST);
    let rows = all.into_iter().map(|one| progress(reader, one, now)).collect::<Result<Vec<_>, _>>()?;
    Ok(Latest { rows, more })
}

impl Latest {
    /// They as a table; nothing if there are none.
    pub(crate) fn show(&self, id: &WorkflowId, now: Timestamp) -> Markup {
        let Latest { rows, more } = self;
        html! {
            @if !rows.is_empty() {
                (table(rows, now, false))
                @if *more > 0 {
                    p { a href=(format!("/ui/backfills?workflow={}", segment(id.as_str()))) { "all " (rows.len() + more) " of them" } }
                }
            }
        }
    }
}
