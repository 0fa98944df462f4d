//! The backlogs of workflows, as slots that wait: a backlog may be as long as a backfill of years, so only its first times are read.

use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotRef, Stretch};
use kelos_store::SlotRow;

/// The first times of those stretches of a backlog that are wanted and wait, oldest first.
pub(super) fn first(workflow: &WorkflowRow, most: usize, is_wanted: impl Fn(&Stretch) -> bool) -> Vec<SlotRow> {
    let Some(schedule) = workflow.planned.schedule_of_backlog() else { return Vec::new() };
    let stretches = workflow.planned.backlog.stretches().iter();
    let waiting = stretches.filter(|stretch| stretch.killed.is_none() && is_wanted(stretch));
    let rows = waiting.flat_map(|stretch| {
        let row = |time| SlotRow { id: SlotRef::at(workflow.id.clone(), time), slot: stretch.slot() };
        schedule.times(stretch.range.start, stretch.range.end).map(row)
    });
    rows.take(most).collect()
}
