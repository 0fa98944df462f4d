//! Steps of runs of flows that other runs do again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::key::{SlotKey, StepKey};
use crate::step_name::StepName;

/// A step of a run of a flow, or an item of its list, that another run does again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepeatedStep {
    /// The key of the run that did it.
    pub of: SlotKey,
    /// The step.
    pub step: StepName,
    /// The number of the item, where it is one of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Whether it is the work of one item: also where the run that did it did an item of another run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_item: bool,
    /// The key of the run that did it first: its time and its identifiers are filled into the job.
    pub about: SlotKey,
    /// The number of the definition with which it was done.
    pub definition: u32,
    /// Its inputs then.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

impl RepeatedStep {
    /// The key of the step or the item.
    #[must_use]
    pub fn key(&self) -> Option<StepKey> {
        let step = StepKey::new(&self.of, &self.step)?;
        Some(self.item.map_or_else(|| step.clone(), |number| step.item(number)))
    }
}
