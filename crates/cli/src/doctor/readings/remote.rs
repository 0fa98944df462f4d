//! The answers of a server: each that it refuses is left out, and said.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_wire::{
    EndpointDto, HealthDto, ListDto, NodesDto, ProblemDto, StorageDto, StuckListDto, VersionDto, WorkerDto, WorkflowDto,
};
use serde::de::DeserializeOwned;

use crate::address::Query;
use crate::client::{Client, Reply};
use crate::doctor::checks::clock::ClockReading;
use crate::doctor::checks::lag::TurnTimes;
use crate::doctor::checks::scripts::ProblemLine;
use crate::doctor::diagnosis::Diagnosis;
use crate::failure::{Failure, UNREACHABLE};

/// The answers of a server.
#[derive(Default)]
pub(in crate::doctor) struct Answers {
    /// The reason for which it did not answer at all.
    pub(in crate::doctor) silence: Option<Failure>,
    pub(in crate::doctor) health: Option<Reply<HealthDto>>,
    pub(in crate::doctor) clock: Option<ClockReading>,
    /// The time that it took to say how it is.
    pub(in crate::doctor) took: Duration,
    pub(in crate::doctor) version: Option<Reply<VersionDto>>,
    pub(in crate::doctor) problems: Option<Reply<ListDto<ProblemDto>>>,
    pub(in crate::doctor) endpoints: Option<Reply<ListDto<EndpointDto>>>,
    pub(in crate::doctor) nodes: Option<Reply<NodesDto>>,
    pub(in crate::doctor) workers: Option<Reply<ListDto<WorkerDto>>>,
    pub(in crate::doctor) stuck: Option<Reply<StuckListDto>>,
    pub(in crate::doctor) workflows: Option<ListDto<WorkflowDto>>,
    /// The sizes of what it stores; none if the caller does not see all projects.
    pub(in crate::doctor) storage: Option<Reply<StorageDto>>,
    /// The times of its turns; none of a server that has no metrics, or shows them to others only.
    pub(in crate::doctor) turns: Option<TurnTimes>,
    /// The questions that it refused, as results.
    pub(in crate::doctor) refusals: Vec<Diagnosis>,
}

impl Answers {
    /// Asks a server everything.
    pub(in crate::doctor) fn ask(client: &Client) -> Answers {
        let (asked, began) = (Timestamp::now(), Instant::now());
        let health = match client.health() {
            Ok(health) => health,
            Err(silence) => return Answers { silence: Some(silence), ..Answers::default() },
        };
        let clock = ClockReading { asked, there: health.now.0, answered: Timestamp::now() };
        let mut answers =
            Answers { health: Some(health), clock: Some(clock), took: began.elapsed(), ..Answers::default() };
        answers.version = answers.get(client, "ask for the version", "/version");
        answers.problems = answers.get(client, "list the problems", "/problems");
        answers.endpoints = answers.get(client, "list the endpoints", "/endpoints");
        answers.nodes = answers.get(client, "list the nodes", "/nodes");
        answers.workers = answers.get(client, "list the workers", "/workers");
        answers.stuck = answers.get(client, "list stuck slots", "/stuck");
        answers.storage = client.get("read what takes how much", "/storage", &Query::new()).ok();
        answers.turns = client.metrics().ok().and_then(|metrics| TurnTimes::read(&metrics));
        answers.workflows = answers.get(client, "list the workflows", "/workflows");
        answers
    }

    /// One answer; a refusal is noted.
    fn get<T: DeserializeOwned>(&mut self, client: &Client, doing: &str, path: &str) -> Option<T> {
        let failure = match client.get(doing, path, &Query::new()) {
            Ok(answer) => return Some(answer),
            Err(failure) => failure,
        };
        let advice = match failure.code {
            UNREACHABLE => "it answered just before: look at its log",
            _ => "the server may be of another version",
        };
        let advice = failure.hint.as_deref().unwrap_or(advice);
        self.refusals.push(Diagnosis::warning("server", format!("failed to {}", failure.message), advice));
        None
    }

    /// The problems of the server, each as a line.
    pub(in crate::doctor) fn problem_lines(&self) -> Option<Vec<ProblemLine>> {
        let line = |one: &ProblemDto| ProblemLine {
            is_error: one.severity.as_str() == "error",
            code: one.code.as_str().to_owned(),
            place: place(&one.file, one.line, one.column),
            message: one.message.clone(),
        };
        self.problems.as_ref().map(|found| found.items.iter().map(line).collect())
    }
}

/// The place of a problem, as editors and terminals make a link of it.
pub(super) fn place(file: &str, line: u32, column: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}:{column}") }
}
