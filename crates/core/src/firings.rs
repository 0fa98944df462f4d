//! Cron times of triggers. Each one that passes is a fact for the workflow that waits for it, and for no other.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{Breach, Invariant, WorkflowId};

use crate::breaches::Breaches;

/// The next cron time of each workflow's trigger, in one order for all workflows, and the numbers that the turn has
/// counted.
#[derive(Default)]
pub(crate) struct Firings {
    by_workflow: BTreeMap<WorkflowId, Timestamp>,
    in_order: BTreeSet<(Timestamp, WorkflowId)>,
    /// The number of cron times that the turn has counted for each program.
    counted: BTreeMap<WorkflowId, usize>,
    /// The moment up to which the turn has counted all passed times.
    counted_at: Option<Timestamp>,
    breaches: Breaches,
}

impl Firings {
    /// Sets the next cron time of a workflow; none if it waits for none.
    pub(crate) fn set(&mut self, id: &WorkflowId, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.by_workflow.insert(id.clone(), at),
            None => self.by_workflow.remove(id),
        };
        if let Some(before) = before
            && !self.in_order.remove(&(before, id.clone()))
        {
            self.breaches.report(Invariant::TimersAreSet, id);
        }
        self.in_order.extend(at.map(|at| (at, id.clone())));
    }

    /// The workflows whose cron time has passed, in order.
    pub(crate) fn passed(&self, now: Timestamp) -> BTreeSet<(Timestamp, WorkflowId)> {
        self.in_order.iter().take_while(|(at, _)| *at <= now).cloned().collect()
    }

    /// The next cron time of a workflow, if it has passed.
    pub(crate) fn passed_of(&self, id: &WorkflowId, now: Timestamp) -> Option<Timestamp> {
        self.by_workflow.get(id).copied().filter(|at| *at <= now)
    }

    /// Uses one of the cron times that a program may count in a turn. Returns whether there was one left.
    pub(crate) fn use_up(&mut self, program: &WorkflowId, most: usize) -> bool {
        let counted = self.counted.entry(program.clone()).or_default();
        let may = *counted < most;
        *counted += usize::from(may);
        may
    }

    /// The number of cron times that the turn has counted.
    pub(crate) fn count(&self) -> usize {
        self.counted.values().sum()
    }

    /// Notes that the turn counts all times up to a moment. Returns whether it had not done so before.
    pub(crate) fn begin(&mut self, now: Timestamp) -> bool {
        self.counted_at.replace(now) != Some(now)
    }

    /// The earliest cron time.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// Ends a turn.
    pub(crate) fn settle(&mut self) {
        self.counted.clear();
        self.counted_at = None;
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> WorkflowId {
        name.parse().expect("an id")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn moments_come_in_one_order_whoever_has_them() {
        let mut firings = Firings::default();
        firings.set(&id("b"), Some(at(5)));
        firings.set(&id("a"), Some(at(9)));
        firings.set(&id("c"), Some(at(7)));
        firings.set(&id("a"), Some(at(6)));
        firings.set(&id("c"), None);
        assert_eq!(firings.passed(at(6)), BTreeSet::from([(at(5), id("b")), (at(6), id("a"))]));
        assert_eq!((firings.next(), firings.passed_of(&id("a"), at(5))), (Some(at(5)), None));
        assert_eq!(firings.take_breach(), None);
    }

    #[test]
    fn a_program_counts_no_more_than_its_share_in_a_turn() {
        let mut firings = Firings::default();
        assert_eq!([1, 2, 3].map(|_| firings.use_up(&id("p"), 2)), [true, true, false]);
        assert!(firings.use_up(&id("q"), 2), "another program has a share of its own");
        assert_eq!(firings.count(), 3);
        assert_eq!([at(1), at(1), at(2)].map(|now| firings.begin(now)), [true, false, true]);
        firings.settle();
        assert!(firings.use_up(&id("p"), 2) && firings.begin(at(2)), "the next turn counts anew");
    }

    #[test]
    fn a_moment_that_stands_in_no_order_is_a_breach() {
        let mut firings = Firings::default();
        firings.set(&id("a"), Some(at(5)));
        firings.in_order.clear();
        firings.set(&id("a"), None);
        assert_eq!(firings.take_breach(), Some(Breach::of(Invariant::TimersAreSet, &id("a"))));
    }
}
