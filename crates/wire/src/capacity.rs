//! Capacity: the limits on runs, the runs that hold permits, and the slots that wait for them.

use serde::{Deserialize, Serialize};

use crate::{Instant, RateDto, SlotNameDto};

/// The limits on runs, and their use.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapacityDto {
    /// The limit on the live runs of all workflows.
    pub runs: AllRunsDto,
    /// All pools that definitions name, or whose permits are held.
    pub pools: Vec<PoolDto>,
    /// Workflows with queued slots that are at their own concurrency limit, those with most queued slots first.
    pub workflows: Vec<FullWorkflowDto>,
    /// The number of further workflows at their limit.
    pub more_workflows: usize,
}

/// The limit on the live runs of all workflows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AllRunsDto {
    /// The limit.
    pub limit: u32,
    /// The number of live runs.
    pub held: u32,
    /// The workflows of the live runs, those with most runs first.
    pub holders: Vec<WorkflowRunsDto>,
    /// The number of further workflows with live runs.
    pub more_holders: usize,
    /// The number of queued slots of workflows that wait only for this limit.
    pub queued: u64,
    /// The next slots of the first of these workflows, in the order in which they will start.
    pub first: Vec<WaiterDto>,
}

/// The number of live runs of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunsDto {
    /// Its id.
    pub workflow: String,
    /// The number of its live runs.
    pub runs: u32,
}

/// A named number of permits that runs of several workflows share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PoolDto {
    /// Its name.
    pub name: String,
    /// The number of its permits; none once no definition names it, or if its rate alone limits it.
    pub size: Option<u32>,
    /// How fast permits may be taken; left out if only their number is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateStateDto>,
    /// Whether definitions give it different sizes or rates; the smallest and the slowest then apply.
    pub disputed: bool,
    /// The number of permits that are held.
    pub held: u64,
    /// The runs that hold them.
    pub holders: Vec<HolderDto>,
    /// The number of further runs that hold permits.
    pub more_holders: u64,
    /// The number of queued slots of workflows that wait for it.
    pub queued: u64,
    /// When the slot that has waited longest, among the next ones, was queued.
    pub oldest_since: Option<Instant>,
    /// The next slots of the first workflows that wait for it.
    pub first: Vec<WaiterDto>,
}

/// The rate of a pool, and its tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RateStateDto {
    /// The rate.
    #[serde(flatten)]
    pub rate: RateDto,
    /// The number of tokens that are there.
    pub left: u32,
    /// When a further token comes; none if as many are there as add up.
    pub next: Option<Instant>,
}

/// A run that holds permits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HolderDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The number of the run.
    pub run: u32,
    /// The number of permits that it holds.
    pub permits: u32,
    /// When it was dispatched; of permits that it took while it was live, when it took them.
    pub since: Instant,
    /// Whether it took them while it was live, and not with its start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
}

/// The next queued slot of a workflow, or a slot whose live run waits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaiterDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The number of permits that its run needs.
    pub permits: u32,
    /// Its priority: larger numbers run first.
    pub priority: i32,
    /// When it was queued.
    pub since: Instant,
    /// The number of queued slots of the same workflow behind it.
    pub behind: u64,
    /// Whether its run is live and waits for permits; otherwise the slot waits to start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
}

/// A workflow with queued slots that is at its concurrency limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FullWorkflowDto {
    /// Its id.
    pub workflow: String,
    /// Its limit of concurrent runs.
    pub concurrency: u32,
    /// The number of its live runs.
    pub held: u32,
    /// The number of its queued slots.
    pub queued: u64,
    /// Its next slot.
    pub first: WaiterDto,
}
