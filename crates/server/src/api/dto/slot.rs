//! Slots, and why they stand where they stand, on the wire.

use kelos_engine::executor::shown_id;
use kelos_explain::why::Why;
use kelos_model::{Slot, SlotRef, SlotState};
use kelos_store::SlotRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::collected::CollectedDto;
use super::event::EventDto;
use super::run::RunDto;
use super::trigger::ExplanationDto;
use super::{Instant, job, time};

/// The name of a slot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SlotNameDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
}

impl From<&SlotRef> for SlotNameDto {
    fn from(slot: &SlotRef) -> SlotNameDto {
        SlotNameDto { workflow: slot.workflow.to_string(), time: time(&slot.key), job: job(&slot.key) }
    }
}

/// A slot: a workflow at a time, or one of its jobs; the unit of state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SlotDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// `waiting`, `held`, `queued`, `dispatched`, `running`, `backoff`, `succeeded`, `failed`, `expired`,
    /// `skipped` or `killed`.
    state: &'static str,
    /// Since when.
    since: Instant,
    /// Failed attempts since it was planned or last reopened.
    retries: u32,
    /// The number of its latest run; 0 before the first.
    last_run: u32,
    /// Whether that run may still be alive; also for a killed or skipped slot whose run is being ended.
    run_alive: bool,
    /// What the executor calls that run.
    external_id: Option<String>,
    /// Larger goes first; 0 is normal.
    priority: i32,
    /// The backfill that last asked for it.
    backfill: Option<String>,
    /// When the retry is due, in state `backoff`.
    due: Option<Instant>,
    /// What it has collected, where its trigger or its constraints ask for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    collected: Option<CollectedDto>,
}

impl SlotDto {
    pub(crate) fn new(id: &SlotRef, slot: Slot) -> SlotDto {
        SlotDto {
            workflow: id.workflow.to_string(),
            time: time(&id.key),
            job: job(&id.key),
            state: slot.state.as_str(),
            since: slot.since.into(),
            retries: slot.retries,
            last_run: slot.last_run,
            run_alive: slot.run_alive,
            external_id: slot.external_id.as_deref().map(shown_id).map(str::to_owned),
            priority: slot.priority,
            backfill: slot.backfill.map(String::from),
            due: slot.due.map(Instant),
            collected: slot.collected.as_deref().map(CollectedDto::from),
        }
    }
}

impl From<SlotRow> for SlotDto {
    fn from(row: SlotRow) -> SlotDto {
        SlotDto::new(&row.id, row.slot)
    }
}

/// Why a slot stands, or stood, where it does.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// The moment that this is about.
    at: Instant,
    /// The state then; none where the slot did not exist.
    state: Option<&'static str>,
    /// Since when it was in that state.
    since: Option<Instant>,
    /// The answer in one sentence.
    headline: String,
    /// What stands in the way.
    blockers: Vec<String>,
    /// Why it waits for no job though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_group: Option<String>,
    /// The jobs that wait for it and are never opened, since their ids can't be written; only for the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    nameless_children: Option<String>,
    /// When it is looked at next by itself; only for the present.
    next_look: Option<Instant>,
    /// The event that put it into that state.
    decision: Option<EventDto>,
    /// What its trigger was last found to say, with what each leaf read.
    trigger: Option<ExplanationDto>,
    /// When that was found.
    found_at: Option<Instant>,
    /// What its constraints were last found to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<ExplanationDto>,
    /// When that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints_at: Option<Instant>,
    /// When it expires, if it still waits then; only of a slot of an event schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Instant>,
    /// Its runs up to then, oldest first.
    runs: Vec<RunDto>,
}

impl From<Why> for WhyDto {
    fn from(why: Why) -> WhyDto {
        WhyDto {
            workflow: why.slot.workflow.to_string(),
            time: time(&why.slot.key),
            job: job(&why.slot.key),
            at: why.at.into(),
            state: why.state.map(SlotState::as_str),
            since: why.since.map(Instant),
            headline: why.headline,
            blockers: why.blockers,
            no_group: why.no_group,
            nameless_children: why.nameless_children,
            next_look: why.next_look.map(Instant),
            decision: why.decision.map(EventDto::from),
            trigger: why.trigger.map(ExplanationDto::from),
            found_at: why.found_at.map(Instant),
            constraints: why.constraints.map(ExplanationDto::from),
            constraints_at: why.constraints_at.map(Instant),
            expires: why.expires.map(Instant),
            runs: why.runs.into_iter().map(RunDto::from).collect(),
        }
    }
}
