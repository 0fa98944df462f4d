//! Jobs: submitting them, listing them, and what waits for what.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{Refusal, SubmitRequest, Submitted};
use kelos_explain::jobs::{self, Asked, Expected, Jobs, Outlook, Relative, RelativeGroup};
use kelos_model::jobs::Unwritable;
use kelos_model::ranges::Range;
use kelos_model::workflow::Keys;
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{Paging, Queries, SlotFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::dto::{PageDto, SlotDto, SlotNameDto};
use super::extract::{Body, Caller, Limit, Names, NoParameters, Path, Query};
use crate::app::App;
use crate::key;
use crate::problem::Problem;

/// Jobs that one request submits at the most.
const MOST_SUBMITTED: usize = 10_000;
/// The priority that goes last, and the usual one. The first is 1.
const LAST_PRIORITY: i32 = 100;
/// Relatives that are listed of each group where nothing is said.
const USUAL_RELATIVES: usize = 1000;

/// Jobs to be submitted.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SubmitRequest)]
pub(super) struct Request {
    /// Which: 1 to 10,000.
    jobs: Vec<JobName>,
    /// 1 goes first, 100 last; 100 where not given. What is opened for them has theirs.
    #[schema(minimum = 1, maximum = 100)]
    priority: Option<i32>,
    /// Open those again that have ended, with all that depends on them and has ended.
    #[serde(default)]
    readd: bool,
    /// Why, in their words, for the log.
    reason: Option<String>,
    /// Only say what would run.
    #[serde(default)]
    dry_run: bool,
}

/// The name of a job.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct JobName {
    /// Whose job.
    #[schema(value_type = String)]
    workflow: WorkflowId,
    /// Its job id.
    job: String,
}

/// What became of jobs that were submitted, or what would.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Answer {
    /// What became of them.
    Submitted(SubmittedList),
    /// What would happen.
    Outlook(OutlookDto),
}

/// What became of jobs that were submitted.
#[derive(Serialize, ToSchema)]
pub(super) struct SubmittedList {
    /// One for each, in the order in which they were given.
    items: Vec<SubmittedDto>,
}

/// What became of a job that was submitted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SubmittedDto {
    /// Whose job.
    workflow: String,
    /// Its job id, in its normal form.
    job: String,
    /// `opened`; `reopened`, where it had ended; or `existed`, where it was left as it is.
    result: &'static str,
    /// Where it stood, of one that existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// How many that depend on it were opened again, of one that was opened again.
    #[serde(skip_serializing_if = "Option::is_none")]
    descendants: Option<u32>,
    /// Why it waits for no job though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_group: Option<String>,
    /// The jobs that wait for it and are never opened, since their ids can't be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    nameless_children: Option<String>,
}

/// What would happen if jobs were submitted, and all that runs succeeded.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlookDto {
    /// Always true.
    dry_run: bool,
    /// How many jobs would come to what: by `fate`.
    counts: BTreeMap<&'static str, usize>,
    /// Each job once, after those that it waits for; the first 10,000.
    items: Vec<ExpectedDto>,
    /// Whether there is more than is listed.
    cut: bool,
}

/// What would become of a job.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExpectedDto {
    /// Whose job.
    workflow: String,
    /// Its job id.
    job: String,
    /// Where it stands now; none where it was never opened.
    state: Option<&'static str>,
    /// `ancestor`, `asked` (it is one of those that were named) or `descendant`.
    role: &'static str,
    /// `runs`, `under-way` (it goes on anyway), `ended` (it is left as it is), `blocked`, `skipped` or `paused`
    /// (its workflow is).
    fate: &'static str,
    /// Whether a function of its workflow has the last word on whether it is worth running.
    asked_when_opened: bool,
    /// Who blocks it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<SlotNameDto>,
    /// How many more do.
    #[serde(skip_serializing_if = "is_zero")]
    more_blockers: usize,
    /// Why it would wait for no job though its workflow depends on others.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_group: Option<String>,
    /// Why it could never run: the jobs that it waits for can't all be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_way: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn job_id(slot: &SlotRef) -> String {
    slot.key.job().map(|id| id.to_string()).unwrap_or_default()
}

