//! Requests and their answers: each request is a type of its own with the type of its answer.
//!
//! The loop in front of the core passes any request as an [`Ask`], and any answer as an [`AnyAnswer`]; the table below
//! pairs them, and [`Request::answer`] recovers the typed answer. Absent: how a request is carried out.

use std::sync::Arc;

use kelos_model::backfill::BackfillMode;
use kelos_model::history::Trim;
use kelos_model::ranges::Range;
use kelos_model::workflow::VersionChoice;
use kelos_model::{
    AccessEvent, Arguments, BackfillId, Fact, RunName, SlotRef, SlotState, StepName, Workflow, WorkflowId,
};
use serde_json::Value;

use crate::{Capacity, Inspection, Refusal};

/// A request to the scheduler.
pub trait Request: Into<Ask> + Clone {
    /// The answer to this request.
    type Answer;

    /// The content of an answer to this request; none if the answer belongs to another request.
    fn answer(answer: AnyAnswer) -> Option<Self::Answer>;

    /// The reply to this request.
    ///
    /// # Errors
    /// If it was refused.
    fn reply(outcome: Result<Self::Answer, Refusal>) -> Reply;
}

/// The answer to a request, or its refusal.
pub type Reply = Result<AnyAnswer, Refusal>;

/// Any answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyAnswer {
    /// The request was carried out.
    Done(()),
    /// The facts are stored.
    Tally(FactTally),
    /// The event schedules that were enabled.
    Enabled(Vec<WorkflowId>),
    /// The slot that was fired.
    Fired(StartAnswer),
    /// The result for each submitted job, in the order of the request.
    Submitted(Vec<SubmitOutcome>),
    /// The slots of a backfill.
    Backfill(BackfillOutcome),
    /// The slots that were reopened.
    Reopened(Vec<SlotRef>),
    /// The slots of a downstream rerun.
    Downstream(DownstreamOutcome),
    /// Details of a slot.
    Inspection(Inspection),
    /// The use of limits and pools.
    Capacity(Capacity),
    /// The definitions of a project that are in force.
    Deployed(Vec<DefinedVersion>),
}

/// Pairs each request with its answer, here and nowhere else.
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
    DeployProject(DeployProject) -> Deployed(Vec<DefinedVersion>);
    CreateSchedules(CreateSchedules) -> Done(());
    ChangeSchedule(ChangeSchedule) -> Done(());
    DeleteSchedules(DeleteSchedules) -> Done(());
    Enable(Enable) -> Done(());
    Disable(Disable) -> Done(());
    EnableByTime(EnableByTime) -> Enabled(Vec<WorkflowId>);
    Fire(FireRequest) -> Fired(StartAnswer);
    RepeatStep(RepeatStep) -> Fired(StartAnswer);
    SignalFlow(SignalFlow) -> Done(());
    ResumeFlow(ResumeFlow) -> Done(());
    SetRegister(SetRegister) -> Done(());
    RecordAccess(RecordAccess) -> Done(());
    TrimHistory(TrimHistory) -> Done(());
    Inspect(Inspect) -> Inspection(Inspection);
    InspectCapacity(InspectCapacity) -> Capacity(Capacity);
}

/// Reopen a final slot, or open one that was never planned.
#[derive(Debug, Clone)]
pub struct Rerun {
    /// The slot.
    pub slot: SlotRef,
    /// The arguments that its next runs get in addition to those that it has, or in their place.
    pub arguments: Arguments,
    /// The reason given for it.
    pub reason: Option<String>,
}

impl Ask {
    /// Whether it puts definitions into force, or takes them out of it.
    #[must_use]
    pub fn changes_definitions(&self) -> bool {
        matches!(
            self,
            Ask::DeployProject(_) | Ask::CreateSchedules(_) | Ask::ChangeSchedule(_) | Ask::DeleteSchedules(_)
        )
    }
}

impl Rerun {
    /// A rerun with the arguments that the slot has, for no stated reason.
    #[must_use]
    pub fn of(slot: SlotRef) -> Rerun {
        Rerun { slot, arguments: Arguments::new(), reason: None }
    }
}

