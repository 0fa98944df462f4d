//! The root causes of a slot's wait.

use serde::{Deserialize, Serialize};

use crate::{Code, SlotNameDto};

/// Something that blocks a slot from however far upstream, and that is not another slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RootDto {
    /// The slot that it is about.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The state of that slot; none if it does not exist.
    pub state: Option<Code>,
    /// One of the kinds of obstacles, or `circle`: the slot waits for itself, through others.
    pub kind: Code,
    /// The path to it and what it is, as the rest of a sentence about the slot that was asked about.
    pub text: String,
    /// Only what it is, as the rest of a sentence about its slot.
    pub cause: String,
    /// The path that is missing, if that is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The slots from the one that was asked about to the one that it is about, both included.
    pub way: Vec<WayStepDto>,
    /// The number of slots in the middle of the way that are omitted.
    #[serde(default)]
    pub left_out: usize,
    /// The number of further roots like this one: of the same kind, about other slots of the same workflow.
    #[serde(default)]
    pub alike: u64,
    /// The number of the run that failed, if that is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The last lines of output of that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

/// A slot on the way to a root.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WayStepDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state; none if it does not exist.
    pub state: Option<Code>,
    /// The missing path that it writes, if the slot before it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<String>,
}
