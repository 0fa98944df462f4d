//! Opening a slot again, alone or with all that depends on it.

use axum::Json;
use axum::extract::State;
use kelos_core::{DownstreamOutcome, DownstreamRequest, Rerun};
use kelos_model::{Actor, SlotRef};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::dto::{SlotDto, SlotNameDto};
use super::extract::{Body, Caller, NoParameters, Path, Query, SlotPath};
use super::slots;
use crate::app::App;
use crate::problem::Problem;

/// Slots that an answer lists of each kind.
const SLOTS_LISTED: usize = 1000;

/// How a slot is to be opened again.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RerunRequest)]
pub(super) struct Request {
    /// Why, in their words, for the log.
    reason: Option<String>,
    /// Also all slots whose triggers look at it, those that look at them, and so on.
    #[serde(default)]
    downstream: bool,
    /// Only say what would happen; with `downstream`.
    #[serde(default)]
    dry_run: bool,
    /// Kill those that are dispatched or running first, which otherwise are in the way; with `downstream`.
    #[serde(default)]
    kill_live: bool,
}

impl Request {
    fn check(&self) -> Result<(), Problem> {
        let lone = [("dryRun", self.dry_run), ("killLive", self.kill_live)];
        let lone = lone.iter().find(|(_, asked)| *asked && !self.downstream);
        let problem = |name| Problem::bad_request("bad-body", format!("`{name}` was given without `downstream`"));
        lone.map_or(
            Ok(()),
            |(name, _)| Err(problem(name).with_hint("`downstream` reruns all that depends on the slot")),
        )
    }
}

/// What a rerun did: the slot, or with `downstream` all slots that were touched.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Reran {
    /// The slot.
    Alone(SlotDto),
    /// The slot and what depends on it.
    Downstream(Opened),
}

/// What a rerun of a slot with all that depends on it does, or would do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    /// Whether this only says what would happen.
    dry_run: bool,
    /// The slot itself, where it was never planned.
    created: Touched,
    /// Slots that had ended, or were only queued, and are opened again.
    reopened: Touched,
    /// Slots that were dispatched or running: killed first with `killLive`, and in the way without.
    killed: Touched,
    /// How many slots stay as they are, because they wait already.
    untouched: u32,
}

/// Slots that a rerun touches in the same way.
#[derive(Serialize, ToSchema)]
#[schema(as = TouchedSlots)]
pub(super) struct Touched {
    /// How many.
    count: usize,
    /// Which, each after one that it depends on; the first 1000.
    slots: Vec<SlotNameDto>,
}

impl From<Vec<SlotRef>> for Touched {
    fn from(slots: Vec<SlotRef>) -> Touched {
        Touched { count: slots.len(), slots: slots.iter().take(SLOTS_LISTED).map(SlotNameDto::from).collect() }
    }
}

/// Opens a slot again that has ended, or opens one that was never planned; with all that depends on it, where asked for.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/rerun",
    tag = "slots",
    params(SlotPath),
    request_body = Option<Request>,
    responses(
        (status = 200, description = "It is open, or what would happen", body = Reran),
        (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn rerun(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    State(app): State<App>,
    Body(request): Body<Request>,
) -> Result<Json<Reran>, Problem> {
    request.check()?;
    let slot = path.slot(&app).await?;
    if request.downstream {
        return downstream(&app, &by, slot, request).await.map(Reran::Downstream).map(Json);
    }
    app.ask(&by, Rerun { slot: slot.clone(), reason: request.reason }).await?;
    slots::found(&app, slot).await.map(Reran::Alone).map(Json)
}

async fn downstream(app: &App, by: &Actor, slot: SlotRef, request: Request) -> Result<Opened, Problem> {
    let Request { reason, dry_run, kill_live, .. } = request;
    let ask = DownstreamRequest { slot, reason, kill_live, dry_run };
    let DownstreamOutcome { created, reopened, killed, untouched } = app.ask(by, ask).await?;
    let created: Vec<_> = created.into_iter().collect();
    Ok(Opened { dry_run, created: created.into(), reopened: reopened.into(), killed: killed.into(), untouched })
}
