//! The changes of a deployment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kelos_model::secret::masks::masked_source;
use kelos_model::{Workflow, WorkflowId};
use similar::{ChangeTag, TextDiff};

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
    /// The added and the removed lines of a changed script, in their order, after `+ ` and `- `, as far as they are kept.
    pub diff: Vec<String>,
    /// How many further lines differ.
    pub more: usize,
    /// The new size; none for a file that is removed.
    pub bytes: Option<u64>,
}

impl FileChange {
    /// The change of a file that is no script.
    pub(super) fn of_file(place: String, difference: Difference, bytes: Option<u64>) -> FileChange {
        FileChange { place, difference, lines: None, diff: Vec::new(), more: 0, bytes }
    }

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
        let (diff, more) = match (difference, old, new) {
            (Difference::Changed, Some(old), Some(new)) => changed_lines(old, new),
            _ => (Vec::new(), 0),
        };
        Some(FileChange { place, difference, lines, diff, more, bytes: new.map(|new| new.len() as u64) })
    }
}

/// How long lines are compared before the comparison gets coarse.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most changed lines of a file that a plan has.
const MOST_LINES: usize = 200;

/// The most characters of such a line.
const LONGEST_LINE: usize = 400;

fn compared<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, 'a, str> {
    TextDiff::configure().timeout(PATIENCE).diff_lines(old, new)
}

/// How many lines are added and removed.
fn line_changes(old: &str, new: &str) -> (usize, usize) {
    let diff = compared(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// The lines that are added and removed, in the order of the file and without secrets, and how many more there are.
fn changed_lines(old: &str, new: &str) -> (Vec<String>, usize) {
    let (old, new) = (masked_source(old), masked_source(new));
    let diff = compared(&old, &new);
    let mut lines = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Insert => '+',
            ChangeTag::Delete => '-',
        };
        let line = change.value().trim_end_matches(['\n', '\r']);
        Some(format!("{sign} {}", line.chars().take(LONGEST_LINE).collect::<String>()))
    });
    let shown = lines.by_ref().take(MOST_LINES).collect();
    (shown, lines.count())
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
        assert_eq!(line_changes("a\nb\n", "b\na\n"), (1, 1), "a line that moves goes and comes");
        assert_eq!(line_changes("", "a"), (1, 0));
    }

    #[test]
    fn lines_that_change_are_shown_in_their_order_and_without_secrets() {
        let of_text = |old: &str, new: &str| FileChange::of_text("x.js".to_owned(), Some(old), Some(new)).unwrap();
        let change = of_text("a\nb\nc\n", "a\nd\nc\r\ne");
        assert_eq!((change.diff, change.more), (["- b", "- c", "+ d", "+ c", "+ e"].map(str::to_owned).to_vec(), 0));
        let secret = of_text("var password = \"one\";\nvar a = 1;", "var password = \"two\";\nvar a = 2;");
        assert_eq!(
            (secret.lines, secret.diff),
            (Some((2, 2)), ["- var a = 1;", "+ var a = 2;"].map(str::to_owned).to_vec())
        );
        let long = of_text("", &"x\n".repeat(MOST_LINES + 7));
        assert_eq!((long.diff.len(), long.more), (MOST_LINES, 7));
        assert_eq!(of_text("a", "a").diff, Vec::<String>::new());
    }
}
