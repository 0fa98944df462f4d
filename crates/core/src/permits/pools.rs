//! Pools: permits that runs of several workflows share, and the queues of the workflows that wait for them.
//!
//! A workflow is in the queues of all its pools with its first slot, as long as its own concurrency allows another run.
//! [`Sweep`] walks through the changed queues, in one order for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::SignedDuration;
use kelos_model::{Breach, Invariant, PoolId, PoolUse, WorkflowId};

use super::queue::LinePosition;
use crate::breaches::Breaches;

/// The time after which a slot that is first in the queue of each of its pools is starved, and reserves every permit
/// that becomes free in any of them.
pub const POOL_PATIENCE: SignedDuration = SignedDuration::from_hours(1);

/// All pools that are named or held.
#[derive(Default)]
pub(crate) struct Pools {
    by_id: BTreeMap<PoolId, Pool>,
    /// The pools in whose queues a slot may be able to start.
    changed: BTreeSet<PoolId>,
    breaches: Breaches,
}

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    /// The sizes that present definitions give it, and the number of definitions for each. The smallest size applies.
    sizes: BTreeMap<u32, usize>,
    /// The other pools that present definitions name together with it, and the number of such definitions.
    beside: BTreeMap<PoolId, usize>,
    /// The workflows whose live runs hold permits, and the number of permits.
    holders: BTreeMap<WorkflowId, u64>,
    /// The number of permits that they hold together.
    held: u64,
    line: BTreeSet<LinePosition>,
}

impl Pool {
    /// The number of its permits; none if no present definition names it.
    pub(crate) fn size(&self) -> Option<u32> {
        self.sizes.first_key_value().map(|(size, _)| *size)
    }

    /// Whether definitions give it different sizes.
    pub(crate) fn is_disputed(&self) -> bool {
        self.sizes.len() > 1
    }

    /// The number of held permits.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// The workflows whose live runs hold permits, and the number of permits.
    pub(crate) fn holders(&self) -> &BTreeMap<WorkflowId, u64> {
        &self.holders
    }

    /// The queue, in order.
    pub(crate) fn line(&self) -> &BTreeSet<LinePosition> {
        &self.line
    }

    fn is_unused(&self) -> bool {
        self.sizes.is_empty() && self.holders.is_empty() && self.line.is_empty()
    }
}

impl Pools {
    pub(crate) fn get(&self, pool: &PoolId) -> Option<&Pool> {
        self.by_id.get(pool)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PoolId, &Pool)> {
        self.by_id.iter()
    }

    /// Counts a present definition that names these pools.
    pub(crate) fn named(&mut self, uses: &[PoolUse]) {
        for one in uses {
            let pool = self.by_id.entry(one.pool.clone()).or_default();
            *pool.sizes.entry(one.size).or_default() += 1;
            for other in others(uses, one) {
                *pool.beside.entry(other.clone()).or_default() += 1;
            }
        }
        self.mark(uses);
    }

    /// Discounts a definition of a workflow that named these pools.
    pub(crate) fn unnamed(&mut self, id: &WorkflowId, uses: &[PoolUse]) {
        self.mark(uses);
        for one in uses {
            let Some(pool) = self.by_id.get_mut(&one.pool) else {
                self.breaches.report(Invariant::WaitersHaveQueues, id);
                continue;
            };
            count_down(&mut pool.sizes, &one.size);
            for other in others(uses, one) {
                count_down(&mut pool.beside, other);
            }
            self.drop_unused(&one.pool);
        }
    }

    /// Sets the number of live runs of a workflow.
    pub(crate) fn hold(&mut self, id: &WorkflowId, uses: &[PoolUse], runs: u32) {
        for one in uses {
            let pool = self.by_id.entry(one.pool.clone()).or_default();
            let now = u64::from(one.permits) * u64::from(runs);
            let before = if now == 0 { pool.holders.remove(id) } else { pool.holders.insert(id.clone(), now) };
            let before = before.unwrap_or(0);
            let held = (pool.held + now).checked_sub(before);
            if held.is_none() {
                self.breaches.report(Invariant::RunsAreCounted, id);
            }
            pool.held = held.unwrap_or_default();
            if now < before {
                self.changed.insert(one.pool.clone());
            }
            self.drop_unused(&one.pool);
        }
    }

