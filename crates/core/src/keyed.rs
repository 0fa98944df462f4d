//! Maps over slots, for millions of them: a time takes eight bytes, and the name of a workflow is stored once.

use std::collections::BTreeMap;

use kelos_model::{SlotKey, SlotRef, WorkflowId};

use crate::dense::DenseMap;
use crate::moments::{millis, moment};

/// A map over the keys of a workflow, in their order.
#[derive(Debug, Clone)]
pub(crate) struct KeyMap<V> {
    times: DenseMap<i64, V>,
    others: BTreeMap<SlotKey, V>,
}

impl<V> Default for KeyMap<V> {
    fn default() -> Self {
        KeyMap { times: DenseMap::default(), others: BTreeMap::new() }
    }
}

/// The milliseconds of a time key, by which [`DenseMap`] stores it; none for other keys.
pub(crate) fn time_of(key: &SlotKey) -> Option<i64> {
    match key {
        SlotKey::Time(at) => millis(*at),
        _ => None,
    }
}

impl<V> KeyMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.times.len() + self.others.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty() && self.others.is_empty()
    }

    pub(crate) fn get(&self, key: &SlotKey) -> Option<&V> {
        match time_of(key) {
            Some(time) => self.times.get(&time),
            None => self.others.get(key),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &SlotKey) -> Option<&mut V> {
        match time_of(key) {
            Some(time) => self.times.get_mut(&time),
            None => self.others.get_mut(key),
        }
    }

    pub(crate) fn insert(&mut self, key: &SlotKey, value: V) -> Option<V> {
        match time_of(key) {
            Some(time) => self.times.insert(time, value),
            None => self.others.insert(key.clone(), value),
        }
    }

    pub(crate) fn remove(&mut self, key: &SlotKey) -> Option<V> {
        match time_of(key) {
            Some(time) => self.times.remove(&time),
            None => self.others.remove(key),
        }
    }

    /// All entries, in the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotKey, &V)> + Clone {
        let times = self.times.iter().map(|(time, value)| (SlotKey::Time(moment(*time)), value));
        times.chain(self.others.iter().map(|(key, value)| (key.clone(), value)))
    }

    /// All values, mutable.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.times.iter_mut().map(|(_, value)| value).chain(self.others.values_mut())
    }
}

/// A map over slots, by workflow and key.
#[derive(Debug, Clone)]
pub(crate) struct SlotMap<V> {
    workflows: BTreeMap<WorkflowId, KeyMap<V>>,
}

impl<V> Default for SlotMap<V> {
    fn default() -> Self {
        SlotMap { workflows: BTreeMap::new() }
    }
}

impl<V> SlotMap<V> {
    pub(crate) fn get(&self, slot: &SlotRef) -> Option<&V> {
        self.workflows.get(&slot.workflow)?.get(&slot.key)
    }

    pub(crate) fn get_mut(&mut self, slot: &SlotRef) -> Option<&mut V> {
        self.workflows.get_mut(&slot.workflow)?.get_mut(&slot.key)
    }

    pub(crate) fn insert(&mut self, slot: &SlotRef, value: V) -> Option<V> {
        match self.workflows.get_mut(&slot.workflow) {
            Some(keys) => keys.insert(&slot.key, value),
            None => self.workflows.entry(slot.workflow.clone()).or_default().insert(&slot.key, value),
        }
    }

    pub(crate) fn remove(&mut self, slot: &SlotRef) -> Option<V> {
        let keys = self.workflows.get_mut(&slot.workflow)?;
        let value = keys.remove(&slot.key);
        if keys.is_empty() {
            self.workflows.remove(&slot.workflow);
        }
        value
    }

    /// All entries, by workflow and key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotRef, &V)> {
        self.workflows
            .iter()
            .flat_map(|(id, keys)| keys.iter().map(move |(key, value)| (SlotRef::new(id.clone(), key), value)))
    }
}
