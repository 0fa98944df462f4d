//! Steps that the scheduler carries out by itself, those that wait, and requests about runs of flows.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Origin;
use kelos_model::flow::{FOR_EACH, ItemList, SignalWait, StepProgress, formatted_key};
use kelos_model::run::beyond_largest;
use kelos_model::{
    Actor, Answer, FailureCode, Finding, Outcome, Reason, ReasonKind, SlotEvent, SlotKey, SlotRef, SlotState,
};
use serde_json::{Map, Value};

use crate::flow_runs::RunAdvance;
use crate::flows::{FlowProgress, StepEnd};
use crate::past::PastOf;
use crate::requests::{ResumeFlow, SignalFlow};
use crate::{Core, Refusal};

impl Core {
    /// Has a step wait for its signal, unless that has come.
    pub(crate) fn await_signal(
        &mut self,
        run: &RunAdvance,
        id: &SlotRef,
        signal: &SignalWait,
        inputs: Map<String, Value>,
    ) {
        if let Some(payload) = self.signal_of(&run.slot, &signal.name) {
            return self.take_signal(id, &signal.name, payload, inputs);
        }
        if let Some(at) = self.deadline(id, signal) {
            self.wakes.look_at_moment(id, at);
        }
    }

    /// The signal of a name that came for a run.
    fn signal_of(&self, run: &SlotRef, name: &str) -> Option<Value> {
        self.slots.get(run)?.slot.run_of_flow()?.signals.get(name).cloned()
    }

    /// The moment from which on a step waits for its signal no longer.
    fn deadline(&self, id: &SlotRef, signal: &SignalWait) -> Option<Timestamp> {
        let seconds = i64::try_from(signal.within_seconds?).ok()?;
        let opened = self.slots.get(id)?.slot.since;
        opened.checked_add(SignedDuration::from_secs(seconds)).ok()
    }

    /// Ends a step whose signal has come: what the signal said is what the step gives.
    fn take_signal(&mut self, id: &SlotRef, name: &str, payload: Value, inputs: Map<String, Value>) {
        let outputs = match payload {
            Value::Object(outputs) => outputs,
            Value::Null => Map::new(),
            other => Map::from_iter([(formatted_key(name), other)]),
        };
        let run = self.begin_by_itself(id, inputs);
        if !outputs.is_empty() {
            self.record(id, SlotEvent::Gave { run, outputs });
        }
        self.record(id, SlotEvent::Succeeded { run });
    }

    /// Lets the steps of a run go on whose signals have come.
    pub(crate) fn take_signals(&mut self, run: &RunAdvance) {
        let signals = self.slots.get(&run.slot).and_then(|live| Some(live.slot.run_of_flow()?.signals.clone()));
        let Some(signals) = signals.filter(|signals| !signals.is_empty()) else { return };
        let live: Vec<usize> = self.flows.progress(&run.slot).map(|all| all.live_steps().collect()).unwrap_or_default();
        for at in live {
            let signal = run.flow.graph().step(at).and_then(|step| step.signal.as_ref());
            let Some((signal, id)) = signal.zip(run.step(at)) else { continue };
            let waits = self.slots.state(&id) == Some(SlotState::Waiting) && !self.awaits_others(run, at);
            if let Some(payload) = signals.get(&signal.name).filter(|_| waits) {
                let inputs = self.inputs_of(run, at);
                self.take_signal(&id, &signal.name, payload.clone(), inputs);
            }
        }
    }

    fn awaits_others(&mut self, run: &RunAdvance, at: usize) -> bool {
        self.flows.progress(&run.slot).is_some_and(|progress| progress.is_awaiting(at))
    }

    /// Starts the items of a list.
    pub(crate) fn start_list<E>(
        &mut self,
        run: &RunAdvance,
        at: usize,
        list: &ItemList,
        inputs: Map<String, Value>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let Some(id) = run.step(at) else { return Ok(()) };
        let items = match inputs.get(&formatted_key(&list.input)) {
            Some(Value::Array(items)) if items.len() <= list.most as usize => items.clone(),
            other => {
                let reason = not_a_list(list, other);
                let code = Some(FailureCode::FINAL);
                self.fail_step(&id, Outcome::Failed { reason, exit_status: None, code });
                return Ok(());
            }
        };
        let number = self.begin_by_itself(&id, inputs.clone());
        self.record(&id, SlotEvent::Started { run: number, external_id: FOR_EACH.to_owned() });
        self.change_progress(run, |progress| progress.begin_list(at));
        let first = if run.number > 1 { self.first_run_of_items(run, at) } else { 0 };
        let mut rest = inputs;
        rest.remove(&formatted_key(&list.input));
        for (index, item) in (0_u32..).zip(items) {
            let mut given = rest.clone();
            given.extend([("item".to_owned(), item), ("index".to_owned(), index.into())]);
            self.open_item(run, (at, first), index, given, past)?;
        }
        // A list without items is over.
        self.change_progress(run, |progress| progress.look_at(at));
        Ok(())
    }

