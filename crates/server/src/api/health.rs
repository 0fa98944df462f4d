//! The server itself: how it is, which version, what is wrong with the scripts, a step.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_engine::{MENDING, Pace, Status};
use kelos_explain::schedule;
use kelos_model::WorkflowId;
use kelos_model::breach::THAWING;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::dto::{FreezeDto, Instant, ListDto, ProblemDto};
use super::extract::{At, Body, NoParameters, Query};
use crate::app::App;
use crate::problem::Problem;

/// How the server is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    /// `leading` (it schedules automatically), `stepped` (it leads, and waits to be stepped), `standby` (another
    /// server leads on the same data), `starting`, `troubled` (the store fails), `damaged` (what is stored does not agree with
    /// itself: nothing is scheduled) or `stopped`.
    status: &'static str,
    /// What the trouble is.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    /// The workflows that are left alone because the scheduler found something wrong in itself about them. All others go on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frozen: Vec<FrozenDto>,
    /// Position of the last event in the log.
    last_seq: Option<u64>,
    /// What the server's clock says.
    now: Instant,
}

/// A workflow that is left alone until somebody resumes it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FrozenDto {
    /// The workflow.
    workflow: String,
    /// Since when, and why.
    #[serde(flatten)]
    freeze: FreezeDto,
}

/// The workflows that are frozen.
fn frozen(reader: &dyn Queries) -> Result<Vec<FrozenDto>, StoreError> {
    let rows = reader.workflows(None)?;
    let dto = |row: WorkflowRow| Some(FrozenDto { workflow: row.id.to_string(), freeze: row.frozen()?.into() });
    Ok(rows.into_iter().filter_map(dto).collect())
}

/// Says whether the server does its work; 503 where it doesn't.
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, description = "It works, or stands by", body = Health),
    (status = 503, description = "It does not work", body = Health),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn health(_: Query<NoParameters>, State(app): State<App>) -> Response {
    let handle = app.handle();
    let (mut status, mut reason) = match (handle.status(), handle.pace()) {
        (Status::Leading { .. }, Pace::ByItself) => ("leading", None),
        (Status::Leading { .. }, Pace::Stepped) => ("stepped", None),
        (Status::Standby, _) => ("standby", None),
        (Status::Starting, _) => ("starting", None),
        (Status::Troubled { reason }, _) => ("troubled", Some(format!("failed to {reason}"))),
        (Status::Damaged { reason }, _) => ("damaged", Some(format!("failed to {reason}"))),
        (Status::Stopped, _) => ("stopped", None),
    };
    // The engine may be idle: only reading tells whether the store can be read.
    let last_seq = app.read(|reader| reader.last_seq()).await;
    if let Err(error) = last_seq.as_ref()
        && status != "damaged"
    {
        (status, reason) = ("troubled", Some(format!("failed to {error}")));
    }
    let works = matches!(status, "leading" | "stepped" | "standby");
    let code = if works { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let now = handle.now().into();
    // Where the store can't be read that is said already.
    let frozen = app.read(frozen).await.unwrap_or_default();
    let hint = match status {
        "damaged" => Some(MENDING),
        _ => (!frozen.is_empty()).then_some(THAWING),
    };
    (code, Json(Health { status, reason, hint, frozen, last_seq: last_seq.ok(), now })).into_response()
}

/// Which program this is.
#[derive(Serialize, ToSchema)]
pub(super) struct Version {
    /// Always `kelos`.
    name: &'static str,
    /// Its version.
    version: String,
}

/// Says which version this is.
#[utoipa::path(get, path = "/version", tag = "server", responses(
    (status = 200, description = "The version", body = Version),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn version(_: Query<NoParameters>, State(app): State<App>) -> Json<Version> {
    Json(Version { name: "kelos", version: app.version().to_owned() })
}

/// Lists what is wrong with the files of definitions, as of the latest load.
#[utoipa::path(get, path = "/problems", tag = "server", responses(
    (status = 200, description = "The problems; none is good", body = ListDto<ProblemDto>),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn problems(_: Query<NoParameters>, State(app): State<App>) -> Json<ListDto<ProblemDto>> {
    Json(ListDto::of(app.node().problems()))
}

/// A step that somebody asks for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StepRequest {
    /// The moment to step to; now where not given.
    #[schema(value_type = Option<String>)]
    time: Option<At>,
    /// Only these workflows; all where not given.
    #[schema(value_type = Option<Vec<String>>)]
    workflows: Option<BTreeSet<WorkflowId>>,
}

/// A step that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stepped {
    /// The moment that was stepped to.
    time: Instant,
    /// Position of the last event in the log after it.
    last_seq: u64,
}

/// Loads the scripts that changed, and steps the scheduler until nothing more can happen at that moment.
/// A server that schedules by itself looks at everything again, at its own time: it takes no `time`.
#[utoipa::path(post, path = "/step", tag = "server", request_body = Option<StepRequest>, responses(
    (status = 200, description = "It was stepped", body = Stepped),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn step(
    _: Query<NoParameters>,
    State(app): State<App>,
    Body(request): Body<StepRequest>,
) -> Result<Json<Stepped>, Problem> {
    if request.time.is_some() && app.handle().pace() == Pace::ByItself {
        let detail = "this server schedules by itself and can't be stepped to a moment";
        return Err(Problem::conflict("not-stepped", detail).with_hint("leave `time` out to evaluate everything now"));
    }
    let time = request.time.map_or_else(|| app.handle().now(), |at| at.0);
    if let Some(wanted) = &request.workflows {
        check_known(&app, wanted.clone()).await?;
    }
    app.node().step(time, request.workflows.map(Arc::new)).await?;
    let last_seq = app.read(|reader| reader.last_seq()).await?;
    Ok(Json(Stepped { time: time.into(), last_seq }))
}

/// Refuses names that no workflow has; new files count.
async fn check_known(app: &App, wanted: BTreeSet<WorkflowId>) -> Result<(), Problem> {
    app.node().reload().await;
    app.settle().await?;
    let missing = |reader: &dyn Queries| -> Result<Option<WorkflowId>, StoreError> {
        for id in wanted {
            if schedule::defined(reader, &id)?.is_none() {
                return Ok(Some(id));
            }
        }
        Ok(None)
    };
    match app.read(missing).await? {
        Some(id) => Err(super::workflows::unknown(&id)),
        None => Ok(()),
    }
}
