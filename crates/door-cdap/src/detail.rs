//! A schedule as bodies describe it, in both directions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_front::fault::{Fault, plain};
use kelos_model::arguments::MAPPING;
use kelos_model::project::ProjectName;
use kelos_model::secret::masks;
use kelos_model::time::{Zone, parse_instant};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, WorkflowRow};
use kelos_model::{Constraint, Deadline, Trigger, Workflow};
use kelos_store::StoreError;
use serde_json::{Map, Value, json};

use super::catalogue::{Catalogue, events};
use super::fields::Field;
use super::kind::{self, Kind};
use super::{constraint, trigger};

/// A schedule as the body of a request has it; fields that are left out are none. Its place and its status are ignored.
pub(super) struct Detail {
    pub(super) name: Option<String>,
    pub(super) program: Option<Program>,
    pub(super) trigger: Option<Trigger>,
    description: Option<String>,
    properties: Option<BTreeMap<String, String>>,
    constraints: Option<Vec<Constraint>>,
    timeout_millis: Option<u64>,
    start_time: Option<Option<Timestamp>>,
    end_time: Option<Option<Timestamp>>,
    jitter_millis: Option<u64>,
    catch_up: Option<CatchUp>,
    deadline: Option<Option<Deadline>>,
}

/// The program as a body names it.
pub(super) struct Program {
    pub(super) kind: Option<Kind>,
    pub(super) name: Option<String>,
}

/// The fields of a schedule.
const KNOWN: [&str; 17] = [
    "name",
    "description",
    "program",
    "properties",
    "trigger",
    "constraints",
    "timeoutMillis",
    "startTime",
    "endTime",
    "jitterMillis",
    "catchUp",
    "deadline",
    "namespace",
    "application",
    "applicationVersion",
    "status",
    "lastUpdateTime",
];

impl Detail {
    pub(super) fn read(body: &Value, catalogue: &Catalogue<'_>) -> Result<Detail, Fault> {
        let body = Field::whole(body);
        body.only(&KNOWN)?;
        let get = |name: &str| body.get(name);
        let text = |name: &str| get(name)?.map(|field| field.text().map(str::to_owned)).transpose();
        Ok(Detail {
            name: text("name")?,
            program: get("program")?.as_ref().map(Program::read).transpose()?,
            trigger: get("trigger")?.map(|field| trigger::read(&field, catalogue)).transpose()?,
            description: text("description")?,
            properties: get("properties")?.as_ref().map(properties).transpose()?,
            constraints: get("constraints")?.as_ref().map(constraints).transpose()?,
            timeout_millis: get("timeoutMillis")?.map(|field| field.millis()).transpose()?,
            start_time: get("startTime")?.as_ref().map(moment).transpose()?,
            end_time: get("endTime")?.as_ref().map(moment).transpose()?,
            jitter_millis: get("jitterMillis")?.map(|field| field.number(0, MOST_JITTER)).transpose()?,
            catch_up: get("catchUp")?.as_ref().map(catch_up).transpose()?,
            deadline: get("deadline")?.as_ref().map(deadline).transpose()?,
        })
    }

    /// Checks that the body names no other schedule than the path.
    pub(super) fn check_name(&self, name: &str) -> Result<(), Fault> {
        match &self.name {
            Some(other) if other != name => Err(plain::bad_request(format!(
                "name is \"{other}\", and the path names \"{name}\": expected the same name, or none"
            ))),
            _ => Ok(()),
        }
    }

