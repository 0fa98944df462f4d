//! Flows: their graphs, and the parts of slots in them.

use std::collections::BTreeMap;

use kelos_model::flow::{ForEach, SignalWait};
use kelos_model::slot::{PartInFlow, RunOfFlow, StepOfRun};
use kelos_model::{Flow, Job, PoolUse, RetryPolicy, Step, StepName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::StoredName;
use super::workflow::{StoredJob, StoredPoolUse, StoredRetryPolicy};
use crate::stored::form::{As, Plain, forms, is_false};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Flow", rename_all = "camelCase")]
pub(super) struct StoredFlow {
    #[serde(with = "As::<Vec<StoredStep>>")]
    steps: Vec<Step>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Step", rename_all = "camelCase")]
struct StoredStep {
    #[serde(with = "As::<StoredName>")]
    name: StepName,
    #[serde(with = "As::<StoredJob>")]
    job: Job,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
    needs: Vec<StepName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredName>>")]
    handles: Vec<StepName>,
    #[serde(default, skip_serializing_if = "is_false")]
    at_once: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredForEach>>")]
    for_each: Option<ForEach>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "As::<Option<StoredSignalWait>>")]
    signal: Option<SignalWait>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    inputs: Map<String, Value>,
    #[serde(with = "As::<StoredRetryPolicy>")]
    retry: RetryPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    pools: Vec<PoolUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "As::<Vec<StoredPoolUse>>")]
    within: Vec<PoolUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ForEach", rename_all = "camelCase")]
struct StoredForEach {
    input: String,
    most: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SignalWait", rename_all = "camelCase")]
struct StoredSignalWait {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within_seconds: Option<u64>,
}

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
    StoredFlow of Flow,
    StoredStep of Step,
    StoredForEach of ForEach,
    StoredSignalWait of SignalWait,
    StoredPartInFlow of PartInFlow,
    StoredRunOfFlow of RunOfFlow,
    StoredStepOfRun of StepOfRun,
}
