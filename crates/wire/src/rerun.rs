//! Changes of slots: rerun, kill, skip, mark.

use serde::{Deserialize, Serialize};

use crate::{SlotDto, SlotNameDto};

/// How a slot is to be opened again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RerunRequest {
    /// Why, in their words, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Also all slots whose triggers look at it, those that look at them, and so on.
    #[serde(default)]
    pub downstream: bool,
    /// Only say what would happen; with `downstream`.
    #[serde(default)]
    pub dry_run: bool,
    /// Kill those that are dispatched or running first, which otherwise are in the way; with `downstream`.
    #[serde(default)]
    pub kill_live: bool,
}

/// What a rerun did: the slot, or with `downstream` all slots that were touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum RerunResultDto {
    /// The slot.
    Alone(SlotDto),
    /// The slot and what depends on it.
    Downstream(DownstreamDto),
}

/// What a rerun of a slot with all that depends on it does, or would do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DownstreamDto {
    /// Whether this only says what would happen.
    pub dry_run: bool,
    /// The slot itself, where it was never planned.
    pub created: TouchedSlotsDto,
    /// Slots that had ended, or were only queued, and are opened again.
    pub reopened: TouchedSlotsDto,
    /// Slots that were dispatched or running: killed first with `killLive`, and in the way without.
    pub killed: TouchedSlotsDto,
    /// How many slots stay as they are, because they wait for their triggers anyway.
    pub untouched: u32,
}

/// Slots that a rerun touches in the same way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TouchedSlotsDto {
    /// How many.
    pub count: usize,
    /// Which, each after one that it depends on; the first 1000.
    pub slots: Vec<SlotNameDto>,
}

/// Why somebody asks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ReasonRequest {
    /// In their words, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How somebody says that a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MarkedState {
    /// What it was for is done.
    Succeeded,
}

/// What somebody says of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MarkRequest {
    /// How it ended.
    pub state: MarkedState,
    /// Why, in their words, for the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
