//! Slots that make no progress.

use axum::Json;
use kelos_explain::stuck::{Stuck, StuckReport};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_wire::{Instant, ProblemDetailsDto, StuckDto, StuckListDto};

use super::dto::FromLibrary;
use super::extract::{NoParameters, Query};

impl FromLibrary<Stuck> for StuckDto {
    fn from_library(stuck: Stuck) -> StuckDto {
        StuckDto {
            slot: (&stuck.slot).into(),
            kind: stuck.kind.as_str().into(),
            state: stuck.state.map(|state| state.as_str().into()),
            since: stuck.since.into(),
            usual_seconds: stuck.usual.map(|usual| usual.as_secs()),
            beyond_seconds: stuck.beyond.as_secs(),
            reason: stuck.reason,
            next: stuck.next.map(Instant),
            others: stuck.others,
            followers: stuck.followers,
        }
    }
}

impl FromLibrary<StuckReport> for StuckListDto {
    fn from_library(found: StuckReport) -> StuckListDto {
        let items = found.rows.into_iter().map(StuckDto::from_library).collect();
        StuckListDto { items, more: found.more, partial: found.is_partial }
    }
}

/// Lists stuck slots: late, in back-off, running for long, failed and not repaired, or due and paused. The worst come first.
#[utoipa::path(get, path = "/stuck", tag = "slots", responses(
    (status = 200, description = "What is stuck", body = StuckListDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn stuck(_: Query<NoParameters>, app: App) -> Result<Json<StuckListDto>, Fault> {
    Ok(Json(StuckListDto::from_library(kelos_explain::stuck::stuck(app.handle()).await?)))
}
