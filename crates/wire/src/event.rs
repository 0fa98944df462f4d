//! Events: the lines of the log. `subject` says what an event happened to and `event` what happened; both are tags.
//!
//! A client that meets a tag which it does not know reads the event as another one, with all that was said of it.

use kelos_model::backfill::BackfillMode;
use kelos_model::{Actor, Occurrence};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::value::present;
use crate::{Code, ExplanationDto, Instant, OutcomeDto, SlotNameDto};

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventDto {
    /// Its position in the log, from 1, without gaps.
    pub seq: u64,
    /// When it happened, by the clock of the scheduler.
    pub at: Instant,
    /// What it happened to, and what happened.
    #[serde(flatten)]
    pub body: EventBodyDto,
}

/// What an event happened to, and what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum EventBodyDto {
    /// Something happened to a slot.
    Slot {
        /// The slot.
        #[serde(flatten)]
        slot: SlotNameDto,
        /// What happened.
        #[serde(flatten)]
        what: SlotEventDto,
    },
    /// Something happened to a workflow.
    Workflow {
        /// Its id.
        workflow: String,
        /// What happened.
        #[serde(flatten)]
        what: WorkflowEventDto,
    },
    /// Something happened to a backfill.
    Backfill {
        /// Its name.
        backfill: String,
        /// What happened.
        #[serde(flatten)]
        what: BackfillEventDto,
    },
    /// A register was set or deleted.
    Register {
        /// Its bucket.
        bucket: String,
        /// Its key in the bucket.
        key: String,
        /// What happened.
        #[serde(flatten)]
        what: RegisterEventDto,
    },
    /// A fact was told.
    Fact(FactEventDto),
    /// An event that this version does not know.
    #[serde(untagged)]
    Other(OtherEventDto),
}

/// An event that this version does not know, with all that is said of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OtherEventDto {
    /// What it happened to.
    #[serde(default)]
    pub subject: Code,
    /// What happened.
    #[serde(default)]
    pub event: Code,
    /// What else is said.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub fields: Map<String, Value>,
}

/// Who asked for something, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequesterDto {
    /// Who asked, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The same, with what is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorDto>,
    /// Why, in their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RequesterDto {
    pub(crate) fn new(by: Option<Actor>, reason: Option<String>) -> RequesterDto {
        let name = by.as_ref().map(ToString::to_string);
        RequesterDto { by: name, actor: by.map(ActorDto::from), reason }
    }
}

/// An actor: somebody or something that asked for a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActorDto {
    /// What they are: `person`, `token`, `worker`, `system`; `unknown` where they did not say.
    pub kind: Code,
    /// Their name; of those who did not say, that of the way by which they came.
    pub name: String,
}

impl From<Actor> for ActorDto {
    fn from(actor: Actor) -> ActorDto {
        ActorDto { kind: actor.kind.as_str().into(), name: actor.to_string() }
    }
}

/// A range of times.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RangeDto {
    /// Start of the range, inclusive.
    pub from: Instant,
    /// End of the range, exclusive.
    pub to: Instant,
}

/// A fact in words: something that happened outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OccurrenceDto {
    /// The fact, in words: `2 new partitions of purchases`.
    pub what: String,
    /// What it is about: `partition:purchases`.
    pub about: String,
    /// The payload of a signal, or the names of partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

impl From<&Occurrence> for OccurrenceDto {
    fn from(what: &Occurrence) -> OccurrenceDto {
        let value = match what {
            Occurrence::Signal { payload, .. } if !payload.is_null() => Some(payload.clone()),
            Occurrence::Partitions { keys, .. } if !keys.is_empty() => Some(keys.clone().into()),
            _ => None,
        };
        OccurrenceDto { what: what.to_string(), about: what.subject().to_string(), value }
    }
}

/// A fact that was told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactEventDto {
    /// `told`.
    pub event: Code,
    /// The fact.
    #[serde(flatten)]
    pub occurrence: OccurrenceDto,
    /// Who told it.
    pub source: String,
    /// What names it among those of its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who told it, with what is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorDto>,
}

/// What happened to a register.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterEventDto {
    /// `set` or `deleted`.
    pub event: Code,
    /// Its new value, which may be null; none when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Value>,
    /// Who asked, and why.
    #[serde(flatten)]
    pub requester: RequesterDto,
}

