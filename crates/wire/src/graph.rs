//! The graph of workflows, and what is in the way of a slot.

use serde::{Deserialize, Serialize};

use crate::{Code, Counts, Instant, KeyDto, SlotNameDto};

/// Workflows, and what depends on what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GraphDto {
    /// From when on slots are counted, up to the present.
    pub since: Instant,
    /// How many nodes there are, in this part and outside of it.
    pub total: usize,
    /// Ascending by name.
    pub nodes: Vec<NodeDto>,
    /// Ascending; both ends of each are among the nodes.
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
    /// How many of its slots since then are in each state; states without slots are left out.
    pub slots: Counts,
    /// Its newest slot, of whatever time.
    pub newest: Option<NewestDto>,
    /// How many nodes that it depends on are not in this part.
    pub hidden_up: usize,
    /// How many nodes that depend on it are not in this part.
    pub hidden_down: usize,
}

/// The newest slot of a workflow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewestDto {
    /// Which of its slots.
    #[serde(flatten)]
    pub key: KeyDto,
    /// Its state.
    pub state: Code,
}

/// A dependency.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EdgeDto {
    /// What is depended on.
    pub from: String,
    /// What depends on it.
    pub to: String,
    /// `success`: slots wait for the success of the other's; `schedule`: slots are at the times of the other's; `jobs`: slots
    /// wait for jobs of the other; `ended`: a trigger waits for the end of a run of the other; `runs`: the other is an event
    /// schedule that runs this.
    pub kind: Code,
    /// For `success`: how many seconds later than its own the time of the slot is that is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_seconds: Option<i64>,
    /// For `jobs`: the groups by which jobs wait; none where a trigger does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// What is in a slot's way, however far upstream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpstreamDto {
    /// The slot itself, then what it waits for, level by level; each slot once.
    pub steps: Vec<UpstreamStepDto>,
    /// Whether there is more than was looked at.
    pub cut: bool,
}

/// A slot on the way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpstreamStepDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state; none where it does not exist.
    pub state: Option<Code>,
    /// How far up it is; 0 is the slot that was asked about.
    pub level: u32,
    /// Where it stands, in one sentence.
    pub headline: String,
    /// The slots that it waits for.
    pub waits_for: Vec<SlotNameDto>,
    /// What is in its way beside those: where there is any, the way ends.
    pub obstacles: Vec<ObstacleDto>,
}

/// Something that is in a slot's way and no other slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObstacleDto {
    /// `failed`, `killed`, `expired`, `skipped`, `missing`, `paused`, `undefined`, `backoff`, `under-way`, `queued`,
    /// `outside`, `clock` or `trigger`.
    pub kind: Code,
    /// In words.
    pub text: String,
}
