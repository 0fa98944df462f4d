//! When schedules fire next, and when they last did.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use jiff::Timestamp;
use kelos::model::project::{DEFAULT_VERSION, ProjectName};
use kelos::model::time::Firing;
use kelos::model::workflow::WorkflowRow;
use kelos::model::{Event, Occurrence, SlotEvent, SlotRef, Subject, Trigger, WorkflowId};
use kelos::schedules::overview::next_times;
use kelos::store::{Reader, SlotFilter, SlotRow, StoreError};
use serde_json::{Value, json};

use super::asked::{self, Asked};
use super::catalogue::{Catalogue, ProgramName, events};
use super::fault::Fault;
use super::fields::{self, Field};
use super::kind::{self, Kind, WORKFLOW};
use super::schedules::{look, schedules_of};
use crate::app::App;

/// How many slots are looked at for the last time that an expression fired.
const LOOK_BACK: usize = 20;

/// How many events of a slot are looked at for the last time in it.
const LOOKED_AT: usize = 1000;

/// How many programs may be asked about at once.
const LARGEST_BATCH: usize = 1000;

/// Which times.
#[derive(Clone, Copy)]
enum Which {
    Next(Timestamp),
    Previous,
}

pub(super) async fn next(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    one(&asked, &app, Which::Next(now)).await
}

pub(super) async fn previous(asked: Asked, State(app): State<App>) -> Result<Json<Value>, Fault> {
    one(&asked, &app, Which::Previous).await
}

async fn one(asked: &Asked, app: &App, which: Which) -> Result<Json<Value>, Fault> {
    let program = asked.program()?;
    look(app, move |catalogue| times(catalogue, &program, which).map(Json)).await
}

pub(super) async fn all_next(asked: Asked, State(app): State<App>, body: Bytes) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    several(&asked, &app, &body, Which::Next(now)).await
}

pub(super) async fn all_previous(asked: Asked, State(app): State<App>, body: Bytes) -> Result<Json<Value>, Fault> {
    several(&asked, &app, &body, Which::Previous).await
}

/// The times of many programs, each with a status of its own.
async fn several(asked: &Asked, app: &App, body: &[u8], which: Which) -> Result<Json<Value>, Fault> {
    let body = fields::json(body)?;
    let namespace = asked.name("namespace").to_owned();
    look(app, move |catalogue| {
        let about = Field::whole(&body).elements()?;
        if about.len() > LARGEST_BATCH {
            let many = about.len();
            return Err(Fault::bad_request(format!("the body has {many} programs, expected at most {LARGEST_BATCH}")));
        }
        let answers = about.iter().map(|about| of_batch(catalogue, about, &namespace, which));
        Ok(Json(answers.collect::<Result<Value, Fault>>()?))
    })
    .await
}

fn of_batch(catalogue: &Catalogue<'_>, about: &Field<'_>, namespace: &str, which: Which) -> Result<Value, Fault> {
    let text = |name: &str| about.need(name, "a name")?.name();
    let (app, kind, name) = (text("appId")?, text("programType")?, text("programId")?);
    let kind = about_kind(kind)
        .ok_or_else(|| about.refused(&format!("programType is \"{kind}\", expected {}", kind::NAMES)))?;
    let times = asked::project(namespace, app, DEFAULT_VERSION)
        .and_then(|project| times(catalogue, &ProgramName { project, kind, name: name.to_owned() }, which));
    let mut answer = json!({ "appId": app, "programType": kind.pretty, "programId": name });
    match times {
        Ok(times) => {
            answer["statusCode"] = json!(200);
            answer["schedules"] = times;
        }
        Err(fault) => {
            let (status, error) = fault.parts();
            answer["statusCode"] = json!(status);
            answer["error"] = json!(error);
        }
    }
    Ok(answer)
}

fn about_kind(text: &str) -> Option<Kind> {
    Kind::named(text).or_else(|| Kind::of_category(&text.to_ascii_lowercase()))
}

