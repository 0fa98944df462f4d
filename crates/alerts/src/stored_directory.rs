//! Definitions and runs as they are stored, for the reading of events.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kelos_model::{BackfillId, RunId, SlotState, WorkflowId};
use kelos_store::Queries;

use crate::condition::Condition;
use crate::details::slot_named;
use crate::rule::About;
use crate::signal::Directory;

/// A directory that reads each workflow once. It is made anew for each page of events.
pub(crate) struct StoredDirectory<'a> {
    reader: &'a dyn Queries,
    known: RefCell<BTreeMap<WorkflowId, (About, bool)>>,
}

impl StoredDirectory<'_> {
    /// Whether something is still in a condition, by what is stored of it. What can't be read is taken to last.
    pub(crate) fn lasts(&self, condition: Condition, member: &str) -> bool {
        let state = || {
            let slot = slot_named(member).map(|slot| self.reader.slot(&slot));
            slot.and_then(Result::ok).map(|slot| slot.map(|slot| slot.state))
        };
        let workflow = || {
            let id = WorkflowId::new(member).ok().map(|id| self.reader.workflow(&id));
            id.and_then(Result::ok).map(|row| row.filter(|row| row.present))
        };
        match condition {
            Condition::Failed => state().is_none_or(|state| {
                state.is_some_and(|state| !state.is_final() || matches!(state, SlotState::Failed | SlotState::Expired))
            }),
            Condition::Late => state().is_none_or(|state| state.is_some_and(|state| !state.is_final())),
            Condition::Paused => workflow().is_none_or(|row| row.is_some_and(|row| row.paused || !row.enabled)),
            Condition::Frozen => workflow().is_none_or(|row| row.is_some()),
            _ => true,
        }
    }

    pub(crate) fn new(reader: &dyn Queries) -> StoredDirectory<'_> {
        StoredDirectory { reader, known: RefCell::default() }
    }

    /// The project and the tags of a workflow, and whether it is defined.
    fn look_up(&self, workflow: &WorkflowId) -> (About, bool) {
        if let Some(known) = self.known.borrow().get(workflow) {
            return known.clone();
        }
        let row = self.reader.workflow(workflow).ok().flatten();
        let is_defined = row.as_ref().is_none_or(|row| row.present);
        let (project, tags) = match row {
            Some(row) => (Some(row.definition.project.clone()), row.definition.about.tags.clone()),
            None => Default::default(),
        };
        let found = (About { workflow: Some(workflow.clone()), project, tags }, is_defined);
        self.known.borrow_mut().insert(workflow.clone(), found.clone());
        found
    }
}

impl Directory for StoredDirectory<'_> {
    fn about(&self, workflow: &WorkflowId) -> About {
        self.look_up(workflow).0
    }

    fn is_defined(&self, workflow: &WorkflowId) -> bool {
        self.look_up(workflow).1
    }

    fn workflow_of(&self, backfill: &BackfillId) -> Option<WorkflowId> {
        self.reader.backfill(backfill).ok().flatten().map(|backfill| backfill.workflow)
    }

    fn worker_of(&self, run: &RunId) -> Option<String> {
        self.reader.worker_of(run).ok().flatten().map(|worker| worker.to_string())
    }
}
