//! Runs, their outcomes and their output.

use std::collections::BTreeMap;

use kelos_model::run::shown_id;
use kelos_model::workflow::DefinitionVersion;
use kelos_model::{Batch, Outcome, Run};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Code, Instant, SlotNameDto};

/// One attempt to execute the job of a slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The number of the run, from 1; it is never reset.
    pub number: u32,
    /// `dispatched`, `running`, `succeeded`, `failed`, `killed` or `unknown`.
    pub state: Code,
    /// The name of its executor.
    pub executor: String,
    /// The executor's name of the run.
    pub external_id: Option<String>,
    /// When the intent was stored.
    pub dispatched_at: Instant,
    /// When the executor confirmed the start.
    pub started_at: Option<Instant>,
    /// When its end was recorded.
    pub ended_at: Option<Instant>,
    /// Its outcome, once it has ended.
    pub outcome: Option<OutcomeDto>,
    /// The version of the definition with which it was started; only where a run is asked for, or the runs of a slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_version: Option<u32>,
    /// The version of the project that this definition carries, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_version: Option<String>,
    /// Its arguments by name, with secrets masked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Its outputs, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// The batch that it serves, if one run serves several slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchDto>,
}

/// Adjacent slots that one run serves: each has a run with its own number, and that of the first slot does the work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchDto {
    /// The time of the first slot, which has the output.
    pub first: Instant,
    /// The number of the first slot's run.
    pub run: u32,
    /// The time of the last slot.
    pub last: Instant,
    /// The number of slots.
    pub slots: u32,
}

impl From<Batch> for BatchDto {
    fn from(Batch { first, run, last, slots }: Batch) -> BatchDto {
        BatchDto { first: first.into(), run, last: last.into(), slots }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDto {
    /// `succeeded`, `failed`, `refused` (it was never started), `killed`, `unknown`, or `lost`: as that, and it was begun for certain.
    pub result: Code,
    /// The code, which stays the same: of a failure its kind (`exit-status`, `signal`, `timed-out`, `outputs-too-large`, `outputs-long-number`, `reported`, or `failed` where no more is
    /// known), of a refusal `arguments-too-large` where it is that, else as `result`. Others may come.
    pub code: String,
    /// The outcome in words.
    pub text: String,
    /// The exit status, if there was one other than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
}

/// A part of the output of a run, in a stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputDto {
    /// The position of its first byte in all output of the run.
    pub offset: u64,
    /// The position to continue from.
    pub next_offset: u64,
    /// The number of bytes before it that are no longer kept.
    pub dropped: u64,
    /// The text.
    pub text: String,
}

/// A line of the output of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputLineDto {
    /// The position of its first byte in all output of the run.
    pub offset: u64,
    /// When its first byte came; absent if that is not known, as of runs from before times were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Instant>,
    /// `stdout`, `stderr`, or `kelos` for what Kelos adds; absent like the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Code>,
    /// The text, without the end of the line; escapes of terminals are kept.
    pub text: String,
    /// Whether it ends here: not if it goes on below, has not been ended yet, or its end was dropped.
    pub whole: bool,
}

/// Lines of the output of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputLinesDto {
    /// The lines. If the last one begins at `nextOffset`, more of it may come.
    pub lines: Vec<OutputLineDto>,
    /// The position to continue from.
    pub next_offset: u64,
    /// The number of bytes before the first line that are no longer kept.
    pub dropped: u64,
    /// Whether the run is over and nothing comes after.
    pub ended: bool,
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
        OutcomeDto { result: result.into(), code, text, exit_status }
    }
}

impl RunDto {
    /// A run with the version of the definition with which it was started.
    #[must_use]
    pub fn of_version(run: Run, version: Option<DefinitionVersion>) -> RunDto {
        let definition_version = version.as_ref().map(|version| version.number);
        let project_version = version.and_then(|version| version.project).map(String::from);
        RunDto { definition_version, project_version, ..run.into() }
    }
}

impl From<Run> for RunDto {
    fn from(run: Run) -> RunDto {
        RunDto {
            slot: (&run.id.slot).into(),
            number: run.id.number,
            state: run.state.as_str().into(),
            executor: run.executor,
            external_id: run.external_id.as_deref().map(shown_id).map(str::to_owned),
            dispatched_at: run.dispatched_at.into(),
            started_at: run.started_at.map(Instant),
            ended_at: run.ended_at.map(Instant),
            outcome: run.outcome.map(OutcomeDto::from),
            definition_version: None,
            project_version: None,
            arguments: run.arguments,
            outputs: run.outputs.as_deref().cloned(),
            batch: run.batch.map(BatchDto::from),
        }
    }
}
