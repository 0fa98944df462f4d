//! Facts: published, and listed.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, Instant};

/// A fact to publish: new partitions of a dataset, the end of a run, or a signal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactRequest {
    /// The source of the fact; by default the user of the request. Facts of one source count in the order of their arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// An idempotency key, unique within its source: a fact that is published again with the same key counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The dataset that has new partitions: `purchases`, or `prod:purchases` in a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The number of partitions, from 1; by default the number of `keys`, or 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// The names of the partitions, without duplicates; if `partitions` is given, as many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The program whose run ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<WorkflowId>,
    /// The final state of the run: `succeeded`, `failed` or `killed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The name of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The arguments of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, Value>>,
    /// The outputs of the run.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// The name of a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The payload of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// The result of publishing facts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TellResultDto {
    /// The number of new facts.
    pub new: u32,
    /// The number of facts that were published before, and are not counted again.
    pub known: u32,
}

/// A published fact.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FactDto {
    /// Its position in the log.
    pub seq: u64,
    /// When it was stored.
    pub at: Instant,
    /// Its source.
    pub source: String,
    /// Its idempotency key, unique within its source.
    pub key: Option<String>,
    /// The fact in words.
    pub what: String,
    /// Its subject: `partition:purchases`, `ended:succeeded:w`, `signal:go`.
    pub about: String,
    /// The dataset that has new partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The number of partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// The names of the partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The program whose run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The final state of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// The run that ended, or the run of a flow that a signal is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The arguments of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// The outputs of the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub outputs: Map<String, Value>,
    /// The name of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The payload of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// A source of facts and its health.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FactSourceDto {
    /// Its name.
    pub name: String,
    /// When it last answered.
    pub answered_at: Option<Instant>,
    /// The number of new facts from it since this server became the leader.
    pub new: u64,
    /// The number of messages or the like from it that can't be facts, and were passed over since this server became the leader.
    #[serde(default)]
    pub passed_over: u64,
    /// Its problem, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