impl From<&Expected> for ExpectedDto {
    fn from(one: &Expected) -> ExpectedDto {
        ExpectedDto {
            workflow: one.job.workflow.to_string(),
            job: job_id(&one.job),
            state: one.state.map(SlotState::as_str),
            role: one.role.as_str(),
            fate: one.fate.as_str(),
            asked_when_opened: one.is_asked,
            blocked_by: one.blocked_by.iter().map(SlotNameDto::from).collect(),
            more_blockers: one.more_blockers,
            no_group: one.no_group.clone(),
            no_way: one.no_way.clone(),
        }
    }
}

impl From<Outlook> for OutlookDto {
    fn from(outlook: Outlook) -> OutlookDto {
        let mut counts = BTreeMap::new();
        outlook.jobs.iter().for_each(|one| *counts.entry(one.fate.as_str()).or_default() += 1);
        OutlookDto {
            dry_run: true,
            counts,
            items: outlook.jobs.iter().take(MOST_SUBMITTED).map(ExpectedDto::from).collect(),
            cut: outlook.is_cut || outlook.jobs.len() > MOST_SUBMITTED,
        }
    }
}

/// Opens jobs, with the ancestors that are missing. Where one can't be opened, none is.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = Request, responses(
    (status = 200, description = "What became of each, or what would happen", body = Answer),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn submit(
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(request): Body<Request>,
) -> Result<Json<Answer>, Problem> {
    let priority = priority(request.priority)?;
    let jobs = named(&app, &request.jobs).await?;
    if request.dry_run {
        let asked = Asked { jobs, readd: request.readd };
        let functions = app.node().functions();
        let read = move |reader: &dyn Queries| {
            let jobs = Jobs::read(reader)?.asking(functions);
            let refused = asked.jobs.iter().find_map(|job| Some(Refusal::NoJobId(job.clone(), jobs.no_way(job)?)));
            refused.map_or_else(|| jobs::outlook(&jobs, reader, &asked).map(Ok), |refused| Ok(Err(refused)))
        };
        let outlook = app.read(read).await?.map_err(Problem::from)?;
        return Ok(Json(Answer::Outlook(outlook.into())));
    }
    let ask = SubmitRequest { jobs: jobs.clone(), priority, readd: request.readd, reason: request.reason };
    let became = app.ask(&by, ask).await?;
    let known = app.read(Jobs::read).await?;
    let items = jobs.iter().zip(became).map(|(job, became)| SubmittedDto::of(job, became, &known)).collect();
    Ok(Json(Answer::Submitted(SubmittedList { items })))
}

/// As the scheduler has it, where larger goes first and 0 is usual.
fn priority(given: Option<i32>) -> Result<i32, Problem> {
    let given = given.unwrap_or(LAST_PRIORITY);
    if !(1..=LAST_PRIORITY).contains(&given) {
        let detail = format!("`priority` is {given}, expected 1 (first) to {LAST_PRIORITY} (last)");
        return Err(Problem::bad_request("bad-body", detail));
    }
    Ok(LAST_PRIORITY - given)
}

impl SubmittedDto {
    fn of(job: &SlotRef, became: Submitted, known: &Jobs) -> SubmittedDto {
        let (result, state, descendants) = match became {
            Submitted::Opened => ("opened", None, None),
            Submitted::Reopened { descendants } => ("reopened", None, Some(descendants)),
            Submitted::Existed(state) => ("existed", Some(state.as_str()), None),
        };
        SubmittedDto {
            workflow: job.workflow.to_string(),
            job: job_id(job),
            result,
            state,
            descendants,
            no_group: known.no_group(job),
            nameless_children: known.nameless_children(job),
        }
    }
}

