//! Backfills.

use kelos_model::ranges::Range;
use kelos_model::{BackfillId, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::{Code, Counts, Instant};

/// A backfill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackfillDto {
    /// Its name.
    pub id: String,
    /// Whose slots.
    pub workflow: String,
    /// From this time on.
    pub from: Instant,
    /// Before this time.
    pub to: Instant,
    /// Which existing slots it reopened: `missing` (none), `unsuccessful` or `all`.
    pub mode: Code,
    /// Larger goes first.
    pub priority: i32,
    /// Who asked.
    pub by: String,
    /// When.
    pub created_at: Instant,
    /// When it was cancelled.
    pub cancelled_at: Option<Instant>,
    /// How many slots it asked for.
    pub slots: u32,
    /// Why, in the words of who asked.
    pub reason: Option<String>,
    /// Since when it is paused.
    pub paused_at: Option<Instant>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// When it was last resumed.
    pub resumed_at: Option<Instant>,
}

/// A backfill and how far it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProgressDto {
    /// The backfill.
    #[serde(flatten)]
    pub backfill: BackfillDto,
    /// How many of its slots are in each state.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub counts: Counts,
    /// How many slots it asked for.
    pub total: u64,
    /// How many of those are not waiting or running for it any more; some may belong to a later backfill.
    pub ended: u64,
    /// `ended` as a share of `total`, 0 to 1.
    pub share: f64,
    /// How many of its slots failed or expired: those that a rerun opens again.
    pub failures: u64,
    /// When it will be done.
    pub estimate: EstimateDto,
}

/// When a backfill will be done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EstimateDto {
    /// Instant about this moment; null where nobody can tell, and where it is done.
    pub done_at: Option<Instant>,
    /// What that goes by, or why nobody can tell, in words.
    pub text: String,
}

/// Which existing slots a backfill opens again; those that don't exist are always planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BackfillMode {
    /// None.
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

/// The priority of a backfill that says none: after current work.
pub const AFTER_CURRENT_WORK: i32 = -1;

fn after_current_work() -> i32 {
    AFTER_CURRENT_WORK
}

/// A backfill that somebody asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackfillRequest {
    /// Whose slots.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow: WorkflowId,
    /// From this time on.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub from: Instant,
    /// Before this time.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub to: Instant,
    /// Which existing slots are opened again.
    #[serde(default)]
    pub mode: BackfillMode,
    /// Larger goes first; below 0, as where not given, goes after current work.
    #[serde(default = "after_current_work")]
    #[cfg_attr(feature = "openapi", schema(default = -1))]
    pub priority: i32,
    /// Its name; derived from the workflow and the range where not given.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<BackfillId>,
    /// Why, in the words of who asks; for the log.
    #[serde(default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only say what would happen.
    #[serde(default)]
    pub dry_run: bool,
}

impl BackfillRequest {
    /// A request for the slots of a range.
    #[must_use]
    pub fn new(workflow: WorkflowId, range: Range, mode: BackfillMode, priority: i32) -> BackfillRequest {
        let (from, to) = (Instant(range.start), Instant(range.end));
        BackfillRequest { workflow, from, to, mode, priority, name: None, reason: None, dry_run: false }
    }
}

/// What a backfill does, or would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackfillResultDto {
    /// Its name.
    pub id: String,
    /// Whether this only says what would happen.
    pub dry_run: bool,
    /// Slots that did not exist and are planned.
    pub created: TouchedTimesDto,
    /// Slots that had ended and are opened again.
    pub reopened: TouchedTimesDto,
    /// Slots that were live and are taken over.
    pub adopted: TouchedTimesDto,
    /// How many slots stay as they are.
    pub untouched: u64,
}

/// Slots that a backfill touches in the same way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TouchedTimesDto {
    /// How many.
    pub count: u64,
    /// Their times, ascending; the first 1000.
    pub times: Vec<Instant>,
}

/// What is to change of a backfill.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BackfillChange {
    /// Larger goes first; below 0 goes after current work.
    pub priority: i32,
    /// Why, in the words of who asks; for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
