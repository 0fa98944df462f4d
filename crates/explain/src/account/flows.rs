//! Runs of flows, and their steps: what a live run waits for, and why a step was not opened.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::flow::Flow;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotEvent, SlotRef, SlotState, Workflow};
use kelos_store::{Queries, StoreError};

use super::Account;
use crate::flow::words;
use crate::flow_run::FlowRun;

/// The run of a flow that a slot is, or is a step of.
pub(super) struct Part {
    run: SlotRef,
    flow: FlowRun,
}

/// The run of a flow that a slot is, or is a step of, as it stands or stood; none where there is none.
pub(super) fn of(
    reader: &dyn Queries,
    slot: &SlotRef,
    workflow: Option<&WorkflowRow>,
    then: Option<Timestamp>,
) -> Result<Option<Part>, StoreError> {
    // A workflow may have had a flow once.
    let Some(row) = workflow.filter(|row| row.definition.flow.is_some() || slot.key.step().is_some()) else {
        return Ok(None);
    };
    let run = SlotRef::new(row.id.clone(), slot.key.of_run());
    let flow = FlowRun::read(reader, &run, then)?;
    Ok(flow.map(|flow| Part { run, flow }))
}

impl Part {
    /// The definition of a step, as the scheduler sees it.
    pub(super) fn definition(&self, reader: &dyn Queries, slot: &SlotRef) -> Result<Option<Arc<Workflow>>, StoreError> {
        let step = slot.key.step().and_then(|key| Some((key, self.flow.graph().flow().step(key.step())?)));
        let whole = reader.definitions(&slot.workflow, Some(self.flow.definition()))?.pop();
        Ok(step.zip(whole).map(|((key, step), whole)| {
            let is_item = key.item_number().is_some() || self.flow.repeats().is_some_and(|repeats| repeats.is_item);
            Arc::new(Flow::as_workflow(&whole.definition, step, is_item))
        }))
    }

    /// Says what only the whole run shows.
    pub(super) fn tell(&self, why: &mut Account) {
        match why.slot.key.step().cloned() {
            Some(key) => self.tell_of_step(why, &key),
            None => self.tell_of_run(why),
        }
    }

    fn tell_of_run(&self, why: &mut Account) {
        let is_running = why.state == Some(SlotState::Running);
        if let Some(live) = words::live(&self.flow).filter(|_| is_running) {
            let number = self.flow.slot().map_or(0, |slot| slot.last_run);
            let since = why.since.map(kelos_model::time::text::format_short).unwrap_or_default();
            why.headline = format!("run {number} goes on since {since}: {live}");
        }
        if let Some(step) = self.flow.repeated() {
            why.headline = format!("{}; it only does {} again", why.headline, step.short());
        }
    }

    fn tell_of_step(&self, why: &mut Account, key: &kelos_model::StepKey) {
        let Some(at) = self.flow.position(key) else {
            let version = self.flow.definition();
            why.headline =
                format!("the flow of {} (definition {version}) has no step {}", self.run.short(), key.step());
            return;
        };
        if let Some(number) = key.item_number() {
            if why.state.is_none() {
                why.headline = match self.flow.slot_of(at) {
                    None => format!("its step was not opened: {}", words::unopened(&self.flow, at)),
                    Some(_) => format!("the list of its step has no item {number}"),
                };
            }
            return;
        }
        if self.flow.slot().is_none() {
            why.headline = format!("its run {} does not exist", self.run.short());
        } else if self.flow.slot_of(at).is_none() {
            let unopened = words::unopened(&self.flow, at);
            // The work of an earlier run does not count any more.
            let again = why.state.map(|_| format!("to be done again: {unopened}"));
            why.headline = again.unwrap_or_else(|| unopened.clone());
            why.blockers = if self.flow.never(at).is_none() { vec![unopened] } else { Vec::new() };
        } else if let Some(waits) = words::waiting(&self.flow, at) {
            why.headline.clone_from(&waits);
            why.blockers = vec![waits];
        } else if let (Some(SlotState::Expired), Some((signal, _))) = (why.state, self.flow.signal(at)) {
            let expired = why.decision.as_ref().map(|record| &record.event);
            if let Some(Event::Slot { what: SlotEvent::Expired { timeout_seconds, .. }, .. }) = expired {
                let since = why.since.map(kelos_model::time::text::format_short).unwrap_or_default();
                why.headline =
                    format!("expired at {since}: the signal {signal} did not come within {timeout_seconds} s");
            }
        }
    }
}
