//! Storage: what takes how much, and the consent to remove folders of runs.

use axum::Json;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::identity::Caller;
use kelos_wire::{ProblemDetailsDto, ReasonRequest, StorageDto};

use super::extract::{Body, NoParameters, Query};

/// Tells what takes how much on the machine of this server, how long folders of runs are kept, and what goes next.
#[utoipa::path(get, path = "/storage", tag = "server", responses(
    (status = 200, description = "What takes how much", body = StorageDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn storage(_: Query<NoParameters>, app: App) -> Result<Json<StorageDto>, Fault> {
    Ok(Json(app.storage().await?))
}

/// Agrees to the removal of folders of runs from before history was bounded. It is recorded in the log, for all nodes that share it.
#[utoipa::path(post, path = "/storage/agree", tag = "server", request_body = ReasonRequest, responses(
    (status = 200, description = "It is agreed", body = StorageDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn agree(
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<StorageDto>, Fault> {
    app.agree_to_history(&by, because.reason).await?;
    Ok(Json(app.storage().await?))
}
