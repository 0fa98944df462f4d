//! Permits: which queued slots may run now. A run needs a permit of its workflow's concurrency, the permits of its
//! pools, and a permit of the limit on all runs; it gets all of them or none.
//!
//! The scheduler reports changes of slots ([`Permits::follow`]), the terms on which a workflow runs
//! ([`Permits::agree`]) and the offers of workers; [`Permits::grant`] decides which slots run. Absent: triggers,
//! definitions and the log.

mod lots;
mod offers;
mod pass;
mod pools;
mod queue;
mod rates;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Breach, Invariant, PoolId, Slot, SlotRef, SlotState, WorkflowId};

pub(crate) use lots::{Lot, LotWait, Readiness};
use offers::Offers;
pub(crate) use offers::Taker;
use pass::Pass;
pub use pools::POOL_PATIENCE;
pub(crate) use pools::Pool;
use pools::Pools;
pub(crate) use queue::{LinePosition, Position, Queue, Terms};

use crate::breaches::Breaches;
use crate::filter::WorkflowFilter;
use crate::workers::Offer;

/// What the scheduler says of queued slots.
pub(crate) type IsReady<'a> = &'a dyn Readiness;

/// All permits, with the runs that hold them and the slots that wait for them.
pub(crate) struct Permits {
    /// The limit on the live runs of all workflows.
    limit: u32,
    /// The number of live runs of all workflows.
    running: u32,
    queues: BTreeMap<WorkflowId, Queue>,
    pools: Pools,
    offers: Offers,
    /// Workflows whose queued slots wait only for the limit on all runs, longest wait first.
    starved: VecDeque<WorkflowId>,
    /// Workflows that may have a free permit and a queued slot.
    woken: BTreeSet<WorkflowId>,
    /// The moments at which workflows at the front of their pools' queues become starved.
    patience: BTreeSet<(Timestamp, WorkflowId)>,
    /// The moments at which slots wait for their batch no longer.
    lots: BTreeSet<(Timestamp, WorkflowId)>,
    /// The moment of the last pass.
    passed_at: Option<Timestamp>,
    breaches: Breaches,
}

/// Whether the jobs of a workflow wait for workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkersOf {
    /// No worker serves the workflow.
    None,
    /// All workers that serve it are busy.
    Busy,
    /// A worker would run another of its jobs, or it needs no workers.
    Enough,
}

/// The permits of a run, granted to a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) slot: SlotRef,
    /// The worker that runs it, if workers run the jobs of its workflow.
    pub(crate) taker: Option<Taker>,
    /// When the buckets of the rates that it takes tokens of are full again.
    pub(crate) spent: Vec<(PoolId, Timestamp)>,
    /// The times of the slots that its run serves as well.
    pub(crate) others: Vec<Timestamp>,
}

impl Permits {
    /// Permits without queued slots and without runs.
    pub(crate) fn new(limit: u32) -> Permits {
        Permits {
            limit,
            running: 0,
            queues: BTreeMap::new(),
            pools: Pools::default(),
            offers: Offers::default(),
            starved: VecDeque::new(),
            woken: BTreeSet::new(),
            patience: BTreeSet::new(),
            lots: BTreeSet::new(),
            passed_at: None,
            breaches: Breaches::default(),
        }
    }

    /// Sets the terms on which a workflow runs. Runs of a removed workflow continue, and keep their permits.
    pub(crate) fn agree(&mut self, id: &WorkflowId, terms: Terms) {
        let queue = self.queues.entry(id.clone()).or_default();
        if queue.terms == terms {
            return;
        }
        let before = std::mem::replace(&mut queue.terms, terms);
        let now = &queue.terms;
        if (&before.pools, before.is_present) != (&now.pools, now.is_present) {
            let position = queue.in_line.take().map(|(position, _)| position);
            self.pools.stand(id, &before.pools, position.as_ref(), None);
            if let Some(until) = queue.patient_until.take() {
                self.patience.remove(&(until, id.clone()));
            }
            self.pools.hold(id, &before.pools, 0);
            if before.is_present {
                self.pools.unnamed(id, &before.pools);
            }
            if now.is_present {
                self.pools.named(&now.pools);
            }
            self.pools.hold(id, &now.pools, queue.active());
        }
        self.woken.insert(id.clone());
    }

    /// Follows a change of a slot. A queued slot that is not `in_line` does not hold up others.
    pub(crate) fn follow(&mut self, id: &SlotRef, before: Option<&Slot>, after: &Slot, in_line: bool) {
        let before = before.filter(|slot| slot.state == SlotState::Queued);
        if let Some(before) = before {
            self.withdraw(id, &Position::of(before, &id.key));
        }
        if in_line {
            self.enqueue(id, after);
        }
        self.count(id, after.run_alive);
    }

    /// Puts a slot into its queue.
    pub(crate) fn enqueue(&mut self, id: &SlotRef, slot: &Slot) {
        let queue = self.queues.entry(id.workflow.clone()).or_default();
        queue.insert(Position::of(slot, &id.key), slot.since);
        self.woken.insert(id.workflow.clone());
    }

    /// Takes a slot out of its queue.
    pub(crate) fn withdraw(&mut self, id: &SlotRef, position: &Position) {
        if self.queues.get_mut(&id.workflow).is_some_and(|queue| queue.remove(position)) {
            self.woken.insert(id.workflow.clone());
        }
    }

