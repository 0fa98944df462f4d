//! The web interface, under `/ui`: pages that are written here and made livelier by small scripts.
//!
//! Pages read what the native API reads and act through it. What is *absent*: calls to other hosts, scripts and styles
//! inside of pages, and anything that is not escaped.

mod access;
mod activity;
mod alerts;
mod arguments;
mod asked;
mod assets;
mod backfills;
mod board;
mod calendar;
mod capacity;
mod columns;
mod display;
mod documents;
mod events;
mod failures;
mod fault;
mod flow;
mod focus;
mod graph;
mod jobs;
mod live;
mod neighbours;
mod nodes;
mod output;
mod page;
mod plot;
mod problems;
mod runs;
mod schedules;
mod selection;
mod settings;
mod slot;
mod source;
mod state;
mod storage;
mod strip;
mod stuck;
mod time;
mod timeline;
mod tree;
mod versions;
mod viewer;
mod waits;
mod window;
mod words;
mod workers;
mod workflow;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

pub use access::sign_in_href;
pub use graph::file_of as graph_file;
use kelos_front::Front;
use kelos_front::fault::{Fault, panicked};
pub use output::last_lines;
use viewer::Viewer;

/// The content security policy of pages: they load what this server serves, and nothing inside the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The routes of the pages.
pub fn router() -> Router<Front> {
    Router::new()
        .merge(access::router())
        .merge(board::router())
        .merge(backfills::router())
        .merge(graph::router())
        .merge(schedules::router())
        .route("/ui/workflows/{id}", get(workflow::show))
        .route("/ui/workflows/{id}/{action}", post(workflow::act))
        .route("/ui/workflows/{id}/slots/{time}", get(slot::show))
        .route("/ui/workflows/{id}/slots/{time}/{action}", post(slot::act))
        .route("/ui/workflows/{id}/slots/{time}/runs/{number}/log.txt", get(runs::download))
        .route("/ui/workflows/{id}/slots/{time}/runs/{number}/lines", get(output::follow))
        .route("/ui/timeline", get(timeline::show))
        .route("/ui/calendar", get(calendar::show))
        .route("/ui/focus", get(focus::show))
        .route("/ui/problems", get(problems::show))
        .route("/ui/activity", get(activity::show))
        .route("/ui/stream", get(live::follow))
        .route("/ui/stuck", get(stuck::show))
        .route("/ui/display", get(display::show).post(display::save))
        .route("/ui/capacity", get(capacity::show))
        .route("/ui/nodes", get(nodes::show))
        .route("/ui/workers", get(workers::show))
        .route("/ui/storage", get(storage::show))
        .route("/ui/alerts", get(alerts::show))
        .route("/ui/alerts/test", post(alerts::test))
        .route("/ui/workflows/{id}/versions/{version}", get(versions::show))
        .route("/ui/assets/{hash}/{name}", get(assets::serve))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(guarded))
}

/// Whether a path belongs to the web interface, so that errors are pages.
pub fn is_page(path: &str) -> bool {
    path == "/ui" || path.starts_with("/ui/")
}

/// The page of a fault, for who sent a request with these headers.
pub fn fault(fault: &Fault, headers: &HeaderMap, uri: &Uri) -> Response {
    guard(Viewer::of(headers, uri).sync_scope(|| fault::page(fault)))
}

async fn guarded(request: Request, next: Next) -> Response {
    let viewer = Viewer::of(request.headers(), request.uri()).with_identity(request.extensions());
    guard(viewer.scope(next.run(request)).await)
}

/// Adds the policy of pages; the other headers of protection are the same for all answers.
fn guard(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
