//! The server itself.

use std::collections::BTreeSet;

use kelos_model::WorkflowId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, FreezeDto, Instant};

/// How the server is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthDto {
    /// `leading` (it schedules by itself), `stepped` (it leads, and waits to be stepped), `standby` (another
    /// server leads on the same data), `starting`, `troubled` (the store fails), `damaged` (what is stored does not agree with
    /// itself: nothing is scheduled) or `stopped`.
    pub status: Code,
    /// What the trouble is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The workflows that are left alone because the scheduler found something wrong in itself about them. All others go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<FrozenDto>,
    /// Position of the last event in the log.
    pub last_seq: Option<u64>,
    /// What the server's clock says.
    pub now: Instant,
}

/// A workflow that is left alone until somebody resumes it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrozenDto {
    /// The workflow.
    pub workflow: String,
    /// Since when, and why.
    #[serde(flatten)]
    pub freeze: FreezeDto,
}

/// Which program this is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionDto {
    /// Always `kelos`.
    pub name: Code,
    /// Its version.
    pub version: String,
}

/// A step that somebody asks for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// The moment to step to; now where not given.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Instant>,
    /// Only these workflows; all where not given.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflows: Option<BTreeSet<WorkflowId>>,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepResultDto {
    /// The moment that was stepped to.
    pub time: Instant,
    /// Position of the last event in the log after it.
    pub last_seq: u64,
}

/// A scheme and the server behind it: what paths share their fate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EndpointDto {
    /// As `hdfs://nameservice1`.
    pub name: String,
    /// Calls under way.
    pub under_way: usize,
    /// Why it is spared further calls for a while; not there while it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenDto>,
}

/// Since when and why an endpoint is left alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BrokenDto {
    /// When the first of its failures came.
    pub since: Instant,
    /// What the last one said.
    pub last_error: String,
    /// Seconds until it is tried again.
    pub next_try_seconds: u64,
}

/// A worker that is there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkerDto {
    /// Its name.
    pub name: String,
    /// The workflows whose jobs it does; none means all.
    pub workflows: Vec<String>,
    /// How many more runs it takes.
    pub free: u32,
    /// The runs that it has.
    pub runs: Vec<String>,
}

/// A register.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterDto {
    /// Its bucket.
    pub bucket: String,
    /// Its key in the bucket.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// Which workflows stand together on the board. It may be sent back as it is, or changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupsDto {
    /// The groups, in their order. What none mentions stands last.
    pub groups: Vec<BoardGroupDto>,
    /// Who said so: somebody by the `api`, the `file` that the server was started with, or nobody, by `projects`.
    pub from: Code,
}

/// Workflows that stand together on the board.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BoardGroupDto {
    /// What stands above them.
    pub name: String,
    /// Their ids, in the order in which they are shown. They need not be defined.
    pub workflows: Vec<String>,
}
