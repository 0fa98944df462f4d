//! Facts: events outside Kelos, published once and counted once.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::http::HeaderMap;
use kelos_core::{FactTally, Tell};
use kelos_engine::sources::SourceStatus;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::form::parse_end;
use kelos_model::id::is_invisible;
use kelos_model::project::dataset_named;
use kelos_model::{Event, EventRecord, Fact, Occurrence, Subject, WorkflowId};
use kelos_store::{About, EventFilter, PageRequest, Queries};
use kelos_trust::Right;
use kelos_wire::{FactDto, FactRequest, FactSourceDto, Instant, ListDto, PageDto, ProblemDetailsDto, TellResultDto};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::dto::{FromLibrary, list as list_of};
use super::extract::{AnyJson, Limit, NoParameters, Query, part};
use kelos_front::identity::Caller;

/// Most facts in one request.
const MOST_TOLD: usize = 10_000;
/// Longest name of a source, of a fact, of a dataset, a signal or a partition, in bytes.
const LONGEST_NAME: usize = 500;
/// Longest payload, arguments or outputs, in bytes of JSON.
const LONGEST_PAYLOAD: usize = 65_536;

/// Facts to publish: one, or several in their order.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes a body that is read in another way, for the sake of its errors")]
enum OneOrSeveralFacts {
    /// A single fact.
    One(Box<FactRequest>),
    /// A list of facts.
    Several(Vec<FactRequest>),
}

/// A fact of the log; none of another event.
fn fact(record: EventRecord) -> Option<FactDto> {
    let Event::Fact { fact, .. } = record.event else { return None };
    let told = FactDto {
        seq: record.seq,
        at: record.at.into(),
        source: fact.source.to_string(),
        key: fact.key.map(|key| key.to_string()),
        what: fact.what.to_string(),
        about: fact.what.subject().to_string(),
        ..FactDto::default()
    };
    Some(match fact.what {
        Occurrence::Partitions { dataset, count, keys } => {
            FactDto { dataset: Some(dataset.to_string()), partitions: Some(count), keys, ..told }
        }
        Occurrence::Ended { program, state, run, arguments, outputs } => {
            let (program, state) = (Some(program.to_string()), Some(state.as_str().into()));
            FactDto { program, state, run, arguments, outputs, ..told }
        }
        Occurrence::Signal { name, payload, run } => FactDto {
            signal: Some(name.to_string()),
            run: run.map(|run| run.to_string()),
            payload: Some(payload).filter(|payload| !payload.is_null()),
            ..told
        },
        Occurrence::Fired { .. } => told,
    })
}

fn bad(why: impl Into<String>) -> Fault {
    Fault::bad_request("bad-body", why)
}

/// A name that is there and no longer than may be.
fn name(what: &str, name: String) -> Result<Arc<str>, Fault> {
    match name.len() {
        0 => Err(bad(format!("`{what}` is empty, expected a name"))),
        length if length > LONGEST_NAME => {
            Err(bad(format!("`{what}` has {length} bytes, expected at most {LONGEST_NAME}")))
        }
        _ if name.contains(is_invisible) => {
            Err(bad(format!("`{what}` can't contain an invisible character: \"{}\"", name.escape_debug())))
        }
        _ => Ok(name.into()),
    }
}

/// Whether something is no longer in JSON than may be.
fn short<T: Serialize>(what: &str, value: &T) -> Result<(), Fault> {
    match serde_json::to_string(value).map_or(0, |text| text.len()) {
        length if length > LONGEST_PAYLOAD => {
            Err(bad(format!("`{what}` has {length} bytes, expected at most {LONGEST_PAYLOAD}")))
        }
        _ => Ok(()),
    }
}

