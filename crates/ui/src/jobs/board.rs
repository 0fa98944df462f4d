//! Keyed workflows on the board: their jobs have no times, so they are shown below it, with the number of their jobs in
//! each state.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::failures::{self, Failures};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotState, WorkflowId};
use kelos_store::{Columns, Queries, StoreError};
use maud::{Markup, html};

use crate::flow::{self, Latest};
use crate::page::{Page, Tab, workflow_href};
use crate::state::{BY_WEIGHT, badge};
use crate::words;

/// Workflows in trouble that are named.
const NAMED: usize = 3;
/// Workflows that are listed.
const LISTED: usize = 500;

/// How many jobs of each workflow are in each state.
pub(crate) type Section = BTreeMap<WorkflowId, BTreeMap<SlotState, u64>>;

/// Counts the jobs of all workflows, where any is keyed by job ids.
pub(crate) fn section(reader: &dyn Queries, workflows: &[WorkflowRow]) -> Result<Section, StoreError> {
    let keyed = |row: &&WorkflowRow| row.present && row.definition.keys.jobs().is_some();
    let mut counted: Section = workflows.iter().filter(keyed).map(|row| (row.id.clone(), BTreeMap::new())).collect();
    if counted.is_empty() {
        return Ok(counted);
    }
    // Jobs are at the beginning of time, where no schedule has slots.
    let beginning = Columns { start: Timestamp::UNIX_EPOCH, width: 1, count: 1 };
    for (id, tallies) in reader.slot_tallies(&beginning, None)? {
        let Some(counts) = counted.get_mut(&id) else { continue };
        tallies.iter().for_each(|tally| *counts.entry(tally.state).or_default() += u64::from(tally.count));
    }
    Ok(counted)
}

/// The sections below the rows of the board, which keep themselves up to date.
pub(crate) fn below(section: &Section, failures: &Failures, flows: &Latest) -> Markup {
    html! {
        @if !section.is_empty() || !flows.is_empty() {
            div data-events="" data-batch="1500" data-page=(PLACE) hidden {}
            (show(section, failures))
            (flows.show())
        }
    }
}

fn show(section: &Section, failures: &Failures) -> Markup {
    html! {
        @if !section.is_empty() {
            section.jobs aria-label="Workflows with job ids" { div #jobs data-live { (contents(section, failures)) } }
        }
    }
}

/// The address of these sections alone.
pub(crate) const PLACE: &str = "/ui/board/jobs";

fn contents(section: &Section, failures: &Failures) -> Markup {
    let failing = failures.by_workflow();
    let troubled: Vec<&WorkflowId> = section.keys().filter(|id| failing.contains_key(id)).collect();
    html! {
        h2 { "Jobs" }
        p.verdict.(if troubled.is_empty() { "good" } else { "bad" }) role="status" {
            @if troubled.is_empty() { strong { "All fine" } span { (words::count(section.len() as u64, "app")) } }
            @else {
                strong { (troubled.len()) " of " (words::count(section.len() as u64, "app")) " failing" }
                @for id in troubled.iter().take(NAMED) { a href=(workflow_href(id)) { (id) } }
                @if troubled.len() > NAMED { span { "and " (troubled.len() - NAMED) " more" } }
            }
        }
        ul {
            @for (id, counts) in section.iter().take(LISTED) {
                li {
                    a href=(workflow_href(id)) { (id) }
                    @if counts.is_empty() { " " span.soft { "no jobs yet" } }
                    @for state in BY_WEIGHT.iter().rev() {
                        @if let Some(count) = counts.get(state) {
                            " " a.count href=(format!("{}?state={}", workflow_href(id), state.as_str())) { (badge(*state)) " " (count) }
                        }
                    }
                }
            }
        }
        @if section.len() > LISTED { p.soft { "and " (section.len() - LISTED) " more" } }
    }
}

/// These sections alone.
pub(crate) async fn page(app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let read = move |reader: &dyn Queries| -> Result<_, StoreError> {
        let workflows = reader.workflows(None)?;
        Ok((section(reader, &workflows)?, failures::find(reader, now)?, flow::latest(reader, &workflows)?))
    };
    let (section, failures, flows) = app.read(read).await?;
    let page = Page::new(&app, "Jobs and flows").at(Tab::Board).style("board.css").script("live.js");
    let body = html! { h1.unseen { "Workflows with job ids, and flows" } (below(&section, &failures, &flows)) };
    Ok(page.show(&body))
}
