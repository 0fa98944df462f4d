//! Event schedules: routes that list, create, change, enable and fire them, and show their decisions.

mod request;

use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kelos_core::{
    ChangeSchedule, CreateSchedules, DeleteSchedules, Disable, Enable, FireRequest, Refusal, RepeatStep, StartAnswer,
};
use kelos_explain::schedules::{decisions, overview};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::key;
use kelos_model::arguments::text;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Actor, RunName, SlotKey, SlotRef, StepKey, Workflow, WorkflowId};
use kelos_store::{Page, Queries, StoreError};
use kelos_wire::{
    DecisionDto, EventScheduleDto, ListDto, PageDto, ProblemDetailsDto, ReasonRequest, ScheduleRequest, StartRequest,
    StartedDto,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::dto::{self, FromLibrary, has_kind, schedule};
use super::extract::{AnyJson, Body, Limit, NoParameters, Path, Query, WorkflowPath, part};
use super::slots;
use kelos_front::identity::Caller;
use request::{Draft, bad, unknown_program};

/// Event schedules that one request creates at the most.
const MOST_CREATED: usize = 1000;
/// Arguments that one request gives at the most, and how long a name or value of one may be, in bytes.
const MOST_ARGUMENTS: usize = 1000;
const LONGEST_ARGUMENT: usize = 65_536;

/// The kinds of triggers that an event schedule can have.
const KINDS: [&str; 14] = [
    "fired",
    "partitions",
    "ended",
    "signal",
    "and",
    "or",
    "not",
    "delay",
    "success",
    "path",
    "hdfs-path",
    "local-path",
    "function",
    "always",
];

/// The event schedules to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ScheduleListQuery {
    /// Only those of this project.
    project: Option<String>,
    /// Only those that run this workflow.
    program: Option<String>,
    /// Only those of this name, whatever the project.
    name: Option<String>,
    /// Only those that are enabled, or are not.
    enabled: Option<bool>,
    /// Only those that have such a trigger: `fired`, `partitions`, `ended`, `signal`, `and`, `or`, …
    trigger: Option<String>,
    /// How many at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

impl ScheduleListQuery {
    fn accepts(&self, row: &WorkflowRow) -> bool {
        let definition = &row.definition;
        let Some(events) = definition.keys.events().filter(|_| row.present) else { return false };
        self.project.as_ref().is_none_or(|project| definition.project == *project)
            && self.program.as_ref().is_none_or(|program| events.program.as_str() == program)
            && self.name.as_ref().is_none_or(|name| events.name == *name)
            && self.enabled.is_none_or(|enabled| row.enabled == enabled)
            && self.trigger.as_ref().is_none_or(|kind| has_kind(&definition.trigger, kind))
    }

    /// Refuses filters that name something unknown, so that the answer is not taken for "none of these".
    fn check(&self, rows: &[WorkflowRow]) -> Result<(), Fault> {
        if let Some(kind) = self.trigger.as_deref().filter(|kind| !KINDS.contains(kind)) {
            let expected = KINDS.join(", ");
            return Err(Fault::bad_request("bad-query", format!("`trigger` is \"{kind}\", expected {expected}")));
        }
        let is_there = |row: &&WorkflowRow| row.present;
        let known = |program: &str| rows.iter().filter(is_there).any(|row| row.id.as_str() == program);
        if let Some(program) = self.program.as_deref().filter(|program| !known(program)) {
            return Err(unknown_program(program));
        }
        let known = |project: &str| rows.iter().filter(is_there).any(|row| row.definition.project == project);
        match self.project.as_deref().filter(|project| !known(project)) {
            Some(project) => Err(Fault::not_found("project-not-found", format!("there is no project \"{project}\""))
                .with_hint("GET /api/v1/projects lists the projects")),
            None => Ok(()),
        }
    }

    /// The rows of a page, and the start of the next one.
    fn page(&self, rows: Vec<WorkflowRow>) -> (Vec<WorkflowRow>, Option<String>) {
        let after = |row: &WorkflowRow| self.cursor.as_deref().is_none_or(|cursor| row.id.as_str() > cursor);
        let mut found: Vec<_> = rows.into_iter().filter(|row| after(row) && self.accepts(row)).collect();
        let more = found.len() > self.limit.0;
        found.truncate(self.limit.0);
        let next = found.last().filter(|_| more).map(|row| row.id.to_string());
        (found, next)
    }
}

/// Lists event schedules, ascending by id.
#[utoipa::path(get, path = "/schedules", tag = "schedules", params(ScheduleListQuery), responses(
    (status = 200, description = "A page of event schedules", body = PageDto<EventScheduleDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Query(wanted): Query<ScheduleListQuery>,
    app: App,
) -> Result<Json<PageDto<EventScheduleDto>>, Fault> {
    let now = app.handle().now();
    let read = move |reader: &dyn Queries| {
        let rows = reader.workflows(None)?;
        if let Err(problem) = wanted.check(&rows) {
            return Ok(Err(problem));
        }
        let (rows, next) = wanted.page(rows);
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            items.extend(schedule(&row, overview::read(reader, &row, now)?));
        }
        Ok(Ok(PageDto { items, next }))
    };
    Ok(Json(app.read(read).await??))
}

