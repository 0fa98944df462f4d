//! The parts of slots in flows.

use std::collections::BTreeMap;

use kelos_model::repeated::RepeatedStep;
use kelos_model::slot::{PartInFlow, RunOfFlow, StepOfRun};
use kelos_model::{SlotKey, StepName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::{StoredKey, StoredName};
use crate::stored::form::{As, Plain, forms, is_false};

#[derive(Serialize, Deserialize)]
#[serde(remote = "PartInFlow", tag = "is", rename_all = "kebab-case")]
pub(crate) enum StoredPartInFlow {
    Run(#[serde(with = "As::<StoredRunOfFlow>")] RunOfFlow),
    Step(#[serde(with = "As::<StoredStepOfRun>")] StepOfRun),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RunOfFlow", rename_all = "camelCase")]
struct StoredRunOfFlow {
    definition: u32,
    since_run: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "As::<BTreeMap<StoredName, Plain>>")]
    again: BTreeMap<StepName, u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    signals: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<Box<StoredRepeatedStep>>>")]
    repeats: Option<Box<RepeatedStep>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RepeatedStep", rename_all = "camelCase")]
pub(super) struct StoredRepeatedStep {
    #[serde(with = "As::<StoredKey>")]
    of: SlotKey,
    #[serde(with = "As::<StoredName>")]
    step: StepName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    is_item: bool,
    #[serde(with = "As::<StoredKey>")]
    about: SlotKey,
    definition: u32,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    inputs: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StepOfRun", rename_all = "camelCase")]
struct StoredStepOfRun {
    run: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
    awaits: Vec<StepName>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    inputs: Map<String, Value>,
}

forms! {
    StoredPartInFlow of PartInFlow,
    StoredRunOfFlow of RunOfFlow,
    StoredStepOfRun of StepOfRun,
    StoredRepeatedStep of RepeatedStep,
}
