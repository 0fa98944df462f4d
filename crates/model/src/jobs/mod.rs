//! Keyed jobs: workflows whose slots are named by job ids, and which of them wait for which.
//!
//! A job id is made of identifiers by a [`JobTemplate`]. What a workflow depends on is written down once, as groups of
//! members, and read in both directions: [`JobGraph::parents`] and [`JobGraph::children`] are two questions about one
//! relation, so that *p is a parent of c* exactly when *c is a child of p*.

mod compile;
mod cross;
mod flaw;
mod identifier;
mod outside;
mod relation;
mod relatives;
mod template;
mod unwritable;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::function::FunctionRef;
use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::time::Zone;
use crate::time::schedule::Schedule;

pub use compile::{Fault, FaultKind};
pub use flaw::Flaw;
pub use identifier::{DateForm, Kind, Pattern};
pub use relation::{JobError, JobGraph};
pub use relatives::{Children, Job, Parents};
pub use template::{JobIdError, JobTemplate, TemplateError, shown};
pub(crate) use unwritable::nameless;
pub use unwritable::{Unwritable, told};

/// The part of a definition that makes jobs: ids, and dependencies among jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobKeys {
    /// The template of its job ids.
    pub template: JobTemplate,
    /// The kinds of identifiers; any text where none is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identifiers: BTreeMap<Arc<str>, Kind>,
    /// Functions of a script that give the normal form of an identifier, or refuse it. They are asked where people name a job; what is
    /// derived from other jobs consists of what was asked or listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<Arc<str>, FunctionRef>,
    /// All values of an identifier, where they are known beforehand: nothing else is a child of anything, and "all" means these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// The groups of parents: a job waits for all members of one of them. Where no group is about a job, it waits for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Group>,
    /// The jobs that are worth running; the others are skipped as soon as they are opened. None means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Validity>,
    /// The schedule that opens jobs, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<Feed>,
    /// The mistake in what describes it, where there is one: it lies dormant, and so does what depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<Arc<str>>,
}

/// A filter for jobs that are worth running: those to which any part of it applies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validity {
    /// An identifier has one of these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// A script's function says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionRef>,
}

impl Validity {
    /// Whether some identifier has a listed value. Where none has, the function is asked, or else the job is not worth running.
    #[must_use]
    pub fn is_listed(&self, identifiers: &[(Arc<str>, Arc<str>)]) -> bool {
        identifiers.iter().any(|(name, value)| self.values.get(name).is_some_and(|all| all.contains(value)))
    }
}

/// A schedule that opens jobs: at each of its times those whose date is that time's day in the schedule's zone, with every
/// choice from the domains of the other identifiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Feed {
    /// The identifier that ticks; a date.
    pub identifier: Arc<str>,
    /// The schedule.
    pub schedule: Schedule,
}

/// The identifiers of a job id with their values, and the start of the day that the first date among them names, in UTC.
pub(crate) type ParsedJob = (Vec<(Arc<str>, Arc<str>)>, Option<Timestamp>);

impl JobKeys {
    /// Keys of a template, with nothing else said.
    #[must_use]
    pub fn new(template: JobTemplate) -> JobKeys {
        JobKeys {
            template,
            identifiers: BTreeMap::new(),
            checks: BTreeMap::new(),
            domains: BTreeMap::new(),
            depends_on: Vec::new(),
            valid: None,
            feed: None,
            mistake: None,
        }
    }

    /// The workflows that it depends on, as they are written, in order.
    pub fn parents(&self) -> impl Iterator<Item = &WorkflowId> {
        self.depends_on.iter().flat_map(|group| {
            let asked = group.functions.iter().flat_map(|functions| &functions.workflows);
            group.members.iter().flat_map(|member| &member.workflows).chain(asked)
        })
    }

    /// A job id in its normal form.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn normal(&self, id: &str) -> Result<Arc<str>, JobIdError> {
        let values = self.template.read(&self.identifiers, id)?;
        Ok(self.template.fill(&values))
    }

    /// The job ids that its feed opens at a time, with every choice from the domains of the other identifiers.
    #[must_use]
    pub fn fed_at(&self, time: Timestamp) -> Vec<Arc<str>> {
        let Some(feed) = &self.feed else { return Vec::new() };
        let zone = match &feed.schedule {
            Schedule::Cron(cron) => cron.zone().clone(),
            Schedule::Calendar(calendar) => calendar.zone().clone(),
            Schedule::Dependent(_) => Zone::utc(),
        };
        let form = match self.identifiers.get(&feed.identifier) {
            Some(Kind::Date { form }) => *form,
            _ => DateForm::default(),
        };
        let day: [Arc<str>; 1] = [form.write(time.to_zoned(zone.rules().clone()).date()).into()];
        let values = |name: &Arc<str>| match self.domains.get(name) {
            _ if *name == feed.identifier => &day[..],
            known => known.map_or(&[][..], Vec::as_slice),
        };
        let lists: Vec<&[Arc<str>]> = self.template.identifiers().map(values).collect();
        let mut ids = Vec::new();
        cross::cross(&lists, |choice| {
            let values: Vec<Arc<str>> = choice.iter().map(|value| Arc::clone(value)).collect();
            ids.push(self.template.fill(&values));
        });
        ids
    }

    pub(crate) fn read(&self, id: &str) -> Result<ParsedJob, JobIdError> {
        let values = self.template.read(&self.identifiers, id)?;
        let named: Vec<_> = self.template.identifiers().cloned().zip(values).collect();
        let day = named.iter().find_map(|(name, value)| self.identifiers.get(name)?.day(value));
        Ok((named, day))
    }
}

/// Members of which a job waits for all. Several groups are alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name, unique in its workflow.
    pub name: String,
    /// The jobs that a job waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// Functions that know what a job waits for, in place of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<TwoWay>,
}

/// Two functions of a script that know which jobs belong together. Each is the other one read backwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TwoWay {
    /// The workflows whose jobs may be parents.
    pub workflows: Vec<WorkflowId>,
    /// Gives the parents of a child.
    pub parents: FunctionRef,
    /// Gives the children of a parent.
    pub children: FunctionRef,
}

/// The direction in which a relation is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// The parents of a child.
    Parents,
    /// The children of a parent.
    Children,
}

/// A question to one of two functions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relation {
    /// The job whose parents or children are asked for.
    pub of: SlotRef,
    /// The workflow whose group it is: that of the children.
    pub child: WorkflowId,
    /// The group.
    pub group: Arc<str>,
    /// The direction.
    pub direction: Direction,
    /// The function that knows.
    pub function: FunctionRef,
    /// The identifiers of `of`, in their order.
    pub identifiers: Vec<(Arc<str>, Arc<str>)>,
}

/// Jobs as a function names them: by the values of their identifiers.
pub type NamedJobs = Vec<(WorkflowId, BTreeMap<Arc<str>, Arc<str>>)>;

/// Jobs of some workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The workflow of the jobs.
    pub workflows: Vec<WorkflowId>,
    /// A filter for the values of each identifier. It bounds the parents and, where the child has that identifier too, the
    /// children; each of the one belongs to each of the other. An identifier that is not named must be the same on both sides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Arc<str>, ValueFilter>,
    /// These jobs and no others; none means whatever `values` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ids: Option<Vec<Arc<str>>>,
}

/// A filter for the values of an identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueFilter {
    /// All that the parent's domain has; where the parent lacks the identifier nothing is said.
    All,
    /// These values.
    Of(Vec<Arc<str>>),
}