    /// Moves a workflow to another position in its queues, or out of them.
    pub(crate) fn stand(
        &mut self,
        id: &WorkflowId,
        uses: &[PoolUse],
        before: Option<&LinePosition>,
        now: Option<&LinePosition>,
    ) {
        for one in uses {
            let Some(pool) = self.by_id.get_mut(&one.pool) else {
                // A new workflow that is not in any queue needs no pool.
                if before.or(now).is_some() {
                    self.breaches.report(Invariant::WaitersHaveQueues, id);
                }
                continue;
            };
            if before.is_some_and(|before| !pool.line.remove(before)) {
                self.breaches.report(Invariant::WaitersHaveQueues, id);
            }
            pool.line.extend(now.cloned());
        }
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Has the queues of these pools swept.
    pub(crate) fn mark(&mut self, uses: &[PoolUse]) {
        self.changed.extend(uses.iter().map(|one| one.pool.clone()));
    }

    /// Takes the pools in whose queues a slot may be able to start. They count as swept from then on.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<PoolId> {
        std::mem::take(&mut self.changed)
    }

    /// Whether a run could start if no other run held or needed permits.
    pub(crate) fn are_large_enough(&self, uses: &[PoolUse]) -> bool {
        uses.iter().all(|one| self.get(&one.pool).and_then(Pool::size).is_some_and(|size| one.permits <= size))
    }

    /// Whether the permits of a run are free, regardless of the queues.
    pub(crate) fn have_room(&self, uses: &[PoolUse]) -> bool {
        let fits = |pool: &Pool, permits: u32| {
            pool.size().is_some_and(|size| pool.held + u64::from(permits) <= u64::from(size))
        };
        uses.iter().all(|one| self.get(&one.pool).is_some_and(|pool| fits(pool, one.permits)))
    }

    fn drop_unused(&mut self, pool: &PoolId) {
        if self.by_id.get(pool).is_some_and(Pool::is_unused) {
            self.by_id.remove(pool);
        }
    }
}

fn others<'a>(uses: &'a [PoolUse], one: &'a PoolUse) -> impl Iterator<Item = &'a PoolId> {
    uses.iter().map(|other| &other.pool).filter(|other| **other != one.pool)
}

fn count_down<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// A walk through the queues of pools that definitions name together, in the order in which slots start. The rest of
/// each pool shrinks by the permits that slots ahead take or reserve.
pub(crate) struct Sweep {
    /// The permits that slots further behind may take; none if a slot ahead reserves all that become free.
    left: BTreeMap<PoolId, u64>,
    last: Option<LinePosition>,
}

/// The outcome for a workflow in the queues of its pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eligibility {
    /// All its permits are free.
    Fits,
    /// This number of its pools have too few free permits.
    Short(usize),
}

impl Sweep {
    /// A walk through the queues of these pools, and of all that are named together with them.
    pub(crate) fn of(pools: &Pools, from: BTreeSet<PoolId>) -> Sweep {
        let mut sweep = Sweep { left: BTreeMap::new(), last: None };
        let mut found: Vec<PoolId> = from.into_iter().collect();
        while let Some(id) = found.pop() {
            let Some(pool) = pools.get(&id).filter(|_| !sweep.left.contains_key(&id)) else { continue };
            found.extend(pool.beside.keys().cloned());
            let left = u64::from(pool.size().unwrap_or(0)).saturating_sub(pool.held);
            sweep.left.insert(id, left);
        }
        sweep
    }

    /// The next workflow in the queues that was not served yet. Only pools with a rest are considered.
    pub(crate) fn next(&mut self, pools: &Pools) -> Option<LinePosition> {
        let from = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.left.iter().filter(|(_, left)| **left > 0);
        let firsts = open.filter_map(|(id, _)| pools.get(id)?.line.range((from, Bound::Unbounded)).next());
        let next = firsts.min().cloned();
        self.last.clone_from(&next);
        next
    }

    pub(crate) fn standing(&self, uses: &[PoolUse]) -> Eligibility {
        match uses.iter().filter(|one| self.is_short(one)).count() {
            0 => Eligibility::Fits,
            short => Eligibility::Short(short),
        }
    }

    fn is_short(&self, one: &PoolUse) -> bool {
        self.left.get(&one.pool).is_none_or(|left| *left < u64::from(one.permits))
    }

    /// Deducts the permits of a run from the rest of its pools. A pool with too few is left empty.
    pub(crate) fn keep(&mut self, uses: &[PoolUse]) {
        for one in uses {
            if let Some(left) = self.left.get_mut(&one.pool) {
                *left = left.checked_sub(u64::from(one.permits)).unwrap_or(0);
            }
        }
    }

    /// Empties those pools of a run that have too few permits for it.
    pub(crate) fn keep_short(&mut self, uses: &[PoolUse]) {
        let short: Vec<_> = uses.iter().filter(|one| self.is_short(one)).cloned().collect();
        self.keep(&short);
    }
}
