//! References from one project to another: of definitions, of their triggers, and of the facts that requests bring.
//!
//! A definition is taken apart here field by field, and a trigger leaf by leaf. A new field, leaf, kind of key or subject of facts
//! does not compile until it says here which references it makes, and a new kind of reference not until it has a rule.

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use super::declaration::EVERYONE;
use super::outputs::uses_outputs;
use crate::arguments::MAPPING;
use crate::constraint::{Constraint, Gate};
use crate::facts::{Occurrence, Subject};
use crate::id::WorkflowId;
use crate::jobs::{Feed, JobKeys};
use crate::time::schedule::Schedule;
use crate::trigger::{Coverage, FactLeaf, Leaf, Trigger};
use crate::workflow::{EventKeys, Keys, Workflow};

/// A reference to something that may belong to another project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// The state of a slot of a workflow, which a trigger waits for.
    State(WorkflowId),
    /// The times of a workflow's schedule.
    Times(WorkflowId),
    /// The ends of the runs of a program, which a trigger waits for.
    End(WorkflowId),
    /// The arguments and the outputs of the runs of a workflow.
    Runs(WorkflowId),
    /// Facts about the partitions of a dataset.
    Partitions(Arc<str>),
    /// A signal with its payload.
    Signal(Arc<str>),
    /// A workflow that is started: by an event schedule, or by jobs that wait for its jobs.
    Start(WorkflowId),
    /// A report that a run of a program has ended.
    ReportEnd(WorkflowId),
    /// A report of new partitions of a dataset.
    ReportPartitions(Arc<str>),
    /// A signal that is given.
    GiveSignal(Arc<str>),
}

/// The consent that a kind of reference needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// None: every project lets others wait for the states of its slots.
    None,
    /// The other project has to declare that it may be seen, in this field.
    Sees(&'static str),
    /// The other project has to declare that it may be sent, in this field.
    Sends(&'static str),
}

/// The thing that a reference names, which belongs to a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Referent {
    /// A workflow, or a program of another system.
    Workflow(WorkflowId),
    /// A dataset.
    Dataset(Arc<str>),
    /// A signal.
    Signal(Arc<str>),
}

impl Reference {
    /// The consent that it needs, in the one place that says so.
    #[must_use]
    pub fn consent(&self) -> Consent {
        match self {
            Reference::State(_) | Reference::Times(_) | Reference::End(_) => Consent::None,
            Reference::Runs(_) => Consent::Sees("runs"),
            Reference::Partitions(_) => Consent::Sees("datasets"),
            Reference::Signal(_) => Consent::Sees("signals"),
            Reference::Start(_) => Consent::Sends("starts"),
            Reference::ReportEnd(_) => Consent::Sends("ends"),
            Reference::ReportPartitions(_) => Consent::Sends("datasets"),
            Reference::GiveSignal(_) => Consent::Sends("signals"),
        }
    }

    /// The thing that it names.
    #[must_use]
    pub fn referent(&self) -> Referent {
        match self {
            Reference::State(id)
            | Reference::Times(id)
            | Reference::End(id)
            | Reference::Runs(id)
            | Reference::Start(id)
            | Reference::ReportEnd(id) => Referent::Workflow(id.clone()),
            Reference::Partitions(name) | Reference::ReportPartitions(name) => Referent::Dataset(name.clone()),
            Reference::Signal(name) | Reference::GiveSignal(name) => Referent::Signal(name.clone()),
        }
    }

    /// The reference that publishing a fact makes; none for what only Kelos itself reports, and for signals to a run of a flow, which
    /// need the right for its workflow.
    #[must_use]
    pub fn of_fact(what: &Occurrence) -> Option<Reference> {
        match what {
            Occurrence::Partitions { dataset, .. } => Some(Reference::ReportPartitions(dataset.clone())),
            Occurrence::Ended { program, .. } => Some(Reference::ReportEnd(program.clone())),
            Occurrence::Signal { name, run: None, .. } => Some(Reference::GiveSignal(name.clone())),
            Occurrence::Signal { run: Some(_), .. } | Occurrence::Fired { .. } => None,
        }
    }

