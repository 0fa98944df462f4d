//! The timers of slots, and the earliest of them. They are kept by workflow, so that one with many due timers does not
//! delay the others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{Breach, Invariant, SlotKey, SlotRef, WorkflowId};

use crate::breaches::Breaches;
use crate::dense::DenseMap;
use crate::keyed::{SlotMap, time_of};
use crate::moments::{millis, moment};

/// At most one timer for each slot.
#[derive(Default)]
pub(super) struct Agenda {
    /// The moment of each timer, in whole milliseconds.
    by_slot: SlotMap<i64>,
    by_workflow: BTreeMap<WorkflowId, Moments>,
    /// The first moment of each workflow.
    firsts: BTreeSet<(i64, WorkflowId)>,
    breaches: Breaches,
}

/// The timers of a workflow's slots, in order.
#[derive(Default)]
struct Moments {
    times: DenseMap<(i64, i64), ()>,
    others: BTreeSet<(i64, SlotKey)>,
}

impl Moments {
    fn first(&self) -> Option<i64> {
        let times = self.times.first().map(|((at, _), ())| *at);
        let others = self.others.first().map(|(at, _)| *at);
        times.into_iter().chain(others).min()
    }

    fn insert(&mut self, at: i64, key: &SlotKey) {
        match time_of(key) {
            Some(time) => drop(self.times.insert((at, time), ())),
            None => drop(self.others.insert((at, key.clone()))),
        }
    }

    /// Returns whether it was there.
    fn remove(&mut self, at: i64, key: &SlotKey) -> bool {
        match time_of(key) {
            Some(time) => self.times.remove(&(at, time)).is_some(),
            None => self.others.remove(&(at, key.clone())),
        }
    }

    /// The key with the earliest moment.
    fn first_key(&self) -> Option<SlotKey> {
        let times = self.times.first().map(|((at, time), ())| (*at, SlotKey::Time(moment(*time))));
        let others = self.others.first().cloned();
        times.into_iter().chain(others).min().map(|(_, key)| key)
    }
}

/// A moment in whole milliseconds, rounded up.
fn ceiling(at: Timestamp) -> i64 {
    millis(at).unwrap_or_else(|| at.as_millisecond().saturating_add(i64::from(at.subsec_nanosecond() > 0)))
}

impl Agenda {
    /// Sets the timer of a slot, and replaces an earlier one.
    pub(super) fn set(&mut self, slot: &SlotRef, at: Timestamp) {
        let at = ceiling(at);
        match self.by_slot.insert(slot, at) {
            Some(before) if before == at => return,
            Some(before) => self.take_out(slot, before),
            None => {}
        }
        let all = match self.by_workflow.get_mut(&slot.workflow) {
            Some(all) => all,
            None => self.by_workflow.entry(slot.workflow.clone()).or_default(),
        };
        let first = all.first();
        all.insert(at, &slot.key);
        if first.is_none_or(|first| at < first) {
            self.move_first(&slot.workflow, first, Some(at));
        }
    }

    /// Clears the timer of a slot.
    pub(super) fn clear(&mut self, slot: &SlotRef) {
        if let Some(at) = self.by_slot.remove(slot) {
            self.take_out(slot, at);
        }
    }

    fn take_out(&mut self, slot: &SlotRef, at: i64) {
        let was_there = self.by_workflow.get_mut(&slot.workflow).is_some_and(|all| all.remove(at, &slot.key));
        let Some(all) = self.by_workflow.get(&slot.workflow).filter(|_| was_there) else {
            return self.breaches.report_slot(Invariant::TimersAreSet, slot);
        };
        let first = all.first();
        if first.is_none() {
            self.by_workflow.remove(&slot.workflow);
        }
        if first.is_none_or(|first| at < first) {
            self.move_first(&slot.workflow, Some(at), first);
        }
    }

    fn move_first(&mut self, workflow: &WorkflowId, before: Option<i64>, now: Option<i64>) {
        if let Some(before) = before
            && !self.firsts.remove(&(before, workflow.clone()))
        {
            self.breaches.report(Invariant::TimersAreSet, workflow);
        }
        if let Some(now) = now {
            self.firsts.insert((now, workflow.clone()));
        }
    }

    /// The moment of a slot's timer.
    pub(super) fn get(&self, slot: &SlotRef) -> Option<Timestamp> {
        self.by_slot.get(slot).map(|at| moment(*at))
    }

    /// Moves the timers of some slots by a span.
    pub(super) fn shift(&mut self, by: SignedDuration, which: impl Fn(&SlotRef) -> bool) {
        let moved = self.by_slot.iter().filter(|(slot, _)| which(slot));
        for (slot, at) in moved.map(|(slot, at)| (slot, moment(*at))).collect::<Vec<_>>() {
            if let Ok(at) = at.checked_add(by) {
                self.set(&slot, at);
            }
        }
    }

    /// The workflows with due timers, and the first moment of each.
    pub(super) fn due(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, &WorkflowId)> {
        self.firsts.iter().map(|(at, id)| (moment(*at), id)).take_while(move |(at, _)| *at <= now)
    }

    /// The earliest moment.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.firsts.first().map(|(at, _)| moment(*at))
    }

    /// The first moment of a workflow.
    pub(super) fn first_of(&self, workflow: &WorkflowId) -> Option<Timestamp> {
        self.by_workflow.get(workflow)?.first().map(moment)
    }

    /// Takes the slot of a workflow with the earliest timer.
    pub(super) fn pop(&mut self, workflow: &WorkflowId) -> Option<SlotRef> {
        let Some(key) = self.by_workflow.get(workflow).and_then(Moments::first_key) else {
            self.breaches.report(Invariant::TimersAreSet, workflow);
            return None;
        };
        let slot = SlotRef::new(workflow.clone(), key);
        if self.by_slot.get(&slot).is_none() {
            // It would stay the first forever.
            self.breaches.report_slot(Invariant::TimersAreSet, &slot);
            return None;
        }
        self.clear(&slot);
        Some(slot)
    }

    /// Takes the first breach out, if there is one.
    pub(super) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> SlotRef {
        SlotRef::at("wf".parse().expect("an id"), Timestamp::UNIX_EPOCH)
    }

    fn agenda() -> Agenda {
        let mut agenda = Agenda::default();
        agenda.set(&slot(), Timestamp::UNIX_EPOCH);
        agenda
    }

    #[test]
    fn a_moment_that_stands_in_no_order_is_a_breach() {
        let mut agenda = agenda();
        agenda.by_workflow.clear();
        agenda.clear(&slot());
        assert_eq!(agenda.take_breach(), Some(Breach::of_slot(Invariant::TimersAreSet, &slot())));
    }

    #[test]
    fn a_slot_that_is_first_and_set_to_nothing_is_a_breach() {
        let mut agenda = agenda();
        agenda.by_slot.remove(&slot());
        assert_eq!(agenda.pop(&slot().workflow), None);
        assert_eq!(agenda.take_breach(), Some(Breach::of_slot(Invariant::TimersAreSet, &slot())));
    }

    #[test]
    fn what_is_set_comes_and_goes_without_a_breach() {
        let mut agenda = agenda();
        agenda.set(&slot(), Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1));
        assert_eq!(agenda.pop(&slot().workflow), Some(slot()));
        agenda.clear(&slot());
        assert_eq!(agenda.take_breach(), None);
    }
}