    /// Counts or discounts the run of a slot.
    fn count(&mut self, id: &SlotRef, is_alive: bool) {
        let queue = self.queues.entry(id.workflow.clone()).or_default();
        if !is_alive && queue.unfollow(&id.key) {
            self.woken.insert(id.workflow.clone());
            return;
        }
        let changed = if is_alive { queue.begin(&id.key) } else { queue.end(&id.key) };
        if changed {
            let running = if is_alive { self.running.checked_add(1) } else { self.running.checked_sub(1) };
            self.breaches.check_slot(running.is_some(), Invariant::RunsAreCounted, id);
            self.running = running.unwrap_or_default();
            self.pools.hold(&id.workflow, &queue.terms.pools, queue.active());
            self.woken.insert(id.workflow.clone());
        }
    }

    /// Notes that the live run of another slot serves this one, so that it holds no permits.
    pub(crate) fn follow_along(&mut self, id: &SlotRef) {
        self.queues.entry(id.workflow.clone()).or_default().follow_along(&id.key);
    }

    /// Whether the live run of another slot serves this one.
    pub(crate) fn is_following(&self, id: &SlotRef) -> bool {
        self.queues.get(&id.workflow).is_some_and(|queue| queue.is_following(&id.key))
    }

    /// Has the queue of a workflow served in the next pass.
    pub(crate) fn wake(&mut self, id: &WorkflowId) {
        self.woken.insert(id.clone());
    }

    /// Replaces the offer of a worker.
    pub(crate) fn offered(&mut self, worker: Arc<str>, offer: Option<Offer>) {
        if let Some(id) = self.offers.forget(&worker) {
            self.breaches.report(Invariant::OffersAreListed, &id);
        }
        if let Some(offer) = offer {
            self.woken.extend(offer.workflows.iter().filter(|id| self.queues.contains_key(*id)).cloned());
            self.offers.note(worker, offer);
        }
    }

    /// Grants free permits to queued slots, of some workflows or of all. Granted permits count as held at once.
    pub(crate) fn grant(&mut self, now: Timestamp, only: &WorkflowFilter, is_ready: IsReady<'_>) -> Vec<Grant> {
        while let Some((at, id)) = self.patience.first().cloned().filter(|(at, _)| *at <= now) {
            self.patience.remove(&(at, id.clone()));
            let Some(queue) = self.queues.get_mut(&id) else {
                self.breaches.report(Invariant::WaitersHaveQueues, &id);
                continue;
            };
            queue.patient_until = None;
            self.pools.mark(&queue.terms.pools);
        }
        self.end_waits_for_batches(now);
        // A clock that was put back would have buckets wait until it is where it was.
        let is_back = self.passed_at.replace(now).is_none_or(|before| now < before);
        self.pools.refill(now, is_back);
        Pass::new(self, now, only, is_ready).run()
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.pools.take_breach())
    }

    /// Whether a pass has something to do, at whatever moment.
    pub(crate) fn is_due(&self) -> bool {
        !self.woken.is_empty() || (!self.starved.is_empty() && self.has_place())
    }

    /// The next moment at which a pass has something to do by time alone.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        let firsts = [self.patience.first(), self.lots.first()].into_iter().flatten();
        firsts.map(|(at, _)| *at).chain(self.pools.next_refill()).min()
    }

    /// Notes when the bucket of a pool is full again, as it was stored.
    pub(crate) fn restore_spent(&mut self, pool: &PoolId, full_at: Timestamp) {
        self.pools.restore_spent(pool, full_at);
    }

    /// The tokens of a pool with a rate, and when it has so many.
    pub(crate) fn tokens(&self, id: &PoolId, permits: u32, now: Timestamp) -> Option<(u32, Timestamp)> {
        let pool = self.pools.get(id)?;
        self.pools.tokens(id, pool, now).zip(self.pools.moment_of(id, permits))
    }

    fn has_place(&self) -> bool {
        self.running < self.limit
    }

    /// The number of live runs of all workflows.
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    /// The limit on the live runs of all workflows.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The queue of a workflow, with its live runs.
    pub(crate) fn queue(&self, id: &WorkflowId) -> Option<&Queue> {
        self.queues.get(id)
    }

    /// The queues of all workflows.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&WorkflowId, &Queue)> {
        self.queues.iter()
    }

    /// All pools that a present definition names, or whose permits are held.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (&PoolId, &Pool)> {
        self.pools.iter()
    }

    /// A pool.
    pub(crate) fn pool(&self, id: &PoolId) -> Option<&Pool> {
        self.pools.get(id)
    }

    /// The workflows that only the limit on all runs holds back, in the order in which they are served.
    pub(crate) fn starved(&self) -> impl Iterator<Item = &WorkflowId> {
        self.starved.iter()
    }

    /// Whether the jobs of a workflow wait for workers.
    pub(crate) fn workers_of(&self, id: &WorkflowId) -> WorkersOf {
        match self.queues.get(id).is_some_and(|queue| queue.terms.by_workers) {
            true if !self.offers.serves(id) => WorkersOf::None,
            true if self.offers.are_busy(id) => WorkersOf::Busy,
            _ => WorkersOf::Enough,
        }
    }
}
