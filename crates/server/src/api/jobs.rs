//! Jobs: submitting them, listing them, and what waits for what.

use std::collections::BTreeMap;

use axum::Json;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{Refusal, SubmitOutcome};
use kelos_explain::jobs::{self, JobForecast, JobQuery, Jobs, Outlook, Relative, RelativeGroup};
use kelos_front::fault::Fault;
use kelos_front::{App, key};
use kelos_model::ranges::Range;
use kelos_model::workflow::Keys;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter};
use kelos_wire::{
    ChildrenDto, Code, ExpectedDto, GroupDto, JobName, OutlookDto, PageDto, ParentsDto, ProblemDetailsDto, RelativeDto,
    SlotDto, SlotNameDto, SubmitRequest, SubmitResultDto, SubmittedDto, SubmittedListDto, UnwritableDto,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::{FromLibrary, page};
use super::extract::{Body, Limit, Names, NoParameters, Path, Query};
use kelos_front::identity::Caller;

/// Jobs that one request submits at the most.
const MOST_SUBMITTED: usize = 10_000;
/// The lowest priority, which is the default. The highest is 1.
const LAST_PRIORITY: i32 = 100;
/// The default number of relatives that are listed for each group.
const USUAL_RELATIVES: usize = 1000;

impl FromLibrary<&JobForecast> for ExpectedDto {
    fn from_library(one: &JobForecast) -> ExpectedDto {
        ExpectedDto {
            slot: (&one.job).into(),
            state: one.state.map(|state| state.as_str().into()),
            role: one.role.as_str().into(),
            fate: one.fate.as_str().into(),
            asked_when_opened: one.is_asked,
            blocked_by: one.blocked_by.iter().map(SlotNameDto::from).collect(),
            more_blockers: one.more_blockers,
            no_group: one.no_group.clone(),
            no_way: one.no_way.clone(),
        }
    }
}

impl FromLibrary<Outlook> for OutlookDto {
    fn from_library(outlook: Outlook) -> OutlookDto {
        let mut counts: BTreeMap<Code, usize> = BTreeMap::new();
        outlook.jobs.iter().for_each(|one| *counts.entry(one.fate.as_str().into()).or_default() += 1);
        OutlookDto {
            dry_run: true,
            counts,
            items: outlook.jobs.iter().take(MOST_SUBMITTED).map(ExpectedDto::from_library).collect(),
            cut: outlook.is_cut || outlook.jobs.len() > MOST_SUBMITTED,
        }
    }
}

/// Opens jobs, with the ancestors that are missing. Where one can't be opened, none is.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = SubmitRequest, responses(
    (status = 200, description = "What became of each, or what would happen", body = SubmitResultDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn submit(
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<SubmitRequest>,
) -> Result<Json<SubmitResultDto>, Fault> {
    let priority = priority(request.priority)?;
    let jobs = named(&app, &request.jobs).await?;
    if request.dry_run {
        let asked = JobQuery { jobs, readd: request.readd };
        let functions = app.node().functions();
        let read = move |reader: &dyn Queries| {
            let jobs = Jobs::read(reader)?.asking(functions);
            let refused = asked.jobs.iter().find_map(|job| Some(Refusal::NoJobId(job.clone(), jobs.no_way(job)?)));
            refused.map_or_else(|| jobs::outlook(&jobs, reader, &asked).map(Ok), |refused| Ok(Err(refused)))
        };
        let outlook = app.read(read).await?.map_err(Fault::from)?;
        return Ok(Json(SubmitResultDto::Outlook(OutlookDto::from_library(outlook))));
    }
    let ask = kelos_core::SubmitRequest {
        jobs: jobs.clone(),
        priority,
        readd: request.readd,
        arguments: request.arguments,
        reason: request.reason,
    };
    let became = app.ask(&by, ask).await?;
    let known = app.read(Jobs::read).await?;
    let items = jobs.iter().zip(became).map(|(job, became)| submitted(job, became, &known)).collect();
    Ok(Json(SubmitResultDto::Submitted(SubmittedListDto { items })))
}

/// The priority as the scheduler has it: larger is more urgent and 0 is the default.
fn priority(given: Option<i32>) -> Result<i32, Fault> {
    let given = given.unwrap_or(LAST_PRIORITY);
    if !(1..=LAST_PRIORITY).contains(&given) {
        let detail = format!("`priority` is {given}, expected 1 (first) to {LAST_PRIORITY} (last)");
        return Err(Fault::bad_request("bad-body", detail));
    }
    Ok(LAST_PRIORITY - given)
}

fn submitted(job: &SlotRef, became: SubmitOutcome, known: &Jobs) -> SubmittedDto {
    let (result, state, descendants) = match became {
        SubmitOutcome::Opened => ("opened", None, None),
        SubmitOutcome::Reopened { descendants } => ("reopened", None, Some(descendants)),
        SubmitOutcome::Existed(state) => ("existed", Some(state.as_str()), None),
    };
    SubmittedDto {
        slot: job.into(),
        result: result.into(),
        state: state.map(Into::into),
        descendants,
        no_group: known.no_group(job),
        nameless_children: known.nameless_children(job),
    }
}

/// The jobs of a request, their ids in the normal form.
async fn named(app: &App, names: &[JobName]) -> Result<Vec<SlotRef>, Fault> {
    if names.is_empty() || names.len() > MOST_SUBMITTED {
        let detail = format!("`jobs` has {} elements, expected 1 to {MOST_SUBMITTED}", names.len());
        return Err(Fault::bad_request("bad-body", detail));
    }
    let mut known: BTreeMap<&WorkflowId, Keys> = BTreeMap::new();
    let mut jobs = Vec::with_capacity(names.len());
    for name in names {
        if !known.contains_key(&name.workflow) {
            known.insert(&name.workflow, keys(app, &name.workflow).await?);
        }
        let Some(keys) = known.get(&name.workflow) else { continue };
        let key = key::job(app, keys, &name.job).await.map_err(|problem| problem.about(&name.workflow))?;
        jobs.push(SlotRef::new(name.workflow.clone(), key));
    }
    Ok(jobs)
}

/// The keys of a workflow that is defined now and keyed by job ids.
async fn keys(app: &App, id: &WorkflowId) -> Result<Keys, Fault> {
    let of = id.clone();
    let row = app.read(move |reader| reader.workflow(&of)).await?.filter(|row| row.present);
    let row = row.ok_or_else(|| super::workflows::unknown(id))?;
    match &row.definition.keys {
        keys @ Keys::Jobs(_) => Ok(keys.clone()),
        Keys::Schedule(_) | Keys::Events(_) | Keys::Requests(_) => {
            let detail = format!("\"{id}\" has a schedule, expected a workflow that is keyed by job ids");
            Err(Fault::bad_request("not-keyed", detail)
                .with_hint("its slots are opened by rerunning or backfilling them"))
        }
    }
}

/// The jobs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JobListQuery {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only in one of these states, by name with commas between.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Names<SlotState>,
    /// How many at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

/// Lists the jobs that were ever opened, by workflow, ascending by job id.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobListQuery), responses(
    (status = 200, description = "A page of jobs", body = PageDto<SlotDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(Query(wanted): Query<JobListQuery>, app: App) -> Result<Json<PageDto<SlotDto>>, Fault> {
    // Jobs are at the beginning of time, where no schedule has slots.
    let start = Timestamp::UNIX_EPOCH;
    let range = Some(Range::new(start, start + SignedDuration::from_millis(1)));
    let filter = SlotFilter { workflow: wanted.workflow, states: wanted.state.0, range, ..SlotFilter::default() };
    let rows = app.read(move |reader| {
        let mut page = reader.slots(&filter, PageRequest::newest(wanted.limit.0).after(wanted.cursor.as_deref()))?;
        page.rows.retain(|row| row.id.key.job().is_some());
        Ok(page)
    });
    Ok(Json(page(rows.await?, SlotDto::from_library)))
}

/// A job in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct JobPath {
    /// The id of the workflow.
    #[param(value_type = String)]
    workflow: WorkflowId,
    /// The job id, with or without a `~` before it.
    job: String,
}

impl JobPath {
    async fn job(&self, app: &App) -> Result<SlotRef, Fault> {
        let keys = keys(app, &self.workflow).await?;
        Ok(SlotRef::new(self.workflow.clone(), key::job(app, &keys, &self.job).await?))
    }
}

/// The part of a list to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// How many jobs to skip at the beginning (of each group); by default 0.
    #[serde(default)]
    #[param(value_type = Option<u32>)]
    offset: usize,
    /// How many at most (of each group): 1 to 10000, by default 1000.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<usize>,
}

impl Part {
    fn limit(&self) -> Result<usize, Fault> {
        let limit = self.limit.unwrap_or(USUAL_RELATIVES);
        let refused = || Fault::bad_request("bad-query", format!("`limit` is {limit}, expected 1 to {MOST_SUBMITTED}"));
        (1..=MOST_SUBMITTED).contains(&limit).then_some(limit).ok_or_else(refused)
    }
}

impl FromLibrary<&Relative> for RelativeDto {
    fn from_library(one: &Relative) -> RelativeDto {
        RelativeDto { slot: (&one.job).into(), state: Some(one.state.map(|state| state.as_str().into())), group: None }
    }
}

fn group(group: &RelativeGroup, offset: usize, limit: usize) -> GroupDto {
    GroupDto {
        group: group.name.to_string(),
        total: group.total(),
        unwritable: group.unwritable.iter().map(UnwritableDto::from).collect(),
        succeeded: Some(group.succeeded()),
        ended_without_success: Some(group.ended_badly().count()),
        jobs: group.jobs.iter().skip(offset).take(limit).map(RelativeDto::from_library).collect(),
    }
}

/// Lists the parents of a job with their states.
#[utoipa::path(get, path = "/jobs/{workflow}/{job}/parents", tag = "jobs", params(JobPath, Part), responses(
    (status = 200, description = "Its parents, by group", body = ParentsDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn parents(
    Path(path): Path<JobPath>,
    Query(part): Query<Part>,
    app: App,
) -> Result<Json<ParentsDto>, Fault> {
    let (limit, job) = (part.limit()?, path.job(&app).await?);
    let of = job.clone();
    let functions = app.node().functions();
    let read = move |reader: &dyn Queries| {
        let jobs = Jobs::read(reader)?.asking(functions);
        Ok((jobs::parents(&jobs, reader, &of)?, jobs.no_group(&of)))
    };
    let (groups, no_group) = app.read(read).await?;
    let any_of = groups.iter().map(|one| group(one, part.offset, limit)).collect();
    Ok(Json(ParentsDto { slot: (&job).into(), any_of, no_group }))
}

/// Lists the children of a job with their states.
#[utoipa::path(get, path = "/jobs/{workflow}/{job}/children", tag = "jobs", params(JobPath, Part), responses(
    (status = 200, description = "Its children", body = ChildrenDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn children(
    Path(path): Path<JobPath>,
    Query(part): Query<Part>,
    app: App,
) -> Result<Json<ChildrenDto>, Fault> {
    let (limit, job) = (part.limit()?, path.job(&app).await?);
    let of = job.clone();
    let functions = app.node().functions();
    let read = move |reader: &dyn Queries| {
        let jobs = Jobs::read(reader)?.asking(functions);
        Ok((jobs::children(&jobs, reader, &of)?, jobs.unwritable_children(&of)))
    };
    let (found, unwritable) = app.read(read).await?;
    let shown = found.iter().skip(part.offset).take(limit);
    let children = shown
        .map(|(one, group)| RelativeDto { group: Some(group.to_string()), ..RelativeDto::from_library(one) })
        .collect();
    let unwritable = unwritable.iter().map(UnwritableDto::from).collect();
    Ok(Json(ChildrenDto { slot: (&job).into(), total: found.len(), children, unwritable }))
}
