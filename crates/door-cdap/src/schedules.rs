//! Schedules: added, changed, shown, deleted, enabled and disabled.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use kelos_core::{ChangeSchedule, CreateSchedules, DeleteSchedules, Disable, Enable, Request};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::project::ProjectName;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Trigger, Workflow, WorkflowId};
use kelos_store::StoreError;
use serde_json::{Value, json};

use super::asked::CdapRequest;
use super::catalogue::{Catalogue, ProgramName, events, look, told};
use super::detail::{self, Detail};
use super::kind::WORKFLOW;
use super::{fields, profiles, trigger};

pub(super) async fn add(asked: CdapRequest, app: App, body: Bytes) -> Result<(), Fault> {
    let body = fields::object(&body)?;
    let (project, name) = (asked.project()?, asked.name("name").to_owned());
    let schedule = look(&app, move |catalogue| new_schedule(catalogue, &project, &name, &body)).await?;
    app.ask(&asked.by, CreateSchedules { new: vec![Arc::new(schedule)], reason: asked.reason() }).await?;
    Ok(())
}

/// The checks are in the order in which clients know them.
fn new_schedule(catalogue: &Catalogue<'_>, project: &ProjectName, name: &str, body: &Value) -> Result<Workflow, Fault> {
    let detail = Detail::read(body, catalogue)?;
    detail.check_name(name)?;
    let missing = |field: &str| plain::bad_request(format!("{field} is missing, expected it in the body"));
    let program = detail.program.as_ref().ok_or_else(|| missing("program"))?;
    let kind = program.kind.ok_or_else(|| missing("program.programType"))?;
    let program = program.name.clone().ok_or_else(|| missing("program.programName"))?;
    if detail.trigger.is_none() {
        return Err(missing("trigger"));
    }
    let program = catalogue.need_program(&ProgramName { project: project.clone(), kind, name: program })?;
    if kind != WORKFLOW {
        return Err(plain::bad_request(format!("program.programType is {}, expected WORKFLOW", kind.name)));
    }
    let schedule = detail::new_schedule(project, name, detail, &program)?;
    if is_taken(catalogue, &schedule.id)? {
        return Err(plain::conflict(format!("\"{name}\" exists already in {}", told(project))));
    }
    profiles::check(catalogue, project, &schedule)?;
    Ok(schedule)
}

fn is_taken(catalogue: &Catalogue<'_>, id: &WorkflowId) -> Result<bool, StoreError> {
    Ok(catalogue.reader().workflow(id)?.is_some_and(|row| row.present))
}

/// Acts on a schedule by the action in the path.
pub(super) async fn act(asked: CdapRequest, app: App, body: Bytes) -> Result<&'static str, Fault> {
    match asked.name("action") {
        "update" => update(&asked, &app, &body).await.map(|()| ""),
        "enable" | "resume" => switch(&asked, &app, |schedule, reason| Enable { schedule, reason }).await,
        "disable" | "suspend" => switch(&asked, &app, |schedule, reason| Disable { schedule, reason }).await,
        other => Err(plain::bad_request(format!(
            "\"{other}\" can't be done to a schedule, expected update, enable, resume, disable or suspend"
        ))),
    }
}

async fn update(asked: &CdapRequest, app: &App, body: &[u8]) -> Result<(), Fault> {
    let body = fields::object(body)?;
    let (project, name) = (asked.project()?, asked.name("name").to_owned());
    // Who changes a part must not undo what another one changes meanwhile.
    let _alone = app.changing_schedules().await;
    let changed = look(app, move |catalogue| changed_schedule(catalogue, &project, &name, &body)).await?;
    app.ask(&asked.by, ChangeSchedule { changed: Arc::new(changed), reason: asked.reason() }).await?;
    Ok(())
}

fn changed_schedule(
    catalogue: &Catalogue<'_>,
    project: &ProjectName,
    name: &str,
    body: &Value,
) -> Result<Workflow, Fault> {
    let row = catalogue.schedule(project, name);
    let said = row.as_ref().map(|row| said_anew(catalogue, row, body)).unwrap_or_else(|_| Ok(body.clone()))?;
    let detail = Detail::read(&said, catalogue)?;
    detail.check_name(name)?;
    let row = row?;
    check_program(catalogue, &row, &detail)?;
    let changed = detail::changed(&row, detail)?;
    profiles::check(catalogue, project, &changed)?;
    Ok(changed)
}

/// Omits an unchanged trigger: clients send back the body that they got, and some triggers can be written by scripts only.
fn said_anew(catalogue: &Catalogue<'_>, row: &WorkflowRow, body: &Value) -> Result<Value, StoreError> {
    let mut body = body.clone();
    if body.get("trigger") == Some(&trigger::write(&row.definition.trigger, catalogue)?) {
        body["trigger"] = Value::Null;
    }
    Ok(body)
}

