//! The HTTP face of Kelos: the native API under `/api/v1`, the web interface under `/ui`, the dialect of CDAP under `/v3`,
//! and that of Celos at the root.
//!
//! [`router`] needs no port, so everything can be asked in tests as it is over the wire; [`serve`] puts a
//! router on a port. What is *absent*: state. Everything is read from the store or asked of the engine,
//! so any number of servers may answer for one database.

mod api;
mod app;
mod caller;
mod cdap;
mod celos;
mod groups;
mod guard;
mod key;
mod known;
mod links;
mod problem;
mod serve;
mod ui;

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use tower_http::classify::ServerErrorsFailureClass;
use tower_http::trace::TraceLayer;
use tracing::Span;

pub use api::deployment;
pub use app::App;
pub use groups::Groups;
pub use guard::{Hosts, INSTANCE};
pub use links::Links;
pub use serve::{Limits, serve};

/// All routes of a server.
pub fn router(app: App) -> Router {
    let hosts = app.hosts().clone();
    Router::new()
        .merge(api::router().with_state(app.clone()))
        .merge(ui::router().with_state(app.clone()))
        .merge(cdap::router().with_state(app.clone()))
        .merge(celos::router().with_state(app))
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(hosts, guard::check))
        .layer(middleware::from_fn(problem::name_instance))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(tell_failure))
}

/// What is logged of a request names it by its path; what stands behind a question mark stays out of the log.
fn span(request: &Request) -> Span {
    tracing::error_span!("request", method = %request.method(), path = request.uri().path())
}

/// An answer that something is not possible here, or not now, is none of the server's troubles: what those are it logs by itself.
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

async fn unknown_path(uri: Uri) -> Response {
    if problem::is_native(uri.path()) {
        problem::unknown_path(uri.path()).into_response()
    } else if ui::is_page(uri.path()) {
        ui::unknown_path(uri.path())
    } else {
        celos::unknown_path(uri.path()).into_response()
    }
}
