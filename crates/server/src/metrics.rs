//! The metrics of a server at `/metrics`, and the whole address of a worker that shows its own.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use kelos_front::fault::Fault;
use kelos_front::{App, Front};
use kelos_metrics::{CONTENT_TYPE, Metrics, Selection, WorkerMetrics};

use crate::health::{Health, answer};

/// The path of the metrics.
pub(crate) const PATH: &str = "/metrics";

/// The route of the metrics of a server, which are counted from now on.
pub(crate) fn router(app: &App) -> Router<Front> {
    let metrics = Metrics::start(app.node().clone(), app.version(), app.metrics().workflows);
    Router::new().route(PATH, get(of_server)).layer(Extension(metrics))
}

async fn of_server(Extension(metrics): Extension<Metrics>, app: App) -> Result<Response, Fault> {
    let view = if app.metrics().public { None } else { app.view().await? };
    let selection = match view {
        Some(view) => Selection::Only(Box::new(move |workflow| view.has(workflow))),
        None => Selection::All,
    };
    let is_ready = Health::of(&app).await.obstacle().is_none();
    Ok(shown(metrics.text(is_ready, &selection).await))
}

fn shown(text: String) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

/// The routes of a worker: its metrics, and whether it is live and ready.
pub fn worker_router(metrics: WorkerMetrics) -> Router {
    Router::new()
        .route(PATH, get(async |State(metrics): State<WorkerMetrics>| shown(metrics.text())))
        .route("/health/live", get(async || answer(StatusCode::OK, "live\n".to_owned())))
        .route("/health/ready", get(worker_ready))
        .with_state(metrics)
}

async fn worker_ready(State(metrics): State<WorkerMetrics>) -> Response {
    match metrics.is_connected() {
        true => answer(StatusCode::OK, "ready\n".to_owned()),
        false => answer(StatusCode::SERVICE_UNAVAILABLE, "not ready: the leader does not answer\n".to_owned()),
    }
}
