//! Steps on a path: where a run of a flow spent its time, and which step let another one start.

use jiff::Timestamp;
use kelos_model::flow::{FLOW, StepProgress};
use kelos_model::{SlotEvent, SlotKey, SlotRef};
use kelos_store::{Queries, StoreError};

use super::life::{Life, Phase};
use super::moment::Moment;
use crate::flow_run::FlowRun;

/// The slot at which a path goes on, and the moment at which it let the other one go.
pub(super) struct Before {
    pub(super) slot: SlotRef,
    pub(super) at: Timestamp,
}

/// Runs of flows, each read once.
#[derive(Default)]
pub(super) struct Flows(Option<(SlotRef, Option<FlowRun>)>);

impl Flows {
    fn of(&mut self, reader: &dyn Queries, run: &SlotRef) -> Result<Option<&FlowRun>, StoreError> {
        if self.0.as_ref().is_none_or(|(known, _)| known != run) {
            self.0 = Some((run.clone(), FlowRun::read(reader, run, None)?));
        }
        Ok(self.0.as_ref().and_then(|(_, flow)| flow.as_ref()))
    }

    /// The step with which the run of a phase ended, or that keeps it from ending; none if the phase is no run of a flow, or no step ran.
    pub(super) fn last_step(
        &mut self,
        reader: &dyn Queries,
        life: &Life,
        phase: &Phase,
        until: Timestamp,
    ) -> Result<Option<Before>, StoreError> {
        let events = life.events.get(phase.events.clone()).unwrap_or_default();
        let is_flow = |(_, event): &(Timestamp, SlotEvent)| matches!(event, SlotEvent::Started { external_id, .. } if external_id == FLOW);
        if !events.iter().any(is_flow) {
            return Ok(None);
        }
        let Some(flow) = self.of(reader, &life.slot)? else { return Ok(None) };
        let mut last: Option<(bool, Timestamp, usize)> = None;
        for at in 0..flow.graph().len() {
            let Some(slot) = flow.slot_of(at) else { continue };
            let is_live = flow.progress(at) == StepProgress::Live;
            if is_live && phase.until.is_some() || slot.step_of_run().is_none_or(|step| step.run != phase.run) {
                continue;
            }
            let end = if is_live { until } else { slot.since };
            // Of several live steps the first one counts: it is waited for longest.
            let is_later = |(live, known, _): (bool, Timestamp, usize)| !live && (is_live || known < end);
            if end > phase.from && end <= until && last.is_none_or(is_later) {
                last = Some((is_live, end, at));
            }
        }
        Ok(last.and_then(|(_, at, step)| Some(Before { slot: flow.step(step)?, at })))
    }

    /// The slot that let a step be opened: the last of the steps before it, or its run.
    pub(super) fn opener(&mut self, reader: &dyn Queries, life: &Life) -> Result<Option<Before>, StoreError> {
        let Some(key) = life.slot.key.step() else { return Ok(None) };
        let run = SlotRef::new(life.slot.workflow.clone(), key.run());
        let opened = life.opened;
        let Some(flow) = self.of(reader, &run)? else { return Ok(None) };
        if let Some(number) = key.item_number() {
            let step = flow.position(key).and_then(|at| flow.step(at)).filter(|_| number < u32::MAX);
            return Ok(step.map(|slot| Before { slot, at: opened }));
        }
        let of_run = |at: usize| flow.slot_of(at).and_then(|slot| slot.step_of_run()).map_or(0, |step| step.run);
        let at = flow.position(key).unwrap_or(usize::MAX);
        let graph = flow.graph();
        let ended = |other: &usize| {
            let slot = flow.slot_of(*other).filter(|slot| slot.state.is_final() && slot.since <= opened)?;
            (of_run(*other) == of_run(at)).then_some((slot.since, *other))
        };
        let last = graph.needs(at).iter().chain(graph.handles(at)).filter_map(ended).max();
        let step = last.and_then(|(since, other)| Some(Before { slot: flow.step(other)?, at: since }));
        Ok(Some(step.unwrap_or(Before { slot: run, at: opened })))
    }

    /// The step whose end a step waited for before it handled a failure; none if it waited for no other.
    pub(super) fn awaited(
        &mut self,
        reader: &dyn Queries,
        life: &Life,
        until: Timestamp,
    ) -> Result<Option<Before>, StoreError> {
        let Some(key) = life.slot.key.step() else { return Ok(None) };
        let awaits = life.events.iter().rev().find_map(|(_, event)| match event {
            SlotEvent::StepOpened { awaits, .. } => Some(awaits),
            _ => None,
        });
        let Some(awaits) = awaits.filter(|awaits| !awaits.is_empty()) else { return Ok(None) };
        let run = SlotRef::new(life.slot.workflow.clone(), key.run());
        let Some(flow) = self.of(reader, &run)? else { return Ok(None) };
        let end = |at: usize| match flow.progress(at) {
            StepProgress::Live => Some((until, at)),
            _ => flow.slot_of(at).map(|slot| (slot.since, at)).filter(|(since, _)| *since <= until),
        };
        let last = awaits.iter().filter_map(|name| end(flow.graph().position(name.as_str())?)).max();
        Ok(last.and_then(|(at, step)| Some(Before { slot: flow.step(step)?, at })))
    }

    /// The signal that a step waits for, in words.
    pub(super) fn signal(&mut self, reader: &dyn Queries, life: &Life) -> Result<String, StoreError> {
        let Some(key) = life.slot.key.step() else { return Ok(String::new()) };
        let run = SlotRef::new(life.slot.workflow.clone(), key.run());
        let flow = self.of(reader, &run)?;
        let signal = flow.and_then(|flow| Some(flow.signal(flow.position(key)?)?.0.to_owned()));
        Ok(signal.map_or_else(|| "to be made ready".to_owned(), |signal| format!("for the signal {signal}")))
    }
}

/// Whether a slot is the run that a step belongs to.
pub(super) fn is_run_of(slot: &SlotRef, step: &SlotRef) -> bool {
    matches!(step.key, SlotKey::Step(_)) && slot.workflow == step.workflow && slot.key == step.key.of_run()
}

/// The life of the slot at which a path goes on. A run is gone back to as it was when its first step was opened.
pub(super) fn life_before(
    reader: &dyn Queries,
    here: &SlotRef,
    (slot, to): (&SlotRef, Moment),
) -> Result<Option<Life>, StoreError> {
    match is_run_of(slot, here) {
        true => Life::read_until(reader, slot, to.at),
        false => Life::read(reader, slot, to.seq),
    }
}
