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
        /// The workflow of the slots.
        workflow: WorkflowId,
        /// The start, inclusive.
        start: Timestamp,
        /// The end, exclusive.
        end: Timestamp,
    },
    /// All steps of a run of a flow, with the items of its lists.
    Steps(SlotRef),
}
