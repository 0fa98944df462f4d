//! The definitions in scripts, and the effect of a deployment on them.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::Workflow;
use kelos_sandbox::{Problem, RegisterRead};

use super::change::{FileChange, WorkflowChange};
use super::{ProjectName, SlotEffect};

/// The definitions in all scripts of a site.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// The workflows, by id.
    pub workflows: Vec<Arc<Workflow>>,
    /// The problems of the scripts.
    pub problems: Vec<Problem>,
    /// The buckets of registers that the scripts read.
    pub reads: BTreeSet<RegisterRead>,
}

impl Definitions {
    /// New problems, and all problems of the project itself.
    pub(super) fn news<'a>(
        &'a self,
        before: &'a Definitions,
        project: &'a ProjectName,
    ) -> impl Iterator<Item = &'a Problem> {
        let known = |problem: &Problem| {
            before.problems.iter().any(|old| old.file == problem.file && old.message == problem.message)
        };
        self.problems.iter().filter(move |problem| project.owns_source(&problem.file) || !known(problem))
    }
}

/// The effect of a deployment.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of the project.
    pub project: ProjectName,
    /// Whether the project is removed.
    pub undeploy: bool,
    /// The change of each file.
    pub files: Vec<FileChange>,
    /// The changes of workflows, without unchanged ones.
    pub workflows: Vec<WorkflowChange>,
    /// The effect on slots.
    pub slots: SlotEffect,
    /// Probable mistakes.
    pub warnings: Vec<Problem>,
    /// Further notes.
    pub notes: Vec<String>,
}
