//! Dependencies between slots. Most slots depend on one of their own time, or at a fixed distance from it; such a
//! dependency is stored as a number, the same for all slots of a workflow.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, WorkflowId};

use crate::few::Few;
use crate::keyed::SlotMap;
use crate::moments::{millis, moment};

/// A workflow, and the distance of its slot from another slot's time, in milliseconds.
type Distance = (WorkflowId, i64);

/// The numbered distances. They are never removed: there are only as many as definitions have named.
#[derive(Default)]
pub(super) struct Distances {
    numbers: BTreeMap<Distance, u32>,
    named: Vec<Distance>,
}

impl Distances {
    /// The number of the distance to another slot; none unless both have times.
    fn number(&mut self, from: &SlotRef, to: &SlotRef) -> Option<u32> {
        let (SlotKey::Time(from), SlotKey::Time(at)) = (&from.key, &to.key) else { return None };
        let distance = (to.workflow.clone(), millis(*at)?.checked_sub(millis(*from)?)?);
        if let Some(number) = self.numbers.get(&distance) {
            return Some(*number);
        }
        let number = u32::try_from(self.named.len()).ok()?;
        self.named.push(distance.clone());
        self.numbers.insert(distance, number);
        Some(number)
    }

    /// The slot at a distance.
    fn slot(&self, from: &SlotRef, number: u32) -> Option<SlotRef> {
        let (workflow, distance) = self.named.get(usize::try_from(number).ok()?)?;
        let at = millis(from.key.time()?)?.checked_add(*distance)?;
        Some(SlotRef::at(workflow.clone(), moment(at)))
    }
}

/// Dependencies in one direction.
#[derive(Default)]
pub(super) struct Bonds {
    by_distance: SlotMap<Few<u32>>,
    /// Those with an end that has no time.
    others: BTreeMap<SlotRef, BTreeSet<SlotRef>>,
}

impl Bonds {
    pub(super) fn insert(&mut self, from: &SlotRef, to: &SlotRef, distances: &mut Distances) {
        let Some(number) = distances.number(from, to) else {
            self.others.entry(from.clone()).or_default().insert(to.clone());
            return;
        };
        match self.by_distance.get_mut(from) {
            Some(few) => drop(few.insert(number)),
            None => drop(self.by_distance.insert(from, Few::One(number))),
        }
    }

    /// Returns whether there was one.
    pub(super) fn remove(&mut self, from: &SlotRef, to: &SlotRef, distances: &mut Distances) -> bool {
        if let Some(number) = distances.number(from, to) {
            let Some(few) = self.by_distance.get_mut(from) else { return false };
            let was_there = few.remove(&number);
            if few.is_empty() {
                self.by_distance.remove(from);
            }
            was_there
        } else {
            let Some(others) = self.others.get_mut(from) else { return false };
            let was_there = others.remove(to);
            if others.is_empty() {
                self.others.remove(from);
            }
            was_there
        }
    }

    pub(super) fn has_any(&self, from: &SlotRef) -> bool {
        self.by_distance.get(from).is_some() || self.others.contains_key(from)
    }

    /// The other ends, in order; none if one of them can't be computed.
    pub(super) fn of(&self, from: &SlotRef, distances: &Distances) -> Option<BTreeSet<SlotRef>> {
        let near = self.by_distance.get(from).into_iter().flat_map(Few::iter);
        let near = near.map(|number| distances.slot(from, *number));
        near.chain(self.others.get(from).into_iter().flatten().cloned().map(Some)).collect()
    }
}
