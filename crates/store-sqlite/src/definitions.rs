//! Definitions that were read before: one of a version never changes, and lists of workflows are asked for all the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kelos_model::WorkflowId;
use kelos_model::workflow::{Workflow, WorkflowRow};
use kelos_store::adapter::stored;
use rusqlite::Row;

use super::fault::Fault;
use super::rows::{DEFINED_FROM, RowResult, read_defined, read_workflow};
use super::unread::Unread;

/// A cache of the latest definition of each workflow that was read, with its version.
#[derive(Debug, Default)]
pub(super) struct Definitions(Mutex<HashMap<WorkflowId, (u32, Arc<Workflow>)>>);

impl Definitions {
    /// A workflow; its definition is parsed where that of its version was not read before.
    /// Of one that can't be read as a whole all that can be is read.
    pub(super) fn read_workflow(&self, row: &Row<'_>, unread: &Unread) -> RowResult<WorkflowRow> {
        read_workflow(row, Some(unread), |id, version, row| {
            if let Some(known) = self.known(id, version) {
                return Ok(known);
            }
            let definition: Arc<Workflow> = match read_defined(row, DEFINED_FROM) {
                Ok(definition) => Arc::new(definition),
                Err(Fault::Unreadable(why)) => {
                    unread.note(id, None, format!("version {version} of its definition"), why);
                    Arc::new(stored::salvage(id, row.get_ref(DEFINED_FROM + 3)?.as_str()?))
                }
                Err(other) => return Err(other),
            };
            self.keep(id, version, &definition);
            Ok(definition)
        })
    }

    fn known(&self, id: &WorkflowId, version: u32) -> Option<Arc<Workflow>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(id).filter(|(kept, _)| *kept == version).map(|(_, definition)| definition.clone())
    }

    /// A reader of an older turn does not replace the version of a newer one.
    fn keep(&self, id: &WorkflowId, version: u32, definition: &Arc<Workflow>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.get(id).is_none_or(|(kept, _)| *kept < version) {
            kept.insert(id.clone(), (version, definition.clone()));
        }
    }
}
