//! The workflows that a tick is limited to.

use std::collections::BTreeSet;
use std::sync::Arc;

use kelos_model::WorkflowId;

/// The workflows that a tick is limited to; none means all.
pub type WorkflowFilter = Option<Arc<BTreeSet<WorkflowId>>>;

/// Whether a tick includes a workflow.
pub(crate) fn allows(only: &WorkflowFilter, id: &WorkflowId) -> bool {
    only.as_ref().is_none_or(|only| only.contains(id))
}

/// Takes the workflows that a tick includes out of a set.
pub(crate) fn take_allowed(set: &mut BTreeSet<WorkflowId>, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
    let Some(only) = only else { return std::mem::take(set) };
    let taken = set.intersection(only).cloned().collect();
    set.retain(|id| !only.contains(id));
    taken
}
