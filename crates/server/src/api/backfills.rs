//! Backfills: named requests over past slots.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kelos::core::{Ask, BackfillRequest, Done};
use kelos::model::ranges::Range;
use kelos::model::time::{format_full, format_short};
use kelos::model::workflow::{Backfill, BackfillMode};
use kelos::model::{BackfillId, SlotRef, WorkflowId};
use kelos::store::{Reader, SlotFilter, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::dto::{Counts, Instant, ListDto, counts, mode_name};
use super::extract::{At, BackfillPath, Body, NoParameters, Path, Query, Who};
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
}

impl From<Backfill> for BackfillDto {
    fn from(backfill: Backfill) -> BackfillDto {
        BackfillDto {
            id: backfill.id.into(),
            workflow: backfill.workflow.into(),
            from: backfill.range.start.into(),
            to: backfill.range.end.into(),
            mode: mode_name(backfill.mode),
            priority: backfill.priority,
            by: backfill.by,
            created_at: backfill.created_at.into(),
            cancelled_at: backfill.cancelled_at.map(Instant),
            slots: backfill.slots,
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
    pub(crate) total: u64,
    /// How many of those are not waiting or running for it any more; some may belong to a later backfill.
    pub(crate) ended: u64,
    /// `ended` as a share of `total`, 0 to 1.
    share: f64,
}

/// How far a backfill is.
pub(crate) fn progress(reader: &dyn Reader, backfill: Backfill) -> Result<ProgressDto, StoreError> {
    let filter = SlotFilter {
        workflow: Some(backfill.workflow.clone()),
        backfill: Some(backfill.id.clone()),
        ..SlotFilter::default()
    };
    let states = reader.slot_counts(&filter)?;
    let live: u64 = states.iter().filter(|(state, _)| !state.is_final()).map(|(_, slots)| slots).sum();
    let total = u64::from(backfill.slots);
    let ended = total.saturating_sub(live);
    let share = if total == 0 { 1.0 } else { ended as f64 / total as f64 };
    Ok(ProgressDto { backfill: backfill.into(), counts: counts(states), total, ended, share })
}

fn find(reader: &dyn Reader, id: &BackfillId) -> Result<Option<Backfill>, StoreError> {
    Ok(reader.backfills()?.into_iter().find(|backfill| backfill.id == *id))
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
    let rows = app.read(|reader| reader.backfills()).await?;
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
    let name = id.clone();
    let read = move |reader: &dyn Reader| find(reader, &name)?.map(|found| progress(reader, found)).transpose();
    app.read(read).await?.ok_or_else(|| unknown(&id))
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
    /// Only say what would happen.
    #[serde(default)]
    dry_run: bool,
}

fn after_current_work() -> i32 {
    -1
}

impl Request {
    /// A request under a derived name.
    pub(crate) fn new(workflow: WorkflowId, range: Range, mode: BackfillMode, priority: i32, dry_run: bool) -> Request {
        let mode = match mode {
            BackfillMode::Missing => Mode::Missing,
            BackfillMode::Unsuccessful => Mode::Unsuccessful,
            BackfillMode::All => Mode::All,
        };
        Request { workflow, from: At(range.start), to: At(range.end), mode, priority, name: None, dry_run }
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
    pub(crate) id: String,
    /// Whether this only says what would happen.
    dry_run: bool,
    /// Slots that did not exist and are planned.
    pub(crate) created: Touched,
    /// Slots that had ended and are opened again.
    pub(crate) reopened: Touched,
    /// Slots that were live and are taken over.
    pub(crate) adopted: Touched,
    /// How many slots stay as they are.
    pub(crate) untouched: u32,
}

/// Slots that a backfill touches in the same way.
#[derive(Serialize, ToSchema)]
pub(crate) struct Touched {
    /// How many.
    pub(crate) count: usize,
    /// Their times, ascending; the first 1000.
    pub(crate) times: Vec<Instant>,
}

impl From<Vec<SlotRef>> for Touched {
    fn from(slots: Vec<SlotRef>) -> Touched {
        let times = slots.iter().take(TIMES_LISTED).map(|slot| Instant(slot.key.scheduled_at()));
        Touched { count: slots.len(), times: times.collect() }
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
    Who(by): Who,
    State(app): State<App>,
    Body(request): Body<Request>,
) -> Result<Response, Problem> {
    let made = make(&app, &by, request).await?;
    if made.dry_run {
        return Ok(Json(made).into_response());
    }
    let name = percent_encoding::utf8_percent_encode(&made.id, percent_encoding::NON_ALPHANUMERIC);
    let location = [(header::LOCATION, format!("/api/v1/backfills/{name}"))];
    Ok((StatusCode::CREATED, location, Json(made)).into_response())
}

/// Makes a backfill, or says what it would do.
pub(crate) async fn make(app: &App, by: &str, request: Request) -> Result<Made, Problem> {
    let range = Range::new(request.from.0, request.to.0);
    if range.is_empty() {
        let (from, to) = (format_full(range.start), format_full(range.end));
        let detail = format!("`from` is {from} and `to` is {to}, expected `from` before `to`");
        return Err(Problem::bad_request("bad-body", detail));
    }
    let taken = app.read(|reader| reader.backfills()).await?;
    let (id, dry_run) = (request.name(&taken)?, request.dry_run);
    let ask = Ask::Backfill(BackfillRequest {
        id: id.clone(),
        workflow: request.workflow,
        range,
        mode: match request.mode {
            Mode::Missing => BackfillMode::Missing,
            Mode::Unsuccessful => BackfillMode::Unsuccessful,
            Mode::All => BackfillMode::All,
        },
        priority: request.priority,
        dry_run,
    });
    let Done::Backfill { created, reopened, adopted, untouched } = app.ask(by, ask).await? else {
        return Err(unknown(&id));
    };
    Ok(Made {
        id: id.to_string(),
        dry_run,
        created: created.into(),
        reopened: reopened.into(),
        adopted: adopted.into(),
        untouched,
    })
}

/// Kills what a backfill has waiting. What runs goes on; cancelling twice is fine.
#[utoipa::path(post, path = "/backfills/{id}/cancel", tag = "backfills", params(BackfillPath), responses(
    (status = 200, description = "It is cancelled", body = ProgressDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn cancel(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Who(by): Who,
    State(app): State<App>,
) -> Result<Json<ProgressDto>, Problem> {
    end(&app, &by, &path.id).await?;
    shown(&app, path.id).await.map(Json)
}

/// Cancels a backfill, unless that was done before. Gives what it was.
pub(crate) async fn end(app: &App, by: &str, id: &BackfillId) -> Result<Backfill, Problem> {
    let name = id.clone();
    let found = app.read(move |reader| find(reader, &name)).await?.ok_or_else(|| unknown(id))?;
    if found.cancelled_at.is_none() {
        app.ask(by, Ask::CancelBackfill(found.clone())).await?;
    }
    Ok(found)
}
