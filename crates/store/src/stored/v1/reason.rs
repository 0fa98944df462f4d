//! Reasons: why a slot starts, waits or ends. Reasons of older logs, in which each node had a sentence and evidence instead of a
//! finding, are read as well.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::jobs::Flaw;
use kelos_model::probe::{Conditions, Verdict};
use kelos_model::reason::Blockage;
use kelos_model::time::Window;
use kelos_model::unknown::UnknownCode;
use kelos_model::{Answer, Finding, FunctionRef, Probe, Reason, ReasonKind, SlotKey, SlotRef, SlotState, WorkflowId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::names::{StoredKey, StoredName, StoredSlotRef, StoredSlotState};
use super::schedule::StoredWindow;
use super::trigger::{StoredConditions, StoredFunctionRef};
use crate::stored::form::{As, Form, forms, is_false};

/// The form in which a reason is written.
#[derive(Serialize)]
#[serde(remote = "Reason")]
pub(super) struct StoredReason {
    #[serde(with = "As::<StoredReasonKind>")]
    kind: ReasonKind,
    #[serde(with = "As::<StoredAnswer>")]
    answer: Answer,
    #[serde(with = "As::<StoredFinding>")]
    finding: Finding,
    #[serde(skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredReason>>")]
    nested: Vec<Reason>,
}

/// The forms in which a reason is read, old and new.
#[derive(Deserialize)]
struct AnyReason {
    #[serde(with = "As::<StoredReasonKind>")]
    kind: ReasonKind,
    #[serde(with = "As::<StoredAnswer>")]
    answer: Answer,
    #[serde(default, with = "As::<Option<StoredFinding>>")]
    finding: Option<Finding>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    evidence: Option<OldEvidence>,
    #[serde(default, with = "As::<Vec<StoredReason>>")]
    nested: Vec<Reason>,
}

/// The evidence of a leaf in older logs.
#[derive(Deserialize)]
#[serde(tag = "read", rename_all = "kebab-case")]
enum OldEvidence {
    Clock {
        now: Timestamp,
        until: Timestamp,
    },
    Slot {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
        #[serde(default, with = "As::<Option<StoredSlotState>>")]
        state: Option<SlotState>,
    },
    Probe {
        #[serde(with = "As::<StoredProbe>")]
        probe: Probe,
        #[serde(with = "As::<StoredVerdict>")]
        verdict: Verdict,
        #[serde(default)]
        detail: String,
        looked_at: Timestamp,
    },
    Asked,
}

impl Form<Reason> for StoredReason {
    fn write<S: Serializer>(value: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
        StoredReason::serialize(value, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Reason, D::Error> {
        let AnyReason { kind, answer, finding, text, evidence, nested } = AnyReason::deserialize(deserializer)?;
        let of_before = || Some(Finding::Text { text: text?, about: evidence.map(|read| Box::new(read.into())) });
        let finding = finding.or_else(of_before);
        let finding = finding.ok_or_else(|| D::Error::custom("a reason has neither a finding nor a text"))?;
        Ok(Reason { kind, answer, finding, nested })
    }
}

impl From<OldEvidence> for Finding {
    fn from(evidence: OldEvidence) -> Finding {
        match evidence {
            OldEvidence::Clock { now, until } => Finding::DelayUntil { now, until },
            OldEvidence::Slot { slot, state: Some(state) } => Finding::UpstreamIs { slot, state },
            OldEvidence::Slot { slot, state: None } => Finding::UpstreamMissing { slot },
            OldEvidence::Probe { probe, verdict, detail, looked_at } => {
                Finding::ProbeAnswered { probe, verdict, detail, looked_at }
            }
            OldEvidence::Asked => Finding::Asked,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReasonKind", rename_all = "kebab-case")]
enum StoredReasonKind {
    Always,
    And,
    Or,
    Not,
    Offset,
    Delay,
    Success,
    Covers,
    HdfsPath,
    LocalPath,
    Path,
    Function,
    Job,
    Parents,
    Group,
    Children,
    Valid,
    Partitions,
    Ended,
    Fired,
    Signal,
    Asked,
    Constraints,
    Concurrency,
    Window,
    SinceLastRun,
    #[serde(untagged)]
    Other(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Answer", rename_all = "kebab-case")]
enum StoredAnswer {
    Met,
    NotYet,
    Never,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Probe", tag = "probe", rename_all = "kebab-case")]
enum StoredProbe {
    Path {
        uri: String,
        #[serde(default, skip_serializing_if = "Conditions::is_empty", with = "As::<StoredConditions>")]
        conditions: Conditions,
    },
    Function {
        #[serde(with = "As::<StoredFunctionRef>")]
        function: FunctionRef,
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        #[serde(with = "As::<StoredKey>")]
        key: SlotKey,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Verdict", rename_all = "kebab-case")]
enum StoredVerdict {
    Yes,
    No,
    Never,
    Failed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Finding", tag = "code", rename_all = "kebab-case")]
enum StoredFinding {
    Always,
    AllOf,
    AnyOf,
    NoneOf,
    Offset {
        seconds: i64,
    },
    OffsetBeyondTime {
        seconds: i64,
    },
    DelayUntil {
        now: Timestamp,
        until: Timestamp,
    },
    DelayBeyondTime {
        seconds: i64,
    },
    NoDay,
    UpstreamAsked {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
    },
    UpstreamMissing {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
    },
    UpstreamIs {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
        #[serde(with = "As::<StoredSlotState>")]
        state: SlotState,
    },
    PeriodsCounted {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        from: Timestamp,
        to: Timestamp,
        succeeded: u64,
        total: u64,
    },
    NoPeriods {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
    },
    EmptyJobId {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
    },
    ProbeAsked {
        #[serde(with = "As::<StoredProbe>")]
        probe: Probe,
    },
    ProbeAnswered {
        #[serde(with = "As::<StoredProbe>")]
        probe: Probe,
        #[serde(with = "As::<StoredVerdict>")]
        verdict: Verdict,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
        looked_at: Timestamp,
    },
    PartitionsCounted {
        dataset: Arc<str>,
        have: u64,
        want: u32,
    },
    RunAwaited {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        #[serde(with = "As::<Vec<StoredSlotState>>")]
        states: Vec<SlotState>,
    },
    RunEnded {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        #[serde(with = "As::<StoredSlotState>")]
        state: SlotState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
    },
    TimeAwaited {
        cron: Arc<str>,
    },
    TimeFired {
        cron: Arc<str>,
        time: Timestamp,
    },
    SignalAwaited {
        name: Arc<str>,
    },
    SignalGiven {
        name: Arc<str>,
    },
    FiredByHand,
    MetBefore,
    ParentsAndTrigger,
    NoParents,
    ParentsSucceeded,
    ParentsAwaited {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
    },
    ParentsBlocked {
        #[serde(with = "As::<StoredBlockage>")]
        by: Blockage,
    },
    ParentsAsked,
    ParentsUnknown {
        message: String,
    },
    ParentGroup {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        parents: u64,
        #[serde(default, skip_serializing_if = "is_false")]
        blocked: bool,
    },
    GroupProgress {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        succeeded: u64,
        total: u64,
    },
    ParentAsked {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
    },
    ParentMissing {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
    },
    ParentIs {
        #[serde(with = "As::<StoredSlotRef>")]
        slot: SlotRef,
        #[serde(with = "As::<StoredSlotState>")]
        state: SlotState,
        #[serde(default, skip_serializing_if = "is_false")]
        paused: bool,
    },
    ParentsUnnamed {
        #[serde(with = "As::<StoredName>")]
        workflow: WorkflowId,
        group: Arc<str>,
        count: u64,
        #[serde(with = "As::<StoredFlaw>")]
        why: Flaw,
    },
    DefinitionsAwaited,
    ChildrenAsked,
    ChildrenUnknown {
        message: String,
    },
    NotListed {
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    },
    Constraints,
    RunsCounted {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        active: u32,
        limit: u32,
    },
    NotBefore {
        now: Timestamp,
        until: Timestamp,
    },
    WindowOpen {
        #[serde(with = "As::<StoredWindow>")]
        window: Window,
    },
    WindowClosed {
        #[serde(with = "As::<StoredWindow>")]
        window: Window,
        now: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opens_at: Option<Timestamp>,
    },
    NoLastRun {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
    },
    LastRun {
        #[serde(with = "As::<StoredName>")]
        program: WorkflowId,
        started_at: Timestamp,
        over: bool,
        now: Timestamp,
        until: Timestamp,
    },
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Box<StoredFinding>>>")]
        about: Option<Box<Finding>>,
    },
    Asked,
    #[serde(untagged)]
    Unknown(#[serde(with = "As::<StoredUnknownFinding>")] UnknownCode),
}

/// The reason why no job id can be written: a sentence in older logs.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Flaw", tag = "code", rename_all = "kebab-case")]
enum StoredFlaw {
    OddLetter {
        identifier: Arc<str>,
        value: Arc<str>,
    },
    EmptyId {
        identifier: Arc<str>,
        template: Arc<str>,
    },
    Ambiguous {
        identifier: Arc<str>,
        value: Arc<str>,
        template: Arc<str>,
    },
    TooLong {
        template: Arc<str>,
        most: usize,
    },
    #[serde(untagged)]
    Text(Arc<str>),
    #[serde(untagged)]
    Unknown(#[serde(with = "As::<StoredUnknownFinding>")] UnknownCode),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "UnknownCode")]
struct StoredUnknownFinding {
    code: String,
    #[serde(flatten)]
    data: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Blockage", rename_all = "kebab-case")]
enum StoredBlockage {
    Unnamed,
    EndedOrUnnamed,
    Ended,
}

forms! {
    StoredReasonKind of ReasonKind,
    StoredAnswer of Answer,
    StoredProbe of Probe,
    StoredVerdict of Verdict,
    StoredFinding of Finding,
    StoredFlaw of Flaw,
    StoredUnknownFinding of UnknownCode,
    StoredBlockage of Blockage,
}
