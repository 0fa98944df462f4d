//! The routes for workers: their offers, and the runs that they are assigned.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use kelos_executors::workers::{HubError, Seen};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_trust::Right;
use kelos_wire::{AssignmentDto, ListDto, OfferRequest, ProblemDetailsDto, WorkerDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::FromLibrary;
use super::extract::{Body, NoParameters, Path, Query};

/// Longest name of a worker, in bytes.
const LONGEST_NAME: usize = 200;

/// The worker in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct WorkerPath {
    /// Its name, unique for each process.
    name: String,
}

impl FromLibrary<Seen> for WorkerDto {
    fn from_library(seen: Seen) -> WorkerDto {
        WorkerDto {
            name: seen.name.to_string(),
            workflows: seen.workflows.iter().map(ToString::to_string).collect(),
            free: seen.free,
            runs: seen.runs.iter().map(|run| format!("{}#{}", run.slot.short(), run.number)).collect(),
        }
    }
}

/// Lists the workers that are there.
#[utoipa::path(get, path = "/workers", tag = "workers", responses(
    (status = 200, description = "The workers; none where the server runs jobs itself", body = ListDto<WorkerDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    _: Query<NoParameters>,
    headers: HeaderMap,
    app: App,
) -> Result<Json<ListDto<WorkerDto>>, Fault> {
    // A client that shows a token wants to know whether this is the right server.
    if headers.contains_key(header::AUTHORIZATION) && !app.access().is_required() && !app.may(Right::Work, None) {
        return Err(unknown(&app));
    }
    let view = app.view().await?;
    let is_seen = |worker: &Seen| {
        view.as_ref().is_none_or(|view| !worker.workflows.is_empty() && worker.workflows.iter().all(|id| view.has(id)))
    };
    let workers = app.node().desk().workers().into_iter().filter(is_seen);
    Ok(Json(ListDto { items: workers.map(WorkerDto::from_library).collect() }))
}

/// Reports the offer, the runs and the outcomes of a worker; answers once a run is assigned, or its wait is
/// over. For workers on the same machine, which show the token of the state's folder.
#[utoipa::path(post, path = "/workers/{name}/offer", tag = "workers", params(WorkerPath),
    request_body(content = Object, description = "What the worker says: `session` (as answered before), `count` (grows with \
        each request), `workflows`, `job`, `free`, `attempts`, `runs` ({run, externalId}), `reports` ({run, what}), \
        `waitMillis`, `leaves`, `process`"),
    responses(
        (status = 200, description = "`session`, `leaseMillis`, `starts` (runs to be done), `cancels` (runs to be ended), \
            `refused` (runs that are not the worker's any more)", body = Object),
        (status = 410, description = "The worker sent no heartbeat for too long, and its runs were taken away",
            body = ProblemDetailsDto, content_type = "application/problem+json"),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn offer(
    Path(path): Path<WorkerPath>,
    _: Query<NoParameters>,
    app: App,
    Body(offer): Body<OfferRequest>,
) -> Result<Json<AssignmentDto>, Fault> {
    if path.name.is_empty() || path.name.len() > LONGEST_NAME {
        let detail = format!("the name of the worker has {} bytes, expected 1 to {LONGEST_NAME}", path.name.len());
        return Err(Fault::bad_request("bad-worker", detail));
    }
    app.node().desk().hear(&path.name, offer).await.map(Json).map_err(refused)
}

fn refused(why: HubError) -> Fault {
    let detail = format!("failed to {why}");
    match why {
        HubError::GivenUp => Fault::new(StatusCode::GONE, "worker-given-up", detail),
        HubError::Closing => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "ending", detail),
        HubError::NotStored => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not-stored", detail),
        HubError::ByItself => Fault::conflict("runs-jobs-itself", detail)
            .with_hint("stop it, and `kelos worker` leads; or start it as `kelos up --workers`"),
    }
}

/// The fault of a request without the token that this server wrote down for its own user.
pub(crate) fn unknown(app: &App) -> Fault {
    if !app.access().takes_workers() {
        return refused(HubError::ByItself);
    }
    let detail = "the request does not show the token of this server, expected `authorization: Bearer TOKEN`";
    let fault = Fault::new(StatusCode::UNAUTHORIZED, "unknown-worker", detail);
    fault.with_hint("the token is in .kelos/server.json, which only the user who runs the server can read")
}
