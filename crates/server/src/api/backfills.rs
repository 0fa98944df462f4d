//! Backfills: named requests for past slots. Routes that create, show, pause, resume, prioritise, rerun
//! and cancel them.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use kelos_core::{CancelBackfill, PauseBackfill, PrioritiseBackfill, RerunBackfill, ResumeBackfill, SlotList};
use kelos_explain::backfill::{Cause, Estimate, FailedSlot, Progress, progress, slots_of};
use kelos_front::App;
use kelos_front::backfill::{NewBackfill, causes_of, make};
use kelos_front::fault::Fault;
use kelos_model::backfill::Backfill;
use kelos_model::{Actor, BackfillId, SlotState, WorkflowId};
use kelos_store::BackfillFilter;
use kelos_wire::{
    BackfillCausesDto, BackfillChange, BackfillDto, BackfillRequest, BackfillResultDto, CauseDto, EstimateDto,
    FailedSlotDto, Instant, ListDto, ProblemDetailsDto, ProgressDto, ReasonRequest, TouchedTimesDto, counts, mode_name,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::{FromLibrary, list as list_of};
use super::extract::{BackfillPath, Body, NoParameters, Path, Query};
use kelos_front::identity::Caller;

/// Times that an answer lists of each kind; the counts are always whole.
const TIMES_LISTED: usize = 1000;

impl FromLibrary<Backfill> for BackfillDto {
    fn from_library(backfill: Backfill) -> BackfillDto {
        let (paused_at, paused_by) = backfill.paused.map(|pause| (Instant(pause.at), pause.by.to_string())).unzip();
        BackfillDto {
            id: backfill.id.into(),
            workflow: backfill.workflow.into(),
            from: backfill.range.start.into(),
            to: backfill.range.end.into(),
            mode: mode_name(backfill.mode).into(),
            priority: backfill.priority,
            by: backfill.by.to_string(),
            created_at: backfill.created_at.into(),
            cancelled_at: backfill.cancelled_at.map(Instant),
            slots: backfill.slots,
            reason: backfill.reason,
            paused_at,
            paused_by,
            resumed_at: backfill.resumed_at.map(Instant),
        }
    }
}

impl FromLibrary<Estimate> for EstimateDto {
    fn from_library(estimate: Estimate) -> EstimateDto {
        let (done_at, text) = match estimate {
            Estimate::Over => (None, "all its slots have ended".to_owned()),
            Estimate::At(at, basis) => (Some(Instant(at)), basis.to_string()),
            Estimate::None(why) => (None, format!("no estimate yet: {why}")),
        };
        EstimateDto { done_at, text }
    }
}

impl FromLibrary<Progress> for ProgressDto {
    fn from_library(far: Progress) -> ProgressDto {
        ProgressDto {
            total: u64::from(far.backfill.slots),
            ended: far.ended(),
            share: far.share(),
            failures: far.failures(),
            counts: counts(far.counts),
            estimate: EstimateDto::from_library(far.estimate),
            backfill: BackfillDto::from_library(far.backfill),
        }
    }
}

fn unknown(id: &BackfillId) -> Fault {
    Fault::not_found("backfill-not-found", format!("no backfill is named \"{id}\""))
}

/// The backfills to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct BackfillListQuery {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
}

/// Lists backfills, newest first.
#[utoipa::path(get, path = "/backfills", tag = "backfills", params(BackfillListQuery), responses(
    (status = 200, description = "The backfills", body = ListDto<BackfillDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    Query(wanted): Query<BackfillListQuery>,
    app: App,
) -> Result<Json<ListDto<BackfillDto>>, Fault> {
    let rows = app.read(|reader| reader.backfills(&BackfillFilter::default())).await?;
    let of = |row: &Backfill| wanted.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow);
    Ok(Json(list_of(rows.into_iter().filter(of))))
}

