//! The slots that wait in backlogs, as the core has stored them.

use std::collections::BTreeMap;

use kelos_core::Config;
use kelos_model::{Backlog, SlotRef, Workflow, WorkflowId};
use kelos_store::Queries;

/// The backlogs of all workflows, each with the number of queued slots below which none that may go is left in it.
pub(super) struct Backlogs(BTreeMap<WorkflowId, (Backlog, usize)>);

impl Backlogs {
    pub(super) fn of(reader: &dyn Queries, config: &Config) -> Result<Backlogs, String> {
        let rows = reader.workflows(None).map_err(|error| error.to_string())?;
        let fewest = |definition: &Workflow| config.most_queued(definition).div_ceil(2);
        let backlogs = rows.into_iter().map(|row| (row.id, (row.planned.backlog, fewest(&row.definition))));
        Ok(Backlogs(backlogs.collect()))
    }

    /// Whether a slot exists only as a time of a backlog yet.
    pub(super) fn has(&self, slot: &SlotRef) -> bool {
        let at = slot.key.scheduled();
        at.is_some_and(|at| self.0.get(&slot.workflow).is_some_and(|(backlog, _)| backlog.at(at).is_some()))
    }

    /// The first slot of a queue that is left in the backlog although too few are before it, and how many are.
    pub(super) fn early(&self, queue: Vec<SlotRef>) -> Option<(SlotRef, usize)> {
        let (ahead, slot) = queue.into_iter().enumerate().find(|(_, slot)| self.has(slot))?;
        let (_, fewest) = self.0.get(&slot.workflow)?;
        (ahead < *fewest).then_some((slot, ahead))
    }
}