    /// Replaces the fields that the body has; the others are kept.
    pub(super) fn put(self, workflow: &mut Workflow, keys: &mut EventKeys) {
        set(&mut workflow.trigger, self.trigger);
        set(&mut workflow.constraints, self.constraints);
        set(&mut workflow.start_time, self.start_time);
        set(&mut workflow.deadline, self.deadline);
        if let Some(description) = self.description {
            workflow.about.description = Some(description).filter(|text| !text.is_empty());
        }
        if let Some(mut properties) = self.properties {
            masks::unmask(&mut properties, &keys.properties);
            keys.properties = properties;
        }
        set(&mut keys.timeout_millis, self.timeout_millis);
        set(&mut keys.end_time, self.end_time);
        set(&mut keys.jitter_millis, self.jitter_millis);
        set(&mut keys.catch_up, self.catch_up);
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

impl Program {
    fn read(field: &Field<'_>) -> Result<Program, Fault> {
        field.only(&["programName", "programType"])?;
        let kind = |kind: Field<'_>| Kind::named(kind.text()?).ok_or_else(|| kind.wrong(kind::NAMES));
        Ok(Program {
            kind: field.get("programType")?.map(kind).transpose()?,
            name: field.get("programName")?.map(|name| name.name().map(str::to_owned)).transpose()?,
        })
    }
}

/// A day: a longer delay would be another firing.
const MOST_JITTER: u64 = 86_400_000;

fn properties(field: &Field<'_>) -> Result<BTreeMap<String, String>, Fault> {
    let one = |(name, field): (&str, Field<'_>)| Ok((name.to_owned(), property(name, &field)?));
    field.entries()?.into_iter().map(one).collect()
}

/// Numbers and truth values count as their texts, and the mapping may be written as the object that it is.
fn property(name: &str, field: &Field<'_>) -> Result<String, Fault> {
    match field.value {
        Value::Object(_) if name == MAPPING => Ok(field.value.to_string()),
        _ => field.argument(),
    }
}

fn constraints(field: &Field<'_>) -> Result<Vec<Constraint>, Fault> {
    field.elements()?.iter().map(constraint::read).collect()
}

/// A moment as a text or in milliseconds since 1970; an empty text removes it.
fn moment(field: &Field<'_>) -> Result<Option<Timestamp>, Fault> {
    let expected = "a time such as 2026-01-31T22:00Z, or milliseconds since 1970";
    match field.value {
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => parse_instant(text).map(Some).map_err(|error| field.refused(&error)),
        Value::Number(number) => {
            let at = number.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok());
            at.map(Some).ok_or_else(|| field.wrong(expected))
        }
        _ => Err(field.wrong(expected)),
    }
}

/// A deadline as scripts write it, in UTC where it names no zone; an empty text removes it.
fn deadline(field: &Field<'_>) -> Result<Option<Deadline>, Fault> {
    match field.value {
        Value::String(text) if text.is_empty() => Ok(None),
        value => Deadline::read(value, &Zone::utc()).map(Some).map_err(|error| field.refused(&error)),
    }
}

fn catch_up(field: &Field<'_>) -> Result<CatchUp, Fault> {
    let text = field.text()?.to_ascii_lowercase();
    CATCH_UPS
        .into_iter()
        .find(|(_, name)| *name == text)
        .map(|(how, _)| how)
        .ok_or_else(|| field.wrong("skip, latest or all"))
}

const CATCH_UPS: [(CatchUp, &str); 3] = [(CatchUp::Skip, "skip"), (CatchUp::Latest, "latest"), (CatchUp::All, "all")];

/// The name of a schedule's status.
pub(super) fn status_of(row: &WorkflowRow) -> &'static str {
    if row.enabled { "SCHEDULED" } else { "SUSPENDED" }
}

/// Writes a schedule. Fields of ours are left out if they are empty.
pub(super) fn write(row: &WorkflowRow, catalogue: &Catalogue<'_>) -> Result<Value, StoreError> {
    let Some(keys) = events(row) else { return Ok(Value::Null) };
    let definition = &row.definition;
    let ProjectName { namespace, application, version } = ProjectName::read(&definition.project);
    let program = catalogue.program_name(&keys.program)?;
    let mut fields = json!({
        "namespace": namespace, "application": application, "applicationVersion": version, "name": keys.name,
        "description": definition.about.description.as_deref().unwrap_or_default(),
        "program": { "programName": program.name, "programType": program.kind.name },
        "properties": keys.properties,
        "trigger": trigger::write(&definition.trigger, catalogue)?,
        "constraints": definition.constraints.iter().map(constraint::write).collect::<Vec<_>>(),
        "timeoutMillis": keys.timeout_millis,
        "status": status_of(row),
        "lastUpdateTime": row.moments.updated.map_or(0, Timestamp::as_millisecond),
    });
    if let Some(fields) = fields.as_object_mut() {
        add_ours(fields, definition, keys);
    }
    Ok(fields)
}

fn add_ours(fields: &mut Map<String, Value>, definition: &Arc<Workflow>, keys: &EventKeys) {
    let usual = EventKeys::new(&keys.name, keys.program.clone());
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    if let Some(start) = definition.start_time {
        add("startTime", json!(kelos_model::time::format_full(start)));
    }
    if let Some(end) = keys.end_time {
        add("endTime", json!(kelos_model::time::format_full(end)));
    }
    if keys.jitter_millis != usual.jitter_millis {
        add("jitterMillis", json!(keys.jitter_millis));
    }
    if let Some(deadline) = &definition.deadline {
        add("deadline", json!(deadline));
    }
    if let Some((_, name)) = CATCH_UPS.into_iter().find(|(how, _)| *how == keys.catch_up && *how != usual.catch_up) {
        add("catchUp", json!(name));
    }
}

/// A new schedule of a program.
pub(super) fn new_schedule(
    project: &ProjectName,
    name: &str,
    detail: Detail,
    program: &WorkflowRow,
) -> Result<Workflow, Fault> {
    if name.trim().is_empty() {
        return Err(plain::bad_request(format!("name is \"{name}\", expected one that says something")));
    }
    let id = project.member(None, name).map_err(|error| plain::bad_request(format!("name: {error}")))?;
    let mut keys = EventKeys::new(name, program.id.clone());
    let mut workflow = Workflow::keyed(id, Keys::Requests(no_program()), program.definition.job.clone());
    workflow.project = project.to_string();
    detail.put(&mut workflow, &mut keys);
    workflow.keys = Keys::Events(Box::new(keys));
    check(&workflow)?;
    Ok(workflow)
}

/// A schedule with some of its fields replaced.
pub(super) fn changed(row: &WorkflowRow, detail: Detail) -> Result<Workflow, Fault> {
    let mut workflow = Workflow::clone(&row.definition);
    let Keys::Events(mut keys) = std::mem::replace(&mut workflow.keys, Keys::Requests(no_program())) else {
        return Err(plain::not_found(format!("{} is no schedule", row.id)));
    };
    detail.put(&mut workflow, &mut keys);
    workflow.keys = Keys::Events(keys);
    check(&workflow)?;
    Ok(workflow)
}

/// Stands in for the keys of a schedule while they are made.
fn no_program() -> Box<kelos_model::workflow::Program> {
    Box::new(kelos_model::workflow::Program { name: String::new(), kind: None })
}

/// Checks that need more than one field.
fn check(workflow: &Workflow) -> Result<(), Fault> {
    kelos_explain::schedules::check::check(workflow).map_err(plain::bad_request)
}
