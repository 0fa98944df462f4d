//! Requests of workers to the leader, and its answers. Both are the same program, and what a run needs must arrive whole: so runs and
//! definitions are in the form of the model here, and nothing is masked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::run::Report;
use kelos_model::workers::Label;
use kelos_model::{Batch, PermitAnswer, Run, RunId, SlotKey, SlotRef, Workflow, WorkflowId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::storage::WorkerFoldersDto;

/// An offer of a worker to run jobs, which is also its heartbeat and its report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferRequest {
    /// The session that the leader opened for it; none in the first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Grows with each request: an offer that arrives after a later one does not count.
    pub count: u64,
    /// The newest of its requests whose answer it received; 0 before the first. Older programs don't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// The workflows whose jobs it runs; empty for all.
    pub workflows: BTreeSet<WorkflowId>,
    /// Whether it runs no other workflows than these, even where they are none: its token is for some projects only. The server says so.
    #[serde(skip)]
    pub is_limited: bool,
    /// Its labels.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<Label>,
    /// The description of a worker that keeps its runs on a disk of its own; none for one that shares the leader's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteWorkerDto>,
    /// The folders of its runs, if they are on a disk of its own and it has looked at them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folders: Option<WorkerFoldersDto>,
    /// The project whose functions it has, if it is a program of one: it runs them, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<OfferedProjectDto>,
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
    /// The output of runs that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputAnswerDto>,
    /// Milliseconds that it waits for a run to be assigned.
    pub wait_millis: u64,
    /// Whether it wants no further runs, and ends once it has none.
    pub leaves: bool,
    /// With `leaves`: whether it declines the runs that were assigned to it meanwhile, so that others can have them.
    pub declines: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessDto>,
    /// Former processes of its folder that have certainly ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub succeeds: Vec<ProcessDto>,
    /// The newest epoch of a leader that it has heard of, or 0. Older programs don't say it: they are refused by status 410 instead of
    /// `givenUp`, and are not asked for runs that they do not list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
}

/// A project whose functions a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OfferedProjectDto {
    /// Its name.
    pub name: String,
    /// Its workflows, each with the version of its definition by the count of the server.
    pub definitions: BTreeMap<WorkflowId, u32>,
}

/// A worker that keeps its runs on a disk of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteWorkerDto {
    /// The name of its machine.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// The node that it belongs to; none if it is a process of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The place to which it copies the output of its ended runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<String>,
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
    /// Milliseconds that it may go on without an answer of the leader, as its order said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_millis: Option<u64>,
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
    /// The output of runs to be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputQuestionDto>,
    /// The answers to requests of its runs for permits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<PermitAnswerDto>,
    /// The workflows of its project that have another definition by now: it gets no runs of them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub outdated: BTreeSet<WorkflowId>,
    /// Runs that do not belong to the worker: it must end them and report nothing about them.
    pub refused: Vec<RunId>,
    /// The epoch of the leader that answers. A worker that has heard of a newer one ignores the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Whether the session is over: the worker sent no heartbeat for too long, and its runs were taken away.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
    /// Runs that the log has at this worker and that it did not list: it looks for them on its disk, and reports or lists what it finds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sought: Vec<RunId>,
}

/// The answer to a run's request for permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermitAnswerDto {
    /// The run.
    pub run: RunId,
    /// The number of the request.
    pub request: u64,
    /// The answer.
    pub answer: PermitAnswer,
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
    /// Milliseconds that the run may go on without an answer of the leader; none for a worker that shares its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_millis: Option<u64>,
    /// The earlier runs of its slot that did not succeed; only of functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Run>,
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
    /// The slots that it serves together, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// The key whose time and identifiers it is given, where that is not the key of its slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<SlotKey>,
    /// The context of its trace, where traces are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// A question for the output of a run, from the leader to its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputQuestionDto {
    /// Its number, which the answer repeats.
    pub number: u64,
    /// The run.
    pub run: RunId,
    /// The part of the output.
    pub part: OutputPartDto,
}

/// A part of the output of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutputPartDto {
    /// The bytes from an offset on, and the most of them.
    Piece(u64, usize),
    /// The lines from an offset on, and the most bytes of them.
    Lines(u64, usize),
    /// So many last lines, and the most bytes of them.
    LastLines(usize, usize),
    /// The last line with text.
    LastLine,
    /// The number of bytes.
    Length,
}

/// An answer to a question for the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputAnswerDto {
    /// The number of the question.
    pub number: u64,
    /// The part that was read, or the reason for which it was not, which completes "failed to …".
    pub read: Result<OutputReadDto, String>,
    /// The removal that is this reason; an older worker says it in words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<OutputRemovalDto>,
}

/// The removal of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutputRemovalDto {
    /// It is known.
    Known {
        /// The day and time, in the words of a message.
        on: String,
        /// The reason: `after 90 days`.
        why: String,
    },
    /// The record does not go back so far: it was removed, or there was no output.
    Possible,
}

/// A part that was read of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutputReadDto {
    /// A piece of bytes.
    Piece(OutputPieceDto),
    /// Lines with their origins.
    Lines(OutputLinesReadDto),
    /// The last line with text; none where there is none.
    LastLine(Option<String>),
    /// The number of bytes.
    Length(u64),
}

/// Bytes of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputPieceDto {
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: OutputBytes,
    /// The offset to continue at.
    pub next_offset: u64,
    /// The number of bytes before them that were dropped.
    pub dropped: u64,
    /// Whether nothing comes after them.
    pub ended: bool,
}

/// Lines of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputLinesReadDto {
    /// The lines.
    pub lines: Vec<OutputLineReadDto>,
    /// The offset to continue at.
    pub next_offset: u64,
    /// The number of bytes before them that were dropped.
    pub dropped: u64,
    /// Whether nothing comes after them.
    pub ended: bool,
}

/// A line of the output of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputLineReadDto {
    /// The offset of its first byte.
    pub offset: u64,
    /// When its first byte came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The stream that it was written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The bytes.
    pub bytes: OutputBytes,
    /// Whether it ends here.
    pub whole: bool,
}

/// Any bytes, as a text with a character for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputBytes(pub Vec<u8>);

impl Serialize for OutputBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.iter().map(|byte| char::from(*byte)).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for OutputBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OutputBytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)));
        bytes
            .collect::<Result<_, _>>()
            .map(OutputBytes)
            .map_err(|_| D::Error::custom("expected characters up to U+00FF"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_as_they_were() {
        let bytes = OutputBytes((0..=255).collect());
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(serde_json::from_str::<OutputBytes>(&text).unwrap(), bytes);
        assert!(serde_json::from_str::<OutputBytes>("\"€\"").is_err());
    }

    #[test]
    fn what_older_workers_do_not_tell_is_absent() {
        let answer: OutputAnswerDto = serde_json::from_str(r#"{"number": 1, "read": {"Err": "read it"}}"#).unwrap();
        assert_eq!(answer, OutputAnswerDto { number: 1, read: Err("read it".to_owned()), removal: None });
        assert_eq!(serde_json::to_value(&answer).unwrap().get("removal"), None, "nor is an older server told of it");
        let offer: OfferRequest = serde_json::from_str(r#"{"count": 1}"#).unwrap();
        assert_eq!(offer.folders, None);
    }
}