/// The jobs of a request, their ids in the normal form.
async fn named(app: &App, names: &[JobName]) -> Result<Vec<SlotRef>, Problem> {
    if names.is_empty() || names.len() > MOST_SUBMITTED {
        let detail = format!("`jobs` has {} elements, expected 1 to {MOST_SUBMITTED}", names.len());
        return Err(Problem::bad_request("bad-body", detail));
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
async fn keys(app: &App, id: &WorkflowId) -> Result<Keys, Problem> {
    let of = id.clone();
    let row = app.read(move |reader| reader.workflow(&of)).await?.filter(|row| row.present);
    let row = row.ok_or_else(|| super::workflows::unknown(id))?;
    match &row.definition.keys {
        keys @ Keys::Jobs(_) => Ok(keys.clone()),
        Keys::Schedule(_) | Keys::Events(_) | Keys::Requests(_) => {
            let detail = format!("\"{id}\" has a schedule, expected a workflow that is keyed by job ids");
            Err(Problem::bad_request("not-keyed", detail)
                .with_hint("its slots are opened by rerunning or backfilling them"))
        }
    }
}

/// Which jobs.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only in one of these states, by name with commas between.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Names<SlotState>,
    /// How many at the most: 1 to 1000, 100 where not given.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Lists the jobs that were ever opened, by workflow, ascending by job id.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(Wanted), responses(
    (status = 200, description = "A page of jobs", body = PageDto<SlotDto>),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Query(wanted): Query<Wanted>,
    State(app): State<App>,
) -> Result<Json<PageDto<SlotDto>>, Problem> {
    // Jobs lie at the beginning of time, where no schedule has slots.
    let start = Timestamp::UNIX_EPOCH;
    let range = Some(Range::new(start, start + SignedDuration::from_millis(1)));
    let filter = SlotFilter { workflow: wanted.workflow, states: wanted.state.0, range, ..SlotFilter::default() };
    let page = app.read(move |reader| {
        let mut page = reader.slots(&filter, Paging::newest(wanted.limit.0).after(wanted.cursor.as_deref()))?;
        page.rows.retain(|row| row.id.key.job().is_some());
        Ok(page)
    });
    Ok(Json(PageDto::of(page.await?)))
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
    async fn job(&self, app: &App) -> Result<SlotRef, Problem> {
        let keys = keys(app, &self.workflow).await?;
        Ok(SlotRef::new(self.workflow.clone(), key::job(app, &keys, &self.job).await?))
    }
}

/// Which part of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// How many jobs to leave out at the beginning (of each group); 0 where not given.
    #[serde(default)]
    #[param(value_type = Option<u32>)]
    offset: usize,
    /// How many at the most (of each group): 1 to 10000, 1000 where not given.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<usize>,
}

impl Part {
    fn limit(&self) -> Result<usize, Problem> {
        let limit = self.limit.unwrap_or(USUAL_RELATIVES);
        let refused =
            || Problem::bad_request("bad-query", format!("`limit` is {limit}, expected 1 to {MOST_SUBMITTED}"));
        (1..=MOST_SUBMITTED).contains(&limit).then_some(limit).ok_or_else(refused)
    }
}

/// What a job waits for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentsDto {
    /// The job.
    #[serde(flatten)]
    job: SlotNameDto,
    /// The groups that are about it: all jobs of any one of them must succeed. None at all means that it waits for nothing.
    any_of: Vec<GroupDto>,
    /// Why there are none though its workflow depends on others: an identifier that none of its groups is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_group: Option<String>,
}

/// Jobs of which one waits for all.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GroupDto {
    /// Its name.
    group: String,
    /// How many jobs it has, with those that can't be named.
    total: usize,
    /// Those of them that can't be named: the group is never met.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unwritable: Vec<UnwritableDto>,
    /// How many of them succeeded.
    succeeded: usize,
    /// How many of them ended without success.
    ended_without_success: usize,
    /// The part of them that was asked for.
    jobs: Vec<RelativeDto>,
}

/// Jobs of a workflow that belong to one by what is written, and can't be named.
#[derive(Serialize, ToSchema)]
struct UnwritableDto {
    /// Whose jobs.
    workflow: String,
    /// The group by which they belong to it.
    group: String,
    /// How many.
    count: usize,
    /// Why: a word that stays the same.
    code: String,
    /// Why, in words.
    why: String,
}

