//! Facts.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, Instant};

/// A fact: about partitions of a dataset, the end of a run, or a signal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FactRequest {
    /// Who tells; who asks, where not given. Facts of one source count in the order in which they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What names it among those of its source: told twice, it counts once. Without it each telling counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The dataset that has new partitions: `purchases`, or `prod:purchases` in a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// How many, from 1; as many as `keys`, or 1, where not given.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// The names of the partitions, each once; as many as `partitions` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The program a run of which ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<WorkflowId>,
    /// How: `succeeded`, `failed` or `killed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What names the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the run was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
    /// What the run gave.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// The name of a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What comes with the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// What became of facts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TellResultDto {
    /// So many are new.
    pub new: u32,
    /// So many were told before, and don't count again.
    pub known: u32,
}

/// A fact that was told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FactDto {
    /// Its position in the log.
    pub seq: u64,
    /// When it was stored.
    pub at: Instant,
    /// Who told it.
    pub source: String,
    /// What names it among those of its source.
    pub key: Option<String>,
    /// What happened, in words.
    pub what: String,
    /// What it is about: `partition:purchases`, `ended:succeeded:w`, `signal:go`.
    pub about: String,
    /// The dataset that has new partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// The program a run of which ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// How.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Code>,
    /// What names the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What the run was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// What the run gave.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub outputs: Map<String, Value>,
    /// The name of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What came with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// A source of facts, and how it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FactSourceDto {
    /// What people call it.
    pub name: String,
    /// When it last answered.
    pub answered_at: Option<Instant>,
    /// How many facts of it were new since this server leads.
    pub new: u64,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
