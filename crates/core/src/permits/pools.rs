//! Pools: permits that runs of several workflows share, and the queues of the workflows that wait for them.
//!
//! A workflow is in the queues of all its pools with its first slot, as long as its own concurrency allows another run and, if workers run
//! its jobs, one of them offers to: whoever nobody would run keeps no permits from those behind. A pool may have a rate: its permits are
//! taken together with tokens, which are spent, not held.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{Breach, Invariant, PermitRefusal, PoolId, PoolUse, TokenRate};

use super::queue::LinePosition;
use super::queue_id::QueueId;
use super::rates::Bucket;
use super::requests::RequestId;
use crate::breaches::Breaches;

/// The time after which a slot that is first in the queue of each of its pools is starved, and reserves every permit
/// that becomes free in any of them.
pub const POOL_PATIENCE: SignedDuration = SignedDuration::from_hours(1);

/// The number of buckets from which those that are full are forgotten.
const MANY_BUCKETS: usize = 1024;

/// All pools that are named or held.
#[derive(Default)]
pub(crate) struct Pools {
    by_id: BTreeMap<PoolId, Pool>,
    /// The pools in whose queues a slot may be able to start.
    changed: BTreeSet<PoolId>,
    /// The buckets of the rates of pools. One that is not there is full.
    buckets: BTreeMap<PoolId, Bucket>,
    /// The moments at which the buckets have tokens for slots in their queues.
    refills: BTreeMap<PoolId, Timestamp>,
    breaches: Breaches,
}

/// A pool.
#[derive(Default)]
pub(crate) struct Pool {
    /// The sizes that present definitions give it, and the number of definitions for each. The smallest size applies.
    sizes: BTreeMap<u32, usize>,
    /// The rates that present definitions give it, and the number of definitions for each. The slowest applies.
    rates: BTreeMap<TokenRate, usize>,
    /// The other pools that present definitions name together with it, and the number of such definitions.
    pub(super) beside: BTreeMap<PoolId, usize>,
    /// The workflows whose live runs hold permits, and the number of permits.
    holders: BTreeMap<QueueId, u64>,
    /// The requests of live runs by which they hold permits beside those of their start, and the number of permits.
    within: BTreeMap<RequestId, u32>,
    /// The number of permits that all of them hold together.
    held: u64,
    line: BTreeSet<LinePosition>,
}

impl Pool {
    /// The number of its permits; none if no present definition names it.
    pub(crate) fn size(&self) -> Option<u32> {
        self.sizes.first_key_value().map(|(size, _)| *size)
    }

    /// Its rate; none if only the number of its permits is limited.
    pub(crate) fn rate(&self) -> Option<&TokenRate> {
        self.rates.first_key_value().map(|(rate, _)| rate)
    }

    /// Whether definitions give it different sizes or rates.
    pub(crate) fn is_disputed(&self) -> bool {
        let (rated, named) = (self.rates.values().sum::<usize>(), self.sizes.values().sum::<usize>());
        self.sizes.len() > 1 || self.rates.len() > 1 || (rated > 0 && rated < named)
    }

    /// Whether it could ever give so many permits at once.
    fn is_large_enough(&self, permits: u32) -> bool {
        self.size().is_some_and(|size| permits <= size) && self.rate().is_none_or(|rate| permits <= rate.burst)
    }

    /// The number of held permits.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// The workflows whose live runs hold permits, and the number of permits.
    pub(crate) fn holders(&self) -> &BTreeMap<QueueId, u64> {
        &self.holders
    }

    /// The requests of live runs by which they hold permits beside those of their start, and the number of permits.
    pub(crate) fn within(&self) -> &BTreeMap<RequestId, u32> {
        &self.within
    }

    /// The queue, in order.
    pub(crate) fn line(&self) -> &BTreeSet<LinePosition> {
        &self.line
    }

