//! The right that each request to the scheduler needs, and the things for whose project it is needed.
//!
//! This is the one place that says so: whatever door a request comes in by, it gets to the scheduler through
//! [`App::ask`](crate::App::ask).

use kelos_core::{
    Ask, BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DeleteSchedules, Disable, DownstreamRequest,
    Enable, EnableByTime, FireRequest, Inspect, Kill, MarkSuccess, Pause, PauseBackfill, PrioritiseBackfill,
    RepeatStep, Rerun, RerunBackfill, Resume, ResumeBackfill, ResumeFlow, SetRegister, SignalFlow, Skip, SubmitRequest,
    Tell,
};
use kelos_model::{BackfillId, WorkflowId};
use kelos_trust::Right;

/// A thing that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A workflow, or something of one.
    Workflow(WorkflowId),
    /// A backfill.
    Backfill(BackfillId),
    /// A project by its name.
    Project(String),
    /// A bucket of registers.
    Bucket(String),
    /// No project's: the right for any project is enough.
    Anything,
}

/// The needs of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) right: Right,
    /// The right is needed for each of them.
    pub(crate) targets: Vec<Target>,
    /// Whether other projects may be changed with it, which needs the right for all projects.
    pub(crate) spreads: bool,
    /// The reason that was given, where the request can have one.
    pub(crate) reason: Option<String>,
}

fn need(right: Right, targets: Vec<Target>, reason: Option<&String>) -> Need {
    Need { right, targets, spreads: false, reason: reason.cloned() }
}

fn operate(workflow: &WorkflowId, reason: Option<&String>) -> Need {
    need(Right::Operate, vec![Target::Workflow(workflow.clone())], reason)
}

fn of_backfill(backfill: &BackfillId, reason: Option<&String>) -> Need {
    need(Right::Operate, vec![Target::Backfill(backfill.clone())], reason)
}

fn of_workflows<'a>(right: Right, all: impl IntoIterator<Item = &'a WorkflowId>, reason: Option<&String>) -> Need {
    need(right, all.into_iter().map(|id| Target::Workflow(id.clone())).collect(), reason)
}

/// The right that a request needs, and for what; none for what Kelos asks of itself on behalf of nobody.
pub(crate) fn of(ask: &Ask) -> Option<Need> {
    Some(match ask {
        Ask::Rerun(Rerun { slot, reason, .. })
        | Ask::Kill(Kill { slot, reason })
        | Ask::MarkSuccess(MarkSuccess { slot, reason })
        | Ask::Skip(Skip { slot, reason }) => operate(&slot.workflow, reason.as_ref()),
        Ask::Pause(Pause { workflow, reason })
        | Ask::Resume(Resume { workflow, reason })
        | Ask::Fire(FireRequest { workflow, reason, .. })
        | Ask::Backfill(BackfillRequest { workflow, reason, .. }) => operate(workflow, reason.as_ref()),
        Ask::RepeatStep(RepeatStep { step: run, reason, .. })
        | Ask::SignalFlow(SignalFlow { run, reason, .. })
        | Ask::ResumeFlow(ResumeFlow { run, reason, .. }) => operate(&run.workflow, reason.as_ref()),
        Ask::RerunDownstream(DownstreamRequest { slot, reason, .. }) => {
            Need { spreads: true, ..operate(&slot.workflow, reason.as_ref()) }
        }
        Ask::Submit(SubmitRequest { jobs, reason, .. }) => {
            of_workflows(Right::Operate, jobs.iter().map(|job| &job.workflow), reason.as_ref())
        }
        Ask::CancelBackfill(CancelBackfill { backfill, reason })
        | Ask::PauseBackfill(PauseBackfill { backfill, reason })
        | Ask::ResumeBackfill(ResumeBackfill { backfill, reason })
        | Ask::PrioritiseBackfill(PrioritiseBackfill { backfill, reason, .. })
        | Ask::RerunBackfill(RerunBackfill { backfill, reason }) => of_backfill(backfill, reason.as_ref()),
        Ask::Enable(Enable { schedule, reason }) | Ask::Disable(Disable { schedule, reason }) => {
            operate(schedule, reason.as_ref())
        }
        Ask::EnableByTime(EnableByTime { schedules, reason, .. }) => {
            of_workflows(Right::Operate, schedules, reason.as_ref())
        }
        Ask::CreateSchedules(CreateSchedules { new, reason }) => {
            let projects = new.iter().map(|one| Target::Project(one.project.clone())).collect();
            need(Right::Author, projects, reason.as_ref())
        }
        Ask::ChangeSchedule(ChangeSchedule { changed, reason }) => {
            let targets = vec![Target::Workflow(changed.id.clone()), Target::Project(changed.project.clone())];
            need(Right::Author, targets, reason.as_ref())
        }
        Ask::DeleteSchedules(DeleteSchedules { schedules, reason }) => {
            of_workflows(Right::Author, schedules, reason.as_ref())
        }
        Ask::SetRegister(SetRegister { bucket, reason, .. }) => {
            need(Right::Operate, vec![Target::Bucket(bucket.clone())], reason.as_ref())
        }
        Ask::Tell(Tell { facts, .. }) => {
            let of_fact = |fact: &kelos_model::Fact| match fact.what.run_of_flow() {
                Some(run) => Target::Workflow(run.workflow.clone()),
                None => Target::Anything,
            };
            need(Right::Operate, facts.iter().map(of_fact).collect(), None)
        }
        Ask::Inspect(Inspect { slot }) => of_workflows(Right::View, [&slot.workflow], None),
        Ask::InspectCapacity(_) => need(Right::View, vec![Target::Anything], None),
        Ask::RecordAccess(_) => return None,
    })
}
