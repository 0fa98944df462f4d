//! What lies between two moments.

use axum::Json;
use kelos_explain::periods::{self, BlockedSlot, Focus, FocusBox, FocusQuery, FocusRow, Selection};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_front::zone::{self, moment};
use kelos_model::WorkflowId;
use kelos_model::ranges::Range;
use kelos_wire::{BlockedDto, FocusBoxDto, FocusDto, FocusRowDto, ProblemDetailsDto, TimeText, counts};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::FromLibrary;
use super::extract::{Query, ZoneName};

/// The part of time to look at, and the workflows.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FocusListQuery {
    /// The first moment. Without an offset it is one of the zone.
    #[param(value_type = String)]
    from: TimeText,
    /// The first moment beyond. Without an offset it is one of the zone.
    #[param(value_type = String)]
    to: TimeText,
    /// Only this workflow, even if it is no longer defined.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only workflows of this project.
    project: Option<String>,
    /// Only workflows with this tag.
    tag: Option<String>,
    /// The zone of times without an offset, and of the days, weeks and months in which many slots are counted; by default that of the
    /// workflow, or else UTC.
    #[param(value_type = Option<String>)]
    zone: Option<ZoneName>,
    /// Whether to tell the versions of definitions.
    #[serde(default)]
    versions: bool,
    /// The number of workflows to pass over, by default 0. An answer has 50 at the most.
    #[serde(default)]
    skip: usize,
}

impl FromLibrary<FocusBox> for FocusBoxDto {
    fn from_library(one: FocusBox) -> FocusBoxDto {
        FocusBoxDto {
            from: one.range.start.into(),
            to: one.range.end.into(),
            total: one.total(),
            states: counts(one.states),
            to_come: one.to_come,
            out_of_range: one.out_of_range.into_iter().map(|(reason, count)| (reason.to_string(), count)).collect(),
            version: one.version.as_ref().map(|version| version.number),
            project_version: one.version.and_then(|version| version.project).map(String::from),
        }
    }
}

impl FromLibrary<FocusRow> for FocusRowDto {
    fn from_library(row: FocusRow) -> FocusRowDto {
        FocusRowDto {
            workflow: row.workflow.to_string(),
            periods: row.is_of_periods,
            paused: row.is_paused,
            boxes: row.boxes.into_iter().map(FocusBoxDto::from_library).collect(),
        }
    }
}

impl FromLibrary<BlockedSlot> for BlockedDto {
    fn from_library(one: BlockedSlot) -> BlockedDto {
        BlockedDto { slot: (&one.slot).into(), state: one.state.as_str().into(), blockers: one.blockers }
    }
}

fn answer(range: Range, found: Focus) -> FocusDto {
    FocusDto {
        from: range.start.into(),
        to: range.end.into(),
        rows: found.rows.into_iter().map(FocusRowDto::from_library).collect(),
        more: found.more,
        blocked: found.blocked.into_iter().map(BlockedDto::from_library).collect(),
        partial: found.is_partial,
    }
}

/// Tells what lies between two moments: the slots of each workflow, those that succeeded side by side as one, and what the others
/// wait for. Where a workflow has more than 240, they are counted by hours, days, weeks or months.
#[utoipa::path(get, path = "/focus", tag = "slots", params(FocusListQuery), responses(
    (status = 200, description = "The workflows and their slots", body = FocusDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn focus(Query(wanted): Query<FocusListQuery>, app: App) -> Result<Json<FocusDto>, Fault> {
    let zone = zone::of_view(&app, wanted.workflow.as_ref(), wanted.zone.map(|zone| zone.0)).await?;
    let (from, to) = (moment("from", &wanted.from, &zone)?, moment("to", &wanted.to, &zone)?);
    let range = super::slots::range(Some(from), Some(to))?.unwrap_or(Range::new(from, to));
    let most = i64::from(periods::MOST_FOCUS_HOURS);
    if range.end.duration_since(range.start).as_hours() > most {
        let why = format!("`from` and `to` are too far apart, expected at most {most} hours");
        return Err(Fault::bad_request("bad-query", why));
    }
    let of = Selection { workflow: wanted.workflow, project: wanted.project, tag: wanted.tag };
    let named = of.workflow.clone();
    let query = FocusQuery { of, range, zone, versions: wanted.versions, skip: wanted.skip };
    let now = app.handle().now();
    let (unknown, found) = app
        .read(move |reader| {
            let unknown = named.map_or(Ok(None), |id| Ok(reader.workflow(&id)?.is_none().then_some(id)))?;
            Ok((unknown, periods::focus(reader, &query, now)?))
        })
        .await?;
    match unknown {
        Some(unknown) => Err(super::workflows::unknown(&unknown)),
        None => Ok(Json(answer(range, found))),
    }
}
