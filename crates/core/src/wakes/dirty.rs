//! Slots to be evaluated, by workflow, so that one with many of them does not delay the others.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, WorkflowId};

use crate::budget::Budget;
use crate::filter::{WorkflowFilter, allows};
use crate::rota::Rota;

/// Slots that something woke and that are not held; held ones are in [`crate::programs`].
#[derive(Default)]
pub(crate) struct Dirty {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<SlotKey>>,
    /// The order of the workflows when a tick can't serve them all.
    order: Rota<WorkflowId>,
}

impl Dirty {
    /// Adds a slot.
    pub(crate) fn insert(&mut self, slot: SlotRef) {
        self.by_workflow.entry(slot.workflow).or_default().insert(slot.key);
    }

    pub(crate) fn remove(&mut self, slot: &SlotRef) {
        if let Some(keys) = self.by_workflow.get_mut(&slot.workflow) {
            keys.remove(&slot.key);
            self.tidy(&slot.workflow);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_workflow.is_empty()
    }

    /// The number of slots of a workflow.
    pub(crate) fn count(&self, id: &WorkflowId) -> usize {
        self.by_workflow.get(id).map_or(0, BTreeSet::len)
    }

    /// The workflows with such slots.
    pub(crate) fn workflows(&self) -> impl Iterator<Item = &WorkflowId> {
        self.by_workflow.keys()
    }

    /// Takes slots of the workflows that a tick includes, a share of each. When they are too many, those with the latest times and those
    /// that have waited longest go first.
    pub(crate) fn take_share(&mut self, only: &WorkflowFilter, looks: &mut Budget) -> Vec<SlotRef> {
        if !looks.is_for_all() {
            return self.take_in_turn(only, looks);
        }
        self.order.clear();
        let woken: Vec<WorkflowId> = self.workflows().filter(|id| allows(only, id)).cloned().collect();
        let mut taken = Vec::new();
        for id in woken {
            let of_it = self.take(&id, looks.of(&id));
            looks.use_up(id, of_it.len());
            taken.extend(of_it);
        }
        taken
    }

    fn take_in_turn(&mut self, only: &WorkflowFilter, looks: &mut Budget) -> Vec<SlotRef> {
        let mut taken = Vec::new();
        if !looks.is_left() {
            return taken;
        }
        let first_time = |keys: &BTreeSet<SlotKey>| keys.first().and_then(SlotKey::scheduled);
        self.order.line_up(self.by_workflow.keys(), |id| self.by_workflow.get(id).and_then(first_time));
        while looks.is_left()
            && let Some(id) = self.order.take_next(|id| allows(only, id))
        {
            let of_it = self.take(&id, looks.of(&id));
            self.order.charge(of_it.len());
            looks.use_up(id, of_it.len());
            taken.extend(of_it);
        }
        taken
    }

    /// Whether any slot may be taken of the workflows that a tick includes.
    pub(crate) fn has_share(&self, only: &WorkflowFilter, looks: &Budget) -> bool {
        looks.is_left() && self.workflows().any(|id| allows(only, id) && looks.of(id) > 0)
    }

    /// Takes the first slots of a workflow, up to a limit.
    fn take(&mut self, id: &WorkflowId, most: usize) -> Vec<SlotRef> {
        // A workflow that nothing woke has none.
        let Some(keys) = self.by_workflow.get_mut(id) else { return Vec::new() };
        let taken: Vec<SlotKey> = std::iter::from_fn(|| keys.pop_first()).take(most).collect();
        self.tidy(id);
        taken.into_iter().map(|key| SlotRef::new(id.clone(), key)).collect()
    }

    fn tidy(&mut self, id: &WorkflowId) {
        if self.by_workflow.get(id).is_some_and(BTreeSet::is_empty) {
            self.by_workflow.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn slot(workflow: &str, second: i64) -> SlotRef {
        SlotRef::at(workflow.parse().expect("an id"), Timestamp::from_second(second).expect("a time"))
    }

    #[test]
    fn each_workflow_has_its_share_of_a_tick_the_oldest_slots_first() {
        let mut dirty = Dirty::default();
        [slot("a", 3), slot("a", 1), slot("a", 2), slot("b", 9)].into_iter().for_each(|one| dirty.insert(one));
        let mut looks = Budget::new(4, 2);
        assert_eq!(dirty.take_share(&None, &mut looks), [slot("a", 1), slot("a", 2), slot("b", 9)]);
        assert!(!dirty.has_share(&None, &looks), "its share is used up");
        assert!(dirty.has_share(&None, &Budget::new(4, 2)), "and in the next tick it has another");
        assert_eq!(dirty.count(&slot("a", 3).workflow), 1);
    }

    #[test]
    fn of_too_many_workflows_those_with_the_latest_slot_and_those_that_wait_longest_go_first() {
        let mut dirty = Dirty::default();
        let slots = [slot("a", 1), slot("a", 2), slot("b", 1), slot("c", 1), slot("d", 9)];
        slots.into_iter().for_each(|one| dirty.insert(one));
        assert_eq!(dirty.take_share(&None, &mut Budget::new(2, 4)), [slot("a", 1), slot("d", 9)]);
        let mut looks = Budget::new(2, 3);
        assert_eq!(dirty.take_share(&None, &mut looks), [slot("b", 1), slot("a", 2)]);
        assert!(!dirty.has_share(&None, &looks), "the tick has done enough");
        assert_eq!(dirty.take_share(&None, &mut Budget::new(2, 1)), [slot("c", 1)]);
    }
}
