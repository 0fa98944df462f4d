//! Workers as the scheduler knows them: the executor name under which their runs are recorded, and their offers.

use std::collections::BTreeSet;

use kelos_model::{SlotRef, WorkflowId};

/// Under this name runs are recorded that workers do: the executor that they were handed to.
pub const WORKER: &str = "worker";

/// What a worker would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Jobs of these workflows.
    pub workflows: BTreeSet<WorkflowId>,
    /// Only this one; none means any.
    pub job: Option<SlotRef>,
    /// So many more.
    pub free: u32,
    /// How often a job that it does is attempted in all, where that differs from what its workflow says.
    pub attempts: Option<u32>,
}
