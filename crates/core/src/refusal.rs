//! Why something was not done that somebody asked for.

use kelos_model::run::LARGEST_GIVEN;
use kelos_model::{BackfillId, Breach, SlotRef, SlotState, WorkflowId};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No such workflow.
    NoWorkflow(WorkflowId),
    /// Nobody ever opened the job.
    NeverOpened(SlotRef),
    /// It is no event schedule.
    NoEventSchedule(WorkflowId),
    /// It is neither an event schedule nor a program.
    NotStartable(WorkflowId),
    /// There is something of that name.
    ScheduleTaken(WorkflowId),
    /// An event schedule runs a program that is not there.
    NoProgram {
        /// The event schedule.
        schedule: WorkflowId,
        /// The program.
        program: WorkflowId,
    },
    /// It is enabled already.
    AlreadyEnabled(WorkflowId),
    /// It is disabled already.
    AlreadyDisabled(WorkflowId),
    /// An event schedule is never paused or resumed: it is disabled and enabled.
    NotPausable(WorkflowId),
    /// More than is kept with a run.
    ArgumentsTooLarge {
        /// How many bytes they have as JSON.
        bytes: usize,
    },
    /// Slots named by the moment at which they came to be are made by facts and requests only.
    NeverCameToBe(SlotRef),
    /// Its schedule has no such time.
    NotInSchedule(SlotRef),
    /// Its workflow has no such job ids: why, in words.
    NoJobId(SlotRef, String),
    /// Its schedule can't be resolved.
    NoSchedule(WorkflowId, String),
    /// Only final slots can be opened again.
    StillLive(SlotRef, SlotState),
    /// Only live slots can be killed.
    AlreadyFinal(SlotRef, SlotState),
    /// Only live slots can be skipped.
    NotSkippable(SlotRef, SlotState),
    /// It has succeeded already.
    AlreadySucceeded(SlotRef),
    /// Only a slot whose run is not alive can be marked as succeeded.
    RunAlive(SlotRef, u32),
    /// What depends on a slot is dispatched or running: the first of them, and how many.
    DownstreamLive(SlotRef, SlotState, usize),
    /// More slots depend on one than a request may touch.
    TooManyDownstream {
        /// The limit.
        limit: usize,
    },
    /// There is a backfill of that name.
    NameTaken(BackfillId),
    /// There is no backfill of that name.
    NoBackfill(BackfillId),
    /// It was cancelled: nothing of it is to go on.
    BackfillCancelled(BackfillId),
    /// All its slots have ended.
    BackfillOver(BackfillId),
    /// More slots than one request may touch.
    TooMany {
        /// As many as were counted, which is more than the limit; it may be more still.
        slots: usize,
        /// The limit.
        limit: usize,
    },
    /// It broke an invariant, and nothing was done.
    Broken(Breach),
}

impl Refusal {
    /// The code of its kind: the same for ever, at every door. What can be done about two kinds in the same way shares a code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NoWorkflow(_) => "workflow-not-found",
            Refusal::NeverOpened(_) => "never-opened",
            Refusal::NoEventSchedule(_) => "schedule-not-found",
            Refusal::NotStartable(_) => "not-startable",
            Refusal::ScheduleTaken(_) | Refusal::NameTaken(_) => "name-taken",
            Refusal::NoProgram { .. } => "program-not-found",
            Refusal::AlreadyEnabled(_) => "already-enabled",
            Refusal::AlreadyDisabled(_) => "already-disabled",
            Refusal::NotPausable(_) => "not-pausable",
            Refusal::ArgumentsTooLarge { .. } => "arguments-too-large",
            Refusal::NeverCameToBe(_) => "slot-not-found",
            Refusal::NotInSchedule(_) => "not-in-schedule",
            Refusal::NoJobId(..) => "no-job-id",
            Refusal::NoSchedule(..) => "no-schedule",
            Refusal::StillLive(..) => "still-live",
            Refusal::AlreadyFinal(..) | Refusal::NotSkippable(..) => "already-final",
            Refusal::AlreadySucceeded(_) => "already-succeeded",
            Refusal::RunAlive(..) => "run-alive",
            Refusal::DownstreamLive(..) => "downstream-live",
            Refusal::TooManyDownstream { .. } | Refusal::TooMany { .. } => "too-many",
            Refusal::NoBackfill(_) => "backfill-not-found",
            Refusal::BackfillCancelled(_) => "backfill-cancelled",
            Refusal::BackfillOver(_) => "backfill-over",
            Refusal::Broken(_) => "broken-invariant",
        }
    }
}

