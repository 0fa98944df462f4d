//! Refusals: the reasons why a request was not carried out.

use kelos_model::references::MissingConsent;
use kelos_model::run::LARGEST_GIVEN;
use kelos_model::similar::closest;
use kelos_model::workflow::{DefinitionVersion, VersionChoice};
use kelos_model::{BackfillId, Breach, SlotKey, SlotRef, SlotState, WorkflowId};

/// As many versions are listed.
const LISTED_VERSIONS: usize = 10;

/// The reason why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The workflow does not exist.
    NoWorkflow(WorkflowId),
    /// The job was never opened.
    NeverOpened(SlotRef),
    /// The workflow is not an event schedule.
    NoEventSchedule(WorkflowId),
    /// The workflow has job ids, so that each of its runs needs one.
    NotStartable(WorkflowId),
    /// The name is taken.
    ScheduleTaken(WorkflowId),
    /// The project of a program has the name of one that a file defines.
    ProjectOfFile {
        /// The project.
        project: String,
        /// The file.
        file: String,
    },
    /// A program would define a workflow of another project.
    NameOfProject {
        /// The workflow.
        workflow: WorkflowId,
        /// The project that it belongs to.
        project: String,
    },
    /// The program of an event schedule does not exist.
    NoProgram {
        /// The event schedule.
        schedule: WorkflowId,
        /// The program.
        program: WorkflowId,
    },
    /// The event schedule is already enabled.
    AlreadyEnabled(WorkflowId),
    /// The event schedule is already disabled.
    AlreadyDisabled(WorkflowId),
    /// Event schedules are enabled and disabled, not paused and resumed.
    NotPausable(WorkflowId),
    /// The arguments are larger than a run keeps.
    ArgumentsTooLarge {
        /// Their size as JSON, in bytes.
        bytes: usize,
    },
    /// A value is nested too deeply. In words.
    TooDeep(String),
    /// A part of what would be stored could not be read back, and nothing was done.
    Unreadable {
        /// The part that could not, in words.
        what: String,
        /// The reason, in words.
        why: String,
    },
    /// The arguments are not those that the parameters of the workflow expect.
    ArgumentsMismatched {
        /// The workflow.
        workflow: WorkflowId,
        /// All mistakes, in words.
        mistakes: Vec<String>,
    },
    /// The slot does not exist. Only facts and requests create slots that are named by a moment.
    NeverCameToBe(SlotRef),
    /// The schedule of the workflow does not have this time.
    NotInSchedule(SlotRef),
    /// The workflow does not have this job id. The text gives the reason.
    NoJobId(SlotRef, String),
    /// The workflow has no schedule. The text gives the reason.
    NoSchedule(WorkflowId, String),
    /// The slot is live. Only final slots can be rerun.
    StillLive(SlotRef, SlotState),
    /// The slot is final. Only live slots can be killed.
    AlreadyFinal(SlotRef, SlotState),
    /// The slot is final. Only live slots can be skipped.
    NotSkippable(SlotRef, SlotState),
    /// The slot has already succeeded.
    AlreadySucceeded(SlotRef),
    /// The slot has a live run, of this number. Only slots without one can be marked as succeeded.
    RunAlive(SlotRef, u32),
    /// Downstream slots are dispatched or running: the first of them, its state, and their number.
    DownstreamLive(SlotRef, SlotState, usize),
    /// More slots are downstream than one request may touch.
    TooManyDownstream {
        /// The limit.
        limit: usize,
    },
    /// The name of the backfill is taken.
    NameTaken(BackfillId),
    /// The backfill does not exist.
    NoBackfill(BackfillId),
    /// The backfill was cancelled.
    BackfillCancelled(BackfillId),
    /// All slots of the backfill have ended.
    BackfillOver(BackfillId),
    /// No definition of the workflow is of the version.
    NoVersion {
        /// The workflow.
        workflow: WorkflowId,
        /// The version.
        version: VersionChoice,
        /// The definitions that are known, ascending.
        known: Vec<DefinitionVersion>,
    },
    /// The backfill has more slots than one request may touch.
    TooMany {
        /// The number that was counted, which is above the limit. The real number may be larger.
        slots: usize,
        /// The limit.
        limit: usize,
    },
    /// The workflow has no flow, or the slot is no run of one.
    NoFlow(WorkflowId),
    /// No step of the flow waits for the signal.
    NoSignal {
        /// The workflow.
        workflow: WorkflowId,
        /// The signal.
        signal: String,
        /// The signals that its steps wait for.
        known: Vec<String>,
    },
    /// The flow has no such step.
    NoStep {
        /// The workflow.
        workflow: WorkflowId,
        /// The step.
        step: String,
        /// The steps of the flow.
        known: Vec<String>,
    },
    /// The run of the step is live. Only steps of runs that have ended can be done again.
    StepOfLiveRun(SlotRef, SlotState),
    /// The step never ran in its run, so that nothing is there to be done again.
    NeverRan(SlotRef),
    /// The step only waits for a signal of this name.
    OnlyWaits(SlotRef, String),
    /// Another run has the name, and does not do this step again.
    RunNameTaken(SlotRef, SlotRef),
    /// The inputs that were given are not such as the step had.
    InputsMismatched {
        /// The step.
        step: SlotRef,
        /// All mistakes, in words.
        mistakes: Vec<String>,
    },
    /// The run has ended, and takes no signals.
    RunOver(SlotRef, SlotState),
    /// All steps of the run have succeeded, so that there is nothing to go on with.
    NothingToResume(SlotRef),
    /// The actor lacks a right.
    NotAllowed {
        /// The right, as a verb.
        right: &'static str,
        /// The project; none if the right is needed for all.
        project: Option<String>,
    },
    /// Changes of the project need a reason, and none was given.
    ReasonMissing {
        /// The project.
        project: String,
    },
    /// A definition refers to something that another project does not share.
    NotShared(Box<MissingConsent>),
    /// A value is the mask that is shown in the place of a secret, and there is none to keep.
    Masked {
        /// The path of the value.
        name: String,
    },
    /// The request broke an invariant, and nothing was done.
    Broken(Breach),
}

