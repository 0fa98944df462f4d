//! The page behind a cell: the slot, or a list where several share it.

use axum::extract::RawQuery;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::WorkflowId;
use kelos_model::ranges::Range;
use kelos_model::time::parse_instant;
use kelos_store::{PageRequest, SlotFilter, SlotRow};
use maud::{Markup, html};

use super::view::parameters;
use crate::page::{Page, Tab, slot_href, workflow_href};
use crate::state::badge;
use crate::time;

/// Most slots of a list.
const MOST: usize = 500;

/// Reads which cell: `workflow`, `from` and `to`.
pub(super) fn wanted(query: &str) -> Result<(WorkflowId, Range), String> {
    let given = parameters(query);
    let one = |name: &str| given.get(name).ok_or_else(|| format!("The parameter \"{name}\" is missing."));
    let id = WorkflowId::new(one("workflow")?).map_err(|error| format!("The parameter \"workflow\": {error}."))?;
    let time = |name: &str| {
        parse_instant(one(name)?).map_err(|error| format!("The parameter \"{name}\" is not understood: {error}."))
    };
    Ok((id, Range::new(time("from")?, time("to")?)))
}

pub(super) async fn open(RawQuery(query): RawQuery, app: App) -> Result<Response, Fault> {
    let (id, range) = wanted(query.as_deref().unwrap_or_default()).map_err(plain::bad_request)?;
    let filter = SlotFilter { workflow: Some(id.clone()), range: Some(range), ..SlotFilter::default() };
    let page = app.read(move |reader| reader.slots(&filter, PageRequest::newest(MOST))).await?;
    if let ([only], None) = (page.rows.as_slice(), &page.next) {
        return Ok(Redirect::to(&slot_href(&only.id)).into_response());
    }
    let body = list(&id, range, &page.rows, page.next.is_some(), app.handle().now());
    Ok(Page::new(&app, id.as_str()).at(Tab::Board).style("pages.css").show(&body))
}

fn list(id: &WorkflowId, range: Range, rows: &[SlotRow], more: bool, now: Timestamp) -> Markup {
    html! {
        h1 { a href=(workflow_href(id)) { (id) } }
        p.soft { "Slots from " (time::at(range.start)) " to " (time::at(range.end)) }
        @if rows.is_empty() {
            p { "There are none." }
        } @else {
            div.wide {
                table {
                    thead { tr { th { "Slot" } th { "State" } th { "Since" } th { "Runs" } } }
                    tbody {
                        @for row in rows {
                            tr {
                                td { a href=(slot_href(&row.id)) { (time::key(&row.id.key)) } }
                                td { (badge(row.slot.state)) }
                                td { (time::ago(row.slot.since, now)) }
                                td { (row.slot.last_run) }
                            }
                        }
                    }
                }
            }
            @if more { p.soft { "These are the newest " (MOST) "; zoom in to see the others." } }
        }
        p { a href="/ui" { "Back to the board" } }
    }
}