/// Reads a fact from a request.
fn read(mut request: FactRequest, by: &str) -> Result<Fact, Fault> {
    let source = name("source", request.source.take().unwrap_or_else(|| by.to_owned()))?;
    let key = request.key.take().map(|key| name("key", key)).transpose()?;
    check_fields(&request)?;
    let what = match (request.dataset.take(), request.program.take(), request.signal.take()) {
        (Some(dataset), None, None) => partitions(request, name("dataset", dataset_named(&dataset))?)?,
        (None, Some(program), None) => ended(request, program)?,
        (None, None, Some(named)) => signal(request, name("signal", named)?)?,
        _ => return Err(bad("a fact is about one thing: expected `dataset`, `program` or `signal`")),
    };
    Ok(Fact { source, key, what })
}

/// Checks that there are only fields that belong to the subject.
fn check_fields(request: &FactRequest) -> Result<(), Fault> {
    let of_run =
        request.state.is_some() || request.run.is_some() || request.arguments.is_some() || request.outputs.is_some();
    let strays = [
        (
            "`partitions` and `keys`",
            "dataset",
            request.dataset.is_none() && (request.partitions.is_some() || request.keys.is_some()),
        ),
        ("`state`, `run`, `arguments` and `outputs`", "program", request.program.is_none() && of_run),
        ("`payload`", "signal", request.signal.is_none() && request.payload.is_some()),
    ];
    let stray = strays.iter().find(|(_, _, is_there)| *is_there);
    stray.map_or(Ok(()), |(what, of, _)| Err(bad(format!("expected {what} only beside `{of}`"))))
}

fn partitions(request: FactRequest, dataset: Arc<str>) -> Result<Occurrence, Fault> {
    if request.partitions == Some(0) {
        return Err(bad("`partitions` is 0: expected a number from 1"));
    }
    let Some(keys) = request.keys else {
        return Ok(Occurrence::Partitions { dataset, count: request.partitions.unwrap_or(1), keys: Vec::new() });
    };
    let mut known = BTreeSet::new();
    for (number, key) in keys.iter().enumerate() {
        let at = format!("keys[{number}]");
        name(&at, key.clone())?;
        if !known.insert(key) {
            return Err(bad(format!("`{at}` is \"{key}\", as one before it: expected each partition once")));
        }
    }
    let named = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    match request.partitions {
        None if named == 0 => Err(bad("`keys` is empty: expected the names of partitions")),
        Some(count) if count != named => Err(bad(format!(
            "`keys` names {named} of them, and `partitions` is {count}: expected as many, or one of the two fields alone"
        ))),
        _ => Ok(Occurrence::Partitions { dataset, count: named, keys }),
    }
}

fn ended(request: FactRequest, program: WorkflowId) -> Result<Occurrence, Fault> {
    let state = request.state.ok_or_else(|| bad("`state` is missing: expected succeeded, failed or killed"))?;
    let state = parse_end(&state).map_err(|why| bad(format!("`state`: {why}")))?;
    let (arguments, outputs) = (request.arguments.unwrap_or_default(), request.outputs.unwrap_or_default());
    short("arguments", &arguments)?;
    short("outputs", &outputs)?;
    let run = request.run.map(|run| name("run", run)).transpose()?.map(|run| run.to_string());
    Ok(Occurrence::Ended { program, state, run, arguments, outputs })
}

fn signal(request: FactRequest, name: Arc<str>) -> Result<Occurrence, Fault> {
    let payload = request.payload.unwrap_or_default();
    short("payload", &payload)?;
    Ok(Occurrence::Signal { name, payload, run: None })
}

/// The facts of a body, which has one or several.
fn facts(body: Value, by: &str, idempotency: Option<String>) -> Result<Vec<Fact>, Fault> {
    let read_one = |value: Value| read(part::<FactRequest>(value)?, by);
    let Value::Array(all) = body else {
        let fact = read_one(body)?;
        return Ok(vec![named(fact, idempotency)?]);
    };
    if idempotency.is_some() {
        return Err(bad("the header `Idempotency-Key` names a single fact: expected a `key` in each of several"));
    }
    if all.len() > MOST_TOLD {
        return Err(bad(format!("the body has {} facts, expected at most {MOST_TOLD}", all.len())));
    }
    let numbered = all.into_iter().enumerate();
    numbered
        .map(|(number, one)| read_one(one).map_err(|problem| problem.about(&format!("fact {}", number + 1))))
        .collect()
}

