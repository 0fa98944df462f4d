//! Steps of flows in a rehearsal: how a test names them, and the signals that it gives.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Input, SignalFlow};
use kelos_engine::executor::Start;
use kelos_model::flow::{SignalWait, Step};
use kelos_model::{Actor, Event, SlotEvent, SlotKey, SlotRef, StepKey, Workflow, WorkflowId};
use kelos_sandbox::{Fake, FakeRun, TestPlan};
use kelos_store::Commit;
use serde_json::Value;

/// The step that a test means by `etl.load`, or an item of it by `etl.load:2`: of a workflow with a flow, where no workflow has the whole
/// name.
pub(super) fn named<'w>(name: &str, workflows: &'w [Arc<Workflow>]) -> Option<(&'w Workflow, &'w Step, Option<u32>)> {
    if workflows.iter().any(|one| one.id.as_str() == name) {
        return None;
    }
    let (flow, step) = name.rsplit_once('.')?;
    let (step, item) = match step.split_once(':') {
        Some((step, item)) => (step, Some(item.parse().ok()?)),
        None => (step, None),
    };
    let workflow = workflows.iter().find(|one| one.id.as_str() == flow)?;
    Some((workflow, workflow.flow.as_ref()?.step(step)?, item))
}

/// The name of a step's slot, as tests write it; of all others that of the workflow.
pub(super) fn name_of(slot: &SlotRef) -> String {
    match slot.key.step() {
        Some(step) => format!("{}.{}", slot.workflow, step.within_run()),
        None => slot.workflow.to_string(),
    }
}

/// The key of a slot as tests write it, that of its run for a step: times in full, names after a dot.
pub(super) fn key_of(slot: &SlotRef) -> String {
    match slot.key.of_run() {
        SlotKey::Time(at) | SlotKey::Moment(at) => kelos_model::time::format_full(at),
        other => other.to_string(),
    }
}

/// The slot that a test names.
pub(super) fn slot(given: &SlotRef, workflows: &[Arc<Workflow>]) -> SlotRef {
    if let Some((workflow, step, item)) = named(given.workflow.as_str(), workflows)
        && let Some(key) = StepKey::new(&workflow.keys.resolve(given.key.clone()), &step.name)
    {
        let key = item.map_or(key.clone(), |item| key.item(item));
        return SlotRef::new(workflow.id.clone(), SlotKey::Step(key));
    }
    let keys = workflows.iter().find(|one| one.id == given.workflow).map(|one| &one.keys);
    let key = keys.map_or_else(|| given.key.clone(), |keys| keys.resolve(given.key.clone()));
    SlotRef::new(given.workflow.clone(), key)
}

/// The outcomes that the test gives the runs of a slot: those of the step, or else of the flow, or else of all.
pub(super) fn fake_of<'p>(plan: &'p TestPlan, slot: &SlotRef) -> Option<&'p Fake> {
    let of = |name: &str| plan.runs.iter().find(|(known, _)| known == name).map(|(_, fake)| fake);
    of_step(plan, slot).or_else(|| of(slot.workflow.as_str())).or_else(|| of("*"))
}

/// The outcomes that the test gives the runs of a step by its own name.
fn of_step<'p>(plan: &'p TestPlan, slot: &SlotRef) -> Option<&'p Fake> {
    let name = format!("{}.{}", slot.workflow, slot.key.step()?.step());
    plan.runs.iter().find(|(known, _)| *known == name).map(|(_, fake)| fake)
}

/// Whether a step waits for a signal and the test has it do what only runs can: fail, or write.
pub(super) fn is_signal_that_fails(name: &str, fake: &Fake, workflows: &[Arc<Workflow>]) -> bool {
    let Fake::Runs(runs) = fake else { return false };
    let is_signal = named(name, workflows).is_some_and(|(_, step, _)| step.signal.is_some());
    is_signal && runs.iter().any(|run| run.fails > 0 || run.unknown || !run.writes.is_empty())
}

/// A step that was opened and waits for a signal, of which the test says when it comes.
pub(super) struct AwaitedSignal<'p> {
    pub(super) slot: SlotRef,
    pub(super) signal: SignalWait,
    pub(super) fake: &'p Fake,
}

impl<'p> AwaitedSignal<'p> {
    /// The signal that a step waits for, where it is one that the test speaks of.
    pub(super) fn of(slot: SlotRef, plan: &'p TestPlan, workflows: &[Arc<Workflow>]) -> Option<AwaitedSignal<'p>> {
        let flow = workflows.iter().find(|one| one.id == slot.workflow)?.flow.as_ref()?;
        let signal = flow.step(slot.key.step()?.step())?.signal.clone()?;
        let fake = of_step(plan, &slot)?;
        Some(AwaitedSignal { slot, signal, fake })
    }

    /// The argument of the function of the test that says when it comes.
    pub(super) fn argument(&self) -> Value {
        argument(&self.slot, 1)
    }
}

/// The argument of a function of a test about a run, but for its job.
pub(super) fn argument(slot: &SlotRef, number: u32) -> Value {
    let step = slot.key.step();
    serde_json::json!({
        "workflow": slot.workflow,
        "step": step.map(StepKey::step),
        "item": step.and_then(StepKey::item_number),
        "key": key_of(slot),
        "ms": slot.key.of_run().time().map(Timestamp::as_millisecond),
        "number": number,
    })
}

/// The same argument with the inputs and the job.
pub(super) fn argument_of(start: &Start, inputs: &Value) -> Value {
    let mut argument = argument(&start.run.slot, start.run.number);
    argument["slots"] = start.given.extent(&start.workflow, &start.run.slot.key).map_or(1, |(_, slots)| slots).into();
    argument["settings"] = Value::Object(start.settings.clone());
    argument["properties"] = Value::Object(start.properties.clone());
    argument["inputs"] = inputs.clone();
    argument
}

/// A signal for the run of a step.
pub(super) fn signalled(step: &SlotRef, signal: &SignalWait, fake: FakeRun) -> Input {
    let run = SlotRef::new(step.workflow.clone(), step.key.of_run());
    let payload = fake.gives.map_or(Value::Null, Value::Object);
    let ask = SignalFlow { run, signal: signal.name.clone(), payload, reason: None };
    Input::Asked { token: 0, by: Actor::system("test"), ask: ask.into(), warrant: None }
}

/// News about runs of flows that the log alone has.
#[derive(Default)]
pub(super) struct FlowNews {
    /// The steps that were opened since they were last taken.
    pub(super) opened: Vec<SlotRef>,
    /// The slots that succeeded because failures of steps were handled.
    pub(super) recovered: std::collections::BTreeSet<SlotRef>,
}

impl FlowNews {
    /// Takes in what is committed.
    pub(super) fn note(&mut self, commit: &Commit) {
        for record in &commit.events {
            let Event::Slot { slot, what } = &record.event else { continue };
            match what {
                SlotEvent::StepOpened { .. } => self.opened.push(slot.clone()),
                SlotEvent::Recovered { .. } => drop(self.recovered.insert(slot.clone())),
                SlotEvent::Dispatched { .. } => drop(self.recovered.remove(slot)),
                _ => {}
            }
        }
    }
}

/// The names that a test may use beside those of workflows.
pub(super) fn names(workflows: &[Arc<Workflow>]) -> Vec<String> {
    let steps = |id: &WorkflowId, one: &Workflow| {
        let steps = one.flow.iter().flat_map(|flow| &flow.steps);
        steps.map(|step| format!("{id}.{}", step.name)).collect::<Vec<_>>()
    };
    workflows.iter().flat_map(|one| steps(&one.id, one)).collect()
}
