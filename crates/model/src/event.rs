//! Facts in the append-only log, past tense.

mod access;
mod by;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use std::collections::BTreeMap;

pub use access::AccessEvent;

use crate::actor::Actor;
use crate::breach::Breach;
use crate::facts::{Fact, Occurrence};
use crate::id::{BackfillId, PoolId, WorkflowId};
use crate::key::SlotRef;
use crate::parameter::Arguments;
use crate::ranges::Range;
use crate::reason::Reason;
use crate::repeated::RepeatedStep;
use crate::run::{Batch, Outcome};
use crate::state::SlotState;
use crate::step_name::StepName;
use crate::version::VersionChoice;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Position in the log, from 1, without gaps.
    pub seq: u64,
    /// When it happened, by the engine's clock.
    pub at: Timestamp,
    /// For a slot's event: the position of the same slot's event before it, 0 for the first. The
    /// chain is the slot's history, so no index over the log is needed.
    pub previous: u64,
    /// The event itself.
    pub event: Event,
}

/// An event, by its subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum Event {
    /// To a slot.
    Slot {
        /// The slot.
        slot: SlotRef,
        /// The event of the slot.
        what: SlotEvent,
    },
    /// To a workflow.
    Workflow {
        /// The workflow.
        workflow: WorkflowId,
        /// The event of the workflow.
        what: WorkflowEvent,
    },
    /// To a backfill.
    Backfill {
        /// The backfill.
        backfill: BackfillId,
        /// The event of the backfill.
        what: BackfillEvent,
    },
    /// A fact was published that triggers may wait for.
    Fact {
        /// The fact.
        fact: Fact,
        /// The actor who published it; none in events from before this was stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
    },
    /// To a register, the small key and value store that scripts read.
    Register {
        /// The register's bucket.
        bucket: String,
        /// Its key in the bucket.
        key: String,
        /// Its new value, which may be null; none when it was deleted.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        value: Option<Value>,
        /// The actor who asked for it; none in events from before this was stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// To the access to the server.
    Access {
        /// The event.
        what: AccessEvent,
        /// The actor who came in or was refused.
        by: Actor,
    },
}

/// The origin of a slot: what first asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Its workflow's schedule.
    Schedule,
    /// The schedule that opens jobs of its workflow, where these have deadlines; of other jobs it is the schedule.
    Feed,
    /// A person: a rerun or a kill of a slot that did not exist yet.
    Request,
    /// A backfill.
    Backfill,
    /// A parent that succeeded: with it the job became possible.
    Parent(SlotRef),
    /// A child that waits for it.
    Child(SlotRef),
    /// A fact came that its trigger waits for.
    Fact,
    /// A signal for a run that nobody has started yet.
    Signal,
}

/// The cause for which pending slots of an event schedule were ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Abort {
    /// It was disabled.
    Disabled,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
}

