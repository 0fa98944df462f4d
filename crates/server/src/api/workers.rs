//! The routes for workers: their offers, and the runs that they are assigned.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use kelos_executors::workers::{HubError, Seen};
use kelos_front::App;
use kelos_front::fault::Fault;
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
    State(app): State<App>,
) -> Result<Json<ListDto<WorkerDto>>, Fault> {
    // Anybody may look; but a client that shows a token wants to know whether this is the right server.
    if headers.contains_key(header::AUTHORIZATION) {
        known(&app, &headers)?;
    }
    let workers = app.node().desk().workers().into_iter();
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
    State(app): State<App>,
    headers: HeaderMap,
    Body(offer): Body<OfferRequest>,
) -> Result<Json<AssignmentDto>, Fault> {
    known(&app, &headers)?;
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

/// Refuses requests without the token that this server wrote down for its own user.
fn known(app: &App, headers: &HeaderMap) -> Result<(), Fault> {
    let Some(token) = app.worker_token() else { return Err(refused(HubError::ByItself)) };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|shown| shown.strip_prefix("Bearer ")).unwrap_or_default();
    if same(shown.as_bytes(), token.as_bytes()) {
        return Ok(());
    }
    let detail = "the request does not show the token of this server, expected `authorization: Bearer TOKEN`";
    let problem = Fault::new(StatusCode::UNAUTHORIZED, "unknown-worker", detail);
    Err(problem.with_hint("the token is in .kelos/server.json, which only the user who runs the server can read"))
}

/// Takes as long wherever two texts of one length differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}
