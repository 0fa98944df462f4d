//! Events: the lines of the log, with two tags, `subject` for the thing that changed and `event` for the change.
//!
//! A client reads an event with a tag that it does not know as [`OtherEventDto`], with all its fields.

use std::collections::BTreeMap;

use kelos_model::backfill::BackfillMode;
use kelos_model::{Actor, Occurrence};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::value::present;
use crate::{BatchDto, Code, ExplanationDto, Instant, OutcomeDto, SlotNameDto};

/// An event, which is a line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventDto {
    /// Its position in the log, from 1, without gaps.
    pub seq: u64,
    /// When it happened, by the clock of the scheduler.
    pub at: Instant,
    /// Its subject and the change.
    #[serde(flatten)]
    pub body: EventBodyDto,
}

/// The subject of an event and the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "subject", rename_all = "kebab-case")]
pub enum EventBodyDto {
    /// A change of a slot.
    Slot {
        /// The slot.
        #[serde(flatten)]
        slot: SlotNameDto,
        /// The change.
        #[serde(flatten)]
        what: SlotEventDto,
    },
    /// A change of a workflow.
    Workflow {
        /// Its id.
        workflow: String,
        /// The change.
        #[serde(flatten)]
        what: WorkflowEventDto,
    },
    /// A change of a backfill.
    Backfill {
        /// Its name.
        backfill: String,
        /// The change.
        #[serde(flatten)]
        what: BackfillEventDto,
    },
    /// A change of a register.
    Register {
        /// Its bucket.
        bucket: String,
        /// Its key in the bucket.
        key: String,
        /// The change.
        #[serde(flatten)]
        what: RegisterEventDto,
    },
    /// A published fact.
    Fact(FactEventDto),
    /// Somebody came in, went, or was refused.
    Access(AccessEventDto),
    /// An event of a newer version.
    #[serde(untagged)]
    Other(OtherEventDto),
}

/// An event of a newer version, with all its fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OtherEventDto {
    /// The kind of its subject.
    #[serde(default)]
    pub subject: Code,
    /// The change.
    #[serde(default)]
    pub event: Code,
    /// All other fields.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub fields: Map<String, Value>,
}

/// The actor who requested a change, and the reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequesterDto {
    /// The name of the actor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The actor with its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorDto>,
    /// The reason that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RequesterDto {
    pub(crate) fn new(by: Option<Actor>, reason: Option<String>) -> RequesterDto {
        let name = by.as_ref().map(ToString::to_string);
        RequesterDto { by: name, actor: by.map(ActorDto::from), reason }
    }
}

/// An actor: a person, a program or a part of the system that requests changes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActorDto {
    /// Its kind: `person`, `token`, `worker`, `system`, or `unknown`.
    pub kind: Code,
    /// Its name; for an unknown actor that of the interface that was used.
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

/// A fact: something that happened outside of Kelos.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OccurrenceDto {
    /// The fact, in words: `2 new partitions of purchases`.
    pub what: String,
    /// Its subject: `partition:purchases`.
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

/// The publication of a fact.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FactEventDto {
    /// `told`.
    pub event: Code,
    /// The fact.
    #[serde(flatten)]
    pub occurrence: OccurrenceDto,
    /// Its source.
    pub source: String,
    /// Its idempotency key, unique within its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The actor who published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<ActorDto>,
}

/// A change of a register.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterEventDto {
    /// `set` or `deleted`.
    pub event: Code,
    /// Its new value, which may be null; none when it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub value: Option<Value>,
    /// The actor, and the reason.
    #[serde(flatten)]
    pub requester: RequesterDto,
}

/// An event of the access to the server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccessEventDto {
    /// `signed-in`, `signed-out`, `sign-in-failed` or `refused`.
    pub event: Code,
    /// The right that was missing, as a verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
    /// The project that it was needed for; none if for the whole server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The method and the route of the last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The number of requests since the last event of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The credential that was shown: the id of a token or of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The address that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The actor.
    #[serde(flatten)]
    pub requester: RequesterDto,
}

