//! The slots that wait in backlogs, as the core has stored them.

use std::collections::BTreeMap;

use kelos_model::{Backlog, SlotRef, WorkflowId};
use kelos_store::Queries;

/// The backlogs of all workflows.
pub(super) struct Backlogs(BTreeMap<WorkflowId, Backlog>);

impl Backlogs {
    pub(super) fn of(reader: &dyn Queries) -> Result<Backlogs, String> {
        let rows = reader.workflows(None).map_err(|error| error.to_string())?;
        Ok(Backlogs(rows.into_iter().map(|row| (row.id, row.planned.backlog)).collect()))
    }

    /// Whether a slot exists only as a time of a backlog yet.
    pub(super) fn has(&self, slot: &SlotRef) -> bool {
        let at = slot.key.scheduled();
        at.is_some_and(|at| self.0.get(&slot.workflow).is_some_and(|backlog| backlog.at(at).is_some()))
    }

    /// The first slot of a queue that is left in the backlog although fewer than so many are before it, and how many are.
    pub(super) fn early(&self, queue: Vec<SlotRef>, fewest: usize) -> Option<(SlotRef, usize)> {
        let (ahead, slot) = queue.into_iter().enumerate().find(|(_, slot)| self.has(slot))?;
        (ahead < fewest).then_some((slot, ahead))
    }
}
