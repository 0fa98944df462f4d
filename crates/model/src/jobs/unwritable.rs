//! Jobs that belong to another by what is written, and whose ids their workflow's template can't write: `{x}_{y}` has no job whose
//! `x` is `p_q`. Nobody can open them, so a group that wants one can't be met. They are counted with their reason and never left
//! out, since a job with fewer parents than were written would run too early.

use std::fmt;
use std::sync::Arc;

use super::flaw::Flaw;
use super::relation::{Job, JobGraph};
use crate::WorkflowId;
use crate::reason::words;

/// Reasons that are told; of the others there is a number.
const TOLD: usize = 3;

/// What a job waits for, by one of the ways that are open to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parents {
    /// The group that says so.
    pub group: Arc<str>,
    /// All of these must succeed; each once.
    pub jobs: Vec<Job>,
    /// Parents without a job id. Where there are any the group is never met.
    pub unwritable: Vec<Unwritable>,
}

impl Parents {
    /// How many parents there are, with those that have no job id.
    #[must_use]
    pub fn total(&self) -> usize {
        self.jobs.len() + self.unwritable.iter().map(|one| one.count).sum::<usize>()
    }
}

/// What waits for a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Children {
    /// Each job with the group by which it waits.
    pub jobs: Vec<(Job, Arc<str>)>,
    /// Children without a job id: they can't be opened.
    pub unwritable: Vec<Unwritable>,
}

/// Jobs of a workflow whose ids can't be written, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Unwritable {
    /// Whose jobs.
    pub workflow: WorkflowId,
    /// The group by which they belong to the job.
    pub group: Arc<str>,
    /// How many. What two members of a group name is counted for each.
    pub count: usize,
    /// Why.
    pub why: Flaw,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::unwritable(&self.workflow, self.count as u64, &self.why))
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

impl JobGraph {
    /// Why a job can't ever run, in words: each group that is about it wants a parent whose id can't be written. None where a
    /// group can be met, where none is about it, where functions have a say, and where the text is no job id.
    #[must_use]
    pub fn no_way(&self, workflow: &WorkflowId, id: &str) -> Option<String> {
        if self.node(workflow).is_none_or(|node| !node.asked.is_empty()) {
            return None;
        }
        let groups = self.parents(workflow, id).ok()?;
        let is_hopeless = !groups.is_empty() && groups.iter().all(|group| !group.unwritable.is_empty());
        is_hopeless.then(|| format!("it waits for {}", told(groups.iter().flat_map(|group| &group.unwritable))))
    }
}
