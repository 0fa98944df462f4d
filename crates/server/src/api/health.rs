//! The server itself: its health, its version, problems of the scripts, a step.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kelos_engine::{MENDING, Pace};
use kelos_explain::{failures, schedule};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_model::breach::THAWING;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};
use kelos_trust::Right;
use kelos_wire::{
    FrozenDto, HealthDto, ListDto, ProblemDetailsDto, ProblemDto, StepRequest, StepResultDto, VersionDto,
};

use super::dto;
use super::extract::{Body, NoParameters, Query};
use super::projects::without_others;
use crate::health::Health;

/// The workflows that are frozen.
fn frozen(reader: &dyn Queries) -> Result<Vec<FrozenDto>, StoreError> {
    let rows = reader.workflows(None)?;
    let dto = |row: WorkflowRow| Some(FrozenDto { workflow: row.id.to_string(), freeze: row.frozen()?.into() });
    Ok(rows.into_iter().filter_map(dto).collect())
}

/// Reports whether the server works; 503 if it doesn't.
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, description = "It works, or stands by", body = HealthDto),
    (status = 503, description = "It does not work", body = HealthDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn health(_: Query<NoParameters>, app: App) -> Response {
    let health = Health::of(&app).await;
    let works = health.works();
    let Health { status, reason, last_seq, .. } = health;
    let reason = reason.map(|reason| format!("failed to {reason}"));
    let code = if works { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let now = app.handle().now();
    // If the store can't be read, that is reported already.
    let frozen = app.read(frozen).await.unwrap_or_default();
    let failures = app.read(move |reader| failures::find(reader, now)).await.ok();
    let hint = match status {
        "damaged" => Some(MENDING),
        _ => (!frozen.is_empty()).then_some(THAWING),
    };
    (
        code,
        Json(HealthDto {
            status: status.into(),
            reason,
            hint: hint.map(str::to_owned),
            frozen,
            failures: failures.map(|found| found.rows.len()),
            last_seq,
            now: now.into(),
        }),
    )
        .into_response()
}

/// Says which version this is.
#[utoipa::path(get, path = "/version", tag = "server", responses(
    (status = 200, description = "The version", body = VersionDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn version(_: Query<NoParameters>, app: App) -> Json<VersionDto> {
    Json(VersionDto { name: "kelos".into(), version: app.version().to_owned() })
}

/// Lists the problems of the files of definitions, as of the latest load.
#[utoipa::path(get, path = "/problems", tag = "server", responses(
    (status = 200, description = "The problems; none is good", body = ListDto<ProblemDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn problems(_: Query<NoParameters>, app: App) -> Result<Json<ListDto<ProblemDto>>, Fault> {
    let (view, mut problems) = (app.view().await?, app.node().problems());
    if let Some(view) = view {
        problems.retain(|problem| view.has_file(&problem.file));
        problems = problems.into_iter().map(|problem| without_others(problem, &view)).collect();
    }
    Ok(Json(dto::list(problems)))
}

/// Loads the scripts that changed, and steps the scheduler until nothing more can happen at that moment.
/// A server that schedules automatically evaluates everything again, at its own time: it takes no `time`.
#[utoipa::path(post, path = "/step", tag = "server", request_body = Option<StepRequest>, responses(
    (status = 200, description = "It was stepped", body = StepResultDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn step(
    _: Query<NoParameters>,
    app: App,
    Body(request): Body<StepRequest>,
) -> Result<Json<StepResultDto>, Fault> {
    if request.time.is_some() && app.handle().pace() == Pace::ByItself {
        let detail = "this server schedules by itself and can't be stepped to a moment";
        return Err(Fault::conflict("not-stepped", detail).with_hint("leave `time` out to evaluate everything now"));
    }
    app.require(Right::Operate, None, "POST /api/v1/step")?;
    let time = request.time.map_or_else(|| app.handle().now(), |at| at.0);
    if let Some(wanted) = &request.workflows {
        check_known(&app, wanted.clone()).await?;
    }
    app.node().step(time, request.workflows.map(Arc::new)).await?;
    let last_seq = app.read(|reader| reader.last_seq()).await?;
    Ok(Json(StepResultDto { time: time.into(), last_seq }))
}

/// Refuses names that no workflow has; new files count.
async fn check_known(app: &App, wanted: BTreeSet<WorkflowId>) -> Result<(), Fault> {
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
