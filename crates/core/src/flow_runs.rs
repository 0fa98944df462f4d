//! Runs of flows, carried out: what the states of the steps say is recorded, and the steps that may start are opened.
//!
//! A run is advanced in the step in which something happened to it, so that no crash comes between the end of a step and the opening of
//! those after it. Absent: which steps these are, which is [`FlowGraph`](kelos_model::flow::FlowGraph)'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::flow::{FLOW, FlowEnd, InputMerge, OpenedStep, StepProgress, formatted_key};
use kelos_model::run::beyond_largest;
use kelos_model::slot::RunOfFlow;
use kelos_model::{
    Actor, Outcome, RunId, SlotEvent, SlotKey, SlotRef, SlotState, StepKey, StepName, Workflow, WorkflowId,
};
use serde_json::{Map, Value};

use crate::Core;
use crate::flows::{FlowProgress, PinnedFlow, StepEnd};
use crate::past::PastOf;
use crate::slots::Live;

/// A run that is advanced.
pub(crate) struct RunAdvance {
    pub(crate) slot: SlotRef,
    /// The number of the run.
    pub(crate) number: u32,
    pub(crate) priority: i32,
    pub(crate) flow: Arc<PinnedFlow>,
}

impl RunAdvance {
    /// The slot of a step.
    pub(crate) fn step(&self, at: usize) -> Option<SlotRef> {
        let name = &self.flow.graph().step(at)?.name;
        let key = StepKey::new(&self.slot.key, name)?;
        Some(SlotRef::new(self.slot.workflow.clone(), SlotKey::Step(key)))
    }

    fn run(&self) -> RunId {
        RunId { slot: self.slot.clone(), number: self.number }
    }
}

impl Core {
    /// The definition of a slot as executors see it: that of its workflow, or that of a step with which its run began.
    pub(crate) fn definition_of(&self, slot: &SlotRef) -> Option<Arc<Workflow>> {
        // Nothing runs of a step whose run has ended: it can only be marked.
        let whole = || self.workflows.get(&slot.workflow).map(|workflow| workflow.definition());
        match slot.key.step() {
            Some(_) => self.flows.definition(slot).or_else(whole).cloned(),
            None => whole().cloned(),
        }
    }

    /// Has the definition ready that a run which is about to begin follows: the present one, unless it goes on with another.
    pub(crate) fn pin_flow(&mut self, slot: &SlotRef) {
        let Some(workflow) = self.workflows.get(&slot.workflow) else { return };
        let (definition, number) = (workflow.definition().clone(), workflow.version());
        let is_pinned =
            self.slots.get(slot).is_some_and(|live| live.slot.run_of_flow().is_some_and(|run| run.definition > 0));
        if !is_pinned {
            self.flows.pin(&definition, number);
            self.record(slot, SlotEvent::Pinned { definition: number });
        }
    }

    /// Begins the run of a flow whose intent is recorded.
    pub(crate) fn begin_flow(&mut self, run: &RunId) {
        self.record(&run.slot, SlotEvent::Started { run: run.number, external_id: FLOW.to_owned() });
        if let Some(flow) = self.flows.of(&run.slot).cloned() {
            // The first run of a slot has no steps to go on with.
            let fresh = (run.number == 1).then(|| FlowProgress::new(flow.graph(), run.number));
            return self.flows.begin(&run.slot, fresh);
        }
        let lost = self.flows.lost().contains(&run.slot).then(|| self.lost_definition(&run.slot));
        let mistake = || "the graph of its steps has a mistake: see the problems of its definition".to_owned();
        let reason = lost.unwrap_or_else(mistake);
        let code = Some(kelos_model::FailureCode::FINAL);
        self.ended(run, Outcome::Failed { reason, exit_status: None, code });
    }

    /// The reason why a run can't go on whose definition can't be read any more.
    fn lost_definition(&self, slot: &SlotRef) -> String {
        let part = self.slots.get(slot).and_then(|live| live.slot.run_of_flow().map(|run| run.definition));
        format!(
            "version {} of its definition, with which it began, can't be read; a rerun follows the present one",
            part.unwrap_or_default()
        )
    }

