//! The routes of nodes: the list of those that share a log, and what each tells the leader of itself.

use axum::Json;
use axum::http::StatusCode;
use kelos::nodes::NodeReport;
use kelos_front::fault::Fault;
use kelos_front::{App, Front};
use kelos_trust::Right;
use kelos_wire::{NodeReportRequest, NodesDto, ProblemDetailsDto, RaiseFormRequest, RaisedFormDto};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, NoParameters, Path, Query};

/// Longest name of a node, in bytes.
const LONGEST_NAME: usize = 200;

/// The node in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct NodePath {
    /// Its name.
    name: String,
}

/// The routes of nodes.
pub(super) fn routes() -> OpenApiRouter<Front> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(report)).routes(routes!(raise))
}

/// Lists the nodes that share a log, as this one knows them, and the last changes of leader. Each node answers, also without a leader.
#[utoipa::path(get, path = "/nodes", tag = "nodes", responses(
    (status = 200, description = "The nodes", body = NodesDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn list(_: Query<NoParameters>, app: App) -> Result<Json<NodesDto>, Fault> {
    Ok(Json(app.nodes().await?))
}

/// Takes the report of a node about itself, and tells it of the others. Where credentials are required, it takes that of a node with the
/// leader's `session.key` alone.
#[utoipa::path(post, path = "/nodes/{name}", tag = "nodes", params(NodePath), request_body = NodeReportRequest, responses(
    (status = 200, description = "It was taken; the nodes, as the leader knows them", body = NodesDto),
    (status = 409, description = "Another process of that name is alive", body = ProblemDetailsDto, content_type = "application/problem+json"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn report(
    Path(path): Path<NodePath>,
    _: Query<NoParameters>,
    app: App,
    Body(report): Body<NodeReportRequest>,
) -> Result<Json<NodesDto>, Fault> {
    app.require(Right::Work, None, "the report of a node")?;
    if app.identity().is_some_and(|identity| !identity.is_of_node()) {
        let detail =
            format!("failed to take the report of node {}: it does not show the token of the nodes", path.name);
        let fault = Fault::new(StatusCode::FORBIDDEN, "not-a-node", detail);
        return Err(fault.with_hint("copy `session.key` of the leader's state to that of the node, and start it again"));
    }
    if path.name.is_empty() || path.name.len() > LONGEST_NAME {
        let detail = format!("the name of the node has {} bytes, expected 1 to {LONGEST_NAME}", path.name.len());
        return Err(Fault::bad_request("bad-path", detail));
    }
    let NodeReportRequest { address, version, reads, followed, load, trouble, now, instance } = report;
    let here = app.handle().now().as_millisecond();
    let clock_ahead = now.map(|there| there.0.as_millisecond().saturating_sub(here));
    let report =
        NodeReport { address, version, reads, followed, load, trouble, unreached: None, clock_ahead, instance };
    let taken = match app.node().log() {
        Some(log) if log.node() == path.name => Err(log.address().map(str::to_owned)),
        _ => app.node().roster().note(&path.name, report),
    };
    taken.map_err(|address| {
        let place = address.map(|address| format!(" at {address}")).unwrap_or_default();
        let detail = format!("failed to take the report of node {}: another process{place} has this name", path.name);
        Fault::conflict("node-name-taken", detail).with_hint("give one of them another name with --node")
    })?;
    Ok(Json(app.nodes().await?))
}

/// Raises the form in which the leader writes entries, once all nodes that it has heard of can read it.
#[utoipa::path(post, path = "/log/form", tag = "nodes", request_body = RaiseFormRequest, responses(
    (status = 200, description = "It was raised, or would be, or there was nothing to raise", body = RaisedFormDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn raise(
    _: Query<NoParameters>,
    app: App,
    Body(request): Body<RaiseFormRequest>,
) -> Result<Json<RaisedFormDto>, Fault> {
    app.require(Right::Operate, None, "POST /api/v1/log/form")?;
    Ok(Json(app.raise_form(request.form, request.dry_run).await?))
}
