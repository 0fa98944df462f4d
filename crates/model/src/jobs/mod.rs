//! Keyed jobs: workflows whose slots are named by job ids, and which of them wait for which.
//!
//! A job id is made of identifiers by a [`JobTemplate`]. What a workflow depends on is written down once, as groups of
//! members, and read in both directions: [`JobGraph::parents`] and [`JobGraph::children`] are two questions about one
//! relation, so that *p is a parent of c* exactly when *c is a child of p*.

mod compile;
mod cross;
mod identifier;
mod relation;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::WorkflowId;

pub use compile::Fault;
pub use identifier::{DateForm, Kind, Pattern};
pub use relation::{Job, JobError, JobGraph, Parents};
pub use template::{JobIdError, JobTemplate, TemplateError};

/// What makes the slots of a workflow that is keyed by job ids, and what they wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobKeys {
    /// How its job ids are made of identifiers.
    pub template: JobTemplate,
    /// What may stand for an identifier; any text where nothing is said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identifiers: BTreeMap<Arc<str>, Kind>,
    /// All values of an identifier, where they are known beforehand: nothing else is a child of anything, and "all" means these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// What a job waits for: all members of one of these groups. Where no group is about a job, it waits for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Group>,
}

/// Members of which a job waits for all. Several groups are alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name, unique in its workflow.
    pub name: String,
    /// What a job waits for.
    pub members: Vec<Member>,
}

/// Jobs of some workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Whose jobs.
    pub workflows: Vec<WorkflowId>,
    /// Which values of an identifier. It bounds the parents and, where the child has that identifier too, the children; each of the
    /// one belongs to each of the other. An identifier that is not named must be the same on both sides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Arc<str>, Wanted>,
    /// These jobs and no others; none means whatever `values` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ids: Option<Vec<Arc<str>>>,
}

/// Which values of an identifier a member is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Wanted {
    /// All that the parent's domain has; where the parent lacks the identifier nothing is said.
    All,
    /// These.
    Of(Vec<Arc<str>>),
}
