//! Jobs that belong to another by what is written, and whose ids their workflow's template can't write: `{x}_{y}` has no job whose
//! `x` is `p_q`. They can't be opened, so a group that wants one can't be met. They are counted with their reason and never left
//! out, since a job with fewer parents than were written would run too early.

use std::fmt;
use std::sync::Arc;

use super::flaw::Flaw;
use crate::id::WorkflowId;

/// The most reasons that are listed; the others are counted.
const TOLD: usize = 3;

/// Jobs of a workflow whose ids can't be written, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Unwritable {
    /// The workflow of the jobs.
    pub workflow: WorkflowId,
    /// The group by which they belong to the job.
    pub group: Arc<str>,
    /// The number of jobs. A job that two members of a group name is counted twice.
    pub count: usize,
    /// The reason.
    pub why: Flaw,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&nameless(&self.workflow, self.count as u64, &self.why))
    }
}

/// Jobs that no job id can be written of, all for one reason.
pub(crate) fn nameless(workflow: &WorkflowId, count: u64, why: &Flaw) -> String {
    match count {
        1 => format!("a job of {workflow} that can't be named: {why}"),
        count => format!("{count} jobs of {workflow} that can't be named: {why}"),
    }
}

/// Notes one more job without an id.
pub(super) fn note(all: &mut Vec<Unwritable>, workflow: &WorkflowId, group: &Arc<str>, why: &Flaw) {
    let same = |one: &&mut Unwritable| one.workflow == *workflow && one.group == *group && one.why == *why;
    match all.iter_mut().find(same) {
        Some(one) => one.count += 1,
        None => all.push(Unwritable { workflow: workflow.clone(), group: group.clone(), count: 1, why: why.clone() }),
    }
}

/// Jobs without ids in words, the first few of them.
#[must_use]
pub fn told<'a>(all: impl IntoIterator<Item = &'a Unwritable>) -> String {
    let mut told: Vec<String> = all.into_iter().map(ToString::to_string).collect();
    if let Some(more) = told.len().checked_sub(TOLD).filter(|more| *more > 0) {
        told.truncate(TOLD);
        told.push(format!("and {more} more reasons"));
    }
    told.join("; ")
}
