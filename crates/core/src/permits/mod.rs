//! Permits: which queued slots may run now. A run needs a place in its workflow's concurrency, the permits of its pools,
//! and a place among all runs; it gets all of them or none.
//!
//! The scheduler says what becomes of slots ([`Permits::follow`]), on which terms a workflow runs ([`Permits::agree`]) and what
//! workers offer; [`Permits::grant`] says who goes. It knows nothing of triggers, definitions or the log.

mod offers;
mod pass;
mod pools;
mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Breach, Invariant, PoolId, Slot, SlotKey, SlotRef, SlotState, WorkflowId};

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

/// Whether a queued slot may go as far as all else is concerned.
pub(crate) type IsReady<'a> = &'a dyn Fn(&WorkflowId, &SlotKey) -> bool;

/// All permits: who has them, and who waits for them.
pub(crate) struct Permits {
    /// Runs of all workflows at a time.
    limit: u32,
    /// Live runs of all workflows.
    running: u32,
    queues: BTreeMap<WorkflowId, Queue>,
    pools: Pools,
    offers: Offers,
    /// Workflows whose queued slots only the limit on all runs holds back, longest first.
    starved: VecDeque<WorkflowId>,
    /// Workflows that may have a free place and a queued slot.
    woken: BTreeSet<WorkflowId>,
    /// When workflows at the front of their lines become starved there.
    patience: BTreeSet<(Timestamp, WorkflowId)>,
    breaches: Breaches,
}

/// Whether workers keep the jobs of a workflow waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkersOf {
    /// No worker serves the workflow.
    None,
    /// All that serve it are busy.
    Busy,
    /// One would do another of its jobs, or it needs no workers.
    Enough,
}

/// The permits of a run, given to a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) slot: SlotRef,
    /// The worker that is to do it, where workers run its jobs.
    pub(crate) taker: Option<Taker>,
}

impl Permits {
    /// Nothing queued, nothing running.
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
            breaches: Breaches::default(),
        }
    }

    /// Takes the terms on which a workflow runs from now on. Runs of a removed workflow go on, and hold what they hold.
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

    /// Follows what became of a slot. A queued slot that is not `in_line` keeps out of the way of others.
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

    /// Puts a queued slot where it belongs.
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

    /// Counts the run of a slot, or counts it no more.
    fn count(&mut self, id: &SlotRef, is_alive: bool) {
        let queue = self.queues.entry(id.workflow.clone()).or_default();
        let changed = if is_alive { queue.begin(&id.key) } else { queue.end(&id.key) };
        if changed {
            let running = if is_alive { self.running.checked_add(1) } else { self.running.checked_sub(1) };
            self.breaches.check_slot(running.is_some(), Invariant::RunsAreCounted, id);
            self.running = running.unwrap_or_default();
            self.pools.hold(&id.workflow, &queue.terms.pools, queue.active());
            self.woken.insert(id.workflow.clone());
        }
    }

    /// Has a workflow's queue served in the next pass.
    pub(crate) fn wake(&mut self, id: &WorkflowId) {
        self.woken.insert(id.clone());
    }

    /// Takes what a worker offers now for all that it offers.
    pub(crate) fn offered(&mut self, worker: Arc<str>, offer: Option<Offer>) {
        if let Some(id) = self.offers.forget(&worker) {
            self.breaches.report(Invariant::OffersAreListed, &id);
        }
        if let Some(offer) = offer {
            self.woken.extend(offer.workflows.iter().filter(|id| self.queues.contains_key(*id)).cloned());
            self.offers.note(worker, offer);
        }
    }

    /// Gives what is free to queued slots, of some workflows or of all. What is given counts as taken at once.
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
        Pass::new(self, now, only, is_ready).run()
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.pools.take_breach())
    }

    /// Whether a pass would find something to do, whatever the time is.
    pub(crate) fn is_due(&self) -> bool {
        !self.woken.is_empty() || (!self.starved.is_empty() && self.has_place())
    }

    /// When time alone will give a pass something to do.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.patience.first().map(|(at, _)| *at)
    }

    fn has_place(&self) -> bool {
        self.running < self.limit
    }

    /// Live runs of all workflows.
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    /// Runs of all workflows at a time.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The queue of a workflow, and its live runs.
    pub(crate) fn queue(&self, id: &WorkflowId) -> Option<&Queue> {
        self.queues.get(id)
    }

    /// The queues of all workflows.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&WorkflowId, &Queue)> {
        self.queues.iter()
    }

    /// All pools that definitions name, or whose permits are held.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (&PoolId, &Pool)> {
        self.pools.iter()
    }

    /// One pool.
    pub(crate) fn pool(&self, id: &PoolId) -> Option<&Pool> {
        self.pools.get(id)
    }

    /// The workflows that only the limit on all runs holds back, in the order in which they get their turns.
    pub(crate) fn starved(&self) -> impl Iterator<Item = &WorkflowId> {
        self.starved.iter()
    }

    /// Whether workers keep the jobs of a workflow waiting.
    pub(crate) fn workers_of(&self, id: &WorkflowId) -> WorkersOf {
        match self.queues.get(id).is_some_and(|queue| queue.terms.by_workers) {
            true if !self.offers.serves(id) => WorkersOf::None,
            true if self.offers.are_busy(id) => WorkersOf::Busy,
            _ => WorkersOf::Enough,
        }
    }
}
