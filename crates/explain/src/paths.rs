//! The writers and readers of paths, among all that is defined.

use kelos_model::paths::PathGraph;
use kelos_model::time::resolve;
use kelos_model::workflow::WorkflowRow;

/// The relation between the slots of these workflows by the paths that they write and wait for.
#[must_use]
pub fn graph(rows: &[WorkflowRow]) -> PathGraph {
    let present = || rows.iter().filter(|row| row.present).map(|row| &row.definition);
    if present().all(|one| one.writes.is_empty()) {
        return PathGraph::default();
    }
    let schedules = present().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
    let mut schedules = resolve(&schedules);
    PathGraph::of(present().map(|one| (one.clone(), schedules.remove(&one.id).and_then(Result::ok))))
}
