//! Requests of workers to the leader, and its answers. Both are the same program on one machine, and what a run needs must arrive
//! whole: so runs and definitions are in the form of the model here, and nothing is masked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::run::Report;
use kelos_model::{RunId, SlotRef, Workflow, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An offer of a worker to run jobs, which is also its heartbeat and its report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferRequest {
    /// The session that the leader opened for it; none in the first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Grows with each request: an offer that arrives after a later one does not count.
    pub count: u64,
    /// The workflows whose jobs it runs; empty for all.
    pub workflows: BTreeSet<WorkflowId>,
    /// The only job that it runs, if it runs only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<SlotRef>,
    /// The number of further runs that it accepts.
    pub free: u32,
    /// The number of attempts of a job that it runs, where that differs from the definition of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The runs that it has, except those whose end was acknowledged.
    pub runs: Vec<ClaimedRunDto>,
    /// Reports about its runs.
    pub reports: Vec<RunReportDto>,
    /// Milliseconds that it waits for a run to be assigned.
    pub wait_millis: u64,
    /// Whether it wants no further runs, and ends once it has none.
    pub leaves: bool,
    /// With `leaves`: whether it declines the runs that were assigned to it meanwhile, so that others can have them.
    pub declines: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessDto>,
}

/// A run that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedRunDto {
    /// The run.
    pub run: RunId,
    /// The name that its executor gave it, once it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
}

/// A report about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReportDto {
    /// The run.
    pub run: RunId,
    /// The report.
    pub what: Report,
}

/// A process, which other processes on its machine can find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDto {
    /// The machine.
    pub host: String,
    /// Its identity on that machine.
    pub id: ProcessIdDto,
}

/// The identity of a process on its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdDto {
    /// Its process id, which may be reused.
    pub pid: i32,
    /// Its start time, in clock ticks since boot.
    pub started: u64,
}

/// The leader's answer to an offer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssignmentDto {
    /// The worker's session.
    pub session: String,
    /// Milliseconds without a heartbeat after which the worker loses its runs.
    pub lease_millis: u64,
    /// The runs to start.
    pub starts: Vec<RunOrderDto>,
    /// The runs to cancel.
    pub cancels: Vec<RunId>,
    /// Runs that do not belong to the worker: it must end them and report nothing about them.
    pub refused: Vec<RunId>,
}

/// A run that a worker must start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrderDto {
    /// The run.
    pub run: RunId,
    /// The definition of its workflow.
    pub workflow: Arc<Workflow>,
    /// The job's settings, with placeholders filled in.
    pub settings: Map<String, Value>,
    /// The job's properties, with placeholders filled in.
    pub properties: Map<String, Value>,
    /// The input of the run.
    #[serde(default)]
    pub given: RunInputDto,
}

/// The input of a run besides the values of its key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunInputDto {
    /// Its arguments by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// The names among these that templates don't get, because they are those of values of the key.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub behind_key: BTreeSet<String>,
    /// The event schedule that started it, with the facts that met its trigger; none for runs of other workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<Value>,
}
