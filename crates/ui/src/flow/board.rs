//! Flows on the board whose runs have no place in time: the steps of the latest run of each, folded up.

use kelos_explain::flow::{self, Beside};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Run, SlotRef, WorkflowId};
use kelos_store::{PageRequest, Queries, RunFilter, StoreError};
use maud::{Markup, html};

use super::look;
use crate::page::{slot_href, workflow_href};
use crate::{runs, time};

/// Flows that are listed.
const LISTED: usize = 100;
/// Steps of each.
const STEPS: usize = 100;

/// The flows of a board.
pub(crate) struct Latest {
    rows: Vec<LatestRun>,
    more: usize,
}

/// A flow, with the steps of its latest run.
struct LatestRun {
    id: WorkflowId,
    /// The number of steps in its definition.
    steps: usize,
    run: Option<(Run, Vec<Beside>)>,
}

/// Reads the latest run of each flow that has no times.
pub(crate) fn latest(reader: &dyn Queries, workflows: &[WorkflowRow]) -> Result<Latest, StoreError> {
    let flows = workflows.iter().filter(|row| row.present && row.definition.keys.schedule().is_none());
    let mut flows = flows.filter_map(|row| Some((&row.id, row.definition.flow.as_ref()?)));
    let mut rows = Vec::new();
    for (id, flow) in flows.by_ref().take(LISTED) {
        let filter = RunFilter { workflow: Some(id.clone()), ..RunFilter::default() };
        let run = match reader.runs(&filter, PageRequest::newest(1))?.rows.pop() {
            Some(run) => {
                let slot = SlotRef::new(id.clone(), run.id.slot.key.of_run());
                flow::states(reader, &slot, STEPS)?.map(|steps| (run, steps))
            }
            None => None,
        };
        rows.push(LatestRun { id: id.clone(), steps: flow.steps.len(), run });
    }
    Ok(Latest { rows, more: flows.count() })
}

impl Latest {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The section; each flow unfolds to its steps.
    pub(crate) fn show(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                section.jobs aria-label="Flows" {
                    div #flows data-live {
                        h2 { "Flows" }
                        ul { @for row in &self.rows { li { (row.show()) } } }
                        @if self.more > 0 { p.soft { "and " (self.more) " more" } }
                    }
                }
            }
        }
    }
}

impl LatestRun {
    fn show(&self) -> Markup {
        let Some((run, steps)) = &self.run else {
            return html! { a href=(workflow_href(&self.id)) { (self.id) } " " span.soft { "no run yet" } };
        };
        let slot = SlotRef::new(self.id.clone(), run.id.slot.key.of_run());
        html! {
            details id=(format!("flow-{}", self.id)) {
                summary { (self.id) " " (runs::badge(run.state)) }
                p { "The latest run, " a href=(slot_href(&slot)) { (time::key(&slot.key)) } ", of " a href=(workflow_href(&self.id)) { (self.id) } ":" }
                ul { @for step in steps { li { a href=(slot_href(&step.id)) { (step.name) } " " (look::badge(step.state)) } } }
                @if self.steps > STEPS { p.soft { "and more steps" } }
            }
        }
    }
}