fn unknown(id: &WorkflowId) -> Fault {
    Refusal::NoEventSchedule(id.clone()).into()
}

/// An event schedule that is there.
fn known(reader: &dyn Queries, id: &WorkflowId) -> Result<Result<WorkflowRow, Fault>, StoreError> {
    let row = reader.workflow(id)?.filter(|row| row.present && row.definition.keys.events().is_some());
    Ok(row.ok_or_else(|| unknown(id)))
}

async fn shown(app: &App, id: WorkflowId) -> Result<EventScheduleDto, Fault> {
    let now = app.handle().now();
    let read = move |reader: &dyn Queries| {
        let row = match known(reader, &id)? {
            Ok(row) => row,
            Err(problem) => return Ok(Err(problem)),
        };
        let found = schedule(&row, overview::read(reader, &row, now)?);
        let counts = overview::counts(reader, &id)?;
        Ok(found
            .map(|found| EventScheduleDto { counts: Some(kelos_wire::counts(counts)), ..found })
            .ok_or_else(|| unknown(&id)))
    };
    app.read(read).await?
}

/// Shows an event schedule: its definition and its state.
#[utoipa::path(get, path = "/schedules/{id}", tag = "schedules", params(WorkflowPath), responses(
    (status = 200, description = "The event schedule", body = EventScheduleDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn one(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<EventScheduleDto>, Fault> {
    shown(&app, path.id).await.map(Json)
}

/// Event schedules to be created: one, or several.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes a body that is read in another way, for the sake of its errors")]
enum OneOrSeveral {
    /// A single schedule.
    One(Box<ScheduleRequest>),
    /// Several: all of them or none.
    Several(Vec<ScheduleRequest>),
}

/// The created schedules.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum CreateOutcome {
    /// The one.
    One(Box<EventScheduleDto>),
    /// A list of schedules, in the order of the request.
    Several(ListDto<EventScheduleDto>),
}

/// Creates event schedules: all of the request, or none. They are disabled unless the request enables them.
#[utoipa::path(post, path = "/schedules", tag = "schedules", params(ReasonRequest), request_body = OneOrSeveral, responses(
    (status = 201, description = "It was created, or they were", body = CreateOutcome),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn create(
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
    AnyJson(body): AnyJson,
) -> Result<Response, Fault> {
    let is_list = body.is_array();
    let requests = requests(body)?;
    let read = move |reader: &dyn Queries| {
        let mut new = Vec::new();
        for (number, request) in requests.into_iter().enumerate() {
            match Draft(request).create(reader)? {
                Ok(workflow) => new.push(Arc::new(workflow)),
                Err(problem) if is_list => return Ok(Err(problem.about(&nth(number)))),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(Ok(new))
    };
    let new: Vec<Arc<Workflow>> = app.read(read).await??;
    let ids: Vec<WorkflowId> = new.iter().map(|one| one.id.clone()).collect();
    if let Some(twice) = twice(&ids) {
        return Err(bad(format!("{twice} is given twice: expected each once")));
    }
    app.ask(&by, CreateSchedules { new, reason: because.reason }).await?;
    let mut items = Vec::new();
    for id in ids {
        items.push(shown(&app, id).await?);
    }
    Ok(match items.pop() {
        Some(one) if !is_list => {
            let name = percent_encoding::utf8_percent_encode(&one.id, percent_encoding::NON_ALPHANUMERIC);
            let location = [(header::LOCATION, format!("/api/v1/schedules/{name}"))];
            (StatusCode::CREATED, location, Json(CreateOutcome::One(Box::new(one)))).into_response()
        }
        last => {
            items.extend(last);
            (StatusCode::CREATED, Json(CreateOutcome::Several(ListDto { items }))).into_response()
        }
    })
}

fn nth(number: usize) -> String {
    format!("schedule {}", number + 1)
}

fn twice(ids: &[WorkflowId]) -> Option<&WorkflowId> {
    let mut seen = std::collections::BTreeSet::new();
    ids.iter().find(|id| !seen.insert(*id))
}

/// The schedules to create, from a body with one or several.
fn requests(body: Value) -> Result<Vec<ScheduleRequest>, Fault> {
    match body {
        Value::Array(all) if all.len() > MOST_CREATED => {
            Err(bad(format!("{} schedules at once, expected at most {MOST_CREATED}", all.len())))
        }
        Value::Array(all) => {
            let read = all.into_iter().enumerate();
            read.map(|(number, one)| part(one).map_err(|fault: Fault| fault.about(&nth(number)))).collect()
        }
        one => part(one).map(|one| vec![one]),
    }
}

/// Replaces the definition of an event schedule, in one transaction. It stays enabled if it was, and its
/// pending slots end. Missing parts are as in a new one.
#[utoipa::path(
    put,
    path = "/schedules/{id}",
    tag = "schedules",
    params(WorkflowPath, ReasonRequest),
    request_body = ScheduleRequest,
    responses(
        (status = 200, description = "The event schedule as it is now", body = EventScheduleDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn replace(
    Path(path): Path<WorkflowPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<ScheduleRequest>,
) -> Result<Json<EventScheduleDto>, Fault> {
    put(&app, &by, because.reason, path.id, |row, reader| Draft(request).replace(row, reader)).await
}

/// Changes the given parts of an event schedule and nothing else, in one transaction. It stays enabled if it was, and its
/// pending slots end.
#[utoipa::path(
    patch,
    path = "/schedules/{id}",
    tag = "schedules",
    params(WorkflowPath, ReasonRequest),
    request_body = ScheduleRequest,
    responses(
        (status = 200, description = "The event schedule as it is now", body = EventScheduleDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn change(
    Path(path): Path<WorkflowPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<ScheduleRequest>,
) -> Result<Json<EventScheduleDto>, Fault> {
    put(&app, &by, because.reason, path.id, |row, reader| Draft(request).change(row, reader)).await
}

async fn put(
    app: &App,
    by: &Actor,
    reason: Option<String>,
    id: WorkflowId,
    make: impl FnOnce(&WorkflowRow, &dyn Queries) -> Result<Result<Workflow, Fault>, StoreError> + Send + 'static,
) -> Result<Json<EventScheduleDto>, Fault> {
    let _alone = app.changing_schedules().await;
    let wanted = id.clone();
    let read = move |reader: &dyn Queries| match known(reader, &wanted)? {
        Ok(row) => make(&row, reader),
        Err(problem) => Ok(Err(problem)),
    };
    let changed = app.read(read).await??;
    app.ask(by, ChangeSchedule { changed: Arc::new(changed), reason }).await?;
    shown(app, id).await.map(Json)
}

/// Deletes an event schedule. Its pending slots end; live runs continue.
#[utoipa::path(delete, path = "/schedules/{id}", tag = "schedules", params(WorkflowPath, ReasonRequest), responses(
    (status = 200, description = "It is deleted; this is what it was", body = EventScheduleDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn delete(
    Path(path): Path<WorkflowPath>,
    Query(because): Query<ReasonRequest>,
    Caller(by): Caller,
    app: App,
) -> Result<Json<EventScheduleDto>, Fault> {
    let was = shown(&app, path.id.clone()).await?;
    app.ask(&by, DeleteSchedules { schedules: vec![path.id], reason: because.reason }).await?;
    Ok(Json(was))
}

/// Enables an event schedule: facts count from now on.
#[utoipa::path(post, path = "/schedules/{id}/enable", tag = "schedules", params(WorkflowPath), request_body = Option<ReasonRequest>, responses(
    (status = 200, description = "It is enabled", body = EventScheduleDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn enable(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<EventScheduleDto>, Fault> {
    app.ask(&by, Enable { schedule: path.id.clone(), reason: because.reason }).await?;
    shown(&app, path.id).await.map(Json)
}

/// Disables an event schedule. Its pending slots end; live runs continue.
#[utoipa::path(post, path = "/schedules/{id}/disable", tag = "schedules", params(WorkflowPath), request_body = Option<ReasonRequest>, responses(
    (status = 200, description = "It is disabled", body = EventScheduleDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn disable(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<EventScheduleDto>, Fault> {
    app.ask(&by, Disable { schedule: path.id.clone(), reason: because.reason }).await?;
    shown(&app, path.id).await.map(Json)
}

/// Refuses arguments that are too many or too long.
fn check(request: &StartRequest) -> Result<(), Fault> {
    if request.step.is_some() != request.of.is_some() {
        let (given, missing) = if request.step.is_some() { ("step", "of") } else { ("of", "step") };
        return Err(bad(format!(
            "`{given}` is given, expected `{missing}` beside it: a step, and the run that did it"
        )));
    }
    if request.arguments.len() > MOST_ARGUMENTS {
        return Err(bad(format!("{} arguments, expected at most {MOST_ARGUMENTS}", request.arguments.len())));
    }
    let long = request.arguments.iter().find(|(name, value)| name.len().max(text(value).len()) > LONGEST_ARGUMENT);
    long.map_or(Ok(()), |_| Err(bad(format!("an argument is longer than {LONGEST_ARGUMENT} bytes"))))
}

/// Has an event schedule go now, without its trigger.
#[utoipa::path(
    post,
    path = "/schedules/{id}/fire",
    tag = "schedules",
    params(WorkflowPath),
    request_body = Option<StartRequest>,
    responses(
        (status = 200, description = "The slot that goes", body = StartedDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn fire(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<StartRequest>,
) -> Result<Json<StartedDto>, Fault> {
    go(&app, &by, path.id, request).await.map(Json)
}

/// Starts a workflow: opens a slot of this moment, or of a name, which needs no trigger. A run with a name is started once. A workflow
/// with job ids has no such slots; submit a job. With `step` and `of` one step of a run of a flow that has ended is done again, as a run
/// of its own, with the definition and the inputs that it had then; no other step is opened.
#[utoipa::path(
    post,
    path = "/workflows/{id}/start",
    tag = "workflows",
    params(WorkflowPath),
    request_body = Option<StartRequest>,
    responses(
        (status = 200, description = "The slot that goes", body = StartedDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn start(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<StartRequest>,
) -> Result<Json<StartedDto>, Fault> {
    go(&app, &by, path.id, request).await.map(Json)
}

async fn go(app: &App, by: &Actor, workflow: WorkflowId, request: StartRequest) -> Result<StartedDto, Fault> {
    check(&request)?;
    let StartRequest { arguments, step, of, key, priority, unconstrained, reason } = request;
    let name = key.map(|name| RunName::new(&name)).transpose().map_err(|error| bad(format!("`key`: {error}")))?;
    let StartAnswer { slot, existed } = match step.zip(of) {
        Some((step, of)) => {
            let step = step_of(&key::slot(app, &workflow, &of).await?, &step)?;
            app.ask(by, RepeatStep { step, arguments, key: name, priority, unconstrained, reason }).await?
        }
        None => {
            let request = FireRequest { workflow, arguments, key: name, priority, unconstrained, reason };
            app.ask(by, request).await?
        }
    };
    Ok(StartedDto { slot: slots::found(app, slot).await?, existed })
}

/// The step of a run that is done again.
fn step_of(run: &SlotRef, text: &str) -> Result<SlotRef, Fault> {
    let key = StepKey::named(&run.key, text).ok_or_else(|| {
        bad(format!(
            "`step` is {text:?} and `of` is {:?}, expected a step such as load, or an item load:3, of a run",
            run.key.short()
        ))
    })?;
    Ok(SlotRef::new(run.workflow.clone(), SlotKey::Step(key)))
}

/// The decisions to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DecisionListQuery {
    /// How many slots are read at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

/// Lists the decisions of an event schedule, newest first: what it fired, what it dropped and why, and what happened to the
/// schedule itself.
#[utoipa::path(get, path = "/schedules/{id}/decisions", tag = "schedules", params(WorkflowPath, DecisionListQuery), responses(
    (status = 200, description = "A page of decisions", body = PageDto<DecisionDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn decisions(
    Path(path): Path<WorkflowPath>,
    Query(wanted): Query<DecisionListQuery>,
    app: App,
) -> Result<Json<PageDto<DecisionDto>>, Fault> {
    let read = move |reader: &dyn Queries| {
        // Also of one that was deleted.
        let row = reader.workflow(&path.id)?.filter(|row| row.definition.keys.events().is_some());
        let Some(row) = row else { return Ok(Err(unknown(&path.id))) };
        decisions::read(reader, &row.id, wanted.cursor.as_deref(), wanted.limit.0).map(Ok)
    };
    let page: Page<decisions::Decision> = app.read(read).await??;
    Ok(Json(dto::page(page, DecisionDto::from_library)))
}
