//! The right that each request to the scheduler needs, and the things for whose project it is needed.
//!
//! This is the one place that says so: whatever door a request comes in by, it gets to the scheduler through
//! [`App::ask`](crate::App::ask).

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos::Node;
use kelos_core::{
    Ask, BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DeleteSchedules, DeployProject, Disable,
    DownstreamRequest, Enable, EnableByTime, FireRequest, Inspect, Kill, MarkSuccess, Pause, PauseBackfill,
    PrioritiseBackfill, Refusal, RepeatStep, Rerun, RerunBackfill, Resume, ResumeBackfill, ResumeFlow, SetRegister,
    SignalFlow, Skip, SubmitRequest, Tell,
};
use kelos_engine::AskError;
use kelos_model::{Actor, BackfillId, WorkflowId};
use kelos_trust::{Grants, Right};

use crate::access::Access;
use crate::blocking::blocking;
use crate::identity::Identity;
use crate::scope::{KnownProjects, bucket_project};

/// A thing that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
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
struct Need {
    right: Right,
    /// The right is needed for each of them.
    targets: Vec<Target>,
    /// The reason that was given, where the request can have one.
    reason: Option<String>,
}

fn need(right: Right, targets: Vec<Target>, reason: Option<&String>) -> Need {
    Need { right, targets, reason: reason.cloned() }
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
fn of(ask: &Ask) -> Option<Need> {
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
        Ask::RerunDownstream(DownstreamRequest { slot, reason, .. }) => operate(&slot.workflow, reason.as_ref()),
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
        Ask::DeployProject(DeployProject { project, .. }) => {
            need(Right::Author, vec![Target::Project(project.clone())], None)
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
        Ask::RecordAccess(_) | Ask::TrimHistory(_) => return None,
    })
}

/// The check of all that one caller asks of the scheduler, with the rights of one moment.
pub(crate) struct Authority<'a> {
    pub(crate) node: &'a Node,
    pub(crate) access: &'a Access,
    pub(crate) projects: &'a Arc<KnownProjects>,
    pub(crate) identity: &'a Identity,
    pub(crate) grants: Grants,
}

impl Authority<'_> {
    /// Refuses a caller without a right for a project; for none, without the right for all projects. The refusal is put on record.
    pub(crate) fn require(&self, right: Right, project: Option<&str>, action: &str) -> Result<(), AskError> {
        if self.grants.allow(right, project) {
            return Ok(());
        }
        Err(self.refusal(right, project, action))
    }

    /// The error of a caller who lacks a right; it is put on record.
    fn refusal(&self, right: Right, project: Option<&str>, action: &str) -> AskError {
        self.access.refused(self.node.handle(), self.identity, right, project, action);
        let actor = self.identity.actor.to_string();
        AskError::Forbidden { actor, right: right.name(), project: project.map(str::to_owned) }
    }

    /// Refuses a request for which the caller lacks a right, or which needs a reason and has none.
    pub(crate) async fn check(&self, ask: &Ask) -> Result<(), AskError> {
        let (grants, rules) = (&self.grants, self.access.rules());
        let Some(need) = of(ask) else { return Ok(()) };
        let needs_reason = !rules.reasons_for.is_empty() && need.right != Right::View;
        if grants.allow(need.right, None) && !needs_reason {
            return Ok(());
        }
        for target in &need.targets {
            let project = self.project_of(target, need.right).await?;
            let is_allowed = match target {
                Target::Anything => grants.allow_somewhere(need.right),
                _ => grants.allow(need.right, project.as_deref()),
            };
            if !is_allowed {
                return Err(self.forbidden(&need, target, project.as_deref()));
            }
            let is_missing = need.reason.as_deref().is_none_or(|reason| reason.trim().is_empty());
            if let Some(project) = project.filter(|project| is_missing && rules.needs_reason(project)) {
                return Err(AskError::ReasonMissing { project: project.to_string() });
            }
        }
        match ask {
            Ask::RerunDownstream(request) if !grants.allow(need.right, None) => {
                self.check_spread(request, need.right).await
            }
            _ => Ok(()),
        }
    }

    /// The project of a thing; none if it has none, so that the right for all projects is needed.
    async fn project_of(&self, target: &Target, right: Right) -> Result<Option<Arc<str>>, AskError> {
        let (node, projects) = (self.node.clone(), self.projects.clone());
        let (target, scope) = (target.clone(), self.grants.scope(right));
        let found = blocking(move || {
            Ok(match target {
                Target::Workflow(workflow) => projects.now(node.handle())?.of(&workflow).cloned(),
                Target::Backfill(id) => match node.reader().backfill(&id)? {
                    Some(backfill) => projects.now(node.handle())?.of(&backfill.workflow).cloned(),
                    None => None,
                },
                Target::Project(project) => Some(project.into()),
                Target::Bucket(bucket) => bucket_project(&bucket, |project| scope.has(project)).map(Arc::from),
                Target::Anything => None,
            })
        });
        found.await.map_err(|error| AskError::NoAnswer(error.to_string()))
    }

    /// The error for a caller who may not do something: that it does not exist, if they may not even see it.
    fn forbidden(&self, need: &Need, target: &Target, project: Option<&str>) -> AskError {
        let is_seen = self.grants.allow(Right::View, project);
        match target {
            Target::Workflow(workflow) if !is_seen => AskError::Refused(Refusal::NoWorkflow(workflow.clone())),
            Target::Backfill(backfill) if !is_seen => AskError::Refused(Refusal::NoBackfill(backfill.clone())),
            _ => self.refusal(need.right, project, "a request to the scheduler"),
        }
    }

    /// Refuses a rerun of everything downstream that would change slots of projects for which the caller lacks the right.
    async fn check_spread(&self, request: &DownstreamRequest, right: Right) -> Result<(), AskError> {
        let preview = DownstreamRequest { dry_run: true, ..request.clone() };
        let outcome = self.node.handle().ask(&Actor::system("server"), preview).await?;
        let slots = outcome.created.iter().chain(&outcome.reopened).chain(&outcome.killed);
        let workflows: BTreeSet<WorkflowId> = slots.map(|slot| slot.workflow.clone()).collect();
        let (node, known, grants) = (self.node.clone(), self.projects.clone(), self.grants.clone());
        let is_allowed = blocking(move || {
            let projects = known.now(node.handle())?;
            let allowed = |workflow| projects.of(workflow).is_some_and(|project| grants.allow(right, Some(project)));
            Ok(workflows.iter().all(allowed))
        });
        match is_allowed.await.map_err(|error| AskError::NoAnswer(error.to_string()))? {
            true => Ok(()),
            false => self.require(right, None, "a rerun of everything downstream"),
        }
    }
}
