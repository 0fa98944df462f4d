//! Rows that can't be read, and turns that could not be.

use std::fmt;

use kelos_model::{Breach, Invariant, SlotRef, WorkflowId};

/// A row that is stored as it was written, and whose content can't be read: an earlier version took what it could not read back. The other
/// rows can be, so that only its workflow has to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    /// The workflow that it belongs to; none of a row that belongs to none.
    pub workflow: Option<WorkflowId>,
    /// The slot that it is about.
    pub slot: Option<SlotRef>,
    /// The row and the part of it, in words: `version 3 of its definition`.
    pub what: String,
    /// The reason, in words.
    pub why: String,
}

impl UnreadableRow {
    /// The breach of its workflow.
    #[must_use]
    pub fn breach(&self) -> Option<Breach> {
        let workflow = self.workflow.clone()?;
        Some(Breach { invariant: Invariant::RowsAreReadable, workflow, slot: self.slot.clone() })
    }
}

impl fmt::Display for UnreadableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.slot, &self.workflow) {
            (Some(slot), _) => write!(f, "{}: ", slot.short())?,
            (None, Some(workflow)) => write!(f, "{workflow}: ")?,
            (None, None) => {}
        }
        write!(f, "{} can't be read: {}", self.what, self.why)
    }
}
