//! Slots as they were, by their events.

use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::{EventRecord, Slot, SlotRef, slot};
use kelos_store::{Queries, StoreError};

/// The slot at the end of a history, and the event that put it into its state.
pub(crate) fn fold(history: &[EventRecord]) -> Option<(Slot, &EventRecord)> {
    let mut folded: Option<(Slot, &EventRecord)> = None;
    for record in history {
        let Event::Slot { what, .. } = &record.event else { continue };
        let before = folded.as_ref().map(|(slot, _)| slot.clone());
        let Some(after) = slot::apply(before.clone(), what, record.at, record.seq) else { continue };
        let moved = before.is_none_or(|before| before.state != after.state);
        let decision = if moved { record } else { folded.as_ref().map_or(record, |(_, decision)| decision) };
        folded = Some((after, decision));
    }
    folded
}

/// A slot as it was at a past moment; none if there was none.
pub(crate) fn slot_at(reader: &dyn Queries, slot: &SlotRef, at: Timestamp) -> Result<Option<Slot>, StoreError> {
    let history: Vec<_> = reader.history(slot)?.into_iter().filter(|record| record.at <= at).collect();
    Ok(fold(&history).map(|(slot, _)| slot))
}
