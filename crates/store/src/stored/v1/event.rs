//! The body of an event: what happened, and its subject.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::backfill::BackfillMode;
use kelos_model::event::{Abort, AccessEvent, BackfillEvent, Origin};
use kelos_model::ranges::Range;
use kelos_model::repeated::RepeatedStep;
use kelos_model::workflow::VersionChoice;
use kelos_model::{
    Actor, BackfillId, Batch, Breach, Event, Fact, Invariant, Occurrence, Outcome, PoolId, Reason, SlotEvent, SlotRef,
    SlotState, StepName, WorkflowEvent, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::facts::{StoredFact, StoredOccurrence};
use super::flow::StoredRepeatedStep;
use super::names::{StoredActor, StoredName, StoredRange, StoredSlotRef, StoredSlotState, StoredVersionChoice};
use super::reason::StoredReason;
use super::run::{StoredBatch, StoredOutcome};
use crate::stored::form::{As, Plain, forms, is_false, is_zero, present};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Event", tag = "subject", rename_all = "kebab-case")]
pub(crate) enum StoredEvent {
    Slot {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
        #[serde(with = "As::<StoredSlotEvent>")]
        what: SlotEvent,
    },
    Workflow {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        #[serde(with = "As::<StoredWorkflowEvent>")]
        what: WorkflowEvent,
    },
    Backfill {
        #[serde(with = "As::<StoredName>")]
        backfill: BackfillId,
        #[serde(with = "As::<StoredBackfillEvent>")]
        what: BackfillEvent,
    },
    Fact {
        #[serde(with = "As::<StoredFact>")]
        fact: Fact,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
    },
    Register {
        bucket: String,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        value: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Access {
        #[serde(with = "As::<StoredAccessEvent>")]
        what: AccessEvent,
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AccessEvent", tag = "event", rename_all = "kebab-case")]
pub(crate) enum StoredAccessEvent {
    SignedIn,
    SignedOut,
    SignInFailed {
        times: u32,
    },
    Refused {
        right: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        action: String,
        times: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotEvent", tag = "event", rename_all = "kebab-case")]
pub(crate) enum StoredSlotEvent {
    Planned {
        #[serde(with = "As::<StoredOrigin>")]
        origin: Origin,
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
        backfill: Option<BackfillId>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Collected {
        #[serde(with = "As::<StoredOccurrence>")]
        what: Occurrence,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fact: Option<u64>,
    },
    FiredBy {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        arguments: BTreeMap<String, Value>,
        #[serde(default, skip_serializing_if = "is_false")]
        unconstrained: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Box<StoredRepeatedStep>>>")]
        repeats: Option<Box<RepeatedStep>>,
    },
    ArgumentsSet {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        arguments: BTreeMap<String, Value>,
    },
    Looked {
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
    },
    TriggerMet {
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
    },
    Held {
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opened: Option<Timestamp>,
    },
    ConstraintsMet {
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
    },
    Aborted {
        #[serde(with = "As::<StoredAbort>")]
        cause: Abort,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Expired {
        timeout_seconds: u64,
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
    },
    Skipped {
        #[serde(with = "As::<StoredReason>")]
        explanation: Reason,
    },
    Dispatched {
        run: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredBatch>>")]
        batch: Option<Batch>,
    },
    Deferred {
        run: u32,
        reason: String,
    },
    Withdrawn {
        run: u32,
    },
    Started {
        run: u32,
        external_id: String,
    },
    Gave {
        run: u32,
        outputs: Map<String, Value>,
    },
    Acquired {
        run: u32,
        request: u64,
        #[serde(with = "As::<BTreeMap<StoredName, Plain>>")]
        permits: BTreeMap<PoolId, u32>,
    },
    Released {
        run: u32,
        request: u64,
    },
    Succeeded {
        run: u32,
    },
    BackedOff {
        run: u32,
        #[serde(with = "As::<StoredOutcome>")]
        outcome: Outcome,
        due: Timestamp,
        #[serde(default, skip_serializing_if = "is_zero")]
        again: u32,
    },
    BackoffEnded,
    Failed {
        run: u32,
        #[serde(with = "As::<StoredOutcome>")]
        outcome: Outcome,
    },
    Late {
        deadline: Timestamp,
    },
    Killed {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    MarkedSucceeded {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    SkippedBy {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    RunEnded {
        run: u32,
        #[serde(with = "As::<StoredOutcome>")]
        outcome: Outcome,
    },
    Reopened {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
        backfill: Option<BackfillId>,
    },
    Prioritised {
        priority: i32,
        #[serde(with = "As::<StoredName>")]
        backfill: BackfillId,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Requested {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Imported {
        from: String,
        #[serde(with = "As::<StoredSlotState>")]
        state: SlotState,
        #[serde(default, skip_serializing_if = "is_zero")]
        retries: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        requested: bool,
        there: String,
    },
    Resumed {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
        from: Option<StepName>,
    },
    Pinned {
        definition: u32,
    },
    Signalled {
        name: String,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    StepOpened {
        run: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
        awaits: Vec<StepName>,
        #[serde(default, skip_serializing_if = "is_zero")]
        priority: i32,
    },
    StepReady {
        inputs: Map<String, Value>,
    },
    Given {
        run: u32,
        inputs: BTreeMap<String, Value>,
    },
    Recovered {
        run: u32,
        #[serde(with = "As::<Vec<StoredName>>")]
        failed: Vec<StepName>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WorkflowEvent", tag = "event", rename_all = "kebab-case")]
pub(crate) enum StoredWorkflowEvent {
    Defined {
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Removed {
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredActor>>")]
        by: Option<Actor>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Planned {
        #[serde(with = "As::<StoredRange>")]
        range: Range,
        slots: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        backlog: u64,
    },
    Replanned {
        #[serde(with = "As::<StoredRange>")]
        range: Range,
    },
    Missed {
        #[serde(with = "As::<StoredRange>")]
        range: Range,
        times: u32,
    },
    Paused {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Resumed {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Enabled {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Disabled {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Frozen {
        #[serde(with = "As::<StoredBreach>")]
        breach: Breach,
    },
    SetAside {
        #[serde(with = "As::<StoredBreach>")]
        breach: Breach,
        input: String,
    },
    Thawed {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Imported {
        from: String,
        #[serde(with = "As::<StoredRange>")]
        range: Range,
        slots: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BackfillEvent", tag = "event", rename_all = "kebab-case")]
enum StoredBackfillEvent {
    Created {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        #[serde(with = "As::<StoredRange>")]
        range: Range,
        #[serde(with = "As::<StoredBackfillMode>")]
        mode: BackfillMode,
        priority: i32,
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        slots: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(
            default,
            rename = "madeBy",
            skip_serializing_if = "Option::is_none",
            with = "As::<Option<StoredVersionChoice>>"
        )]
        made_by: Option<VersionChoice>,
    },
    Cancelled {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Paused {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Resumed {
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Prioritised {
        priority: i32,
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Reopened {
        slots: u32,
        #[serde(with = "As::<StoredActor>")]
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Origin", rename_all = "kebab-case")]
enum StoredOrigin {
    Schedule,
    Feed,
    Request,
    Backfill,
    Parent(#[serde(with = "As::<StoredSlotRef>")] SlotRef),
    Child(#[serde(with = "As::<StoredSlotRef>")] SlotRef),
    Fact,
    Signal,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Abort", rename_all = "kebab-case")]
enum StoredAbort {
    Disabled,
    Changed,
    Deleted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BackfillMode", rename_all = "kebab-case")]
enum StoredBackfillMode {
    Missing,
    Unsuccessful,
    All,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Breach", rename_all = "camelCase")]
pub(super) struct StoredBreach {
    #[serde(with = "As::<StoredInvariant>")]
    invariant: Invariant,
    #[serde(with = "As::<StoredName>")]
    workflow: WorkflowId,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredSlotRef>>")]
    slot: Option<SlotRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Invariant", rename_all = "kebab-case")]
enum StoredInvariant {
    EventFits,
    WorkflowIsKnown,
    SlotIsInMemory,
    PastAnswersWhatWasAsked,
    PermitsGoToQueued,
    RunsAreCounted,
    WaitersHaveQueues,
    HeldStandInLine,
    QuestionsHaveWaiters,
    TimersAreSet,
    JobsHaveIds,
    ParentsAreCounted,
    ListenersAreListed,
    BondsGoBothWays,
    SlotsAreStoredWhole,
    BacklogsHaveSchedules,
    OffersAreListed,
    RowsAreReadable,
    Planted,
    #[serde(other)]
    Unknown,
}

forms! {
    StoredEvent of Event,
    StoredAccessEvent of AccessEvent,
    StoredSlotEvent of SlotEvent,
    StoredWorkflowEvent of WorkflowEvent,
    StoredBackfillEvent of BackfillEvent,
    StoredOrigin of Origin,
    StoredAbort of Abort,
    StoredBackfillMode of BackfillMode,
    StoredBreach of Breach,
    StoredInvariant of Invariant,
}