/// What happened to a slot, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "the variants and fields have the names of the model's events, which says what each is"
)]
pub enum SlotEventDto {
    Planned {
        /// Who first asked for it: `schedule`, `request`, `backfill`, `parent`, `child` or `fact`.
        origin: Code,
        /// The parent or child that opened the job.
        #[serde(skip_serializing_if = "Option::is_none")]
        opened_by: Option<SlotNameDto>,
        /// Larger goes first.
        priority: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        backfill: Option<String>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Looked {
        explanation: ExplanationDto,
    },
    TriggerMet {
        explanation: ExplanationDto,
    },
    Collected {
        #[serde(flatten)]
        occurrence: OccurrenceDto,
        /// Position of the fact in the log.
        #[serde(skip_serializing_if = "Option::is_none")]
        fact: Option<u64>,
    },
    Fired {
        /// Whether the constraints are passed over.
        unconstrained: bool,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Held {
        explanation: ExplanationDto,
    },
    ConstraintsMet {
        explanation: ExplanationDto,
    },
    Aborted {
        /// Why an event schedule ended what it had pending: `disabled`, `changed` or `deleted`.
        cause: Code,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Gave {
        run: u32,
        /// The outputs of the run.
        value: Value,
    },
    Expired {
        /// How long the slot was allowed to wait.
        timeout_seconds: u64,
        explanation: ExplanationDto,
    },
    Skipped {
        /// What its trigger or its constraints said, where nobody asked for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        explanation: Option<ExplanationDto>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    BackoffEnded {},
    Killed {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    MarkedSucceeded {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Reopened {
        priority: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        backfill: Option<String>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Requested {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Prioritised {
        priority: i32,
        backfill: String,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Imported {
        /// The scheduler that it was imported from.
        imported_from: String,
        /// Its state after the import.
        state: Code,
        /// Failed attempts that were counted there.
        retries: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        /// Its state there, in that scheduler's words.
        there: String,
    },
    Dispatched {
        run: u32,
        /// The worker that is to do the run, where workers do; empty where that is not settled yet.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
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
        /// What the executor calls the run.
        external_id: String,
    },
    Succeeded {
        run: u32,
    },
    BackedOff {
        run: u32,
        outcome: OutcomeDto,
        /// When the retry is due.
        due: Instant,
    },
    Failed {
        run: u32,
        outcome: OutcomeDto,
    },
    RunEnded {
        run: u32,
        outcome: OutcomeDto,
    },
    /// Something that this version does not know.
    #[serde(untagged)]
    Other {
        event: Code,
    },
}

/// What happened to a workflow, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "the variants and fields have the names of the model's events, which says what each is"
)]
pub enum WorkflowEventDto {
    Defined {
        /// Number of the definition.
        version: u32,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Removed {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Missed {
        #[serde(flatten)]
        range: RangeDto,
        /// How many times.
        slots: u32,
    },
    Planned {
        #[serde(flatten)]
        range: RangeDto,
        /// How many slots.
        slots: u32,
        /// How many times were planned that get slots when it is their turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        backlog: Option<u64>,
    },
    Replanned {
        #[serde(flatten)]
        range: RangeDto,
    },
    Paused {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Resumed {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Enabled {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Disabled {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Frozen {
        /// Code of the broken invariant.
        code: Code,
        /// What broke, in words.
        reason: String,
    },
    SetAside {
        /// What was set aside.
        what: String,
        /// Code of the broken invariant.
        code: Code,
        /// What broke, in words.
        reason: String,
    },
    Thawed {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Imported {
        /// The scheduler that it was imported from.
        imported_from: String,
        #[serde(flatten)]
        range: RangeDto,
        /// How many slots.
        slots: u32,
    },
    /// Something that this version does not know.
    #[serde(untagged)]
    Other { event: Code },
}

/// What happened to a backfill, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the variants and fields have the names of the model's events, which says what each is"
)]
pub enum BackfillEventDto {
    Created {
        /// Whose slots.
        workflow: String,
        #[serde(flatten)]
        range: RangeDto,
        /// Which slots it reopens: `missing`, `unsuccessful` or `all`.
        mode: Code,
        priority: i32,
        /// How many slots.
        slots: u32,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Cancelled {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Paused {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Resumed {
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Prioritised {
        priority: i32,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    Reopened {
        /// How many slots.
        slots: u32,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// Something that this version does not know.
    #[serde(untagged)]
    Other { event: Code },
}

/// The name of a mode of backfills.
#[must_use]
pub fn mode_name(mode: BackfillMode) -> &'static str {
    match mode {
        BackfillMode::Missing => "missing",
        BackfillMode::Unsuccessful => "unsuccessful",
        BackfillMode::All => "all",
    }
}

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventPageDto<E = EventDto> {
    /// The events, ascending. With `workflow` there may be few, or none, although the log goes on.
    pub items: Vec<E>,
    /// Hand it back as `after` to go on.
    pub last: u64,
    /// Whether the end of the log was reached.
    pub end: bool,
}
