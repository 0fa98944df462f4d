//! An invariant that is broken on purpose: one workflow is frozen by it, and no other is affected.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_core::{PlantedBreach, PlantedIn};
use kelos_model::event::Origin;
use kelos_model::ranges::Range;
use kelos_model::{Event, SlotEvent, WorkflowEvent, WorkflowId};
use kelos_store::{EventFilter, MemoryDisk, MemoryStore, PageRequest, StoredState};

use crate::rng::Rng;
use crate::workload::Workload;

/// The breach that a seed plants: of any workflow, from some moment until the faults stop. Half of the seeds with event schedules break one
/// of these.
#[must_use]
pub fn of(seed: u64, workload: &Workload) -> Option<PlantedBreach> {
    let mut rng = Rng::new(seed ^ 0xB0_0B_00);
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    let (schedules, others): (BTreeSet<_>, BTreeSet<_>) =
        all.map(|one| &one.id).partition(|id| workload.schedules.contains(*id));
    let of_schedule = !schedules.is_empty() && rng.percent(50);
    let fit: Vec<&WorkflowId> = if of_schedule { schedules } else { others }.into_iter().collect();
    if fit.is_empty() {
        return None;
    }
    let workflow = (*rng.pick(&fit)).clone();
    let when = *rng.pick(&[
        PlantedIn::Planning,
        PlantedIn::Collecting,
        PlantedIn::Looking,
        PlantedIn::Dispatching,
        PlantedIn::Reporting,
        PlantedIn::Asking,
    ]);
    let span = workload.end.as_second() - workload.start.as_second();
    let from = workload.start.as_second() + rng.between(0, span / 2);
    let from = Timestamp::from_second(from).unwrap_or(workload.start);
    Some(PlantedBreach { workflow, within: Range::new(from, Timestamp::MAX), when })
}

/// Checks that only the one workflow was ever frozen, and that nothing of it was planned, evaluated or started meanwhile. Its row
/// must agree with the log.
///
/// # Errors
/// The violation.
pub fn judge(planted: Option<&WorkflowId>, disk: &MemoryDisk) -> Result<(), String> {
    let reader = MemoryStore::on(disk).reader();
    let log = reader.events(&EventFilter::default(), PageRequest::oldest(crate::ALL));
    let log = log.map_err(|error| error.to_string())?.rows;
    let mut is_frozen = false;
    for record in &log {
        match &record.event {
            Event::Workflow { workflow, what: WorkflowEvent::Frozen { breach } } => {
                if planted != Some(workflow) {
                    return Err(format!("{workflow} was frozen: {breach}"));
                }
                is_frozen = true;
            }
            Event::Workflow { workflow, what: WorkflowEvent::SetAside { breach, .. } }
                if !is_frozen || planted != Some(workflow) =>
            {
                return Err(format!("something was set aside of {workflow}, which was not frozen: {breach}"));
            }
            Event::Workflow { workflow, what: WorkflowEvent::Thawed { .. } } if planted == Some(workflow) => {
                is_frozen = false;
            }
            Event::Slot { slot, what } if is_frozen && planted == Some(&slot.workflow) && is_of_its_own(what) => {
                return Err(format!("{slot} went on at {} while its workflow was frozen: {what:?}", record.at));
            }
            _ => {}
        }
    }
    let rows = reader.workflows(None).map_err(|error| error.to_string())?;
    let frozen = rows.iter().filter(|row| row.moments.frozen.is_some()).count();
    if frozen == usize::from(is_frozen) {
        Ok(())
    } else {
        Err(format!("{frozen} rows are frozen, in the log {is_frozen}"))
    }
}

/// Whether an event only happens to slots that are planned, collect, are evaluated or are started.
fn is_of_its_own(what: &SlotEvent) -> bool {
    matches!(
        what,
        SlotEvent::Planned { origin: Origin::Schedule | Origin::Feed | Origin::Fact, .. }
            | SlotEvent::Collected { .. }
            | SlotEvent::Looked { .. }
            | SlotEvent::TriggerMet { .. }
            | SlotEvent::Held { .. }
            | SlotEvent::ConstraintsMet { .. }
            | SlotEvent::Expired { .. }
            | SlotEvent::Skipped { .. }
            | SlotEvent::BackoffEnded
            | SlotEvent::Dispatched { .. }
    )
}
