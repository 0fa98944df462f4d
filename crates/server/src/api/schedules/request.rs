//! Definitions of event schedules, made from requests: a new one, or one with changes.

use std::collections::BTreeMap;

use kelos_explain::schedules::check::check;
use kelos_front::fault::Fault;
use kelos_model::project::ProjectName;
use kelos_model::secret::masks;
use kelos_model::sharing::Shares;
use kelos_model::time::{Window, Zone};
use kelos_model::workflow::{CatchUp, EVENT_TIMEOUT_MILLIS, EventKeys, Keys, WorkflowRow};
use kelos_model::{Constraint, Deadline, Gate, Job, Workflow, WorkflowId};
use kelos_store::{Queries, StoreError};
use kelos_wire::{ConstraintDto, ScheduleRequest};

use super::super::dto::zone_of;

/// Longest name, description, name of a property and value of one, in bytes.
const LONGEST: [(&str, usize); 4] =
    [("name", 200), ("description", 10_000), ("name of a property", 500), ("value of a property", 65_536)];
/// Properties that one may have at the most.
const MOST_PROPERTIES: usize = 1000;
/// Constraints that one may have at the most.
const MOST_CONSTRAINTS: usize = 100;

fn read_zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).map_err(|error| error.to_string())
}

pub(super) fn bad(why: impl Into<String>) -> Fault {
    Fault::bad_request("bad-body", why)
}

fn lacking(field: &str) -> Fault {
    bad(format!("`{field}` is missing"))
}

/// The definition of a workflow that an event schedule may run.
fn program(reader: &dyn Queries, text: &str, project: Option<&str>) -> Result<Result<WorkflowRow, Fault>, StoreError> {
    let by_id = WorkflowId::new(text).ok();
    let in_project = project.and_then(|project| ProjectName::read(project).member(None, text).ok());
    for id in by_id.into_iter().chain(in_project) {
        if let Some(row) = reader.workflow(&id)?.filter(|row| row.present) {
            return Ok(runnable(row));
        }
    }
    if let Some(row) = reader.workflows(None)?.into_iter().find(|row| is_of_another_kind(row, text, project)) {
        return Ok(runnable(row));
    }
    Ok(Err(unknown_program(text)))
}

pub(super) fn unknown_program(text: &str) -> Fault {
    let problem = Fault::not_found("program-not-found", format!("there is no workflow \"{text}\" to run"));
    problem.with_hint("GET /api/v1/workflows lists the workflows")
}

/// Whether a program that is no workflow has that name: its id has its kind in it.
fn is_of_another_kind(row: &WorkflowRow, text: &str, project: Option<&str>) -> bool {
    let Keys::Requests(program) = &row.definition.keys else { return false };
    let own = &row.definition.project;
    // Without a kind it would be taken for a workflow.
    let own_name = ProjectName::read(own);
    let as_workflow = own_name.member(None, &program.name);
    let is_named = program.name == text && project.map(ProjectName::read) == Some(own_name)
        || as_workflow.is_ok_and(|id| id.as_str() == text);
    row.present && program.kind.is_some() && is_named
}

fn runnable(row: WorkflowRow) -> Result<WorkflowRow, Fault> {
    match &row.definition.keys {
        Keys::Events(_) => Err(bad(format!("{} is an event schedule: expected a workflow for it to run", row.id))),
        Keys::Requests(program) if program.kind.is_some() => {
            let kind = program.kind.as_deref().unwrap_or_default();
            Err(bad(format!("{} is a {kind} program: only workflows can be scheduled", row.id)))
        }
        _ => Ok(row),
    }
}

/// A request, to be made into a definition.
pub(super) struct Draft(pub(super) ScheduleRequest);

