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

/// Takes what belongs to the workflows that a tick includes out of a set.
pub(crate) fn take_allowed<T: Ord>(
    set: &mut BTreeSet<T>,
    only: &WorkflowFilter,
    of: impl Fn(&T) -> &WorkflowId,
) -> BTreeSet<T> {
    match only {
        None => std::mem::take(set),
        Some(_) => set.extract_if(.., |one| allows(only, of(one))).collect(),
    }
}
