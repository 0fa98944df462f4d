//! The dialect of CDAP for event schedules: its paths, fields, texts and statuses, under `/v3`.
//!
//! A namespace with an application and its version is a project here; its programs and schedules are workflows that are
//! named after it. Errors are plain texts.

mod asked;
mod catalogue;
mod constraint;
mod dashboard;
mod detail;
mod fault;
mod fields;
mod kind;
mod lookup;
mod profiles;
mod programs;
mod schedules;
mod times;
mod trigger;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use tower_http::catch_panic::CatchPanicLayer;

use self::fault::Fault;
use crate::app::App;

/// Largest body.
const LARGEST_BODY: usize = 1 << 20;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v3/namespaces", get(programs::namespaces))
        .nest("/v3/namespaces/{namespace}", of_namespace())
        .nest("/v3/profiles", of_profiles())
        .route("/v3/dashboard", get(dashboard::dashboard))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(CatchPanicLayer::custom(panicked))
}

fn of_namespace() -> Router<App> {
    Router::new()
        .route("/apps", get(programs::apps).post(programs::deploy))
        .nest("/apps/{app}", of_app())
        .nest("/apps/{app}/versions/{version}", of_app())
        .nest("/profiles", of_profiles())
        .route("/schedules/trigger-type/program-status", get(lookup::triggered_by))
        .route("/schedules/re-enable", put(lookup::re_enable))
        .route("/nextruntime", post(times::all_next))
        .route("/previousruntime", post(times::all_previous))
}

fn of_app() -> Router<App> {
    Router::new()
        .route("/", get(programs::app).put(programs::deploy).delete(programs::deploy))
        .route("/update", post(programs::deploy))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{name}", get(schedules::get).put(schedules::add).delete(schedules::delete))
        .route("/schedules/{name}/{action}", get(schedules::about).post(schedules::act))
        .route("/{kind}/{program}/schedules", get(schedules::of_program))
        .route("/{kind}/{program}/nextruntime", get(times::next))
        .route("/{kind}/{program}/previousruntime", get(times::previous))
        .route("/{kind}/{program}/runs", get(programs::runs))
        .route("/{kind}/{program}/status", get(programs::status))
        .route("/{kind}/{program}/start", post(programs::start))
}

fn of_profiles() -> Router<App> {
    Router::new()
        .route("/", get(profiles::list))
        .route("/{profile}", get(profiles::get).put(profiles::put).delete(profiles::delete))
        .route("/{profile}/{action}", post(profiles::act))
}

async fn wrong_method(method: Method) -> Fault {
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible here; the header allow lists what is"))
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic itself has been written to the log by then.
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "a bug in the server, whose log says more; it goes on")
        .into_response()
}
