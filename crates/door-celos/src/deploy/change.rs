//! What is different after a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::{Workflow, WorkflowId};

/// What becomes of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It comes.
    New,
    /// It becomes another.
    Changed,
    /// It stays as it is.
    Same,
    /// It goes.
    Removed,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Where it is.
    pub place: String,
    /// What becomes of it.
    pub difference: Difference,
    /// Lines that come and lines that go, for scripts.
    pub lines: Option<(usize, usize)>,
    /// How long it then is; none for one that goes.
    pub bytes: Option<u64>,
}

impl FileChange {
    /// Of a text file.
    pub(super) fn of_text(place: String, old: Option<&str>, new: Option<&str>) -> Option<FileChange> {
        let difference = match (old, new) {
            (None, None) => return None,
            (None, Some(_)) => Difference::New,
            (Some(_), None) => Difference::Removed,
            (Some(old), Some(new)) if old == new => Difference::Same,
            (Some(_), Some(_)) => Difference::Changed,
        };
        let lines = Some(line_changes(old.unwrap_or_default(), new.unwrap_or_default()));
        Some(FileChange { place, difference, lines, bytes: new.map(|new| new.len() as u64) })
    }
}

/// How many lines come and how many go; a line that only moves does neither.
fn line_changes(old: &str, new: &str) -> (usize, usize) {
    let mut surplus: BTreeMap<&str, isize> = BTreeMap::new();
    for line in new.lines() {
        *surplus.entry(line).or_default() += 1;
    }
    for line in old.lines() {
        *surplus.entry(line).or_default() -= 1;
    }
    let count = |sign: isize| surplus.values().map(|many| (many * sign).max(0).unsigned_abs()).sum();
    (count(1), count(-1))
}

/// What becomes of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowChange {
    /// Which one.
    pub id: WorkflowId,
    /// The project that it is, or was, of.
    pub project: String,
    /// What becomes of it.
    pub difference: Difference,
    /// What of it is different.
    pub parts: Vec<WorkflowDifference>,
}

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowDifference {
    /// When its slots are.
    Schedule,
    /// When a slot may go.
    Trigger,
    /// What must hold besides.
    Constraints,
    /// How many may run at a time.
    Concurrency,
    /// The pools whose permits its runs hold.
    Pools,
    /// What happens after a failure.
    Retry,
    /// Before which no slot is planned.
    StartTime,
    /// How long slots wait.
    WaitTimeout,
    /// What is executed.
    Job,
    /// What people know about it.
    About,
}

impl WorkflowDifference {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Trigger => "trigger",
            Self::Constraints => "constraints",
            Self::Concurrency => "concurrency",
            Self::Pools => "pools",
            Self::Retry => "retry policy",
            Self::StartTime => "start time",
            Self::WaitTimeout => "wait timeout",
            Self::Job => "job",
            Self::About => "description",
        }
    }
}

/// What becomes of all workflows; those that stay as they are left out.
pub(super) fn of_workflows(before: &[Arc<Workflow>], after: &[Arc<Workflow>]) -> Vec<WorkflowChange> {
    let old: BTreeMap<_, _> = before.iter().map(|one| (&one.id, one)).collect();
    let new: BTreeMap<_, _> = after.iter().map(|one| (&one.id, one)).collect();
    let ids: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let change = |id: &WorkflowId| {
        let (difference, parts, project) = match (old.get(id), new.get(id)) {
            (Some(old), Some(new)) => {
                let parts = different(old, new);
                let same = parts.is_empty() && old.project == new.project;
                (if same { return None } else { Difference::Changed }, parts, &new.project)
            }
            (None, Some(new)) => (Difference::New, Vec::new(), &new.project),
            (Some(old), None) => (Difference::Removed, Vec::new(), &old.project),
            (None, None) => return None,
        };
        Some(WorkflowChange { id: id.clone(), project: project.clone(), difference, parts })
    };
    ids.into_iter().filter_map(change).collect()
}

fn different(old: &Workflow, new: &Workflow) -> Vec<WorkflowDifference> {
    use WorkflowDifference::{
        About, Concurrency, Constraints, Job, Pools, Retry, Schedule, StartTime, Trigger, WaitTimeout,
    };
    let parts = [
        (Schedule, old.keys != new.keys),
        (Trigger, old.trigger != new.trigger),
        (Constraints, old.constraints != new.constraints),
        (Concurrency, old.concurrency != new.concurrency),
        (Pools, old.pools != new.pools),
        (Retry, old.retry != new.retry),
        (StartTime, old.start_time != new.start_time),
        (WaitTimeout, old.wait_timeout_seconds != new.wait_timeout_seconds),
        (Job, old.job != new.job),
        (About, old.about != new.about),
    ];
    parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_and_go_are_counted() {
        assert_eq!(line_changes("a\nb\nc\n", "a\nc\nd\nd\n"), (2, 1));
        assert_eq!(line_changes("a\nb\n", "b\na\n"), (0, 0));
        assert_eq!(line_changes("", "a"), (1, 0));
    }
}
