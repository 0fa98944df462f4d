//! Event schedules, their status, and what they decided.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Code, CollectedDto, ConstraintDto, Counts, ExplanationDto, Instant, RunDto, SlotNameDto, SourceDto, TriggerDto,
};

/// An event schedule: what has it go, what it runs, and how it stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventScheduleDto {
    /// Its id, which is also that of its workflow.
    pub id: String,
    /// Its name, unique in its project.
    pub name: String,
    /// The unit of deployment that owns it.
    pub project: String,
    /// The workflow whose job it runs.
    pub program: String,
    /// Whether facts count.
    pub enabled: bool,
    /// Counts its definitions, from 1.
    pub version: u32,
    /// Where its definition comes from: a file, or a request.
    pub source: SourceDto,
    /// When it was last created, changed, enabled or disabled.
    pub updated: Option<Instant>,
    /// What it is for.
    pub description: Option<String>,
    /// What has it go.
    pub trigger: TriggerDto,
    /// What must hold besides, once the trigger is met.
    pub constraints: Vec<ConstraintDto>,
    /// Arguments of its runs.
    pub properties: BTreeMap<String, String>,
    /// A slot that has not been queued this long after it came to be expires.
    pub timeout_millis: u64,
    /// The zone of its times and windows, where it is the same for all of them.
    pub time_zone: Option<String>,
    /// Nothing counts before this moment.
    pub start_time: Option<Instant>,
    /// Nothing counts at or after this moment.
    pub end_time: Option<Instant>,
    /// A time counts up to this much late.
    pub jitter_millis: u64,
    /// What happens to times that passed while nobody scheduled: `skip`, `latest` or `all`.
    pub catch_up: Code,
    /// When it fires next; none without a cron expression, or while it is disabled.
    pub next: Option<FiringTimeDto>,
    /// Its run that was dispatched last.
    pub last_run: Option<RunDto>,
    /// When its last successful run was started.
    pub last_success: Option<Instant>,
    /// What has not started yet, newest first; the first ten.
    pub pending: Vec<PendingDto>,
    /// How it stands, in words.
    pub standing: String,
    /// What looks as if it were not meant, in words: that it goes round for ever.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How many of its slots are in each state; not there in lists.
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
    /// The same by the clocks of its zone.
    #[cfg_attr(feature = "openapi", schema(examples("2026-11-22T04:00:00+01:00")))]
    pub local: String,
    /// The expression.
    pub cron: String,
    /// Its zone.
    pub zone: String,
}

/// A slot that has not started yet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PendingDto {
    /// Its name.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `waiting` (it collects), `held`, `queued` or `backoff`.
    pub state: Code,
    /// Since when.
    pub since: Instant,
    /// What it waits for: `3 of 4 partitions of purchases`.
    pub text: String,
    /// When it is over if nothing changes.
    pub expires: Option<Instant>,
    /// What it has collected.
    pub collected: Option<CollectedDto>,
    /// What its trigger says where it waits, and what its constraints say where it is held.
    pub explanation: Option<ExplanationDto>,
}

/// What an event schedule decided about something, or what happened to itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecisionDto {
    /// When.
    pub at: Instant,
    /// Position in the log of what settled it.
    pub seq: u64,
    /// `fired`, `pending`, `aborted` (a constraint was not met), `expired`, `disabled`, `changed`, `deleted`, `skipped`,
    /// `killed`, `missed` (times that passed while nobody scheduled), or `schedule`: something happened to the schedule itself.
    pub kind: Code,
    /// The slot that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<SlotNameDto>,
    /// Where that stands now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// What happened and why.
    pub text: String,
    /// What had been collected, in words.
    pub collected: Vec<String>,
    /// Facts that came while it was held, and opened no slot of their own.
    pub absorbed: u32,
    /// What the trigger or the constraints said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ExplanationDto>,
}

/// A run that somebody wants now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// Arguments beside those of the workflow; they go before them.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Whether constraints are passed over, too.
    #[serde(default)]
    pub unconstrained: bool,
    /// Why, in their words, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