    /// The line of the other project's script that allows it to a project; none where no consent is needed.
    #[must_use]
    pub fn allowing_line(&self, project: &str) -> Option<String> {
        let (side, field) = match self.consent() {
            Consent::None => return None,
            Consent::Sees(field) => ("sees", field),
            Consent::Sends(field) => ("sends", field),
        };
        let name = self.referent().name().to_owned();
        let project = if project.is_empty() { EVERYONE } else { project };
        Some(format!(
            "kelos.project({{ shares: {{ {}: {{ {side}: {{ {field}: [{}] }} }} }} }})",
            json!(project),
            json!(name)
        ))
    }
}

impl Referent {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Referent::Workflow(id) => id.as_str(),
            Referent::Dataset(name) | Referent::Signal(name) => name,
        }
    }

    /// The reference of a definition that waits for facts about it.
    #[must_use]
    pub fn awaited(&self) -> Reference {
        match self {
            Referent::Workflow(id) => Reference::End(id.clone()),
            Referent::Dataset(name) => Reference::Partitions(name.clone()),
            Referent::Signal(name) => Reference::Signal(name.clone()),
        }
    }

    /// The thing that facts about a subject name; none for times, which belong to nobody.
    #[must_use]
    pub fn of_subject(subject: &Subject) -> Option<Referent> {
        match subject {
            Subject::Partitions(dataset) => Some(Referent::Dataset(dataset.clone())),
            Subject::Ended(program, _) => Some(Referent::Workflow(program.clone())),
            Subject::Signal(name) => Some(Referent::Signal(name.clone())),
            Subject::Fired(_) => None,
        }
    }
}

/// `the signal "refresh"`.
impl fmt::Display for Referent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Referent::Workflow(id) => write!(f, "{id}"),
            Referent::Dataset(name) => write!(f, "the dataset \"{name}\""),
            Referent::Signal(name) => write!(f, "the signal \"{name}\""),
        }
    }
}

/// `the arguments and outputs of load`.
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let referent = self.referent();
        match self {
            Reference::State(_) => write!(f, "the states of slots of {referent}"),
            Reference::Times(_) => write!(f, "the times of {referent}"),
            Reference::End(_) => write!(f, "the ends of runs of {referent}"),
            Reference::Runs(_) => write!(f, "the arguments and outputs of runs of {referent}"),
            Reference::Partitions(_) | Reference::Signal(_) => write!(f, "{referent}"),
            Reference::Start(_) => write!(f, "starting {referent}"),
            Reference::ReportEnd(_) => write!(f, "reporting ends of runs of {referent}"),
            Reference::ReportPartitions(_) => write!(f, "reporting partitions of {referent}"),
            Reference::GiveSignal(_) => write!(f, "giving {referent}"),
        }
    }
}

impl Workflow {
    /// All references of the definition that may be to other projects, each once, in their order.
    #[must_use]
    pub fn references(&self) -> Vec<Reference> {
        // Every field is named, so that a new one does not compile until it is decided whether it refers to anything.
        let Workflow {
            id: _,
            project: _,
            source: _,
            keys,
            trigger,
            constraints,
            concurrency: _,
            batch: _,
            // Pools belong to no project: everybody may know their names, and shares their permits.
            pools: _,
            within: _,
            retry: _,
            start_time: _,
            end_time: _,
            catch_up: _,
            wait_timeout_seconds: _,
            wait_from: _,
            deadline: _,
            // Jobs and steps refer to others by the outputs that they use.
            job: _,
            flow: _,
            parameters: _,
            // Paths are outside: who may read them is decided there.
            writes: _,
            version: _,
            about: _,
            // A declaration gives consent, and refers to what is the project's own.
            shares: _,
        } = self;
        let mut found = of_trigger(trigger);
        found.extend(of_keys(keys));
        constraints.iter().for_each(of_constraint);
        found.extend(self.references_by_outputs(&found));
        found.sort();
        found.dedup();
        found
    }