impl Draft {
    /// The definition of a new event schedule.
    ///
    /// # Errors
    /// When the store can't be read; the inner one when this is none.
    pub(super) fn create(self, reader: &dyn Queries) -> Result<Result<Workflow, Fault>, StoreError> {
        let Some(wanted) = self.0.program.as_deref() else { return Ok(Err(lacking("program"))) };
        let program = match program(reader, wanted, self.0.project.as_deref())? {
            Ok(program) => program,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(self.define(&program))
    }

    fn define(self, program: &WorkflowRow) -> Result<Workflow, Fault> {
        let name = self.0.name.clone().ok_or_else(|| lacking("name"))?;
        if self.0.trigger.is_none() {
            return Err(lacking("trigger"));
        }
        let project = self.0.project.clone().unwrap_or_else(|| program.definition.project.clone());
        let project = ProjectName::read(&project);
        let id = member(&project, &name)?;
        let mut keys = EventKeys::new(&name, program.id.clone());
        keys.enabled = self.0.enabled.unwrap_or(false);
        let new = Workflow::keyed(id, Keys::Events(Box::new(keys)), Job::clone(&program.definition.job));
        self.apply(Workflow { project: project.to_string(), ..new }, None)
    }

    /// An event schedule that exists, with nothing left but its name and its program, for a definition in its place.
    pub(super) fn replace(
        self,
        row: &WorkflowRow,
        reader: &dyn Queries,
    ) -> Result<Result<Workflow, Fault>, StoreError> {
        let Some(events) = row.definition.keys.events() else { return Ok(Err(none(&row.id))) };
        if self.0.trigger.is_none() {
            return Ok(Err(lacking("trigger")));
        }
        let keys = EventKeys { enabled: events.enabled, ..EventKeys::new(&events.name, events.program.clone()) };
        let bare = Workflow::keyed(row.id.clone(), Keys::Events(Box::new(keys)), row.definition.job.clone());
        let bare = Workflow { project: row.definition.project.clone(), source: row.definition.source.clone(), ..bare };
        self.on(bare, reader)
    }

    /// An existing event schedule with the given parts changed.
    pub(super) fn change(self, row: &WorkflowRow, reader: &dyn Queries) -> Result<Result<Workflow, Fault>, StoreError> {
        self.on(Workflow::clone(&row.definition), reader)
    }

    fn on(self, before: Workflow, reader: &dyn Queries) -> Result<Result<Workflow, Fault>, StoreError> {
        let Keys::Events(events) = &before.keys else { return Ok(Err(none(&before.id))) };
        if let Err(problem) = self.fits(&before, &events.name) {
            return Ok(Err(problem));
        }
        let program =
            match self.0.program.as_deref().map(|wanted| program(reader, wanted, Some(&before.project))).transpose()? {
                Some(Ok(program)) => Some(program.id),
                Some(Err(problem)) => return Ok(Err(problem)),
                None => None,
            };
        Ok(self.apply(before, program))
    }

    /// Whether what can't change is left as it is.
    fn fits(&self, before: &Workflow, name: &str) -> Result<(), Fault> {
        if self.0.name.as_deref().is_some_and(|given| given != name) {
            return Err(bad(format!("`name` can't be changed: {} keeps its own", before.id)));
        }
        if self.0.project.as_ref().is_some_and(|given| ProjectName::read(given) != ProjectName::read(&before.project)) {
            return Err(bad(format!("`project` can't be changed: {} belongs to {}", before.id, before.project)));
        }
        if self.0.enabled.is_some() {
            let why = format!("`enabled` can't be changed here: {} stays as it is", before.id);
            return Err(bad(why).with_hint("POST …/enable and …/disable change it"));
        }
        Ok(())
    }

    /// A definition with the given parts replaced.
    fn apply(mut self, mut workflow: Workflow, program: Option<WorkflowId>) -> Result<Workflow, Fault> {
        self.check_sizes()?;
        let zone = self.zone(&workflow)?;
        self.apply_gates(&mut workflow, &zone)?;
        if let Some(description) = self.0.description.take() {
            workflow.about.description = description.filter(|text| !text.is_empty());
        }
        if let Some(start) = self.0.start_time {
            workflow.start_time = start.map(|at| at.0);
        }
        if let Some(deadline) = self.0.deadline.take() {
            let read = deadline.map(|value| Deadline::read(&value, &zone)).transpose();
            workflow.deadline = read.map_err(|error| bad(format!("`deadline`: {error}")))?;
        }
        if let Some(shares) = self.0.shares.take() {
            let read = shares.map_or_else(|| Ok(Shares::default()), Shares::read);
            workflow.shares = read.map_err(|error| bad(format!("`shares`: failed to {error}")))?;
        }
        if let Keys::Events(keys) = &mut workflow.keys {
            keys.program = program.unwrap_or_else(|| keys.program.clone());
            self.apply_keys(keys);
        }
        check(&workflow).map_err(bad)?;
        Ok(workflow)
    }

    fn apply_gates(&mut self, workflow: &mut Workflow, zone: &Zone) -> Result<(), Fault> {
        match self.0.trigger.take() {
            Some(trigger) => workflow.trigger = trigger.read(zone, "trigger").map_err(bad)?,
            None if self.0.time_zone.is_some() => workflow.trigger = workflow.trigger.clone().within(zone),
            None => {}
        }
        match self.0.constraints.take() {
            Some(all) => workflow.constraints = constraints(&all, zone)?,
            None if self.0.time_zone.is_some() => windows_in(&mut workflow.constraints, zone),
            None => {}
        }
        Ok(())
    }

    fn apply_keys(self, keys: &mut EventKeys) {
        if let Some(mut properties) = self.0.properties {
            masks::unmask(&mut properties, &keys.properties);
            keys.properties = properties;
        }
        if let Some(timeout) = self.0.timeout_millis {
            keys.timeout_millis = timeout.unwrap_or(EVENT_TIMEOUT_MILLIS);
        }
        if let Some(end) = self.0.end_time {
            keys.end_time = end.map(|at| at.0);
        }
        keys.jitter_millis = self.0.jitter_millis.unwrap_or(keys.jitter_millis);
        keys.catch_up = self.0.catch_up.map_or(keys.catch_up, CatchUp::from);
    }

    /// The zone of times without one: the given one, or the one before.
    fn zone(&self, workflow: &Workflow) -> Result<Zone, Fault> {
        let name = self.0.time_zone.clone().or_else(|| zone_of(workflow));
        let zone = name.map_or_else(|| Ok(Zone::utc()), |name| read_zone(&name));
        zone.map_err(|why| bad(format!("`timeZone`: {why}")))
    }

    fn check_sizes(&self) -> Result<(), Fault> {
        let properties = self.0.properties.as_ref();
        if properties.is_some_and(|all| all.len() > MOST_PROPERTIES) {
            return Err(bad(format!("it has more than {MOST_PROPERTIES} properties")));
        }
        if self.0.constraints.as_ref().is_some_and(|all| all.len() > MOST_CONSTRAINTS) {
            return Err(bad(format!("it has more than {MOST_CONSTRAINTS} constraints")));
        }
        let names = properties.into_iter().flat_map(BTreeMap::keys);
        let values = properties.into_iter().flat_map(BTreeMap::values);
        let longest = |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).max().unwrap_or(0);
        let lengths = [
            longest(&mut self.0.name.iter()),
            longest(&mut self.0.description.iter().flatten()),
            longest(&mut names.into_iter()),
            longest(&mut values.into_iter()),
        ];
        let too_long = LONGEST.iter().zip(lengths).find(|((_, limit), length)| length > limit);
        too_long.map_or(Ok(()), |((what, limit), length)| {
            Err(bad(format!("its {what} has {length} bytes, expected at most {limit}")))
        })
    }
}

