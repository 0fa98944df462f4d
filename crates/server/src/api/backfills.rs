//! Backfills: named requests over past slots. Asked for, looked at, paused, resumed, put first or last, opened again
//! where they failed, cancelled.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kelos_core::{
    BackfillOutcome, BackfillRequest, CancelBackfill, PauseBackfill, PrioritiseBackfill, RerunBackfill, ResumeBackfill,
    SlotList,
};
use kelos_explain::backfill::{Estimate, Progress, progress};
use kelos_model::ranges::Range;
use kelos_model::time::{format_full, format_short};
use kelos_model::workflow::{Backfill, BackfillMode};
use kelos_model::{Actor, BackfillId, WorkflowId};
use kelos_store::BackfillFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::dto::{Counts, Instant, ListDto, counts, mode_name};
use super::extract::{At, BackfillPath, Body, Caller, NoParameters, Path, Query};
use super::slots::Because;
use crate::app::App;
use crate::problem::Problem;

/// Times that an answer lists of each kind; the counts are always whole.
const TIMES_LISTED: usize = 1000;

/// A backfill.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackfillDto {
    /// Its name.
    id: String,
    /// Whose slots.
    workflow: String,
    /// From this time on.
    from: Instant,
    /// Before this time.
    to: Instant,
    /// Which existing slots it reopened: `missing` (none), `unsuccessful` or `all`.
    mode: &'static str,
    /// Larger goes first.
    priority: i32,
    /// Who asked.
    by: String,
    /// When.
    created_at: Instant,
    /// When it was cancelled.
    cancelled_at: Option<Instant>,
    /// How many slots it asked for.
    slots: u32,
    /// Why, in the words of who asked.
    reason: Option<String>,
    /// Since when it is paused.
    paused_at: Option<Instant>,
    /// Who paused it.
    paused_by: Option<String>,
    /// When it was last resumed.
    resumed_at: Option<Instant>,
}

impl From<Backfill> for BackfillDto {
    fn from(backfill: Backfill) -> BackfillDto {
        let (paused_at, paused_by) = backfill.paused.map(|pause| (Instant(pause.at), pause.by.to_string())).unzip();
        BackfillDto {
            id: backfill.id.into(),
            workflow: backfill.workflow.into(),
            from: backfill.range.start.into(),
            to: backfill.range.end.into(),
            mode: mode_name(backfill.mode),
            priority: backfill.priority,
            by: backfill.by.to_string(),
            created_at: backfill.created_at.into(),
            cancelled_at: backfill.cancelled_at.map(Instant),
            slots: backfill.slots,
            reason: backfill.reason,
            paused_at,
            paused_by,
            resumed_at: backfill.resumed_at.map(Instant),
        }
    }
}

/// A backfill and how far it is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressDto {
    #[serde(flatten)]
    backfill: BackfillDto,
    /// How many of its slots are in each state.
    #[schema(value_type = std::collections::BTreeMap<String, u64>)]
    counts: Counts,
    /// How many slots it asked for.
    total: u64,
    /// How many of those are not waiting or running for it any more; some may belong to a later backfill.
    ended: u64,
    /// `ended` as a share of `total`, 0 to 1.
    share: f64,
    /// How many of its slots failed or expired: those that a rerun opens again.
    failures: u64,
    /// When it will be done.
    estimate: EstimateDto,
}

/// When a backfill will be done.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EstimateDto {
    /// At about this moment; null where nobody can tell, and where it is done.
    done_at: Option<Instant>,
    /// What that goes by, or why nobody can tell, in words.
    text: String,
}

impl From<Estimate> for EstimateDto {
    fn from(estimate: Estimate) -> EstimateDto {
        let (done_at, text) = match estimate {
            Estimate::Over => (None, "all its slots have ended".to_owned()),
            Estimate::At(at, basis) => (Some(Instant(at)), basis.to_string()),
            Estimate::None(why) => (None, format!("no estimate yet: {why}")),
        };
        EstimateDto { done_at, text }
    }
}

impl From<Progress> for ProgressDto {
    fn from(far: Progress) -> ProgressDto {
        ProgressDto {
            total: u64::from(far.backfill.slots),
            ended: far.ended(),
            share: far.share(),
            failures: far.failures(),
            counts: counts(far.counts),
            estimate: far.estimate.into(),
            backfill: far.backfill.into(),
        }
    }
}

fn unknown(id: &BackfillId) -> Problem {
    Problem::not_found("backfill-not-found", format!("no backfill is named \"{id}\""))
}

/// Which backfills.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
}

/// Lists backfills, newest first.
#[utoipa::path(get, path = "/backfills", tag = "backfills", params(Wanted), responses(
    (status = 200, description = "The backfills", body = ListDto<BackfillDto>),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Query(wanted): Query<Wanted>,
    State(app): State<App>,
) -> Result<Json<ListDto<BackfillDto>>, Problem> {
    let rows = app.read(|reader| reader.backfills(&BackfillFilter::default())).await?;
    let of = |row: &Backfill| wanted.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow);
    Ok(Json(ListDto::of(rows.into_iter().filter(of))))
}