    /// The references by what a run is given of the runs that it waits for: a mapping takes arguments and outputs, and a job may use outputs
    /// of what comes before it.
    fn references_by_outputs(&self, found: &[Reference]) -> Vec<Reference> {
        let has_mapping = self.keys.events().is_some_and(|events| events.properties.contains_key(MAPPING));
        let takes = |one: &&Reference| match one {
            Reference::End(_) => has_mapping,
            Reference::State(_) => self.keys.events().is_none(),
            _ => false,
        };
        let upstream: Vec<Reference> = found
            .iter()
            .filter(takes)
            .map(|one| one.referent())
            .filter_map(Referent::workflow)
            .map(Reference::Runs)
            .collect();
        if has_mapping || !upstream.is_empty() && uses_outputs(self) { upstream } else { Vec::new() }
    }
}

impl Referent {
    fn workflow(self) -> Option<WorkflowId> {
        match self {
            Referent::Workflow(id) => Some(id),
            Referent::Dataset(_) | Referent::Signal(_) => None,
        }
    }
}

fn of_keys(keys: &Keys) -> Vec<Reference> {
    match keys {
        Keys::Schedule(schedule) => of_schedule(schedule),
        Keys::Jobs(jobs) => {
            let JobKeys {
                template: _,
                identifiers: _,
                checks: _,
                domains: _,
                depends_on: _,
                valid: _,
                feed,
                mistake: _,
            } = &**jobs;
            let fed = feed.iter().flat_map(|Feed { identifier: _, schedule }| of_schedule(schedule));
            jobs.parents().cloned().map(Reference::State).chain(fed).collect()
        }
        Keys::Events(events) => {
            let EventKeys {
                name: _,
                program,
                timeout_millis: _,
                properties: _,
                end_time: _,
                jitter_millis: _,
                catch_up: _,
                enabled: _,
            } = &**events;
            vec![Reference::Start(program.clone())]
        }
        Keys::Requests(_) => Vec::new(),
    }
}

fn of_schedule(schedule: &Schedule) -> Vec<Reference> {
    match schedule {
        Schedule::Dependent(other) => vec![Reference::Times(other.clone())],
        Schedule::Cron(_) | Schedule::Calendar(_) => Vec::new(),
    }
}

fn of_constraint(constraint: &Constraint) {
    match constraint.gate {
        // These count runs of the workflow's own program.
        Gate::Concurrency(_) | Gate::SinceLastRun(_) => {}
        Gate::Delay(_) | Gate::Window(_) => {}
    }
}

fn of_trigger(trigger: &Trigger) -> Vec<Reference> {
    let mut found = Vec::new();
    trigger.visit_leaves(&mut |leaf| match leaf {
        Leaf::Nothing | Leaf::Clock(_) | Leaf::Outside => {}
        Leaf::Slot(workflow) | Leaf::Job(workflow, _) => found.push(Reference::State(workflow.clone())),
        Leaf::Periods(Coverage { workflow, .. }) => {
            found.extend([Reference::State(workflow.clone()), Reference::Times(workflow.clone())]);
        }
        Leaf::Facts(FactLeaf { subjects, .. }) => found.extend(subjects.iter().filter_map(of_subject)),
    });
    found
}

fn of_subject(subject: &Subject) -> Option<Reference> {
    match subject {
        Subject::Partitions(dataset) => Some(Reference::Partitions(dataset.clone())),
        Subject::Ended(program, _) => Some(Reference::End(program.clone())),
        Subject::Signal(name) => Some(Reference::Signal(name.clone())),
        // A cron expression is no thing of anybody's.
        Subject::Fired(_) => None,
    }
}
