//! Slots that are to be looked at, by workflow: so that one that has many does not keep the others waiting.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, WorkflowId};

/// Slots that something woke and that are not held: [`crate::programs`] keeps those that constraints hold back.
#[derive(Default)]
pub(crate) struct Dirty {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<SlotKey>>,
}

impl Dirty {
    /// Notes a slot.
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

    /// How many a workflow has.
    pub(crate) fn count(&self, id: &WorkflowId) -> usize {
        self.by_workflow.get(id).map_or(0, BTreeSet::len)
    }

    /// The workflows that have any.
    pub(crate) fn workflows(&self) -> impl Iterator<Item = &WorkflowId> {
        self.by_workflow.keys()
    }

    /// Takes the first slots of a workflow, and no more than so many.
    pub(crate) fn take(&mut self, id: &WorkflowId, most: usize) -> Vec<SlotRef> {
        // Of a workflow that nothing woke there is nothing to take.
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
