//! Definitions: current and past ones, the times of their schedules, and pausing.

use axum::Json;
use jiff::Timestamp;
use kelos_core::{Pause, Resume};
use kelos_explain::jobs::Jobs;
use kelos_explain::schedule;
use kelos_explain::schedules::overview::next_time;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_model::time::CronSchedule;
use kelos_model::workflow::WorkflowRow;
use kelos_sandbox::Problem as ScriptProblem;
use kelos_store::{Queries, SlotFilter, StoreError};
use kelos_wire::{
    Instant, ListDto, PastDefinitionDto, ProblemDetailsDto, ProblemDto, ReasonRequest, TimeText, TimesDto,
    WorkflowDetailDto, WorkflowDto, counts,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::{self, FromLibrary};
use super::extract::{Body, Limit, NoParameters, Path, Query, WorkflowPath};
use kelos_front::identity::Caller;
use kelos_front::zone;

/// Times that a workflow shows of its future.
const NEXT_TIMES: usize = 5;

/// The workflows to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WorkflowListQuery {
    /// Only those with this tag.
    tag: Option<String>,
    /// Only those of this project.
    project: Option<String>,
    /// Only those that have this text in their id, description or tags.
    q: Option<String>,
    /// Only those that are paused, or are not.
    paused: Option<bool>,
    /// Those whose definition went away, in place of those that are defined.
    #[serde(default)]
    removed: bool,
}

impl WorkflowListQuery {
    fn accepts(&self, row: &WorkflowRow) -> bool {
        let (definition, about) = (&row.definition, &row.definition.about);
        let has_text = |q: &String| {
            let q = q.to_lowercase();
            let texts = [row.id.as_str()].into_iter().chain(about.description.as_deref());
            texts.chain(about.tags.iter().map(String::as_str)).any(|text| text.to_lowercase().contains(&q))
        };
        row.present != self.removed
            && self.tag.as_ref().is_none_or(|tag| about.tags.contains(tag))
            && self.project.as_ref().is_none_or(|project| definition.project == *project)
            && self.q.as_ref().is_none_or(has_text)
            && self.paused.is_none_or(|paused| row.paused == paused)
    }
}

/// Lists workflows, ascending by id.
#[utoipa::path(get, path = "/workflows", tag = "workflows", params(WorkflowListQuery), responses(
    (status = 200, description = "The workflows", body = ListDto<WorkflowDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Query(wanted): Query<WorkflowListQuery>,
    app: App,
) -> Result<Json<ListDto<WorkflowDto>>, Fault> {
    let read = move |reader: &dyn Queries| {
        let rows = reader.workflows(None)?;
        rows.iter().filter(|row| wanted.accepts(row)).map(|row| summary(reader, row)).collect::<Result<Vec<_>, _>>()
    };
    Ok(Json(ListDto { items: app.read(read).await? }))
}

/// A workflow as lists have it, with the zone of a schedule that it borrows.
fn summary(reader: &dyn Queries, row: &WorkflowRow) -> Result<WorkflowDto, StoreError> {
    let zone = zone::of_row(reader, row)?.map(|zone| zone.name().to_owned());
    Ok(WorkflowDto { zone, ..row.into() })
}

pub(super) fn unknown(id: &WorkflowId) -> Fault {
    kelos_core::Refusal::NoWorkflow(id.clone()).into()
}

fn known(reader: &dyn Queries, id: &WorkflowId) -> Result<Result<WorkflowRow, Fault>, StoreError> {
    Ok(reader.workflow(id)?.ok_or_else(|| unknown(id)))
}

