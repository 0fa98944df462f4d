//! The dialect of CDAP for event schedules: its paths, fields, texts and statuses, under `/v3`.
//!
//! A namespace with an application and its version is a project here; its programs and schedules are workflows that are
//! named after it. Errors are plain texts.

mod asked;
mod batch;
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
mod runs;
mod schedules;
mod times;
mod trigger;

pub use fault::response as fault;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post, put};
use kelos_front::Front;
use kelos_front::fault::{Fault, panicked, plain, wrong_method};
use kelos_front::identity::Identity;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

/// Largest body.
const LARGEST_BODY: usize = 1 << 20;

/// Whether a path belongs to this dialect.
#[must_use]
pub fn is_call(path: &str) -> bool {
    path == "/v3" || path.starts_with("/v3/")
}

/// The routes of the dialect.
pub fn router() -> Router<Front> {
    Router::new()
        .route("/v3/namespaces", get(programs::namespaces))
        .nest("/v3/namespaces/{namespace}", of_namespace())
        .nest("/v3/profiles", of_profiles())
        .route("/v3/dashboard", get(dashboard::dashboard))
        .route("/v3/{*rest}", any(unmatched))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(CatchPanicLayer::custom(panicked))
}

fn of_namespace() -> Router<Front> {
    Router::new()
        .route("/", get(programs::namespace).put(unsupported).delete(unsupported))
        .route("/apps", get(programs::apps).post(programs::deploy))
        .nest("/apps/{app}", of_app())
        .nest("/apps/{app}/versions/{version}", of_app())
        .nest("/profiles", of_profiles())
        .route("/schedules/trigger-type/program-status", get(lookup::triggered_by))
        .route("/schedules/re-enable", put(lookup::re_enable))
        .route("/status", post(runs::statuses))
        .route("/runs", post(runs::newest_of_each))
        .route("/runcount", post(runs::counts))
        .route("/nextruntime", post(times::all_next))
        .route("/previousruntime", post(times::all_previous))
}

fn of_app() -> Router<Front> {
    Router::new()
        .route("/", get(programs::app).put(programs::deploy).delete(programs::deploy))
        .route("/update", post(programs::deploy))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{name}", get(schedules::get).put(schedules::add).delete(schedules::delete))
        .route("/schedules/{name}/{action}", get(schedules::about).post(schedules::act))
        .route("/{kind}/{program}/schedules", get(schedules::of_program))
        .route("/{kind}/{program}/nextruntime", get(times::next))
        .route("/{kind}/{program}/previousruntime", get(times::previous))
        .route("/{kind}/{program}/runs", get(runs::list))
        .route("/{kind}/{program}/runs/{run}", get(runs::one))
        .route("/{kind}/{program}/runs/{run}/stop", post(runs::stop_one))
        .route("/{kind}/{program}/runcount", get(runs::count))
        .route("/{kind}/{program}/status", get(runs::status))
        .route("/{kind}/{program}/stop", post(runs::stop))
        .route("/{kind}/{program}/start", post(programs::start))
}

fn of_profiles() -> Router<Front> {
    Router::new()
        .route("/", get(profiles::list))
        .route("/{profile}", get(profiles::get).put(profiles::put).delete(profiles::delete))
        .route("/{profile}/{action}", post(profiles::act))
}

/// Answers paths that have no route: one that ends in slashes is the same without them, as for CDAP.
async fn unmatched(State(front): State<Front>, request: Request) -> Response {
    let path = request.uri().path();
    let plain = path.trim_end_matches('/');
    if plain == path {
        return unsupported(request.method().clone(), request.uri().clone()).await.into_response();
    }
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let Ok(uri) = format!("{plain}{query}").parse::<Uri>() else {
        return plain::bad_request(format!("{path} is no path")).into_response();
    };
    let (mut parts, body) = request.into_parts();
    let mut again = Request::new(body);
    (*again.method_mut(), *again.uri_mut(), *again.headers_mut()) = (parts.method, uri, parts.headers);
    // The rights of the caller are checked once more where the route asks the scheduler and reads.
    parts.extensions.remove::<Arc<Identity>>().map(|identity| again.extensions_mut().insert(identity));
    router().with_state(front).oneshot(again).await.into_response()
}

/// Answers calls that CDAP may have and Kelos has not, so that they are never taken for a missing program or schedule.
async fn unsupported(method: Method, uri: Uri) -> Fault {
    let told = format!(
        "{method} {} is not supported here: Kelos knows schedules, programs with their runs, profiles and the dashboard; \
         docs/coming-from-cdap.md says what takes the place of the rest",
        uri.path()
    );
    plain::of(StatusCode::NOT_IMPLEMENTED, told)
}
