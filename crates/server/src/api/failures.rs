//! Slots that failed or expired, and were not repaired since.

use axum::Json;
use jiff::Timestamp;
use kelos_explain::failures::{self, Failure, Follower};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_store::{Queries, StoreError};
use kelos_wire::{FailureDto, FailureListDto, FollowerDto, ProblemDetailsDto};

use super::dto::FromLibrary;
use super::extract::{NoParameters, Query};

/// The most failures of an answer.
const LISTED: usize = 200;
/// The most followers that are listed of each.
const FOLLOWERS: usize = 20;

impl FromLibrary<&Follower> for FollowerDto {
    fn from_library(follower: &Follower) -> FollowerDto {
        FollowerDto {
            slot: (&follower.slot).into(),
            state: follower.state.as_str().into(),
            waits_for: (&follower.waits_for).into(),
        }
    }
}

fn dto(reader: &dyn Queries, now: Timestamp, failure: &Failure) -> Result<FailureDto, StoreError> {
    let account = failure.account(reader, now)?;
    Ok(FailureDto {
        slot: (&failure.slot).into(),
        state: failure.state.as_str().into(),
        since: failure.since.into(),
        last_run: failure.last_run,
        outcome: account.outcome,
        reason: account.reason,
        followers: failure.followers.iter().take(FOLLOWERS).map(FollowerDto::from_library).collect(),
        more_followers: failure.followers.len().saturating_sub(FOLLOWERS),
    })
}

fn read(reader: &dyn Queries, now: Timestamp) -> Result<FailureListDto, StoreError> {
    let found = failures::find(reader, now)?;
    let shown = found.rows.iter().take(LISTED);
    Ok(FailureListDto {
        items: shown.map(|failure| dto(reader, now, failure)).collect::<Result<_, _>>()?,
        more: found.rows.len().saturating_sub(LISTED),
        by_workflow: found.by_workflow().into_iter().map(|(id, count)| (id.to_string(), count)).collect(),
        partial: found.is_partial,
    })
}

/// Lists slots that failed or expired and were not repaired since, each with the slots that wait for it. The latest come first.
#[utoipa::path(get, path = "/failures", tag = "slots", responses(
    (status = 200, description = "The failures; none is good", body = FailureListDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn failures(_: Query<NoParameters>, app: App) -> Result<Json<FailureListDto>, Fault> {
    let now = app.handle().now();
    Ok(Json(app.read(move |reader| read(reader, now)).await?))
}
