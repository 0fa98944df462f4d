//! The servers that paths lie on: how each of them is.

use axum::Json;
use axum::extract::State;
use kelos_storage::Health;
use serde::Serialize;
use utoipa::ToSchema;

use super::dto::{Instant, ListDto};
use super::extract::{NoParameters, Query};
use crate::app::App;
use crate::problem::Problem;

/// A scheme and the server behind it: what paths share their fate.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointDto {
    /// As `hdfs://nameservice1`.
    name: String,
    /// Calls under way.
    under_way: usize,
    /// Why it is spared further calls for a while; not there while it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<BrokenDto>,
}

/// Since when and why an endpoint is left alone.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BrokenDto {
    /// When the first of its failures came.
    since: Instant,
    /// What the last one said.
    last_error: String,
    /// Seconds until it is tried again.
    next_try_seconds: u64,
}

impl From<Health> for EndpointDto {
    fn from(health: Health) -> EndpointDto {
        let broken = health.broken.map(|broken| BrokenDto {
            since: broken.since.into(),
            last_error: broken.last_error,
            next_try_seconds: broken.next_try.as_secs(),
        });
        EndpointDto { name: health.endpoint, under_way: health.under_way, broken }
    }
}

/// Lists the endpoints that paths were looked at on since the server started, but for its own disk.
#[utoipa::path(get, path = "/endpoints", tag = "server", responses(
    (status = 200, description = "The endpoints", body = ListDto<EndpointDto>),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(_: Query<NoParameters>, State(app): State<App>) -> Json<ListDto<EndpointDto>> {
    Json(ListDto::of(app.node().storage().health()))
}
