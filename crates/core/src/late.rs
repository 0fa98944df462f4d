//! Deadlines: a slot that has not succeeded when its deadline passes is late. That is recorded once for each opening, and changes nothing
//! else. A slot whose deadline can pass has one timer; times in a backlog have none, and are late once they have slots of their own.

use jiff::Timestamp;
use kelos_model::{SlotEvent, SlotRef};

use crate::Core;

impl Core {
    /// Sets the timer for the deadline of a slot, or clears it where there is nothing to record.
    pub(crate) fn watch_deadline(&mut self, id: &SlotRef) {
        match self.open_deadline(id) {
            Some(at) => self.wakes.watch_deadline(id, at),
            None => self.wakes.forget_deadline(id),
        }
    }

    /// The deadline that a slot can still miss, or has missed without a record.
    fn open_deadline(&self, id: &SlotRef) -> Option<Timestamp> {
        let definition = self.workflows.get(&id.workflow)?.definition();
        if definition.deadline.is_none() || self.slots.is_planned(id) {
            return None;
        }
        let live = self.slots.get(id)?;
        let is_open = !live.slot.state.is_final() && live.slot.late.is_none();
        definition.deadline_of(&id.key, &live.slot).filter(|_| is_open)
    }

    /// Records that a slot is late, whose timer has fired. A slot that is left alone is not; whatever has it scheduled again wakes it, which
    /// sets the timer again.
    pub(crate) fn pass_deadline(&mut self, id: &SlotRef) {
        let Some(workflow) = self.workflows.known(&id.workflow) else { return };
        let Some(live) = self.slots.get(id) else { return };
        let is_left_alone = live.slot.state.is_idle() && workflow.dormant(&id.key, Some(&live.slot)).is_some();
        if !is_left_alone && !workflow.is_frozen() {
            self.note_late(id);
        }
    }

    /// Records that a slot is late, if its deadline has passed.
    fn note_late(&mut self, id: &SlotRef) {
        if let Some(deadline) = self.open_deadline(id).filter(|at| *at <= self.now) {
            self.record(id, SlotEvent::Late { deadline });
        }
    }

    /// Records that a slot is late before the end of its run is: its report may come in the same turn as the timer.
    pub(crate) fn note_late_before(&mut self, id: &SlotRef, what: &SlotEvent) {
        if matches!(what, SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } | SlotEvent::Failed { .. }) {
            self.note_late(id);
        }
    }
}
