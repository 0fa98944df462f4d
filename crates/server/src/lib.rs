//! The HTTP server of Kelos: the native API under `/api/v1`, health and metrics, and beside them what other rooms answer: the pages under `/ui`, the
//! dialect of CDAP under `/v3`, and that of Celos at the root.
//!
//! [`router`] needs no port, so tests can send it the same requests as over the network; [`serve`] puts a
//! router on a port. Its only state is the table of open connections, and the front keeps some of this process; nothing of it is needed
//! after a restart. All else is read from the store or requested from the engine, so any number of servers may answer for one database.

mod api;
mod embedded;
mod encoded;
mod forwarded;
mod guarded;
mod headers;
mod health;
mod limited;
mod metrics;
mod rights;
mod serve;

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use kelos_door_cdap as cdap;
use kelos_door_celos::dialect as celos;
use kelos_front::fault::{Fault, is_native, plain};
use kelos_front::{App, Front, guard};
use kelos_ui as ui;
use tower_http::classify::ServerErrorsFailureClass;
use tower_http::trace::TraceLayer;
use tracing::Span;

pub use api::deployment;
pub use embedded::{ProjectServer, serve_project};
pub use metrics::worker_router;
pub use serve::{Limits, Transport, serve};

/// The guide to the library, whose blocks are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Guide;

/// All routes of a server, whose metrics are counted from now on.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn router(app: App) -> Router {
    let (hosts, limiter) = (app.hosts().clone(), app.limiter().clone());
    let front = Front::new(app.clone());
    Router::new()
        .merge(api::router())
        .merge(health::router())
        .merge(metrics::router(&app))
        .merge(ui::router())
        .merge(cdap::router())
        .merge(celos::router())
        .with_state(front)
        .fallback(unknown_path)
        .layer(middleware::from_fn(encoded::refuse))
        .layer(middleware::from_fn_with_state(limiter, limited::limit))
        .layer(middleware::from_fn_with_state(app.clone(), rights::admit))
        .layer(middleware::from_fn_with_state(app, forwarded::forward))
        .layer(middleware::from_fn_with_state(hosts, guard::check))
        .layer(middleware::from_fn(render))
        .layer(middleware::from_fn(headers::protect))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(tell_failure))
}

/// The span of a request, named by its path; its query is not logged.
fn span(request: &Request) -> Span {
    tracing::error_span!("request", method = %request.method(), path = request.uri().path())
}

/// An answer that something is not possible here or now is no error of the server, which logs errors itself.
fn tell_failure(class: ServerErrorsFailureClass, _: Duration, _: &Span) {
    match class {
        ServerErrorsFailureClass::StatusCode(StatusCode::NOT_IMPLEMENTED | StatusCode::SERVICE_UNAVAILABLE) => {}
        class => tracing::error!("failed to answer: {class}"),
    }
}

/// The description of the native API, as it is served at `/api/v1/openapi.json`.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    api::described()
}

async fn unknown_path(uri: Uri) -> Fault {
    if is_native(uri.path()) {
        let fault = Fault::not_found("unknown-path", format!("there is nothing at {}", uri.path()));
        fault.with_hint("all paths are described at /api/v1/openapi.json")
    } else {
        plain::not_found(format!("There is nothing at {}", uri.path()))
    }
}

/// Renders a fault on its way out in the form of its door: one fault, four renderers.
async fn render(request: Request, next: Next) -> Response {
    let (uri, path) = (request.uri().clone(), request.uri().path().to_owned());
    // Pages are shown as their reader has chosen, also those of faults.
    let asked = if ui::is_page(&path) { request.headers().clone() } else { HeaderMap::new() };
    let mut response = next.run(request).await;
    let Some(fault) = response.extensions_mut().remove::<Fault>() else {
        return response;
    };
    let headers = response.headers().clone();
    let mut rendered = match path.as_str() {
        path if is_native(path) => fault.problem(path.to_owned()),
        path if ui::is_page(path) => ui::fault(&fault, &asked, &uri),
        path if cdap::is_call(path) => cdap::fault(&fault),
        _ => celos::fault(&fault),
    };
    // Such as `allow`, which others added meanwhile.
    for (name, value) in headers.iter().filter(|(name, _)| **name != header::CONTENT_LENGTH) {
        rendered.headers_mut().insert(name, value.clone());
    }
    rendered
}
