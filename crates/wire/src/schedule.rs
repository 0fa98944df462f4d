//! Event schedules, their status and their decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Code, CollectedDto, ConstraintDto, Counts, ExplanationDto, Instant, RunDto, SlotNameDto, SourceDto, TriggerDto,
};

/// An event schedule: its trigger, its program and its status.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventScheduleDto {
    /// Its id, which is also that of its workflow.
    pub id: String,
    /// Its name, unique in its project.
    pub name: String,
    /// The project that owns it.
    pub project: String,
    /// The workflow whose job it runs.
    pub program: String,
    /// Whether it is enabled, so that facts count.
    pub enabled: bool,
    /// The version of its definition, from 1.
    pub version: u32,
    /// The origin of its definition: a file, or a request.
    pub source: SourceDto,
    /// When it was last created, changed, enabled or disabled.
    pub updated: Option<Instant>,
    /// Its description.
    pub description: Option<String>,
    /// Its trigger.
    pub trigger: TriggerDto,
    /// Its constraints, which are evaluated once the trigger is met.
    pub constraints: Vec<ConstraintDto>,
    /// Arguments of its runs.
    pub properties: BTreeMap<String, String>,
    /// Milliseconds after its creation at which a slot that has not been queued expires.
    pub timeout_millis: u64,
    /// The time zone of its cron expressions and windows, if all have the same.
    pub time_zone: Option<String>,
    /// Facts before this time are ignored.
    pub start_time: Option<Instant>,
    /// Facts at this time and later are ignored.
    pub end_time: Option<Instant>,
    /// The longest random delay of a cron time, in milliseconds.
    pub jitter_millis: u64,
    /// The handling of misfires: `skip`, `latest` or `all`.
    pub catch_up: Code,
    /// The deadline of its slots, as a definition has it; none if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<serde_json::Value>,
    /// The things that its project shares with others by this definition; none if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<serde_json::Value>,
    /// Its next cron time; none without a cron expression, or while it is disabled.
    pub next: Option<FiringTimeDto>,
    /// The latest run.
    pub last_run: Option<RunDto>,
    /// The start of its last successful run.
    pub last_success: Option<Instant>,
    /// Its pending slots, newest first; the first ten.
    pub pending: Vec<PendingDto>,
    /// Its status in words.
    pub standing: String,
    /// Warnings about probable mistakes, such as a schedule that triggers itself for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The number of its slots in each state; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, u64>>))]
    pub counts: Option<Counts>,
}

/// A time of a cron expression.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FiringTimeDto {
    /// The time.
    pub time: Instant,
    /// The local time in its zone.
    #[cfg_attr(feature = "openapi", schema(examples("2026-11-22T04:00:00+01:00")))]
    pub local: String,
    /// The expression.
    pub cron: String,
    /// Its zone.
    pub zone: String,
}

/// A slot whose run has not started yet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingDto {
    /// Its name.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `waiting` (it collects), `held`, `queued` or `backoff`.
    pub state: Code,
    /// When it entered this state.
    pub since: Instant,
    /// The condition that it waits for: `3 of 4 partitions of purchases`.
    pub text: String,
    /// When it expires unless it is queued before.
    pub expires: Option<Instant>,
    /// The facts that it has collected.
    pub collected: Option<CollectedDto>,
    /// The explanation of its trigger while it waits, or of its constraints while it is held.
    pub explanation: Option<ExplanationDto>,
}

/// A decision of an event schedule about a slot, or a change of the schedule itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecisionDto {
    /// The time of the decision.
    pub at: Instant,
    /// The position of its event in the log.
    pub seq: u64,
    /// `fired`, `pending`, `aborted` (a constraint was not met), `expired`, `disabled`, `changed`, `deleted`, `skipped`,
    /// `killed`, `missed` (times that passed while nobody scheduled), or `schedule`: something happened to the schedule itself.
    pub kind: Code,
    /// The slot concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotNameDto>,
    /// The current state of the slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// The decision and its cause, in words.
    pub text: String,
    /// The collected facts in words.
    pub collected: Vec<String>,
    /// The number of facts that arrived while the slot was held, and opened no other slot.
    pub absorbed: u32,
    /// The explanation of the trigger or of the constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationDto>,
}

/// A request to start a workflow, or to fire an event schedule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// Arguments in addition to those of the workflow, which they override. With `step`, inputs in the place of those that the step was
    /// given then.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
    /// The step of the flow that is done again, alone: `load`, or an item of its list `load:3`. The run that did it is `of`, and has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The run of the flow whose `step` is done again: `order-42`, a time, or a job id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The name of the run, such as `order-42`: a run of this name is started once, and a second request gets the same slot. By default the
    /// run has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The priority of the slot, 0 where nothing is said: larger runs first.
    #[serde(default)]
    pub priority: i32,
    /// Whether constraints are ignored, too.
    #[serde(default)]
    pub unconstrained: bool,
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
