//! Positions in the log, and the success of a slot as of one of them.

use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::{SlotEvent, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

/// A position in the log, and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The number of the event.
    pub(super) seq: u64,
    pub(super) at: Timestamp,
}

/// The latest success of a slot up to a position in the log; none if there is none.
pub(super) fn succeeded(reader: &dyn Queries, slot: &SlotRef, to: Moment) -> Result<Option<Moment>, StoreError> {
    let history = reader.history(slot)?;
    let done = |event: &SlotEvent| {
        matches!(
            event,
            SlotEvent::Succeeded { .. }
                | SlotEvent::MarkedSucceeded { .. }
                | SlotEvent::Imported { state: SlotState::Succeeded, .. }
        )
    };
    let found = history.iter().rev().filter(|record| record.seq <= to.seq).find(|record| match &record.event {
        Event::Slot { what, .. } => done(what),
        _ => false,
    });
    Ok(found.map(|record| Moment { seq: record.seq, at: record.at }))
}