impl Refusal {
    /// The stable code of its kind, the same at every door. Kinds with the same remedy share a code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NoWorkflow(_) => "workflow-not-found",
            Refusal::NeverOpened(_) => "never-opened",
            Refusal::NoEventSchedule(_) => "schedule-not-found",
            Refusal::NotStartable(_) => "not-startable",
            Refusal::ScheduleTaken(_)
            | Refusal::NameTaken(_)
            | Refusal::RunNameTaken(..)
            | Refusal::ProjectOfFile { .. }
            | Refusal::NameOfProject { .. } => "name-taken",
            Refusal::NoProgram { .. } => "program-not-found",
            Refusal::AlreadyEnabled(_) => "already-enabled",
            Refusal::AlreadyDisabled(_) => "already-disabled",
            Refusal::NotPausable(_) => "not-pausable",
            Refusal::ArgumentsTooLarge { .. } => "arguments-too-large",
            Refusal::TooDeep(_) => "too-deep",
            Refusal::Unreadable { .. } => "unreadable",
            Refusal::ArgumentsMismatched { .. } | Refusal::InputsMismatched { .. } => "arguments-mismatched",
            Refusal::NeverCameToBe(_) => "slot-not-found",
            Refusal::NotInSchedule(_) => "not-in-schedule",
            Refusal::NoJobId(..) => "no-job-id",
            Refusal::NoSchedule(..) => "no-schedule",
            Refusal::StillLive(..) | Refusal::StepOfLiveRun(..) => "still-live",
            Refusal::AlreadyFinal(..) | Refusal::RunOver(..) | Refusal::NotSkippable(..) => "already-final",
            Refusal::AlreadySucceeded(_) => "already-succeeded",
            Refusal::RunAlive(..) => "run-alive",
            Refusal::DownstreamLive(..) => "downstream-live",
            Refusal::TooManyDownstream { .. } | Refusal::TooMany { .. } => "too-many",
            Refusal::NoBackfill(_) => "backfill-not-found",
            Refusal::BackfillCancelled(_) => "backfill-cancelled",
            Refusal::BackfillOver(_) => "backfill-over",
            Refusal::NoVersion { .. } => "version-not-found",
            Refusal::NoFlow(_) => "no-flow",
            Refusal::NoSignal { .. } => "signal-not-found",
            Refusal::NoStep { .. } => "step-not-found",
            Refusal::NothingToResume(_) => "nothing-to-resume",
            Refusal::NeverRan(_) => "never-ran",
            Refusal::OnlyWaits(..) => "only-waits",
            Refusal::NotAllowed { .. } => "forbidden",
            Refusal::ReasonMissing { .. } => "reason-missing",
            Refusal::NotShared(_) => "not-shared",
            Refusal::Masked { .. } => "masked-value",
            Refusal::Broken(_) => "broken-invariant",
        }
    }
}