/// An event of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SlotEvent {
    /// It came to be, waiting.
    Planned {
        /// Its origin.
        origin: Origin,
        /// The priority; a larger one starts first.
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        /// The backfill that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backfill: Option<BackfillId>,
        /// The actor, where a person asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A fact came that its trigger waits for, or waited for.
    Collected {
        /// The occurrence.
        what: Occurrence,
        /// Log position of the fact; none for what the scheduler itself saw.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fact: Option<u64>,
    },
    /// A person started it without its trigger.
    FiredBy {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Arguments beside those of its workflow.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: Arguments,
        /// Whether its constraints are passed over, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unconstrained: bool,
        /// The step of another run that it does again, and nothing else of the flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<Box<RepeatedStep>>,
    },
    /// A person or a backfill gave it arguments for its next runs. They go before those of its workflow, and before earlier ones.
    ArgumentsSet {
        /// The actor who asked for it.
        by: Actor,
        /// The arguments.
        arguments: Arguments,
    },
    /// Its trigger was evaluated and is not met; some node of its tree has a new answer.
    Looked {
        /// Every node's answer and evidence.
        explanation: Reason,
    },
    /// Its trigger was met; it is queued.
    TriggerMet {
        /// Every node's answer and evidence.
        explanation: Reason,
    },
    /// Its trigger was met; its constraints decide now.
    Held {
        /// Every node's answer and evidence.
        explanation: Reason,
        /// When it was opened, where its wait timeout counts from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened: Option<Timestamp>,
    },
    /// Its constraints are met; it is queued.
    ConstraintsMet {
        /// Every constraint's answer and evidence.
        explanation: Reason,
    },
    /// The slot was pending, and its event schedule was disabled, changed or deleted.
    Aborted {
        /// The cause.
        cause: Abort,
        /// The actor, where a person asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It waited too long.
    Expired {
        /// The limit, in seconds after the scheduled time; of what collects facts, rounded down, after it came to be.
        timeout_seconds: u64,
        /// The last answers.
        explanation: Reason,
    },
    /// Its trigger will never be met.
    Skipped {
        /// Every node's answer and evidence.
        explanation: Reason,
    },
    /// The intent to run it was stored.
    Dispatched {
        /// Number of the run.
        run: u32,
        /// The worker that is to do it; none where the scheduler's own executor does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// The batch that the run serves, where it serves several slots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<Batch>,
    },
    /// Its run is given the outputs of slots that it depends on.
    Given {
        /// Number of the run.
        run: u32,
        /// All that it is given, with its arguments.
        inputs: Arguments,
    },
    /// The executor could not start it now; it is asked again.
    Deferred {
        /// Number of the run.
        run: u32,
        /// In words.
        reason: String,
    },
    /// No worker had fetched its run, and none will; or the program that did it came to its end, and gave it back undone. It is queued again.
    Withdrawn {
        /// Number of the run.
        run: u32,
    },
    /// The executor confirmed the start.
    Started {
        /// Number of the run.
        run: u32,
        /// The executor's id of the run.
        external_id: String,
    },
    /// Its run gave outputs for the runs that it triggers; the last ones count.
    Gave {
        /// Number of the run.
        run: u32,
        /// The outputs.
        outputs: serde_json::Map<String, Value>,
    },
    /// Its run took permits of pools, beside those that it was started with.
    Acquired {
        /// Number of the run.
        run: u32,
        /// The number of the request, by which the run counts its requests.
        request: u64,
        /// The number of permits by pool, without those that are spent and not held.
        permits: BTreeMap<PoolId, u32>,
    },
    /// Its run returned permits that it had taken.
    Released {
        /// Number of the run.
        run: u32,
        /// The number of the request.
        request: u64,
    },
    /// Its run succeeded.
    Succeeded {
        /// Number of the run.
        run: u32,
    },
    /// Its run failed and a retry is left, or its outcome is unknown and it is done again.
    BackedOff {
        /// Number of the run.
        run: u32,
        /// The outcome of the run.
        outcome: Outcome,
        /// When the retry is due.
        due: Timestamp,
        /// How often it is done again by then because an outcome was unknown, which uses up no retry; 0 where the attempt counts as failed.
        #[serde(default, skip_serializing_if = "is_zero")]
        again: u32,
    },
    /// The retry became due; it waits for its trigger again.
    BackoffEnded,
    /// Its run failed and no retry is left.
    Failed {
        /// Number of the run.
        run: u32,
        /// The outcome of the run.
        outcome: Outcome,
    },
    /// Its deadline passed, and it had not succeeded. Its state is the same.
    Late {
        /// The deadline.
        deadline: Timestamp,
    },
    /// A person ended it.
    Killed {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person marked it as succeeded; slots that wait for its success may start.
    MarkedSucceeded {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person skipped it.
    SkippedBy {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run of a slot that had been killed or skipped came to its end.
    RunEnded {
        /// Number of the run.
        run: u32,
        /// The outcome of the run.
        outcome: Outcome,
    },
    /// A person or a backfill opened it again.
    Reopened {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Its new priority.
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        /// The backfill that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backfill: Option<BackfillId>,
    },
    /// A person had its failed steps opened again, with the definition and the outputs that its run has.
    Resumed {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The step that is done again with all after it, besides those that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<StepName>,
    },
    /// The run of a flow is about to begin, and follows this definition to its end.
    Pinned {
        /// The number of the definition.
        definition: u32,
    },
    /// A signal came for the run of a flow.
    Signalled {
        /// The name of the signal.
        name: String,
        /// Its payload.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        /// The actor who gave it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The step of a flow came to be, or is done anew, because the steps before it ended so.
    StepOpened {
        /// The number of the flow's run.
        run: u32,
        /// The steps that were running when the failure came that it handles: it waits until they have ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        awaits: Vec<StepName>,
        /// The priority; a larger one starts first.
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
    },
    /// The step of a flow may start; it is queued.
    StepReady {
        /// Its inputs.
        inputs: serde_json::Map<String, Value>,
    },
    /// The run of a flow ended well, because error steps handled each failure.
    Recovered {
        /// Number of the run.
        run: u32,
        /// The steps that failed.
        failed: Vec<StepName>,
    },
    /// A backfill adopted it while it was live, or a person gave its backfill another priority.
    Prioritised {
        /// Its new priority.
        priority: i32,
        /// The backfill.
        backfill: BackfillId,
        /// The actor who changed the priority of the backfill; none where the backfill adopted the slot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person asked for it while it was live: it starts although its workflow starts later.
    Requested {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It was taken over from the database of another scheduler: it came to be, or a slot that waited or was queued and had not run
    /// yet stands where it stood there.
    Imported {
        /// The other scheduler: `celos`.
        from: String,
        /// Its state here: waiting, running or final.
        state: SlotState,
        /// Failed attempts that were counted there.
        #[serde(default, skip_serializing_if = "no_retries")]
        retries: u32,
        /// The executor's id of its latest run there, which counts as a run here; a running slot has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        /// Whether it had been requested there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        requested: bool,
        /// Its state there, in the other scheduler's words, and the reason where the state here is another.
        there: String,
    },
}

impl SlotEvent {
    /// A slot came to be, with nothing said of a backfill or a person.
    #[must_use]
    pub fn planned(origin: Origin, priority: i32) -> SlotEvent {
        SlotEvent::Planned { origin, priority, backfill: None, by: None, reason: None }
    }
}

/// A field that is there is a value, be it null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn no_retries(number: &u32) -> bool {
    *number == 0
}

/// An event of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkflowEvent {
    /// It was defined, or its definition changed.
    Defined {
        /// Counts the definitions, from 1.
        version: u32,
        /// The actor who asked for it; none where a file did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its definition was removed; its slots are unchanged.
    Removed {
        /// The actor who asked for it; none where a file did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its slots in a range were planned.
    Planned {
        /// The part of the schedule that is now covered.
        range: Range,
        /// How many slots came to be.
        slots: u32,
        /// How many of its times have no slots yet, and are its backlog.
        #[serde(default, skip_serializing_if = "is_none")]
        backlog: u64,
    },
    /// Its schedule changed, so that a range must be planned anew beside the slots that exist.
    Replanned {
        /// The part of the schedule that is no longer covered.
        range: Range,
    },
    /// Misfires of its trigger that don't count: cron times that passed while no server was scheduling.
    Missed {
        /// From the first to the last of them.
        range: Range,
        /// How many there were.
        times: u32,
    },
    /// A person paused it. In logs of before events of schedules had words of their own: an event schedule was disabled.
    Paused {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person resumed it. In logs of before events of schedules had words of their own: an event schedule was enabled.
    Resumed {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person enabled an event schedule.
    Enabled {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person disabled an event schedule: facts that come don't count.
    Disabled {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An invariant of it broke: nothing of it is planned, evaluated or started until a person resumes it.
    Frozen {
        /// The breach: the invariant, and what it is about.
        breach: Breach,
    },
    /// An input broke an invariant of it, and did so again once it was frozen: that input was dropped.
    SetAside {
        /// The breach: the invariant, and what it is about.
        breach: Breach,
        /// The dropped input, in words.
        input: String,
    },
    /// A person resumed it after it had been frozen; a pause stays as it was.
    Thawed {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its slots were taken over from the database of another scheduler.
    Imported {
        /// The other scheduler: `celos`.
        from: String,
        /// From its first slot there to its last.
        range: Range,
        /// How many slots came from there.
        slots: u32,
    },
}

/// An event of a backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum BackfillEvent {
    /// It was requested.
    Created {
        /// The workflow of the slots.
        workflow: WorkflowId,
        /// The range of the slots' times.
        range: Range,
        /// The mode, which says which states it reopens.
        mode: crate::backfill::BackfillMode,
        /// The priority; a larger one starts first.
        priority: i32,
        /// The actor who asked for it.
        by: Actor,
        /// How many slots came to be, were reopened, or were live and adopted.
        slots: u32,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Only what this version made was opened again; none where all of the range was looked at.
        #[serde(default, rename = "madeBy", skip_serializing_if = "Option::is_none")]
        made_by: Option<VersionChoice>,
    },
    /// Its waiting and queued slots were killed.
    Cancelled {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person paused it: its slots that have no run are left alone.
    Paused {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person resumed it. In logs of before events of schedules had words of their own: an event schedule was enabled.
    Resumed {
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person gave it another priority, and its live slots with it.
    Prioritised {
        /// The priority; a larger one starts first.
        priority: i32,
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person had its slots that failed or expired opened again.
    Reopened {
        /// How many there were.
        slots: u32,
        /// The actor who asked for it.
        by: Actor,
        /// The reason, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
