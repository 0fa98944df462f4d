//! The rights that requests need, checked in the turn that carries them out: nothing can change between the check and the effect.
//!
//! This is the one place that says what a request needs and for which projects. A new kind of request does not compile without. A fact
//! needs the right for the project that its subject belongs to, or its consent.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::references::Ownership;
use kelos_model::register::is_reserved;
use kelos_model::sharing::{Reference, Scope};
use kelos_model::{BackfillId, Fact, SlotRef, Workflow, WorkflowId};

use crate::backfills::Backfills;
use crate::requests::{
    BackfillRequest, CancelBackfill, ChangeSchedule, CreateSchedules, DeleteSchedules, DeployProject, Disable,
    DownstreamRequest, Enable, EnableByTime, FireRequest, Inspect, Kill, MarkSuccess, Pause, PauseBackfill,
    PrioritiseBackfill, RepeatStep, Rerun, RerunBackfill, Resume, ResumeBackfill, ResumeFlow, SetRegister, SignalFlow,
    Skip, SubmitRequest, Tell,
};
use crate::warrant::{Right, Warrant};
use crate::{Ask, Refusal};

/// A thing that a request is about.
enum Target<'a> {
    /// A workflow, or something of one.
    Workflow(&'a WorkflowId),
    /// A backfill.
    Backfill(&'a BackfillId),
    /// A project by its name.
    Project(&'a str),
    /// A bucket of registers.
    Bucket(&'a str),
    /// A fact.
    Fact(&'a Fact),
    /// No project's: the right for any project is enough.
    Anything,
}

/// The needs of a request.
struct Need<'a> {
    right: Right,
    /// The right is needed for each of them.
    targets: Vec<Target<'a>>,
    /// The reason that was given, where the request can have one.
    reason: Option<&'a str>,
}

fn need<'a>(right: Right, targets: Vec<Target<'a>>, reason: Option<&'a String>) -> Need<'a> {
    Need { right, targets, reason: reason.map(String::as_str) }
}

fn operate<'a>(workflow: &'a WorkflowId, reason: Option<&'a String>) -> Need<'a> {
    need(Right::Operate, vec![Target::Workflow(workflow)], reason)
}

fn of_backfill<'a>(backfill: &'a BackfillId, reason: Option<&'a String>) -> Need<'a> {
    need(Right::Operate, vec![Target::Backfill(backfill)], reason)
}

fn of_workflows<'a>(
    right: Right,
    all: impl IntoIterator<Item = &'a WorkflowId>,
    reason: Option<&'a String>,
) -> Need<'a> {
    need(right, all.into_iter().map(Target::Workflow).collect(), reason)
}

/// The right that a request needs, and for what; none for what only Kelos asks of itself.
fn needs(ask: &Ask) -> Option<Need<'_>> {
    Some(match ask {
        Ask::Rerun(Rerun { slot, reason, .. })
        | Ask::Kill(Kill { slot, reason })
        | Ask::MarkSuccess(MarkSuccess { slot, reason })
        | Ask::Skip(Skip { slot, reason })
        // The slots downstream are looked at once they are known.
        | Ask::RerunDownstream(DownstreamRequest { slot, reason, .. }) => operate(&slot.workflow, reason.as_ref()),
        Ask::Pause(Pause { workflow, reason })
        | Ask::Resume(Resume { workflow, reason })
        | Ask::Fire(FireRequest { workflow, reason, .. })
        | Ask::Backfill(BackfillRequest { workflow, reason, .. }) => operate(workflow, reason.as_ref()),
        Ask::RepeatStep(RepeatStep { step: run, reason, .. })
        | Ask::SignalFlow(SignalFlow { run, reason, .. })
        | Ask::ResumeFlow(ResumeFlow { run, reason, .. }) => operate(&run.workflow, reason.as_ref()),
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
        Ask::DeployProject(DeployProject { project, .. }) => need(Right::Author, vec![Target::Project(project)], None),
        Ask::CreateSchedules(CreateSchedules { new, reason }) => {
            need(Right::Author, new.iter().map(|one| Target::Project(&one.project)).collect(), reason.as_ref())
        }
        Ask::ChangeSchedule(ChangeSchedule { changed, reason }) => {
            let targets = vec![Target::Workflow(&changed.id), Target::Project(&changed.project)];
            need(Right::Author, targets, reason.as_ref())
        }
        Ask::DeleteSchedules(DeleteSchedules { schedules, reason }) => {
            of_workflows(Right::Author, schedules, reason.as_ref())
        }
        Ask::SetRegister(SetRegister { bucket, reason, .. }) => {
            need(Right::Operate, vec![Target::Bucket(bucket)], reason.as_ref())
        }
        Ask::Tell(Tell { facts, .. }) => need(Right::Operate, facts.iter().map(Target::Fact).collect(), None),
        Ask::Inspect(Inspect { slot }) => of_workflows(Right::View, [&slot.workflow], None),
        Ask::InspectCapacity(_) => need(Right::View, vec![Target::Anything], None),
        Ask::RecordAccess(_) | Ask::TrimHistory(_) => return None,
    })
}

/// The definitions that a request would put into force.
pub(crate) fn definitions_of(ask: &Ask) -> &[Arc<Workflow>] {
    match ask {
        // What is only tried out is listed with its references, and not refused for them.
        Ask::DeployProject(DeployProject { definitions, dry_run: false, .. }) => definitions,
        Ask::CreateSchedules(CreateSchedules { new, .. }) => new,
        Ask::ChangeSchedule(ChangeSchedule { changed, .. }) => std::slice::from_ref(changed),
        _ => &[],
    }
}

/// The check of a request against the rights of the one who asks.
pub(crate) struct Rights<'a> {
    pub(crate) warrant: &'a Warrant,
    pub(crate) sharing: &'a Ownership,
    pub(crate) backfills: &'a Backfills,
}

