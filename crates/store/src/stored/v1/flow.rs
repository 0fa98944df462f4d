//! The parts of slots in flows.

use std::collections::BTreeMap;

use kelos_model::StepName;
use kelos_model::slot::{PartInFlow, RunOfFlow, StepOfRun};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::StoredName;
use crate::stored::form::{As, Plain, forms};

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
}
