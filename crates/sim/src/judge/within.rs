//! The judge of permits that runs take while they are live: the log alone says what was held, and when.

use std::collections::BTreeMap;

use kelos_model::event::Event;
use kelos_model::{PoolId, PoolUse, SlotEvent, SlotRef};
use kelos_store::{EventFilter, PageRequest, Queries};

use crate::workload::Workload;

/// Checks that no pool ever had more permits in use within runs than its largest size, and that nothing is held by a run that ended.
///
/// # Errors
/// The violation.
pub(super) fn within_limits(workload: &Workload, reader: &dyn Queries) -> Result<(), String> {
    let mut sizes: BTreeMap<PoolId, u32> = BTreeMap::new();
    let all = workload.definitions.iter().flat_map(|(_, all)| all);
    for one in all.flat_map(|workflow| super::uses(workflow)) {
        sizes.entry(one.pool).and_modify(|size| *size = one.size.max(*size)).or_insert(one.size);
    }
    let page = PageRequest::oldest(crate::ALL);
    let rows = reader.events(&EventFilter::default(), page).map_err(|error| error.to_string())?.rows;
    let mut held: BTreeMap<(SlotRef, u64), BTreeMap<PoolId, u32>> = BTreeMap::new();
    for record in rows {
        let Event::Slot { slot, what } = record.event else { continue };
        match what {
            SlotEvent::Acquired { request, permits, .. } => {
                if held.insert((slot.clone(), request), permits).is_some() {
                    return Err(format!("{slot} was granted request {request} twice"));
                }
                for (pool, size) in sizes.iter().filter(|(_, size)| **size != PoolUse::BOUNDLESS) {
                    let sum: u32 = held.values().filter_map(|permits| permits.get(pool)).sum();
                    if sum > *size {
                        return Err(format!("{sum} permits of pool {pool} are held within runs, it has {size}"));
                    }
                }
            }
            SlotEvent::Released { request, .. } => {
                let returned = held.remove(&(slot.clone(), request));
                returned.ok_or_else(|| format!("{slot} returned what it did not hold, by request {request}"))?;
            }
            SlotEvent::Succeeded { .. }
            | SlotEvent::BackedOff { .. }
            | SlotEvent::Failed { .. }
            | SlotEvent::RunEnded { .. }
            | SlotEvent::Withdrawn { .. } => held.retain(|(of, _), _| *of != slot),
            _ => {}
        }
    }
    for (slot, request) in held.keys() {
        // Some runs began so late that they go on.
        if !reader.slot(slot).map_err(|error| error.to_string())?.is_some_and(|slot| slot.run_alive) {
            return Err(format!("{slot} still holds what request {request} took"));
        }
    }
    Ok(())
}