/// The program of a schedule can't be changed.
fn check_program(catalogue: &Catalogue<'_>, row: &WorkflowRow, detail: &Detail) -> Result<(), Fault> {
    let (Some(program), Some(keys)) = (&detail.program, events(row)) else { return Ok(()) };
    let is = catalogue.program_name(&keys.program)?;
    let same_kind = program.kind.is_none_or(|kind| kind == is.kind);
    if same_kind && program.name.as_ref().is_none_or(|name| *name == is.name) {
        return Ok(());
    }
    let told =
        format!("the program of a schedule can't be changed: expected {} \"{}\", or none", is.kind.name, is.name);
    Err(plain::bad_request(told))
}

async fn switch<R: Request>(
    asked: &CdapRequest,
    app: &App,
    request: fn(WorkflowId, Option<String>) -> R,
) -> Result<&'static str, Fault> {
    let id = one(asked, app, |_, row| Ok(row.id.clone())).await?;
    app.ask(&asked.by, request(id, asked.reason())).await?;
    Ok("OK")
}

pub(super) async fn delete(asked: CdapRequest, app: App) -> Result<(), Fault> {
    let id = one(&asked, &app, |_, row| Ok(row.id.clone())).await?;
    app.ask(&asked.by, DeleteSchedules { schedules: vec![id], reason: asked.reason() }).await?;
    Ok(())
}

/// Reads from the row of the schedule in the path.
async fn one<T: Send + 'static>(
    asked: &CdapRequest,
    app: &App,
    know: fn(&Catalogue<'_>, &WorkflowRow) -> Result<T, StoreError>,
) -> Result<T, Fault> {
    let (project, name) = (asked.project()?, asked.name("name").to_owned());
    look(app, move |catalogue| {
        let row = catalogue.schedule(&project, &name)?;
        Ok(know(catalogue, &row)?)
    })
    .await
}

pub(super) async fn get(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    one(&asked, &app, |catalogue, row| detail::write(row, catalogue)).await.map(Json)
}

/// Answers a question about a schedule, by its name in the path.
pub(super) async fn about(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    if asked.name("action") != "status" {
        let told = format!("\"{}\" of a schedule is not supported, expected status", asked.name("action"));
        return Err(plain::of(StatusCode::NOT_IMPLEMENTED, told));
    }
    let status = one(&asked, &app, |_, row| Ok(detail::status_of(row))).await?;
    Ok(Json(json!({ "status": status })))
}

/// The schedules to list.
struct ScheduleFilter {
    disabled: Option<bool>,
    of_category: fn(&Trigger) -> bool,
}

impl ScheduleFilter {
    fn read(asked: &CdapRequest) -> Result<ScheduleFilter, Fault> {
        let of_category = match asked.get("trigger-type") {
            None => |_: &Trigger| true,
            Some(text) => trigger::is_of_category(text).ok_or_else(|| {
                plain::bad_request(format!("trigger-type is \"{text}\", expected {}", trigger::CATEGORIES))
            })?,
        };
        Ok(ScheduleFilter { disabled: asked.disabled()?, of_category })
    }

    fn is_met(&self, row: &WorkflowRow) -> bool {
        events(row).is_some()
            && self.disabled.is_none_or(|disabled| disabled != row.enabled)
            && (self.of_category)(&row.definition.trigger)
    }
}

/// Schedules as a list.
pub(super) fn written<'a>(
    rows: impl Iterator<Item = &'a WorkflowRow>,
    catalogue: &Catalogue<'_>,
) -> Result<Json<Value>, Fault> {
    let list = rows.map(|row| detail::write(row, catalogue)).collect::<Result<Vec<_>, _>>()?;
    Ok(Json(Value::Array(list)))
}

pub(super) async fn list(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (project, wanted) = (asked.project()?, ScheduleFilter::read(&asked)?);
    look(&app, move |catalogue| {
        let rows = catalogue.of_project(&project)?;
        written(rows.iter().filter(|row| wanted.is_met(row)), catalogue)
    })
    .await
}

pub(super) async fn of_program(asked: CdapRequest, app: App) -> Result<Json<Value>, Fault> {
    let (program, wanted) = (asked.program()?, ScheduleFilter::read(&asked)?);
    look(&app, move |catalogue| {
        let program = catalogue.need_program(&program)?;
        let rows = schedules_of(catalogue, &program.id)?;
        written(rows.iter().filter(|row| wanted.is_met(row)), catalogue)
    })
    .await
}

/// The schedules of a program, ascending by name.
pub(super) fn schedules_of(catalogue: &Catalogue<'_>, program: &WorkflowId) -> Result<Vec<WorkflowRow>, StoreError> {
    let mine = |row: &&WorkflowRow| events(row).is_some_and(|keys| keys.program == *program);
    Ok(catalogue.all()?.iter().filter(mine).cloned().collect())
}