impl Rights<'_> {
    /// Refuses a request for which a right is missing, or which needs a reason and has none.
    pub(crate) fn check(&self, ask: &Ask) -> Result<(), Refusal> {
        let Some(Need { right, targets, reason }) = needs(ask) else { return Ok(()) };
        let is_missing = right != Right::View && reason.is_none_or(|reason| reason.trim().is_empty());
        for target in &targets {
            let project = self.project_of(target, right);
            self.check_target(target, project.as_deref(), right)?;
            if let Some(project) = project.filter(|project| is_missing && self.warrant.needs_reason(project)) {
                return Err(Refusal::ReasonMissing { project: project.to_string() });
            }
        }
        Ok(())
    }

    /// Refuses the change of slots that a request reaches beyond its own workflow.
    pub(crate) fn check_spread<'s>(&self, slots: impl Iterator<Item = &'s SlotRef>) -> Result<(), Refusal> {
        let workflows: BTreeSet<&WorkflowId> = slots.map(|slot| &slot.workflow).collect();
        let scope = self.warrant.scope(Right::Operate);
        let may = |id: &&WorkflowId| scope.covers(self.sharing.project_of(id).map(|project| &**project));
        match workflows.iter().all(may) {
            true => Ok(()),
            // Their projects are not named.
            false => Err(Refusal::NotAllowed { right: Right::Operate.name(), project: None }),
        }
    }

    /// The same refusal without what the one who asks may not know: the project that has a name.
    pub(crate) fn hiding(&self, refusal: Refusal) -> Refusal {
        let is_hidden = |project: &str| !self.warrant.view.has(project);
        match refusal {
            Refusal::NameOfProject { workflow, project } if is_hidden(&project) => Refusal::ScheduleTaken(workflow),
            Refusal::NotShared(unshared) => match &unshared.reference {
                Reference::Start(program) if self.sharing.project_of(program).is_some_and(|one| is_hidden(one)) => {
                    let schedule = unshared.workflow.clone().unwrap_or_else(|| program.clone());
                    Refusal::NoProgram { schedule, program: program.clone() }
                }
                _ => Refusal::NotShared(unshared),
            },
            refusal => refusal,
        }
    }

    fn check_target(&self, target: &Target<'_>, project: Option<&str>, right: Right) -> Result<(), Refusal> {
        let scope = self.warrant.scope(right);
        let is_allowed = match target {
            Target::Anything => !matches!(scope, Scope::Only(projects) if projects.is_empty()),
            Target::Fact(fact) => self.may_publish(fact, scope),
            _ => scope.covers(project),
        };
        if is_allowed {
            return Ok(());
        }
        let is_seen = self.warrant.view.covers(project);
        Err(match target {
            Target::Workflow(workflow) if !is_seen => Refusal::NoWorkflow((*workflow).clone()),
            Target::Backfill(backfill) if !is_seen => Refusal::NoBackfill((*backfill).clone()),
            // Whether a subject belongs to a project that is not seen, or to none, is not said.
            _ => Refusal::NotAllowed { right: right.name(), project: project.filter(|_| is_seen).map(str::to_owned) },
        })
    }

    /// Whether a fact may be published: there is the right for the project that its subject belongs to, or that project lets one of those
    /// for which there is the right send it. What belongs to nobody needs the right for all projects.
    fn may_publish(&self, fact: &Fact, scope: &Scope) -> bool {
        let Scope::Only(own) = scope else { return true };
        if let Some(run) = fact.what.run_of_flow() {
            return scope.covers(self.sharing.project_of(&run.workflow).map(|project| &**project));
        }
        // Only Kelos itself reports times.
        let Some(reference) = Reference::of_fact(&fact.what) else { return false };
        match self.sharing.owner(&reference.referent()) {
            // A project that is still to come may have the name before it.
            None => own.iter().any(|project| begins_with(reference.referent().name(), project)),
            Some(owner) => own.iter().any(|project| self.sharing.consents(owner, project, &reference)),
        }
    }

    /// The project of a thing; none if it has none, so that the right for all projects is needed.
    fn project_of(&self, target: &Target<'_>, right: Right) -> Option<Arc<str>> {
        match target {
            Target::Workflow(workflow) => self.sharing.project_of(workflow).cloned(),
            Target::Backfill(id) => self.sharing.project_of(&self.backfills.get(id)?.workflow).cloned(),
            Target::Project(project) => Some((*project).into()),
            Target::Bucket(bucket) => bucket_project(self.sharing, bucket, self.warrant.scope(right)),
            Target::Fact(fact) => {
                let owner = self.sharing.owner(&Reference::of_fact(&fact.what)?.referent())?;
                Some(owner.clone()).filter(|owner| self.warrant.view.has(owner))
            }
            Target::Anything => None,
        }
    }
}

/// Whether a name is that of a project, or begins with it before a dot or a slash.
fn begins_with(name: &str, project: &str) -> bool {
    name.strip_prefix(project).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/']))
}

/// The project that a bucket of registers belongs to: the longest known one whose name it has, alone or before a dot or slash. Where none
/// is known, one that is still to come and is in the scope. Buckets of Kelos itself belong to none.
#[must_use]
pub fn bucket_project(sharing: &Ownership, bucket: &str, scope: &Scope) -> Option<Arc<str>> {
    if is_reserved(bucket) {
        return None;
    }
    let to_come = || match scope {
        Scope::All => None,
        Scope::Only(projects) => {
            projects.iter().filter(|project| begins_with(bucket, project)).max_by_key(|one| one.len()).cloned()
        }
    };
    sharing.project_named(bucket).cloned().or_else(to_come)
}
