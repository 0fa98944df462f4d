//! Runs that do one step of another run again, judged by what that run was.

use std::sync::Arc;

use kelos_model::flow::FlowGraph;
use kelos_model::repeated::RepeatedStep;
use kelos_model::slot::RunOfFlow;
use kelos_model::{Arguments, Flow, Slot, SlotKey, SlotRef, Step};
use serde_json::{Map, Value};

use super::{FlowsWatch, check, given, same};

/// The graph of a run: that of its definition, or the one step that it does again, which needs and handles nothing and is given what it
/// was given then.
pub(super) fn graph_of(whole: &FlowGraph, part: &RunOfFlow) -> Result<FlowGraph, String> {
    let Some(repeats) = &part.repeats else { return Ok(whole.clone()) };
    let flow = Arc::new(Flow { steps: vec![alone(whole.flow(), repeats)?] });
    FlowGraph::new(&flow).map_err(|flaws| format!("{flaws:?}"))
}

/// The one step of a run that does it again.
pub(super) fn alone(flow: &Flow, repeats: &RepeatedStep) -> Result<Step, String> {
    let mut step = flow.step(repeats.step.as_str()).cloned().ok_or("it does a step again that there is not")?;
    step.needs.clear();
    step.handles.clear();
    if repeats.is_item {
        step.for_each = None;
    }
    step.inputs.clone_from(&repeats.inputs);
    Ok(step)
}

/// The inputs that requests gave to a run in the place of those of the step; none where it does no step again.
pub(super) fn given_to(slot: &Slot) -> Option<Map<String, Value>> {
    slot.run_of_flow()?.repeats.as_ref()?;
    let collected = slot.collected.as_ref()?;
    let first = collected.asked.iter().flat_map(|asked| &asked.arguments);
    Some(first.chain(&collected.arguments).map(|(name, value)| (name.clone(), value.clone())).collect())
}

impl FlowsWatch<'_> {
    /// Whether a start may do a step again: one that was done by a run which is over, and with what that had.
    pub(super) fn may_repeat(&self, id: &SlotRef, repeats: &RepeatedStep, arguments: &Arguments) -> Result<(), String> {
        let of = SlotRef::new(id.workflow.clone(), repeats.of.clone());
        let run = self.slots.get(&of).ok_or("the run that it repeats a step of does not exist")?;
        check(run.state.is_final() && !run.run_alive, "the run that it repeats a step of is live")?;
        let part = run.run_of_flow().ok_or("what it repeats a step of is no run of a flow")?;
        same("its definition", &repeats.definition, &part.definition)?;
        let before = part.repeats.as_deref();
        same("it is about", &repeats.about, &before.map_or_else(|| of.key.clone(), |before| before.about.clone()))?;
        let is_item = repeats.item.is_some() || before.is_some_and(|before| before.is_item);
        same("it is an item", &repeats.is_item, &is_item)?;
        let key = repeats.key().ok_or("a step has steps")?;
        let step = SlotRef::new(id.workflow.clone(), SlotKey::Step(key));
        let done = self.slots.get(&step).filter(|slot| slot.last_run > 0);
        let did = done.and_then(Slot::step_of_run).filter(|step| step.run >= part.since_run);
        let did = did.ok_or("the step that it repeats never ran")?;
        same("the step was given", &repeats.inputs, &did.inputs)?;
        let names = arguments.keys().all(|name| given::plain_name(name) == *name);
        check(names, "its inputs have names that no input has")
    }
}
