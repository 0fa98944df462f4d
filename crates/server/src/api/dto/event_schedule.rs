//! Event schedules, how they stand and what they decided, on the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_explain::schedules::check::warnings;
use kelos_explain::schedules::decisions::Decision;
use kelos_explain::schedules::overview::{FiringTime, Overview, Pending};
use kelos_explain::schedules::{nothing_pending, tallies};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, WorkflowRow};
use kelos_model::{SlotState, Trigger, Workflow};
use serde::Serialize;
use utoipa::ToSchema;

use super::collected::CollectedDto;
use super::constraint::ConstraintDto;
use super::run::RunDto;
use super::slot::SlotNameDto;
use super::trigger::{ExplanationDto, TriggerDto};
use super::workflow::SourceDto;
use super::{Counts, Instant, counts};
use crate::secrets;

/// An event schedule: what has it go, what it runs, and how it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventScheduleDto {
    /// Its id, which is also that of its workflow.
    pub(crate) id: String,
    /// Its name, unique in its project.
    name: String,
    /// The unit of deployment that owns it.
    project: String,
    /// The workflow whose job it runs.
    program: String,
    /// Whether facts count.
    enabled: bool,
    /// Counts its definitions, from 1.
    version: u32,
    /// Where its definition comes from: a file, or a request.
    source: SourceDto,
    /// When it was last created, changed, enabled or disabled.
    updated: Option<Instant>,
    /// What it is for.
    description: Option<String>,
    /// What has it go.
    trigger: TriggerDto,
    /// What must hold besides, once the trigger is met.
    constraints: Vec<ConstraintDto>,
    /// Arguments of its runs.
    properties: BTreeMap<String, String>,
    /// A slot that has not been queued this long after it came to be expires.
    timeout_millis: u64,
    /// The zone of its times and windows, where it is the same for all of them.
    time_zone: Option<String>,
    /// Nothing counts before this moment.
    start_time: Option<Instant>,
    /// Nothing counts at or after this moment.
    end_time: Option<Instant>,
    /// A time counts up to this much late.
    jitter_millis: u64,
    /// What happens to times that passed while nobody scheduled: `skip`, `latest` or `all`.
    catch_up: &'static str,
    /// When it fires next; none without a cron expression, or while it is disabled.
    next: Option<FiringTimeDto>,
    /// Its run that was dispatched last.
    last_run: Option<RunDto>,
    /// When its last successful run was started.
    last_success: Option<Instant>,
    /// What has not started yet, newest first; the first ten.
    pending: Vec<PendingDto>,
    /// How it stands, in words.
    standing: String,
    /// What looks as if it were not meant, in words: that it goes round for ever.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// How many of its slots are in each state; not there in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, u64>>)]
    counts: Option<Counts>,
}

/// A time of a cron expression.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FiringTimeDto {
    /// The time.
    time: Instant,
    /// The same by the clocks of its zone.
    #[schema(examples("2026-11-22T04:00:00+01:00"))]
    local: String,
    /// The expression.
    cron: String,
    /// Its zone.
    zone: String,
}

/// A slot that has not started yet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingDto {
    /// Its name.
    #[serde(flatten)]
    slot: SlotNameDto,
    /// `waiting` (it collects), `held`, `queued` or `backoff`.
    state: &'static str,
    /// Since when.
    since: Instant,
    /// What it waits for: `3 of 4 partitions of purchases`.
    text: String,
    /// When it is over if nothing changes.
    expires: Option<Instant>,
    /// What it has collected.
    collected: Option<CollectedDto>,
    /// What its trigger says where it waits, and what its constraints say where it is held.
    explanation: Option<ExplanationDto>,
}

/// What an event schedule decided about something, or what happened to itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionDto {
    /// When.
    at: Instant,
    /// Position in the log of what settled it.
    seq: u64,
    /// `fired`, `pending`, `aborted` (a constraint was not met), `expired`, `disabled`, `changed`, `deleted`, `skipped`,
    /// `killed`, `missed` (times that passed while nobody scheduled), or `schedule`: something happened to the schedule itself.
    kind: &'static str,
    /// The slot that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<SlotNameDto>,
    /// Where that stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// What happened and why.
    text: String,
    /// What had been collected, in words.
    collected: Vec<String>,
    /// Facts that came while it was held, and opened no slot of their own.
    absorbed: u32,
    /// What the trigger or the constraints said.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<ExplanationDto>,
}

