//! Definitions and runs as they are stored, for the reading of events.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kelos_model::{BackfillId, RunId, WorkflowId};
use kelos_store::Queries;

use crate::rule::About;
use crate::signal::Directory;

/// A directory that reads each workflow once. It is made anew for each page of events.
pub(crate) struct StoredDirectory<'a> {
    reader: &'a dyn Queries,
    known: RefCell<BTreeMap<WorkflowId, (About, bool)>>,
}

impl StoredDirectory<'_> {
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
