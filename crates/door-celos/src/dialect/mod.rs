//! The dialect of Celos: its paths, parameters, texts and statuses, at the root.

mod control;
mod fault;
mod json;
mod params;
mod registers;
mod slots;
mod trigger_status;

pub use fault::response as fault;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use kelos_front::fault::{Fault, panicked, plain};
use kelos_front::{App, Front};
use kelos_model::SlotState;
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;

/// Largest body: that of a register.
const LARGEST_BODY: usize = 1 << 20;

/// The routes of the dialect.
pub fn router() -> Router<Front> {
    Router::new()
        .route("/", get(welcome))
        .route("/version", get(version))
        .route("/scheduler", post(control::step))
        .route("/clear-cache", post(control::clear_cache))
        .route("/rerun", post(control::rerun))
        .route("/kill", post(control::kill))
        .route("/pause", post(control::pause))
        .route("/workflow-list", get(slots::list))
        .route("/workflow-slots", get(slots::slots))
        .route("/workflow", get(slots::workflow))
        .route("/slot-state", get(slots::state))
        .route("/trigger-status", get(trigger_status::status))
        .route("/register", get(registers::get).put(registers::put).delete(registers::delete))
        .route("/list-register-keys", get(registers::list))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(CatchPanicLayer::custom(panicked))
}

/// Celos's name of a state.
fn status_of(state: SlotState) -> &'static str {
    match state {
        SlotState::Waiting | SlotState::Backoff => "WAITING",
        SlotState::Held | SlotState::Queued | SlotState::Dispatched => "READY",
        SlotState::Running => "RUNNING",
        SlotState::Succeeded => "SUCCESS",
        SlotState::Failed => "FAILURE",
        SlotState::Expired => "WAIT_TIMEOUT",
        SlotState::Skipped | SlotState::Killed => "KILLED",
    }
}

fn as_json(value: &impl Serialize) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json::print(value)).into_response()
}

/// Whether a request prefers a page: browsers say so first, programs don't.
fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.split(',').any(|media| media.trim().starts_with("text/html")))
}

async fn welcome(headers: HeaderMap) -> Response {
    if wants_page(&headers) {
        return Redirect::to("/ui").into_response();
    }
    "This is Kelos. Its pages are at /ui, its API is described at /api/v1/openapi.json; the paths of Celos, such as \
     /workflow-list, are answered too.\n"
        .into_response()
}

async fn version(app: App) -> String {
    app.version().to_owned()
}

async fn wrong_method(method: Method) -> Fault {
    let message = format!("HTTP method {method} is not supported by this URL");
    plain::of(StatusCode::METHOD_NOT_ALLOWED, message)
}
