//! Events on the wire: one flat shape for all of them.

use kelos_engine::executor::shown_id;
use kelos_model::event::{Abort, BackfillEvent, Origin};
use kelos_model::ranges::Range;
use kelos_model::workflow::BackfillMode;
use kelos_model::{Actor, Breach, Event, EventRecord, Occurrence, Outcome, SlotEvent, SlotRef, WorkflowEvent};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::run::OutcomeDto;
use super::slot::SlotNameDto;
use super::trigger::ExplanationDto;
use super::{Instant, job, time};
use crate::secrets;

/// One line of the log. Which of the optional fields are there depends on `subject` and `event`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventDto {
    /// Its position in the log, from 1, without gaps.
    seq: u64,
    /// When it happened, by the clock of the scheduler.
    at: Instant,
    /// What it happened to: `slot`, `workflow`, `backfill` or `register`.
    subject: &'static str,
    /// What happened, past tense: `planned`, `trigger-met`, `dispatched`, `started`, `succeeded`, `failed`, …
    event: &'static str,
    /// The workflow that it happened to, or whose slot or backfill.
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    /// The time of the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// The job id of the slot, where it is a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Number of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
    /// What the executor calls the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    /// How the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeDto>,
    /// When the retry is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Instant>,
    /// Who asked, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The same, or who told a fact, with what is known of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<ActorDto>,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Who first asked for the slot: `schedule`, `request`, `backfill`, `parent` or `child`.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    /// The parent or child that opened the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_by: Option<SlotNameDto>,
    /// The worker that is to do the run, where workers do; empty where that is not settled yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    /// Larger goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    /// The name of the backfill.
    #[serde(skip_serializing_if = "Option::is_none")]
    backfill: Option<String>,
    /// Which slots the backfill reopens.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    /// How long the slot was allowed to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    /// What the trigger said.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationDto>,
    /// Number of the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// Start of a range, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Instant>,
    /// End of the range, exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Instant>,
    /// How many slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<u32>,
    /// How many times were planned that get slots when it is their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    backlog: Option<u64>,
    /// Bucket of the register.
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    /// Key of the register.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The scheduler that it was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported_from: Option<String>,
    /// Where the slot stands after its import.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// Where the imported slot stood there, in that scheduler's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<String>,
    /// Failed attempts of the imported slot that were counted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    /// The new value of the register; what a run gave; what came with a fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// The fact, in words: `2 new partitions of purchases`.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
    /// What the fact is about: `partition:purchases`.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// Log position of the fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    fact: Option<u64>,
    /// Who told the fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Why an event schedule ended what it had pending: `disabled`, `changed` or `deleted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// Code of the broken invariant for which the workflow was frozen, or something was set aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Whether the constraints are passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    unconstrained: Option<bool>,
}

/// Who asked for something.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActorDto {
    /// What they are: `person`, `token`, `worker`, `system`; `unknown` where they did not say.
    kind: &'static str,
    /// Their name; of those who did not say, that of the way by which they came.
    name: String,
}

impl From<Actor> for ActorDto {
    fn from(actor: Actor) -> ActorDto {
        ActorDto { kind: actor.kind.as_str(), name: actor.to_string() }
    }
}

impl EventDto {
    /// The position in the log.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn subject(&self) -> &'static str {
        self.subject
    }

    /// On whose word it happened, where somebody asked for it.
    fn asked(self, by: Option<Actor>, reason: Option<String>) -> EventDto {
        let name = by.as_ref().map(ToString::to_string);
        EventDto { by: name, actor: by.map(ActorDto::from), reason, ..self }
    }

    fn over(self, range: Range) -> EventDto {
        EventDto { from: Some(range.start.into()), to: Some(range.end.into()), ..self }
    }
}

impl From<EventRecord> for EventDto {
    fn from(record: EventRecord) -> EventDto {
        let told = match record.event {
            Event::Slot { slot, what } => EventDto {
                subject: "slot",
                workflow: Some(slot.workflow.to_string()),
                time: time(&slot.key),
                job: job(&slot.key),
                ..of_slot(what)
            },
            Event::Workflow { workflow, what } => {
                EventDto { subject: "workflow", workflow: Some(workflow.to_string()), ..of_workflow(what) }
            }
            Event::Backfill { backfill, what } => {
                EventDto { subject: "backfill", backfill: Some(backfill.to_string()), ..of_backfill(what) }
            }
            Event::Register { bucket, key, value, by, reason } => EventDto {
                subject: "register",
                bucket: Some(bucket),
                key: Some(key),
                event: if value.is_some() { "set" } else { "deleted" },
                value,
                ..EventDto::default().asked(by, reason)
            },
            Event::Fact { fact, by } => EventDto {
                subject: "fact",
                actor: by.map(ActorDto::from),
                source: Some(fact.source.to_string()),
                key: fact.key.map(|key| key.to_string()),
                ..of_occurrence("told", &fact.what)
            },
        };
        EventDto { seq: record.seq, at: record.at.into(), ..told }
    }
}

