//! Stuck slots: those that missed their deadline or are late by what is usual, wait for a retry, run for too long, failed and were not repaired, or are held by a
//! pause.
//!
//! Read from the store, as [accounts](crate::account) are. One row represents all slots of a workflow that are stuck in the
//! same way, the oldest of them, so that one dead path does not hide the rest. Late slots that wait for a failure are
//! counted in its row. Slots of backfills are not late: a backfill has its own progress. The cost follows the live slots
//! and the [failures](crate::failures), not the history.

mod backlog;
mod find;
mod usual;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_core::Inspect;
use kelos_model::{Actor, SlotRef, SlotState, WorkflowId};
use kelos_store::StoreError;

pub use find::read;
pub(crate) use find::rests;

use crate::roots::Root;
use kelos_engine::Handle;
use kelos_engine::reads::Lane;

/// Whatever is usual, nothing is late, and no run long, within this time.
pub const FLOOR: SignedDuration = SignedDuration::from_mins(5);
/// When a slot is late where nothing is known of others before it.
pub const UNKNOWN: SignedDuration = SignedDuration::from_hours(2);
/// A slot is late beyond so many times what is usual.
pub const LATE: i32 = 2;
/// A run is long beyond so many times what is usual.
pub const LONG: i32 = 3;
/// The number of oldest slots of each live state that are read.
pub const LOOKED_AT: usize = 50_000;
/// The most rows that are returned, the worst.
pub const TOLD: usize = 200;
/// The number of rows whose next evaluation is requested from the scheduler's memory.
const INSPECTED: usize = 50;

/// In which way a slot is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It waits, and four fifths of its workflow's timeout have passed.
    Expiring,
    /// Its deadline has passed, and it has not succeeded.
    Overdue,
    /// It has not begun to run, long after it usually has succeeded.
    Late,
    /// Its run failed, and it waits to be retried.
    Backoff,
    /// Its run takes much longer than usual.
    Long,
    /// It failed or expired, and was not repaired since.
    Failed,
    /// It is due, and its workflow is paused.
    Paused,
    /// It is due, and its workflow is frozen: the scheduler found something wrong in itself about it.
    Frozen,
}

impl Kind {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Expiring => "expiring",
            Kind::Overdue => "overdue",
            Kind::Late => "late",
            Kind::Backoff => "backoff",
            Kind::Long => "long",
            Kind::Failed => "failed",
            Kind::Paused => "paused",
            Kind::Frozen => "frozen",
        }
    }
}

/// A slot that is stuck, and how many more of its workflow are in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Stuck {
    /// The oldest of them.
    pub slot: SlotRef,
    /// In which way.
    pub kind: Kind,
    /// Its state; none if it was not even planned.
    pub state: Option<SlotState>,
    /// Since when: since it was due, its run began or failed.
    pub since: Timestamp,
    /// The usual time from due to success, or of a run; none if too few are known.
    pub usual: Option<SignedDuration>,
    /// The time by which it is beyond the limit; zero if it is not late.
    pub beyond: SignedDuration,
    /// The reason, in one sentence.
    pub reason: String,
    /// When it is looked at next by itself, tried again, or expires.
    pub next: Option<Timestamp>,
    /// Later slots of its workflow that are stuck in the same way. Of a long backlog only the first times count.
    pub others: usize,
    /// Slots that wait for it or for the others, or expired while they did; only of failures.
    pub followers: usize,
    /// The first root of its wait, where it waits for something: the nearest that somebody has to repair, else the nearest.
    pub root: Option<Root>,
}

/// Everything that is stuck, the worst first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StuckReport {
    /// Furthest beyond what is usual first; what a person has paused comes last.
    pub rows: Vec<Stuck>,
    /// The number of rows that are left out.
    pub more: usize,
    /// Whether there are more live slots or failures than were read.
    pub is_partial: bool,
    /// The times of the live slots of each workflow that missed their deadlines, ascending. Those without a time are in the rows alone.
    pub overdue: BTreeMap<WorkflowId, Vec<Timestamp>>,
}

/// Finds the slots that are stuck now, with the next evaluations from the scheduler's memory. May block for some
/// milliseconds.
///
/// # Errors
/// When the store can't be read.
pub async fn stuck(handle: &Handle) -> Result<StuckReport, StoreError> {
    let (reader, now) = (handle.reader().clone(), handle.now());
    let mut found = Lane::Requests.read("list stuck slots", move || read(&*reader, now)).await?;
    for row in found.rows.iter_mut().filter(|row| row.next.is_none() && row.kind != Kind::Failed).take(INSPECTED) {
        let Some(next) = next_look(handle, &row.slot).await else { break };
        row.next = next;
    }
    Ok(found)
}

/// When a slot is looked at next; none where memory does not answer.
async fn next_look(handle: &Handle, slot: &SlotRef) -> Option<Option<Timestamp>> {
    // The state in memory is optional: an engine that is busy or stands by does not delay the answer.
    let by = Actor::system("stuck");
    let asked = handle.ask(&by, Inspect { slot: slot.clone() });
    match tokio::time::timeout(std::time::Duration::from_millis(300), asked).await {
        Ok(Ok(inspection)) => Some(inspection.next_look),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
