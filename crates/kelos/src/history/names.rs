//! The workflows and slots to which folders of runs belong.

use std::collections::BTreeMap;

use kelos_executors::local::RunDirs;
use kelos_model::history::Situation;
use kelos_model::{Run, RunId, RunState, SlotKey, SlotRef, WorkflowId};
use kelos_store::{KnownRun, Queries, StoreError};

/// The workflows by the names of their folders, those of former ids among them.
pub(super) struct Names {
    known: BTreeMap<String, (WorkflowId, String)>,
}

impl Names {
    pub(super) fn read(reader: &dyn Queries) -> Result<Names, StoreError> {
        let (mut known, mut former) = (BTreeMap::new(), BTreeMap::new());
        for row in reader.workflows(None)? {
            let project = row.definition.project.clone();
            if let Some(id) = row.definition.former_id() {
                former.insert(RunDirs::component(id.as_str()), (row.id.clone(), project.clone()));
            }
            known.insert(RunDirs::component(row.id.as_str()), (row.id, project));
        }
        for (folder, owner) in former {
            known.entry(folder).or_insert(owner);
        }
        Ok(Names { known })
    }

    /// The names of folders of which only the projects are known.
    pub(super) fn of_projects(projects: BTreeMap<String, String>) -> Names {
        let known = |(folder, project): (String, String)| {
            let id = WorkflowId::new(&RunDirs::decoded(&folder)?).ok()?;
            Some((folder, (id, project)))
        };
        Names { known: projects.into_iter().filter_map(known).collect() }
    }

    /// The workflow of a folder; none if none has it.
    pub(super) fn workflow(&self, folder: &str) -> Option<&WorkflowId> {
        self.known.get(folder).map(|(id, _)| id)
    }

    /// The project of a folder.
    pub(super) fn project(&self, folder: &str) -> &str {
        self.known.get(folder).map_or("", |(_, project)| project)
    }

    /// The name under which a folder is told.
    pub(super) fn told<'a>(&'a self, folder: &'a str) -> &'a str {
        self.workflow(folder).map_or(folder, WorkflowId::as_str)
    }
}

/// The state of affairs around the run of a folder, by its workflow and its key as executors are given it. One whose record was removed
/// from the log is settled if the folder has its outcome.
pub(super) fn standing(
    reader: &dyn Queries,
    workflow: &WorkflowId,
    (key, number): (&str, u64),
    has_outcome: &dyn Fn() -> bool,
) -> Result<Situation, StoreError> {
    let Ok(number) = u32::try_from(number) else { return Ok(Situation::Unknown) };
    for key in keys(key) {
        let slot = SlotRef::new(workflow.clone(), key);
        let own = match reader.known_run(&RunId { slot: slot.clone(), number })? {
            Some(KnownRun::Kept(run)) => settled(&run),
            Some(KnownRun::Removed(_)) if has_outcome() => Situation::Settled,
            Some(KnownRun::Removed(_)) => Situation::Unknown,
            None => continue,
        };
        return Ok(match own {
            Situation::Settled if is_live(reader, &slot)? => Situation::Live,
            standing => standing,
        });
    }
    Ok(Situation::Unknown)
}

/// The keys that executors are given as this text: a moment looks as a time does.
fn keys(text: &str) -> Vec<SlotKey> {
    match SlotKey::parse(text) {
        Ok(SlotKey::Time(at)) => vec![SlotKey::Time(at), SlotKey::Moment(at)],
        Ok(key) => vec![key],
        Err(_) => Vec::new(),
    }
}

fn settled(run: &Run) -> Situation {
    match run.state {
        RunState::Dispatched | RunState::Running => Situation::Live,
        RunState::Unknown => Situation::Unknown,
        RunState::Succeeded | RunState::Failed | RunState::Killed => Situation::Settled,
    }
}

/// Whether a slot is live, or the run of the flow that it is a step of.
fn is_live(reader: &dyn Queries, slot: &SlotRef) -> Result<bool, StoreError> {
    let whole = SlotRef::new(slot.workflow.clone(), slot.key.of_run());
    for one in [slot, &whole] {
        if reader.slot(one)?.is_some_and(|found| found.is_live()) {
            return Ok(true);
        }
    }
    Ok(false)
}
