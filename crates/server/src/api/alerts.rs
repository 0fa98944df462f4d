//! The routes of alerts: what is open, rules and channels, and the test of a channel.

use axum::Json;
use kelos_front::fault::Fault;
use kelos_front::identity::Caller;
use kelos_front::{App, Front};
use kelos_wire::{AlertChannelDto, AlertsDto, ProblemDetailsDto};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{NoParameters, Path, Query};

/// The channel in the path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct ChannelPath {
    /// Its name.
    channel: String,
}

/// The routes of alerts.
pub(super) fn routes() -> OpenApiRouter<Front> {
    OpenApiRouter::new().routes(routes!(alerts)).routes(routes!(test_channel))
}

/// Lists the open alerts, the rules and the channels.
#[utoipa::path(get, path = "/alerts", tag = "server", responses(
    (status = 200, description = "The alerts", body = AlertsDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn alerts(_: Query<NoParameters>, app: App) -> Result<Json<AlertsDto>, Fault> {
    Ok(Json(app.alerts().await?))
}

/// Sends a notice to a channel that says that nothing has happened.
#[utoipa::path(post, path = "/alerts/channels/{channel}/test", tag = "server", params(ChannelPath), responses(
    (status = 200, description = "The channel accepted it", body = AlertChannelDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
async fn test_channel(
    Path(path): Path<ChannelPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
) -> Result<Json<AlertChannelDto>, Fault> {
    app.test_channel(&path.channel, &by).await?;
    let channel = app.alerts().await?.channels.into_iter().find(|channel| channel.name == path.channel);
    Ok(Json(channel.unwrap_or_default()))
}
