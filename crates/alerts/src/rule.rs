//! Rules: which conditions of which workflows are told to whom, and when.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::WorkflowId;
use kelos_model::time::Window;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The workflow that something is about, with what rules choose by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The workflow; none for what is about the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowId>,
    /// Its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which is part of the keys of what it sends.
    pub name: String,
    /// The conditions that it tells.
    pub when: BTreeSet<Condition>,
    /// Only of this project.
    pub project: Option<String>,
    /// Only of workflows with one of these tags; empty means any.
    pub tags: Vec<String>,
    /// Only of this workflow, or with a `*` at its end of those that begin so.
    pub workflow: Option<String>,
    /// The names of the channels by which it tells them.
    pub to: Vec<String>,
    /// The hours in which it sends: all but the quiet ones.
    pub sends: Option<Window>,
    /// The time after which something that lasts is told again; none means once.
    pub repeat: Option<SignedDuration>,
    /// The time that a condition has to last before it is told; none means what is usual for it.
    pub after: Option<SignedDuration>,
}

impl Rule {
    /// Whether it tells a condition of something.
    #[must_use]
    pub fn tells(&self, condition: Condition, about: &About) -> bool {
        self.when.contains(&condition)
            && self.project.as_ref().is_none_or(|project| about.project.as_ref() == Some(project))
            && (self.tags.is_empty() || self.tags.iter().any(|tag| about.tags.contains(tag)))
            && (self.workflow.is_none()
                || about.workflow.as_ref().is_some_and(|workflow| self.is_of(workflow.as_str())))
    }

    /// Whether a workflow has a name that the rule chooses, as far as it chooses by names.
    #[must_use]
    pub fn is_of(&self, workflow: &str) -> bool {
        self.workflow.as_ref().is_none_or(|pattern| match pattern.strip_suffix('*') {
            Some(begin) => workflow.starts_with(begin),
            None => workflow == pattern,
        })
    }

    /// The first moment from this one on that is not in its quiet hours.
    #[must_use]
    pub fn awake(&self, at: Timestamp) -> Timestamp {
        let closed = self.sends.as_ref().filter(|sends| !sends.is_open(at));
        closed.and_then(|sends| sends.opens_after(at)).unwrap_or(at)
    }

    /// The time that a condition has to last before it is told.
    #[must_use]
    pub fn patience(&self, condition: Condition) -> SignedDuration {
        self.after.filter(|_| !condition.is_moment()).unwrap_or_else(|| condition.usual_patience())
    }
}