/// The only place of its text.
impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoWorkflow(id) => write!(f, "no workflow is named \"{id}\""),
            Refusal::NoEventSchedule(id) => write!(f, "no event schedule is named \"{id}\""),
            Refusal::NotStartable(id) => {
                write!(f, "{id} has job ids, so a run of it needs one: submit a job")
            }
            Refusal::ScheduleTaken(id) => write!(f, "a workflow named \"{id}\" exists already, expected a new name"),
            Refusal::ProjectOfFile { project, file } => {
                write!(f, "the project \"{project}\" is defined by the file {file}, expected a project of another name")
            }
            Refusal::NameOfProject { workflow, project } => {
                write!(
                    f,
                    "a workflow named \"{workflow}\" exists already in the project {project}, expected a new name"
                )
            }
            Refusal::NoProgram { schedule, program } => {
                write!(f, "{schedule} runs {program}, and there is no such workflow")
            }
            Refusal::AlreadyEnabled(id) => write!(f, "{id} is enabled already"),
            Refusal::AlreadyDisabled(id) => write!(f, "{id} is disabled already"),
            Refusal::NotPausable(id) => {
                write!(f, "{id} is an event schedule, which is enabled and disabled, and never paused")
            }
            Refusal::ArgumentsTooLarge { bytes } => too_large(f, *bytes),
            Refusal::TooDeep(_) | Refusal::Unreadable { .. } => not_storable(f, self),
            Refusal::ArgumentsMismatched { workflow, mistakes } => mismatched(f, workflow, mistakes),
            Refusal::NeverCameToBe(slot) => write!(f, "{} does not exist: expected {}", slot.short(), expected(slot)),
            Refusal::NoJobId(slot, why) => write!(f, "\"{}\" is no job of {}: {why}", slot.key.short(), slot.workflow),
            Refusal::NeverOpened(slot) => write!(f, "{} was never opened, so there is nothing to kill", slot.short()),
            Refusal::NotInSchedule(slot) => write!(f, "{} is not a time of its workflow's schedule", slot.short()),
            Refusal::NoSchedule(id, why) => write!(f, "the schedule of \"{id}\" can't be resolved: {why}"),
            Refusal::StillLive(slot, state) => {
                write!(f, "{} is {state}: only a slot that has ended can be rerun", slot.short())
            }
            Refusal::AlreadyFinal(slot, state) => over(f, (slot, *state), "slot that has not ended can be killed"),
            Refusal::RunOver(slot, state) => over(f, (slot, *state), "run that has not ended takes signals"),
            Refusal::NotSkippable(slot, state) => over(f, (slot, *state), "slot that has not ended can be skipped"),
            Refusal::AlreadySucceeded(slot) => write!(f, "{} has succeeded already", slot.short()),
            Refusal::RunAlive(..) | Refusal::DownstreamLive(..) => still_running(f, self),
            Refusal::TooManyDownstream { limit } => {
                write!(f, "more than {limit} slots depend on it: rerun it alone, and backfill the downstream workflows")
            }
            Refusal::NameTaken(id) => write!(f, "a backfill named \"{id}\" exists already, expected a new name"),
            Refusal::NoBackfill(id) => write!(f, "no backfill is named \"{id}\""),
            Refusal::BackfillCancelled(id) => write!(f, "the backfill \"{id}\" was cancelled, make a new one"),
            Refusal::BackfillOver(id) => write!(f, "all slots of the backfill \"{id}\" have ended"),
            Refusal::NoVersion { workflow, version, known } => no_version(f, workflow, version, known),
            Refusal::TooMany { limit, .. } => {
                write!(f, "it would affect more than {limit} slots: ask for a shorter range")
            }
            Refusal::NoFlow(_) | Refusal::NoSignal { .. } | Refusal::NoStep { .. } | Refusal::NothingToResume(_) => {
                of_flow(f, self)
            }
            Refusal::StepOfLiveRun(..)
            | Refusal::NeverRan(_)
            | Refusal::OnlyWaits(..)
            | Refusal::RunNameTaken(..)
            | Refusal::InputsMismatched { .. } => of_repeat(f, self),
            Refusal::NotAllowed { .. } | Refusal::ReasonMissing { .. } => of_caller(f, self),
            Refusal::Masked { .. } | Refusal::NotShared(_) => of_caller(f, self),
            Refusal::Broken(breach) => write!(
                f,
                "an internal check of the scheduler failed, and nothing was done: {breach}. The workflow {} is frozen until \
                 it is resumed; see Problems",
                breach.workflow
            ),
        }
    }
}

