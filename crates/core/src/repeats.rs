//! Steps that are done again, each as a run of its own.
//!
//! Such a run follows the definition of the run that did the step, and its flow is that step alone. All else about it is as for any run
//! that a person starts. Absent: the graph of that step, which is [`Flow::repeating`](kelos_model::Flow::repeating)'s.

use kelos_model::flow::{Step, formatted_key};
use kelos_model::parameter::{Parameter, ParameterKind};
use kelos_model::repeated::RepeatedStep;
use kelos_model::run::beyond_largest;
use kelos_model::similar::mistyped;
use kelos_model::slot::RunOfFlow;
use kelos_model::{Actor, Arguments, SlotEvent, SlotKey, SlotRef, StepKey, StepName, Workflow};
use serde_json::{Map, Value};

use crate::past::PastOf;
use crate::requests::{RepeatStep, StartAnswer};
use crate::{Core, Refusal};

impl Core {
    /// Opens a run that does a step of another run again.
    pub(crate) fn repeat_step<E>(
        &mut self,
        request: RepeatStep,
        by: Actor,
        past: PastOf<'_, E>,
    ) -> Result<Result<StartAnswer, Refusal>, E> {
        let RepeatStep { step, arguments, key, priority, unconstrained, reason } = request;
        let repeats = match self.repeated(&step, past)? {
            Ok(repeats) => repeats,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let arguments = match self.accepted_by_step(&step, &repeats, &arguments) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let fired = self.open_fired(&step.workflow, key, priority);
        if fired.existed {
            let known = self.repeated_by(&fired.slot).and_then(|repeats| repeats.key());
            let is_same = known.as_ref() == step.key.step();
            return Ok(if is_same { Ok(fired) } else { Err(Refusal::RunNameTaken(fired.slot, step)) });
        }
        let repeats = Some(Box::new(repeats));
        self.record(&fired.slot, SlotEvent::FiredBy { by, reason, arguments, unconstrained, repeats });
        self.wake(fired.slot.clone());
        Ok(Ok(fired))
    }

    /// The step that is done again, with its definition ready.
    fn repeated<E>(&mut self, id: &SlotRef, past: PastOf<'_, E>) -> Result<Result<RepeatedStep, Refusal>, E> {
        let run = SlotRef::new(id.workflow.clone(), id.key.of_run());
        let (key, name, part) = match self.done_by(id, &run) {
            Ok(done) => done,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !self.pin_past(&run, part.definition, past)? {
            return Ok(Err(Refusal::NoWorkflow(run.workflow)));
        }
        let before = part.repeats.as_deref();
        let flow = self.flows.pinned(&run.workflow, part.definition).map(|flow| flow.graph().flow().clone());
        // A run that did a step again has no other.
        let flow = match before {
            Some(before) => flow.and_then(|flow| flow.repeating(before)).map(std::sync::Arc::new),
            None => flow,
        };
        let step: Option<&Step> = flow.as_ref().and_then(|flow| flow.step(key.step()));
        let Some(step) = step else {
            let known = flow.iter().flat_map(|flow| flow.steps.iter().map(|step| step.name.to_string())).collect();
            return Ok(Err(Refusal::NoStep { workflow: run.workflow, step: key.step().to_owned(), known }));
        };
        if let Some(signal) = &step.signal {
            return Ok(Err(Refusal::OnlyWaits(id.clone(), signal.name.clone())));
        }
        // The run did nothing of what was done by an earlier definition.
        let did = |live: &crate::slots::Live| {
            let step = live.slot.step_of_run().filter(|_| live.slot.last_run > 0)?;
            (step.run >= part.since_run).then(|| step.inputs.clone())
        };
        let Some(inputs) = self.slots.get(id).and_then(|live| did(&live)) else {
            return Ok(Err(Refusal::NeverRan(id.clone())));
        };
        let about = before.map_or_else(|| run.key.clone(), |before| before.about.clone());
        let item = key.item_number();
        let is_item = item.is_some() || before.is_some_and(|before| before.is_item);
        let (of, definition) = (run.key, part.definition);
        Ok(Ok(RepeatedStep { of, step: name, item, is_item, about, definition, inputs }))
    }

    /// The step and the part of its run, if that was a run of a flow, and is over.
    fn done_by(&self, id: &SlotRef, run: &SlotRef) -> Result<(StepKey, StepName, RunOfFlow), Refusal> {
        let definition = self.workflows.present(&id.workflow)?.definition();
        if !definition.keys.can_be_started() {
            // Its runs are named by job ids, and this one would have none.
            return Err(Refusal::NotStartable(id.workflow.clone()));
        }
        let no_flow = || Refusal::NoFlow(id.workflow.clone());
        let key = id.key.step().filter(|_| definition.flow.is_some()).ok_or_else(no_flow)?;
        let name = StepName::new(key.step()).map_err(|_| no_flow())?;
        let live = self.slots.get(run).ok_or_else(|| Refusal::NeverCameToBe(run.clone()))?;
        let part = live.slot.run_of_flow().filter(|part| part.definition > 0).cloned();
        match part {
            _ if live.slot.is_live() => Err(Refusal::StepOfLiveRun(run.clone(), live.slot.state)),
            Some(part) => Ok((key.clone(), name, part)),
            None => Err(no_flow()),
        }
    }

    /// The step that a run does again; none where it is an ordinary run.
    pub(crate) fn repeated_by(&self, run: &SlotRef) -> Option<RepeatedStep> {
        self.slots.get(run)?.slot.run_of_flow()?.repeats.as_deref().cloned()
    }

    /// The key whose time and identifiers a step's job is given, where it is done again.
    pub(crate) fn about(&self, step: &SlotRef) -> Option<SlotKey> {
        let run = SlotRef::new(step.workflow.clone(), step.key.step()?.run());
        Some(self.repeated_by(&run)?.about)
    }

    /// Has the definition ready of a run that is about to be opened again, if it does a step of another run again.
    pub(crate) fn pin_repeated<E>(&mut self, run: &SlotRef, past: PastOf<'_, E>) -> Result<(), E> {
        match self.repeated_by(run) {
            Some(repeats) => self.pin_past(run, repeats.definition, past).map(drop),
            None => Ok(()),
        }
    }

    /// Has a definition of the past ready. Returns whether there is one.
    pub(crate) fn pin_past<E>(&mut self, run: &SlotRef, number: u32, past: PastOf<'_, E>) -> Result<bool, E> {
        if !self.flows.is_pinned(&run.workflow, number)
            && let Some(definition) = past.definition(&run.workflow, number)?
        {
            self.flows.pin(&definition, number);
        }
        Ok(self.flows.is_pinned(&run.workflow, number))
    }

    /// The inputs that a request gives to a step in the place of those that it had, each of the kind that the step was given.
    pub(crate) fn accepted_by_step(
        &self,
        step: &SlotRef,
        repeats: &RepeatedStep,
        arguments: &Arguments,
    ) -> Result<Arguments, Refusal> {
        let definition = self.workflows.present(&step.workflow)?.definition();
        let accepted = inputs_of(definition, &repeats.inputs, arguments)
            .map_err(|mistakes| Refusal::InputsMismatched { step: step.clone(), mistakes })?;
        let mut all = repeats.inputs.clone();
        all.extend(accepted.clone());
        match beyond_largest(&all) {
            Some(bytes) => Err(Refusal::ArgumentsTooLarge { bytes }),
            None => Ok(accepted),
        }
    }
}

/// Reads the inputs that somebody gives by what the step was given, and by the parameters of its flow.
///
/// # Errors
/// All mistakes, in words.
fn inputs_of(
    definition: &Workflow,
    given: &Map<String, Value>,
    arguments: &Arguments,
) -> Result<Arguments, Vec<String>> {
    let mut known: Vec<Parameter> = definition.parameters.clone();
    known.iter_mut().for_each(|parameter| parameter.name = formatted_key(&parameter.name));
    for (name, value) in given {
        if known.iter().all(|parameter| parameter.name != *name) {
            known.push(Parameter::new(name, kind_of(value)));
        }
    }
    let (mut all, mut mistakes) = (Arguments::new(), Vec::new());
    for (name, value) in arguments {
        let name = formatted_key(name);
        if let Some(parameter) = known.iter().find(|parameter| parameter.name == name) {
            match parameter.accept(value) {
                Ok(value) => drop(all.insert(name, value)),
                Err(mistake) => mistakes.push(mistake),
            }
            continue;
        }
        let names: Vec<&str> = known.iter().map(|parameter| parameter.name.as_str()).collect();
        match mistyped(&name, names.iter().copied()) {
            Some(meant) => mistakes.push(format!("\"{name}\" is no input of the step, did you mean {meant}?")),
            None if !definition.parameters.is_empty() => {
                mistakes.push(format!("\"{name}\" is no input of the step, expected one of: {}", names.join(", ")));
            }
            // A flow without parameters takes anything.
            None => drop(all.insert(name, value.clone())),
        }
    }
    if mistakes.is_empty() { Ok(all) } else { Err(mistakes) }
}

/// The kind of values that may stand in for one that a step was given.
fn kind_of(value: &Value) -> ParameterKind {
    match ParameterKind::of(value) {
        ParameterKind::Integer => ParameterKind::Number,
        kind => kind,
    }
}