/// One entry for each cron expression of each schedule.
fn times(catalogue: &Catalogue<'_>, program: &ProgramName, which: Which) -> Result<Value, Fault> {
    if program.kind != WORKFLOW {
        let kind = program.kind.category;
        return Err(Fault::bad_request(format!("{kind} can't be scheduled, expected workflows")));
    }
    let row = catalogue.need_program(program)?;
    let mut entries = Vec::new();
    for schedule in schedules_of(catalogue, &row.id)? {
        for (firing, time) in fired(catalogue.reader(), &schedule, which)? {
            entries.push(json!({ "id": trigger_id(program, &schedule, &firing), "time": time.as_millisecond() }));
        }
    }
    Ok(Value::Array(entries))
}

/// What clients know a cron expression of a schedule by.
fn trigger_id(program: &ProgramName, schedule: &WorkflowRow, firing: &Firing) -> String {
    let ProjectName { namespace, application, version } = &program.project;
    let name = events(schedule).map_or("", |keys| &keys.name);
    let id = format!("DEFAULT.{namespace}:{application}:{version}:WORKFLOW:{}:{name}", program.name);
    match schedule.definition.trigger {
        Trigger::Fired { .. } => id,
        _ => format!("{id}:{}", firing.name()),
    }
}

fn fired(reader: &dyn Reader, schedule: &WorkflowRow, which: Which) -> Result<Vec<(Firing, Timestamp)>, StoreError> {
    let firings: Vec<Firing> = schedule.definition.trigger.firings().into_iter().cloned().collect();
    if firings.is_empty() {
        return Ok(Vec::new());
    }
    match which {
        Which::Next(_) if schedule.paused => Ok(Vec::new()),
        Which::Next(now) => Ok(next_times(&schedule.definition, now)),
        Which::Previous => {
            let last = last_times(reader, &schedule.id, &firings)?;
            let last_of = |firing: Firing| Some((firing.clone(), *last.get(&firing.name())?));
            Ok(firings.into_iter().filter_map(last_of).collect())
        }
    }
}

/// The last time of each expression that a slot of the schedule collected.
fn last_times(
    reader: &dyn Reader,
    schedule: &WorkflowId,
    firings: &[Firing],
) -> Result<BTreeMap<Arc<str>, Timestamp>, StoreError> {
    let filter = SlotFilter { workflow: Some(schedule.clone()), ..SlotFilter::default() };
    let mut last = BTreeMap::new();
    for row in reader.slots(&filter, None, LOOK_BACK)?.rows {
        for firing in firings {
            let name = firing.name();
            if !last.contains_key(&name)
                && let Some(time) = last_in(reader, &row, &name)?
            {
                last.insert(name, time);
            }
        }
        if last.len() == firings.len() {
            break;
        }
    }
    Ok(last)
}

/// The last time of an expression in a slot. Where several came, only the log has them all.
fn last_in(reader: &dyn Reader, row: &SlotRow, cron: &Arc<str>) -> Result<Option<Timestamp>, StoreError> {
    let collected = row.slot.collected.as_ref();
    let Some(tally) = collected.and_then(|collected| collected.of(&Subject::Fired(cron.clone()))) else {
        return Ok(None);
    };
    match tally.first.as_deref() {
        Some(first) if tally.facts == 1 => Ok(time_of(first, cron)),
        _ => last_logged(reader, &row.id, cron),
    }
}

fn last_logged(reader: &dyn Reader, slot: &SlotRef, cron: &Arc<str>) -> Result<Option<Timestamp>, StoreError> {
    let mut times = reader.latest(slot, LOOKED_AT)?.into_iter().filter_map(|record| match record.event {
        Event::Slot { what: SlotEvent::Collected { what, .. }, .. } => time_of(&what, cron),
        _ => None,
    });
    Ok(times.next())
}

fn time_of(what: &Occurrence, wanted: &Arc<str>) -> Option<Timestamp> {
    match what {
        Occurrence::Fired { cron, time } if cron == wanted => Some(*time),
        _ => None,
    }
}