/// Shows a backfill and how far it is.
#[utoipa::path(get, path = "/backfills/{id}", tag = "backfills", params(BackfillPath), responses(
    (status = 200, description = "The backfill", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn one(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<ProgressDto>, Fault> {
    shown(&app, path.id).await.map(Json)
}

async fn shown(app: &App, id: BackfillId) -> Result<ProgressDto, Fault> {
    let (name, now) = (id.clone(), app.handle().now());
    let found =
        app.read(move |reader| reader.backfill(&name)?.map(|row| progress(reader, row, now)).transpose()).await?;
    found.map(ProgressDto::from_library).ok_or_else(|| unknown(&id))
}

impl FromLibrary<FailedSlot> for FailedSlotDto {
    fn from_library(failed: FailedSlot) -> FailedSlotDto {
        FailedSlotDto {
            slot: (&failed.slot).into(),
            since: failed.since.into(),
            last_run: failed.run.map_or(0, |run| run.number),
        }
    }
}

impl FromLibrary<Cause> for CauseDto {
    fn from_library(Cause { slots }: Cause) -> CauseDto {
        let first = slots.first();
        CauseDto {
            state: first.map(|slot| slot.state.as_str().into()).unwrap_or_default(),
            reason: first.map(|slot| slot.reason.clone()).unwrap_or_default(),
            exit_status: first.and_then(|slot| slot.exit_status),
            last_line: first.and_then(|slot| slot.last_line.clone()),
            slots: slots.into_iter().map(FailedSlotDto::from_library).collect(),
        }
    }
}

/// Shows why slots of a backfill failed, alike causes together. The 200 failures with the newest times are read.
#[utoipa::path(get, path = "/backfills/{id}/causes", tag = "backfills", params(BackfillPath), responses(
    (status = 200, description = "The causes", body = BackfillCausesDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn causes(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<BackfillCausesDto>, Fault> {
    let id = path.id.clone();
    let row = app.read(move |reader| reader.backfill(&id)).await?.ok_or_else(|| unknown(&path.id))?;
    let found = causes_of(&app, &row).await?;
    let read = found.iter().map(|cause| cause.slots.len() as u64).sum();
    let counts = app.read(move |reader| reader.slot_counts(&slots_of(&row))).await?;
    let failed = [SlotState::Failed, SlotState::Expired];
    let failures = failed.iter().filter_map(|state| counts.get(state)).sum::<u64>().max(read);
    Ok(Json(BackfillCausesDto { items: found.into_iter().map(CauseDto::from_library).collect(), failures, read }))
}

impl FromLibrary<SlotList> for TouchedTimesDto {
    fn from_library(slots: SlotList) -> TouchedTimesDto {
        let times = slots.first.iter().take(TIMES_LISTED).filter_map(|slot| slot.key.time().map(Instant));
        TouchedTimesDto { count: slots.count, times: times.collect() }
    }
}

impl FromLibrary<NewBackfill> for BackfillResultDto {
    fn from_library(opened: NewBackfill) -> BackfillResultDto {
        BackfillResultDto {
            id: opened.id.into(),
            dry_run: opened.dry_run,
            from: opened.range.start.into(),
            to: opened.range.end.into(),
            zone: opened.zone.name().to_owned(),
            created: TouchedTimesDto::from_library(opened.created),
            reopened: TouchedTimesDto::from_library(opened.reopened),
            adopted: TouchedTimesDto::from_library(opened.adopted),
            untouched: opened.untouched,
        }
    }
}

/// Opens the slots of a range, or shows what that would do.
#[utoipa::path(post, path = "/backfills", tag = "backfills", request_body = BackfillRequest, responses(
    (status = 200, description = "What would happen", body = BackfillResultDto),
    (status = 201, description = "It was made; the header `location` says where it is", body = BackfillResultDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn create(
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<BackfillRequest>,
) -> Result<Response, Fault> {
    let made = BackfillResultDto::from_library(make(&app, &by, request).await?);
    if made.dry_run {
        return Ok(Json(made).into_response());
    }
    let name = percent_encoding::utf8_percent_encode(&made.id, percent_encoding::NON_ALPHANUMERIC);
    let location = [(header::LOCATION, format!("/api/v1/backfills/{name}"))];
    Ok((StatusCode::CREATED, location, Json(made)).into_response())
}

/// Sends a request about a backfill, and shows its new state.
async fn asked<R: kelos_core::Request>(
    app: &App,
    by: &Actor,
    id: BackfillId,
    request: impl FnOnce(BackfillId) -> R,
) -> Result<Json<ProgressDto>, Fault> {
    app.ask(by, request(id.clone())).await?;
    shown(app, id).await.map(Json)
}

/// Pauses a backfill: its slots without a run are ignored, live runs continue. Pausing twice is no error.
#[utoipa::path(post, path = "/backfills/{id}/pause", tag = "backfills", params(BackfillPath), request_body = ReasonRequest, responses(
    (status = 200, description = "It is paused", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn pause(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<ProgressDto>, Fault> {
    asked(&app, &by, path.id, |backfill| PauseBackfill { backfill, reason: because.reason }).await
}

/// Ends a pause. Resuming a backfill that is not paused is no error.
#[utoipa::path(post, path = "/backfills/{id}/resume", tag = "backfills", params(BackfillPath), request_body = ReasonRequest, responses(
    (status = 200, description = "It goes on", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn resume(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<ProgressDto>, Fault> {
    asked(&app, &by, path.id, |backfill| ResumeBackfill { backfill, reason: because.reason }).await
}

/// Changes the priority of a backfill and of its slots that have not ended.
#[utoipa::path(patch, path = "/backfills/{id}", tag = "backfills", params(BackfillPath), request_body = BackfillChange, responses(
    (status = 200, description = "It has that priority", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn change(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(BackfillChange { priority, reason }): Body<BackfillChange>,
) -> Result<Json<ProgressDto>, Fault> {
    asked(&app, &by, path.id, |backfill| PrioritiseBackfill { backfill, priority, reason }).await
}

/// Reruns the slots of a backfill that failed or expired; they remain its own.
#[utoipa::path(post, path = "/backfills/{id}/rerun", tag = "backfills", params(BackfillPath), request_body = ReasonRequest, responses(
    (status = 200, description = "They are open", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn rerun(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<ProgressDto>, Fault> {
    asked(&app, &by, path.id, |backfill| RerunBackfill { backfill, reason: because.reason }).await
}

/// Kills the waiting slots of a backfill. Runs continue; cancelling twice is fine.
#[utoipa::path(post, path = "/backfills/{id}/cancel", tag = "backfills", params(BackfillPath), request_body = ReasonRequest, responses(
    (status = 200, description = "It is cancelled", body = ProgressDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn cancel(
    Path(path): Path<BackfillPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<ProgressDto>, Fault> {
    asked(&app, &by, path.id, |backfill| CancelBackfill { backfill, reason: because.reason }).await
}
