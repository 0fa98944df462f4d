//! A walk through the changed queues of pools, in one order for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::Timestamp;
use kelos_model::{PoolId, PoolUse};

use super::pools::Pools;
use super::queue::LinePosition;

/// A walk through the queues of pools that definitions name together, in the order in which slots start. The rest of
/// each pool shrinks by the permits that slots ahead take or reserve.
pub(crate) struct Sweep {
    left: BTreeMap<PoolId, Rest>,
    last: Option<LinePosition>,
}

/// The rest of a pool, for slots further behind.
struct Rest {
    /// The permits that they may take; none if a slot ahead reserves all that become free.
    places: u64,
    /// The tokens that they may take; none if the pool has no rate.
    tokens: Option<u64>,
    /// Whether it is known when to look again for those further behind: a slot ahead waits for the next token, or keeps all that come.
    is_awaited: bool,
}

impl Rest {
    fn is_open(&self) -> bool {
        self.places > 0 && (self.tokens != Some(0) || !self.is_awaited)
    }
}

/// The outcome for a workflow in the queues of its pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eligibility {
    /// All its permits are free.
    Fits,
    /// Something is missing.
    Short {
        /// The number of its pools that have too few permits or tokens.
        pools: usize,
        /// Whether it lacks tokens alone, which come by themselves.
        of_tokens: bool,
    },
}

impl Sweep {
    /// A walk through the queues of these pools, and of all that are named together with them.
    pub(crate) fn of(pools: &mut Pools, from: BTreeSet<PoolId>, now: Timestamp) -> Sweep {
        let mut sweep = Sweep { left: BTreeMap::new(), last: None };
        let mut found: Vec<PoolId> = from.into_iter().collect();
        while let Some(id) = found.pop() {
            let Some(pool) = pools.get(&id).filter(|_| !sweep.left.contains_key(&id)) else { continue };
            found.extend(pool.beside.keys().cloned());
            let places = u64::from(pool.size().unwrap_or(0)).saturating_sub(pool.held());
            let tokens = pools.tokens(&id, pool, now).map(u64::from);
            pools.forget_refill(&id);
            sweep.left.insert(id, Rest { places, tokens, is_awaited: false });
        }
        sweep
    }

    /// The next workflow in the queues that was not served yet. Only pools with a rest are considered.
    pub(crate) fn next(&mut self, pools: &Pools) -> Option<LinePosition> {
        let from = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let open = self.left.iter().filter(|(_, left)| left.is_open());
        let firsts = open.filter_map(|(id, _)| pools.get(id)?.line().range((from, Bound::Unbounded)).next());
        let next = firsts.min().cloned();
        self.last.clone_from(&next);
        next
    }

    /// Whether a run could have all permits that it needs. If it waits for tokens, the pools note when to look again.
    pub(crate) fn standing(&mut self, uses: &[PoolUse], pools: &mut Pools, now: Timestamp) -> Eligibility {
        let (mut short, mut of_tokens) = (0, true);
        for one in uses {
            let (no_places, no_tokens) = (self.lacks_places(one), self.lacks_tokens(one));
            if no_tokens {
                let is_next = pools.await_tokens(&one.pool, one.permits, now);
                self.left.entry(one.pool.clone()).and_modify(|left| left.is_awaited |= is_next);
            }
            short += usize::from(no_places || no_tokens);
            of_tokens &= !no_places;
        }
        if short == 0 { Eligibility::Fits } else { Eligibility::Short { pools: short, of_tokens } }
    }

    fn lacks_places(&self, one: &PoolUse) -> bool {
        self.left.get(&one.pool).is_none_or(|left| left.places < u64::from(one.permits))
    }

    fn lacks_tokens(&self, one: &PoolUse) -> bool {
        let tokens = self.left.get(&one.pool).and_then(|left| left.tokens);
        tokens.is_some_and(|tokens| tokens < u64::from(one.permits))
    }

    /// Deducts the permits of a run from the rest of its pools. A pool with too few is left empty. Tokens are deducted only
    /// for a run that lacks nothing else: kept for one that waits for permits, they might be what the holder of these waits for.
    pub(crate) fn keep(&mut self, uses: &[PoolUse], with_tokens: bool) {
        for one in uses {
            if let Some(left) = self.left.get_mut(&one.pool) {
                let permits = u64::from(one.permits);
                left.places = left.places.saturating_sub(permits);
                if with_tokens {
                    left.is_awaited |= left.tokens.is_some_and(|tokens| tokens < permits);
                    left.tokens = left.tokens.map(|tokens| tokens.saturating_sub(permits));
                }
            }
        }
    }

    /// Empties the one pool of a run that has too little for it: of permits, or else of tokens.
    pub(crate) fn keep_short(&mut self, uses: &[PoolUse]) {
        for one in uses {
            let (no_places, no_tokens) = (self.lacks_places(one), self.lacks_tokens(one));
            let Some(left) = self.left.get_mut(&one.pool) else { continue };
            if no_places {
                left.places = 0;
            } else if no_tokens {
                (left.tokens, left.is_awaited) = (Some(0), true);
            }
        }
    }
}