pub(crate) fn catch_up_name(catch_up: CatchUp) -> &'static str {
    match catch_up {
        CatchUp::Skip => "skip",
        CatchUp::Latest => "latest",
        CatchUp::All => "all",
    }
}

impl EventScheduleDto {
    /// An event schedule as it stands; none of another workflow.
    pub(crate) fn of(row: &WorkflowRow, overview: Overview) -> Option<EventScheduleDto> {
        let definition = &row.definition;
        let Keys::Events(events) = &definition.keys else { return None };
        let EventKeys { name, program, timeout_millis, properties, end_time, jitter_millis, catch_up, .. } = &**events;
        Some(EventScheduleDto {
            id: row.id.to_string(),
            name: name.clone(),
            project: definition.project.clone(),
            program: program.to_string(),
            enabled: row.enabled,
            version: row.version,
            source: (&**definition).into(),
            updated: row.moments.updated.map(Instant),
            description: definition.about.description.clone(),
            trigger: (&definition.trigger).into(),
            constraints: definition.constraints.iter().map(ConstraintDto::from).collect(),
            properties: secrets::masked_texts(properties),
            timeout_millis: *timeout_millis,
            time_zone: zone_of(definition),
            start_time: definition.start_time.map(Instant),
            end_time: end_time.map(Instant),
            jitter_millis: *jitter_millis,
            catch_up: catch_up_name(*catch_up),
            standing: standing(row, &overview),
            warnings: warnings(definition),
            next: overview.next.map(FiringTimeDto::from),
            last_run: overview.last_run.map(RunDto::from),
            last_success: row.moments.last_run.map(|run| run.started.into()),
            pending: overview.pending.into_iter().map(PendingDto::from).collect(),
            counts: None,
        })
    }

    /// The same with how many of its slots are in each state.
    pub(crate) fn with_counts(mut self, slots: BTreeMap<SlotState, u64>) -> EventScheduleDto {
        self.counts = Some(counts(slots));
        self
    }
}

/// The first that is pending, in words, or why nothing is.
fn standing(row: &WorkflowRow, overview: &Overview) -> String {
    match overview.pending.first() {
        Some(pending) => format!("{}: {}", pending.state, pending.text),
        None => nothing_pending(row),
    }
}

/// The zone of all times and windows of a definition, where it is one.
pub(crate) fn zone_of(definition: &Workflow) -> Option<String> {
    let times = definition.trigger.firings().into_iter().map(|firing| firing.zone().name().to_owned());
    let windows = definition.constraints.iter().filter_map(|one| match &one.gate {
        kelos_model::Gate::Window(window) => Some(window.zone().name().to_owned()),
        _ => None,
    });
    let mut zones: Vec<String> = times.chain(windows).collect();
    zones.dedup();
    (zones.len() == 1).then(|| zones.pop()).flatten()
}

/// Whether a trigger of a kind is somewhere in a tree.
pub(crate) fn has_kind(trigger: &Trigger, kind: &str) -> bool {
    TriggerDto::from(trigger).kind() == kind || trigger.nested().iter().any(|one| has_kind(one, kind))
}

impl From<FiringTime> for FiringTimeDto {
    fn from(time: FiringTime) -> FiringTimeDto {
        FiringTimeDto {
            time: time.at.into(),
            local: local(time.at, &time.zone),
            cron: time.cron,
            zone: time.zone.name().to_owned(),
        }
    }
}

fn local(at: Timestamp, zone: &kelos_model::time::Zone) -> String {
    at.to_zoned(zone.rules().clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

impl From<Pending> for PendingDto {
    fn from(pending: Pending) -> PendingDto {
        PendingDto {
            slot: (&pending.slot).into(),
            state: pending.state.as_str(),
            since: pending.since.into(),
            text: pending.text,
            expires: pending.expires.map(Instant),
            collected: pending.collected.as_deref().map(CollectedDto::from),
            explanation: pending.explanation.map(ExplanationDto::from),
        }
    }
}

impl From<Decision> for DecisionDto {
    fn from(decision: Decision) -> DecisionDto {
        DecisionDto {
            at: decision.at.into(),
            seq: decision.seq,
            kind: decision.kind.as_str(),
            slot: decision.slot.as_ref().map(SlotNameDto::from),
            state: decision.state.map(SlotState::as_str),
            text: decision.text,
            collected: decision.collected.as_deref().map(tallies).unwrap_or_default(),
            absorbed: decision.absorbed,
            explanation: decision.explanation.map(ExplanationDto::from),
        }
    }
}
