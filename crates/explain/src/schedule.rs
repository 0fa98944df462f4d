//! The schedule that a workflow really has: a dependent one is followed to the one that it borrows.

use std::collections::BTreeMap;

use kelos_model::WorkflowId;
use kelos_model::time::schedule::Schedule;
use kelos_model::time::{CronSchedule, ScheduleProblem, resolve};
use kelos_model::trigger::SlotTimes;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};

/// A workflow that is defined now.
///
/// # Errors
/// When the store can't be read.
pub fn defined(reader: &dyn Queries, id: &WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
    Ok(reader.workflow(id)?.filter(|row| row.present))
}

/// The times of the slots of a workflow that is defined now; none where it has no times.
///
/// # Errors
/// When the store can't be read.
pub fn times(reader: &dyn Queries, id: &WorkflowId) -> Result<Option<SlotTimes>, StoreError> {
    let Some(row) = defined(reader, id)? else { return Ok(None) };
    Ok(resolved(reader, &row)?.ok().map(|schedule| SlotTimes::new(&schedule, row.definition.bounds(&schedule))))
}

/// The cron schedule of a workflow. Only the workflows that it depends on are read.
///
/// # Errors
/// When the store can't be read; a schedule that leads nowhere is the inner error.
pub fn resolved(reader: &dyn Queries, row: &WorkflowRow) -> Result<Result<CronSchedule, ScheduleProblem>, StoreError> {
    let mut chain = vec![row.definition.clone()];
    while let Some(Schedule::Dependent(on)) = chain.last().and_then(|last| last.keys.schedule()) {
        if chain.iter().any(|known| known.id == *on) {
            break;
        }
        let Some(next) = defined(reader, on)? else {
            break;
        };
        chain.push(next.definition);
    }
    let schedules: BTreeMap<_, _> =
        chain.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
    let unknown = || Err(ScheduleProblem::Unknown { on: row.id.clone() });
    Ok(resolve(&schedules).remove(&row.id).unwrap_or_else(unknown))
}