/// A fact with the key of the header.
fn named(fact: Fact, idempotency: Option<String>) -> Result<Fact, Fault> {
    match (&fact.key, idempotency) {
        (Some(key), Some(other)) if **key != *other => {
            Err(bad("`key` and the header `Idempotency-Key` differ: expected one of them"))
        }
        (_, Some(key)) => Ok(Fact { key: Some(name("Idempotency-Key", key)?), ..fact }),
        (_, None) => Ok(fact),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes()).map(|text| text.trim().to_owned());
    let text = text.ok().filter(|text| !text.is_empty());
    let wrong = || Fault::bad_request("bad-header", "the header `Idempotency-Key` must be a text in UTF-8");
    text.ok_or_else(wrong).map(Some)
}

/// Publishes facts. They are stored before the answer; each fact with a key counts once, however often it is
/// published. The header `Idempotency-Key` is the key of a single fact.
#[utoipa::path(post, path = "/facts", tag = "facts", request_body = OneOrSeveralFacts, responses(
    (status = 200, description = "They are stored, and have been counted", body = TellResultDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn tell(
    _: Query<NoParameters>,
    Caller(by): Caller,
    headers: HeaderMap,
    app: App,
    AnyJson(body): AnyJson,
) -> Result<Json<TellResultDto>, Fault> {
    let facts = facts(body, &by.name, idempotency_key(&headers)?)?;
    let FactTally { new, known, .. } = app.ask(&by, Tell::of(facts)).await?;
    Ok(Json(TellResultDto { new, known }))
}

impl FromLibrary<SourceStatus> for FactSourceDto {
    fn from_library(standing: SourceStatus) -> FactSourceDto {
        FactSourceDto {
            name: standing.name.to_string(),
            answered_at: standing.answered_at.map(Instant),
            new: standing.new,
            passed_over: standing.passed_over,
            problem: standing.problem.map(|problem| format!("failed to {problem}")),
        }
    }
}

/// Lists the sources of facts that the leader itself polls, with the state of each.
#[utoipa::path(get, path = "/facts/sources", tag = "facts", responses(
    (status = 200, description = "The sources", body = ListDto<FactSourceDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn sources(_: Query<NoParameters>, app: App) -> Json<ListDto<FactSourceDto>> {
    // Sources belong to no project.
    let seen = if app.may(Right::View, None) { app.node().sources().standings() } else { Vec::new() };
    Json(list_of(seen))
}

/// The facts to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FactListQuery {
    /// Only those of this source.
    source: Option<String>,
    /// Only those about this: `partition:purchases`, `ended:succeeded:w`, `signal:go`.
    about: Option<String>,
    /// How many are read at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

impl FactListQuery {
    fn accepts(&self, fact: &FactDto) -> bool {
        self.source.as_ref().is_none_or(|source| fact.source == *source)
            && self.about.as_ref().is_none_or(|about| fact.about == *about)
    }
}

/// Lists published facts, newest first.
#[utoipa::path(get, path = "/facts", tag = "facts", params(FactListQuery), responses(
    (status = 200, description = "A page of facts; it may hold few although the list goes on", body = PageDto<FactDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(Query(wanted): Query<FactListQuery>, app: App) -> Result<Json<PageDto<FactDto>>, Fault> {
    if let Some(about) = &wanted.about {
        about.parse::<Subject>().map_err(|error| Fault::bad_request("bad-query", error.to_string()))?;
    }
    let read = move |reader: &dyn Queries| {
        let page = reader.events(
            &EventFilter::about(About::Facts),
            PageRequest::newest(wanted.limit.0).after(wanted.cursor.as_deref()),
        )?;
        let items = page.rows.into_iter().filter_map(fact).filter(|fact| wanted.accepts(fact)).collect();
        Ok(PageDto { items, next: page.next })
    };
    Ok(Json(app.read(read).await?))
}
