//! What does not get on.

use axum::Json;
use axum::extract::State;
use kelos_explain::stuck::{Found, Stuck};
use kelos_model::SlotState;
use serde::Serialize;
use utoipa::ToSchema;

use super::dto::{Instant, job, time};
use super::extract::{NoParameters, Query};
use crate::app::App;
use crate::problem::Problem;

/// A slot that does not get on, for all of its workflow that are stuck in the same way: it is the oldest of them.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct StuckDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// `expiring` (its time to wait is nearly over), `late`, `backoff` (it is to be tried again), `long` (its run goes on
    /// for long), `failed` (and nothing later has succeeded), `paused` (it is due and its workflow is paused) or `frozen` (it
    /// is due and its workflow is frozen).
    kind: &'static str,
    /// Where it stands; none where it was not planned.
    state: Option<&'static str>,
    /// Since when: since it was due, its run began, or it failed.
    since: Instant,
    /// Seconds from due to success, or of a run, that are usual; none where too little is known.
    usual_seconds: Option<i64>,
    /// Seconds beyond what is taken for late; 0 where it is not.
    beyond_seconds: i64,
    /// Why, in one sentence.
    reason: String,
    /// When it is looked at next by itself, tried again, or expires.
    next: Option<Instant>,
    /// Later slots of the workflow that are stuck in the same way.
    others: usize,
}

impl From<Stuck> for StuckDto {
    fn from(stuck: Stuck) -> StuckDto {
        StuckDto {
            workflow: stuck.slot.workflow.to_string(),
            time: time(&stuck.slot.key),
            job: job(&stuck.slot.key),
            kind: stuck.kind.as_str(),
            state: stuck.state.map(SlotState::as_str),
            since: stuck.since.into(),
            usual_seconds: stuck.usual.map(|usual| usual.as_secs()),
            beyond_seconds: stuck.beyond.as_secs(),
            reason: stuck.reason,
            next: stuck.next.map(Instant),
            others: stuck.others,
        }
    }
}

/// Everything that is stuck, the worst first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StuckList {
    /// Furthest beyond what is usual first; what is paused comes last.
    items: Vec<StuckDto>,
    /// How many are left out.
    more: usize,
    /// Whether there are more live slots than were looked at; the newest were not.
    partial: bool,
}

impl From<Found> for StuckList {
    fn from(found: Found) -> StuckList {
        let items = found.rows.into_iter().map(StuckDto::from).collect();
        StuckList { items, more: found.more, partial: found.is_partial }
    }
}

/// Lists what is stuck: late, to be tried again, running for long, failed last, or due and paused. The worst comes first.
#[utoipa::path(get, path = "/stuck", tag = "slots", responses(
    (status = 200, description = "What is stuck", body = StuckList),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn stuck(_: Query<NoParameters>, State(app): State<App>) -> Result<Json<StuckList>, Problem> {
    Ok(Json(kelos_explain::stuck::stuck(app.handle()).await?.into()))
}
