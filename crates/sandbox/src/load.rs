//! The result of loading a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::{Workflow, WorkflowId};

use crate::problem::Problem;
use crate::project::Project;

/// Workflows by their names.
pub(crate) type ById<'l> = BTreeMap<&'l WorkflowId, &'l Arc<Workflow>>;

/// A bucket of registers that a file read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterRead {
    /// The file.
    pub file: String,
    /// Its project.
    pub project: Arc<str>,
    /// The bucket.
    pub bucket: Arc<str>,
}

/// The definitions of the folder as of one load.
#[derive(Debug, Clone, Default)]
pub struct LoadResult {
    /// All workflows by id, those of the last good version of a broken file included. A definition
    /// that did not change is the same `Arc` as in the load before.
    pub workflows: Vec<Arc<Workflow>>,
    /// Workflows of files that were refused, as they would be: they are not in use.
    pub refused: Vec<Arc<Workflow>>,
    /// The text of each file that was read, by name; `defaults/x.js` for defaults files.
    pub sources: BTreeMap<String, Arc<str>>,
    /// The buckets of registers that each file read, or would have read were it not only checked.
    pub reads: BTreeSet<RegisterRead>,
    /// The units of deployment that the files are, by name.
    pub projects: BTreeMap<String, Project>,
    /// The problems, by file.
    pub problems: Vec<Problem>,
    /// Files that were evaluated in this load.
    pub evaluated: usize,
    /// Files that were not, because nothing they depend on has changed.
    pub unchanged: usize,
}

impl LoadResult {
    /// The definitions as they were read last, each name once: those of refused files instead of the last good ones.
    pub(crate) fn read(&self) -> ById<'_> {
        self.workflows.iter().chain(&self.refused).map(|one| (&one.id, one)).collect()
    }

    /// Whether a problem is more than a warning.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }
}
