//! Slots to be evaluated, by workflow, so that one with many of them does not delay the others.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, WorkflowId};

use crate::budget::Budget;
use crate::filter::{WorkflowFilter, allows};

/// Slots that something woke and that are not held; held ones are in [`crate::programs`].
#[derive(Default)]
pub(crate) struct Dirty {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<SlotKey>>,
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

    /// Takes slots of the workflows that a tick includes, a share of each.
    pub(crate) fn take_share(&mut self, only: &WorkflowFilter, looks: &mut Budget) -> Vec<SlotRef> {
        let woken: Vec<WorkflowId> = self.workflows().filter(|id| allows(only, id)).cloned().collect();
        let mut taken = Vec::new();
        for id in woken {
            let of_it = self.take(&id, looks.of(&id));
            looks.use_up(id, of_it.len());
            taken.extend(of_it);
        }
        taken
    }

    /// Whether any slot may be taken of the workflows that a tick includes.
    pub(crate) fn has_share(&self, only: &WorkflowFilter, looks: &Budget) -> bool {
        self.workflows().any(|id| allows(only, id) && looks.of(id) > 0)
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
}
