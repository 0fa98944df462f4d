//! Runs of flows and their steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, Counts, CriticalPathDto, Instant, RunDto, SlotDto, SlotNameDto};

/// A run of a flow: a slot of a workflow whose job is a graph of steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlowRunDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotDto,
    /// The version of the definition that it follows, or would follow if it began now.
    pub definition_version: u32,
    /// The step of another run that it does again, and nothing else of the flow; none where it is an ordinary run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<SlotNameDto>,
    /// Its latest run, with its arguments, outputs and outcome.
    pub run: Option<RunDto>,
    /// The steps that failed and were handled, if it succeeded nevertheless.
    pub recovered: Vec<String>,
    /// The steps that failed, if nothing handled it.
    pub failed: Vec<String>,
    /// The signals that came, by name, with what each said last; secrets are masked.
    pub signals: Map<String, Value>,
    /// The number of steps in each state.
    pub counts: BTreeMap<Code, u64>,
    /// Its steps, in the order of the flow; a page of them.
    pub steps: Vec<FlowStepDto>,
    /// The `cursor` of the next page of steps; none at the end.
    pub next: Option<String>,
    /// The chain of steps and waits that determined when it ended, or that keeps it from ending.
    pub path: Option<CriticalPathDto>,
}

/// A step of a run of a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlowStepDto {
    /// Its slot, also if it was not opened yet.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its name.
    pub step: String,
    /// `not-opened`, `never-runs`, `not-in-run` (the run does another step again), `awaits-signal`, `awaits-others` (an error step that waits for running steps to end), or the state of
    /// its slot.
    pub state: Code,
    /// The state in a sentence, with what it waits for.
    pub text: String,
    /// When it was opened.
    pub opened: Option<Instant>,
    /// When it ended.
    pub ended: Option<Instant>,
    /// The number of its runs.
    pub attempts: u32,
    /// The steps whose success it needs.
    pub needs: Vec<String>,
    /// The steps whose failure it handles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<String>,
    /// The signal that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Its inputs, with secrets masked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// The latest of its runs, with its outputs and outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunDto>,
    /// Its items, if it is done for each item of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCountsDto>,
}

/// The items of a step that is done for each item of a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemCountsDto {
    /// The number of items.
    pub total: u64,
    /// The number of items in each state.
    pub counts: Counts,
    /// Whether there are more than were counted.
    pub partial: bool,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotDto,
    /// Its number, from 0.
    pub item: u32,
    /// Its inputs, with secrets masked.
    pub inputs: Map<String, Value>,
    /// The latest of its runs, with its outputs and outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunDto>,
}

/// A slot that was started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StartedDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotDto,
    /// Whether it had been started by this name before; then nothing was done.
    pub existed: bool,
}

/// A signal for a run of a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// The name of the signal.
    pub signal: String,
    /// Its payload, any JSON: the output of the step that waits for it.
    #[serde(default)]
    pub payload: Value,
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A request to resume a run of a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResumeRequest {
    /// The step that is done again, together with all that come after it; by default those that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The reason, recorded in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
