//! Jobs as people ask about them: what a job waits for and what waits for it, what keeps it, and what would run if it were
//! submitted.
//!
//! All of it is read from the definitions and the slots that are stored. What is *absent*: opening and running jobs, which
//! the core does.

mod checked;
mod family;
mod matrix;
mod outlook;
mod relatives;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_engine::job::Functions;
use kelos_model::jobs::{JobGraph, Relation, Unwritable, told};
use kelos_model::template::KeyValues;
use kelos_model::workflow::{Workflow, WorkflowRow};
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};

pub use checked::read_key;
pub use family::{Family, FamilyMember, Reach, family};
pub use matrix::{Axis, Cell, MOST_READ, Matrix, MatrixQuery, matrix};
pub use outlook::{Fate, JobForecast, JobQuery, MOST_JOBS, Outlook, Role, outlook};
pub use relatives::{Relative, RelativeGroup, children, parents};

/// The workflows that are keyed by job ids, and the relation between their jobs.
#[derive(Clone, Default)]
pub struct Jobs {
    /// The dependencies between jobs.
    pub graph: JobGraph,
    /// The definitions.
    pub workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The faults of those that are left out of the relation.
    pub faulty: BTreeMap<WorkflowId, String>,
    /// Those that are paused.
    pub paused: BTreeSet<WorkflowId>,
    /// The functions that know the members of some groups; without them those groups are left out.
    functions: Option<Arc<dyn Functions>>,
}

/// Whether a job is worth running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It exists.
    Yes,
    /// It is not: it is skipped as soon as it is opened.
    No,
    /// A function of its workflow decides when it is opened.
    Asked,
}

