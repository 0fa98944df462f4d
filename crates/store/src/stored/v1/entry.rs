//! Entries of a log of several machines: a turn with all its rows, and the plug that begins an epoch.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::{Backfill, BackfillMode, Pause};
use kelos_model::history::Trim;
use kelos_model::ranges::Range;
use kelos_model::slot::PartInFlow;
use kelos_model::workflow::{Moments, PlanState, WorkflowRow};
use kelos_model::{
    Actor, BackfillId, Batch, Collection, Event, EventRecord, FactKey, Hold, Outcome, Run, RunId, RunState, Slot,
    SlotRef, SlotState, Workflow, WorkflowId,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::deletions::StoredTrim;
use super::event::StoredEvent;
use super::facts::StoredCollection;
use super::flow::StoredPartInFlow;
use super::names::{StoredActor, StoredName, StoredRange, StoredRunId, StoredSlotRef, StoredSlotState};
use super::row::{StoredMoments, StoredPlanState};
use super::run::{StoredBatch, StoredHold, StoredOutcome};
use super::workflow::StoredWorkflow;
use crate::contract::{Commit, SlotRow};
use crate::entry::{EntryBody, Reign};
use crate::record::{Digest, TurnRecord};
use crate::stored::form::{As, Form, forms, is_false, is_zero};

/// An entry, by its only key.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoredEntry<'a> {
    Plug(#[serde(with = "As::<StoredReign>")] Reign),
    Turn(StoredTurn<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reign", rename_all = "camelCase")]
struct StoredReign {
    epoch: u64,
    node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    at: Timestamp,
    reason: String,
}

/// A turn: its record, and the rows of its commit.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredTurn<'a> {
    #[serde(with = "As::<StoredTurnRecord>")]
    record: TurnRecord,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredEventRecord>>")]
    events: Cow<'a, [EventRecord]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredSlotRow>>")]
    slots: Cow<'a, [SlotRow]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredRun>>")]
    runs: Cow<'a, [Run]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredWorkflowRow>>")]
    workflows: Cow<'a, [WorkflowRow]>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: Cow<'a, BTreeMap<String, Arc<str>>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredBackfill>>")]
    backfills: Cow<'a, [Backfill]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredRegister>>")]
    registers: Cow<'a, [(String, String, Option<Value>)]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty", with = "As::<ListForm<StoredFactName>>")]
    facts: Cow<'a, [(FactKey, u64)]>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredTrim>>")]
    trim: Option<Trim>,
}

impl<'a> StoredTurn<'a> {
    pub(crate) fn of(record: TurnRecord, commit: &'a Commit) -> Self {
        StoredTurn {
            record,
            events: Cow::Borrowed(&commit.events),
            slots: Cow::Borrowed(&commit.slots),
            runs: Cow::Borrowed(&commit.runs),
            workflows: Cow::Borrowed(&commit.workflows),
            sources: Cow::Borrowed(&commit.sources),
            backfills: Cow::Borrowed(&commit.backfills),
            registers: Cow::Borrowed(&commit.registers),
            facts: Cow::Borrowed(&commit.facts),
            trim: commit.trim.clone(),
        }
    }
}

impl From<StoredEntry<'_>> for EntryBody {
    fn from(entry: StoredEntry<'_>) -> Self {
        let turn = match entry {
            StoredEntry::Plug(reign) => return EntryBody::Plug(reign),
            StoredEntry::Turn(turn) => turn,
        };
        let commit = Commit {
            at: turn.record.at,
            events: turn.events.into_owned(),
            slots: turn.slots.into_owned(),
            runs: turn.runs.into_owned(),
            workflows: turn.workflows.into_owned(),
            unread: BTreeMap::new(),
            sources: turn.sources.into_owned(),
            backfills: turn.backfills.into_owned(),
            registers: turn.registers.into_owned(),
            facts: turn.facts.into_owned(),
            trim: turn.trim,
        };
        EntryBody::Turn { record: turn.record, commit: Box::new(commit) }
    }
}

/// A list that is written from a reference.
struct ListForm<F>(std::marker::PhantomData<F>);

impl<T: Clone + 'static, F: Form<T>> Form<Cow<'_, [T]>> for ListForm<F> {
    fn write<S: Serializer>(values: &Cow<'_, [T]>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(crate::stored::form::WriteForm::<T, F>::new))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, [T]>, D::Error> {
        <Vec<F> as Form<Vec<T>>>::read(deserializer).map(Cow::Owned)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TurnRecord", rename_all = "camelCase")]
struct StoredTurnRecord {
    turn: u64,
    epoch: u64,
    at: Timestamp,
    first_event: u64,
    events: u64,
    body: u32,
    #[serde(with = "As::<StoredDigest>")]
    digest: Digest,
}

/// A digest, in hexadecimal digits.
struct StoredDigest;

impl Form<Digest> for StoredDigest {
    fn write<S: Serializer>(value: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        bytes.and_then(|bytes| Digest::from_bytes(&bytes)).ok_or_else(|| D::Error::custom("expected a digest"))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EventRecord")]
struct StoredEventRecord {
    seq: u64,
    at: Timestamp,
    previous: u64,
    #[serde(with = "As::<StoredEvent>")]
    event: Event,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotRow")]
struct StoredSlotRow {
    #[serde(with = "As::<StoredSlotRef>")]
    id: SlotRef,
    #[serde(with = "As::<StoredSlot>")]
    slot: Slot,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Slot", rename_all = "camelCase")]
struct StoredSlot {
    #[serde(with = "As::<StoredSlotState>")]
    state: SlotState,
    since: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    retries: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    again: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    last_run: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    last_run_seq: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    run_alive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredName>>")]
    backfill: Option<BackfillId>,
    #[serde(default, skip_serializing_if = "is_false")]
    requested: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_zero")]
    said: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    last_event: u64,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Box<StoredCollection>>>")]
    collected: Option<Box<Collection>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredHold>>")]
    held: Vec<Hold>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Box<StoredPartInFlow>>>")]
    flow: Option<Box<PartInFlow>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RunState", rename_all = "lowercase")]
enum StoredRunState {
    Dispatched,
    Running,
    Succeeded,
    Failed,
    Killed,
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Run", rename_all = "camelCase")]
struct StoredRun {
    #[serde(with = "As::<StoredRunId>")]
    id: RunId,
    seq: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    previous: u64,
    #[serde(with = "As::<StoredRunState>")]
    state: RunState,
    executor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    dispatched_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredOutcome>>")]
    outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outputs: Option<Box<Map<String, Value>>>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredBatch>>")]
    batch: Option<Batch>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WorkflowRow", rename_all = "camelCase")]
struct StoredWorkflowRow {
    #[serde(with = "As::<StoredName>")]
    id: WorkflowId,
    #[serde(with = "As::<Arc<StoredWorkflow>>")]
    definition: Arc<Workflow>,
    version: u32,
    present: bool,
    enabled: bool,
    paused: bool,
    #[serde(with = "As::<StoredPlanState>")]
    planned: PlanState,
    #[serde(with = "As::<StoredMoments>")]
    moments: Moments,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BackfillMode", rename_all = "kebab-case")]
enum StoredBackfillMode {
    Missing,
    Unsuccessful,
    All,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Backfill", rename_all = "camelCase")]
struct StoredBackfill {
    #[serde(with = "As::<StoredName>")]
    id: BackfillId,
    #[serde(with = "As::<StoredName>")]
    workflow: WorkflowId,
    #[serde(with = "As::<StoredRange>")]
    range: Range,
    #[serde(with = "As::<StoredBackfillMode>")]
    mode: BackfillMode,
    priority: i32,
    #[serde(with = "As::<StoredActor>")]
    by: Actor,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled_at: Option<Timestamp>,
    slots: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredPause>>")]
    paused: Option<Pause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resumed_at: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Pause")]
struct StoredPause {
    at: Timestamp,
    #[serde(with = "As::<StoredActor>")]
    by: Actor,
}

/// A register: its bucket, its key, and a list with its value, which may be null; the list of a register that is deleted is empty.
struct StoredRegister;

impl Form<(String, String, Option<Value>)> for StoredRegister {
    fn write<S: Serializer>(
        (bucket, key, value): &(String, String, Option<Value>),
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (bucket, key, value.as_slice()).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(String, String, Option<Value>), D::Error> {
        let (bucket, key, mut value): (_, _, Vec<Value>) = Deserialize::deserialize(deserializer)?;
        Ok((bucket, key, value.pop()))
    }
}

/// The name of a fact, and the position of its event: four values in a list.
struct StoredFactName;

impl Form<(FactKey, u64)> for StoredFactName {
    fn write<S: Serializer>((name, seq): &(FactKey, u64), serializer: S) -> Result<S::Ok, S::Error> {
        (&name.source, &name.about, &name.key, seq).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(FactKey, u64), D::Error> {
        let (source, about, key, seq) = Deserialize::deserialize(deserializer)?;
        Ok((FactKey { source, key, about }, seq))
    }
}

forms! {
    StoredReign of Reign,
    StoredTurnRecord of TurnRecord,
    StoredEventRecord of EventRecord,
    StoredSlotRow of SlotRow,
    StoredSlot of Slot,
    StoredRunState of RunState,
    StoredRun of Run,
    StoredWorkflowRow of WorkflowRow,
    StoredBackfillMode of BackfillMode,
    StoredBackfill of Backfill,
    StoredPause of Pause,
}
