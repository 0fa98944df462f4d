//! When schedules fire next, and when they last did.

use axum::Json;
use axum::body::Bytes;
use jiff::Timestamp;
use kelos_explain::schedules::overview::next_times;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::Trigger;
use kelos_model::project::ProjectName;
use kelos_model::time::Firing;
use kelos_model::workflow::WorkflowRow;
use serde_json::{Value, json};

use super::asked::CdapRequest;
use super::batch;
use super::catalogue::{Catalogue, ProgramName, events, look};
use super::kind::WORKFLOW;
use super::schedules::schedules_of;

/// The kind of times: next or previous.
#[derive(Clone, Copy)]
enum TimeKind {
    Next(Timestamp),
    Previous,
}

pub(super) async fn next(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    one(&asked, &app, TimeKind::Next(now)).await
}

pub(super) async fn previous(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    one(&asked, &app, TimeKind::Previous).await
}

async fn one(asked: &CdapRequest, app: &App, which: TimeKind) -> Result<Json<Value>, Fault> {
    let program = asked.program()?;
    look(app, move |catalogue| times(catalogue, &program, which).map(Json)).await
}

pub(super) async fn all_next(asked: CdapRequest, app: App, body: Bytes) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    several(&asked, &app, &body, TimeKind::Next(now)).await
}

pub(super) async fn all_previous(asked: CdapRequest, app: App, body: Bytes) -> Result<Json<Value>, Fault> {
    several(&asked, &app, &body, TimeKind::Previous).await
}

/// The times of many programs, each with its own status.
async fn several(asked: &CdapRequest, app: &App, body: &[u8], which: TimeKind) -> Result<Json<Value>, Fault> {
    batch::answer(asked, app, body, move |_| {
        Ok(move |catalogue: &Catalogue<'_>, program: &ProgramName| Ok(("schedules", times(catalogue, program, which)?)))
    })
    .await
}

/// One entry for each cron expression of each schedule.
fn times(catalogue: &Catalogue<'_>, program: &ProgramName, which: TimeKind) -> Result<Value, Fault> {
    if program.kind != WORKFLOW {
        let kind = program.kind.category;
        return Err(plain::bad_request(format!("{kind} can't be scheduled, expected workflows")));
    }
    let row = catalogue.need_program(program)?;
    let mut entries = Vec::new();
    for schedule in schedules_of(catalogue, &row.id)? {
        for (firing, time) in fired(&schedule, which) {
            entries.push(json!({ "id": trigger_id(program, &schedule, &firing), "time": time.as_millisecond() }));
        }
    }
    Ok(Value::Array(entries))
}

/// The id of a schedule's cron expression, as clients know it.
fn trigger_id(program: &ProgramName, schedule: &WorkflowRow, firing: &Firing) -> String {
    let ProjectName { namespace, application, version } = &program.project;
    let name = events(schedule).map_or("", |keys| &keys.name);
    let id = format!("DEFAULT.{namespace}:{application}:{version}:WORKFLOW:{}:{name}", program.name);
    match schedule.definition.trigger {
        Trigger::Fired { .. } => id,
        _ => format!("{id}:{}", firing.name()),
    }
}

fn fired(schedule: &WorkflowRow, which: TimeKind) -> Vec<(Firing, Timestamp)> {
    match which {
        TimeKind::Next(_) if !schedule.enabled => Vec::new(),
        TimeKind::Next(now) => next_times(&schedule.definition, now),
        TimeKind::Previous => {
            let last = |firing: &Firing| Some((firing.clone(), *schedule.moments.fired.get(&firing.name())?));
            schedule.definition.trigger.firings().into_iter().filter_map(last).collect()
        }
    }
}
