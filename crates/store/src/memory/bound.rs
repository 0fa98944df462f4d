//! The bound of a memory: of the slots that have ended it keeps the last ones.
//!
//! What goes are the events of a slot and of its steps, and their runs. A slot that came to be by a request goes as a whole. That of a time of
//! a schedule stays, and so do its outputs, for what depends on it.

use std::collections::VecDeque;

use kelos_model::SlotRef;

use crate::contract::SlotRow;

/// The slots that have ended, in this order, each with the position of its last event.
#[derive(Debug, Clone)]
pub(super) struct EndedSlots {
    most: usize,
    ended: VecDeque<(SlotRef, u64)>,
}

impl EndedSlots {
    /// A bound of so many ended slots.
    pub(super) fn new(most: usize) -> EndedSlots {
        EndedSlots { most, ended: VecDeque::new() }
    }

    /// Takes note of a slot that was written.
    pub(super) fn note(&mut self, row: &SlotRow) {
        if row.slot.state.is_final() && !row.slot.run_alive && row.id.key.step().is_none() {
            self.ended.push_back((row.id.clone(), row.slot.last_event));
        }
    }

    /// The slots that go, if there are enough of them to be worth a look.
    pub(super) fn beyond(&mut self) -> Vec<(SlotRef, u64)> {
        let enough = self.most + (self.most / 10).max(1);
        let going = if self.ended.len() < enough { 0 } else { self.ended.len() - self.most };
        self.ended.drain(..going).collect()
    }
}
