//! The server itself: its health, endpoints, workers, registers and groups.

use std::collections::BTreeSet;

use kelos_model::WorkflowId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Code, FreezeDto, Instant};

/// The health of a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthDto {
    /// `leading` (it schedules by itself), `stepped` (it leads, and waits to be stepped), `standby` (another
    /// server leads on the same data), `starting`, `troubled` (the store fails), `damaged` (what is stored does not agree with
    /// itself: nothing is scheduled) or `stopped`.
    pub status: Code,
    /// The problem, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A hint on how to solve the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The frozen workflows, for which an invariant of the scheduler broke. All others continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<FrozenDto>,
    /// The number of unrepaired failures, as `/failures` lists them; none if the store can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<usize>,
    /// Position of the last event in the log.
    pub last_seq: Option<u64>,
    /// The time of the server's clock.
    pub now: Instant,
}

/// A workflow that is frozen until it is resumed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FrozenDto {
    /// The workflow.
    pub workflow: String,
    /// When and why it was frozen.
    #[serde(flatten)]
    pub freeze: FreezeDto,
}

/// The name and version of the server's program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionDto {
    /// Always `kelos`.
    pub name: Code,
    /// Its version.
    pub version: String,
}

/// A request for a step of the scheduler.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// The time to step to; now by default.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Instant>,
    /// The workflows to step; all by default.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflows: Option<BTreeSet<WorkflowId>>,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StepResultDto {
    /// The time that was stepped to.
    pub time: Instant,
    /// Position of the last event in the log after it.
    pub last_seq: u64,
}

/// An endpoint: a scheme and the server behind it, with one circuit breaker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EndpointDto {
    /// Its name, such as `hdfs://nameservice1`.
    pub name: String,
    /// The number of calls in progress.
    pub under_way: usize,
    /// The state of its circuit breaker while that is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenDto>,
}

/// An open circuit breaker of an endpoint.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BrokenDto {
    /// The time of the first failure.
    pub since: Instant,
    /// The message of the last failure.
    pub last_error: String,
    /// Seconds until the next attempt.
    pub next_try_seconds: u64,
}

/// A connected worker.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkerDto {
    /// Its name.
    pub name: String,
    /// The workflows whose jobs it runs; empty for all.
    pub workflows: Vec<String>,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The project whose functions it runs, if it is a program of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The number of further runs that it accepts.
    pub free: u32,
    /// The runs that it has.
    pub runs: Vec<String>,
    /// Whether it keeps its runs on a disk of its own.
    #[serde(default)]
    pub remote: bool,
    /// The name of its machine.
    #[serde(default)]
    pub host: String,
    /// The version of its program, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The place to which it copies the output of its ended runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
    /// When it registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// Whether it accepts no more runs, and ends once it has none.
    #[serde(default)]
    pub leaves: bool,
    /// The time of its last heartbeat, if that is missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_since: Option<Instant>,
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

/// The groups of workflows on the board, in a form that can be sent back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupsDto {
    /// The groups in order. Workflows in no group come last.
    pub groups: Vec<BoardGroupDto>,
    /// Their origin: the `api`, the `file` that the server was started with, or `projects` if none are set.
    pub from: Code,
}

/// A group of workflows on the board.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BoardGroupDto {
    /// Its title.
    pub name: String,
    /// Their ids, in the order in which they are shown. They need not be defined.
    pub workflows: Vec<String>,
}