/// Shows a workflow, also one whose definition went away.
#[utoipa::path(get, path = "/workflows/{id}", tag = "workflows", params(WorkflowPath), responses(
    (status = 200, description = "The workflow", body = WorkflowDetailDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn one(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<WorkflowDetailDto>, Fault> {
    let now = app.handle().now();
    let problems = app.node().problems();
    let read = move |reader: &dyn Queries| {
        let row = match known(reader, &path.id)? {
            Ok(row) => row,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let (next_times, schedule_problem) = match schedule::resolved(reader, &row)? {
            // Jobs have no times; their relations may be invalid.
            _ if row.definition.keys.jobs().is_some() => (Vec::new(), Jobs::read(reader)?.faulty.remove(&row.id)),
            // The times of an event schedule come from its trigger, and a program has none.
            _ if row.definition.keys.are_moments() => (firing_times(&row, now, Timestamp::MAX, NEXT_TIMES), None),
            Ok(schedule) => (times_after(&schedule, now, None, NEXT_TIMES), None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let filter = SlotFilter { workflow: Some(path.id), ..SlotFilter::default() };
        let (id, file) = (row.id.clone(), row.definition.source.file.clone());
        // Problems that name another workflow of the file belong to that one.
        let own = |problem: &ScriptProblem| problem.workflow.as_ref().is_none_or(|of| *of == id);
        let problems = problems.into_iter().filter(|problem| problem.file == file && own(problem));
        Ok(Ok(WorkflowDetailDto {
            summary: summary(reader, &row)?,
            definition: (&*row.definition).into(),
            next_times,
            schedule_problem,
            counts: counts(reader.slot_counts(&filter)?),
            problems: problems.map(ProblemDto::from_library).collect(),
        }))
    };
    app.read(read).await?.map(Json)
}

/// Shows all definitions that a workflow ever had, newest first, with their sources.
#[utoipa::path(get, path = "/workflows/{id}/definitions", tag = "workflows", params(WorkflowPath), responses(
    (status = 200, description = "The definitions", body = ListDto<PastDefinitionDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn definitions(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<ListDto<PastDefinitionDto>>, Fault> {
    let id = path.id.clone();
    let past = app.read(move |reader| reader.definitions(&id, None)).await?;
    if past.is_empty() {
        return Err(unknown(&path.id));
    }
    Ok(Json(dto::list(past)))
}

/// A version of a workflow's definition in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct VersionPath {
    /// The id of the workflow.
    #[param(value_type = String)]
    id: WorkflowId,
    /// The version, from 1.
    version: u32,
}

/// Shows the definition of one version, with its source. `definitionVersion` of a run is the version with which it began.
#[utoipa::path(get, path = "/workflows/{id}/definitions/{version}", tag = "workflows", params(VersionPath), responses(
    (status = 200, description = "The definition", body = PastDefinitionDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn definition(
    Path(path): Path<VersionPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<PastDefinitionDto>, Fault> {
    let VersionPath { id, version } = path;
    let of = id.clone();
    let found = app.read(move |reader| Ok((reader.workflow(&of)?, reader.definitions(&of, Some(version))?.pop())));
    match found.await? {
        (_, Some(past)) => Ok(Json(PastDefinitionDto::from_library(past))),
        (None, None) => Err(unknown(&id)),
        (Some(row), None) => {
            let why = format!("the definition of {id} has no version {version}: the latest is {}", row.version);
            Err(Fault::not_found("version-not-found", why))
        }
    }
}

/// The times to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TimesQuery {
    /// The times after this moment; by default now, unless `before` is given. Without an offset it is one of the workflow's time zone.
    #[param(value_type = Option<String>)]
    after: Option<TimeText>,
    /// The times before this moment; without `after`, the last ones. Without an offset it is one of the workflow's time zone.
    #[param(value_type = Option<String>)]
    before: Option<TimeText>,
    /// How many at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    count: Limit,
}

/// Lists times of a workflow's schedule, whether they have slots or not.
#[utoipa::path(get, path = "/workflows/{id}/times", tag = "workflows", params(WorkflowPath, TimesQuery), responses(
    (status = 200, description = "The times, ascending", body = TimesDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn times(
    Path(path): Path<WorkflowPath>,
    Query(wanted): Query<TimesQuery>,
    app: App,
) -> Result<Json<TimesDto>, Fault> {
    let now = app.handle().now();
    let between = [("after", wanted.after.as_ref()), ("before", wanted.before.as_ref())];
    let [after, before] = zone::moments(&app, Some(&path.id), None, between).await?;
    let wanted = TimesList { after, before, count: wanted.count.0 };
    let read = move |reader: &dyn Queries| {
        let row = match known(reader, &path.id)? {
            Ok(row) => row,
            Err(unknown) => return Ok(Err(unknown)),
        };
        if row.definition.keys.are_moments() {
            return Ok(wanted.of_firings(&row, now));
        }
        let times = schedule::resolved(reader, &row)?.map(|schedule| wanted.of(&schedule, now));
        Ok(times.map_err(|problem| Fault::conflict("no-schedule", problem.to_string())))
    };
    app.read(read).await?.map(|times| Json(TimesDto { times }))
}

/// The times to list, between two moments.
struct TimesList {
    after: Option<Timestamp>,
    before: Option<Timestamp>,
    count: usize,
}

impl TimesList {
    fn of_firings(&self, row: &WorkflowRow, now: Timestamp) -> Result<Vec<Instant>, Fault> {
        if self.after.is_none() && self.before.is_some() {
            let why = "the times of an event schedule go forwards: expected `after` beside `before`";
            return Err(Fault::bad_request("bad-query", why));
        }
        let (after, before) = (self.after.unwrap_or(now), self.before.unwrap_or(Timestamp::MAX));
        Ok(firing_times(row, after, before, self.count))
    }

    fn of(&self, schedule: &CronSchedule, now: Timestamp) -> Vec<Instant> {
        let count = self.count;
        match (self.after, self.before) {
            (None, Some(before)) => {
                let earlier = |at: &Timestamp| schedule.previous_before(*at);
                let mut times: Vec<_> =
                    std::iter::successors(earlier(&before), earlier).take(count).map(Instant).collect();
                times.reverse();
                times
            }
            (after, before) => times_after(schedule, after.unwrap_or(now), before, count),
        }
    }
}

/// Times of the cron expressions in the trigger of an event schedule.
fn firing_times(row: &WorkflowRow, after: Timestamp, before: Timestamp, count: usize) -> Vec<Instant> {
    let next = |at: &Timestamp| next_time(&row.definition, *at).map(|time| time.at).filter(|at| *at < before);
    std::iter::successors(next(&after), next).take(count).map(Instant).collect()
}

fn times_after(schedule: &CronSchedule, after: Timestamp, before: Option<Timestamp>, count: usize) -> Vec<Instant> {
    let end = before.unwrap_or(Timestamp::MAX);
    let times = schedule.times(after, end).skip_while(|time| *time == after);
    times.take(count).map(Instant).collect()
}

/// Pauses a workflow: nothing of it is planned, evaluated or started. Live runs are recorded.
#[utoipa::path(post, path = "/workflows/{id}/pause", tag = "workflows", params(WorkflowPath), request_body = Option<ReasonRequest>, responses(
    (status = 200, description = "It is paused", body = WorkflowDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn pause(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<WorkflowDto>, Fault> {
    app.ask(&by, Pause { workflow: path.id.clone(), reason: because.reason }).await?;
    shown(&app, path.id).await
}

/// Ends a pause.
#[utoipa::path(post, path = "/workflows/{id}/resume", tag = "workflows", params(WorkflowPath), request_body = Option<ReasonRequest>, responses(
    (status = 200, description = "It is not paused", body = WorkflowDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn resume(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<WorkflowDto>, Fault> {
    app.ask(&by, Resume { workflow: path.id.clone(), reason: because.reason }).await?;
    shown(&app, path.id).await
}

async fn shown(app: &App, id: WorkflowId) -> Result<Json<WorkflowDto>, Fault> {
    let read = move |reader: &dyn Queries| match known(reader, &id)? {
        Ok(row) => summary(reader, &row).map(Ok),
        Err(unknown) => Ok(Err(unknown)),
    };
    app.read(read).await?.map(Json)
}
