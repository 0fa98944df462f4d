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
mod queue_id;
mod rates;
mod requests;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::workers::Label;
use kelos_model::{
    Breach, Hold, Invariant, PermitAnswer, PermitRefusal, PoolId, PoolUse, Slot, SlotRef, SlotState, WorkflowId,
};

pub(crate) use lots::{Lot, LotWait, Readiness};
use offers::Offers;
pub(crate) use offers::{Taker, WorkersOf};
use pass::Pass;
pub use pools::POOL_PATIENCE;
pub(crate) use pools::Pool;
use pools::Pools;
pub(crate) use queue::{LinePosition, Position, Queue, Terms};
pub(crate) use queue_id::QueueId;
use requests::Requests;
pub(crate) use requests::{Party, ReportAge, RequestId, WaitingRequest};

use crate::breaches::Breaches;
use crate::filter::WorkflowFilter;
use crate::rota::Rota;
use crate::workers::Offer;

/// The readiness of queued slots, as the scheduler judges it.
pub(crate) type IsReady<'a> = &'a dyn Readiness;

/// All permits, with the runs that hold them and the slots that wait for them.
pub(crate) struct Permits {
    /// The limit on the live runs of all workflows.
    limit: u32,
    /// The number of live runs of all workflows.
    running: u32,
    queues: BTreeMap<QueueId, Queue>,
    pools: Pools,
    offers: Offers,
    /// Workflows whose queued slots wait only for the limit on all runs, with the times of their next slots.
    starved: Rota<QueueId>,
    /// Workflows that may have a free permit and a queued slot.
    woken: BTreeSet<QueueId>,
    requests: Requests,
    /// Whether the definitions have changed on whose terms requests wait.
    are_doubted: bool,
    /// Whether a request came, or permits that were taken by one came back.
    is_stirred: bool,
    /// The moments at which those at the front of their pools' queues become starved.
    patience: BTreeSet<(Timestamp, Party)>,
    /// The moments at which slots wait for their batch no longer.
    lots: BTreeSet<(Timestamp, QueueId)>,
    /// The moment of the last pass.
    passed_at: Option<Timestamp>,
    breaches: Breaches,
}

/// The permits of a run, granted to a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) slot: SlotRef,
    /// The request of its live run that is granted; none if the slot is to be run.
    pub(crate) request: Option<GrantedRequest>,
    /// The worker that runs it, if workers run the jobs of its workflow.
    pub(crate) taker: Option<Taker>,
    /// When the buckets of the rates that it takes tokens of are full again.
    pub(crate) spent: Vec<(PoolId, Timestamp)>,
    /// The times of the slots that its run serves as well.
    pub(crate) others: Vec<Timestamp>,
}

