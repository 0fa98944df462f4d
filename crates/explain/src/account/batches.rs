//! Slots that run together with others, and those that wait for others to run together with.

use kelos_core::BatchWait;
use kelos_model::time::text::format_short;
use kelos_model::{Slot, SlotEvent};

use super::Account;

/// The wait of a queued slot for others.
pub(super) fn wait(BatchWait { ready, size, until }: BatchWait) -> String {
    let until = until.map_or_else(String::new, |at| format!(", until {}", format_short(at)));
    format!("waits for its batch: {ready} of {size}{until}")
}

/// The slots that ran together with one, as the rest of a sentence about its run.
pub(super) fn together(slot: &Slot, what: &SlotEvent, why: &Account) -> Option<String> {
    let run = why.runs.last().filter(|run| run.id.number == slot.last_run)?;
    let batch = run.batch?;
    let is_of_run = match what {
        SlotEvent::Dispatched { .. }
        | SlotEvent::Started { .. }
        | SlotEvent::Succeeded { .. }
        | SlotEvent::BackedOff { .. }
        | SlotEvent::Failed { .. } => true,
        SlotEvent::Killed { .. } | SlotEvent::SkippedBy { .. } => run.ended_at.is_none_or(|ended| ended >= slot.since),
        _ => false,
    };
    let (first, last) = (format_short(batch.first), format_short(batch.last));
    let others = match run.is_follower() {
        true => format!("; together with {first} to {last}, in run {} of {first}", batch.run),
        false => format!("; together with the slots up to {last}, {} in all", batch.slots),
    };
    is_of_run.then_some(others)
}
