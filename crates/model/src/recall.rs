//! What a store is asked about the past of a scheduler.

use jiff::Timestamp;

use crate::id::WorkflowId;
use crate::key::SlotRef;

/// A question to the store about slots that are not in memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recall {
    /// These slots, where they exist.
    Slots(Vec<SlotRef>),
    /// All slots of a workflow whose time lies in `[start, end)`.
    Range {
        /// Whose slots.
        workflow: WorkflowId,
        /// Inclusive.
        start: Timestamp,
        /// Exclusive.
        end: Timestamp,
    },
}
