//! Jobs, and the answers of a graph about them: parents and children.

use std::sync::Arc;

use super::unwritable::Unwritable;
use crate::id::WorkflowId;

/// A job: a workflow and one of its job ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    /// The workflow of the job.
    pub workflow: WorkflowId,
    /// The job id.
    pub id: Arc<str>,
}

/// The parents of a job by one of its groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Parents {
    /// The group that says so.
    pub group: Arc<str>,
    /// All of these must succeed; each once.
    pub jobs: Vec<Job>,
    /// Parents without a job id. Where there are any the group is never met.
    pub unwritable: Vec<Unwritable>,
}

impl Parents {
    /// How many parents there are, with those that have no job id.
    #[must_use]
    pub fn total(&self) -> usize {
        self.jobs.len() + self.unwritable.iter().map(|one| one.count).sum::<usize>()
    }
}

/// The children of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Children {
    /// Each job with the group by which it waits.
    pub jobs: Vec<(Job, Arc<str>)>,
    /// Children without a job id: they can't be opened.
    pub unwritable: Vec<Unwritable>,
}