/// The words for what was expected in the place of a name: the one that was probably meant, or all.
fn one_of(wrong: &str, known: &[String]) -> String {
    match closest(wrong, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {meant}?"),
        None if known.is_empty() => "which has none".to_owned(),
        None => format!("expected one of: {}", known.join(", ")),
    }
}

fn still_running(f: &mut std::fmt::Formatter<'_>, refusal: &Refusal) -> std::fmt::Result {
    match refusal {
        Refusal::RunAlive(slot, run) => write!(
            f,
            "run {run} of {} has not ended, and downstream slots would start: only a slot without a live run can be \
             marked as succeeded",
            slot.short()
        ),
        Refusal::DownstreamLive(slot, state, 1) => {
            write!(f, "{} is {state}: only slots without a live run can be rerun", slot.short())
        }
        Refusal::DownstreamLive(slot, state, count) => write!(
            f,
            "{} is {state}, and {} more are dispatched or running: only slots without a live run can be rerun",
            slot.short(),
            count.saturating_sub(1)
        ),
        _ => Ok(()),
    }
}

fn not_storable(f: &mut std::fmt::Formatter<'_>, refusal: &Refusal) -> std::fmt::Result {
    match refusal {
        Refusal::TooDeep(words) => f.write_str(words),
        Refusal::Unreadable { what, why } => {
            write!(f, "{what} could not be read back once it is stored, and nothing was done: {why}")
        }
        _ => Ok(()),
    }
}

/// The words about a request that its caller may not make, or has to make otherwise.
fn of_caller(f: &mut std::fmt::Formatter<'_>, refusal: &Refusal) -> std::fmt::Result {
    match refusal {
        Refusal::NotAllowed { right, project: Some(project) } => {
            write!(f, "it needs the right to {right} the project {project}")
        }
        Refusal::NotAllowed { right, project: None } => write!(f, "it needs the right to {right} all projects"),
        Refusal::ReasonMissing { project } => write!(f, "changes of the project {project} need a reason"),
        Refusal::Masked { name } => {
            write!(f, "{name} is the mask of a value, and there is none to keep: expected the value itself")
        }
        Refusal::NotShared(unshared) => {
            write!(f, "{unshared}; that project can allow it by {}", unshared.line())
        }
        _ => Ok(()),
    }
}

