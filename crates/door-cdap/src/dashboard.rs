//! Runs of a stretch of time: those that were, and those that schedules will start by their cron expressions.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use jiff::{SignedDuration, Timestamp};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::facts::Collection;
use kelos_model::project::ProjectName;
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Run, Subject, WorkflowId};
use kelos_store::{PageRequest, RunFilter, StoreError};
use serde_json::{Value, json};

use super::asked::{self, CdapRequest};
use super::catalogue::{Catalogue, ProgramName, events, look};
use super::runs::{name_of, status_of};

/// Most runs and times to come in one answer; a request for more is refused.
const MOST: usize = 50_000;
/// Runs that are read at a time.
const AT_A_TIME: usize = 1000;

/// The runs to report.
struct DashboardQuery {
    range: Range,
    namespaces: BTreeSet<String>,
}

impl DashboardQuery {
    fn read(asked: &CdapRequest) -> Result<DashboardQuery, Fault> {
        asked.need("start")?;
        asked.need("duration")?;
        asked.need("namespace")?;
        let seconds = |name: &str| Ok::<_, Fault>(asked.number(name)?.unwrap_or(0));
        let start = seconds("start")?;
        let duration = seconds("duration")?;
        if duration < 0 {
            return Err(plain::bad_request(format!("duration is {duration}, expected a number of seconds from 0")));
        }
        let moment = |seconds: i64| asked::moment(seconds.saturating_mul(1000));
        let range = Range::new(moment(start), moment(start.saturating_add(duration)));
        let namespaces = asked.all("namespace").map(str::to_owned).collect();
        Ok(DashboardQuery { range, namespaces })
    }
}

pub(super) async fn dashboard(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let wanted = DashboardQuery::read(&asked)?;
    let now = app.handle().now();
    look(&app, move |catalogue| {
        let mut records = past(catalogue, &wanted)?;
        add_coming(catalogue, &wanted, now, &mut records)?;
        Ok(Json(Value::Array(records)))
    })
    .await
}

/// The fields that all records have.
fn record(program: &ProgramName, start: Timestamp, method: &str) -> Value {
    let ProjectName { namespace, application, version } = &program.project;
    json!({
        "namespace": namespace, "application": { "name": application, "version": version },
        "type": program.kind.name, "program": program.name, "startMethod": method, "start": start.as_second(),
    })
}

fn too_many() -> Fault {
    plain::bad_request(format!("duration: it has more than {MOST} runs, expected a shorter stretch of time"))
}

/// Workflows by id, with the programs that they run; also those that are gone.
type ProgramsById = BTreeMap<WorkflowId, Option<(ProgramName, WorkflowRow)>>;

/// The runs that were under way in the stretch of time, newest first.
fn past(catalogue: &Catalogue<'_>, wanted: &DashboardQuery) -> Result<Vec<Value>, Fault> {
    let filter = RunFilter { range: Some(wanted.range), ..RunFilter::default() };
    let (mut records, mut known, mut from) = (Vec::new(), ProgramsById::new(), None::<String>);
    loop {
        let page = catalogue.reader().runs(&filter, PageRequest::newest(AT_A_TIME).after(from.as_deref()))?;
        for run in page.rows {
            records.extend(of_run(catalogue, &run, &wanted.namespaces, &mut known)?);
            if records.len() > MOST {
                return Err(too_many());
            }
        }
        from = page.next;
        if from.is_none() {
            return Ok(records);
        }
    }
}

fn known_workflow(
    catalogue: &Catalogue<'_>,
    id: &WorkflowId,
) -> Result<Option<(ProgramName, WorkflowRow)>, StoreError> {
    let Some(row) = catalogue.reader().workflow(id)? else { return Ok(None) };
    Ok(Some((program_of(catalogue, &row, row.definition.program())?, row)))
}

fn of_run(
    catalogue: &Catalogue<'_>,
    run: &Run,
    namespaces: &BTreeSet<String>,
    known: &mut ProgramsById,
) -> Result<Option<Value>, StoreError> {
    let id = &run.id.slot.workflow;
    if !known.contains_key(id) {
        known.insert(id.clone(), known_workflow(catalogue, id)?);
    }
    let Some(Some((program, row))) = known.get(id) else { return Ok(None) };
    if !namespaces.contains(&program.project.namespace) {
        return Ok(None);
    }
    let slot = catalogue.reader().slot(&run.id.slot)?;
    let method = method(slot.as_ref().and_then(|slot| slot.collected.as_deref()), row);
    let mut record = record(program, run.dispatched_at, method);
    record["run"] = json!(name_of(&run.id));
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

/// The start method of a run: by a person, by time, or by an event.
fn method(collected: Option<&Collection>, row: &WorkflowRow) -> &'static str {
    match collected {
        Some(collected) if collected.asked.is_some() => "MANUAL",
        Some(collected) if collected.tallies.keys().any(|subject| !matches!(subject, Subject::Fired(_))) => "TRIGGERED",
        _ if row.definition.keys.ticks().is_some() => "SCHEDULED",
        Some(collected) if !collected.tallies.is_empty() => "SCHEDULED",
        _ => "MANUAL",
    }
}

/// Adds the times to come of schedules that are enabled.
fn add_coming(
    catalogue: &Catalogue<'_>,
    wanted: &DashboardQuery,
    now: Timestamp,
    records: &mut Vec<Value>,
) -> Result<(), Fault> {
    let after_now = now.checked_add(SignedDuration::from_millis(1)).unwrap_or(now);
    let from = wanted.range.start.max(after_now);
    for row in catalogue.all()?.iter().filter(|row| row.enabled) {
        let Some(keys) = events(row) else { continue };
        if !wanted.namespaces.contains(&ProjectName::read(&row.definition.project).namespace) {
            continue;
        }
        let program = program_of(catalogue, row, &keys.program)?;
        let from = row.definition.start_time.map_or(from, |start| from.max(start));
        let until = keys.end_time.map_or(wanted.range.end, |end| wanted.range.end.min(end));
        for firing in row.definition.trigger.firings() {
            let left = MOST.saturating_sub(records.len());
            let times = firing.schedule().times(from, until).take(left + 1);
            records.extend(times.map(|time| record(&program, time, "SCHEDULED")));
            if records.len() > MOST {
                return Err(too_many());
            }
        }
    }
    Ok(())
}
