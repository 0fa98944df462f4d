//! Rows that were met and can't be read: earlier versions stored what they could not read back. All that can be read of such a row is
//! read, so that its workflow alone has to stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kelos_model::{SlotRef, WorkflowId};
use kelos_store::UnreadableRow;

/// As many rows are kept; more say nothing more.
const MOST: usize = 1000;

/// The rows that were met, one for each workflow or part of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Unread(Arc<Mutex<BTreeMap<String, UnreadableRow>>>);

impl Unread {
    /// Notes a row.
    pub(super) fn note(&self, workflow: &WorkflowId, slot: Option<&SlotRef>, what: impl Into<String>, why: String) {
        let row = UnreadableRow { workflow: Some(workflow.clone()), slot: slot.cloned(), what: what.into(), why };
        let mut met = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() < MOST {
            met.entry(row.to_string()).or_insert(row);
        }
    }

    /// All that were met.
    pub(super) fn all(&self) -> Vec<UnreadableRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
