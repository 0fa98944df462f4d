//! Conversions of the model's events into those of the wire.

use kelos_model::event::{BackfillEvent, Origin};
use kelos_model::ranges::Range;
use kelos_model::register::ACCESS_BUCKET;
use kelos_model::repeated::RepeatedStep;
use kelos_model::run::shown_id;
use kelos_model::{AccessEvent, Actor, Event, EventRecord, SlotEvent, SlotRef, WorkflowEvent};

use crate::words::aborted;
use crate::{
    AccessEventDto, BackfillEventDto, BatchDto, EventBodyDto, EventDto, FactEventDto, RangeDto, RegisterEventDto,
    RequesterDto, SlotEventDto as Dto, SlotNameDto, WorkflowEventDto, mode_name,
};

impl From<EventRecord> for EventDto {
    fn from(record: EventRecord) -> EventDto {
        EventDto { seq: record.seq, at: record.at.into(), body: record.event.into() }
    }
}

impl From<Event> for EventBodyDto {
    fn from(event: Event) -> EventBodyDto {
        match event {
            Event::Slot { slot, what } => EventBodyDto::Slot { slot: (&slot).into(), what: what.into() },
            Event::Workflow { workflow, what } => {
                EventBodyDto::Workflow { workflow: workflow.to_string(), what: what.into() }
            }
            Event::Backfill { backfill, what } => {
                EventBodyDto::Backfill { backfill: backfill.to_string(), what: what.into() }
            }
            Event::Register { bucket, key, value, by, reason } => {
                let event = if value.is_some() { "set" } else { "deleted" };
                // Hashes of passwords and tokens are for nobody.
                let value = value.filter(|_| bucket != ACCESS_BUCKET);
                let what = RegisterEventDto { event: event.into(), value, requester: RequesterDto::new(by, reason) };
                EventBodyDto::Register { bucket, key, what }
            }
            Event::Access { what, by } => EventBodyDto::Access(access(what, by)),
            Event::Fact { fact, by } => EventBodyDto::Fact(FactEventDto {
                event: "told".into(),
                occurrence: (&fact.what).into(),
                source: fact.source.to_string(),
                key: fact.key.map(|key| key.to_string()),
                actor: by.map(Into::into),
            }),
        }
    }
}

fn access(what: AccessEvent, by: Actor) -> AccessEventDto {
    let credential = by.credential.as_ref().map(ToString::to_string);
    let address = by.address.map(|address| address.to_string());
    let event = AccessEventDto { credential, address, requester: asked(by, None), ..AccessEventDto::default() };
    match what {
        AccessEvent::SignedIn => AccessEventDto { event: "signed-in".into(), ..event },
        AccessEvent::SignedOut => AccessEventDto { event: "signed-out".into(), ..event },
        AccessEvent::SignInFailed { times } => {
            AccessEventDto { event: "sign-in-failed".into(), times: Some(times), ..event }
        }
        AccessEvent::Refused { right, project, action, times } => AccessEventDto {
            event: "refused".into(),
            right: Some(right),
            project,
            action: Some(action),
            times: Some(times),
            ..event
        },
    }
}

fn asked(by: Actor, reason: Option<String>) -> RequesterDto {
    RequesterDto::new(Some(by), reason)
}

impl From<Range> for RangeDto {
    fn from(range: Range) -> RangeDto {
        RangeDto { from: range.start.into(), to: range.end.into() }
    }
}

/// The step that a run does again, as people name it.
fn step_of(repeats: Option<&RepeatedStep>) -> Option<String> {
    Some(repeats?.key()?.short())
}