/// Kill a slot and its run. A slot without a run will never start.
#[derive(Debug, Clone)]
pub struct Kill {
    /// The slot.
    pub slot: SlotRef,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Mark a slot without a live run as succeeded, because its work is done.
#[derive(Debug, Clone)]
pub struct MarkSuccess {
    /// The slot.
    pub slot: SlotRef,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Skip a live slot, and end its run.
#[derive(Debug, Clone)]
pub struct Skip {
    /// The slot.
    pub slot: SlotRef,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Pause a workflow: nothing of it is planned, evaluated or dispatched. Live runs continue and are recorded.
#[derive(Debug, Clone)]
pub struct Pause {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Resume a workflow that is paused or frozen.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Cancel a backfill: kill its slots that have no run yet.
#[derive(Debug, Clone)]
pub struct CancelBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Pause a backfill: its slots without a run are not evaluated or dispatched.
#[derive(Debug, Clone)]
pub struct PauseBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Resume a paused backfill.
#[derive(Debug, Clone)]
pub struct ResumeBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Change the priority of a backfill and its live slots.
#[derive(Debug, Clone)]
pub struct PrioritiseBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The new priority. Larger runs first; below 0 runs after current work.
    pub priority: i32,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Reopen the slots of a backfill that failed or expired.
#[derive(Debug, Clone)]
pub struct RerunBackfill {
    /// The backfill.
    pub backfill: BackfillId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Put the definitions of a project into force whose functions a program has, in place of those that the project had; none take it away.
#[derive(Debug, Clone)]
pub struct DeployProject {
    /// The project.
    pub project: String,
    /// Its definitions.
    pub definitions: Vec<Arc<Workflow>>,
    /// The digest of the definitions; none where the project is taken away.
    pub digest: Option<String>,
    /// Whether it is only checked that this is possible.
    pub dry_run: bool,
}

/// A workflow, and the version of its definition that is in force, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedVersion {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The version of its definition.
    pub version: u32,
}

/// Create event schedules, all of them or none. They are disabled unless their definitions say otherwise.
#[derive(Debug, Clone)]
pub struct CreateSchedules {
    /// Their definitions.
    pub new: Vec<Arc<Workflow>>,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Replace the definition of an event schedule. It stays enabled if it was.
#[derive(Debug, Clone)]
pub struct ChangeSchedule {
    /// The new definition.
    pub changed: Arc<Workflow>,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Delete event schedules, all of them or none.
#[derive(Debug, Clone)]
pub struct DeleteSchedules {
    /// The event schedules.
    pub schedules: Vec<WorkflowId>,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Enable an event schedule that is disabled.
#[derive(Debug, Clone)]
pub struct Enable {
    /// The event schedule.
    pub schedule: WorkflowId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Disable an event schedule that is enabled, and abort its pending slots.
#[derive(Debug, Clone)]
pub struct Disable {
    /// The event schedule.
    pub schedule: WorkflowId,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Enable those of some event schedules that are disabled and were last changed within a range of time.
#[derive(Debug, Clone)]
pub struct EnableByTime {
    /// The event schedules.
    pub schedules: Vec<WorkflowId>,
    /// The range of time.
    pub range: Range,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Set or delete a register.
#[derive(Debug, Clone)]
pub struct SetRegister {
    /// The bucket.
    pub bucket: String,
    /// The key within the bucket.
    pub key: String,
    /// The new value; none deletes the register.
    pub value: Option<Value>,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Record that the actor came in, went, or was refused.
#[derive(Debug, Clone)]
pub struct RecordAccess {
    /// The event.
    pub what: AccessEvent,
}

/// Publish facts, in their order.
#[derive(Debug, Clone)]
pub struct Tell {
    /// The facts. One with an idempotency key counts once.
    pub facts: Vec<Fact>,
    /// The position up to which their source has been read with them. Stored in the same turn, so that nothing is read again without being known.
    pub position: Option<SourcePosition>,
}

impl Tell {
    /// Facts whose source has no position.
    #[must_use]
    pub fn of(facts: Vec<Fact>) -> Tell {
        Tell { facts, position: None }
    }
}

/// The position up to which a source of facts has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct SourcePosition {
    /// The name of the source.
    pub source: String,
    /// The position, in the source's own form. It is a register of the bucket [`POSITIONS`].
    pub position: Value,
}

/// Remove history from the database: only the store has it, and no decision depends on it.
#[derive(Debug, Clone)]
pub struct TrimHistory {
    /// The removed history.
    pub trim: Trim,
}

/// The bucket of registers with the positions of sources of facts, by source.
pub const POSITIONS: &str = "kelos.positions";

/// The numbers of facts that a request stored and did not store, and the signals among them that were refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FactTally {
    /// The number of new facts.
    pub new: u32,
    /// The number of facts that were published before, and do not count again.
    pub known: u32,
    /// The new signals for runs of flows that were stored, and refused: there is no such flow, or the run is over.
    pub refused: Vec<RefusedSignal>,
}

/// A signal for a run of a flow that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSignal {
    /// The idempotency key of the fact; none where it has none.
    pub key: Option<Arc<str>>,
    /// The reason.
    pub refusal: Refusal,
}

/// Return the details of a slot that only the scheduler's memory has.
#[derive(Debug, Clone)]
pub struct Inspect {
    /// The slot.
    pub slot: SlotRef,
}

/// Return who holds permits and who waits for them.
#[derive(Debug, Clone, Copy)]
pub struct InspectCapacity;

/// Fire an event schedule, or start a workflow: open a slot of this moment that needs no trigger.
#[derive(Debug, Clone)]
pub struct FireRequest {
    /// The event schedule or workflow.
    pub workflow: WorkflowId,
    /// The arguments in addition to its own.
    pub arguments: Arguments,
    /// The name of the run, which is started once: the slot is the same as before, whatever became of it. None for a new run.
    pub key: Option<RunName>,
    /// The priority of the slot. Larger runs first.
    pub priority: i32,
    /// Whether to ignore its constraints, too.
    pub unconstrained: bool,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// A slot that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAnswer {
    /// The slot.
    pub slot: SlotRef,
    /// Whether it had been started by this name before: then nothing was done.
    pub existed: bool,
}

/// Do one step of a run of a flow again, or one item of its list, as a run of its own: with the definition and the inputs that it had.
#[derive(Debug, Clone)]
pub struct RepeatStep {
    /// The step or the item. Its run has ended.
    pub step: SlotRef,
    /// Inputs in the place of those that it was given.
    pub arguments: Arguments,
    /// The name of the new run, which is started once. None for a run that is named by its moment.
    pub key: Option<RunName>,
    /// The priority of the slot. Larger runs first.
    pub priority: i32,
    /// Whether to ignore the constraints of its workflow.
    pub unconstrained: bool,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Give a signal to a run of a flow: to all its steps that wait for it, now or later. A run that has a name can be given signals before
/// anybody starts it.
#[derive(Debug, Clone)]
pub struct SignalFlow {
    /// The slot of the run.
    pub run: SlotRef,
    /// The name of the signal.
    pub signal: String,
    /// Its payload: the output of the step that waits for it.
    pub payload: Value,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Open the failed steps of a run of a flow again, with the definition and the outputs that the run has.
#[derive(Debug, Clone)]
pub struct ResumeFlow {
    /// The slot of the run.
    pub run: SlotRef,
    /// The step that is done again together with all that start after it.
    pub from: Option<StepName>,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// Submit jobs.
#[derive(Debug, Clone)]
pub struct SubmitRequest {
    /// The jobs, with their ids in normal form.
    pub jobs: Vec<SlotRef>,
    /// The priority of the jobs. Larger runs first.
    pub priority: i32,
    /// Whether to reopen jobs that have ended, together with all downstream jobs that have ended. Otherwise existing
    /// jobs stay as they are.
    pub readd: bool,
    /// The arguments of those that are opened or reopened.
    pub arguments: Arguments,
    /// The reason given for it.
    pub reason: Option<String>,
}

/// The result for a submitted job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// It was opened.
    Opened,
    /// It had ended, and was reopened together with downstream jobs.
    Reopened {
        /// The number of reopened downstream jobs.
        descendants: u32,
    },
    /// It existed, in this state, and was left as it is.
    Existed(SlotState),
}

/// Rerun a slot and all slots downstream of it.
#[derive(Debug, Clone)]
pub struct DownstreamRequest {
    /// The most upstream slot.
    pub slot: SlotRef,
    /// The arguments that its next runs get in addition to those that it has, or in their place. The others keep theirs.
    pub arguments: Arguments,
    /// The reason given for it.
    pub reason: Option<String>,
    /// Whether to kill dispatched and running slots first. Otherwise they are a reason to refuse.
    pub kill_live: bool,
    /// Whether this is a preview, which changes nothing.
    pub dry_run: bool,
}

/// Create a backfill.
#[derive(Debug, Clone)]
pub struct BackfillRequest {
    /// The name of the backfill.
    pub id: BackfillId,
    /// The workflow of the slots.
    pub workflow: WorkflowId,
    /// The range of the slots' times.
    pub range: Range,
    /// The existing slots that are reopened.
    pub mode: BackfillMode,
    /// The priority of the slots. Larger runs first; below 0 runs after current work.
    pub priority: i32,
    /// Only slots that have succeeded, with a last run by this version. They are reopened whatever the mode; nothing that is missing is
    /// planned, and nothing live adopted.
    pub made_by: Option<VersionChoice>,
    /// The arguments of its slots. With any, each slot is opened by itself, so that their number is limited.
    pub arguments: Arguments,
    /// The reason given for it.
    pub reason: Option<String>,
    /// Whether this is a preview, which changes nothing.
    pub dry_run: bool,
}

impl BackfillRequest {
    /// A backfill of what is missing, of normal priority and for no stated reason.
    #[must_use]
    pub fn of(id: BackfillId, workflow: WorkflowId, range: Range) -> BackfillRequest {
        BackfillRequest {
            id,
            workflow,
            range,
            mode: BackfillMode::Missing,
            priority: 0,
            made_by: None,
            arguments: Arguments::new(),
            reason: None,
            dry_run: false,
        }
    }
}

/// The most slots that an answer lists one by one.
pub(crate) const LISTED: usize = 10_000;

/// A list of slots, of which there may be millions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotList {
    /// The number of slots.
    pub count: u64,
    /// The first 10,000 of them, ascending.
    pub first: Vec<SlotRef>,
}

/// The slots of a backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillOutcome {
    /// The slots that were never planned before.
    pub created: SlotList,
    /// The final slots, which are reopened.
    pub reopened: SlotList,
    /// The live slots, which are adopted with a higher priority.
    pub adopted: SlotList,
    /// The number of slots that are left as they are.
    pub untouched: u64,
}

/// The slots of a downstream rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownstreamOutcome {
    /// The most upstream slot, if it was never planned before.
    pub created: Option<SlotRef>,
    /// The final, queued and held slots, which are reopened.
    pub reopened: Vec<SlotRef>,
    /// The dispatched and running slots, which are killed and reopened. A preview also has those that would be a reason
    /// to refuse.
    pub killed: Vec<SlotRef>,
    /// The number of slots that are left as they are, because they evaluate their triggers again anyway.
    pub untouched: u32,
}

impl BackfillRequest {
    /// A request for the missing slots of a range, to run after current work.
    #[must_use]
    pub fn missing(id: BackfillId, workflow: WorkflowId, range: Range) -> Self {
        BackfillRequest {
            id,
            workflow,
            range,
            mode: BackfillMode::Missing,
            priority: -1,
            made_by: None,
            arguments: Arguments::new(),
            reason: None,
            dry_run: false,
        }
    }
}
