//! Batches: the slots that one live run serves together. A report on the run is recorded for all of them in one step.
//!
//! The first slot has the run of which the executor is told; the others follow it. Absent: the rule that puts slots together, which is
//! [`Candidates`]'.

mod candidates;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{Batch, RunId, SlotEvent, SlotRef, SlotState};

pub(crate) use candidates::Candidates;

use crate::Core;

/// The batches of all live runs.
#[derive(Default)]
pub(crate) struct Batches {
    /// The other slots of each batch, by the first.
    followers: BTreeMap<SlotRef, BTreeSet<SlotRef>>,
}

impl Batches {
    /// Adds a slot to the batch of another one.
    pub(crate) fn join(&mut self, first: SlotRef, follower: SlotRef) {
        self.followers.entry(first).or_default().insert(follower);
    }

    /// Forgets the batch of a run that has ended.
    fn end(&mut self, first: &SlotRef) {
        self.followers.remove(first);
    }

    /// All slots of the batch whose first slot this is, or this slot alone.
    fn of(&self, first: &SlotRef) -> Vec<SlotRef> {
        std::iter::once(first).chain(self.followers.get(first).into_iter().flatten()).cloned().collect()
    }
}

impl Core {
    /// Whether the live run of another slot serves this one.
    pub(crate) fn is_follower(&self, slot: &SlotRef) -> bool {
        self.permits.is_following(slot)
    }

    /// The live run that serves a slot, its own or that of the first slot of its batch; none if none is alive.
    pub(crate) fn serving_run(&self, slot: &SlotRef) -> Option<RunId> {
        let live = self.slots.get(slot).filter(|live| live.slot.run_alive)?;
        let own = || RunId { slot: slot.clone(), number: live.slot.last_run };
        // A run that another scheduler started and this one adopted has no record here.
        Some(self.slots.run(slot).map_or_else(own, kelos_model::Run::leader))
    }

    /// The slots that end with one, because one run serves them: those of a batch whose run nobody has ended yet.
    pub(crate) fn ending_with(&self, slot: &SlotRef) -> Vec<SlotRef> {
        let is_wanted =
            |slot: &SlotRef| matches!(self.slots.state(slot), Some(SlotState::Dispatched | SlotState::Running));
        match self.serving_run(slot).filter(|_| is_wanted(slot)) {
            Some(run) => self.batches.of(&run.slot),
            None => vec![slot.clone()],
        }
    }

    /// The same slots with those that would end with them.
    pub(crate) fn with_batches(&self, slots: Vec<SlotRef>) -> Vec<SlotRef> {
        let mut known: BTreeSet<SlotRef> = slots.iter().cloned().collect();
        let others = slots.iter().flat_map(|slot| self.ending_with(slot)).filter(|slot| known.insert(slot.clone()));
        let others: Vec<SlotRef> = others.collect();
        slots.into_iter().chain(others).collect()
    }

    /// Records the dispatch of the slots that a run serves besides its own.
    pub(crate) fn dispatch_others(&mut self, run: &RunId, batch: Batch, others: Vec<Timestamp>) {
        for time in others {
            let slot = SlotRef::at(run.slot.workflow.clone(), time);
            let Some(live) = self.slots.get(&slot) else { return self.breaches.no_slot(&slot) };
            let number = live.slot.last_run + 1;
            self.record(&slot, SlotEvent::Dispatched { run: number, worker: None, batch: Some(batch) });
            self.batches.join(run.slot.clone(), slot);
        }
    }

    /// Records an event of a run for each slot that it serves. The event is given the number of the slot's own run.
    pub(crate) fn record_of_run(&mut self, run: &RunId, what: impl Fn(u32) -> SlotEvent) {
        for slot in self.batches.of(&run.slot) {
            let Some(live) = self.slots.get(&slot) else { return self.breaches.no_slot(&slot) };
            let number = live.slot.last_run;
            self.record(&slot, what(number));
        }
        if self.slots.get(&run.slot).is_none_or(|live| !live.slot.run_alive) {
            self.batches.end(&run.slot);
        }
    }
}
