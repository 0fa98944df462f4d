//! The roots of a wait: from a slot through everything that it waits for, at any distance, to what has to change first.
//!
//! A root is a slot with something in its way that is no other slot: a failed run, a path that is not there, a closed
//! window, a full pool, a paused workflow, a time that nobody plans. Roots that are alike count as one. What is *absent*:
//! the order in which they could be resolved.

mod cause;
mod search;

use jiff::Timestamp;
use kelos_core::Inspection;
use kelos_engine::Handle;
use kelos_engine::reads::Lane;
use kelos_model::{RunId, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};

use crate::account;
use crate::graph::{ObstacleKind, View};

/// The most roots that are returned; of the others there is a number.
pub const MOST_ROOTS: usize = 5;
/// The most slots that are examined.
pub const MOST_EXAMINED: usize = 2_000;
/// The same for one of many slots.
const FEW_EXAMINED: usize = 50;
/// Slots at each end of a way that are returned, if it is longer.
pub const ENDS: usize = 10;

/// The root causes of a slot's wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// Those that a person has to repair come first, then the nearest.
    pub rows: Vec<Root>,
    /// The number of roots that are left out, those that are alike counted once.
    pub more: usize,
    /// The number of slots on the way that were not examined, because too many others were.
    pub unexamined: usize,
}

/// Something that is in the way of a slot, and is not another slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The slot that it is about.
    pub slot: SlotRef,
    /// The state of that slot; none if it does not exist.
    pub state: Option<SlotState>,
    /// Its kind.
    pub kind: ObstacleKind,
    /// The way from the slot that was asked about to that slot, both of them among it.
    pub way: Vec<WayStep>,
    /// The number of slots in the middle of the way that are left out.
    pub left_out: usize,
    /// The obstacle, as the rest of a sentence: `failed at … (run 1: exited with status 3)`.
    pub cause: String,
    /// The path that is not there, if that is it.
    pub path: Option<String>,
    /// The run that ended without success, if that is it.
    pub run: Option<RunId>,
    /// How many more are like it.
    pub alike: u64,
}

/// A slot on the way to a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayStep {
    /// The slot.
    pub slot: SlotRef,
    /// Its state; none if it does not exist.
    pub state: Option<SlotState>,
    /// The path for which the slot before it waits, if it is waited for because it writes one.
    pub writes: Option<String>,
}

/// Finds the roots of a slot's wait at a moment; none means now. At present the scheduler's memory is asked, too.
///
/// # Errors
/// When the store can't be read.
pub async fn roots(handle: &Handle, slot: &SlotRef, at: Option<Timestamp>) -> Result<Roots, StoreError> {
    let (now, at_present) = (at.unwrap_or_else(|| handle.now()), at.is_none());
    let (reader, asked) = (handle.reader().clone(), slot.clone());
    let mut roots = blocking(move || read(&*reader, &asked, now, at_present)).await?;
    for root in roots.rows.iter_mut().filter(|root| at_present && lies_in_memory(root.kind)) {
        // The queue and the pools are known to the scheduler alone.
        let Some(inspection) = account::inspect(handle, &root.slot).await else { break };
        let (reader, slot, kind) = (handle.reader().clone(), root.slot.clone(), root.kind);
        let cause = blocking(move || inspected(&*reader, &slot, kind, now, &inspection)).await?;
        root.cause = cause.unwrap_or_else(|| root.cause.clone());
    }
    Ok(roots)
}

/// Whether the scheduler's memory knows more of such an obstacle than the log.
const fn lies_in_memory(kind: ObstacleKind) -> bool {
    matches!(kind, ObstacleKind::Queued | ObstacleKind::Held)
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    Lane::Requests.read("find what is at the root of a wait", read).await
}

/// The obstacle of a slot, with what memory knows of it; none if that has changed since.
fn inspected(
    reader: &dyn Queries,
    slot: &SlotRef,
    kind: ObstacleKind,
    now: Timestamp,
    inspection: &Inspection,
) -> Result<Option<String>, StoreError> {
    let look = View::new(reader, now, true).look(slot, Some(inspection))?;
    Ok(look.obstacles.iter().find(|one| one.kind == kind).map(|one| cause::words(&look.why, one)))
}

/// Finds the roots of a slot's wait by what is stored. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, slot: &SlotRef, now: Timestamp, at_present: bool) -> Result<Roots, StoreError> {
    search::roots(&View::new(reader, now, at_present), slot, MOST_EXAMINED)
}

/// The same for one of many slots, of which fewer others are examined. Blocks.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn read_few(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<Roots, StoreError> {
    search::roots(&View::new(reader, now, true), slot, FEW_EXAMINED)
}

#[cfg(test)]
mod tests;
