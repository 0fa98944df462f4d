//! Which slots wait for which others, and what is known of those.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{SlotRef, SlotState};

/// A slot that others look at.
#[derive(Default)]
struct Watched {
    /// Its state, an inner none where it does not exist; an outer none until the past has been read.
    known: Option<Option<SlotState>>,
    /// Since when it is in that state.
    since: Option<Timestamp>,
    dependents: BTreeSet<SlotRef>,
}

#[derive(Default)]
pub(crate) struct Upstream {
    watched: BTreeMap<SlotRef, Watched>,
}

impl Upstream {
    pub(crate) fn known(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        self.watched.get(slot)?.known
    }

    /// Since when a slot is in the state that is known of it.
    pub(crate) fn since(&self, slot: &SlotRef) -> Option<Timestamp> {
        self.watched.get(slot)?.since
    }

    /// Makes `dependent` a listener; says whether the state is not known and must be asked for.
    pub(crate) fn watch(
        &mut self,
        slot: &SlotRef,
        dependent: &SlotRef,
        in_memory: Option<(SlotState, Timestamp)>,
    ) -> bool {
        let watched = self.watched.entry(slot.clone()).or_default();
        watched.dependents.insert(dependent.clone());
        if let Some((state, since)) = in_memory {
            watched.known = Some(Some(state));
            watched.since = Some(since);
        }
        watched.known.is_none()
    }

    pub(crate) fn unwatch(&mut self, slot: &SlotRef, dependent: &SlotRef) {
        if let Some(watched) = self.watched.get_mut(slot) {
            watched.dependents.remove(dependent);
            if watched.dependents.is_empty() {
                self.watched.remove(slot);
            }
        }
    }

    /// Those who look at a job that does not exist.
    pub(crate) fn lookers_for_nothing(&self) -> impl Iterator<Item = &SlotRef> {
        let absent = self.watched.iter().filter(|(slot, one)| slot.key.job().is_some() && one.known == Some(None));
        absent.flat_map(|(_, one)| &one.dependents)
    }

    /// Notes a state and since when it holds; gives the listeners if that is news to them.
    pub(crate) fn learn(&mut self, slot: &SlotRef, state: Option<SlotState>, since: Option<Timestamp>) -> Vec<SlotRef> {
        match self.watched.get_mut(slot) {
            Some(watched) if watched.known != Some(state) => {
                watched.known = Some(state);
                watched.since = since;
                watched.dependents.iter().cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}
