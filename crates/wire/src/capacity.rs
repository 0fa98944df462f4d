//! Capacity: who holds permits and places, and who waits for them.

use serde::{Deserialize, Serialize};

use crate::{Instant, SlotNameDto};

/// What runs need that there is not enough of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapacityDto {
    /// The limit on the live runs of all workflows.
    pub runs: AllRunsDto,
    /// All pools that definitions name, or whose permits are held.
    pub pools: Vec<PoolDto>,
    /// Workflows with queued slots whose own concurrency is used up, most queued first.
    pub workflows: Vec<FullWorkflowDto>,
    /// How many more workflows are.
    pub more_workflows: usize,
}

/// The limit on the live runs of all workflows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AllRunsDto {
    /// The limit.
    pub limit: u32,
    /// How many runs are alive.
    pub held: u32,
    /// The workflows that have them, most first.
    pub holders: Vec<WorkflowRunsDto>,
    /// How many more workflows have some.
    pub more_holders: usize,
    /// Queued slots of workflows that only this limit holds back.
    pub queued: u64,
    /// The next slots of the first of these workflows, in the order of their turns.
    pub first: Vec<WaiterDto>,
}

/// The live runs of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunsDto {
    /// Its id.
    pub workflow: String,
    /// How many.
    pub runs: u32,
}

/// A named number of permits that runs of several workflows share.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PoolDto {
    /// Its name.
    pub name: String,
    /// How many permits it has; none once no definition names it.
    pub size: Option<u32>,
    /// Whether definitions give it different sizes, so that the smallest holds.
    pub disputed: bool,
    /// How many permits are held.
    pub held: u64,
    /// The runs that hold them.
    pub holders: Vec<HolderDto>,
    /// How many more runs do.
    pub more_holders: u64,
    /// Queued slots of the workflows that stand in its line.
    pub queued: u64,
    /// When the one that has waited longest, of the slots that go next, was queued.
    pub oldest_since: Option<Instant>,
    /// The next slots of the first workflows in its line.
    pub first: Vec<WaiterDto>,
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
    /// How many permits.
    pub permits: u32,
    /// When it was dispatched.
    pub since: Instant,
}

/// A queued slot, the next of its workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaiterDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// How many permits its run takes.
    pub permits: u32,
    /// Larger goes first.
    pub priority: i32,
    /// When it was queued.
    pub since: Instant,
    /// Queued slots of the same workflow that go after it.
    pub behind: u64,
}

/// A workflow with queued slots whose concurrency is used up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FullWorkflowDto {
    /// Its id.
    pub workflow: String,
    /// How many of its slots may run at a time.
    pub concurrency: u32,
    /// How many run.
    pub held: u32,
    /// How many are queued.
    pub queued: u64,
    /// The one that goes next.
    pub first: WaiterDto,
}
