//! The dialect of Celos: its paths, parameters, texts and statuses, at the root.

mod control;
mod json;
mod params;
mod registers;
mod slots;
mod trigger_status;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use kelos_core::Refusal;
use kelos_engine::AskError;
use kelos_model::SlotState;
use kelos_store::StoreError;
use serde::Serialize;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::App;
use crate::problem;

/// Largest body: that of a register.
const LARGEST_BODY: usize = 1 << 20;

pub(crate) fn router() -> Router<App> {
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

/// What went wrong: a status and a plain text.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    code: Option<&'static str>,
    message: String,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Fault {
        Fault { status, code: None, message: message.into() }
    }

    fn bad_request(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::BAD_REQUEST, message)
    }

    fn not_found(message: impl Into<String>) -> Fault {
        Fault::new(StatusCode::NOT_FOUND, message)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        problem::plain(self.status, self.code, self.message)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, format!("failed to {error}"))
    }
}

impl From<AskError> for Fault {
    fn from(error: AskError) -> Fault {
        let code = Some(problem::code_of(&error));
        match error {
            AskError::Refused(refusal) => refusal.into(),
            error => Fault { code, ..Fault::new(StatusCode::SERVICE_UNAVAILABLE, format!("failed to {error}")) },
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let code = Some(refusal.code());
        let fault = match refusal {
            Refusal::NoWorkflow(id) => Fault::not_found(format!("Workflow not found: {id}")),
            Refusal::NotInSchedule(slot) => Fault::not_found(format!("Slot is not found: {slot}")),
            Refusal::StillLive(_, state) => {
                let status = status_of(state);
                Fault::bad_request(format!("Slot must be in successful or failed, but is: {status}"))
            }
            Refusal::AlreadyFinal(_, state) => {
                let status = status_of(state);
                Fault::bad_request(format!("Slot must be in indeterminate state, but is: {status}"))
            }
            other => Fault::bad_request(other.to_string()),
        };
        Fault { code, ..fault }
    }
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

pub(crate) fn unknown_path(path: &str) -> Fault {
    Fault::not_found(format!("There is nothing at {path}"))
}

async fn welcome(headers: HeaderMap) -> Response {
    if crate::ui::wants_page(&headers) {
        return Redirect::to("/ui").into_response();
    }
    "This is Kelos. Its pages are at /ui, its API is described at /api/v1/openapi.json; the paths of Celos, such as \
     /workflow-list, are answered too.\n"
        .into_response()
}

async fn version(State(app): State<App>) -> String {
    app.version().to_owned()
}

async fn wrong_method(method: Method) -> Fault {
    let message = format!("HTTP method {method} is not supported by this URL");
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic itself has been written to the log by then.
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "A bug in the server: its log says more").into_response()
}