/// Shows a backfill and how far it is.
#[utoipa::path(get, path = "/backfills/{id}", tag = "backfills", params(BackfillPath), responses(
    (status = 200, description = "The backfill", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn one(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    State(app): State<App>,
) -> Result<Json<ProgressDto>, Problem> {
    shown(&app, path.id).await.map(Json)
}

async fn shown(app: &App, id: BackfillId) -> Result<ProgressDto, Problem> {
    let (name, now) = (id.clone(), app.handle().now());
    let found =
        app.read(move |reader| reader.backfill(&name)?.map(|row| progress(reader, row, now)).transpose()).await?;
    found.map(ProgressDto::from).ok_or_else(|| unknown(&id))
}

/// Which existing slots a backfill opens again; those that don't exist are always planned.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// None.
    #[default]
    Missing,
    /// Those that ended without success.
    Unsuccessful,
    /// All that have ended.
    All,
}

/// A backfill that somebody asks for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = BackfillRequest)]
pub(crate) struct Request {
    /// Whose slots.
    #[schema(value_type = String)]
    workflow: WorkflowId,
    /// From this time on.
    #[schema(value_type = String)]
    from: At,
    /// Before this time.
    #[schema(value_type = String)]
    to: At,
    /// Which existing slots are opened again.
    #[serde(default)]
    mode: Mode,
    /// Larger goes first; below 0, as where not given, goes after current work.
    #[serde(default = "after_current_work")]
    #[schema(default = -1)]
    priority: i32,
    /// Its name; derived from the workflow and the range where not given.
    #[schema(value_type = Option<String>)]
    name: Option<BackfillId>,
    /// Why, in the words of who asks; for the log.
    #[serde(default)]
    reason: Option<String>,
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
}

fn after_current_work() -> i32 {
    -1
}

impl Request {
    /// A request for the slots of a range.
    pub(crate) fn new(workflow: WorkflowId, range: Range, mode: BackfillMode, priority: i32) -> Request {
        let mode = match mode {
            BackfillMode::Missing => Mode::Missing,
            BackfillMode::Unsuccessful => Mode::Unsuccessful,
            BackfillMode::All => Mode::All,
        };
        let (from, to) = (At(range.start), At(range.end));
        Request { workflow, from, to, mode, priority, name: None, reason: None, dry_run: false }
    }

    /// The same, under this name or a derived one, for this reason.
    pub(crate) fn named(self, name: Option<BackfillId>, reason: Option<String>) -> Request {
        Request { name, reason, ..self }
    }

    /// The same, only asking what would happen.
    pub(crate) fn dry(self) -> Request {
        Request { dry_run: true, ..self }
    }

    /// The name that was given, or the first of a row that is free.
    fn name(&self, taken: &[Backfill]) -> Result<BackfillId, Problem> {
        let free = |id: &BackfillId| taken.iter().all(|known| known.id != *id);
        if let Some(name) = self.name.clone() {
            let detail = format!("a backfill named \"{name}\" exists already, expected a new name");
            return if free(&name) { Ok(name) } else { Err(Problem::conflict("name-taken", detail)) };
        }
        let stem = format!("{}-{}-{}", self.workflow, format_short(self.from.0), format_short(self.to.0));
        let names = (1_u32..).map(|n| if n == 1 { stem.clone() } else { format!("{stem}-{n}") });
        let names = names.map(|name| BackfillId::new(&name));
        let found = names.map(|name| name.map_err(|error| Problem::bad_request("bad-body", error.to_string())));
        found.into_iter().find(|name| name.as_ref().map_or(true, free)).unwrap_or_else(|| Err(unknown_name()))
    }
}

fn unknown_name() -> Problem {
    Problem::conflict("name-taken", "all derived names are taken, expected a name")
}

/// What a backfill does, or would do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Made {
    /// Its name.
    id: String,
    /// Whether this only says what would happen.
    dry_run: bool,
    /// Slots that did not exist and are planned.
    created: Touched,
    /// Slots that had ended and are opened again.
    reopened: Touched,
    /// Slots that were live and are taken over.
    adopted: Touched,
    /// How many slots stay as they are.
    untouched: u64,
}

/// Slots that a backfill touches in the same way.
#[derive(Serialize, ToSchema)]
pub(crate) struct Touched {
    /// How many.
    count: u64,
    /// Their times, ascending; the first 1000.
    times: Vec<Instant>,
}

impl From<SlotList> for Touched {
    fn from(slots: SlotList) -> Touched {
        let times = slots.first.iter().take(TIMES_LISTED).filter_map(|slot| slot.key.time().map(Instant));
        Touched { count: slots.count, times: times.collect() }
    }
}

/// The same, with more of its slots.
pub(crate) struct Opened {
    pub(crate) id: BackfillId,
    dry_run: bool,
    pub(crate) created: SlotList,
    pub(crate) reopened: SlotList,
    pub(crate) adopted: SlotList,
    pub(crate) untouched: u64,
}

