//! Failed slots of a backfill, with alike causes together.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::{Outcome, RunId, SlotRef, SlotState};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError};

use super::slots_of;
use crate::account;

/// The most failed slots that are read: those with the newest times.
pub const MOST_FAILED: usize = 200;
/// Rows of a page of the store.
const PAGE: usize = 300;
/// The most pages that are read: failures of the same workflow and range may belong to another backfill.
const PAGES: usize = 25;

/// A slot of a backfill that failed or expired.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedSlot {
    /// The slot.
    pub slot: SlotRef,
    /// Failed or expired.
    pub state: SlotState,
    /// Since when.
    pub since: Timestamp,
    /// Its last run; none if it never ran.
    pub run: Option<RunId>,
    /// The exit status of that run, if it had one.
    pub exit_status: Option<i32>,
    /// The outcome of that run; for an expired slot what it waited for.
    pub reason: String,
    /// The last line that the run wrote, as far as it is known.
    pub last_line: Option<String>,
}

/// Failed slots with the same cause, as far as their outcomes and last lines tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Its slots, newest times first; at least one, whose reason and last line stand for all.
    pub slots: Vec<FailedSlot>,
}

/// The latest slots of a backfill that failed or expired. The last lines of their runs are not in the store.
///
/// # Errors
/// When the store can't be read.
pub fn failed_slots(reader: &dyn Queries, row: &Backfill, now: Timestamp) -> Result<Vec<FailedSlot>, StoreError> {
    // Failures of a workflow are found directly, whatever their backfill.
    let states = vec![SlotState::Failed, SlotState::Expired];
    let filter = SlotFilter { states, range: Some(row.range), backfill: None, ..slots_of(row) };
    let (mut found, mut from) = (Vec::new(), None);
    for _ in 0..PAGES {
        let page = reader.slots(&filter, PageRequest::newest(PAGE).after(from.as_deref()))?;
        let mine = page.rows.into_iter().filter(|slot| slot.slot.backfill.as_ref() == Some(&row.id));
        found.extend(mine.take(MOST_FAILED - found.len()));
        from = page.next;
        if found.len() == MOST_FAILED || from.is_none() {
            break;
        }
    }
    found.into_iter().map(|slot| failed_slot(reader, slot, now)).collect()
}

fn failed_slot(reader: &dyn Queries, row: SlotRow, now: Timestamp) -> Result<FailedSlot, StoreError> {
    let SlotRow { id, slot } = row;
    let run = reader.slot_runs(&id)?.pop();
    let outcome = run.as_ref().and_then(|run| run.outcome.as_ref()).filter(|_| slot.state == SlotState::Failed);
    let reason = match outcome {
        Some(outcome) => outcome.to_string(),
        None => account::read(reader, &id, now, true, None)?.headline,
    };
    let exit_status = outcome.and_then(|outcome| match outcome {
        Outcome::Failed { exit_status, .. } => *exit_status,
        _ => None,
    });
    let run = run.map(|run| run.leader());
    Ok(FailedSlot { slot: id, state: slot.state, since: slot.since, run, exit_status, reason, last_line: None })
}

/// Puts failed slots with alike causes together, the most frequent cause first. Causes that differ in numbers alone, such as
/// dates, addresses and durations, are alike.
#[must_use]
pub fn causes(failed: Vec<FailedSlot>) -> Vec<Cause> {
    let mut groups: BTreeMap<(SlotState, String, Option<String>), Vec<FailedSlot>> = BTreeMap::new();
    for slot in failed {
        let alike = (slot.state, distinguishing(&slot), slot.last_line.as_deref().map(without_numbers));
        groups.entry(alike).or_default().push(slot);
    }
    let mut causes: Vec<Cause> = groups.into_values().map(|slots| Cause { slots }).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.slots.len()));
    causes
}

/// The part of a reason by which causes differ: an exit status does, other numbers don't.
fn distinguishing(slot: &FailedSlot) -> String {
    if slot.exit_status.is_some() { slot.reason.clone() } else { without_numbers(&slot.reason) }
}

/// A text with each number in it replaced by `#`.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if plain.ends_with('#') => {}
            true => plain.push('#'),
            false => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(hour: i64, exit_status: Option<i32>, reason: &str, last_line: &str) -> FailedSlot {
        let at = Timestamp::from_second(hour * 3600).expect("a time");
        FailedSlot {
            slot: SlotRef::at("w".parse().expect("an id"), at),
            state: SlotState::Failed,
            since: at,
            run: None,
            exit_status,
            reason: reason.to_owned(),
            last_line: Some(last_line.to_owned()).filter(|line| !line.is_empty()),
        }
    }

    #[test]
    fn alike_causes_are_one_and_the_most_frequent_comes_first() {
        let exit = |hour, status: i32, line| failed(hour, Some(status), &format!("exited with status {status}"), line);
        let found = causes(vec![
            exit(1, 2, "no space left on device"),
            exit(2, 1, "no file day-2026-01-02.csv"),
            exit(3, 1, "no file day-2026-01-13.csv"),
            exit(4, 1, "connection refused"),
            failed(5, None, "timed out after 60 s", ""),
            failed(6, None, "timed out after 3600 s", ""),
            exit(7, 1, "no file day-2026-02-01.csv"),
        ]);
        let told: Vec<_> = found.iter().map(|cause| (cause.slots.len(), cause.slots[0].reason.as_str())).collect();
        let expected = [
            (3, "exited with status 1"),
            (2, "timed out after 60 s"),
            (1, "exited with status 1"),
            (1, "exited with status 2"),
        ];
        assert_eq!(told, expected);
        assert_eq!(
            found[0].slots[0].last_line.as_deref(),
            Some("no file day-2026-01-02.csv"),
            "the first stands for all"
        );
    }
}
