//! What somebody may ask for: each request a type of its own, with what it is answered.
//!
//! The loop in front of the core carries any of them as an [`Ask`], and any answer as an [`AnyAnswer`]; the table below says
//! which belong together, and [`Request::answer`] gives the typed answer back. Absent: how a request is performed.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::backfill::BackfillMode;
use kelos_model::ranges::Range;
use kelos_model::{BackfillId, Fact, SlotRef, SlotState, Workflow, WorkflowId};
use serde_json::Value;

use crate::{Capacity, Inspection, Refusal};

/// Something that may be asked for.
pub trait Request: Into<Ask> {
    /// What is said when it was done.
    type Answer;

    /// What an answer to this request says; none where it is the answer to another.
    fn answer(answer: AnyAnswer) -> Option<Self::Answer>;

    /// The reply to this request.
    ///
    /// # Errors
    /// When it was refused.
    fn reply(outcome: Result<Self::Answer, Refusal>) -> Reply;
}

/// The answer to some request, or why it was refused.
pub type Reply = Result<AnyAnswer, Refusal>;

/// Any answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyAnswer {
    /// It was done.
    Done(()),
    /// The facts are stored.
    Tally(FactTally),
    /// These were enabled.
    Enabled(Vec<WorkflowId>),
    /// This slot goes.
    Fired(SlotRef),
    /// What became of each job, in the order in which they were given.
    Submitted(Vec<SubmitOutcome>),
    /// The slots of a backfill.
    Backfill(BackfillOutcome),
    /// These were opened again.
    Reopened(Vec<SlotRef>),
    /// A slot and all that depends on it.
    Downstream(DownstreamOutcome),
    /// What memory knows about a slot.
    Inspection(Inspection),
    /// Who holds what runs need, and who waits for it.
    Capacity(Capacity),
}

/// Which answer belongs to which request: here, and nowhere else.
macro_rules! requests {
    ($($name:ident($request:ty) -> $answer:ident($content:ty);)*) => {
        /// Any request.
        #[derive(Debug, Clone)]
        pub enum Ask {
            $(
                #[doc = concat!("Answered by [`AnyAnswer::", stringify!($answer), "`].")]
                $name($request),
            )*
        }

        $(
            impl From<$request> for Ask {
                fn from(request: $request) -> Ask {
                    Ask::$name(request)
                }
            }

            impl Request for $request {
                type Answer = $content;

                fn answer(answer: AnyAnswer) -> Option<$content> {
                    match answer {
                        AnyAnswer::$answer(content) => Some(content),
                        _ => None,
                    }
                }

                fn reply(outcome: Result<$content, Refusal>) -> Reply {
                    outcome.map(AnyAnswer::$answer)
                }
            }
        )*
    };
}

requests! {
    Submit(SubmitRequest) -> Submitted(Vec<SubmitOutcome>);
    Rerun(Rerun) -> Done(());
    Kill(Kill) -> Done(());
    MarkSuccess(MarkSuccess) -> Done(());
    Skip(Skip) -> Done(());
    RerunDownstream(DownstreamRequest) -> Downstream(DownstreamOutcome);
    Pause(Pause) -> Done(());
    Resume(Resume) -> Done(());
    Backfill(BackfillRequest) -> Backfill(BackfillOutcome);
    CancelBackfill(CancelBackfill) -> Done(());
    PauseBackfill(PauseBackfill) -> Done(());
    ResumeBackfill(ResumeBackfill) -> Done(());
    PrioritiseBackfill(PrioritiseBackfill) -> Done(());
    RerunBackfill(RerunBackfill) -> Reopened(Vec<SlotRef>);
    Tell(Tell) -> Tally(FactTally);
    CreateSchedules(CreateSchedules) -> Done(());
    ChangeSchedule(ChangeSchedule) -> Done(());
    DeleteSchedules(DeleteSchedules) -> Done(());
    Enable(Enable) -> Done(());
    Disable(Disable) -> Done(());
    EnableByTime(EnableByTime) -> Enabled(Vec<WorkflowId>);
    Fire(FireRequest) -> Fired(SlotRef);
    SetRegister(SetRegister) -> Done(());
    Inspect(Inspect) -> Inspection(Inspection);
    InspectCapacity(InspectCapacity) -> Capacity(Capacity);
}

