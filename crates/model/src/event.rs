//! Facts in the append-only log, past tense.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use std::collections::BTreeMap;

use crate::actor::Actor;
use crate::breach::Breach;
use crate::facts::{Fact, Occurrence};
use crate::id::{BackfillId, WorkflowId};
use crate::key::SlotRef;
use crate::ranges::Range;
use crate::reason::Reason;
use crate::run::Outcome;
use crate::state::SlotState;

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
    /// What happened.
    pub event: Event,
}

/// What happened, and to what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum Event {
    /// To a slot.
    Slot {
        /// Which.
        slot: SlotRef,
        /// What.
        what: SlotEvent,
    },
    /// To a workflow.
    Workflow {
        /// Which.
        workflow: WorkflowId,
        /// What.
        what: WorkflowEvent,
    },
    /// To a backfill.
    Backfill {
        /// Which.
        backfill: BackfillId,
        /// What.
        what: BackfillEvent,
    },
    /// Somebody told of something that triggers may wait for.
    Fact {
        /// What.
        fact: Fact,
        /// Who told; events of before this was noted say nothing.
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
        /// Who asked for it; events of before this was noted say nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Who first asked for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Its workflow's schedule.
    Schedule,
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
}

/// Why what an event schedule had pending was ended.
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

/// What happens to slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SlotEvent {
    /// It came to be, waiting.
    Planned {
        /// By whom.
        origin: Origin,
        /// Larger goes first.
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        /// The backfill that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backfill: Option<BackfillId>,
        /// Who asked for it, where a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Something came that its trigger waits for, or would have.
    Collected {
        /// What.
        what: Occurrence,
        /// Log position of the fact; none for what the scheduler itself saw.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fact: Option<u64>,
    },
    /// Somebody has it go without its trigger.
    FiredBy {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Arguments beside those of its workflow.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: BTreeMap<String, String>,
        /// Whether its constraints are passed over, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unconstrained: bool,
    },
    /// Its trigger was looked at and gave a new answer somewhere in its tree; not met.
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
    },
    /// Its constraints are met; it is queued.
    ConstraintsMet {
        /// Every constraint's answer and evidence.
        explanation: Reason,
    },
    /// What its event schedule had pending was ended.
    Aborted {
        /// Why.
        cause: Abort,
        /// Who, where a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
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
    },
    /// The executor could not start it now; it is asked again.
    Deferred {
        /// Number of the run.
        run: u32,
        /// In words.
        reason: String,
    },
    /// No worker had fetched its run, and none will: it is queued again.
    Withdrawn {
        /// Number of the run.
        run: u32,
    },
    /// The executor confirmed the start.
    Started {
        /// Number of the run.
        run: u32,
        /// What the executor calls it.
        external_id: String,
    },
    /// Its run said what it gives to those that it triggers; what it says last counts.
    Gave {
        /// Number of the run.
        run: u32,
        /// What.
        outputs: serde_json::Map<String, Value>,
    },
    /// Its run succeeded.
    Succeeded {
        /// Number of the run.
        run: u32,
    },
    /// Its run failed; a retry is left.
    BackedOff {
        /// Number of the run.
        run: u32,
        /// How it ended.
        outcome: Outcome,
        /// When the retry is due.
        due: Timestamp,
    },
    /// The retry became due; it waits for its trigger again.
    BackoffEnded,
    /// Its run failed and no retry is left.
    Failed {
        /// Number of the run.
        run: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// A person ended it.
    Killed {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person says that what it was for is done; whoever waits for its success may go.
    MarkedSucceeded {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person says that it is not to go.
    SkippedBy {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run of a slot that had been killed or skipped came to its end.
    RunEnded {
        /// Number of the run.
        run: u32,
        /// How it ended.
        outcome: Outcome,
    },
    /// A person or a backfill opened it again.
    Reopened {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Its new priority.
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        /// The backfill that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backfill: Option<BackfillId>,
    },
    /// A backfill adopted it while it was live, or a person gave its backfill another priority.
    Prioritised {
        /// Its new priority.
        priority: i32,
        /// The backfill.
        backfill: BackfillId,
        /// Who gave the backfill another priority; none where the backfill adopted it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person asked for it while it was live: it goes although its workflow starts later.
    Requested {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It was taken over from the database of another scheduler: it came to be, or a slot that had not run yet
    /// stands where it stood there.
    Imported {
        /// The other scheduler: `celos`.
        from: String,
        /// Where it stands: waiting, running or final.
        state: SlotState,
        /// Failed attempts that were counted there.
        #[serde(default, skip_serializing_if = "no_retries")]
        retries: u32,
        /// What the executor calls its latest run there, which counts as a run here; a running slot has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        /// Whether somebody had asked for it there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        requested: bool,
        /// Where it stood there, in the other scheduler's words, and why it stands elsewhere here.
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
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn no_retries(number: &u32) -> bool {
    *number == 0
}

/// What happens to workflows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum WorkflowEvent {
    /// It was defined, or its definition changed.
    Defined {
        /// Counts the definitions, from 1.
        version: u32,
        /// Who, where a person did and not a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its definition was removed; its slots are unchanged.
    Removed {
        /// Who, where a person did and not a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// Why, in their words.
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
    /// Cron times of its trigger passed while nobody scheduled, and don't count.
    Missed {
        /// From the first to the last of them.
        range: Range,
        /// How many there were.
        times: u32,
    },
    /// A person paused it. In logs of before events of schedules had words of their own: an event schedule was disabled.
    Paused {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person resumed it. In logs of before events of schedules had words of their own: an event schedule was enabled.
    Resumed {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person enabled an event schedule.
    Enabled {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person disabled an event schedule: facts that come don't count.
    Disabled {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An invariant of it broke: nothing of it is planned, looked at or started until somebody resumes it.
    Frozen {
        /// Which, and about what.
        breach: Breach,
    },
    /// An input broke an invariant of it, and did so again once it was frozen: that input was dropped.
    SetAside {
        /// Which, and about what.
        breach: Breach,
        /// What was dropped, in words.
        input: String,
    },
    /// A person resumed it after it had been frozen; a pause stays as it was.
    Thawed {
        /// Who.
        by: Actor,
        /// Why, in their words.
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

/// What happens to backfills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum BackfillEvent {
    /// Somebody asked for one.
    Created {
        /// Whose slots.
        workflow: WorkflowId,
        /// Which of them.
        range: Range,
        /// Which states it reopens.
        mode: crate::backfill::BackfillMode,
        /// Larger goes first.
        priority: i32,
        /// Who asked.
        by: Actor,
        /// How many slots came to be, were reopened, or were live and adopted.
        slots: u32,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its waiting and queued slots were killed.
    Cancelled {
        /// Who asked.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person paused it: its slots that have no run are left alone.
    Paused {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person resumed it. In logs of before events of schedules had words of their own: an event schedule was enabled.
    Resumed {
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person gave it another priority, and its live slots with it.
    Prioritised {
        /// Larger goes first.
        priority: i32,
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person had its slots that failed or expired opened again.
    Reopened {
        /// How many there were.
        slots: u32,
        /// Who.
        by: Actor,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
