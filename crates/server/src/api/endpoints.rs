//! The servers that paths lie on: how each of them is.

use axum::Json;
use kelos_front::App;
use kelos_storage::Health;
use kelos_trust::Right;
use kelos_wire::{BrokenDto, EndpointDto, ListDto, ProblemDetailsDto};

use super::dto::{FromLibrary, list as list_of};
use super::extract::{NoParameters, Query};

impl FromLibrary<Health> for EndpointDto {
    fn from_library(health: Health) -> EndpointDto {
        let broken = health.broken.map(|broken| BrokenDto {
            since: broken.since.into(),
            last_error: broken.last_error,
            next_try_seconds: broken.next_try.as_secs(),
        });
        EndpointDto { name: health.endpoint, under_way: health.under_way, broken }
    }
}

/// Lists the endpoints that were used since the server started, without its own disk.
#[utoipa::path(get, path = "/endpoints", tag = "server", responses(
    (status = 200, description = "The endpoints", body = ListDto<EndpointDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(_: Query<NoParameters>, app: App) -> Json<ListDto<EndpointDto>> {
    // Names of machines and paths belong to no project.
    let seen = if app.may(Right::View, None) { app.node().storage().health() } else { Vec::new() };
    Json(list_of(seen))
}
