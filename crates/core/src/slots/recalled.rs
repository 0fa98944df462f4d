//! The slots of the past that a turn has read: each is read once, and known until the turn settles.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::ranges::{Range, RangeSet};
use kelos_model::{Breach, Invariant, Slot, SlotRef, WorkflowId};

use crate::breaches::Breaches;
use crate::past::PastOf;

/// The slots that were read, and those of them that do not exist.
#[derive(Default)]
pub(super) struct RecalledSlots {
    /// Slots that were brought into memory for this turn only.
    slots: BTreeSet<SlotRef>,
    /// Slots that do not exist.
    absent: BTreeSet<SlotRef>,
    /// Ranges of which all slots were brought into memory.
    ranges: BTreeMap<WorkflowId, RangeSet>,
    breaches: Breaches,
}

impl RecalledSlots {
    /// Takes out what broke.
    pub(super) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Whether a slot that is not in memory is known not to exist.
    pub(super) fn is_absent(&self, slot: &SlotRef) -> bool {
        let is_covered = |at| self.ranges.get(&slot.workflow).is_some_and(|ranges| ranges.contains(at));
        self.absent.contains(slot) || slot.key.time().is_some_and(is_covered)
    }

    /// Reads slots of which nothing is known; gives those that exist.
    pub(super) fn read<E>(
        &mut self,
        unknown: BTreeSet<SlotRef>,
        past: PastOf<'_, E>,
    ) -> Result<Vec<(SlotRef, Slot)>, E> {
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<SlotRef> = unknown.into_iter().collect();
        let rows = past.slots(&ids)?;
        for (id, _) in &rows {
            self.breaches.check_slot(ids.binary_search(id).is_ok(), Invariant::PastAnswersWhatWasAsked, id);
        }
        self.absent.extend(ids);
        self.note(&rows);
        Ok(rows)
    }

    /// Reads what is not known of a range; gives the slots that exist there.
    pub(super) fn read_range<E>(
        &mut self,
        workflow: &WorkflowId,
        range: Range,
        past: PastOf<'_, E>,
    ) -> Result<Vec<(SlotRef, Slot)>, E> {
        let known = self.ranges.entry(workflow.clone()).or_default();
        let mut rows = Vec::new();
        for gap in known.gaps(range) {
            let of_gap = past.range(workflow, gap)?;
            for (id, _) in &of_gap {
                let is_inside = id.workflow == *workflow && id.key.time().is_some_and(|at| gap.contains(at));
                self.breaches.check_slot(is_inside, Invariant::PastAnswersWhatWasAsked, id);
            }
            rows.extend(of_gap);
            known.insert(gap);
        }
        self.note(&rows);
        Ok(rows)
    }

    fn note(&mut self, rows: &[(SlotRef, Slot)]) {
        for (id, _) in rows {
            self.absent.remove(id);
            self.slots.insert(id.clone());
        }
    }

    /// Notes that a slot exists from now on.
    pub(super) fn exists(&mut self, slot: &SlotRef) {
        self.absent.remove(slot);
    }

    /// The slots that were brought into memory for this turn.
    pub(super) fn into_slots(self) -> BTreeSet<SlotRef> {
        self.slots
    }
}