    fn change_progress(&mut self, run: &RunAdvance, change: impl FnOnce(&mut FlowProgress)) {
        if let Some(progress) = self.flows.progress(&run.slot) {
            change(progress);
        }
    }

    /// Opens an item of a step, unless an earlier run has done the same whose items count.
    fn open_item<E>(
        &mut self,
        run: &RunAdvance,
        (at, first): (usize, u32),
        index: u32,
        inputs: Map<String, Value>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let Some(SlotKey::Step(step)) = run.step(at).map(|step| step.key) else { return Ok(()) };
        let id = SlotRef::new(run.slot.workflow.clone(), SlotKey::Step(step.item(index)));
        if run.number > 1 {
            self.slots.recall([id.clone()], past)?;
            let done = self.slots.get(&id).filter(|live| live.slot.state == SlotState::Succeeded);
            let is_same = |step: &kelos_model::slot::StepOfRun| step.run >= first && step.inputs == inputs;
            if let Some(seq) =
                done.filter(|live| live.slot.step_of_run().is_some_and(is_same)).map(|live| live.slot.last_run_seq)
            {
                let end = StepEnd::of(SlotState::Succeeded, past.runs(&[seq])?.first());
                self.change_progress(run, |progress| progress.note_item(at, index, StepProgress::Succeeded, end));
                return Ok(());
            }
        }
        self.open_slot(run, &id, &[], past)?;
        match beyond_largest(&inputs) {
            Some(bytes) => self.fail_step(&id, Outcome::given_too_much(bytes)),
            None => self.record(&id, SlotEvent::StepReady { inputs }),
        }
        Ok(())
    }

    /// Ends a step of whose items none is live.
    pub(crate) fn end_list(&mut self, run: &RunAdvance, at: usize) {
        let Some((id, step)) = run.step(at).zip(run.flow.graph().step(at)) else { return };
        let Some(list) = self.flows.progress(&run.slot).and_then(|progress| progress.list(at)) else { return };
        let name = formatted_key(step.name.as_str());
        let (end, all) = (list.end(&name), list.len());
        let Some(number) = self.slots.get(&id).filter(|live| live.slot.run_alive).map(|live| live.slot.last_run) else {
            return;
        };
        let failed = |reason: String| Outcome::Failed { reason, exit_status: None, code: None };
        let outcome = match end {
            Ok(outputs) => {
                let outputs = Map::from_iter([(name, outputs)]);
                match beyond_largest(&outputs) {
                    Some(bytes) => Outcome::gave_too_much(bytes),
                    None => {
                        self.record(&id, SlotEvent::Gave { run: number, outputs });
                        return self.record(&id, SlotEvent::Succeeded { run: number });
                    }
                }
            }
            Err(items) => {
                let numbers: Vec<String> = items.iter().take(10).map(ToString::to_string).collect();
                let more = if items.len() > 10 { ", ..." } else { "" };
                failed(format!("{} of {all} items failed: {}{more}", items.len(), numbers.join(", ")))
            }
        };
        self.record(&id, SlotEvent::Failed { run: number, outcome });
    }

    /// Looks at a waiting step that something woke: a retry that is due, or the end of a wait for a signal.
    pub(crate) fn look_at_step(&mut self, id: &SlotRef) {
        let Some(key) = id.key.step() else { return };
        let run = SlotRef::new(id.workflow.clone(), key.run());
        let Some(live) = self.slots.get(id) else { return };
        if live.slot.retries > 0 {
            let inputs = live.slot.step_of_run().map(|step| step.inputs.clone()).unwrap_or_default();
            return self.record(id, SlotEvent::StepReady { inputs });
        }
        let step = self.flows.of(&run).and_then(|flow| flow.graph().flow().step(key.step()).cloned());
        let Some(signal) = step.and_then(|step| step.signal) else { return self.flows.touch(&run) };
        if self.signal_of(&run, &signal.name).is_some() {
            // It waits for other steps, and takes the signal once these have ended.
            return;
        }
        match (self.deadline(id, &signal), signal.within_seconds) {
            (Some(at), Some(timeout_seconds)) if at <= self.now => {
                let finding = Finding::SignalAwaited { name: signal.name.clone().into() };
                let explanation = Reason::leaf(ReasonKind::Signal, Answer::NotYet, finding);
                self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
            }
            (Some(at), _) => self.wakes.look_at_moment(id, at),
            (None, _) => {}
        }
    }

