//! References from one project to another, by their kinds: a new kind does not compile until it has a rule.
//!
//! Absent: which references a definition makes, which is [`references`](crate::references).

use std::fmt;
use std::sync::Arc;

use serde_json::json;

use crate::facts::{Occurrence, Subject};
use crate::id::WorkflowId;

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
    /// The registers of a bucket, which a script reads.
    Registers(Arc<str>),
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
    /// A bucket of registers.
    Bucket(Arc<str>),
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
            Reference::Registers(_) => Consent::Sees("registers"),
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
            Reference::Registers(bucket) => Referent::Bucket(bucket.clone()),
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
            Referent::Dataset(name) | Referent::Signal(name) | Referent::Bucket(name) => name,
        }
    }

    /// The workflow, where it is one.
    #[must_use]
    pub fn workflow(self) -> Option<WorkflowId> {
        match self {
            Referent::Workflow(id) => Some(id),
            Referent::Dataset(_) | Referent::Signal(_) | Referent::Bucket(_) => None,
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
            Referent::Bucket(name) => write!(f, "the bucket \"{name}\""),
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
            Reference::Registers(_) => write!(f, "the registers of {referent}"),
            Reference::Start(_) => write!(f, "starting {referent}"),
            Reference::ReportEnd(_) => write!(f, "reporting ends of runs of {referent}"),
            Reference::ReportPartitions(_) => write!(f, "reporting partitions of {referent}"),
            Reference::GiveSignal(_) => write!(f, "giving {referent}"),
        }
    }
}