fn too_large(f: &mut std::fmt::Formatter<'_>, bytes: usize) -> std::fmt::Result {
    write!(f, "the arguments have {bytes} bytes, expected at most {LARGEST_GIVEN}")
}

fn mismatched(f: &mut std::fmt::Formatter<'_>, workflow: &WorkflowId, mistakes: &[String]) -> std::fmt::Result {
    write!(f, "the arguments of {workflow} are wrong: {}", mistakes.join("; "))
}

fn no_version(
    f: &mut std::fmt::Formatter<'_>,
    workflow: &WorkflowId,
    version: &VersionChoice,
    known: &[DefinitionVersion],
) -> std::fmt::Result {
    write!(f, "no definition of {workflow} has the version {version}, expected {}", known_versions(known))
}

/// The newest versions first: `1.4 (#3), 1.3 (#2) or #1`.
fn known_versions(known: &[DefinitionVersion]) -> String {
    let mut listed: Vec<String> = known.iter().rev().take(LISTED_VERSIONS).map(ToString::to_string).collect();
    match known.len().saturating_sub(LISTED_VERSIONS) {
        0 => match (listed.pop(), listed.is_empty()) {
            (None, _) => "one that was defined".to_owned(),
            (Some(only), true) => only,
            (Some(last), false) => format!("{} or {last}", listed.join(", ")),
        },
        more => format!("{} or one of {more} before", listed.join(", ")),
    }
}

/// The key that was expected where a slot does not exist.
fn expected(slot: &SlotRef) -> &'static str {
    match slot.key {
        SlotKey::Step(_) => "a step that its run has opened",
        SlotKey::Named(_) => "the name of a run that somebody started",
        _ => "the moment at which one of its slots was opened",
    }
}

/// The refusals that are about flows.
fn of_flow(f: &mut std::fmt::Formatter<'_>, refusal: &Refusal) -> std::fmt::Result {
    match refusal {
        Refusal::NoFlow(id) => write!(f, "{id} is no flow, or the slot is no run of it that has begun"),
        Refusal::NoSignal { workflow, signal, known } => {
            write!(f, "no step of {workflow} waits for a signal \"{signal}\", {}", one_of(signal, known))
        }
        Refusal::NoStep { workflow, step, known } => {
            write!(f, "{workflow} has no step \"{step}\", {}", one_of(step, known))
        }
        Refusal::NothingToResume(slot) => write!(
            f,
            "all steps of {} have succeeded: name the step from which on they are to be done again, or rerun it",
            slot.short()
        ),
        _ => Ok(()),
    }
}

/// The refusals of steps that are to be done again.
fn of_repeat(f: &mut std::fmt::Formatter<'_>, refusal: &Refusal) -> std::fmt::Result {
    match refusal {
        Refusal::StepOfLiveRun(run, state) => {
            write!(f, "{} is {state}: only a step of a run that has ended can be done again", run.short())
        }
        Refusal::NeverRan(step) if step.key.step().is_some_and(|key| key.item_number().is_some()) => {
            write!(f, "{} never ran: expected an item of a list that its run has started", step.short())
        }
        Refusal::NeverRan(step) => {
            write!(f, "{} never ran, so there is nothing to do again: expected a step that ran", step.short())
        }
        Refusal::OnlyWaits(step, signal) => write!(
            f,
            "{} only waits for the signal {signal}: to wait for it again, resume its run from that step on",
            step.short()
        ),
        Refusal::RunNameTaken(run, step) => {
            write!(f, "{} exists and does not do {} again, expected a new name", run.short(), step.short())
        }
        Refusal::InputsMismatched { step, mistakes } => {
            write!(f, "the inputs of {} are wrong: {}", step.short(), mistakes.join("; "))
        }
        _ => Ok(()),
    }
}

/// The refusal for what has ended.
fn over(f: &mut std::fmt::Formatter<'_>, (slot, state): (&SlotRef, SlotState), only: &str) -> std::fmt::Result {
    write!(f, "{} is {state}: only a {only}", slot.short())
}
