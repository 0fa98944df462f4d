//! Pools: permits that runs of several workflows share, and the lines of those who wait for them.
//!
//! A workflow stands in the lines of all its pools with the slot that goes next, as long as its own concurrency leaves a
//! place. [`Sweep`] walks through lines that something changed for, in one order for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::SignedDuration;
use kelos_model::{Breach, Invariant, PoolId, PoolUse, WorkflowId};

use super::queue::LinePosition;
use crate::breaches::Breaches;

/// Who has been queued for so long, and is first in the line of each of its pools, keeps what comes free in any of them.
pub const POOL_PATIENCE: SignedDuration = SignedDuration::from_hours(1);

/// All pools that are named or held.
#[derive(Default)]
pub(crate) struct Pools {
    by_id: BTreeMap<PoolId, Pool>,
    /// Those in whose lines somebody may be able to go.
    changed: BTreeSet<PoolId>,
    breaches: Breaches,
}

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    /// The sizes that present definitions give it, and how many give each: the smallest holds.
    sizes: BTreeMap<u32, usize>,
    /// The pools that present definitions name beside it, and how many do.
    beside: BTreeMap<PoolId, usize>,
    /// Workflows whose live runs hold permits, and how many.
    holders: BTreeMap<WorkflowId, u64>,
    /// What they hold together.
    held: u64,
    line: BTreeSet<LinePosition>,
}

impl Pool {
    /// How many permits it has; none where no present definition names it.
    pub(crate) fn size(&self) -> Option<u32> {
        self.sizes.first_key_value().map(|(size, _)| *size)
    }

    /// Whether definitions give it different sizes.
    pub(crate) fn is_disputed(&self) -> bool {
        self.sizes.len() > 1
    }

    /// How many permits are held.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Who holds them.
    pub(crate) fn holders(&self) -> &BTreeMap<WorkflowId, u64> {
        &self.holders
    }

    /// Who waits, first to go first.
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

    /// A present definition names these.
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

    /// The definition of a workflow that named these is present no more.
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

    /// So many runs of a workflow are alive now.
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

    /// Moves a workflow to another place in its lines, or out of them.
    pub(crate) fn stand(
        &mut self,
        id: &WorkflowId,
        uses: &[PoolUse],
        before: Option<&LinePosition>,
        now: Option<&LinePosition>,
    ) {
        for one in uses {
            let Some(pool) = self.by_id.get_mut(&one.pool) else {
                // Who stands nowhere and goes nowhere, as one that comes to be, needs no pool.
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

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Has the lines of these swept.
    pub(crate) fn mark(&mut self, uses: &[PoolUse]) {
        self.changed.extend(uses.iter().map(|one| one.pool.clone()));
    }

    /// The pools in whose lines somebody may be able to go; they count as swept then.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<PoolId> {
        std::mem::take(&mut self.changed)
    }

    /// Whether a run could go if nobody else held or wanted anything.
    pub(crate) fn are_large_enough(&self, uses: &[PoolUse]) -> bool {
        uses.iter().all(|one| self.get(&one.pool).and_then(Pool::size).is_some_and(|size| one.permits <= size))
    }

    /// Whether the permits of a run are there, whoever stands in line for them.
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

/// A walk through the lines of pools that definitions name together, in the order in which their waiters go. What is
/// left in each pool shrinks by what those in front take or keep.
pub(crate) struct Sweep {
    /// Permits that those further behind may take; none where somebody in front keeps all that comes free.
    left: BTreeMap<PoolId, u64>,
    last: Option<LinePosition>,
}

/// What somebody in line can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eligibility {
    /// All its permits are there.
    Fits,
    /// So many of its pools are short.
    Short(usize),
}

impl Sweep {
    /// Of these pools, and of all that are named together with them.
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

    /// The next in line that has not had its turn: only where something is left does anybody have one.
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

    /// Leaves to those behind what a run does not take of its pools. Where a pool has too little, it leaves nothing.
    pub(crate) fn keep(&mut self, uses: &[PoolUse]) {
        for one in uses {
            if let Some(left) = self.left.get_mut(&one.pool) {
                *left = left.checked_sub(u64::from(one.permits)).unwrap_or(0);
            }
        }
    }

    /// Leaves nothing of the pools that have too little for a run.
    pub(crate) fn keep_short(&mut self, uses: &[PoolUse]) {
        let short: Vec<_> = uses.iter().filter(|one| self.is_short(one)).cloned().collect();
        self.keep(&short);
    }
}
