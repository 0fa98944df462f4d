//! Changes of slots: rerun, kill, skip and mark.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{SlotDto, SlotNameDto};

/// A request to rerun a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RerunRequest {
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Arguments of its next runs, in addition to those that it has, or in their place. What is downstream keeps its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Whether to rerun everything downstream, too.
    #[serde(default)]
    pub downstream: bool,
    /// With `downstream`: whether to preview only, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// With `downstream`: whether to kill live runs first, which otherwise prevent the rerun.
    #[serde(default)]
    pub kill_live: bool,
}

/// The result of a rerun: the slot, or with `downstream` all affected slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum RerunResultDto {
    /// The slot.
    Alone(SlotDto),
    /// The slot and everything downstream.
    Downstream(DownstreamDto),
}

/// The effect of a rerun with everything downstream, or its preview.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DownstreamDto {
    /// Whether this is a preview, and nothing was changed.
    pub dry_run: bool,
    /// The slot itself, if it was never planned.
    pub created: TouchedSlotsDto,
    /// Slots that had ended or were only queued, and are reopened.
    pub reopened: TouchedSlotsDto,
    /// Dispatched and running slots: with `killLive` they are killed first, without it they prevent the rerun.
    pub killed: TouchedSlotsDto,
    /// The number of slots that are left unchanged, because they wait for their triggers anyway.
    pub untouched: u32,
}

/// Slots that a rerun affects in the same way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TouchedSlotsDto {
    /// The number of slots.
    pub count: usize,
    /// The slots, each after one that it depends on; the first 1000.
    pub slots: Vec<SlotNameDto>,
}

/// The reason for a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ReasonRequest {
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state that a slot is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MarkedState {
    /// The slot counts as succeeded.
    Succeeded,
}

/// A request to mark a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MarkRequest {
    /// The new state.
    pub state: MarkedState,
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
