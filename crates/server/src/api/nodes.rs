//! The routes of nodes: the list of those that share a log, and what each tells the leader of itself.

use axum::Json;
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

/// Lists the nodes that share a log, as the leader has heard of them, and the last changes of leader.
#[utoipa::path(get, path = "/nodes", tag = "nodes", responses(
    (status = 200, description = "The nodes", body = NodesDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn list(_: Query<NoParameters>, app: App) -> Result<Json<NodesDto>, Fault> {
    Ok(Json(app.nodes().await?))
}

/// Takes the report of a node about itself.
#[utoipa::path(post, path = "/nodes/{name}", tag = "nodes", params(NodePath), request_body = NodeReportRequest, responses(
    (status = 204, description = "It was taken"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn report(
    Path(path): Path<NodePath>,
    _: Query<NoParameters>,
    app: App,
    Body(report): Body<NodeReportRequest>,
) -> Result<axum::http::StatusCode, Fault> {
    app.require(Right::Work, None, "the report of a node")?;
    if path.name.is_empty() || path.name.len() > LONGEST_NAME {
        let detail = format!("the name of the node has {} bytes, expected 1 to {LONGEST_NAME}", path.name.len());
        return Err(Fault::bad_request("bad-path", detail));
    }
    let NodeReportRequest { address, version, reads, followed, load, trouble } = report;
    app.node().roster().note(&path.name, NodeReport { address, version, reads, followed, load, trouble });
    Ok(axum::http::StatusCode::NO_CONTENT)
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
