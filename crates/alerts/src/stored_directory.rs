//! Definitions and runs as they are stored, for the reading of events.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kelos_model::{RunId, WorkflowId};
use kelos_store::Queries;

use crate::rule::About;
use crate::signal::Directory;

/// A directory that reads each workflow once. It is made anew for each page of events.
pub(crate) struct StoredDirectory<'a> {
    reader: &'a dyn Queries,
    known: RefCell<BTreeMap<WorkflowId, About>>,
}

impl StoredDirectory<'_> {
    pub(crate) fn new(reader: &dyn Queries) -> StoredDirectory<'_> {
        StoredDirectory { reader, known: RefCell::default() }
    }
}

impl Directory for StoredDirectory<'_> {
    fn about(&self, workflow: &WorkflowId) -> About {
        if let Some(known) = self.known.borrow().get(workflow) {
            return known.clone();
        }
        let row = self.reader.workflow(workflow).ok().flatten();
        let (project, tags) = match row {
            Some(row) => (Some(row.definition.project.clone()), row.definition.about.tags.clone()),
            None => Default::default(),
        };
        let about = About { workflow: Some(workflow.clone()), project, tags };
        self.known.borrow_mut().insert(workflow.clone(), about.clone());
        about
    }

    fn worker_of(&self, run: &RunId) -> Option<String> {
        self.reader.worker_of(run).ok().flatten().map(|worker| worker.to_string())
    }
}