impl From<SlotEvent> for Dto {
    fn from(what: SlotEvent) -> Dto {
        match what {
            SlotEvent::Planned { origin, priority, backfill, by, reason } => Dto::Planned {
                origin: origin_name(&origin).into(),
                opened_by: opener(&origin).map(SlotNameDto::from),
                priority,
                backfill: backfill.map(String::from),
                requester: RequesterDto::new(by, reason),
            },
            SlotEvent::Looked { explanation } => Dto::Looked { explanation: explanation.into() },
            SlotEvent::TriggerMet { explanation } => Dto::TriggerMet { explanation: explanation.into() },
            SlotEvent::Collected { what, fact } => Dto::Collected { occurrence: (&what).into(), fact },
            SlotEvent::FiredBy { by, reason, unconstrained, repeats, .. } => {
                Dto::Fired { unconstrained, repeats: step_of(repeats.as_deref()), requester: asked(by, reason) }
            }
            SlotEvent::ArgumentsSet { by, arguments } => Dto::ArgumentsSet { arguments, requester: asked(by, None) },
            SlotEvent::Held { explanation, .. } => Dto::Held { explanation: explanation.into() },
            SlotEvent::ConstraintsMet { explanation } => Dto::ConstraintsMet { explanation: explanation.into() },
            SlotEvent::Aborted { cause, by, reason } => {
                Dto::Aborted { cause: aborted(cause).into(), requester: RequesterDto::new(by, reason) }
            }
            SlotEvent::Acquired { run, permits, .. } => {
                Dto::Acquired { run, permits: permits.into_iter().map(|(pool, n)| (pool.to_string(), n)).collect() }
            }
            SlotEvent::Released { run, .. } => Dto::Released { run },
            handed_on @ (SlotEvent::Given { .. } | SlotEvent::Gave { .. }) => of_data(handed_on),
            SlotEvent::Expired { timeout_seconds, explanation } => {
                Dto::Expired { timeout_seconds, explanation: explanation.into() }
            }
            SlotEvent::Skipped { explanation } => {
                Dto::Skipped { explanation: Some(explanation.into()), requester: RequesterDto::default() }
            }
            SlotEvent::SkippedBy { by, reason } => Dto::Skipped { explanation: None, requester: asked(by, reason) },
            SlotEvent::BackoffEnded => Dto::BackoffEnded {},
            SlotEvent::Late { deadline } => Dto::Late { deadline: deadline.into() },
            SlotEvent::Killed { by, reason } => Dto::Killed { requester: asked(by, reason) },
            SlotEvent::MarkedSucceeded { by, reason } => Dto::MarkedSucceeded { requester: asked(by, reason) },
            SlotEvent::Reopened { by, reason, priority, backfill } => {
                Dto::Reopened { priority, backfill: backfill.map(String::from), requester: asked(by, reason) }
            }
            of_flow @ (SlotEvent::Resumed { .. }
            | SlotEvent::Pinned { .. }
            | SlotEvent::Signalled { .. }
            | SlotEvent::StepOpened { .. }
            | SlotEvent::StepReady { .. }
            | SlotEvent::Recovered { .. }) => of_a_flow(of_flow),
            SlotEvent::Requested { by, reason } => Dto::Requested { requester: asked(by, reason) },
            SlotEvent::Prioritised { priority, backfill, by, reason } => {
                Dto::Prioritised { priority, backfill: backfill.into(), requester: RequesterDto::new(by, reason) }
            }
            SlotEvent::Imported { from: imported_from, state, retries, external_id, there, requested: _ } => {
                let (state, external_id) = (state.as_str().into(), external_id.as_deref().map(shown));
                Dto::Imported { imported_from, state, retries, external_id, there }
            }
            SlotEvent::Dispatched { run, worker, batch } => {
                Dto::Dispatched { run, worker, batch: batch.map(BatchDto::from) }
            }
            SlotEvent::Deferred { run, reason } => Dto::Deferred { run, reason },
            SlotEvent::Withdrawn { run } => Dto::Withdrawn { run },
            SlotEvent::Started { run, external_id } => Dto::Started { run, external_id: shown(&external_id) },
            SlotEvent::Succeeded { run } => Dto::Succeeded { run },
            SlotEvent::BackedOff { run, outcome, due, again } => {
                Dto::BackedOff { run, outcome: outcome.into(), due: due.into(), again: (again > 0).then_some(again) }
            }
            SlotEvent::Failed { run, outcome } => Dto::Failed { run, outcome: outcome.into() },
            SlotEvent::RunEnded { run, outcome } => Dto::RunEnded { run, outcome: outcome.into() },
        }
    }
}

/// The events of what runs are given and give.
fn of_data(what: SlotEvent) -> Dto {
    match what {
        SlotEvent::Given { run, inputs } => {
            let inputs = inputs.into_iter().collect::<serde_json::Map<_, _>>().into();
            Dto::Given { run, inputs }
        }
        SlotEvent::Gave { run, outputs } => Dto::Gave { run, value: outputs.into() },
        // All others are converted by the caller.
        _ => Dto::Other { event: "".into() },
    }
}

