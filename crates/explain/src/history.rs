//! Slots as they were, by their events.

use jiff::Timestamp;
use kelos_model::event::Event;
use kelos_model::{EventRecord, Slot, SlotEvent, SlotRef, SlotState, slot};
use kelos_store::{Queries, StoreError};

/// The slot at the end of a history, and the event that put it into its state.
pub(crate) fn fold(history: &[EventRecord]) -> Option<(Slot, &EventRecord)> {
    let mut folded: Option<(Slot, &EventRecord)> = None;
    for record in history {
        let Event::Slot { what, .. } = &record.event else { continue };
        let before = folded.as_ref().map(|(slot, _)| slot.clone()).or_else(|| before_removal(history));
        let Some(after) = slot::apply(before.clone(), what, record.at, record.seq) else { continue };
        let moved = before.is_none_or(|before| before.state != after.state);
        let decision = if moved { record } else { folded.as_ref().map_or(record, |(_, decision)| decision) };
        folded = Some((after, decision));
    }
    folded
}

/// A slot before the oldest of its events that is left, if older ones were removed: it had ended in some way, after the run before the
/// next one.
fn before_removal(history: &[EventRecord]) -> Option<Slot> {
    let first = history.first().filter(|first| first.previous > 0)?;
    let next = history.iter().find_map(|record| match &record.event {
        Event::Slot { what: SlotEvent::Dispatched { run, .. }, .. } => Some(*run),
        _ => None,
    });
    let last_run = next.map_or(0, |next| next.saturating_sub(1));
    Some(Slot { last_event: first.previous, last_run, ..Slot::new(SlotState::Killed, first.at) })
}

/// The remaining knowledge of a slot whose history was removed.
pub(crate) struct Remains {
    /// The slot as it is now.
    pub(crate) now: Slot,
    /// Whether nothing is left of its history, so that nothing has happened to it since.
    pub(crate) is_all: bool,
    /// The moment up to which history may be incomplete.
    pub(crate) until: Timestamp,
}

/// The remaining knowledge of a slot whose history, which is given, lacks its beginning; none if all of it is there.
pub(crate) fn remains(
    reader: &dyn Queries,
    slot: &SlotRef,
    history: &[EventRecord],
) -> Result<Option<Remains>, StoreError> {
    if !reader.lacks_history(slot, history)? {
        return Ok(None);
    }
    let (now, until) = (reader.slot(slot)?, reader.removed_history()?.at);
    Ok(now.zip(until).map(|(now, until)| Remains { now, is_all: history.is_empty(), until }))
}

/// A slot as it was at a past moment; none if there was none.
pub(crate) fn slot_at(reader: &dyn Queries, slot: &SlotRef, at: Timestamp) -> Result<Option<Slot>, StoreError> {
    let whole = reader.history(slot)?;
    let history: Vec<_> = whole.iter().filter(|record| record.at <= at).cloned().collect();
    if let Some((slot, _)) = fold(&history) {
        return Ok(Some(slot));
    }
    let remains = remains(reader, slot, &whole)?;
    Ok(remains.filter(|remains| remains.is_all && remains.now.since <= at).map(|remains| remains.now))
}
