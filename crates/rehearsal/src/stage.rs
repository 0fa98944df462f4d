//! The parts that dry runs and rehearsals share.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Deployment, Input};
use kelos_model::run::Report;
use kelos_model::time::{CronSchedule, ScheduleProblem, resolve};
use kelos_model::workflow::Keys;
use kelos_model::{Outcome, RunId, SlotRef, SlotState, Workflow, WorkflowId};

/// The workflow, enabled if it is an event schedule.
pub(crate) fn enabled(mut workflow: Workflow) -> Workflow {
    if let Keys::Events(events) = &mut workflow.keys {
        events.enabled = true;
    }
    workflow
}

/// The deployment of all projects, by which their event schedules come to be.
pub(crate) fn first_deployment(workflows: &[Arc<Workflow>]) -> BTreeMap<String, Deployment> {
    let deployment = || Deployment { digest: None, update_schedules: true, by: None };
    workflows.iter().map(|workflow| (workflow.project.clone(), deployment())).collect()
}

/// The workflow without the slots before a moment.
pub(crate) fn from_then_on(workflow: &Workflow, from: Timestamp) -> Workflow {
    Workflow { start_time: workflow.start_time.max(Some(from)), ..workflow.clone() }
}

/// The schedule that each workflow really has.
pub(crate) fn resolved(workflows: &[Arc<Workflow>]) -> BTreeMap<WorkflowId, Result<CronSchedule, ScheduleProblem>> {
    resolve(&workflows.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect())
}

/// An executor's word that a run has ended.
pub(crate) fn ended(run: RunId, outcome: Outcome) -> Input {
    Input::RunReported { run, report: Report::Ended { outcome } }
}

/// A past as it should have been: every slot before a moment has succeeded.
pub(crate) struct Past {
    from: Timestamp,
    /// The schedule of each workflow, and when it starts.
    schedules: BTreeMap<WorkflowId, (CronSchedule, Timestamp)>,
}

impl Past {
    /// The past before `from` of workflows whose schedule leads somewhere.
    pub(crate) fn of(workflows: &[Arc<Workflow>], from: Timestamp) -> Past {
        let mut resolved = resolved(workflows);
        let schedules = workflows.iter().filter_map(|workflow| {
            let schedule = resolved.remove(&workflow.id)?.ok()?;
            Some((workflow.id.clone(), (schedule, workflow.start_time.unwrap_or(Timestamp::MIN))))
        });
        Past { from, schedules: schedules.collect() }
    }

    /// The state of a slot before the moment.
    pub(crate) fn state_of(&self, id: &SlotRef) -> Option<SlotState> {
        let at = id.key.time()?;
        let (schedule, start) = self.schedules.get(&id.workflow)?;
        (at < self.from && at >= *start && schedule.contains(at)).then_some(SlotState::Succeeded)
    }
}
