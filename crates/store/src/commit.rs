//! The commit: all rows that one turn writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::history::Trim;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{EventRecord, FactKey, Run, Slot, SlotRef, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The row of a slot, with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotRow {
    /// Its name.
    #[serde(flatten)]
    pub id: SlotRef,
    /// Its state.
    #[serde(flatten)]
    pub slot: Slot,
}

/// One turn: its events, and the rows as they are after it. Times are stored in whole milliseconds;
/// anything finer is cut off. A commit that is not empty adds a [`TurnRecord`](crate::TurnRecord) in the same transaction.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// The moment of the turn.
    pub at: Timestamp,
    /// The events, in order; the first follows the last of the commit before.
    pub events: Vec<EventRecord>,
    /// The slots that changed, as they are now.
    pub slots: Vec<SlotRow>,
    /// The runs that changed, as they are now.
    pub runs: Vec<Run>,
    /// The workflows that changed, as they are now. A new version is also added to the history of definitions; a workflow that
    /// got several versions in the turn is listed once for each, the newest last.
    pub workflows: Vec<WorkflowRow>,
    /// The stored texts of new definitions in `workflows`, by their versions, that another node wrote and that can't be read as a whole.
    /// They are stored as they came, so that their workflows freeze on each node, and a later version may read them.
    pub unread: BTreeMap<(WorkflowId, u32), Arc<str>>,
    /// The sources (file name to text) that belong to new definitions in `workflows`.
    pub sources: BTreeMap<String, Arc<str>>,
    /// The backfills that changed, as they are now.
    pub backfills: Vec<Backfill>,
    /// Registers by bucket and key; no value deletes one.
    pub registers: Vec<(String, String, Option<Value>)>,
    /// The idempotency keys of new facts, with the log positions of their events. Each is written once, ever.
    pub facts: Vec<(FactKey, u64)>,
    /// The history that the turn removes, after all else is written.
    pub trim: Option<Trim>,
}

impl Commit {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.slots.is_empty()
            && self.runs.is_empty()
            && self.workflows.is_empty()
            && self.backfills.is_empty()
            && self.registers.is_empty()
            && self.facts.is_empty()
            && self.trim.is_none()
    }
}
