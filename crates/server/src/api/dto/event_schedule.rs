//! Event schedules, their states and decisions, on the wire.

use jiff::Timestamp;
use kelos_explain::schedules::check::warnings;
use kelos_explain::schedules::decisions::Decision;
use kelos_explain::schedules::nothing_pending;
use kelos_explain::schedules::overview::{FiringTime, Overview, PendingSlot};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, WorkflowRow};
use kelos_model::{Trigger, Workflow};
use kelos_wire::{
    CollectedDto, ConstraintDto, DecisionDto, EventScheduleDto, ExplanationDto, FiringTimeDto, Instant, PendingDto,
    RunDto, SlotNameDto,
};

use super::FromLibrary;

pub(crate) fn catch_up_name(catch_up: CatchUp) -> &'static str {
    match catch_up {
        CatchUp::Skip => "skip",
        CatchUp::Latest => "latest",
        CatchUp::All => "all",
    }
}

/// An event schedule in its present state; none if a workflow is none.
pub(crate) fn schedule(row: &WorkflowRow, overview: Overview) -> Option<EventScheduleDto> {
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
        properties: properties.clone(),
        timeout_millis: *timeout_millis,
        time_zone: zone_of(definition),
        start_time: definition.start_time.map(Instant),
        end_time: end_time.map(Instant),
        jitter_millis: *jitter_millis,
        catch_up: catch_up_name(*catch_up).into(),
        deadline: definition.deadline.as_ref().and_then(|one| serde_json::to_value(one).ok()),
        shares: (!definition.shares.is_empty()).then(|| serde_json::to_value(&definition.shares).ok()).flatten(),
        standing: standing(row, &overview),
        warnings: warnings(definition),
        next: overview.next.map(FiringTimeDto::from_library),
        last_run: overview.last_run.map(RunDto::from),
        last_success: row.moments.last_run.map(|run| run.started.into()),
        pending: overview.pending.into_iter().map(PendingDto::from_library).collect(),
        counts: None,
    })
}

/// The first pending reason, in words, or why nothing is pending.
fn standing(row: &WorkflowRow, overview: &Overview) -> String {
    match overview.pending.first() {
        Some(pending) => format!("{}: {}", pending.state, pending.text),
        None => nothing_pending(row),
    }
}

/// The zone of all times and windows of a definition, if it is the same for all.
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
    trigger.signature().json == kind || trigger.nested().iter().any(|one| has_kind(one, kind))
}

impl FromLibrary<FiringTime> for FiringTimeDto {
    fn from_library(time: FiringTime) -> FiringTimeDto {
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

impl FromLibrary<PendingSlot> for PendingDto {
    fn from_library(pending: PendingSlot) -> PendingDto {
        PendingDto {
            slot: (&pending.slot).into(),
            state: pending.state.as_str().into(),
            since: pending.since.into(),
            text: pending.text,
            expires: pending.expires.map(Instant),
            collected: pending.collected.as_deref().map(CollectedDto::from),
            explanation: pending.explanation.map(ExplanationDto::from),
        }
    }
}

impl FromLibrary<Decision> for DecisionDto {
    fn from_library(decision: Decision) -> DecisionDto {
        DecisionDto {
            at: decision.at.into(),
            seq: decision.seq,
            kind: decision.kind.as_str().into(),
            slot: decision.slot.as_ref().map(SlotNameDto::from),
            state: decision.state.map(|state| state.as_str().into()),
            text: decision.text,
            collected: decision.collected.as_deref().map(kelos_model::Collection::words).unwrap_or_default(),
            absorbed: decision.absorbed,
            explanation: decision.explanation.map(ExplanationDto::from),
        }
    }
}
