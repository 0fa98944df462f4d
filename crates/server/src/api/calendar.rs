//! How much of each day is done.

use axum::Json;
use jiff::ToSpan;
use jiff::civil::Date;
use kelos_explain::periods::{self, CalendarQuery, CompletionCalendar, DayCompletion, Days, MOST_DAYS, Selection};
use kelos_front::fault::Fault;
use kelos_front::{App, zone};
use kelos_model::WorkflowId;
use kelos_model::time::Zone;
use kelos_wire::{CalendarDayDto, CalendarDto, ProblemDetailsDto};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::FromLibrary;
use super::extract::{Day, Query, ZoneName};

/// Days before the last one, by default.
const USUAL_DAYS: i32 = 90;

/// The days to count, and of which workflows.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CalendarListQuery {
    /// Only of this workflow, even if it is no longer defined.
    #[param(value_type = Option<String>)]
    workflow: Option<WorkflowId>,
    /// Only of workflows of this project.
    project: Option<String>,
    /// Only of workflows with this tag.
    tag: Option<String>,
    /// The zone of the days, by default that of the workflow, or else UTC.
    #[param(value_type = Option<String>)]
    zone: Option<ZoneName>,
    /// The first day, such as `2026-03-01`; by default 90 days before the last.
    #[param(value_type = Option<String>)]
    from: Option<Day>,
    /// The last day, by default today.
    #[param(value_type = Option<String>)]
    to: Option<Day>,
}

impl FromLibrary<DayCompletion> for CalendarDayDto {
    fn from_library(day: DayCompletion) -> CalendarDayDto {
        CalendarDayDto {
            date: day.date.to_string(),
            from: day.range.start.into(),
            to: day.range.end.into(),
            total: day.total(),
            percent: day.percent(),
            done: day.done,
            failed: day.failed,
            running: day.running,
            stuck: day.stuck,
            to_do: day.to_do,
            ended: day.ended,
            out_of_range: day.out_of_range,
        }
    }
}

fn answer(zone: &Zone, found: CompletionCalendar) -> CalendarDto {
    CalendarDto {
        zone: zone.name().to_owned(),
        workflows: found.workflows.len(),
        days: found.days.into_iter().map(CalendarDayDto::from_library).collect(),
        partial: found.is_partial,
    }
}

/// Tells how much of each day is done: the states of the slots whose times are in it.
#[utoipa::path(get, path = "/calendar", tag = "slots", params(CalendarListQuery), responses(
    (status = 200, description = "The days", body = CalendarDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn calendar(Query(wanted): Query<CalendarListQuery>, app: App) -> Result<Json<CalendarDto>, Fault> {
    let now = app.handle().now();
    let zone = zone::of_view(&app, wanted.workflow.as_ref(), wanted.zone.map(|zone| zone.0)).await?;
    let (first, last) = days(wanted.from, wanted.to, Days::date(&zone, now))?;
    let of = Selection { workflow: wanted.workflow, project: wanted.project, tag: wanted.tag };
    let unknown = of.workflow.clone();
    let query = CalendarQuery { of, zone: zone.clone(), first, last };
    let (known, found) = app
        .read(move |reader| {
            let known = unknown.map_or(Ok(None), |id| Ok(reader.workflow(&id)?.is_none().then_some(id)))?;
            Ok((known, periods::calendar(reader, &query, now)?))
        })
        .await?;
    match known {
        Some(unknown) => Err(super::workflows::unknown(&unknown)),
        None => Ok(Json(answer(&zone, found))),
    }
}

/// The first and the last day.
fn days(from: Option<Day>, to: Option<Day>, today: Date) -> Result<(Date, Date), Fault> {
    let last = to.map_or(today, |day| day.0);
    let first = from.map_or_else(|| last.saturating_sub(USUAL_DAYS.days()), |day| day.0);
    if first > last {
        let why = format!("`from` is {first}, which is after `to`, {last}");
        return Err(Fault::bad_request("bad-query", why));
    }
    // Of the days up to today; later ones are not shown.
    let shown = last.min(today).since(first).map_or(i32::MAX, |span| span.get_days());
    if shown >= i32::try_from(MOST_DAYS).unwrap_or(i32::MAX) {
        let why = format!("from {first} to {last} are too many days, expected at most {MOST_DAYS}");
        return Err(Fault::bad_request("bad-query", why));
    }
    Ok((first, last))
}
