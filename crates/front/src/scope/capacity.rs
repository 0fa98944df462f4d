//! The memory of the scheduler, as a caller may see it: the use of permits, and what it knows of a slot.

use kelos_core::{Capacity, Inspection, PoolState};
use kelos_model::SlotRef;

use super::View;

/// The part of the capacity that a view has, as if only its workflows ran and waited.
pub(crate) fn seen(capacity: Capacity, view: &View) -> Capacity {
    let Capacity { limit, mut runs, mut first, mut pools, mut full, .. } = capacity;
    runs.retain(|(workflow, _)| view.has(workflow));
    first.retain(|waiter| view.has(&waiter.slot.workflow));
    pools.iter_mut().for_each(|pool| restrict(pool, view));
    pools.retain(|pool| !pool.holders.is_empty() || !pool.first.is_empty());
    full.retain(|one| view.has(&one.workflow));
    first.iter_mut().chain(full.iter_mut().map(|one| &mut one.first)).for_each(|waiter| waiter.behind = 0);
    let running = runs.iter().map(|(_, count)| count).sum();
    let queued = u64::try_from(first.len()).unwrap_or(u64::MAX);
    Capacity { limit, running, runs, more_runs: 0, queued, first, pools, full, more_full: 0 }
}

fn restrict(pool: &mut PoolState, view: &View) {
    pool.holders.retain(|holder| view.has(&holder.run.slot.workflow));
    pool.first.retain(|waiter| view.has(&waiter.slot.workflow));
    pool.held = pool.holders.iter().map(|holder| u64::from(holder.permits)).sum();
    pool.queued = u64::try_from(pool.first.len()).unwrap_or(u64::MAX);
    pool.oldest_since = pool.first.iter().map(|waiter| waiter.since).min();
    (pool.more_holders, pool.rate, pool.is_disputed) = (0, None, false);
    // How many of others are ahead in a queue is nobody's business.
    pool.first.iter_mut().for_each(|waiter| waiter.behind = 0);
}

/// The part of what the scheduler's memory has of a slot that a view has.
pub(crate) fn inspection(slot: &SlotRef, mut found: Inspection, view: &View) -> Inspection {
    if !view.has(&slot.workflow) {
        return Inspection::default();
    }
    for place in &mut found.pools {
        restrict(&mut place.state, view);
        place.ahead = 0;
    }
    found
}