fn named(event: &'static str) -> EventDto {
    EventDto { event, ..EventDto::default() }
}

fn of_run(event: &'static str, run: u32) -> EventDto {
    EventDto { run: Some(run), ..named(event) }
}

fn of_ended_run(event: &'static str, run: u32, outcome: Outcome) -> EventDto {
    EventDto { outcome: Some(outcome.into()), ..of_run(event, run) }
}

fn of_occurrence(event: &'static str, what: &Occurrence) -> EventDto {
    let value = match what {
        Occurrence::Signal { payload, .. } if !payload.is_null() => Some(payload.clone()),
        Occurrence::Partitions { keys, .. } if !keys.is_empty() => Some(keys.clone().into()),
        _ => None,
    };
    EventDto { what: Some(what.to_string()), about: Some(what.subject().to_string()), value, ..named(event) }
}

fn cause_name(cause: Abort) -> &'static str {
    match cause {
        Abort::Disabled => "disabled",
        Abort::Changed => "changed",
        Abort::Deleted => "deleted",
    }
}

fn of_slot(what: SlotEvent) -> EventDto {
    let explained =
        |event, explanation: kelos_model::Reason| EventDto { explanation: Some(explanation.into()), ..named(event) };
    match what {
        SlotEvent::Planned { origin, priority, backfill, by, reason } => EventDto {
            origin: Some(origin_name(&origin)),
            opened_by: opener(&origin).map(SlotNameDto::from),
            priority: Some(priority),
            backfill: backfill.map(String::from),
            ..named("planned").asked(by, reason)
        },
        SlotEvent::Looked { explanation } => explained("looked", explanation),
        SlotEvent::TriggerMet { explanation } => explained("trigger-met", explanation),
        SlotEvent::Collected { what, fact } => EventDto { fact, ..of_occurrence("collected", &what) },
        SlotEvent::FiredBy { by, reason, unconstrained, .. } => {
            EventDto { unconstrained: Some(unconstrained), ..named("fired").asked(Some(by), reason) }
        }
        SlotEvent::Held { explanation } => explained("held", explanation),
        SlotEvent::ConstraintsMet { explanation } => explained("constraints-met", explanation),
        SlotEvent::Aborted { cause, by, reason } => {
            EventDto { cause: Some(cause_name(cause)), ..named("aborted").asked(by, reason) }
        }
        SlotEvent::Gave { run, outputs } => {
            EventDto { value: Some(secrets::masked_fields(&outputs).into()), ..of_run("gave", run) }
        }
        SlotEvent::Expired { timeout_seconds, explanation } => {
            EventDto { timeout_seconds: Some(timeout_seconds), ..explained("expired", explanation) }
        }
        SlotEvent::Skipped { explanation } => explained("skipped", explanation),
        SlotEvent::BackoffEnded => named("backoff-ended"),
        SlotEvent::Killed { by, reason } => named("killed").asked(Some(by), reason),
        SlotEvent::MarkedSucceeded { by, reason } => named("marked-succeeded").asked(Some(by), reason),
        SlotEvent::SkippedBy { by, reason } => named("skipped").asked(Some(by), reason),
        SlotEvent::Reopened { by, reason, priority, backfill } => EventDto {
            priority: Some(priority),
            backfill: backfill.map(String::from),
            ..named("reopened").asked(Some(by), reason)
        },
        SlotEvent::Requested { by, reason } => named("requested").asked(Some(by), reason),
        SlotEvent::Prioritised { priority, backfill, by, reason } => EventDto {
            priority: Some(priority),
            backfill: Some(backfill.into()),
            ..named("prioritised").asked(by, reason)
        },
        SlotEvent::Imported { from, state, retries, external_id, there, requested: _ } => EventDto {
            imported_from: Some(from),
            state: Some(state.as_str()),
            retries: Some(retries),
            external_id: external_id.as_deref().map(shown_id).map(str::to_owned),
            there: Some(there),
            ..named("imported")
        },
        SlotEvent::Dispatched { run, worker } => EventDto { worker, ..of_run("dispatched", run) },
        SlotEvent::Deferred { run, reason } => EventDto { reason: Some(reason), ..of_run("deferred", run) },
        SlotEvent::Withdrawn { run } => of_run("withdrawn", run),
        SlotEvent::Started { run, external_id } => {
            EventDto { external_id: Some(shown_id(&external_id).to_owned()), ..of_run("started", run) }
        }
        SlotEvent::Succeeded { run } => of_run("succeeded", run),
        SlotEvent::BackedOff { run, outcome, due } => {
            EventDto { due: Some(due.into()), ..of_ended_run("backed-off", run, outcome) }
        }
        SlotEvent::Failed { run, outcome } => of_ended_run("failed", run, outcome),
        SlotEvent::RunEnded { run, outcome } => of_ended_run("run-ended", run, outcome),
    }
}

