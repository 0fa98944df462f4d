//! Backfills: requested, previewed, listed and changed.

use std::collections::BTreeMap;

use kelos_model::ranges::Range;
use kelos_model::time::Zone;
use kelos_model::workflow::VersionChoice;
use kelos_model::{BackfillId, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, Counts, Instant, SlotNameDto, TimeText};

/// A backfill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackfillDto {
    /// Its name.
    pub id: String,
    /// The workflow whose slots it runs.
    pub workflow: String,
    /// Start of its range, inclusive.
    pub from: Instant,
    /// End of its range, exclusive.
    pub to: Instant,
    /// The existing slots that it reopened: `missing` (none), `unsuccessful` or `all`.
    pub mode: Code,
    /// Its priority: larger numbers run first.
    pub priority: i32,
    /// The user who requested it.
    pub by: String,
    /// The time of the request.
    pub created_at: Instant,
    /// When it was cancelled, if it was.
    pub cancelled_at: Option<Instant>,
    /// The number of its slots.
    pub slots: u32,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// Since when it has been paused, if it is.
    pub paused_at: Option<Instant>,
    /// The user who paused it.
    pub paused_by: Option<String>,
    /// When it was last resumed.
    pub resumed_at: Option<Instant>,
}

/// A backfill and its progress.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProgressDto {
    /// The backfill.
    #[serde(flatten)]
    pub backfill: BackfillDto,
    /// The number of its slots in each state.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub counts: Counts,
    /// The number of its slots.
    pub total: u64,
    /// The number of slots that are no longer waiting or running for it; some may belong to a later backfill.
    pub ended: u64,
    /// `ended` as a share of `total`, 0 to 1.
    pub share: f64,
    /// The number of its slots that failed or expired, which a rerun reopens.
    pub failures: u64,
    /// The estimated time of its completion.
    pub estimate: EstimateDto,
}

/// Causes for which slots of a backfill failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackfillCausesDto {
    /// The causes, the most frequent first.
    pub items: Vec<CauseDto>,
    /// The number of its slots that failed or expired.
    pub failures: u64,
    /// How many of them were read: those with the newest times, at most 200.
    pub read: u64,
}

/// A cause for which slots failed: their outcomes and last lines are alike but for numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseDto {
    /// `failed` or `expired`.
    pub state: Code,
    /// The outcome of the first slot's last run in words; for an expired slot what it waited for.
    pub reason: String,
    /// The exit status of that run, if it had one.
    pub exit_status: Option<i32>,
    /// The last line that the run wrote; none if it wrote nothing here.
    pub last_line: Option<String>,
    /// The slots, newest times first.
    pub slots: Vec<FailedSlotDto>,
}

/// A slot of a backfill that failed or expired.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailedSlotDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Since when it is in its state.
    pub since: Instant,
    /// The number of its last run; 0 if it never ran.
    pub last_run: u32,
}

/// An estimate of when a backfill will be complete.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EstimateDto {
    /// The estimated time; null if it can't be estimated or the backfill is complete.
    pub done_at: Option<Instant>,
    /// The basis of the estimate, or why there is none, in words.
    pub text: String,
}

/// The existing slots that a backfill reopens; missing slots are always planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BackfillMode {
    /// No existing slots.
    #[default]
    Missing,
    /// Those that ended without success.
    Unsuccessful,
    /// All that have ended.
    All,
}

impl From<kelos_model::backfill::BackfillMode> for BackfillMode {
    fn from(mode: kelos_model::backfill::BackfillMode) -> BackfillMode {
        match mode {
            kelos_model::backfill::BackfillMode::Missing => BackfillMode::Missing,
            kelos_model::backfill::BackfillMode::Unsuccessful => BackfillMode::Unsuccessful,
            kelos_model::backfill::BackfillMode::All => BackfillMode::All,
        }
    }
}

impl From<BackfillMode> for kelos_model::backfill::BackfillMode {
    fn from(mode: BackfillMode) -> kelos_model::backfill::BackfillMode {
        match mode {
            BackfillMode::Missing => kelos_model::backfill::BackfillMode::Missing,
            BackfillMode::Unsuccessful => kelos_model::backfill::BackfillMode::Unsuccessful,
            BackfillMode::All => kelos_model::backfill::BackfillMode::All,
        }
    }
}

/// The default priority of a backfill: after current work.
pub const AFTER_CURRENT_WORK: i32 = -1;

fn after_current_work() -> i32 {
    AFTER_CURRENT_WORK
}

/// A request for a backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackfillRequest {
    /// The workflow whose slots it runs.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow: WorkflowId,
    /// Start of its range, inclusive. Without an offset it is one of the zone.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub from: TimeText,
    /// End of its range, exclusive. Without an offset it is one of the zone.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub to: TimeText,
    /// The time zone of times without an offset; by default that of the workflow's schedule or calendar, and UTC where it has none.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
    /// The existing slots that it reopens.
    #[serde(default)]
    pub mode: BackfillMode,
    /// Its priority: larger numbers run first, negative ones after current work.
    #[serde(default = "after_current_work")]
    #[cfg_attr(feature = "openapi", schema(default = -1))]
    pub priority: i32,
    /// Only slots that succeeded, with a last run by this version: that of the project, `1.4`, or a definition by its number, `#3`. They are
    /// reopened whatever the mode, and nothing else is.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<VersionChoice>,
    /// Arguments of its slots. With any, each slot is opened by itself, and there may be a million of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Its name; by default derived from the workflow and the range.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<BackfillId>,
    /// The reason for the change, recorded in the log.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether to preview only, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

impl BackfillRequest {
    /// A request for the slots of a range.
    #[must_use]
    pub fn new(workflow: WorkflowId, range: Range, mode: BackfillMode, priority: i32) -> BackfillRequest {
        BackfillRequest {
            workflow,
            from: range.start.into(),
            to: range.end.into(),
            zone: None,
            mode,
            priority,
            made_by: None,
            arguments: BTreeMap::new(),
            name: None,
            reason: None,
            dry_run: false,
        }
    }
}

/// The effect of a backfill, or its preview.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackfillResultDto {
    /// Its name.
    pub id: String,
    /// Whether this is a preview, and nothing was changed.
    pub dry_run: bool,
    /// Start of its range, inclusive.
    #[serde(default)]
    pub from: Instant,
    /// End of its range, exclusive.
    #[serde(default)]
    pub to: Instant,
    /// The time zone in which times of the request without an offset were read.
    #[serde(default)]
    pub zone: String,
    /// Missing slots that are planned.
    pub created: TouchedTimesDto,
    /// Slots that had ended and are reopened.
    pub reopened: TouchedTimesDto,
    /// Live slots that become part of the backfill.
    pub adopted: TouchedTimesDto,
    /// The number of slots that are left unchanged.
    pub untouched: u64,
}

/// Slots that a backfill affects in the same way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TouchedTimesDto {
    /// The number of slots.
    pub count: u64,
    /// Their times, ascending; the first 1000.
    pub times: Vec<Instant>,
}

/// A change to a backfill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BackfillChange {
    /// Its new priority: larger numbers run first, negative ones after current work.
    pub priority: i32,
    /// The reason for the change, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