/// A change of a slot, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[expect(
    missing_docs,
    reason = "the variants and fields have the names of the model's events, which says what each is"
)]
pub enum SlotEventDto {
    Planned {
        /// Its origin: `schedule`, `request`, `backfill`, `parent`, `child` or `fact`.
        origin: Code,
        /// The parent or child that opened the job.
        #[serde(skip_serializing_if = "Option::is_none")]
        opened_by: Option<SlotNameDto>,
        /// Its priority: larger numbers run first.
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
        /// Whether its constraints are ignored.
        unconstrained: bool,
        /// The step of another run that it does again, and nothing else of the flow: `order-42.load`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<String>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// A request gave it arguments for its next runs.
    ArgumentsSet {
        /// The arguments by name, with secrets masked.
        arguments: BTreeMap<String, Value>,
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
        /// The cause of the end of an event schedule's pending slots: `disabled`, `changed` or `deleted`.
        cause: Code,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// Its run took permits of pools while it was live.
    Acquired {
        run: u32,
        /// The number of permits by pool.
        permits: BTreeMap<String, u32>,
    },
    /// Its run returned them.
    Released {
        run: u32,
    },
    /// The run is given the outputs of slots that its slot depends on.
    Given {
        run: u32,
        /// All that it is given, with its arguments.
        inputs: Value,
    },
    Gave {
        run: u32,
        /// The outputs of the run.
        value: Value,
    },
    /// Its failed steps were opened again, with the outputs of the others.
    Resumed {
        /// The step from which on all is done again.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// The run of the flow follows this definition to its end.
    Pinned {
        definition: u32,
    },
    /// A signal came for the run of the flow.
    Signalled {
        name: String,
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// The step came to be, or is done anew.
    StepOpened {
        /// The number of the flow's run.
        run: u32,
        /// The steps that must end before it handles the failure of another.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        awaits: Vec<String>,
        priority: i32,
    },
    /// The step may start.
    StepReady {
        /// Its inputs.
        inputs: Value,
    },
    /// The run ended well, because error steps handled each failure.
    Recovered {
        run: u32,
        /// The steps that failed.
        failed: Vec<String>,
    },
    Expired {
        /// The timeout of the slot.
        timeout_seconds: u64,
        explanation: ExplanationDto,
    },
    Skipped {
        /// The explanation of its trigger or constraints, if it was not skipped on request.
        #[serde(skip_serializing_if = "Option::is_none")]
        explanation: Option<ExplanationDto>,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    BackoffEnded {},
    Late {
        /// The deadline that it missed.
        deadline: Instant,
    },
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
        /// The worker that was assigned the run, if workers run jobs; empty if none is assigned yet.
        #[serde(skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// The batch that the run serves, if it serves several slots.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<BatchDto>,
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
        /// The executor's name of the run.
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
        /// How often it is done again by then because an outcome was unknown; left out where the attempt counts as failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<u32>,
    },
    Failed {
        run: u32,
        outcome: OutcomeDto,
    },
    RunEnded {
        run: u32,
        outcome: OutcomeDto,
    },
    /// An event of a newer version.
    #[serde(untagged)]
    Other {
        event: Code,
    },
}

/// A change of a workflow, in the past tense.
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
        /// The number of times.
        slots: u32,
    },
    Planned {
        #[serde(flatten)]
        range: RangeDto,
        /// The number of slots.
        slots: u32,
        /// The number of planned times whose slots are created later, in their turn.
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
        /// The broken invariant in words.
        reason: String,
    },
    SetAside {
        /// The input that was set aside.
        what: String,
        /// Code of the broken invariant.
        code: Code,
        /// The broken invariant in words.
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
        /// The number of slots.
        slots: u32,
    },
    /// An event of a newer version.
    #[serde(untagged)]
    Other { event: Code },
}

/// A change of a backfill, in the past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(
    missing_docs,
    reason = "the variants and fields have the names of the model's events, which says what each is"
)]
pub enum BackfillEventDto {
    Created {
        /// The workflow whose slots it runs.
        workflow: String,
        #[serde(flatten)]
        range: RangeDto,
        /// The existing slots that it reopens: `missing` (none), `unsuccessful` or `all`.
        mode: Code,
        priority: i32,
        /// The number of slots.
        slots: u32,
        /// Only what this version made was opened again: `1.4`, or a definition by its number, `#3`.
        #[serde(default, rename = "madeBy", skip_serializing_if = "Option::is_none")]
        made_by: Option<String>,
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
        /// The number of slots.
        slots: u32,
        #[serde(flatten)]
        requester: RequesterDto,
    },
    /// An event of a newer version.
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
    /// The events in ascending order. With `workflow` there may be few, or none, although the log continues.
    pub items: Vec<E>,
    /// The position to pass as `after` for the next page.
    pub last: u64,
    /// Whether the end of the log was reached.
    pub end: bool,
}
