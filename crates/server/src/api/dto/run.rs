//! Runs on the wire.

use std::collections::BTreeMap;

use kelos_engine::executor::shown_id;
use kelos_model::{Outcome, Run};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Instant, job, time};
use crate::secrets;

/// One attempt to execute the job of a slot.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunDto {
    /// Whose run.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Which attempt, from 1; never reset.
    number: u32,
    /// `dispatched`, `running`, `succeeded`, `failed`, `killed` or `unknown`.
    state: &'static str,
    /// Which executor does it.
    executor: String,
    /// What the executor calls it.
    external_id: Option<String>,
    /// When the intent was stored.
    dispatched_at: Instant,
    /// When the executor confirmed the start.
    started_at: Option<Instant>,
    /// When its end was recorded.
    ended_at: Option<Instant>,
    /// How it ended.
    outcome: Option<OutcomeDto>,
    /// The version of its workflow's definition with which it began; in a run by itself and in the runs of a slot, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_version: Option<u32>,
    /// The arguments that it was given, by name. What looks like a secret is masked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, String>,
    /// What it gave to those that it triggers. What looks like a secret is masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Map<String, Value>>,
}

impl RunDto {
    /// The same, with the version of the definition with which it began.
    pub(crate) fn of_version(run: Run, version: Option<u32>) -> RunDto {
        RunDto { definition_version: version, ..run.into() }
    }
}

/// How a run ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeDto {
    /// `succeeded`, `failed`, `refused` (it was never started), `killed`, `unknown`, or `lost`: as that, and it was begun for certain.
    result: &'static str,
    /// The code, which stays the same: of a failure its kind (`exit-status`, `signal`, `timed-out`, `outputs-too-large`, `reported`, or `failed` where no more is
    /// known), of a refusal `arguments-too-large` where it is that, else as `result`. Others may come.
    code: String,
    /// In words.
    text: String,
    /// The exit status, where there was one other than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i32>,
}

impl From<Outcome> for OutcomeDto {
    fn from(outcome: Outcome) -> OutcomeDto {
        let (code, text) = (outcome.code().to_owned(), outcome.to_string());
        let (result, exit_status) = match outcome {
            Outcome::Succeeded => ("succeeded", None),
            Outcome::Failed { exit_status, .. } => ("failed", exit_status),
            Outcome::Refused { .. } => ("refused", None),
            Outcome::Killed => ("killed", None),
            Outcome::Unknown { .. } => ("unknown", None),
            Outcome::Lost { .. } => ("lost", None),
        };
        OutcomeDto { result, code, text, exit_status }
    }
}

impl From<Run> for RunDto {
    fn from(run: Run) -> RunDto {
        RunDto {
            workflow: run.id.slot.workflow.to_string(),
            time: time(&run.id.slot.key),
            job: job(&run.id.slot.key),
            number: run.id.number,
            state: run.state.as_str(),
            executor: run.executor,
            external_id: run.external_id.as_deref().map(shown_id).map(str::to_owned),
            dispatched_at: run.dispatched_at.into(),
            started_at: run.started_at.map(Instant),
            ended_at: run.ended_at.map(Instant),
            outcome: run.outcome.map(OutcomeDto::from),
            definition_version: None,
            arguments: secrets::masked_texts(&run.arguments),
            outputs: run.outputs.as_deref().map(secrets::masked_fields),
        }
    }
}