    /// Ends the runs of a workflow whose definition can't be read any more, with their steps: a person resumed the workflow, and it goes on.
    pub(crate) fn end_lost_flows(&mut self, workflow: &WorkflowId) {
        let lost: Vec<SlotRef> = self.flows.lost().iter().filter(|run| run.workflow == *workflow).cloned().collect();
        for slot in lost {
            let Some(live) = self.slots.get(&slot) else { continue };
            let (state, is_alive, number) = (live.slot.state, live.slot.run_alive, live.slot.last_run);
            let reason = self.lost_definition(&slot);
            let killed = SlotEvent::Killed { by: Actor::system("scheduler"), reason: Some(reason.clone()) };
            self.end_steps(&slot, &killed);
            if state == SlotState::Running {
                let code = Some(kelos_model::FailureCode::FINAL);
                let run = RunId { slot, number };
                self.ended(&run, Outcome::Failed { reason, exit_status: None, code });
            } else if is_alive && state.is_final() {
                self.record(&slot, SlotEvent::RunEnded { run: number, outcome: Outcome::Killed });
            }
        }
    }

    /// Advances the runs to which something happened. Returns whether there were any.
    pub(crate) fn advance_flows<E>(&mut self, past: PastOf<'_, E>) -> Result<bool, E> {
        let touched = self.flows.take_touched();
        for slot in &touched {
            self.advance_flow(slot, past)?;
        }
        Ok(!touched.is_empty())
    }

    fn advance_flow<E>(&mut self, slot: &SlotRef, past: PastOf<'_, E>) -> Result<(), E> {
        let Some(flow) = self.flows.of(slot).cloned() else { return Ok(()) };
        let Some(live) = self.slots.get(slot) else { return Ok(()) };
        let (state, priority, number) = (live.slot.state, live.slot.priority, live.slot.last_run);
        let run = RunAdvance { slot: slot.clone(), number, priority, flow };
        if state != SlotState::Running {
            // A person has ended it, and may have opened it again since.
            self.end_killed_flow(&run);
            return Ok(());
        }
        if self.flows.progress(slot).is_none() {
            self.load_flow(&run, past)?;
        }
        self.take_signals(&run);
        loop {
            let ended = self.flows.progress(slot).map(FlowProgress::take_ended).unwrap_or_default();
            let released = self.flows.progress(slot).map(FlowProgress::take_released).unwrap_or_default();
            if ended.is_empty() && released.is_empty() {
                break;
            }
            for at in self.after(&run, &ended) {
                self.open_step(&run, at, past)?;
            }
            for at in released {
                self.make_ready(&run, at, past)?;
            }
        }
        // A step that a person has ended may still be running, and its end is recorded with the definition of the run.
        if self.flows.progress(slot).is_some_and(|progress| progress.is_still()) {
            self.end_flow(&run);
        }
        Ok(())
    }

    /// Ends the lists of which no item is live, and returns the steps that may be opened after these have ended.
    fn after(&mut self, run: &RunAdvance, ended: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut next = BTreeSet::new();
        for at in ended {
            let Some(progress) = self.flows.progress(&run.slot) else { continue };
            let graph = run.flow.graph();
            let is_live = progress.states().get(*at) == Some(&StepProgress::Live);
            if is_live && progress.list(*at).is_some_and(|list| list.is_over()) {
                self.end_list(run, *at);
                continue;
            }
            next.extend(graph.ready_after(*at, progress.states()));
            if graph.needs(*at).is_empty() && graph.is_ready(*at, progress.states()) {
                // A root, at the beginning.
                next.insert(*at);
            }
        }
        next
    }

