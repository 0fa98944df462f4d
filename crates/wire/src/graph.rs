//! The graph of workflows, and what blocks a slot upstream.

use serde::{Deserialize, Serialize};

use crate::{Code, Counts, Instant, KeyDto, SlotNameDto};

/// The dependency graph of workflows, or a part of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GraphDto {
    /// The time since which slots are counted.
    pub since: Instant,
    /// The number of nodes of the whole graph.
    pub total: usize,
    /// The workflows, in ascending order of their names.
    pub nodes: Vec<NodeDto>,
    /// The dependencies between these workflows, in ascending order.
    pub edges: Vec<EdgeDto>,
}

/// A workflow in the graph.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeDto {
    /// Its name.
    pub id: String,
    /// `workflow`, or `missing` for a name that definitions mention and none defines.
    pub kind: Code,
    /// The project that owns it.
    pub project: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether a person paused it.
    pub paused: bool,
    /// Whether it is an event schedule that is disabled.
    pub disabled: bool,
    /// The number of its slots since then in each state; states without slots are omitted.
    pub slots: Counts,
    /// Its newest slot, however old.
    pub newest: Option<NewestDto>,
    /// The number of workflows upstream that are not in this part.
    pub hidden_up: usize,
    /// The number of workflows downstream that are not in this part.
    pub hidden_down: usize,
}

/// The newest slot of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewestDto {
    /// The key of the slot.
    #[serde(flatten)]
    pub key: KeyDto,
    /// Its state.
    pub state: Code,
}

/// A dependency of one workflow on another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EdgeDto {
    /// The upstream workflow.
    pub from: String,
    /// The downstream workflow.
    pub to: String,
    /// `success`: slots wait for the success of the other's; `schedule`: slots are at the times of the other's; `jobs`: slots
    /// wait for jobs of the other; `ended`: a trigger waits for the end of a run of the other; `runs`: the other is an event
    /// schedule that runs this; `paths`: a trigger waits for a path that the other writes; `periods`: slots wait for all periods of
    /// the other that intersect their own.
    pub kind: Code,
    /// For `success`: the seconds from a slot's own time to the time of the slot that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_seconds: Option<i64>,
    /// For `jobs`: the groups by which jobs depend on each other; none if a trigger does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The slots and obstacles that block a slot, however far upstream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpstreamDto {
    /// The slot itself, then the slots that it waits for, level by level, each once.
    pub steps: Vec<UpstreamStepDto>,
    /// Whether the search stopped before its end.
    pub cut: bool,
}

/// A slot that blocks another, or the slot that was asked about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamStepDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state; none if it does not exist.
    pub state: Option<Code>,
    /// Its distance upstream; 0 for the slot that was asked about.
    pub level: u32,
    /// Its state in one sentence.
    pub headline: String,
    /// The slots that it waits for.
    pub waits_for: Vec<SlotNameDto>,
    /// Obstacles that block it besides those slots.
    pub obstacles: Vec<ObstacleDto>,
}

/// Something other than a slot that blocks a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObstacleDto {
    /// `failed`, `killed`, `expired`, `skipped`, `missing`, `paused`, `undefined`, `backoff`, `under-way`, `queued`,
    /// `outside`, `clock` or `trigger`.
    pub kind: Code,
    /// The obstacle in words.
    pub text: String,
}
