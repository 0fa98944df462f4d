//! Opening a slot again, alone or with all that depends on it.

use axum::Json;
use kelos_core::{DownstreamOutcome, DownstreamRequest, Rerun};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::{Actor, SlotRef};
use kelos_wire::{DownstreamDto, ProblemDetailsDto, RerunRequest, RerunResultDto, SlotNameDto, TouchedSlotsDto};

use super::extract::{Body, NoParameters, Path, Query, SlotPath};
use super::slots;
use kelos_front::identity::Caller;

/// Slots that an answer lists of each kind.
const SLOTS_LISTED: usize = 1000;

/// Refuses what means something only with `downstream`.
fn check(request: &RerunRequest) -> Result<(), Fault> {
    let lone = [("dryRun", request.dry_run), ("killLive", request.kill_live)];
    let lone = lone.iter().find(|(_, asked)| *asked && !request.downstream);
    let problem = |name| Fault::bad_request("bad-body", format!("`{name}` was given without `downstream`"));
    lone.map_or(Ok(()), |(name, _)| Err(problem(name).with_hint("`downstream` reruns all that depends on the slot")))
}

fn touched(slots: Vec<SlotRef>) -> TouchedSlotsDto {
    TouchedSlotsDto { count: slots.len(), slots: slots.iter().take(SLOTS_LISTED).map(SlotNameDto::from).collect() }
}

/// Reruns a slot that has ended, or runs one that was never planned; on request with everything downstream. For a step of a flow its run,
/// which has to have ended, is resumed from this step, and is the answer.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/rerun",
    tag = "slots",
    params(SlotPath),
    request_body = Option<RerunRequest>,
    responses(
        (status = 200, description = "It is open, or what would happen", body = RerunResultDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn rerun(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<RerunRequest>,
) -> Result<Json<RerunResultDto>, Fault> {
    check(&request)?;
    let slot = path.slot(&app).await?;
    let is_step = slot.key.step().is_some();
    let of_slots = [("downstream", request.downstream), ("arguments", !request.arguments.is_empty())];
    if let Some((name, _)) = of_slots.iter().find(|(_, given)| *given && is_step) {
        let problem = Fault::bad_request("bad-body", format!("`{name}` was given for a step of a flow"));
        return Err(problem.with_hint("its run goes on from it, with its arguments and all steps that come after it"));
    }
    if request.downstream {
        return downstream(&app, &by, slot, request).await.map(RerunResultDto::Downstream).map(Json);
    }
    app.ask(&by, Rerun { slot: slot.clone(), arguments: request.arguments, reason: request.reason }).await?;
    // The step itself may never have been opened.
    let shown = if is_step { SlotRef::new(slot.workflow, slot.key.of_run()) } else { slot };
    slots::found(&app, shown).await.map(RerunResultDto::Alone).map(Json)
}

async fn downstream(app: &App, by: &Actor, slot: SlotRef, request: RerunRequest) -> Result<DownstreamDto, Fault> {
    let RerunRequest { arguments, reason, dry_run, kill_live, .. } = request;
    let ask = DownstreamRequest { slot, arguments, reason, kill_live, dry_run };
    let DownstreamOutcome { created, reopened, killed, untouched } = app.ask(by, ask).await?;
    let created: Vec<_> = created.into_iter().collect();
    Ok(DownstreamDto {
        dry_run,
        created: touched(created),
        reopened: touched(reopened),
        killed: touched(killed),
        untouched,
    })
}
