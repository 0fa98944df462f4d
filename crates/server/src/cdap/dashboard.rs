//! Runs of a stretch of time: those that were, and those that schedules will start by their cron expressions.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Query, State};
use jiff::{SignedDuration, Timestamp};
use kelos::model::facts::Collected;
use kelos::model::project::ProjectName;
use kelos::model::ranges::Range;
use kelos::model::workflow::WorkflowRow;
use kelos::model::{Run, Subject, WorkflowId};
use kelos::store::{RunFilter, StoreError};
use serde_json::{Value, json};

use super::asked::{self, Asked};
use super::catalogue::{Catalogue, ProgramName, events};
use super::fault::Fault;
use super::programs::status_of;
use super::schedules::look;
use crate::app::App;

/// So many runs, and so many times to come, are told of at the most.
const MOST: usize = 1000;

/// Which runs.
struct Wanted {
    range: Range,
    namespaces: BTreeSet<String>,
}

impl Wanted {
    fn read(asked: &Asked, pairs: Vec<(String, String)>) -> Result<Wanted, Fault> {
        asked.need("start")?;
        asked.need("duration")?;
        asked.need("namespace")?;
        let seconds = |name: &str| Ok::<_, Fault>(asked.number(name)?.unwrap_or(0));
        let start = seconds("start")?;
        let duration = seconds("duration")?;
        if duration < 0 {
            return Err(Fault::bad_request(format!("duration is {duration}, expected a number of seconds from 0")));
        }
        let moment = |seconds: i64| asked::moment(seconds.saturating_mul(1000));
        let range = Range::new(moment(start), moment(start.saturating_add(duration)));
        let namespaces = pairs.into_iter().filter(|(name, _)| name == "namespace").map(|(_, value)| value).collect();
        Ok(Wanted { range, namespaces })
    }
}

pub(super) async fn dashboard(
    asked: Asked,
    Query(pairs): Query<Vec<(String, String)>>,
    State(app): State<App>,
) -> Result<Json<Value>, Fault> {
    let wanted = Wanted::read(&asked, pairs)?;
    let now = app.handle().now();
    look(&app, move |catalogue| {
        let mut records = past(catalogue, &wanted)?;
        records.extend(coming(catalogue, &wanted, now)?);
        Ok(Json(Value::Array(records)))
    })
    .await
}

/// What is the same for all records.
fn record(program: &ProgramName, start: Timestamp, method: &str) -> Value {
    let ProjectName { namespace, application, version } = &program.project;
    json!({
        "namespace": namespace, "application": { "name": application, "version": version },
        "type": program.kind.name, "program": program.name, "startMethod": method, "start": start.as_second(),
    })
}

fn past(catalogue: &Catalogue<'_>, wanted: &Wanted) -> Result<Vec<Value>, StoreError> {
    let filter = RunFilter { range: Some(wanted.range), ..RunFilter::default() };
    let mut records = Vec::new();
    for run in catalogue.reader().runs(&filter, None, MOST)?.rows {
        let began = run.dispatched_at;
        if wanted.range.start <= began
            && began < wanted.range.end
            && let Some(record) = of_run(catalogue, &run, &wanted.namespaces)?
        {
            records.push(record);
        }
    }
    Ok(records)
}

fn of_run(catalogue: &Catalogue<'_>, run: &Run, namespaces: &BTreeSet<String>) -> Result<Option<Value>, StoreError> {
    // The schedule may be gone by now.
    let Some(row) = catalogue.reader().workflow(&run.id.slot.workflow)? else { return Ok(None) };
    let program = program_of(catalogue, &row, row.definition.program())?;
    if !namespaces.contains(&program.project.namespace) {
        return Ok(None);
    }
    let slot = catalogue.reader().slot(&run.id.slot)?;
    let method = method(slot.as_ref().and_then(|slot| slot.collected.as_deref()), &row);
    let mut record = record(&program, run.dispatched_at, method);
    record["run"] = json!(run.id.to_string());
    record["status"] = json!(status_of(run.state));
    if let Some(started) = run.started_at {
        record["running"] = json!(started.as_second());
    }
    if let Some(ended) = run.ended_at {
        record["end"] = json!(ended.as_second());
    }
    Ok(Some(record))
}

/// A program of the project that has the row.
fn program_of(catalogue: &Catalogue<'_>, row: &WorkflowRow, id: &WorkflowId) -> Result<ProgramName, StoreError> {
    let project = ProjectName::read(&row.definition.project);
    Ok(ProgramName { project, ..catalogue.program_name(id)? })
}

/// What began a run: a person, the clock, or something else that happened.
fn method(collected: Option<&Collected>, row: &WorkflowRow) -> &'static str {
    match collected {
        Some(collected) if collected.asked.is_some() => "MANUAL",
        Some(collected) if collected.tallies.keys().any(|subject| !matches!(subject, Subject::Fired(_))) => "TRIGGERED",
        _ if row.definition.keys.ticks().is_some() => "SCHEDULED",
        Some(collected) if !collected.tallies.is_empty() => "SCHEDULED",
        _ => "MANUAL",
    }
}

/// The times to come of schedules that are enabled.
fn coming(catalogue: &Catalogue<'_>, wanted: &Wanted, now: Timestamp) -> Result<Vec<Value>, StoreError> {
    let after_now = now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now);
    let from = wanted.range.start.max(after_now);
    let mut records = Vec::new();
    for row in catalogue.all()?.iter().filter(|row| !row.paused) {
        let Some(keys) = events(row) else { continue };
        if !wanted.namespaces.contains(&ProjectName::read(&row.definition.project).namespace) {
            continue;
        }
        let program = program_of(catalogue, row, &keys.program)?;
        let from = row.definition.start_time.map_or(from, |start| from.max(start));
        let until = keys.end_time.map_or(wanted.range.end, |end| wanted.range.end.min(end));
        for firing in row.definition.trigger.firings() {
            let left = MOST.saturating_sub(records.len());
            let times = firing.schedule().times(from, until).take(left);
            records.extend(times.map(|time| record(&program, time, "SCHEDULED")));
        }
    }
    Ok(records)
}
