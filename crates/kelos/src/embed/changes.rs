//! Changes of a project beside what is stored: told before it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::workflow::{PastSlots, Provenance, Source, WorkflowRow};
use kelos_model::{Workflow, WorkflowId};
use serde::Serialize;

/// Changes that the start of a project brings, beside what is stored of the program's last start. They print as text, and are written
/// as JSON.
///
/// ```
/// # use kelos::embed::{Calendar, Context, Period, Project, job};
/// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
/// # let project = Project::new("shop", "1.0").add(job("work", work).with(()).every(&Calendar::hourly()));
/// let changes = project.changes()?;
/// assert_eq!(changes.to_string(), "new: work");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The jobs that are not stored, or were removed before.
    pub new: Vec<WorkflowId>,
    /// The jobs that are defined otherwise; another version or another line of code is no change.
    pub changed: Vec<WorkflowId>,
    /// The jobs that the project no longer has. What they did stays, out of range.
    pub removed: Vec<WorkflowId>,
    /// The slots of the past that run at once, and those that are held back.
    pub past: PastSlots,
}

impl Changes {
    /// The changes of definitions beside stored rows, with a planning window that ends now.
    pub(super) fn of(all: &[Workflow], rows: &[WorkflowRow], window: SignedDuration, now: Timestamp) -> Changes {
        let of_program = |row: &&WorkflowRow| row.present && row.definition.provenance() == Provenance::Code;
        let known: BTreeMap<&WorkflowId, &Workflow> =
            rows.iter().filter(of_program).map(|row| (&row.id, &*row.definition)).collect();
        let given: BTreeSet<&WorkflowId> = all.iter().map(|one| &one.id).collect();
        let differs = |one: &&Workflow| known.get(&one.id).is_some_and(|before| plain(before) != plain(one));
        let shared: Vec<Arc<Workflow>> = all.iter().cloned().map(Arc::new).collect();
        Changes {
            new: all.iter().map(|one| &one.id).filter(|id| !known.contains_key(id)).cloned().collect(),
            changed: all.iter().filter(differs).map(|one| one.id.clone()).collect(),
            removed: known.keys().filter(|id| !given.contains(*id)).map(|id| (*id).clone()).collect(),
            past: PastSlots::of(&shared, rows, window, now),
        }
    }

    /// Whether nothing changes, and no slot of the past runs.
    ///
    /// ```
    /// # use kelos::embed::{Calendar, Context, Period, Project, job};
    /// # async fn work(_: Context, _: Period, _: ()) -> Result<(), String> { Ok(()) }
    /// # let project = Project::new("shop", "1.0").add(job("work", work).with(()).every(&Calendar::hourly()));
    /// assert!(!project.changes()?.is_empty(), "the job is new");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

/// A definition without its version and its place in the code.
fn plain(one: &Workflow) -> Workflow {
    Workflow { version: None, source: Source::default(), ..one.clone() }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |what: &str, ids: &[WorkflowId]| {
            let names: Vec<&str> = ids.iter().map(WorkflowId::as_str).collect();
            (!ids.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        let lists = [list("new", &self.new), list("changed", &self.changed), list("removed", &self.removed)];
        let lines: Vec<String> = lists.into_iter().flatten().chain(self.past.lines()).collect();
        if lines.is_empty() { f.write_str("nothing changes") } else { f.write_str(&lines.join("\n")) }
    }
}
