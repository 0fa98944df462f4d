//! One pass over all queues: each slot that can run is granted everything that its run needs.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{Invariant, PermitAnswer, PoolUse, SlotKey, SlotRef};

use super::pools::POOL_PATIENCE;
use super::queue::LinePosition;
use super::queue::{Position, Queue};
use super::queue_id::QueueId;
use super::sweep::{Eligibility, Sweep};
use super::{Grant, GrantedRequest, IsReady, Lot, LotWait, Party, Permits, RequestId, Terms, WaitingRequest};
use crate::filter::{WorkflowFilter, allows, take_allowed};

pub(super) struct Pass<'a> {
    permits: &'a mut Permits,
    now: Timestamp,
    only: &'a WorkflowFilter,
    is_ready: IsReady<'a>,
    grants: Vec<Grant>,
    /// The workflows with slots that wait for their batch.
    waits: RefCell<Vec<(QueueId, LotWait)>>,
}

/// The first slot of a workflow that waits for workers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    turn: (Reverse<i32>, Timestamp, SlotKey),
    id: QueueId,
    position: Position,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        permits: &'a mut Permits,
        now: Timestamp,
        only: &'a WorkflowFilter,
        is_ready: IsReady<'a>,
    ) -> Self {
        Pass { permits, now, only, is_ready, grants: Vec::new(), waits: RefCell::default() }
    }

    /// Grants free permits, first to the workflows that the limit on all runs held back, in turn, and then to those
    /// that something woke.
    pub(super) fn run(mut self) -> Vec<Grant> {
        let woken = take_allowed(&mut self.permits.woken, self.only, |id| &id.workflow);
        for id in &woken {
            if self.line_up(id) {
                self.mark_pools_of(id);
            }
        }
        // A workflow whose run just ended comes after those that have been waiting for the permit.
        self.serve_starved();
        for id in &woken {
            self.serve_queue(id);
        }
        self.serve_workers(&woken);
        self.serve_lines();
        self.await_tokens_of_named();
        let waits = self.waits.take();
        self.permits.wait_for_batches(waits);
        self.grants
    }

    /// Grants free permits of the limit on all runs to the workflows that it held back, in turn. Who is served and wants another permit
    /// comes after those that still wait.
    fn serve_starved(&mut self) {
        while self.permits.has_place() {
            let only = self.only;
            let Some(id) = self.permits.starved.take_next(|id| allows(only, &id.workflow)) else { break };
            self.permits.starved.charge(1);
            let Some(queue) = self.permits.queues.get(&id) else {
                self.no_queue(&id);
                continue;
            };
            match (queue.terms.pools.is_empty(), queue.terms.by_workers) {
                (false, _) => self.take_turn(&id),
                (true, true) => self.serve_workers(&BTreeSet::from([id])),
                (true, false) => self.serve_queue(&id),
            }
        }
    }

    /// Grants what the concurrency of a workflow without pools allows.
    fn serve_queue(&mut self, id: &QueueId) {
        let plain = |queue: &&Queue| queue.terms.pools.is_empty() && !queue.terms.by_workers;
        // A woken workflow may have no queue yet.
        let Some(queue) = self.permits.queues.get(id).filter(plain) else { return };
        let free = match queue.terms.by_scheduler {
            true => u32::MAX,
            false => self.permits.limit.saturating_sub(self.permits.running),
        };
        // One more than there is room for shows whether the limit on all runs holds anything back.
        let most = self.places(id, queue).min(free.saturating_add(1)) as usize;
        let going: Vec<Position> = self.going(id, queue).take(most).cloned().collect();
        let is_starved = going.len() > free as usize;
        for position in going.into_iter().take(free as usize) {
            self.give(id, &position);
        }
        if is_starved {
            self.starve(id);
        }
    }

    /// Assigns jobs to the workers that offer to run them: by priority across workflows, then in the order in which
    /// they were queued.
    fn serve_workers(&mut self, woken: &BTreeSet<QueueId>) {
        // They are in no queue of a pool, so anything that woke others may be what they wait for.
        let named = self.named().filter(|(_, job)| allows(self.only, &job.workflow));
        for job in named.map(|(_, job)| job.clone()).collect::<Vec<SlotRef>>() {
            if let Some(position) = self.position_of_named(&job) {
                let id = QueueId::of(&job);
                self.give(&id, &position);
                self.line_up(&id);
                self.mark_pools_of(&id);
            }
        }
        let mut heads: BTreeSet<Head> = woken.iter().filter_map(|id| self.head(id)).collect();
        while let Some(Head { position, id, .. }) = heads.pop_first() {
            // If its worker took another job, it is not the limit that holds it back.
            if self.head(&id).is_none() {
                continue;
            }
            if !self.permits.has_place() {
                self.starve(&id);
                continue;
            }
            self.give(&id, &position);
            heads.extend(self.head(&id).filter(|next| next.position != position));
        }
    }

    /// The jobs that workers with the labels which they need ask for by name, with their queues.
    fn named(&self) -> impl Iterator<Item = (&Queue, &SlotRef)> {
        self.permits.offers.named().filter_map(|(job, labels)| {
            let queue = self.permits.queues.get(&QueueId::of(job))?;
            queue.terms.runs_on.is_subset(labels).then_some((queue, job))
        })
    }

    /// The first job of a workflow without pools, if a worker would run it.
    fn head(&self, id: &QueueId) -> Option<Head> {
        let queue =
            self.permits.queues.get(id).filter(|queue| queue.terms.pools.is_empty() && queue.terms.by_workers)?;
        let position = self.next(id, queue)?.clone();
        Some(Head { turn: queue.turn(&position), id: id.clone(), position })
    }

    /// The position of a job that a worker asks for by name, if it is queued and its workflow and pools have room for
    /// it. It overtakes the queues of pools.
    fn position_of_named(&self, job: &SlotRef) -> Option<Position> {
        let queue = self.permits.queues.get(&QueueId::of(job))?;
        let is_free = queue.terms.by_workers && queue.is_open() && queue.places() > 0;
        if !is_free || !self.permits.has_place() || !self.permits.pools.have_room(&queue.terms.pools, self.now) {
            return None;
        }
        self.going(&QueueId::of(job), queue).find(|position| position.key == job.key).cloned()
    }

    /// Has the pools note when there are tokens for the jobs that workers ask for by name. These jobs may be in no queue, so that no
    /// sweep does.
    fn await_tokens_of_named(&mut self) {
        let mut awaited = Vec::new();
        for (queue, job) in self.named() {
            if !queue.is_open() || queue.places() == 0 || !queue.has(&job.key) {
                continue;
            }
            awaited.extend(queue.terms.pools.iter().cloned());
        }
        for one in &awaited {
            self.permits.pools.await_tokens_beside(one, self.now);
        }
    }

    /// Sweeps the changed queues of pools until no slot can start any more. A start can leave a slot short in more
    /// pools than before, which releases the permits reserved for it, even for slots ahead of it.
    fn serve_lines(&mut self) {
        let mut put_off = BTreeSet::new();
        loop {
            let changed = self.permits.pools.take_changed(self.now);
            if changed.is_empty() {
                break;
            }
            let mut sweep = Sweep::of(&mut self.permits.pools, changed, self.now);
            while let Some(position) = sweep.next(&self.permits.pools) {
                if allows(self.only, &position.queue.workflow) {
                    self.serve(&position, &mut sweep, true);
                } else {
                    put_off.insert(position.party());
                }
            }
        }
        // They wait for a pass that includes them, and until then don't hold up others.
        for party in &put_off {
            self.mark_pools_of_party(party);
        }
    }

    /// Serves a workflow with pools whose turn it is, if the slots ahead of it leave it enough permits.
    fn take_turn(&mut self, id: &QueueId) {
        let Some(queue) = self.permits.queues.get(id) else { return self.no_queue(id) };
        let uses = queue.terms.pools.clone();
        let pools = uses.iter().map(|one| one.pool.clone()).collect();
        let mut sweep = Sweep::of(&mut self.permits.pools, pools, self.now);
        while let Some(position) = sweep.next(&self.permits.pools) {
            if allows(self.only, &position.queue.workflow) {
                self.serve(&position, &mut sweep, position.queue == *id);
            }
            let own = self.permits.queues.get(id).and_then(|queue| queue.in_line.as_ref());
            if own.is_none_or(|(own, _)| *own <= position) {
                break;
            }
        }
        // It may have reserved permits that it could not use.
        self.permits.pools.mark(&uses);
    }

    /// Serves a workflow in the queues of its pools: it starts a slot, reserves permits, or lets others pass.
    fn serve(&mut self, position: &LinePosition, sweep: &mut Sweep, may_start: bool) {
        let party = position.party();
        let Some(uses) = self.permits.uses_of(&party).cloned() else { return self.no_queue(&position.queue) };
        if !self.permits.pools.are_large_enough(&uses) {
            return;
        }
        match sweep.standing(&uses, &mut self.permits.pools, self.now) {
            Eligibility::Fits => {
                sweep.keep(&uses, true);
                match party {
                    Party::Workflow(id) if may_start => self.start_or_starve(&id),
                    Party::Request(id) if may_start => self.give_to_run(&id),
                    _ => {}
                }
            }
            Eligibility::Short { pools, of_tokens } => self.wait_in_line(position, &uses, (pools, of_tokens), sweep),
        }
    }

    fn wait_in_line(&mut self, position: &LinePosition, uses: &[PoolUse], lack: (usize, bool), sweep: &mut Sweep) {
        let (short, of_tokens) = lack;
        let patient_until = self.patient_until(position, uses);
        if patient_until.is_some_and(|until| until <= self.now) {
            return sweep.keep(uses, of_tokens);
        }
        if let Some(until) = patient_until {
            // Permits that it reserves from then on may leave others short in more pools, so that they let others pass.
            self.set_patience(&position.party(), Some(until));
        }
        // Permits reserved in one pool would be idle as long as the other pools have too few.
        if short == 1 {
            sweep.keep_short(uses);
        }
    }

    fn start_or_starve(&mut self, id: &QueueId) {
        let next = self.permits.queues.get(id).and_then(|queue| self.next(id, queue)).cloned();
        // None of its slots may run now.
        let Some(next) = next else { return };
        if !self.permits.has_place() {
            return self.starve(id);
        }
        self.give(id, &next);
        self.line_up(id);
        self.mark_pools_of(id);
    }

    /// The moment at which a workflow that is first in all its queues becomes starved. From then on all permits that it
    /// needs are reserved, so that slots that wait for a single pool can't overtake it forever.
    fn patient_until(&self, position: &LinePosition, uses: &[PoolUse]) -> Option<Timestamp> {
        let since = match position.party() {
            Party::Workflow(id) => self.permits.queues.get(&id)?.in_line.as_ref()?.1,
            Party::Request(id) => self.permits.requests.waiting(&id)?.since,
        };
        let is_first = uses.iter().all(|one| self.is_first(position, one));
        is_first.then(|| since.checked_add(POOL_PATIENCE).ok()).flatten()
    }

    fn is_first(&self, position: &LinePosition, one: &PoolUse) -> bool {
        let pools = &self.permits.pools;
        let could_ever_go = |other: &&LinePosition| {
            self.permits.uses_of(&other.party()).is_some_and(|uses| pools.are_large_enough(uses))
        };
        pools.get(&one.pool).and_then(|pool| pool.line().iter().find(could_ever_go)) == Some(position)
    }

    /// Moves a workflow to the position of its first slot in the queues of its pools. Returns whether the position, or
    /// the moment since which it waits, has changed.
    fn line_up(&mut self, id: &QueueId) -> bool {
        // A woken workflow may have no queue yet.
        let Some(queue) = self.permits.queues.get(id).filter(|queue| !queue.terms.pools.is_empty()) else {
            return false;
        };
        let next = self.next(id, queue).cloned();
        let Some(queue) = self.permits.queues.get_mut(id) else { return false };
        let since = next.as_ref().and_then(|next| queue.since(next));
        let now = next.zip(since).map(|(next, since)| (next.in_line(id), since));
        if now == queue.in_line {
            return false;
        }
        let before = std::mem::replace(&mut queue.in_line, now);
        let position = |one: &Option<(LinePosition, Timestamp)>| one.as_ref().map(|(position, _)| position.clone());
        let (before, now) = (position(&before), position(&queue.in_line));
        self.permits.pools.stand(id, &queue.terms.pools, before.as_ref(), now.as_ref());
        self.set_patience(&Party::Workflow(id.clone()), None);
        true
    }

    fn set_patience(&mut self, party: &Party, until: Option<Timestamp>) {
        let known = match party {
            Party::Workflow(id) => self.permits.queues.get_mut(id).map(|queue| &mut queue.patient_until),
            Party::Request(id) => self.permits.requests.waiting_mut(id).map(|waiting| &mut waiting.patient_until),
        };
        let Some(known) = known else { return };
        if let Some(before) = std::mem::replace(known, until) {
            self.permits.patience.remove(&(before, party.clone()));
        }
        self.permits.patience.extend(until.map(|until| (until, party.clone())));
    }

    /// Has the lines swept in which a party stands.
    fn mark_pools_of_party(&mut self, party: &Party) {
        let uses = self.permits.uses_of(party).cloned().unwrap_or_default();
        self.permits.pools.mark(&uses);
    }

    /// Grants a live run the permits that it asks for.
    fn give_to_run(&mut self, id: &RequestId) {
        let Some(waiting) = self.permits.requests.take(id) else { return self.no_queue(&QueueId::of(&id.slot)) };
        let WaitingRequest { uses, position, patient_until, .. } = waiting;
        if let Some(until) = patient_until {
            self.permits.patience.remove(&(until, Party::Request(id.clone())));
        }
        let pools = &mut self.permits.pools;
        pools.stand(&QueueId::of(&id.slot), &uses, Some(&position), None);
        let (spent, held) = (pools.spend(&uses, self.now), pools.holdable(&uses));
        held.iter().for_each(|(pool, permits)| pools.hold_within(id, pool, *permits));
        pools.mark(&uses);
        let answer = if held.is_empty() { PermitAnswer::Spent } else { PermitAnswer::Held };
        self.permits.requests.answer(id.clone(), answer);
        let request = Some(GrantedRequest { number: id.number, held });
        self.grants.push(Grant { slot: id.slot.clone(), request, taker: None, spent, others: Vec::new() });
    }

    /// Has the queues of a workflow's pools swept.
    fn mark_pools_of(&mut self, id: &QueueId) {
        match self.permits.queues.get(id) {
            Some(queue) => self.permits.pools.mark(&queue.terms.pools),
            None => self.no_queue(id),
        }
    }

    fn starve(&mut self, id: &QueueId) {
        let Some(queue) = self.permits.queues.get(id) else { return self.no_queue(id) };
        self.permits.starved.add(id, queue.next_time());
    }

    /// Reports a waiting workflow without a queue.
    fn no_queue(&mut self, id: &QueueId) {
        self.permits.breaches.report(Invariant::WaitersHaveQueues, &id.workflow);
    }

    /// Grants a slot its permits, and assigns it to a worker if workers run the jobs of its workflow.
    fn give(&mut self, id: &QueueId, position: &Position) {
        let slot = id.slot(&position.key);
        let lot = self.permits.queues.get(id).map(|queue| self.lot(id, queue, position));
        let Some(Lot::Goes(others)) = lot else { return self.no_queue(id) };
        let Some(queue) = self.permits.queues.get_mut(id) else { return self.no_queue(id) };
        let mut taker = None;
        if queue.terms.by_workers {
            taker = self.permits.offers.take(&slot, &queue.terms.runs_on);
            if taker.is_none() {
                return;
            }
        }
        let (was_queued, is_first_run) = (queue.remove(position), queue.begin(&slot.key));
        let were_queued = others.iter().all(|time| queue.remove(&position.beside(*time)));
        others.iter().for_each(|time| queue.follow_along(&SlotKey::Time(*time)));
        self.permits.starved.note_next(id, queue.next_time());
        let was_queued = was_queued && were_queued;
        self.permits.breaches.check_slot(was_queued && is_first_run, Invariant::PermitsGoToQueued, &slot);
        let mut spent = Vec::new();
        if is_first_run {
            if queue.terms.by_scheduler {
                queue.carried_out.insert(slot.key.clone());
            } else {
                self.permits.running += 1;
            }
            spent = self.permits.pools.spend(&queue.terms.pools, self.now);
            self.permits.pools.hold(id, &queue.terms.pools, queue.active());
        }
        let unserved = taker.as_ref().map(|taker| self.in_line_for(&taker.worker)).unwrap_or_default();
        self.grants.push(Grant { slot, request: None, taker, spent, others });
        // Workflows that it no longer serves leave the queues of pools, and the permits reserved for them are free for
        // those behind.
        for id in unserved {
            if self.line_up(&id) {
                self.mark_pools_of(&id);
            }
        }
    }

    /// The workflows in queues of pools that a worker serves, once it is busy.
    fn in_line_for(&self, worker: &Arc<str>) -> Vec<QueueId> {
        let served = self.permits.offers.of_busy(worker).flat_map(|id| self.permits.queues_of(id));
        served.filter(|(_, queue)| queue.in_line.is_some()).map(|(id, _)| id.clone()).collect()
    }

    /// The queued slots of a workflow that may run, in order. Of a batch it is the first.
    fn going<'q>(&'q self, id: &'q QueueId, queue: &'q Queue) -> impl Iterator<Item = &'q Position> {
        let ready = queue.waiting().map(|(position, _)| position);
        let ready = ready.filter(|position| self.is_ready.is_ready(&id.workflow, &position.key));
        let mut taken: BTreeSet<Position> = BTreeSet::new();
        ready.filter(move |position| {
            if taken.remove(*position) {
                return false;
            }
            let lot = self.lot(id, queue, position);
            taken.extend(lot.others().iter().map(|time| position.beside(*time)));
            if let Lot::Waits { wait, .. } = lot {
                self.waits.borrow_mut().push((id.clone(), wait));
                return false;
            }
            true
        })
    }

    /// The slots that would run together with one that is ready.
    fn lot(&self, id: &QueueId, queue: &Queue, first: &Position) -> Lot {
        match queue.batching() {
            Some(_) => self.is_ready.lot(&id.workflow, queue, first),
            None => Lot::alone(),
        }
    }

    /// The first slot of a workflow that may run, as long as there is a permit for it.
    fn next<'q>(&'q self, id: &'q QueueId, queue: &'q Queue) -> Option<&'q Position> {
        self.going(id, queue).next().filter(|_| self.places(id, queue) > 0)
    }

    /// The number of further runs that the concurrency of a workflow allows and its workers offer.
    fn places(&self, id: &QueueId, queue: &Queue) -> u32 {
        if !queue.is_open() {
            return 0;
        }
        let allowed = queue.places();
        let Terms { by_workers, runs_on, .. } = &queue.terms;
        if *by_workers { allowed.min(self.permits.offers.free_for(&id.workflow, runs_on)) } else { allowed }
    }
}
