//! Slots that are to be looked at, by workflow: so that one that has many does not keep the others waiting.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, WorkflowId};

/// Slots that something woke.
#[derive(Default)]
pub(crate) struct Dirty {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<SlotKey>>,
}

impl Dirty {
    pub(crate) fn insert(&mut self, slot: SlotRef) -> bool {
        self.by_workflow.entry(slot.workflow).or_default().insert(slot.key)
    }

    pub(crate) fn remove(&mut self, slot: &SlotRef) {
        if let Some(keys) = self.by_workflow.get_mut(&slot.workflow) {
            keys.remove(&slot.key);
            self.tidy(&slot.workflow);
        }
    }

    pub(crate) fn contains(&self, slot: &SlotRef) -> bool {
        self.by_workflow.get(&slot.workflow).is_some_and(|keys| keys.contains(&slot.key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_workflow.is_empty()
    }

    /// The workflows that have any, and theirs in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WorkflowId, &BTreeSet<SlotKey>)> {
        self.by_workflow.iter()
    }

    /// Takes the first slots of a workflow that are as wanted, and no more than so many.
    pub(crate) fn take(&mut self, id: &WorkflowId, most: usize, wanted: impl Fn(&SlotKey) -> bool) -> Vec<SlotRef> {
        let Some(keys) = self.by_workflow.get_mut(id) else { return Vec::new() };
        let taken: Vec<SlotKey> = keys.iter().filter(|key| wanted(key)).take(most).cloned().collect();
        if taken.len() == keys.len() {
            keys.clear();
        }
        for key in &taken {
            keys.remove(key);
        }
        self.tidy(id);
        taken.into_iter().map(|key| SlotRef::new(id.clone(), key)).collect()
    }

    fn tidy(&mut self, id: &WorkflowId) {
        if self.by_workflow.get(id).is_some_and(BTreeSet::is_empty) {
            self.by_workflow.remove(id);
        }
    }
}

impl Extend<SlotRef> for Dirty {
    fn extend<T: IntoIterator<Item = SlotRef>>(&mut self, slots: T) {
        for slot in slots {
            self.insert(slot);
        }
    }
}
