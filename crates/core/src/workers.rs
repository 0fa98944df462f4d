//! Workers as the scheduler knows them: the executor name under which their runs are recorded, and their offers.

use std::collections::BTreeSet;

use kelos_model::workers::Label;
use kelos_model::{SlotRef, WorkflowId};

/// The name of the executor under which runs of workers are recorded.
pub const WORKER: &str = "worker";

/// The offer of a worker to run jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offer {
    /// The workflows that it serves.
    pub workflows: BTreeSet<WorkflowId>,
    /// Its labels. It gets no job that needs another one.
    pub labels: BTreeSet<Label>,
    /// The only job that it would run; none means any.
    pub job: Option<SlotRef>,
    /// The number of further jobs that it would run.
    pub free: u32,
    /// The total number of attempts for each job, if it differs from the workflow's retry policy.
    pub attempts: Option<u32>,
    /// The workflows whose functions its program has in another version than the one in force. It serves none of them.
    pub outdated: BTreeSet<WorkflowId>,
}