impl From<&Unwritable> for UnwritableDto {
    fn from(one: &Unwritable) -> UnwritableDto {
        UnwritableDto {
            workflow: one.workflow.to_string(),
            group: one.group.to_string(),
            count: one.count,
            code: one.why.code().to_owned(),
            why: one.why.to_string(),
        }
    }
}

/// A job beside another.
#[derive(Serialize, ToSchema)]
struct RelativeDto {
    /// The job.
    #[serde(flatten)]
    job: SlotNameDto,
    /// Where it stands; none where it was never opened.
    state: Option<&'static str>,
    /// The group by which it waits; of a child.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

impl From<&Relative> for RelativeDto {
    fn from(one: &Relative) -> RelativeDto {
        RelativeDto { job: (&one.job).into(), state: one.state.map(SlotState::as_str), group: None }
    }
}

impl GroupDto {
    fn of(group: &RelativeGroup, offset: usize, limit: usize) -> GroupDto {
        GroupDto {
            group: group.name.to_string(),
            total: group.total(),
            unwritable: group.unwritable.iter().map(UnwritableDto::from).collect(),
            succeeded: group.succeeded(),
            ended_without_success: group.ended_badly().count(),
            jobs: group.jobs.iter().skip(offset).take(limit).map(RelativeDto::from).collect(),
        }
    }
}

/// Lists what a job waits for, with where it stands.
#[utoipa::path(get, path = "/jobs/{workflow}/{job}/parents", tag = "jobs", params(JobPath, Part), responses(
    (status = 200, description = "Its parents, by group", body = ParentsDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn parents(
    Path(path): Path<JobPath>,
    Query(part): Query<Part>,
    State(app): State<App>,
) -> Result<Json<ParentsDto>, Problem> {
    let (limit, job) = (part.limit()?, path.job(&app).await?);
    let of = job.clone();
    let functions = app.node().functions();
    let read = move |reader: &dyn Queries| {
        let jobs = Jobs::read(reader)?.asking(functions);
        Ok((jobs::parents(&jobs, reader, &of)?, jobs.no_group(&of)))
    };
    let (groups, no_group) = app.read(read).await?;
    let any_of = groups.iter().map(|group| GroupDto::of(group, part.offset, limit)).collect();
    Ok(Json(ParentsDto { job: (&job).into(), any_of, no_group }))
}

/// What waits for a job.
#[derive(Serialize, ToSchema)]
pub(super) struct ChildrenDto {
    /// The job.
    #[serde(flatten)]
    job: SlotNameDto,
    /// How many there are.
    total: usize,
    /// The part of them that was asked for.
    children: Vec<RelativeDto>,
    /// Those that can't be named, and are never opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unwritable: Vec<UnwritableDto>,
}

/// Lists what waits for a job, with where it stands.
#[utoipa::path(get, path = "/jobs/{workflow}/{job}/children", tag = "jobs", params(JobPath, Part), responses(
    (status = 200, description = "Its children", body = ChildrenDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn children(
    Path(path): Path<JobPath>,
    Query(part): Query<Part>,
    State(app): State<App>,
) -> Result<Json<ChildrenDto>, Problem> {
    let (limit, job) = (part.limit()?, path.job(&app).await?);
    let of = job.clone();
    let functions = app.node().functions();
    let read = move |reader: &dyn Queries| {
        let jobs = Jobs::read(reader)?.asking(functions);
        Ok((jobs::children(&jobs, reader, &of)?, jobs.unwritable_children(&of)))
    };
    let (found, unwritable) = app.read(read).await?;
    let shown = found.iter().skip(part.offset).take(limit);
    let children = shown.map(|(one, group)| RelativeDto { group: Some(group.to_string()), ..one.into() }).collect();
    let unwritable = unwritable.iter().map(UnwritableDto::from).collect();
    Ok(Json(ChildrenDto { job: (&job).into(), total: found.len(), children, unwritable }))
}
