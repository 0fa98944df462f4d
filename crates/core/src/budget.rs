//! The budget of a tick: how many slots it may evaluate, shared by workflows or programs.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;

/// The number of slots that a tick may still evaluate.
pub(crate) struct Budget {
    /// The budget of each workflow, or program.
    share: usize,
    /// The rest of those that have used some of it.
    left: BTreeMap<WorkflowId, usize>,
}

impl Budget {
    pub(crate) fn new(most: usize, workflows: usize) -> Budget {
        Budget { share: share(most, workflows), left: BTreeMap::new() }
    }

    pub(crate) fn of(&self, id: &WorkflowId) -> usize {
        self.left.get(id).copied().unwrap_or(self.share)
    }

    pub(crate) fn use_up(&mut self, id: WorkflowId, slots: usize) {
        let left = self.of(&id).saturating_sub(slots);
        self.left.insert(id, left);
    }
}

/// The share of each workflow in the budget of a tick: at least one.
pub(crate) fn share(most: usize, workflows: usize) -> usize {
    (most / workflows.max(1)).max(1)
}
