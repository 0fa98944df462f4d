//! The slots that a turn has read from the past. Each is read once, and known until the turn settles.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::ranges::{Range, RangeSet};
use kelos_model::{Breach, Invariant, Slot, SlotRef, WorkflowId};

use crate::breaches::Breaches;
use crate::past::PastOf;

/// The slots that were read, including those that do not exist.
#[derive(Default)]
pub(super) struct RecalledSlots {
    /// The slots that are in memory for this turn only.
    slots: BTreeSet<SlotRef>,
    /// The slots that do not exist.
    absent: BTreeSet<SlotRef>,
    /// The ranges that were read completely.
    ranges: BTreeMap<WorkflowId, RangeSet>,
    breaches: Breaches,
}

impl RecalledSlots {
    /// Takes the first breach out, if there is one.
    pub(super) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Whether a slot that is not in memory is known not to exist.
    pub(super) fn is_absent(&self, slot: &SlotRef) -> bool {
        let is_covered = |at| self.ranges.get(&slot.workflow).is_some_and(|ranges| ranges.contains(at));
        self.absent.contains(slot) || slot.key.scheduled().is_some_and(is_covered)
    }

    /// Reads those of some slots that are not known. Returns the existing ones.
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

    /// Reads the unknown parts of a range. Returns the existing slots there.
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

    /// Reads all steps of a run of a flow.
    pub(super) fn read_steps<E>(&mut self, run: &SlotRef, past: PastOf<'_, E>) -> Result<Vec<(SlotRef, Slot)>, E> {
        let rows = past.steps(run)?;
        for (id, _) in &rows {
            let is_of_run = id.workflow == run.workflow && id.key.step().is_some_and(|step| step.run() == run.key);
            self.breaches.check_slot(is_of_run, Invariant::PastAnswersWhatWasAsked, id);
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

    /// Notes that a slot exists.
    pub(super) fn exists(&mut self, slot: &SlotRef) {
        self.absent.remove(slot);
    }

    /// The slots that are in memory for this turn only.
    pub(super) fn into_slots(self) -> BTreeSet<SlotRef> {
        self.slots
    }
}