fn of_workflow(what: WorkflowEvent) -> EventDto {
    match what {
        WorkflowEvent::Defined { version, by, reason } => {
            EventDto { version: Some(version), ..named("defined").asked(by, reason) }
        }
        WorkflowEvent::Removed { by, reason } => named("removed").asked(by, reason),
        WorkflowEvent::Missed { range, times } => EventDto { slots: Some(times), ..named("missed") }.over(range),
        WorkflowEvent::Planned { range, slots, backlog } => {
            let backlog = Some(backlog).filter(|backlog| *backlog > 0);
            EventDto { slots: Some(slots), backlog, ..named("planned") }.over(range)
        }
        WorkflowEvent::Replanned { range } => named("replanned").over(range),
        WorkflowEvent::Paused { by, reason } => named("paused").asked(Some(by), reason),
        WorkflowEvent::Resumed { by, reason } => named("resumed").asked(Some(by), reason),
        WorkflowEvent::Enabled { by, reason } => named("enabled").asked(Some(by), reason),
        WorkflowEvent::Disabled { by, reason } => named("disabled").asked(Some(by), reason),
        WorkflowEvent::Frozen { breach } => of_breach("frozen", &breach),
        WorkflowEvent::SetAside { breach, input } => EventDto { what: Some(input), ..of_breach("set-aside", &breach) },
        WorkflowEvent::Thawed { by, reason } => named("thawed").asked(Some(by), reason),
        WorkflowEvent::Imported { from, range, slots } => {
            EventDto { imported_from: Some(from), slots: Some(slots), ..named("imported") }.over(range)
        }
    }
}

fn of_breach(name: &'static str, breach: &Breach) -> EventDto {
    EventDto { code: Some(breach.invariant.code()), reason: Some(breach.to_string()), ..named(name) }
}

fn of_backfill(what: BackfillEvent) -> EventDto {
    match what {
        BackfillEvent::Created { workflow, range, mode, priority, by, slots, reason } => EventDto {
            workflow: Some(workflow.into()),
            mode: Some(mode_name(mode)),
            priority: Some(priority),
            slots: Some(slots),
            ..named("created").asked(Some(by), reason)
        }
        .over(range),
        BackfillEvent::Cancelled { by, reason } => named("cancelled").asked(Some(by), reason),
        BackfillEvent::Paused { by, reason } => named("paused").asked(Some(by), reason),
        BackfillEvent::Resumed { by, reason } => named("resumed").asked(Some(by), reason),
        BackfillEvent::Prioritised { priority, by, reason } => {
            EventDto { priority: Some(priority), ..named("prioritised").asked(Some(by), reason) }
        }
        BackfillEvent::Reopened { slots, by, reason } => {
            EventDto { slots: Some(slots), ..named("reopened").asked(Some(by), reason) }
        }
    }
}

fn opener(origin: &Origin) -> Option<&SlotRef> {
    match origin {
        Origin::Parent(slot) | Origin::Child(slot) => Some(slot),
        Origin::Schedule | Origin::Request | Origin::Backfill | Origin::Fact => None,
    }
}

fn origin_name(origin: &Origin) -> &'static str {
    match origin {
        Origin::Parent(_) => "parent",
        Origin::Child(_) => "child",
        Origin::Schedule => "schedule",
        Origin::Request => "request",
        Origin::Backfill => "backfill",
        Origin::Fact => "fact",
    }
}

pub(crate) fn mode_name(mode: BackfillMode) -> &'static str {
    match mode {
        BackfillMode::Missing => "missing",
        BackfillMode::Unsuccessful => "unsuccessful",
        BackfillMode::All => "all",
    }
}