    fn is_unused(&self) -> bool {
        let is_held = !self.holders.is_empty() || !self.within.is_empty();
        self.sizes.is_empty() && !is_held && self.line.is_empty()
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
            if let Some(rate) = one.rate {
                *pool.rates.entry(rate).or_default() += 1;
            }
            for other in others(uses, one) {
                *pool.beside.entry(other.clone()).or_default() += 1;
            }
        }
        self.mark(uses);
    }

    /// Discounts a definition of a workflow that named these pools.
    pub(crate) fn unnamed(&mut self, id: &QueueId, uses: &[PoolUse]) {
        self.mark(uses);
        for one in uses {
            let Some(pool) = self.by_id.get_mut(&one.pool) else {
                self.breaches.report(Invariant::WaitersHaveQueues, &id.workflow);
                continue;
            };
            count_down(&mut pool.sizes, &one.size);
            one.rate.iter().for_each(|rate| count_down(&mut pool.rates, rate));
            for other in others(uses, one) {
                count_down(&mut pool.beside, other);
            }
            self.drop_unused(&one.pool);
        }
    }

    /// Sets the number of live runs of a workflow.
    pub(crate) fn hold(&mut self, id: &QueueId, uses: &[PoolUse], runs: u32) {
        for one in uses {
            let pool = self.by_id.entry(one.pool.clone()).or_default();
            let now = u64::from(one.permits) * u64::from(runs);
            let before = if now == 0 { pool.holders.remove(id) } else { pool.holders.insert(id.clone(), now) };
            let before = before.unwrap_or(0);
            let held = (pool.held + now).checked_sub(before);
            if held.is_none() {
                self.breaches.report(Invariant::RunsAreCounted, &id.workflow);
            }
            pool.held = held.unwrap_or_default();
            if now < before {
                self.changed.insert(one.pool.clone());
            }
            self.drop_unused(&one.pool);
        }
    }

    /// Sets the permits that a live run holds by a request.
    pub(crate) fn hold_within(&mut self, request: &RequestId, id: &PoolId, permits: u32) {
        let pool = self.by_id.entry(id.clone()).or_default();
        let before =
            if permits == 0 { pool.within.remove(request) } else { pool.within.insert(request.clone(), permits) };
        let before = before.unwrap_or(0);
        let held = (pool.held + u64::from(permits)).checked_sub(u64::from(before));
        if held.is_none() {
            self.breaches.report_slot(Invariant::RunsAreCounted, &request.slot);
        }
        pool.held = held.unwrap_or_default();
        if permits < before {
            self.changed.insert(id.clone());
        }
        self.drop_unused(id);
    }

    /// The permits among these that are held once they are taken: not those of pools that are limited by their rates alone.
    pub(crate) fn holdable(&self, uses: &[PoolUse]) -> BTreeMap<PoolId, u32> {
        let is_limited = |one: &&PoolUse| self.get(&one.pool).and_then(Pool::size) != Some(PoolUse::BOUNDLESS);
        uses.iter().filter(is_limited).map(|one| (one.pool.clone(), one.permits)).collect()
    }

    /// The reason why such a use of a pool can never be granted.
    pub(crate) fn refusal(&self, one: &PoolUse) -> Option<PermitRefusal> {
        let pool = one.pool.clone();
        let Some((known, size)) = self.get(&pool).and_then(|known| Some((known, known.size()?))) else {
            return Some(PermitRefusal::Undeclared { pool });
        };
        if one.permits > size {
            return Some(PermitRefusal::TooMany { pool, permits: one.permits, size });
        }
        let burst = known.rate().map(|rate| rate.burst).filter(|burst| one.permits > *burst)?;
        Some(PermitRefusal::BeyondBurst { pool, tokens: one.permits, burst })
    }

    /// Moves a workflow to another position in its queues, or out of them.
    pub(crate) fn stand(
        &mut self,
        id: &QueueId,
        uses: &[PoolUse],
        before: Option<&LinePosition>,
        now: Option<&LinePosition>,
    ) {
        for one in uses {
            let Some(pool) = self.by_id.get_mut(&one.pool) else {
                // A new workflow that is not in any queue needs no pool.
                if before.or(now).is_some() {
                    self.breaches.report(Invariant::WaitersHaveQueues, &id.workflow);
                }
                continue;
            };
            if before.is_some_and(|before| !pool.line.remove(before)) {
                self.breaches.report(Invariant::WaitersHaveQueues, &id.workflow);
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
    pub(crate) fn take_changed(&mut self, now: Timestamp) -> BTreeSet<PoolId> {
        let changed = std::mem::take(&mut self.changed);
        self.forgive(&changed, now);
        changed
    }

    /// Whether a run could start if no other run held or needed permits.
    pub(crate) fn are_large_enough(&self, uses: &[PoolUse]) -> bool {
        uses.iter().all(|one| self.get(&one.pool).is_some_and(|pool| pool.is_large_enough(one.permits)))
    }

    /// Whether the permits of a run are free, regardless of the queues.
    pub(crate) fn have_room(&self, uses: &[PoolUse], now: Timestamp) -> bool {
        let fits = |id: &PoolId, pool: &Pool, permits: u32| {
            let has_place = pool.size().is_some_and(|size| pool.held + u64::from(permits) <= u64::from(size));
            has_place && self.tokens(id, pool, now).is_none_or(|tokens| tokens >= permits)
        };
        uses.iter().all(|one| self.get(&one.pool).is_some_and(|pool| fits(&one.pool, pool, one.permits)))
    }

    /// The tokens in the bucket of a pool; none if it has no rate.
    pub(crate) fn tokens(&self, id: &PoolId, pool: &Pool, now: Timestamp) -> Option<u32> {
        let bucket = self.buckets.get(id).copied().unwrap_or_default();
        pool.rate().map(|rate| bucket.tokens(rate, now))
    }

    /// The moment at which the bucket of a pool has so many tokens; none if it has no rate.
    pub(crate) fn moment_of(&self, id: &PoolId, tokens: u32) -> Option<Timestamp> {
        let bucket = self.buckets.get(id).copied().unwrap_or_default();
        self.get(id)?.rate().map(|rate| bucket.moment_of(rate, tokens))
    }

    /// Takes the tokens of a run that is granted. Returns when each bucket is full again.
    pub(crate) fn spend(&mut self, uses: &[PoolUse], now: Timestamp) -> Vec<(PoolId, Timestamp)> {
        let mut spent = Vec::new();
        for one in uses {
            let Some(rate) = self.by_id.get(&one.pool).and_then(Pool::rate).copied() else { continue };
            if self.buckets.len() >= MANY_BUCKETS {
                self.buckets.retain(|_, bucket| bucket.full_at > now);
            }
            let bucket = self.buckets.entry(one.pool.clone()).or_default();
            bucket.take(&rate, now, one.permits);
            spent.push((one.pool.clone(), bucket.full_at));
        }
        spent
    }

    /// Notes when the bucket of a pool is full again. Of several moments the latest counts.
    pub(crate) fn restore_spent(&mut self, pool: &PoolId, full_at: Timestamp) {
        let bucket = self.buckets.entry(pool.clone()).or_default();
        bucket.full_at = bucket.full_at.max(full_at);
    }

    /// Has the queues of pools swept whose buckets have tokens now, or of all that have a rate.
    pub(crate) fn refill(&mut self, now: Timestamp, all: bool) {
        let due: Vec<PoolId> = self.refills.iter().filter(|(_, at)| **at <= now).map(|(id, _)| id.clone()).collect();
        // A pool that nobody names any more is not swept.
        due.iter().for_each(|id| self.forget_refill(id));
        self.changed.extend(due);
        if all {
            self.changed.extend(self.buckets.keys().cloned());
        }
    }

    /// The next moment at which a bucket has tokens for a slot in its queue.
    pub(crate) fn next_refill(&self) -> Option<Timestamp> {
        self.refills.values().min().copied()
    }

    /// Forgets when the bucket of a pool has tokens: its queue is about to be swept.
    pub(super) fn forget_refill(&mut self, id: &PoolId) {
        self.refills.remove(id);
    }

    /// Has no bucket of these pools owe more than it can hold.
    fn forgive(&mut self, pools: &BTreeSet<PoolId>, now: Timestamp) {
        for id in pools {
            let rate = self.by_id.get(id).and_then(Pool::rate);
            if let Some((rate, bucket)) = rate.zip(self.buckets.get_mut(id)) {
                bucket.forgive(rate, now);
            }
        }
    }

    /// Notes that a slot in the queue of a pool waits for so many tokens. Returns whether those behind it have no reason to look sooner:
    /// it waits for the next token, or what is there is kept for others.
    pub(super) fn await_tokens(&mut self, id: &PoolId, permits: u32, now: Timestamp) -> bool {
        let Some((pool, rate)) = self.by_id.get(id).and_then(|pool| Some((pool, *pool.rate()?))) else { return true };
        let more = self.tokens(id, pool, now).unwrap_or(0).saturating_add(1);
        if more > rate.burst {
            return true;
        }
        let Some(at) = self.moment_of(id, permits.clamp(more, rate.burst)) else { return true };
        self.refills.entry(id.clone()).and_modify(|next| *next = at.min(*next)).or_insert(at);
        permits <= more
    }

    /// Notes that a slot outside the queue of a pool waits for tokens, if there are too few.
    pub(super) fn await_tokens_beside(&mut self, one: &PoolUse, now: Timestamp) {
        let tokens = self.get(&one.pool).and_then(|pool| self.tokens(&one.pool, pool, now));
        if tokens.is_some_and(|tokens| tokens < one.permits) {
            self.await_tokens(&one.pool, one.permits, now);
        }
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
