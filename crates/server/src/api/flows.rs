//! Runs of flows: their steps, the items of lists, signals, and going on after a failure.

use axum::Json;
use axum::http::StatusCode;
use kelos_core::{Refusal, ResumeFlow, SignalFlow};
use kelos_explain::flow;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::{SlotRef, StepName};
use kelos_wire::{FlowRunDto, ItemDto, PageDto, ProblemDetailsDto, ResumeRequest, SignalRequest, SlotDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::{self, FromLibrary};
use super::extract::{Body, Limit, NoParameters, Path, Query, SlotPath};
use super::{slots, workflows};
use kelos_front::identity::Caller;

/// A page of steps or items.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PartQuery {
    /// The most to answer: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

/// Shows a run of a flow with a page of its steps, also of those that were not opened yet.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/flow", tag = "slots", params(SlotPath, PartQuery), responses(
    (status = 200, description = "The run", body = FlowRunDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn flow_run(
    Path(path): Path<SlotPath>,
    Query(wanted): Query<PartQuery>,
    app: App,
) -> Result<Json<FlowRunDto>, Fault> {
    let (run, now) = (path.slot(&app).await?, app.handle().now());
    let id = run.clone();
    let read = app.read(move |reader| flow::read(reader, &id, now, (wanted.cursor.as_deref(), wanted.limit.0)));
    match read.await? {
        Some(view) => Ok(Json(FlowRunDto::from_library(view))),
        None => Err(no_flow(&app, run).await),
    }
}

/// Lists the items of a step that is done for each item of a list, by their numbers.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/items", tag = "slots", params(SlotPath, PartQuery), responses(
    (status = 200, description = "A page of items", body = PageDto<ItemDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn items(
    Path(path): Path<SlotPath>,
    Query(wanted): Query<PartQuery>,
    app: App,
) -> Result<Json<PageDto<ItemDto>>, Fault> {
    let step = path.slot(&app).await?;
    let id = step.clone();
    let read = app.read(move |reader| flow::items(reader, &id, (wanted.cursor.as_deref(), wanted.limit.0)));
    match read.await? {
        Some(page) => Ok(Json(dto::page(page, ItemDto::from_library))),
        None => Err(no_flow(&app, step).await),
    }
}

/// The reason for which a slot is no run of a flow, or no step with a list.
async fn no_flow(app: &App, slot: SlotRef) -> Fault {
    let id = slot.clone();
    let found = app.read(move |reader| Ok((reader.workflow(&id.workflow)?, reader.slot(&id)?)));
    match found.await {
        Err(error) => error.into(),
        Ok((None, _)) => workflows::unknown(&slot.workflow),
        Ok((Some(_), None)) => slots::unknown(&slot),
        Ok(_) if slot.key.step().is_some() => {
            let detail = format!("{} is no step that is done for each item of a list", slot.short());
            Fault::new(StatusCode::CONFLICT, Refusal::NoFlow(slot.workflow).code(), detail)
        }
        Ok(_) => Refusal::NoFlow(slot.workflow).into(),
    }
}

/// Gives a run of a flow a signal, for which a step waits now or later. A run with a name may be given signals before it is started.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/signal",
    tag = "slots",
    params(SlotPath),
    request_body = SignalRequest,
    responses(
        (status = 200, description = "The signal is stored; this is the run", body = SlotDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn signal(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<SignalRequest>,
) -> Result<Json<SlotDto>, Fault> {
    let run = path.slot(&app).await?;
    let SignalRequest { signal, payload, reason } = request;
    app.ask(&by, SignalFlow { run: run.clone(), signal, payload, reason }).await?;
    slots::found(&app, run).await.map(Json)
}

/// Resumes a run of a flow that has ended: the steps that failed are done again, with the definition and the outputs that the run has;
/// or a step and all that come after it.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/resume",
    tag = "slots",
    params(SlotPath),
    request_body = Option<ResumeRequest>,
    responses(
        (status = 200, description = "It goes on", body = SlotDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(request): Body<ResumeRequest>,
) -> Result<Json<SlotDto>, Fault> {
    let run = path.slot(&app).await?;
    let ResumeRequest { from, reason } = request;
    let from = from.map(|step| StepName::new(&step)).transpose();
    let from = from.map_err(|error| Fault::bad_request("bad-body", format!("`from`: {error}")))?;
    app.ask(&by, ResumeFlow { run: run.clone(), from, reason }).await?;
    slots::found(&app, run).await.map(Json)
}