impl From<Opened> for Made {
    fn from(opened: Opened) -> Made {
        Made {
            id: opened.id.into(),
            dry_run: opened.dry_run,
            created: opened.created.into(),
            reopened: opened.reopened.into(),
            adopted: opened.adopted.into(),
            untouched: opened.untouched,
        }
    }
}

/// Opens the slots of a range, or says what that would do.
#[utoipa::path(post, path = "/backfills", tag = "backfills", request_body = Request, responses(
    (status = 200, description = "What would happen", body = Made),
    (status = 201, description = "It was made; the header `location` says where it is", body = Made),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn create(
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(request): Body<Request>,
) -> Result<Response, Problem> {
    let made = Made::from(make(&app, &by, request).await?);
    if made.dry_run {
        return Ok(Json(made).into_response());
    }
    let name = percent_encoding::utf8_percent_encode(&made.id, percent_encoding::NON_ALPHANUMERIC);
    let location = [(header::LOCATION, format!("/api/v1/backfills/{name}"))];
    Ok((StatusCode::CREATED, location, Json(made)).into_response())
}

/// Makes a backfill, or says what it would do.
pub(crate) async fn make(app: &App, by: &Actor, request: Request) -> Result<Opened, Problem> {
    let range = Range::new(request.from.0, request.to.0);
    if range.is_empty() {
        let (from, to) = (format_full(range.start), format_full(range.end));
        let detail = format!("`from` is {from} and `to` is {to}, expected `from` before `to`");
        return Err(Problem::bad_request("bad-body", detail));
    }
    let taken = app.read(|reader| reader.backfills(&BackfillFilter::default())).await?;
    let (id, dry_run) = (request.name(&taken)?, request.dry_run);
    let ask = BackfillRequest {
        id: id.clone(),
        workflow: request.workflow,
        range,
        mode: match request.mode {
            Mode::Missing => BackfillMode::Missing,
            Mode::Unsuccessful => BackfillMode::Unsuccessful,
            Mode::All => BackfillMode::All,
        },
        priority: request.priority,
        reason: request.reason,
        dry_run,
    };
    let BackfillOutcome { created, reopened, adopted, untouched } = app.ask(by, ask).await?;
    Ok(Opened { id, dry_run, created, reopened, adopted, untouched })
}

/// Asks for something to be done to a backfill, and shows what it is then.
async fn asked<R: kelos_core::Request>(
    app: &App,
    by: &Actor,
    id: BackfillId,
    request: impl FnOnce(BackfillId) -> R,
) -> Result<Json<ProgressDto>, Problem> {
    app.ask(by, request(id.clone())).await?;
    shown(app, id).await.map(Json)
}

/// Leaves its slots alone that have no run; what runs goes on. Pausing twice is fine.
#[utoipa::path(post, path = "/backfills/{id}/pause", tag = "backfills", params(BackfillPath), request_body = Because, responses(
    (status = 200, description = "It is paused", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn pause(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(because): Body<Because>,
) -> Result<Json<ProgressDto>, Problem> {
    asked(&app, &by, path.id, |backfill| PauseBackfill { backfill, reason: because.reason }).await
}

/// Ends a pause. Resuming what is not paused is fine.
#[utoipa::path(post, path = "/backfills/{id}/resume", tag = "backfills", params(BackfillPath), request_body = Because, responses(
    (status = 200, description = "It goes on", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn resume(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(because): Body<Because>,
) -> Result<Json<ProgressDto>, Problem> {
    asked(&app, &by, path.id, |backfill| ResumeBackfill { backfill, reason: because.reason }).await
}

/// What is to change of a backfill.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// Larger goes first; below 0 goes after current work.
    priority: i32,
    /// Why, in the words of who asks; for the log.
    reason: Option<String>,
}

/// Changes the priority of a backfill and of its slots that have not ended.
#[utoipa::path(patch, path = "/backfills/{id}", tag = "backfills", params(BackfillPath), request_body = Change, responses(
    (status = 200, description = "It has that priority", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn change(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(Change { priority, reason }): Body<Change>,
) -> Result<Json<ProgressDto>, Problem> {
    asked(&app, &by, path.id, |backfill| PrioritiseBackfill { backfill, priority, reason }).await
}

/// Opens the slots of a backfill again that failed or expired; they stay its own.
#[utoipa::path(post, path = "/backfills/{id}/rerun", tag = "backfills", params(BackfillPath), request_body = Because, responses(
    (status = 200, description = "They are open", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn rerun(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(because): Body<Because>,
) -> Result<Json<ProgressDto>, Problem> {
    asked(&app, &by, path.id, |backfill| RerunBackfill { backfill, reason: because.reason }).await
}

/// Kills what a backfill has waiting. What runs goes on; cancelling twice is fine.
#[utoipa::path(post, path = "/backfills/{id}/cancel", tag = "backfills", params(BackfillPath), request_body = Because, responses(
    (status = 200, description = "It is cancelled", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cancel(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(because): Body<Because>,
) -> Result<Json<ProgressDto>, Problem> {
    asked(&app, &by, path.id, |backfill| CancelBackfill { backfill, reason: because.reason }).await
}
