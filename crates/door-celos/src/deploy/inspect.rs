//! What scripts define, and what a deployment makes of it.

use std::sync::Arc;

use kelos_model::Workflow;
use kelos_sandbox::Problem;

use super::change::{FileChange, WorkflowChange};
use super::{ProjectName, SlotEffect};

/// What all scripts of a site define together.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// The workflows, by id.
    pub workflows: Vec<Arc<Workflow>>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl Definitions {
    /// What is wrong now and was not before, and whatever is wrong with the project itself.
    pub(super) fn news<'a>(
        &'a self,
        before: &'a Definitions,
        project: &'a ProjectName,
    ) -> impl Iterator<Item = &'a Problem> {
        let own = [project.script(), format!("defaults/{}", project.script())];
        let known = |problem: &Problem| {
            before.problems.iter().any(|old| old.file == problem.file && old.message == problem.message)
        };
        self.problems.iter().filter(move |problem| own.contains(&problem.file) || !known(problem))
    }
}

/// What a deployment changes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose.
    pub project: ProjectName,
    /// Whether the project goes.
    pub undeploy: bool,
    /// What becomes of each file.
    pub files: Vec<FileChange>,
    /// What becomes of workflows; those that stay as they are left out.
    pub workflows: Vec<WorkflowChange>,
    /// What becomes of slots.
    pub slots: SlotEffect,
    /// What is probably not as it was meant.
    pub warnings: Vec<Problem>,
    /// What else there is to know.
    pub notes: Vec<String>,
}
