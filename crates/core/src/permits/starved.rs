//! The workflows that only the limit on all runs holds back, and the order in which they are served.
//!
//! Each place that comes free goes by one of two rules, in turn: to the workflow that has waited longest, or to the one whose next slot
//! has the latest time. By the first alone, a workflow that is on time would wait for a turn of all those that catch up with their past;
//! by the second alone, these would wait for ever beside one that always has a new slot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::queue_id::QueueId;
use crate::filter::{WorkflowFilter, allows};

/// The workflows that the limit on all runs holds back.
#[derive(Default)]
pub(super) struct HeldBack {
    /// Counts arrivals.
    arrivals: u64,
    by_arrival: BTreeMap<u64, QueueId>,
    /// Those whose next slot has a time; of one time the one that has waited longest comes last.
    by_time: BTreeSet<(Timestamp, Reverse<u64>)>,
    /// Their arrivals, and the times of their next slots.
    known: BTreeMap<QueueId, (u64, Option<Timestamp>)>,
    /// Whether the next place goes to the one with the latest time.
    is_latest_next: bool,
}

impl HeldBack {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds a workflow, whose next slot has a time, behind all others; one that waits already keeps its place.
    pub(super) fn add(&mut self, id: &QueueId, time: Option<Timestamp>) {
        if self.known.contains_key(id) {
            return;
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.by_arrival.insert(arrival, id.clone());
        self.known.insert(id.clone(), (arrival, time));
        self.by_time.extend(time.map(|time| (time, Reverse(arrival))));
    }

    /// Takes note of the time of a workflow's next slot, if it waits here.
    pub(super) fn note_next(&mut self, id: &QueueId, time: Option<Timestamp>) {
        let Some((arrival, known)) = self.known.get_mut(id) else { return };
        if let Some(before) = std::mem::replace(known, time) {
            self.by_time.remove(&(before, Reverse(*arrival)));
        }
        self.by_time.extend(time.map(|time| (time, Reverse(*arrival))));
    }

    /// Takes the workflow out that is served next, of those that are allowed.
    pub(super) fn take_next(&mut self, only: &WorkflowFilter) -> Option<QueueId> {
        let arrival = self.next(only)?;
        let id = self.by_arrival.remove(&arrival)?;
        if let Some((_, Some(time))) = self.known.remove(&id) {
            self.by_time.remove(&(time, Reverse(arrival)));
        }
        self.is_latest_next = !self.is_latest_next;
        Some(id)
    }

    fn next(&self, only: &WorkflowFilter) -> Option<u64> {
        let is_allowed = |id: &QueueId| allows(only, &id.workflow);
        let mut by_time = self.by_time.iter().rev().map(|(_, Reverse(arrival))| *arrival);
        let latest = by_time.find(|arrival| self.by_arrival.get(arrival).is_some_and(is_allowed));
        let longest = || self.by_arrival.iter().find(|(_, id)| is_allowed(id)).map(|(arrival, _)| *arrival);
        latest.filter(|_| self.is_latest_next).or_else(longest)
    }

    /// All of them, in the order in which they are served if no other comes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueueId> {
        let mut longest = self.by_arrival.keys().copied();
        let mut latest = self.by_time.iter().rev().map(|(_, Reverse(arrival))| *arrival);
        let (mut order, mut passed, mut is_latest_next) = (Vec::new(), BTreeSet::new(), self.is_latest_next);
        loop {
            let by_time = if is_latest_next { latest.find(|arrival| !passed.contains(arrival)) } else { None };
            let next = by_time.or_else(|| longest.find(|arrival| !passed.contains(arrival)));
            let Some(next) = next else { break };
            is_latest_next = !is_latest_next;
            passed.insert(next);
            order.extend(self.by_arrival.get(&next));
        }
        order.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueId {
        QueueId::from(&name.parse::<kelos_model::WorkflowId>().unwrap())
    }

    fn starved(all: &[(&str, Option<i64>)]) -> HeldBack {
        let mut starved = HeldBack::default();
        for (name, time) in all {
            starved.add(&queue(name), time.map(|second| Timestamp::from_second(second).unwrap()));
        }
        starved
    }

    fn served(mut starved: HeldBack) -> String {
        let told: Vec<QueueId> = starved.iter().cloned().collect();
        let taken: Vec<QueueId> = std::iter::from_fn(|| starved.take_next(&None)).collect();
        assert_eq!(told, taken);
        assert!(starved.is_empty() && starved.by_time.is_empty() && starved.by_arrival.is_empty());
        taken.iter().map(|id| id.workflow.as_str()).collect()
    }

    #[test]
    fn places_go_in_turn_to_who_waits_longest_and_to_the_latest_time() {
        assert_eq!(served(starved(&[("a", Some(1)), ("b", Some(2)), ("c", Some(3)), ("d", Some(9))])), "adbc");
        assert_eq!(served(starved(&[("a", Some(5)), ("b", Some(5)), ("c", Some(5))])), "abc", "of one time in order");
        assert_eq!(served(starved(&[("a", None), ("b", None), ("c", Some(1)), ("d", None)])), "acbd");
    }

    #[test]
    fn one_that_waits_keeps_its_place_and_its_next_slot_counts() {
        let mut all = starved(&[("a", Some(1)), ("b", Some(2)), ("c", Some(3)), ("d", Some(4))]);
        all.add(&queue("b"), Some(Timestamp::MAX));
        all.note_next(&queue("d"), None);
        all.note_next(&queue("b"), Some(Timestamp::MAX));
        all.note_next(&queue("x"), Some(Timestamp::MAX));
        assert_eq!(served(all), "abcd");
    }

    #[test]
    fn those_that_are_not_allowed_stay() {
        let mut all = starved(&[("a", Some(1)), ("b", Some(2))]);
        let only: WorkflowFilter = Some(std::sync::Arc::new(["b".parse().unwrap()].into()));
        assert_eq!(all.take_next(&only), Some(queue("b")));
        assert_eq!(all.take_next(&only), None);
        assert_eq!(served(all), "a");
    }
}
