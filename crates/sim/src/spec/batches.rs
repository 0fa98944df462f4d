//! Batches: adjacent slots that start together, and end together.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::CronSchedule;
use kelos_model::{RunId, SlotKey, SlotRef, SlotState, WorkflowId};

use super::pools::InQueue;
use super::{Spec, SpecSlot};

/// Queued slots that would start together, and whether they wait for others.
pub(super) struct Lot {
    /// Their places, from the first on.
    pub(super) places: Vec<InQueue>,
    pub(super) waits: bool,
}

impl Spec {
    /// The slots that a live run serves: its own first.
    pub(super) fn served_by(&self, run: &RunId) -> Vec<SlotRef> {
        let follows = |state: &SpecSlot| state.alive && state.leader.as_ref() == Some(run);
        let others = self.slots.iter().filter(|(_, state)| follows(state)).map(|(slot, _)| slot.clone());
        std::iter::once(run.slot.clone()).chain(others).collect()
    }

    /// The run that serves a slot, or that did last.
    pub(super) fn serving(&self, slot: &SlotRef) -> RunId {
        let state = &self.slots[slot];
        state.leader.clone().unwrap_or_else(|| RunId { slot: slot.clone(), number: state.last_run })
    }

    /// The slots that end with one by request: those of a batch that goes on.
    pub(super) fn ending_with(&self, slot: &SlotRef) -> Vec<SlotRef> {
        match self.slots.get(slot) {
            Some(state) if state.state == SlotState::Running => self.served_by(&self.serving(slot)),
            _ => vec![slot.clone()],
        }
    }

    /// Ends one of these. Returns its run if that was live and is killed.
    pub(super) fn end_alone(&mut self, slot: &SlotRef, end: SlotState) -> Option<RunId> {
        let state = self.slots.get_mut(slot)?;
        let run = RunId { slot: slot.clone(), number: state.last_run };
        let ran = state.state == SlotState::Running;
        state.state = end;
        if end == SlotState::Killed {
            (state.retries, state.again) = (0, 0);
        }
        Some(run).filter(|_| ran && end == SlotState::Killed)
    }

    /// The slots that would start together with one, of those that may start.
    pub(super) fn lot(&self, id: &WorkflowId, queue: &BTreeSet<InQueue>, first: &InQueue) -> Lot {
        let mut places = vec![first.clone()];
        let batch = self.workflows.get(id).and_then(|workflow| workflow.batch);
        let schedules = self.schedules();
        let (Some(batch), Some(schedule)) = (batch, schedules.get(id)) else { return Lot { places, waits: false } };
        let SlotKey::Time(time) = first.key else { return Lot { places, waits: false } };
        let mut last = time;
        while places.len() < batch.size as usize {
            let Some(next) = after(schedule, last) else { break };
            let place = InQueue { priority: first.priority, at: next, key: SlotKey::Time(next) };
            if !queue.contains(&place) || !self.are_alike(id, time, next) {
                break;
            }
            (last, _) = (next, places.push(place));
        }
        let since =
            places.iter().filter_map(|place| Some(self.slots.get(&SlotRef::new(id.clone(), place.key.clone()))?.since));
        let since = since.min().unwrap_or(Timestamp::MIN);
        let until = since + SignedDuration::from_millis(i64::try_from(batch.delay_millis).unwrap_or(0));
        let beside = [after(schedule, last), before(schedule, time)];
        let comes = || beside.into_iter().flatten().any(|other| self.may_come(id, schedule, (time, other), until));
        let waits = places.len() < batch.size as usize && since <= self.now && self.now < until && comes();
        Lot { places, waits }
    }

    fn are_alike(&self, id: &WorkflowId, one: Timestamp, other: Timestamp) -> bool {
        let likeness = |time| {
            let state = self.slots.get(&SlotRef::at(id.clone(), time))?;
            Some((state.backfill.clone(), state.priority, state.retries, state.again))
        };
        likeness(one).is_some() && likeness(one) == likeness(other)
    }

    /// Whether the slot of a time beside others may be queued until a moment: it waits, or will be planned.
    fn may_come(
        &self,
        id: &WorkflowId,
        schedule: &CronSchedule,
        (like, time): (Timestamp, Timestamp),
        until: Timestamp,
    ) -> bool {
        let slot = SlotRef::at(id.clone(), time);
        let Some(state) = self.slots.get(&slot) else {
            let like = &self.slots[&SlotRef::at(id.clone(), like)];
            let is_plain = like.backfill.is_none() && like.priority == 0 && like.retries == 0;
            let due = if schedule.is_of_periods() { after(schedule, time).unwrap_or(Timestamp::MAX) } else { time };
            return is_plain && self.now <= due && due <= until && self.is_in_bounds(&slot);
        };
        let is_coming = match state.state {
            SlotState::Waiting | SlotState::Held => true,
            SlotState::Backoff => state.due.is_none_or(|due| due <= until),
            _ => false,
        };
        let is_free = !state.alive && !self.is_left_alone(state) && self.is_in_bounds(&slot);
        is_coming && is_free && self.are_alike(id, like, time)
    }
}

fn after(schedule: &CronSchedule, time: Timestamp) -> Option<Timestamp> {
    schedule.times(time, Timestamp::MAX).find(|other| *other > time)
}

fn before(schedule: &CronSchedule, time: Timestamp) -> Option<Timestamp> {
    schedule.times(time - SignedDuration::from_hours(50), time).last()
}
