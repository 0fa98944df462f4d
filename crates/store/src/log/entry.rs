//! The bytes of entries.

use kelos_model::event::Origin;
use kelos_model::{Event, SlotEvent};

use super::{LogEntry, LogError};
use crate::contract::Commit;
pub use crate::entry::{EntryBody, Reign};
use crate::record::TurnRecord;
use crate::stored::{self, StoredEntry, StoredTurn};

/// The first byte of each entry. The second one is its form, as a digit.
const MARK: u8 = b'K';

/// The first form with deadlines.
const DEADLINES: u32 = 2;

/// The first form with turns that remove history.
const TRIMS: u32 = 3;

/// The first form with slots that are done again where an outcome is unknown.
pub(super) const AGAIN: u32 = 4;

/// The bytes of an entry in a form.
///
/// # Errors
/// In words, when a value has no stored form.
pub fn entry_bytes(form: u32, body: &EntryBody) -> Result<Vec<u8>, String> {
    match body {
        EntryBody::Plug(reign) => bytes_of(form, &StoredEntry::Plug(reign.clone())),
        EntryBody::Turn { record, commit } => turn_bytes(form, *record, commit),
    }
}

/// The bytes of the entry of a turn. Where it has something that the form does not know, it is an entry of the form that does: an older
/// program stops in front of it and says so, rather than take it for damage.
pub(super) fn turn_bytes(form: u32, record: TurnRecord, commit: &Commit) -> Result<Vec<u8>, String> {
    bytes_of(form.max(least_form(commit)), &StoredEntry::Turn(StoredTurn::of(record, commit)))
}

/// The oldest form that knows all that a turn has: definitions with deadlines, and what comes of them, are new in the second, history that
/// is removed in the third, and what is done again in the fourth.
fn least_form(commit: &Commit) -> u32 {
    let may_be_again = || commit.workflows.iter().any(|row| row.definition.is_done_again());
    let was_again = || commit.slots.iter().any(|row| row.slot.again > 0);
    let goes_again = || {
        let again = |what: &SlotEvent| matches!(what, SlotEvent::BackedOff { again: 1.., .. });
        commit.events.iter().any(|one| matches!(&one.event, Event::Slot { what, .. } if again(what)))
    };
    if may_be_again() || was_again() || goes_again() {
        return AGAIN;
    }
    if commit.trim.is_some() {
        return TRIMS;
    }
    let is_defined = || commit.workflows.iter().any(|row| row.definition.deadline.is_some());
    let is_slot = || commit.slots.iter().any(|row| row.slot.late.is_some());
    let of_deadlines =
        |what: &SlotEvent| matches!(what, SlotEvent::Late { .. } | SlotEvent::Planned { origin: Origin::Feed, .. });
    let has_happened =
        || commit.events.iter().any(|one| matches!(&one.event, Event::Slot { what, .. } if of_deadlines(what)));
    if is_defined() || is_slot() || has_happened() { DEADLINES } else { 1 }
}

/// A program that only pretends to know a newer form writes the same under its number.
fn bytes_of(form: u32, entry: &StoredEntry<'_>) -> Result<Vec<u8>, String> {
    let digit = char::from_digit(form, 10).ok_or_else(|| format!("form {form} has more than one digit"))?;
    let mut bytes = vec![MARK];
    bytes.extend(digit.to_string().bytes());
    stored::write_entry(&mut bytes, entry).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The form of an entry; none if it is no entry of ours.
#[must_use]
pub fn form_of(entry: &LogEntry) -> Option<u32> {
    match entry.body[..] {
        [MARK, digit, ..] => char::from(digit).to_digit(10),
        _ => None,
    }
}

/// Reads the content of an entry, as a program does that reads all forms up to one.
///
/// # Errors
/// When it was written by a newer program, or makes no sense.
pub fn read_entry(entry: &LogEntry, reads: u32) -> Result<EntryBody, LogError> {
    let corrupt = |what: String| LogError::Corrupt { place: format!("entry {} of the log", entry.position), what };
    match form_of(entry) {
        None | Some(0) => Err(corrupt("it is no entry of ours".to_owned())),
        Some(form) if form > reads => Err(LogError::NewerForm { position: entry.position, form, reads }),
        Some(_) => {
            let json = entry.body.get(2..).unwrap_or_default();
            stored::read_entry(json).map_err(|error| corrupt(error.to_string()))
        }
    }
}
