//! Slots: listing, looking, explaining, killing, skipping, marking.

use axum::Json;
use jiff::Timestamp;
use kelos_core::{Kill, MarkSuccess, Skip};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::ranges::Range;
use kelos_model::{BackfillId, SlotKey, SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, SlotFilter};
use kelos_wire::{
    CriticalPathDto, EventDto, ListDto, MarkRequest, MarkedState, PageDto, ProblemDetailsDto, ReasonRequest, RootDto,
    SlotDto, TimeText, WhyDto,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::{self, FromLibrary};
use super::extract::{Body, Limit, Names, NoParameters, Path, Query, SlotPath, ZoneName};
use kelos_front::identity::Caller;
use kelos_front::zone;

/// The slots to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SlotListQuery {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only in one of these states, by name with commas between.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Names<SlotState>,
    /// Only from this time on. Without an offset it is one of the zone.
    #[param(value_type = Option<String>)]
    from: Option<TimeText>,
    /// Only before this time. Without an offset it is one of the zone.
    #[param(value_type = Option<String>)]
    to: Option<TimeText>,
    /// The time zone of times without an offset; by default that of the workflow, or of all workflows if they have one in common.
    #[param(value_type = Option<String>)]
    zone: Option<ZoneName>,
    /// Only of this backfill.
    #[param(value_type = Option<String>)]
    backfill: Option<BackfillId>,
    /// How many at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

/// The range between two times, either of which may be open.
pub(super) fn range(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Option<Range>, Fault> {
    let range = Range::new(from.unwrap_or(Timestamp::MIN), to.unwrap_or(Timestamp::MAX));
    if range.is_empty() {
        return Err(Fault::bad_request("bad-query", "`from` must be before `to`"));
    }
    Ok((from.is_some() || to.is_some()).then_some(range))
}

/// Lists slots, newest first.
#[utoipa::path(get, path = "/slots", tag = "slots", params(SlotListQuery), responses(
    (status = 200, description = "A page of slots", body = PageDto<SlotDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(Query(wanted): Query<SlotListQuery>, app: App) -> Result<Json<PageDto<SlotDto>>, Fault> {
    let times = [("from", wanted.from.as_ref()), ("to", wanted.to.as_ref())];
    let zone = wanted.zone.map(|zone| zone.0);
    let [from, to] = zone::moments(&app, wanted.workflow.as_ref(), zone, times).await?;
    let filter = SlotFilter {
        workflow: wanted.workflow,
        states: wanted.state.0,
        range: range(from, to)?,
        backfill: wanted.backfill,
        ..SlotFilter::default()
    };
    let page = app
        .read(move |reader| reader.slots(&filter, PageRequest::newest(wanted.limit.0).after(wanted.cursor.as_deref())))
        .await?;
    Ok(Json(dto::page(page, SlotDto::from_library)))
}

pub(super) fn unknown(slot: &SlotRef) -> Fault {
    let fault = Fault::not_found("slot-not-found", format!("there is no slot {}", slot.short()));
    if matches!(slot.key, SlotKey::Named(_) | SlotKey::Step(_)) {
        return fault.with_hint("…/why says why: nobody started such a run, or it has not opened the step");
    }
    fault.with_hint(
        "its time may be outside the schedule, in the future or before the planning window: …/why says which; \
         rerunning or backfilling it opens it",
    )
}

pub(super) async fn found(app: &App, slot: SlotRef) -> Result<SlotDto, Fault> {
    let id = slot.clone();
    let found = app.read(move |reader| reader.slot(&id)).await?;
    found.map(|found| SlotDto::new(&slot, found)).ok_or_else(|| unknown(&slot))
}

/// Shows a slot.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}", tag = "slots", params(SlotPath), responses(
    (status = 200, description = "The slot", body = SlotDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn one(Path(path): Path<SlotPath>, _: Query<NoParameters>, app: App) -> Result<Json<SlotDto>, Fault> {
    found(&app, path.slot(&app).await?).await.map(Json)
}

/// Lists everything that happened to a slot, oldest first.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/history", tag = "slots", params(SlotPath), responses(
    (status = 200, description = "Its events", body = ListDto<EventDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn history(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<ListDto<EventDto>>, Fault> {
    let slot = path.slot(&app).await?;
    let id = slot.clone();
    let history = app.read(move |reader| reader.history(&id)).await?;
    if history.is_empty() {
        return Err(unknown(&slot));
    }
    Ok(Json(ListDto::of(history)))
}

/// About which moment.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Moment {
    /// The moment of the explanation; by default now. Without an offset it is one of the workflow's time zone.
    #[param(value_type = Option<String>)]
    at: Option<TimeText>,
}

/// Explains why a slot is in its state, or why it does not exist.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/why", tag = "slots", params(SlotPath, Moment), responses(
    (status = 200, description = "The account", body = WhyDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn explain(
    Path(path): Path<SlotPath>,
    Query(moment): Query<Moment>,
    app: App,
) -> Result<Json<WhyDto>, Fault> {
    let slot = path.slot(&app).await?;
    let [at, _] = zone::moments(&app, Some(&slot.workflow), None, [("at", moment.at.as_ref()), ("", None)]).await?;
    let why = kelos_explain::why::why(app.handle(), &slot, at).await?;
    if why.state.is_none() {
        let id = slot.workflow.clone();
        if app.read(move |reader| reader.workflow(&id)).await?.is_none() {
            return Err(super::workflows::unknown(&slot.workflow));
        }
    }
    let roots = kelos_explain::roots::roots(app.handle(), &slot, at).await?;
    let mut answer = WhyDto::from_library(why);
    (answer.more_roots, answer.unexamined) = (roots.more, roots.unexamined);
    for root in roots.rows {
        let run = root.run.clone();
        let mut root = RootDto::from_library(root);
        if let Some(run) = run {
            root.last_lines = kelos_ui::last_lines(&app, &run, LAST_LINES).await;
        }
        answer.roots.push(root);
    }
    Ok(Json(answer))
}

/// Lines of output of a failed run that come with an explanation.
const LAST_LINES: usize = 10;

/// Tells what determined when a slot ended, or keeps it from ending: the slots and waits that lead up to it.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/critical-path", tag = "slots", params(SlotPath), responses(
    (status = 200, description = "The path", body = CriticalPathDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn critical_path(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<CriticalPathDto>, Fault> {
    let (slot, now) = (path.slot(&app).await?, app.handle().now());
    let id = slot.clone();
    let found = app.read(move |reader| kelos_explain::critical_path::read(reader, &id, now)).await?;
    found.map(|path| Json(CriticalPathDto::from_library(path))).ok_or_else(|| unknown(&slot))
}

/// Ends a slot and its run, or prevents it from ever starting.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/kill",
    tag = "slots",
    params(SlotPath),
    request_body = Option<ReasonRequest>,
    responses(
        (status = 200, description = "It is killed; its run may still be ending", body = SlotDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn kill(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<SlotDto>, Fault> {
    let slot = path.slot(&app).await?;
    app.ask(&by, Kill { slot: slot.clone(), reason: because.reason }).await?;
    found(&app, slot).await.map(Json)
}

/// Passes over a slot that has not ended, and ends its run.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/skip",
    tag = "slots",
    params(SlotPath),
    request_body = Option<ReasonRequest>,
    responses(
        (status = 200, description = "It is skipped; its run may still be ending", body = SlotDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn skip(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(because): Body<ReasonRequest>,
) -> Result<Json<SlotDto>, Fault> {
    let slot = path.slot(&app).await?;
    app.ask(&by, Skip { slot: slot.clone(), reason: because.reason }).await?;
    found(&app, slot).await.map(Json)
}

/// Takes a slot for succeeded whose run is not alive, so that what depends on it may go.
#[utoipa::path(
    post,
    path = "/workflows/{id}/slots/{time}/mark",
    tag = "slots",
    params(SlotPath),
    request_body = MarkRequest,
    responses(
        (status = 200, description = "It has succeeded", body = SlotDto),
        (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
    )
)]
pub(super) async fn mark(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    Caller(by): Caller,
    app: App,
    Body(mark): Body<MarkRequest>,
) -> Result<Json<SlotDto>, Fault> {
    let slot = path.slot(&app).await?;
    match mark.state {
        MarkedState::Succeeded => app.ask(&by, MarkSuccess { slot: slot.clone(), reason: mark.reason }).await?,
    }
    found(&app, slot).await.map(Json)
}