    fn open_step<E>(&mut self, run: &RunAdvance, at: usize, past: PastOf<'_, E>) -> Result<(), E> {
        let (Some(id), Some(step)) = (run.step(at), run.flow.graph().step(at)) else { return Ok(()) };
        let mut awaits = Vec::new();
        if step.is_error_step() && !step.at_once {
            let live = self.flows.progress(&run.slot).map(|progress| progress.live_steps().collect::<Vec<_>>());
            let name = |at: usize| run.flow.graph().step(at).map(|step| step.name.clone());
            awaits = live.into_iter().flatten().filter_map(name).collect();
        }
        self.open_slot(run, &id, &awaits, past)?;
        match (awaits.is_empty(), self.flows.progress(&run.slot)) {
            (false, Some(progress)) => progress.await_others(at, run.flow.graph(), &awaits),
            _ => self.make_ready(run, at, past)?,
        }
        Ok(())
    }

    /// Opens a step or an item. One that an earlier run has done is opened again.
    pub(crate) fn open_slot<E>(
        &mut self,
        run: &RunAdvance,
        id: &SlotRef,
        awaits: &[StepName],
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        if run.number > 1 {
            self.slots.recall([id.clone()], past)?;
        }
        let (number, priority) = (run.number, run.priority);
        self.record(id, SlotEvent::StepOpened { run: number, awaits: awaits.to_vec(), priority });
        Ok(())
    }

    /// Lets a step start that waits for no other step any more.
    fn make_ready<E>(&mut self, run: &RunAdvance, at: usize, past: PastOf<'_, E>) -> Result<(), E> {
        let (Some(id), Some(step)) = (run.step(at), run.flow.graph().step(at)) else { return Ok(()) };
        let inputs = self.inputs_of(run, at);
        if let Some(bytes) = beyond_largest(&inputs) {
            self.fail_step(&id, Outcome::given_too_much(bytes));
            return Ok(());
        }
        if let Some(signal) = &step.signal {
            self.await_signal(run, &id, signal, inputs);
        } else if let Some(list) = &step.for_each {
            self.start_list(run, at, list, inputs, past)?;
        } else {
            self.record(&id, SlotEvent::StepReady { inputs });
        }
        Ok(())
    }

    /// The inputs of a step.
    pub(crate) fn inputs_of(&mut self, run: &RunAdvance, at: usize) -> Map<String, Value> {
        let graph = run.flow.graph();
        let arguments = self.arguments_of(&run.slot);
        let (Some(step), Some(progress)) = (graph.step(at), self.flows.progress(&run.slot)) else { return Map::new() };
        let mut inputs = InputMerge::new(step.name.as_str(), &step.inputs, &arguments);
        let is_failed = |other: &&usize| progress.states().get(**other) == Some(&StepProgress::Failed);
        let failed: Vec<usize> = graph.handles(at).iter().filter(is_failed).copied().collect();
        let mut errors = Vec::new();
        for other in graph.needs(at).iter().chain(&failed) {
            let Some(name) = graph.step(*other).map(|step| &step.name) else { continue };
            let StepEnd { outputs, error } = progress.end_of(*other);
            inputs.add(name.as_str(), &outputs);
            if failed.contains(other) {
                errors.push(kelos_model::flow::FailedStep { step: name, error });
            }
        }
        inputs.fail(&errors);
        inputs.finish(&arguments)
    }