/// An event of a run of a flow, or of one of its steps.
fn of_a_flow(what: SlotEvent) -> Dto {
    match what {
        SlotEvent::Resumed { by, reason, from } => {
            Dto::Resumed { from: from.map(|step| step.to_string()), requester: asked(by, reason) }
        }
        SlotEvent::Pinned { definition } => Dto::Pinned { definition },
        SlotEvent::Signalled { name, payload, by, reason } => {
            Dto::Signalled { name, payload, requester: asked(by, reason) }
        }
        SlotEvent::StepOpened { run, awaits, priority } => {
            Dto::StepOpened { run, awaits: awaits.iter().map(ToString::to_string).collect(), priority }
        }
        SlotEvent::StepReady { inputs } => Dto::StepReady { inputs: inputs.into() },
        SlotEvent::Recovered { run, failed } => {
            Dto::Recovered { run, failed: failed.iter().map(ToString::to_string).collect() }
        }
        // All others are converted by the caller.
        _ => Dto::Other { event: "".into() },
    }
}

fn shown(external_id: &str) -> String {
    shown_id(external_id).to_owned()
}

impl From<WorkflowEvent> for WorkflowEventDto {
    fn from(what: WorkflowEvent) -> WorkflowEventDto {
        use WorkflowEventDto as Dto;
        match what {
            WorkflowEvent::Defined { version, by, reason } => {
                Dto::Defined { version, requester: RequesterDto::new(by, reason) }
            }
            WorkflowEvent::Removed { by, reason } => Dto::Removed { requester: RequesterDto::new(by, reason) },
            WorkflowEvent::Missed { range, times } => Dto::Missed { range: range.into(), slots: times },
            WorkflowEvent::Planned { range, slots, backlog } => {
                Dto::Planned { range: range.into(), slots, backlog: Some(backlog).filter(|backlog| *backlog > 0) }
            }
            WorkflowEvent::Replanned { range } => Dto::Replanned { range: range.into() },
            WorkflowEvent::Paused { by, reason } => Dto::Paused { requester: asked(by, reason) },
            WorkflowEvent::Resumed { by, reason } => Dto::Resumed { requester: asked(by, reason) },
            WorkflowEvent::Enabled { by, reason } => Dto::Enabled { requester: asked(by, reason) },
            WorkflowEvent::Disabled { by, reason } => Dto::Disabled { requester: asked(by, reason) },
            WorkflowEvent::Frozen { breach } => {
                Dto::Frozen { code: breach.invariant.code().into(), reason: breach.to_string() }
            }
            WorkflowEvent::SetAside { breach, input } => {
                Dto::SetAside { what: input, code: breach.invariant.code().into(), reason: breach.to_string() }
            }
            WorkflowEvent::Thawed { by, reason } => Dto::Thawed { requester: asked(by, reason) },
            WorkflowEvent::Imported { from, range, slots } => {
                Dto::Imported { imported_from: from, range: range.into(), slots }
            }
        }
    }
}

impl From<BackfillEvent> for BackfillEventDto {
    fn from(what: BackfillEvent) -> BackfillEventDto {
        use BackfillEventDto as Dto;
        match what {
            BackfillEvent::Created { workflow, range, mode, priority, by, slots, reason, made_by } => Dto::Created {
                workflow: workflow.into(),
                range: range.into(),
                mode: mode_name(mode).into(),
                priority,
                slots,
                made_by: made_by.map(String::from),
                requester: asked(by, reason),
            },
            BackfillEvent::Cancelled { by, reason } => Dto::Cancelled { requester: asked(by, reason) },
            BackfillEvent::Paused { by, reason } => Dto::Paused { requester: asked(by, reason) },
            BackfillEvent::Resumed { by, reason } => Dto::Resumed { requester: asked(by, reason) },
            BackfillEvent::Prioritised { priority, by, reason } => {
                Dto::Prioritised { priority, requester: asked(by, reason) }
            }
            BackfillEvent::Reopened { slots, by, reason } => Dto::Reopened { slots, requester: asked(by, reason) },
        }
    }
}

fn opener(origin: &Origin) -> Option<&SlotRef> {
    match origin {
        Origin::Parent(slot) | Origin::Child(slot) => Some(slot),
        Origin::Schedule | Origin::Feed | Origin::Request | Origin::Backfill | Origin::Fact | Origin::Signal => None,
    }
}

fn origin_name(origin: &Origin) -> &'static str {
    match origin {
        Origin::Parent(_) => "parent",
        Origin::Child(_) => "child",
        Origin::Schedule => "schedule",
        Origin::Feed => "feed",
        Origin::Request => "request",
        Origin::Backfill => "backfill",
        Origin::Fact => "fact",
        Origin::Signal => "signal",
    }
}