fn constraints(all: &[ConstraintDto], zone: &Zone) -> Result<Vec<Constraint>, Fault> {
    let read = all.iter().enumerate().map(|(n, one)| one.read(zone, &format!("constraints[{n}]")));
    read.collect::<Result<_, _>>().map_err(bad)
}

/// Puts all windows into another zone.
fn windows_in(constraints: &mut [Constraint], zone: &Zone) {
    for constraint in constraints {
        if let Gate::Window(window) = &constraint.gate
            && let Ok(moved) = Window::new(window.start(), window.end(), zone.clone())
        {
            constraint.gate = Gate::Window(moved);
        }
    }
}

/// The id of an event schedule of a project.
fn member(project: &ProjectName, name: &str) -> Result<WorkflowId, Fault> {
    if name.trim().is_empty() {
        return Err(bad("a schedule without a name: expected one"));
    }
    if name.contains(':') {
        return Err(bad(format!("\"{name}\" has a colon in it: expected a name without")));
    }
    if !project.is_sound() {
        return Err(bad(format!("`project` is \"{project}\", expected a form such as Purchase or prod:Purchase~1.2")));
    }
    project.member(None, name).map_err(|error| bad(error.to_string()))
}

fn none(id: &WorkflowId) -> Fault {
    kelos_core::Refusal::NoEventSchedule(id.clone()).into()
}
