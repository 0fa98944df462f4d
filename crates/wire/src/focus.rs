//! What lies between two moments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Code, Counts, Instant, SlotNameDto};

/// The slots of some workflows between two moments, by workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FocusDto {
    /// The first moment.
    pub from: Instant,
    /// The first moment beyond.
    pub to: Instant,
    /// The workflows, by id.
    pub rows: Vec<FocusRowDto>,
    /// The number of workflows that come after these: ask for them with `skip`.
    pub more: usize,
    /// The slots among them that wait, the oldest first.
    pub blocked: Vec<BlockedDto>,
    /// Whether more slots wait than are explained.
    pub partial: bool,
}

/// The slots of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FocusRowDto {
    /// The workflow.
    pub workflow: String,
    /// Whether its slots are about periods.
    pub periods: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// Its slots, by time.
    pub boxes: Vec<FocusBoxDto>,
}

/// A slot, or several side by side: those that succeeded, or that are too many to be told one by one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FocusBoxDto {
    /// The time of the first one.
    pub from: Instant,
    /// The end of the last one; its time, if it is about no period.
    pub to: Instant,
    /// How many slots these are.
    pub total: u64,
    /// How many of them are in which state.
    pub states: Counts,
    /// How many are still to be planned.
    pub to_come: u64,
    /// How many are out of range, by the reason in words; of slots that are counted these may be more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub out_of_range: BTreeMap<String, u64>,
    /// The version of the definition with which they last ran, if that was asked for and is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The version of the project that this definition carries, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_version: Option<String>,
}

/// A slot that waits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlockedDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state.
    pub state: Code,
    /// The obstacles, in words.
    pub blockers: Vec<String>,
}
