//! The workflows that a tick is about.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::WorkflowId;

/// Which workflows a tick is about; none means all.
pub type WorkflowFilter = Option<Arc<BTreeSet<WorkflowId>>>;

/// Whether a tick is about a workflow.
pub(crate) fn allows(only: &WorkflowFilter, id: &WorkflowId) -> bool {
    only.as_ref().is_none_or(|only| only.contains(id))
}

/// Takes out of a set the workflows that a tick is about.
pub(crate) fn take_allowed(set: &mut BTreeSet<WorkflowId>, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
    let Some(only) = only else { return std::mem::take(set) };
    let taken = set.intersection(only).cloned().collect();
    set.retain(|id| !only.contains(id));
    taken
}