    /// The arguments of a run of a flow.
    fn arguments_of(&self, slot: &SlotRef) -> Map<String, Value> {
        let run = self.slots.run(slot);
        let all = run.into_iter().flat_map(|run| &run.arguments);
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Ends a step that can't start.
    pub(crate) fn fail_step(&mut self, id: &SlotRef, outcome: Outcome) {
        let run = self.begin_by_itself(id, Map::new());
        self.record(id, SlotEvent::Failed { run, outcome });
    }

    /// Records the beginning of a run that the scheduler carries out by itself. Returns its number.
    pub(crate) fn begin_by_itself(&mut self, id: &SlotRef, inputs: Map<String, Value>) -> u32 {
        let run = self.slots.get(id).map_or(0, |live| live.slot.last_run) + 1;
        self.record(id, SlotEvent::StepReady { inputs });
        self.record(id, SlotEvent::Dispatched { run, worker: None, batch: None });
        run
    }

    /// Ends a run in which no step is live.
    fn end_flow(&mut self, run: &RunAdvance) {
        let graph = run.flow.graph();
        let Some(progress) = self.flows.progress(&run.slot) else { return };
        let end = graph.end(progress.states());
        let error = |name: &StepName| graph.position(name.as_str()).map(|at| progress.end_of(at).error);
        if let FlowEnd::Failed { failed } = &end {
            let outcome = failed_outcome(failed, error);
            return self.ended(&run.run(), outcome);
        }
        let outputs = outputs_of(run, progress);
        if !self.may_succeed(&run.run()) {
            return;
        }
        if let Some(bytes) = beyond_largest(&outputs) {
            return self.ended(&run.run(), Outcome::gave_too_much(bytes));
        }
        let number = run.number;
        if !outputs.is_empty() {
            self.record(&run.slot, SlotEvent::Gave { run: number, outputs });
        }
        match end {
            FlowEnd::Recovered { failed } => self.record(&run.slot, SlotEvent::Recovered { run: number, failed }),
            _ => self.record(&run.slot, SlotEvent::Succeeded { run: number }),
        }
    }

    /// Ends the run of a slot that a person has ended, once no run of its steps is alive.
    fn end_killed_flow(&mut self, run: &RunAdvance) {
        let is_ended = |state| !matches!(state, SlotState::Dispatched | SlotState::Running);
        let is_open = self.slots.get(&run.slot).is_some_and(|live| live.slot.run_alive && is_ended(live.slot.state));
        let has_live_runs = || self.slots.steps_of(&run.slot).any(|(_, step)| step.slot.run_alive);
        if is_open && !has_live_runs() {
            self.record(&run.slot, SlotEvent::RunEnded { run: run.number, outcome: Outcome::Killed });
        }
    }

    /// Puts together how far a run is, from its steps.
    fn load_flow<E>(&mut self, run: &RunAdvance, past: PastOf<'_, E>) -> Result<(), E> {
        self.slots.recall_steps(&run.slot, past)?;
        let part = self.slots.get(&run.slot).and_then(|live| live.slot.run_of_flow().cloned()).unwrap_or_default();
        let begun = self.slots.get(&run.slot).map_or(0, |live| live.slot.last_run_seq);
        let undone = self.undone(run, &part, begun);
        let mut progress = FlowProgress::new(run.flow.graph(), run.number);
        let steps: Vec<_> = self.slots.steps_of(&run.slot).map(|(id, live)| (id.clone(), live.into_owned())).collect();
        let ended = steps.iter().filter(|(_, live)| live.slot.state.is_final()).map(|(_, live)| live.slot.last_run_seq);
        let seqs: Vec<u64> = ended.filter(|seq| *seq > 0 && self.slots.changed_run(*seq).is_none()).collect();
        let read = if seqs.is_empty() { Vec::new() } else { past.runs(&seqs)? };
        let read: BTreeMap<u64, _> = read.into_iter().map(|run| (run.seq, run)).collect();
        let items = items_of(&run.flow, &steps);
        let mut done_before = BTreeSet::new();
        for (id, live) in steps {
            let Some(key) = id.key.step() else { continue };
            progress.follow_ending(key, &live.slot);
            let at = run.flow.graph().position(key.step()).unwrap_or(usize::MAX);
            // A list may have had more items before.
            let is_left_over = |number| items.get(&at).is_none_or(|items| number >= *items);
            if undone.contains(&at) || key.item_number().is_some_and(is_left_over) {
                continue;
            }
            if live.slot.step_of_run().is_some_and(|step| step.run < run.number) && key.item_number().is_none() {
                done_before.insert(at);
            }
            let seq = live.slot.last_run_seq;
            // A step that failed without a run of its own gives nothing, whatever an earlier run of it gave.
            let counts = live.slot.state == SlotState::Succeeded || seq > begun;
            let latest = || self.slots.changed_run(seq).or_else(|| read.get(&seq)).filter(|_| counts);
            let end = || StepEnd::of(live.slot.state, latest());
            progress.load(run.flow.graph(), key, &live.slot, end);
        }
        progress.note_loose(run.flow.graph(), &done_before);
        progress.look_at_all();
        self.flows.keep(&run.slot, progress);
        Ok(())
    }

    /// The steps that are to be done, although an earlier run may have done them. `begun` is the number of the event with which this
    /// run began.
    fn undone(&self, run: &RunAdvance, part: &RunOfFlow, begun: u64) -> BTreeSet<usize> {
        let known: Vec<OpenedStep> = self
            .slots
            .steps_of(&run.slot)
            .filter_map(|(id, live)| OpenedStep::of(run.flow.graph(), id.key.step()?, &live.slot, begun))
            .collect();
        run.flow.graph().undone((run.number, part.since_run), &part.again, &known)
    }

    /// The first run whose items of a list count.
    pub(crate) fn first_run_of_items(&self, run: &RunAdvance, at: usize) -> u32 {
        let part = self.slots.get(&run.slot).and_then(|live| live.slot.run_of_flow().cloned()).unwrap_or_default();
        let graph = run.flow.graph();
        let since = part.again.iter().filter_map(|(step, since)| Some((*since, graph.position(step.as_str())?)));
        graph.first_runs(part.since_run, since.collect()).get(at).copied().unwrap_or_default()
    }
}

/// The numbers of items of the steps with lists that have started.
fn items_of(flow: &PinnedFlow, steps: &[(SlotRef, Live)]) -> BTreeMap<usize, u32> {
    let of = |(id, live): &(SlotRef, Live)| {
        let key = id.key.step().filter(|key| key.item_number().is_none())?;
        let at = flow.graph().position(key.step())?;
        let list = flow.graph().step(at)?.for_each.as_ref()?;
        let items = live.slot.step_of_run()?.inputs.get(&formatted_key(&list.input))?.as_array()?.len();
        Some((at, u32::try_from(items).unwrap_or(u32::MAX)))
    };
    steps.iter().filter_map(of).collect()
}

/// The outputs of a flow: those of its last steps, merged as a step after them would be given them.
fn outputs_of(run: &RunAdvance, progress: &FlowProgress) -> Map<String, Value> {
    let graph = run.flow.graph();
    let succeeded = |at: &usize| progress.states().get(*at) == Some(&StepProgress::Succeeded);
    let last: Vec<usize> = graph.leaves().filter(succeeded).collect();
    let Some(first) = last.first().and_then(|at| graph.step(*at)) else { return Map::new() };
    let ends: Vec<_> = last.iter().filter_map(|at| Some((&graph.step(*at)?.name, progress.end_of(*at)))).collect();
    let mut outputs = InputMerge::new(first.name.as_str(), &Map::new(), &Map::new());
    ends.iter().for_each(|(name, end)| outputs.add(name.as_str(), &end.outputs));
    outputs.finish(&Map::new())
}

/// The outcome of a run of which these steps failed, and no error step handled it.
fn failed_outcome(failed: &[StepName], error: impl Fn(&StepName) -> Option<String>) -> Outcome {
    let words = |name: &StepName| match error(name).filter(|error| !error.is_empty()) {
        Some(error) => format!("step {name} failed: {error}"),
        None => format!("step {name} failed"),
    };
    let more = failed.len().saturating_sub(1);
    let first = failed.first().map(words).unwrap_or_default();
    let others: Vec<&str> = failed.iter().skip(1).take(10).map(StepName::as_str).collect();
    let reason = match more {
        0 => first,
        more if more > 10 => format!("{first}; {more} others failed, too: {}, ...", others.join(", ")),
        _ => format!("{first}; so did {}", others.join(", ")),
    };
    Outcome::Failed { reason, exit_status: None, code: None }
}