/// A request of a live run, granted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GrantedRequest {
    pub(crate) number: u64,
    /// The permits that its run holds by it.
    pub(crate) held: BTreeMap<PoolId, u32>,
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
            starved: Rota::default(),
            woken: BTreeSet::new(),
            requests: Requests::default(),
            are_doubted: false,
            is_stirred: false,
            patience: BTreeSet::new(),
            lots: BTreeSet::new(),
            passed_at: None,
            breaches: Breaches::default(),
        }
    }

    /// Sets the terms on which a workflow runs. Runs of a removed workflow continue, and keep their permits.
    pub(crate) fn agree(&mut self, id: impl Into<QueueId>, terms: Terms) {
        let id = &id.into();
        let queue = self.queues.entry(id.clone()).or_default();
        if queue.terms == terms {
            return;
        }
        let before = std::mem::replace(&mut queue.terms, terms);
        let now = &queue.terms;
        // Sizes and rates may have changed on whose terms requests wait.
        self.are_doubted = true;
        if (&before.within, before.is_present) != (&now.within, now.is_present) {
            if before.is_present {
                self.pools.unnamed(id, &before.within);
            }
            if now.is_present {
                self.pools.named(&now.within);
            }
        }
        if (&before.pools, before.is_present) != (&now.pools, now.is_present) {
            let position = queue.in_line.take().map(|(position, _)| position);
            self.pools.stand(id, &before.pools, position.as_ref(), None);
            if let Some(until) = queue.patient_until.take() {
                self.patience.remove(&(until, Party::Workflow(id.clone())));
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
        self.follow_requests(id, before, after);
        let before = before.filter(|slot| slot.state == SlotState::Queued);
        if let Some(before) = before {
            self.withdraw(id, &Position::of(before, &id.key));
        }
        if in_line {
            self.enqueue(id, after);
        }
        self.count(id, after.run_alive);
    }

    /// Follows what the live run of a slot holds, and whether it may wait for more.
    fn follow_requests(&mut self, id: &SlotRef, before: Option<&Slot>, after: &Slot) {
        let before = before.map_or(&[][..], |slot| &slot.held);
        if *before != after.held[..] {
            let is_kept = |held: &Hold| after.held.iter().any(|other| other.request == held.request);
            for held in before.iter().filter(|held| !is_kept(held)) {
                self.hold_within(id, held, false);
            }
            for held in &after.held {
                self.hold_within(id, held, true);
            }
            self.is_stirred = true;
        }
        if !matches!(after.state, SlotState::Dispatched | SlotState::Running) && !self.requests.are_none() {
            self.requests_of(id).into_iter().for_each(|number| self.withdraw_request(id, number));
        }
        if !after.run_alive {
            self.requests.forget(id);
        }
    }

    /// Counts or discounts what a live run holds by a request.
    fn hold_within(&mut self, slot: &SlotRef, held: &Hold, is_held: bool) {
        let id = RequestId { slot: slot.clone(), number: held.request };
        for (pool, permits) in &held.permits {
            self.pools.hold_within(&id, pool, if is_held { *permits } else { 0 });
        }
        match is_held {
            true => self.requests.answer(id, PermitAnswer::Held),
            false => drop(self.requests.take(&id)),
        }
    }

    /// Hears a report on the requests of a live run.
    pub(crate) fn hear(&mut self, slot: &SlotRef, version: u64) -> ReportAge {
        self.requests.hear(slot, version)
    }

    /// The numbers of the requests of a live run that wait or were answered.
    pub(crate) fn requests_of(&self, slot: &SlotRef) -> Vec<u64> {
        self.requests.of(slot).collect()
    }

    /// Whether a request is known, and its answer; none if it waits.
    pub(crate) fn answer_to(&self, slot: &SlotRef, number: u64) -> Option<Option<&PermitAnswer>> {
        let id = RequestId { slot: slot.clone(), number };
        self.requests.has(&id).then(|| self.requests.answer_to(&id))
    }

    /// Has a request of a live run wait for its permits.
    ///
    /// # Errors
    /// If they can never be granted.
    pub(crate) fn ask(
        &mut self,
        id: RequestId,
        live: &Slot,
        permits: &BTreeMap<PoolId, u32>,
        now: Timestamp,
    ) -> Result<(), PermitRefusal> {
        let uses = self.wanted(&QueueId::of(&id.slot), permits);
        let uses = uses.inspect_err(|refusal| {
            self.requests.answer(id.clone(), PermitAnswer::Refused(refusal.clone()));
        })?;
        let waiting = WaitingRequest::new(&id, live, uses, now);
        self.pools.stand(&QueueId::of(&id.slot), &waiting.uses, None, Some(&waiting.position));
        self.pools.mark(&waiting.uses);
        self.requests.wait(id, waiting);
        self.is_stirred = true;
        Ok(())
    }

    /// The uses of pools that are asked for, on the terms of the definition.
    fn wanted(&self, id: &QueueId, permits: &BTreeMap<PoolId, u32>) -> Result<Vec<PoolUse>, PermitRefusal> {
        if permits.values().all(|permits| *permits == 0) {
            return Err(PermitRefusal::Nothing);
        }
        let terms = self.queues.get(id).map(|queue| &queue.terms).filter(|terms| terms.is_present);
        let wanted = |(pool, permits): (&PoolId, &u32)| {
            let named = terms.and_then(|terms| terms.within.iter().find(|one| one.pool == *pool));
            let one = named.ok_or_else(|| PermitRefusal::Undeclared { pool: pool.clone() })?;
            let one = PoolUse { permits: *permits, ..one.clone() };
            self.pools.refusal(&one).map_or(Ok(one), Err)
        };
        permits.iter().filter(|(_, permits)| **permits > 0).map(wanted).collect()
    }

    /// Forgets a request of a live run. If it waits, it leaves the lines.
    pub(crate) fn withdraw_request(&mut self, slot: &SlotRef, number: u64) {
        let id = RequestId { slot: slot.clone(), number };
        let Some(waiting) = self.requests.take(&id) else { return };
        self.pools.stand(&QueueId::of(slot), &waiting.uses, Some(&waiting.position), None);
        self.pools.mark(&waiting.uses);
        if let Some(until) = waiting.patient_until {
            self.patience.remove(&(until, Party::Request(id)));
        }
        self.is_stirred = true;
    }

    /// Takes the requests out of the lines that definitions have made impossible.
    pub(crate) fn take_refused(&mut self) -> Vec<(RequestId, PermitRefusal)> {
        if !std::mem::take(&mut self.are_doubted) {
            return Vec::new();
        }
        let refused = self.requests.all_waiting().filter_map(|(id, waiting)| {
            let permits = waiting.uses.iter().map(|one| (one.pool.clone(), one.permits)).collect();
            Some((id.clone(), self.wanted(&QueueId::of(&id.slot), &permits).err()?))
        });
        let refused: Vec<_> = refused.collect();
        for (id, refusal) in &refused {
            self.withdraw_request(&id.slot, id.number);
            self.requests.answer(id.clone(), PermitAnswer::Refused(refusal.clone()));
        }
        refused
    }

    /// The first waiting request of a live run.
    pub(crate) fn waiting_request(&self, slot: &SlotRef) -> Option<&WaitingRequest> {
        let id = |number| RequestId { slot: slot.clone(), number };
        self.requests.of(slot).find_map(|number| self.requests.waiting(&id(number)))
    }

    /// A waiting request.
    pub(crate) fn request(&self, id: &RequestId) -> Option<&WaitingRequest> {
        self.requests.waiting(id)
    }

    /// The uses of pools of a party in their lines.
    fn uses_of(&self, party: &Party) -> Option<&Vec<PoolUse>> {
        match party {
            Party::Workflow(id) => self.queues.get(id).map(|queue| &queue.terms.pools),
            Party::Request(id) => self.requests.waiting(id).map(|waiting| &waiting.uses),
        }
    }

    /// Puts a slot into its queue.
    pub(crate) fn enqueue(&mut self, id: &SlotRef, slot: &Slot) {
        let name = QueueId::of(id);
        let queue = self.queues.entry(name.clone()).or_default();
        queue.insert(Position::of(slot, &id.key), slot.since);
        self.starved.note_next(&name, queue.next_time());
        self.woken.insert(name);
    }

    /// Takes a slot out of its queue.
    pub(crate) fn withdraw(&mut self, id: &SlotRef, position: &Position) {
        let name = QueueId::of(id);
        let Some(queue) = self.queues.get_mut(&name) else { return };
        if queue.remove(position) {
            self.starved.note_next(&name, queue.next_time());
            self.woken.insert(name);
        }
    }

    /// Counts or discounts the run of a slot.
    fn count(&mut self, id: &SlotRef, is_alive: bool) {
        let name = QueueId::of(id);
        let queue = self.queues.entry(name.clone()).or_default();
        if !is_alive && queue.unfollow(&id.key) {
            self.woken.insert(name);
            return;
        }
        let changed = if is_alive { queue.begin(&id.key) } else { queue.end(&id.key) };
        if changed {
            let takes_no_place = match is_alive {
                true => queue.terms.by_scheduler || queue.carried_out.contains(&id.key),
                false => queue.carried_out.remove(&id.key),
            };
            let running = match (takes_no_place, is_alive) {
                (true, true) => {
                    queue.carried_out.insert(id.key.clone());
                    Some(self.running)
                }
                (true, false) => Some(self.running),
                (false, true) => self.running.checked_add(1),
                (false, false) => self.running.checked_sub(1),
            };
            self.breaches.check_slot(running.is_some(), Invariant::RunsAreCounted, id);
            self.running = running.unwrap_or_default();
            self.pools.hold(&name, &queue.terms.pools, queue.active());
            self.woken.insert(name);
        }
    }

    /// Notes that the scheduler carries out the live run of a slot by itself, so that it takes no place of the limit on all runs.
    pub(crate) fn carry_out(&mut self, id: &SlotRef) {
        self.queues.entry(QueueId::of(id)).or_default().carried_out.insert(id.key.clone());
    }

    /// Notes that the live run of another slot serves this one, so that it holds no permits.
    pub(crate) fn follow_along(&mut self, id: &SlotRef) {
        self.queues.entry(QueueId::of(id)).or_default().follow_along(&id.key);
    }

    /// Whether the live run of another slot serves this one.
    pub(crate) fn is_following(&self, id: &SlotRef) -> bool {
        // Steps are never put together.
        id.key.step().is_none() && self.queues.get(&QueueId::of(id)).is_some_and(|queue| queue.is_following(&id.key))
    }

    /// Has the queue of a workflow served in the next pass.
    pub(crate) fn wake(&mut self, id: impl Into<QueueId>) {
        self.woken.insert(id.into());
    }

    /// Replaces the offer of a worker.
    pub(crate) fn offered(&mut self, worker: Arc<str>, offer: Option<Offer>) {
        let (before, unlisted) = self.offers.forget(&worker);
        if let Some(id) = unlisted {
            self.breaches.report(Invariant::OffersAreListed, &id);
        }
        // Workflows that it no longer serves may have to leave the queues of pools.
        let concerned = before.iter().chain(&offer).flat_map(|offer| &offer.workflows);
        let woken: Vec<QueueId> = concerned.flat_map(|id| self.queues_of(id)).map(|(id, _)| id.clone()).collect();
        self.woken.extend(woken);
        if let Some(offer) = offer {
            self.offers.note(worker, offer);
        }
    }

    /// Grants free permits to queued slots, of some workflows or of all. Granted permits count as held at once.
    pub(crate) fn grant(&mut self, now: Timestamp, only: &WorkflowFilter, is_ready: IsReady<'_>) -> Vec<Grant> {
        self.is_stirred = false;
        while let Some((at, party)) = self.patience.first().cloned().filter(|(at, _)| *at <= now) {
            self.patience.remove(&(at, party.clone()));
            self.run_out_of_patience(&party);
        }
        self.end_waits_for_batches(now);
        // A clock that was put back would have buckets wait until it is where it was.
        let is_back = self.passed_at.replace(now).is_none_or(|before| now < before);
        self.pools.refill(now, is_back);
        Pass::new(self, now, only, is_ready).run()
    }

    fn run_out_of_patience(&mut self, party: &Party) {
        match party {
            Party::Workflow(id) => match self.queues.get_mut(id) {
                Some(queue) => {
                    queue.patient_until = None;
                    self.pools.mark(&queue.terms.pools);
                }
                None => self.breaches.report(Invariant::WaitersHaveQueues, &id.workflow),
            },
            Party::Request(id) => match self.requests.waiting_mut(id) {
                Some(waiting) => {
                    waiting.patient_until = None;
                    self.pools.mark(&waiting.uses);
                }
                None => self.breaches.report_slot(Invariant::WaitersHaveQueues, &id.slot),
            },
        }
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.pools.take_breach())
    }

    /// Whether a pass has something to do, at whatever moment.
    pub(crate) fn is_due(&self) -> bool {
        self.is_stirred || !self.woken.is_empty() || (!self.starved.is_empty() && self.has_place())
    }

    /// The next moment at which a pass has something to do by time alone.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        let patience = self.patience.first().map(|(at, _)| *at);
        let lots = self.lots.first().map(|(at, _)| *at);
        patience.into_iter().chain(lots).chain(self.pools.next_refill()).min()
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
    pub(crate) fn queue(&self, id: impl Into<QueueId>) -> Option<&Queue> {
        self.queues.get(&id.into())
    }

    /// The queues of all workflows.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (&QueueId, &Queue)> {
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
    pub(crate) fn starved(&self) -> impl Iterator<Item = &QueueId> {
        self.starved.iter()
    }

    /// The queues of a workflow, also those of the steps of a flow.
    fn queues_of(&self, id: &WorkflowId) -> impl Iterator<Item = (&QueueId, &Queue)> {
        self.queues.range(QueueId::from(id)..).take_while(move |(queue, _)| queue.workflow == *id)
    }

    /// The workers for a slot, and the labels that it needs.
    pub(crate) fn workers_of(&self, slot: &SlotRef) -> (WorkersOf, BTreeSet<Label>) {
        match self.queues.get(&QueueId::of(slot)).filter(|queue| queue.terms.by_workers) {
            Some(Queue { terms: Terms { runs_on, .. }, .. }) => {
                (self.offers.standing(&slot.workflow, runs_on), runs_on.clone())
            }
            None => (WorkersOf::Enough, BTreeSet::new()),
        }
    }
}
