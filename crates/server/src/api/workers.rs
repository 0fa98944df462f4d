//! The routes for workers: their offers, and the runs that they are assigned.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use kelos_executors::workers::HubError;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::identity::Credential;
use kelos_wire::{AssignmentDto, ListDto, OfferRequest, ProblemDetailsDto, WorkerDto};
use serde::Deserialize;
use utoipa::IntoParams;

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
    let is_open = app.identity().is_some_and(|identity| matches!(identity.credential, Credential::Open));
    // Another node may have sent this on, whose own tokens are not known here.
    let is_unknown = is_open && app.node().log().is_none();
    if headers.contains_key(header::AUTHORIZATION) && is_unknown {
        return Err(unknown(&app));
    }
    Ok(Json(ListDto { items: app.workers().await? }))
}

/// Reports the offer, the runs and the outcomes of a worker; answers once a run is assigned, or its wait is
/// over. Workers on the same machine show the token of the state's folder, and share its runs; all others show a token with the role
/// `worker`, and keep their runs on a disk of their own.
#[utoipa::path(post, path = "/workers/{name}/offer", tag = "workers", params(WorkerPath),
    request_body(content = Object, description = "What the worker says: `session` (as answered before), `count` (grows with \
        each request), `workflows`, `labels`, `remote`, `job`, `free`, `attempts`, `runs` ({run, externalId}), `reports` ({run, what}), \
        `waitMillis`, `leaves`, `process`"),
    responses(
        (status = 200, description = "`session`, `leaseMillis`, `starts` (runs to be done), `cancels` (runs to be ended), \
            `refused` (runs that are not the worker's any more)", body = Object),
        (status = 409, description = "Another process works under this name", body = ProblemDetailsDto,
            content_type = "application/problem+json"),
        (status = 410, description = "The worker sent no heartbeat for too long, and its runs were taken away",
            body = ProblemDetailsDto, content_type = "application/problem+json"),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn offer(
    Path(path): Path<WorkerPath>,
    _: Query<NoParameters>,
    app: App,
    Body(mut offer): Body<OfferRequest>,
) -> Result<Json<AssignmentDto>, Fault> {
    // The folder's token alone proves that a worker can read it.
    if app.identity().is_none_or(|identity| !matches!(identity.credential, Credential::Worker)) {
        offer.remote.get_or_insert_default();
    }
    let desk = app.node().desk();
    let mut beyond = Vec::new();
    if let Some(view) = app.work().await? {
        let wanted =
            if offer.workflows.is_empty() { desk.served().await } else { std::mem::take(&mut offer.workflows) };
        offer.workflows = wanted.into_iter().filter(|id| view.has(id)).collect();
        if let Some(project) = &mut offer.project {
            project.definitions.retain(|id, _| view.has(id));
        }
        offer.is_limited = true;
        offer.reports.retain(|report| view.has(&report.run.slot.workflow));
        beyond.extend(offer.runs.extract_if(.., |one| !view.has(&one.run.slot.workflow)).map(|one| one.run));
    }
    if path.name.is_empty() || path.name.len() > LONGEST_NAME {
        let detail = format!("the name of the worker has {} bytes, expected 1 to {LONGEST_NAME}", path.name.len());
        return Err(Fault::bad_request("bad-worker", detail));
    }
    let mut answer = desk.hear(&path.name, offer).await.map_err(refused)?;
    answer.refused.extend(beyond);
    Ok(Json(answer))
}

fn refused(why: HubError) -> Fault {
    let detail = format!("failed to {why}");
    match why {
        HubError::GivenUp => Fault::new(StatusCode::GONE, "worker-given-up", detail),
        HubError::Closing => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "ending", detail),
        HubError::NotStored => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not-stored", detail),
        // By this code another node knows that the leader has changed, and asks the next one.
        HubError::NotLeading(_) => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "standby", detail),
        HubError::NameHeld(_) => Fault::new(StatusCode::SERVICE_UNAVAILABLE, "name-held", detail),
        HubError::NameTaken(_) => Fault::conflict("name-taken", detail)
            .with_hint("the folder is the one of --dir, and of a node `worker` in its folder of state"),
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