/// Open a final slot again, or open one that was never planned.
#[derive(Debug, Clone)]
pub struct Rerun {
    /// The slot.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// End a slot and its run, or see to it that it never goes.
#[derive(Debug, Clone)]
pub struct Kill {
    /// The slot.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Take a slot for succeeded whose run is not alive: what it was for is done.
#[derive(Debug, Clone)]
pub struct MarkSuccess {
    /// The slot.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Pass over a live slot, and end its run.
#[derive(Debug, Clone)]
pub struct Skip {
    /// The slot.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Leave a workflow alone: no planning, no looking, no dispatching. Runs that go on are recorded.
#[derive(Debug, Clone)]
pub struct Pause {
    /// The workflow.
    pub workflow: WorkflowId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// End a pause.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The workflow.
    pub workflow: WorkflowId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Kill what a backfill has waiting.
#[derive(Debug, Clone)]
pub struct CancelBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Leave the slots of a backfill alone that have no run: no looking, no dispatching.
#[derive(Debug, Clone)]
pub struct PauseBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// End the pause of a backfill.
#[derive(Debug, Clone)]
pub struct ResumeBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Give a backfill and its live slots another priority.
#[derive(Debug, Clone)]
pub struct PrioritiseBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// Larger goes first; below 0 goes after current work.
    pub priority: i32,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Open the slots of a backfill again that failed or expired.
#[derive(Debug, Clone)]
pub struct RerunBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Create event schedules, disabled unless they say otherwise: all of them or none.
#[derive(Debug, Clone)]
pub struct CreateSchedules {
    /// Their definitions.
    pub new: Vec<Arc<Workflow>>,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Put another definition in the place of an event schedule's. It stays enabled if it was.
#[derive(Debug, Clone)]
pub struct ChangeSchedule {
    /// The definition.
    pub changed: Arc<Workflow>,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Delete event schedules: all of them or none.
#[derive(Debug, Clone)]
pub struct DeleteSchedules {
    /// The event schedules.
    pub schedules: Vec<WorkflowId>,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Enable an event schedule that is disabled.
#[derive(Debug, Clone)]
pub struct Enable {
    /// The event schedule.
    pub schedule: WorkflowId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Disable an event schedule that is enabled, and end what it has pending.
#[derive(Debug, Clone)]
pub struct Disable {
    /// The event schedule.
    pub schedule: WorkflowId,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Enable those of some event schedules that are disabled and were last changed within a range.
#[derive(Debug, Clone)]
pub struct EnableByTime {
    /// The event schedules.
    pub schedules: Vec<WorkflowId>,
    /// When.
    pub range: Range,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Set a register, or delete it with none.
#[derive(Debug, Clone)]
pub struct SetRegister {
    /// Its bucket.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Its new value.
    pub value: Option<Value>,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Count facts that somebody tells, in their order.
#[derive(Debug, Clone)]
pub struct Tell {
    /// The facts. Those that have names count once.
    pub facts: Vec<Fact>,
}

/// How many facts were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactTally {
    /// So many are new.
    pub new: u32,
    /// So many were told before, and don't count again.
    pub known: u32,
}

/// Say what only the scheduler's memory knows about a slot.
#[derive(Debug, Clone)]
pub struct Inspect {
    /// The slot.
    pub slot: SlotRef,
}

/// Say who holds what runs need, and who waits for it.
#[derive(Debug, Clone, Copy)]
pub struct InspectCapacity;

/// A run that somebody wants now.
#[derive(Debug, Clone)]
pub struct FireRequest {
    /// Of which event schedule or program.
    pub workflow: WorkflowId,
    /// Arguments beside its own.
    pub arguments: BTreeMap<String, String>,
    /// Whether its constraints are passed over, too.
    pub unconstrained: bool,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// Jobs that somebody submits.
#[derive(Debug, Clone)]
pub struct SubmitRequest {
    /// The jobs, their ids in the normal form.
    pub jobs: Vec<SlotRef>,
    /// Larger goes first.
    pub priority: i32,
    /// Open those again that have ended, with all that depends on them and has ended; otherwise what exists is left as it is.
    pub readd: bool,
    /// Why, in their words.
    pub reason: Option<String>,
}

/// What became of a job that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// It was opened.
    Opened,
    /// It had ended, and was opened again, with so many that depend on it.
    Reopened {
        /// How many others.
        descendants: u32,
    },
    /// It exists, and was left as it is.
    Existed(SlotState),
}

/// A rerun of a slot with all that depends on it, which somebody asks for.
#[derive(Debug, Clone)]
pub struct DownstreamRequest {
    /// The slot on which the others depend.
    pub slot: SlotRef,
    /// Why, in their words.
    pub reason: Option<String>,
    /// Kill those that are dispatched or running first; otherwise they are a reason to refuse.
    pub kill_live: bool,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// A backfill that somebody asks for.
#[derive(Debug, Clone)]
pub struct BackfillRequest {
    /// Its name.
    pub id: BackfillId,
    /// The workflow of the slots.
    pub workflow: WorkflowId,
    /// The range of times.
    pub range: Range,
    /// Which existing ones are opened again.
    pub mode: BackfillMode,
    /// Larger goes first; below 0 goes after current work.
    pub priority: i32,
    /// Why, in the words of who asks.
    pub reason: Option<String>,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// Slots that an answer lists one by one.
pub(crate) const LISTED: usize = 10_000;

/// Slots, of which there may be millions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotList {
    /// How many.
    pub count: u64,
    /// The first 10,000 of them, ascending.
    pub first: Vec<SlotRef>,
}

/// The slots of a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillOutcome {
    /// Never planned before.
    pub created: SlotList,
    /// Final, opened again.
    pub reopened: SlotList,
    /// Live, taken over with a higher priority.
    pub adopted: SlotList,
    /// Left as they are.
    pub untouched: u64,
}

/// A slot and all that depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownstreamOutcome {
    /// The slot itself, where it was never planned before.
    pub created: Option<SlotRef>,
    /// Final or only queued, opened again.
    pub reopened: Vec<SlotRef>,
    /// Dispatched or running, killed and opened again; in a dry run also those that would be a reason to refuse.
    pub killed: Vec<SlotRef>,
    /// Left as they are: they look at their triggers again anyway.
    pub untouched: u32,
}

impl BackfillRequest {
    /// A request for what is missing in a range, after current work.
    #[must_use]
    pub fn missing(id: BackfillId, workflow: WorkflowId, range: Range) -> Self {
        BackfillRequest { id, workflow, range, mode: BackfillMode::Missing, priority: -1, reason: None, dry_run: false }
    }
}
