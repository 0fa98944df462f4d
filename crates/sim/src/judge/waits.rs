//! How long slots by time may wait, as the log says: who is paused, and when it was resumed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::event::{BackfillEvent, WorkflowEvent};
use kelos_model::{BackfillId, Slot, SlotRef, Workflow, WorkflowId};

/// Pauses of backfills, and the ends of all pauses.
#[derive(Default)]
pub(super) struct Waits {
    workflows: BTreeMap<WorkflowId, Timestamp>,
    /// Whether a backfill is paused, and when it was last resumed.
    backfills: BTreeMap<BackfillId, (bool, Option<Timestamp>)>,
}

impl Waits {
    /// Follows the end of a pause or a freeze.
    pub(super) fn follow(&mut self, id: &WorkflowId, what: &WorkflowEvent, at: Timestamp) {
        if matches!(what, WorkflowEvent::Resumed { .. } | WorkflowEvent::Thawed { .. }) {
            self.workflows.insert(id.clone(), at);
        }
    }

    /// Follows the pauses of a backfill.
    pub(super) fn follow_backfill(&mut self, id: &BackfillId, what: &BackfillEvent, at: Timestamp) {
        let one = self.backfills.entry(id.clone()).or_default();
        match what {
            BackfillEvent::Paused { .. } => one.0 = true,
            BackfillEvent::Resumed { .. } => *one = (false, Some(at)),
            BackfillEvent::Cancelled { .. } => *one = (false, None),
            _ => {}
        }
    }

    /// The last moment until which a slot may wait; none while nothing ends its wait. `is_off` says that its workflow is paused or
    /// frozen.
    pub(super) fn last(&self, workflow: &Workflow, is_off: bool, id: &SlotRef, slot: &Slot) -> Option<Timestamp> {
        let backfill = slot.backfill.as_ref().and_then(|backfill| self.backfills.get(backfill));
        let (paused, resumed) = backfill.copied().unwrap_or_default();
        let rests = is_off || paused && slot.state.is_idle();
        if rests && !workflow.wait_from.is_time() {
            return None;
        }
        workflow.waits_until(&id.key, slot, resumed.max(self.workflows.get(&id.workflow).copied()))
    }
}
