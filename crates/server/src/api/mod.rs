//! The native API, under `/api/v1`.

mod access;
mod alerts;
mod backfills;
mod calendar;
mod capacity;
mod definitions;
mod deployments;
mod dto;
mod endpoints;
mod events;
mod extract;
mod facts;
mod failures;
mod flows;
mod focus;
mod graph;
mod groups;
mod health;
mod jobs;
mod lines;
mod logs;
mod nodes;
mod projects;
mod queue;
mod registers;
mod rerun;
mod runs;
mod schedules;
mod slots;
mod storage;
mod stuck;
mod workers;
mod workflows;

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use axum::{Json, Router};
use kelos_front::Front;
use kelos_front::fault::{panicked, wrong_method};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Description;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

pub use dto::deployment;
pub(crate) use workers::unknown as unknown_worker;

/// Largest body: that of a register.
const LARGEST_BODY: usize = 1 << 20;
/// Largest project that is deployed in one request.
const LARGEST_PROJECT: usize = 64 << 20;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Kelos",
        description = "A scheduler for recurring data jobs that explains every decision.\n\nTimes are ISO 8601 in UTC. Errors are \
                       `application/problem+json` (RFC 9457). Lists are paged: hand `next` back as `cursor`. A server \
                       with `--auth` expects a token as `authorization: Bearer TOKEN`; another one takes the name for the log from the header `Kelos-User`."
    ),
    tags(
        (name = "server", description = "The server itself"),
        (name = "workflows", description = "Definitions"),
        (name = "projects", description = "Units of deployment, which own workflows"),
        (name = "schedules", description = "Event schedules: they run other workflows once their triggers are met"),
        (name = "facts", description = "Facts: what happened outside, published for triggers that wait for it"),
        (name = "slots", description = "The units of state: a workflow at a time"),
        (name = "jobs", description = "Slots that are named by job ids, and open each other"),
        (name = "runs", description = "Attempts to execute the job of a slot"),
        (name = "events", description = "The log of everything that happened"),
        (name = "backfills", description = "Named requests over past slots"),
        (name = "board", description = "Groups of workflows on the board"),
        (name = "nodes", description = "The nodes that share a log"),
        (name = "workers", description = "Processes that do runs for a server"),
        (name = "access", description = "Users, tokens, and what is on record of who did what"),
        (name = "registers", description = "Small JSON values that scripts read"),
    )
)]
struct Kelos;

fn routes() -> OpenApiRouter<Front> {
    OpenApiRouter::with_openapi(Kelos::openapi())
        .merge(of_server())
        .routes(routes!(workflows::list))
        .routes(routes!(workflows::one))
        .routes(routes!(workflows::definitions))
        .routes(routes!(workflows::definition))
        .routes(routes!(workflows::times))
        .routes(routes!(workflows::pause))
        .routes(routes!(workflows::resume))
        .routes(routes!(schedules::start))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::one, schedules::replace, schedules::change, schedules::delete))
        .routes(routes!(schedules::enable))
        .routes(routes!(schedules::disable))
        .routes(routes!(schedules::fire))
        .routes(routes!(schedules::decisions))
        .routes(routes!(facts::list, facts::tell))
        .routes(routes!(facts::sources))
        .routes(routes!(graph::read))
        .routes(routes!(graph::draw))
        .routes(routes!(projects::list))
        .routes(routes!(projects::put, projects::delete).layer(DefaultBodyLimit::max(LARGEST_PROJECT)))
        .routes(routes!(definitions::put_definitions).layer(DefaultBodyLimit::max(LARGEST_PROJECT)))
        .routes(routes!(queue::queue))
        .routes(routes!(slots::list))
        .routes(routes!(slots::one))
        .routes(routes!(slots::history))
        .routes(routes!(slots::explain))
        .routes(routes!(slots::critical_path))
        .routes(routes!(flows::flow_run))
        .routes(routes!(flows::items))
        .routes(routes!(flows::signal))
        .routes(routes!(flows::resume))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::parents))
        .routes(routes!(jobs::children))
        .routes(routes!(stuck::stuck))
        .routes(routes!(failures::failures))
        .routes(routes!(calendar::calendar))
        .routes(routes!(focus::focus))
        .routes(routes!(capacity::capacity))
        .routes(routes!(rerun::rerun))
        .routes(routes!(slots::kill))
        .routes(routes!(slots::skip))
        .routes(routes!(slots::mark))
        .routes(routes!(graph::upstream))
        .routes(routes!(runs::list))
        .routes(routes!(runs::of_slot))
        .routes(routes!(runs::one))
        .routes(routes!(logs::read))
        .routes(routes!(lines::lines))
        .routes(routes!(logs::stream))
        .routes(routes!(events::list))
        .routes(routes!(events::stream))
        .routes(routes!(backfills::list, backfills::create))
        .routes(routes!(backfills::one, backfills::change))
        .routes(routes!(backfills::causes))
        .routes(routes!(backfills::pause))
        .routes(routes!(backfills::resume))
        .routes(routes!(backfills::rerun))
        .routes(routes!(backfills::cancel))
        .routes(routes!(groups::get, groups::put, groups::delete))
        .merge(alerts::routes())
        .merge(nodes::routes())
        .merge(access::routes())
        .routes(routes!(registers::list))
        .routes(routes!(registers::get, registers::put, registers::delete))
}

fn of_server() -> OpenApiRouter<Front> {
    OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::version))
        .routes(routes!(health::problems))
        .routes(routes!(endpoints::list))
        .routes(routes!(health::step))
        .routes(routes!(storage::storage))
        .routes(routes!(storage::agree))
        .routes(routes!(workers::list))
        .routes(routes!(workers::offer))
}

fn split() -> (Router<Front>, Description) {
    let (router, mut description) = OpenApiRouter::new().nest("/api/v1", routes()).split_for_parts();
    description.info = Kelos::openapi().info;
    description.info.version = "1".to_owned();
    name_operations(&mut description);
    (router, description)
}

/// Names of functions are unique in their module only; those of operations must be everywhere.
fn name_operations(description: &mut Description) {
    for path in description.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.put, &mut path.post, &mut path.patch, &mut path.delete];
        for operation in operations.into_iter().flatten() {
            let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
            operation.operation_id = operation.operation_id.take().map(|name| format!("{tag}_{name}"));
        }
    }
}

pub(crate) fn described() -> Description {
    split().1
}

pub(crate) fn router() -> Router<Front> {
    let (router, description) = split();
    router
        .route("/api/v1/openapi.json", get(async move || Json(description)))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(CatchPanicLayer::custom(panicked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_as_a_bug() {
        let boom = get(async || -> &'static str { panic!("boom") });
        let router = Router::new().route("/api/v1/boom", boom).layer(CatchPanicLayer::custom(panicked));
        let router = router.layer(axum::middleware::from_fn(crate::render));
        let request = axum::http::Request::get("/api/v1/boom").body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(router, request).await.unwrap();
        assert_eq!(response.status(), axum::http::StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&problem["type"], &problem["instance"]), (&"urn:kelos:problem:bug".into(), &"/api/v1/boom".into()));
    }
}
