//! The changes of a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::{Workflow, WorkflowId};

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It is created.
    New,
    /// It is changed.
    Changed,
    /// It is unchanged.
    Same,
    /// It is removed.
    Removed,
}

/// The change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path of the file.
    pub place: String,
    /// The kind of change.
    pub difference: Difference,
    /// How many lines are added and removed, for scripts.
    pub lines: Option<(usize, usize)>,
    /// The new size; none for a file that is removed.
    pub bytes: Option<u64>,
}

impl FileChange {
    /// The change of a text file.
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

/// How many lines are added and removed; a line that only moves counts as neither.
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

/// The change of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowChange {
    /// The id of the workflow.
    pub id: WorkflowId,
    /// The project that it belongs, or belonged, to.
    pub project: String,
    /// The kind of change.
    pub difference: Difference,
    /// The parts of its definition that differ.
    pub parts: Vec<WorkflowDifference>,
}

/// A part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowDifference {
    /// The times of its slots.
    Schedule,
    /// The trigger.
    Trigger,
    /// The constraints.
    Constraints,
    /// The limit on concurrent runs.
    Concurrency,
    /// The pools whose permits its runs hold.
    Pools,
    /// The retry policy.
    Retry,
    /// The time before which no slot is planned.
    StartTime,
    /// The treatment of misfires.
    CatchUp,
    /// The time for which slots wait.
    WaitTimeout,
    /// The deadline.
    Deadline,
    /// The job.
    Job,
    /// The paths that it writes.
    Writes,
    /// The version of its project.
    Version,
    /// The description for people.
    About,
}

impl WorkflowDifference {
    /// The name of the part in messages.
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
            Self::CatchUp => "catch-up",
            Self::WaitTimeout => "wait timeout",
            Self::Deadline => "deadline",
            Self::Job => "job",
            Self::Writes => "written paths",
            Self::Version => "version",
            Self::About => "description",
        }
    }
}

/// The changes of all workflows, without unchanged ones.
#[must_use]
pub fn changes_of(before: &[Arc<Workflow>], after: &[Arc<Workflow>]) -> Vec<WorkflowChange> {
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
        About, CatchUp, Concurrency, Constraints, Deadline, Job, Pools, Retry, Schedule, StartTime, Trigger, Version,
        WaitTimeout, Writes,
    };
    let parts = [
        (Schedule, old.keys != new.keys),
        (Trigger, old.trigger != new.trigger),
        (Constraints, old.constraints != new.constraints),
        (Concurrency, old.concurrency != new.concurrency),
        (Pools, old.pools != new.pools),
        (Retry, old.retry != new.retry),
        (StartTime, old.start_time != new.start_time),
        (CatchUp, old.catch_up != new.catch_up),
        (WaitTimeout, (old.wait_timeout_seconds, old.wait_from) != (new.wait_timeout_seconds, new.wait_from)),
        (Deadline, old.deadline != new.deadline),
        (Job, old.job != new.job),
        (Writes, old.writes != new.writes),
        (Version, old.version != new.version),
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
