//! Runs.

use axum::Json;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::time::format_short;
use kelos_model::{Run, RunId, RunState, WorkflowId};
use kelos_store::{KnownRun, PageRequest, RemovedRun, RunFilter};
use kelos_wire::{ListDto, PageDto, ProblemDetailsDto, RunDto, TimeText};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto;
use super::extract::{Limit, Names, NoParameters, Path, Query, RunPath, SlotPath, ZoneName};
use kelos_front::zone;

/// The runs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunListQuery {
    /// Only of this workflow.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only in one of these states, by name with commas between.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    state: Names<RunState>,
    /// Only those that were live at this moment or later. A run that has ended is found if it was dispatched at most
    /// 48 hours before; a live one is found however long ago it began. Without an offset it is one of the zone.
    #[param(value_type = Option<String>)]
    from: Option<TimeText>,
    /// Only those that were dispatched before this moment. Without an offset it is one of the zone.
    #[param(value_type = Option<String>)]
    to: Option<TimeText>,
    /// The time zone of times without an offset; by default that of the workflow, or of all workflows if they have one in common.
    #[param(value_type = Option<String>)]
    zone: Option<ZoneName>,
    /// How many at most: 1 to 1000, by default 100.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Limit,
    /// The position to continue from: `next` of the page before.
    cursor: Option<String>,
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(RunListQuery), responses(
    (status = 200, description = "A page of runs", body = PageDto<RunDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn list(Query(wanted): Query<RunListQuery>, app: App) -> Result<Json<PageDto<RunDto>>, Fault> {
    let times = [("from", wanted.from.as_ref()), ("to", wanted.to.as_ref())];
    let zone = wanted.zone.map(|zone| zone.0);
    let [from, to] = zone::moments(&app, wanted.workflow.as_ref(), zone, times).await?;
    let range = super::slots::range(from, to)?;
    let filter = RunFilter { workflow: wanted.workflow, states: wanted.state.0, range, ..RunFilter::default() };
    let page = app
        .read(move |reader| reader.runs(&filter, PageRequest::newest(wanted.limit.0).after(wanted.cursor.as_deref())))
        .await?;
    Ok(Json(dto::page(page, RunDto::from)))
}

/// Lists the runs of a slot, oldest first.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/runs", tag = "runs", params(SlotPath), responses(
    (status = 200, description = "Its runs", body = ListDto<RunDto>),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn of_slot(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<ListDto<RunDto>>, Fault> {
    let slot = path.slot(&app).await?;
    let id = slot.clone();
    let found = app.read(move |reader| {
        let runs = reader.slot_runs(&id)?;
        Ok((reader.slot(&id)?, reader.run_versions(&runs)?, runs))
    });
    let (Some(_), versions, runs) = found.await? else { return Err(super::slots::unknown(&slot)) };
    let items = runs.into_iter().zip(versions).map(|(run, version)| RunDto::of_version(run, version)).collect();
    Ok(Json(ListDto { items }))
}

/// Shows a run.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/runs/{number}", tag = "runs", params(RunPath), responses(
    (status = 200, description = "The run", body = RunDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn one(Path(path): Path<RunPath>, _: Query<NoParameters>, app: App) -> Result<Json<RunDto>, Fault> {
    let run = recorded(&app, path.run(&app).await?).await?;
    let of = run.clone();
    let versions = app.read(move |reader| reader.run_versions(&[of])).await?;
    Ok(Json(RunDto::of_version(run, versions.into_iter().next().flatten())))
}

/// The record of a run.
async fn recorded(app: &App, id: RunId) -> Result<Run, Fault> {
    match known(app, id).await? {
        KnownRun::Kept(run) => Ok(*run),
        KnownRun::Removed(RemovedRun { id: RunId { slot, number }, until, .. }) => {
            let until = until.map(|at| format!(" up to {}", format_short(at))).unwrap_or_default();
            let detail = format!("run {number} of slot {} was removed with the history{until}", slot.short());
            Err(Fault::not_found("run-not-found", detail))
        }
    }
}

/// A run, or one whose record is gone: its output may still be there.
pub(super) async fn known(app: &App, id: RunId) -> Result<KnownRun, Fault> {
    let of = id.clone();
    app.read(move |reader| reader.known_run(&of)).await?.ok_or_else(|| {
        let detail = format!("slot {} has no run number {}", id.slot.short(), id.number);
        Fault::not_found("run-not-found", detail)
    })
}