    /// Stores a signal for a run of a flow, also for one that nobody has started yet.
    pub(crate) fn signal_flow(&mut self, request: SignalFlow, by: Actor) -> Result<(), Refusal> {
        let SignalFlow { run, signal, payload, reason } = request;
        if run.key.step().is_some() {
            // A signal is for a run, whichever of its steps waits for it.
            return Err(Refusal::NoFlow(run.workflow));
        }
        let definition = self.workflows.get(&run.workflow).ok_or_else(|| Refusal::NoWorkflow(run.workflow.clone()))?;
        let present = definition.definition().flow.clone().filter(|_| definition.is_present());
        let flow = self.flows.of(&run).map(|flow| flow.graph().flow().clone()).or(present);
        let Some(flow) = flow else { return Err(Refusal::NoFlow(run.workflow)) };
        if !flow.signals().any(|known| known == signal) {
            let known = flow.signals().map(str::to_owned).collect();
            return Err(Refusal::NoSignal { workflow: run.workflow, signal, known });
        }
        if let Some(bytes) = beyond_largest(&payload) {
            return Err(Refusal::ArgumentsTooLarge { bytes });
        }
        match self.slots.state(&run) {
            Some(state) if state.is_final() => return Err(Refusal::RunOver(run, state)),
            Some(_) => {}
            None if matches!(run.key, SlotKey::Named(_)) => {
                self.record(&run, SlotEvent::planned(Origin::Signal, 0));
            }
            None => return Err(Refusal::NeverCameToBe(run)),
        }
        self.record(&run, SlotEvent::Signalled { name: signal, payload, by, reason });
        self.flows.touch(&run);
        Ok(())
    }

    /// Opens the failed steps of a run again, or those from one on.
    pub(crate) fn resume_flow<E>(
        &mut self,
        request: ResumeFlow,
        by: Actor,
        past: PastOf<'_, E>,
    ) -> Result<Result<(), Refusal>, E> {
        let ResumeFlow { run, from, reason } = request;
        if let Err(refusal) = self.workflows.present(&run.workflow) {
            return Ok(Err(refusal));
        }
        let Some(live) = self.slots.get(&run) else { return Ok(Err(Refusal::NeverCameToBe(run))) };
        let (state, part) = (live.slot.state, live.slot.run_of_flow().cloned());
        let Some(part) = part.filter(|part| part.definition > 0) else { return Ok(Err(Refusal::NoFlow(run.workflow))) };
        if live.slot.is_live() {
            return Ok(Err(Refusal::StillLive(run, state)));
        }
        if state == SlotState::Succeeded && from.is_none() {
            return Ok(Err(Refusal::NothingToResume(run)));
        }
        if !self.pin_past(&run, part.definition, past)? {
            return Ok(Err(Refusal::NoWorkflow(run.workflow)));
        }
        let flow = self.flows.pinned(&run.workflow, part.definition).map(|flow| flow.graph().flow().clone());
        let flow = match part.repeats.as_deref() {
            Some(repeats) => flow.and_then(|flow| flow.repeating(repeats)).map(Arc::new),
            None => flow,
        };
        if let Some(from) = &from
            && flow.as_ref().is_none_or(|flow| flow.step(from.as_str()).is_none())
        {
            let known = flow.iter().flat_map(|flow| flow.steps.iter().map(|step| step.name.to_string())).collect();
            return Ok(Err(Refusal::NoStep { workflow: run.workflow, step: from.to_string(), known }));
        }
        self.record(&run, SlotEvent::Resumed { by, reason, from });
        Ok(Ok(()))
    }
}

/// The reason why an input is no list for the items of a step.
fn not_a_list(list: &ItemList, found: Option<&Value>) -> String {
    let (name, most) = (&list.input, list.most);
    match found {
        Some(Value::Array(items)) => format!("its list {name} has {} items, expected at most {most}", items.len()),
        Some(other) => {
            let mut text = other.to_string();
            if text.chars().count() > 60 {
                text = text.chars().take(60).chain("...".chars()).collect();
            }
            format!("its input {name} is {text}, expected a list")
        }
        None => format!("it is given no {name}, expected a list"),
    }
}