/// The one place of its words.
impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoWorkflow(id) => write!(f, "no workflow is named \"{id}\""),
            Refusal::NoEventSchedule(id) => write!(f, "no event schedule is named \"{id}\""),
            Refusal::NotStartable(id) => {
                write!(f, "{id} is neither an event schedule nor a program: its slots are made by its keys, rerun one")
            }
            Refusal::ScheduleTaken(id) => write!(f, "a workflow named \"{id}\" exists already, expected a new name"),
            Refusal::NoProgram { schedule, program } => {
                write!(f, "{schedule} runs {program}, and there is no such workflow")
            }
            Refusal::AlreadyEnabled(id) => write!(f, "{id} is enabled already"),
            Refusal::AlreadyDisabled(id) => write!(f, "{id} is disabled already"),
            Refusal::NotPausable(id) => {
                write!(f, "{id} is an event schedule, which is enabled and disabled, and never paused")
            }
            Refusal::ArgumentsTooLarge { bytes } => {
                write!(f, "the arguments have {bytes} bytes, expected at most {LARGEST_GIVEN}")
            }
            Refusal::NeverCameToBe(slot) => {
                write!(f, "{} does not exist: expected the moment at which one of its slots was opened", slot.short())
            }
            Refusal::NoJobId(slot, why) => write!(f, "\"{}\" is no job of {}: {why}", slot.key.short(), slot.workflow),
            Refusal::NeverOpened(slot) => write!(f, "{} was never opened, so there is nothing to kill", slot.short()),
            Refusal::NotInSchedule(slot) => write!(f, "{} is not a time of its workflow's schedule", slot.short()),
            Refusal::NoSchedule(id, why) => write!(f, "the schedule of \"{id}\" can't be resolved: {why}"),
            Refusal::StillLive(slot, state) => {
                write!(f, "{} is {state}: only a slot that has ended can be rerun", slot.short())
            }
            Refusal::AlreadyFinal(slot, state) => {
                write!(f, "{} is {state}: only a slot that has not ended can be killed", slot.short())
            }
            Refusal::NotSkippable(slot, state) => {
                write!(f, "{} is {state}: only a slot that has not ended can be skipped", slot.short())
            }
            Refusal::AlreadySucceeded(slot) => write!(f, "{} has succeeded already", slot.short()),
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
            Refusal::TooManyDownstream { limit } => {
                write!(f, "more than {limit} slots depend on it: rerun it alone, and backfill the downstream workflows")
            }
            Refusal::NameTaken(id) => write!(f, "a backfill named \"{id}\" exists already, expected a new name"),
            Refusal::NoBackfill(id) => write!(f, "no backfill is named \"{id}\""),
            Refusal::BackfillCancelled(id) => write!(f, "the backfill \"{id}\" was cancelled, make a new one"),
            Refusal::BackfillOver(id) => write!(f, "all slots of the backfill \"{id}\" have ended"),
            Refusal::TooMany { limit, .. } => {
                write!(f, "it would affect more than {limit} slots: ask for a shorter range")
            }
            Refusal::Broken(breach) => write!(
                f,
                "an internal check of the scheduler failed, and nothing was done: {breach}. The workflow {} is frozen until \
                 it is resumed; see Problems",
                breach.workflow
            ),
        }
    }
}