impl Jobs {
    /// Reads what is defined now.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read(reader: &dyn Queries) -> Result<Jobs, StoreError> {
        Ok(Jobs::of(&reader.workflows(None)?))
    }

    /// Puts together what these rows define. Workflows that make no sense together are left out, as the scheduler does.
    #[must_use]
    pub fn of(rows: &[WorkflowRow]) -> Jobs {
        let keyed = rows.iter().filter(|row| row.present && row.definition.keys.jobs().is_some());
        let workflows: BTreeMap<WorkflowId, Arc<Workflow>> =
            keyed.map(|row| (row.id.clone(), row.definition.clone())).collect();
        let (graph, faulty) = JobGraph::sound(workflows.iter().filter_map(|(id, one)| Some((id, one.keys.jobs()?))));
        let paused = rows.iter().filter(|row| row.paused && workflows.contains_key(&row.id));
        let paused = paused.map(|row| row.id.clone()).collect();
        Jobs { graph, workflows, faulty, paused, functions: None }
    }

    /// The same, with functions of scripts to ask about the groups that they know. They may block.
    #[must_use]
    pub fn asking(self, functions: Arc<dyn Functions>) -> Jobs {
        Jobs { functions: Some(functions), ..self }
    }

    /// Whether everything that a job waits for is known here.
    #[must_use]
    pub fn knows_parents(&self, job: &SlotRef) -> bool {
        let asked = job.key.job().map(|id| self.graph.asks_parents(&job.workflow, id));
        self.functions.is_some() || asked.is_none_or(|asked| asked.is_empty())
    }

    /// The answers of functions. A function that fails counts as one without members: the scheduler reports the
    /// failure.
    fn asked(&self, questions: Vec<Relation>) -> impl Iterator<Item = (Relation, Vec<SlotRef>)> {
        let answer = |question: Relation| {
            let named = self.functions.as_ref()?.related(&question).ok()?;
            let jobs = self.graph.answered(&question, &named).ok()?;
            Some((question, jobs.into_iter().map(|job| SlotRef::job(job.workflow, job.id)).collect()))
        };
        questions.into_iter().filter_map(answer)
    }

    /// Whether a job is worth running, by its definition.
    #[must_use]
    pub fn validity(&self, job: &SlotRef) -> Validity {
        let Some(workflow) = self.workflows.get(&job.workflow) else { return Validity::Yes };
        let Some(valid) = workflow.keys.jobs().and_then(|keys| keys.valid.as_ref()) else { return Validity::Yes };
        let values = KeyValues::of(&workflow.keys, &job.key);
        match &valid.function {
            _ if valid.is_listed(values.identifiers()) => Validity::Yes,
            Some(_) => Validity::Asked,
            None => Validity::No,
        }
    }

    /// Whether a job in this state is dormant because its workflow is paused. Live runs are not affected.
    #[must_use]
    pub fn is_paused(&self, job: &SlotRef, state: Option<SlotState>) -> bool {
        let has_run = |state: SlotState| matches!(state, SlotState::Dispatched | SlotState::Running);
        self.paused.contains(&job.workflow) && state.is_none_or(|state| !state.is_final() && !has_run(state))
    }

    /// The reason for which a job waits for no other though its workflow has dependencies, see [`JobGraph::no_group`].
    #[must_use]
    pub fn no_group(&self, job: &SlotRef) -> Option<String> {
        self.graph.no_group(&job.workflow, job.key.job()?)
    }

    /// The reason for which a job can never run, see [`JobGraph::no_way`].
    #[must_use]
    pub fn no_way(&self, job: &SlotRef) -> Option<String> {
        self.graph.no_way(&job.workflow, job.key.job()?)
    }

    /// The children that a job has by its relation, but that have no valid job id.
    #[must_use]
    pub fn unwritable_children(&self, job: &SlotRef) -> Vec<Unwritable> {
        let children = job.key.job().and_then(|id| self.graph.children(&job.workflow, id).ok());
        children.unwrap_or_default().unwritable
    }

    /// Jobs that wait for a job and are never opened, since no id can be written for them, in words. None where there are none.
    #[must_use]
    pub fn nameless_children(&self, job: &SlotRef) -> Option<String> {
        let all = self.unwritable_children(job);
        (!all.is_empty()).then(|| told(&all))
    }

    /// The jobs that a job waits for, by whatever group, each once.
    #[must_use]
    pub fn parents_of(&self, job: &SlotRef) -> Vec<SlotRef> {
        let mut seen = BTreeSet::new();
        let all = self.groups(job).into_iter().flat_map(|group| group.jobs);
        all.filter(|parent| seen.insert(parent.clone())).collect()
    }

    /// The jobs that wait for a job, each once.
    #[must_use]
    pub fn children_of(&self, job: &SlotRef) -> Vec<SlotRef> {
        let mut seen = BTreeSet::new();
        let all = self.waiting_for(job).into_iter().map(|(child, _)| child);
        all.filter(|child| seen.insert(child.clone())).collect()
    }

    /// The groups of jobs that a job waits for: all of any one of them. None where it waits for nothing, or is no job.
    fn groups(&self, job: &SlotRef) -> Vec<JobGroup> {
        let Some(id) = job.key.job() else { return Vec::new() };
        let groups = self.graph.parents(&job.workflow, id).unwrap_or_default();
        let named = |group: kelos_model::jobs::Parents| JobGroup {
            name: group.group,
            jobs: group.jobs.into_iter().map(|job| SlotRef::job(job.workflow, job.id)).collect(),
            unwritable: group.unwritable,
        };
        let asked = self.asked(self.graph.asks_parents(&job.workflow, id));
        let asked = asked.map(|(question, jobs)| JobGroup { name: question.group, jobs, unwritable: Vec::new() });
        groups.into_iter().map(named).chain(asked).collect()
    }

    /// The jobs that wait for a job, each with the group by which it does.
    fn waiting_for(&self, job: &SlotRef) -> Vec<(SlotRef, Arc<str>)> {
        let Some(id) = job.key.job() else { return Vec::new() };
        let children = self.graph.children(&job.workflow, id).unwrap_or_default();
        let asked = self.asked(self.graph.asks_children(&job.workflow, id));
        let asked = asked.flat_map(|(question, jobs)| jobs.into_iter().map(move |job| (job, question.group.clone())));
        let listed = children.jobs.into_iter().map(|(job, group)| (SlotRef::job(job.workflow, job.id), group));
        listed.chain(asked).collect()
    }
}

/// Jobs of which one waits for all.
struct JobGroup {
    name: Arc<str>,
    jobs: Vec<SlotRef>,
    /// Those of them that can't be opened, because they have no valid job id.
    unwritable: Vec<Unwritable>,
}

#[cfg(test)]
mod tests;
