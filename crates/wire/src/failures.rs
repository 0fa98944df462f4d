//! Unrepaired failures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// A slot that failed or expired, and was neither rerun, marked nor skipped since.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailureDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `failed` or `expired`.
    pub state: Code,
    /// When it failed or expired.
    pub since: Instant,
    /// The number of its last run; 0 if it never ran.
    pub last_run: u32,
    /// The outcome of its last run in words; none if it never ran.
    pub outcome: Option<String>,
    /// The cause in one sentence.
    pub reason: String,
    /// The first of the slots that wait for it, the nearest first. A slot that waits for several failures is listed once.
    pub followers: Vec<FollowerDto>,
    /// The number of followers that are left out.
    pub more_followers: usize,
}

/// A slot that waits for a failure, at any distance, or that expired while it did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FollowerDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state.
    pub state: Code,
    /// The slot that it waits for: the failure, or another follower.
    pub waits_for: SlotNameDto,
}

/// All unrepaired failures, the latest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailureListDto {
    /// The failures.
    pub items: Vec<FailureDto>,
    /// The number of failures that are left out.
    pub more: usize,
    /// The number of failures of each workflow, including those that are left out.
    pub by_workflow: BTreeMap<String, usize>,
    /// Whether there are more failures or followers than were read.
    pub partial: bool,
}
