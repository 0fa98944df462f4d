//! Dispatch: a scan over everything that is queued, with the limits on the runs of a workflow and on all runs, pools, and the
//! offers of workers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Offer, POOL_PATIENCE};
use kelos_model::{PermitAnswer, PoolId, PoolUse, RunId, SlotKey, SlotRef, SlotState, TokenRate, Workflow, WorkflowId};

use super::{Spec, schedules};

/// A place in the queue of a workflow: by priority, then the oldest slot by time, or the job that is queued longest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InQueue {
    pub(super) priority: Reverse<i32>,
    pub(super) at: Timestamp,
    pub(super) key: SlotKey,
}

/// A place in the queues of pools, and among jobs that wait for workers: jobs have no age there, and come last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct InLine {
    priority: Reverse<i32>,
    at: Timestamp,
    key: SlotKey,
    workflow: WorkflowId,
    /// The number of a request of the slot's live run; none if the slot itself is there.
    request: Option<u64>,
}

impl InLine {
    fn slot(&self) -> SlotRef {
        SlotRef::new(self.workflow.clone(), self.key.clone())
    }
}

/// The rest of a pool.
#[derive(Debug, Clone, Copy)]
struct Remainder {
    permits: u32,
    /// Its tokens, if it has a rate.
    tokens: Option<u32>,
}

impl Remainder {
    fn has_permits(self, one: &PoolUse) -> bool {
        self.permits >= one.permits
    }

    fn has_tokens(self, one: &PoolUse) -> bool {
        self.tokens.is_none_or(|tokens| tokens >= one.permits)
    }

    fn has(self, one: &PoolUse) -> bool {
        self.has_permits(one) && self.has_tokens(one)
    }
}

/// The queued slots that may start and the capacity in use, for one step.
pub(super) struct Dispatch<'a> {
    spec: &'a mut Spec,
    queues: BTreeMap<WorkflowId, BTreeSet<InQueue>>,
    /// The number of live runs of each workflow.
    active: BTreeMap<WorkflowId, usize>,
    started: Vec<RunId>,
}

impl Spec {
    /// Starts all slots that may: first those that the limit on all runs held back, in order, then by limits, workers and pools.
    pub(super) fn dispatch(&mut self) -> Vec<RunId> {
        self.forgive_rates();
        self.refuse_requests();
        let mut dispatch = Dispatch { queues: self.queues(), active: self.active(), spec: self, started: Vec::new() };
        dispatch.serve_held_back();
        let ids: Vec<WorkflowId> = dispatch.spec.workflows.keys().cloned().collect();
        ids.iter().for_each(|id| dispatch.serve_queue(id));
        dispatch.serve_workers(&ids);
        dispatch.serve_lines();
        dispatch.started
    }

    /// Replaces the offer of a worker.
    pub fn offered(&mut self, worker: &Arc<str>, offer: Option<Offer>) {
        self.offers.remove(worker);
        self.offers.extend(offer.map(|offer| (worker.clone(), offer)));
    }

    /// The worker of the latest run of a job.
    #[must_use]
    pub fn worker_of(&self, slot: &SlotRef) -> Option<&Arc<str>> {
        self.taken.get(slot).map(|(worker, _)| worker)
    }

    /// Handles a change of the leader: workflows that the limit on all runs held back queue anew, and the number of attempts of workers
    /// is no longer known.
    pub fn led_by_another(&mut self) {
        self.held_back.clear();
        self.is_latest_next = false;
        self.forget_requests();
        self.taken.values_mut().for_each(|(_, attempts)| *attempts = None);
    }

    /// The queued slots of each workflow that may start, in their order.
    #[must_use]
    pub fn queued(&self) -> Vec<Vec<SlotRef>> {
        let queues = self.queues().into_iter();
        let slots = |id: WorkflowId, queue: BTreeSet<InQueue>| {
            queue.into_iter().map(|place| SlotRef::new(id.clone(), place.key)).collect()
        };
        queues.map(|(id, queue)| slots(id, queue)).collect()
    }

    fn queues(&self) -> BTreeMap<WorkflowId, BTreeSet<InQueue>> {
        let schedules = schedules(&self.workflows.values().cloned().collect::<Vec<_>>());
        let may_go = self.slots.iter().filter(|(slot, state)| {
            let waits = state.state == SlotState::Queued && !state.alive && !self.is_left_alone(state);
            waits && self.has_come(slot, state) && !self.is_off(&slot.workflow) && self.is_here(slot, &schedules)
        });
        let mut queues: BTreeMap<WorkflowId, BTreeSet<InQueue>> = BTreeMap::new();
        for (slot, state) in may_go {
            let at = slot.key.time().unwrap_or(state.since);
            let place = InQueue { priority: Reverse(state.priority), at, key: slot.key.clone() };
            queues.entry(slot.workflow.clone()).or_default().insert(place);
        }
        queues
    }

    /// The time of the next queued slot of a workflow, whether or not it may start; none if none is queued.
    fn time_of_next(&self, id: &WorkflowId) -> Option<Timestamp> {
        let queued = self.slots.iter().filter(|(slot, state)| {
            slot.workflow == *id && state.state == SlotState::Queued && !self.is_left_alone(state)
        });
        let places = queued.map(|(slot, state)| InQueue {
            priority: Reverse(state.priority),
            at: slot.key.time().unwrap_or(state.since),
            key: slot.key.clone(),
        });
        places.min().map(|first| first.at)
    }

    /// The rate of each pool: the slowest of all definitions.
    pub(super) fn rates(&self) -> BTreeMap<PoolId, TokenRate> {
        let mut rates: BTreeMap<PoolId, TokenRate> = BTreeMap::new();
        for one in self.named() {
            let Some(rate) = one.rate else { continue };
            rates.entry(one.pool.clone()).and_modify(|slowest| *slowest = rate.min(*slowest)).or_insert(rate);
        }
        rates
    }

    /// The size of each pool: the smallest of all definitions.
    pub(super) fn sizes(&self) -> BTreeMap<PoolId, u32> {
        let mut sizes: BTreeMap<PoolId, u32> = BTreeMap::new();
        for one in self.named() {
            sizes.entry(one.pool.clone()).and_modify(|size| *size = one.size.min(*size)).or_insert(one.size);
        }
        sizes
    }

    /// All pools that definitions name, for the starts of runs and within them.
    fn named(&self) -> impl Iterator<Item = &PoolUse> {
        self.workflows.values().flat_map(|workflow| workflow.pools.iter().chain(&workflow.within))
    }

    /// Has no rate owe more tokens than add up.
    fn forgive_rates(&mut self) {
        let now = self.now.as_millisecond();
        for (pool, rate) in self.rates() {
            let most = now + i64::from(rate.burst) * pace(&rate);
            self.full_at.entry(pool).and_modify(|at| *at = most.min(*at));
        }
    }

    /// The tokens of a pool with a rate, counted one by one.
    fn tokens(&self, pool: &PoolId, rate: &TokenRate) -> u32 {
        let now = self.now.as_millisecond();
        let mut full_at = self.full_at.get(pool).copied().unwrap_or(now);
        let mut tokens = rate.burst;
        while full_at > now && tokens > 0 {
            full_at -= pace(rate);
            tokens -= 1;
        }
        if full_at > now { 0 } else { tokens }
    }

    fn active(&self) -> BTreeMap<WorkflowId, usize> {
        let mut active = BTreeMap::new();
        for (slot, _) in self.slots.iter().filter(|(_, state)| state.alive && state.leader.is_none()) {
            *active.entry(slot.workflow.clone()).or_default() += 1;
        }
        active
    }
}

/// The milliseconds from one token to the next.
fn pace(rate: &TokenRate) -> i64 {
    i64::try_from(rate.millis / u64::from(rate.tokens)).unwrap_or(i64::MAX)
}

impl Dispatch<'_> {
    /// Dispatches workflows that the limit on all runs held back: they keep their place, and are dispatched as soon as there is room.
    fn serve_held_back(&mut self) {
        let mut waiting = std::mem::take(&mut self.spec.held_back);
        while self.free() > 0 && !waiting.is_empty() {
            let id = waiting.remove(self.next_held_back(&waiting));
            self.spec.is_latest_next = !self.spec.is_latest_next;
            match self.spec.workflows.get(&id).cloned() {
                Some(workflow) if !workflow.pools.is_empty() => self.sweep(Some(&id)),
                Some(workflow) if self.is_for_workers(&workflow) => self.serve_workers(&[id]),
                _ => self.serve_queue(&id),
            }
        }
        waiting.append(&mut self.spec.held_back);
        self.spec.held_back = waiting;
    }

    /// The one that is served next: in turn the one that has waited longest, and the first of those whose next slot has the latest time.
    fn next_held_back(&self, waiting: &[WorkflowId]) -> usize {
        let times =
            waiting.iter().enumerate().filter_map(|(place, id)| Some((self.spec.time_of_next(id)?, Reverse(place))));
        match times.max().filter(|_| self.spec.is_latest_next) {
            Some((_, Reverse(place))) => place,
            None => 0,
        }
    }

    fn hold_back(&mut self, id: &WorkflowId) {
        if !self.spec.held_back.contains(id) {
            self.spec.held_back.push(id.clone());
        }
    }

    /// Dispatches as many slots as the concurrency of a workflow allows, if they need nothing else.
    fn serve_queue(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.spec.workflows.get(id) else { return };
        if !workflow.pools.is_empty() || self.is_for_workers(workflow) {
            return;
        }
        while let Some(place) = self.next(id) {
            if self.free() == 0 {
                return self.hold_back(id);
            }
            self.start(id, &place);
        }
    }

    /// Dispatches jobs to workers: first those that only one worker requests, then in the order of all workflows.
    fn serve_workers(&mut self, ids: &[WorkflowId]) {
        let has_labels = |offer: &&Offer| {
            let workflow = offer.job.as_ref().and_then(|job| self.spec.workflows.get(&job.workflow));
            workflow.is_some_and(|workflow| workflow.job.runs_on.is_subset(&offer.labels))
        };
        let named = self.spec.offers.values().filter(|offer| offer.free > 0).filter(has_labels);
        for job in named.filter_map(|offer| offer.job.clone()).collect::<Vec<SlotRef>>() {
            let mut queue = self.queues.get(&job.workflow).into_iter().flatten();
            let place = queue.find(|place| place.key == job.key).cloned();
            if let Some(place) = place.filter(|_| self.has_room_beside_lines(&job.workflow)) {
                self.start(&job.workflow, &place);
            }
        }
        let mut ids: BTreeSet<&WorkflowId> = ids.iter().collect();
        while let Some((place, id)) = ids.iter().filter_map(|id| Some((self.head(id)?, *id))).min() {
            if self.free() == 0 {
                self.hold_back(id);
                ids.remove(id);
                continue;
            }
            self.start(id, &place);
        }
    }

    fn is_for_workers(&self, workflow: &Workflow) -> bool {
        self.spec.by_workers.contains(&workflow.job.executor)
    }

    /// The next job for a worker, of a workflow without pools.
    fn head(&self, id: &WorkflowId) -> Option<InQueue> {
        let workflow = self.spec.workflows.get(id)?;
        let waits = workflow.pools.is_empty() && self.is_for_workers(workflow);
        waits.then(|| self.next(id)).flatten()
    }

    /// Whether a job that a worker requests by its id may start: it overtakes the queues of pools.
    fn has_room_beside_lines(&self, id: &WorkflowId) -> bool {
        let Some(workflow) = self.spec.workflows.get(id).filter(|workflow| self.is_for_workers(workflow)) else {
            return false;
        };
        let left = self.left();
        let fits = workflow.pools.iter().all(|one| left[&one.pool].has(one));
        fits && self.free() > 0 && workflow.concurrency.is_none_or(|limit| self.active_of(id) < limit as usize)
    }

    /// Sweeps through the queues until no slot starts any more: each start changes how much is reserved for others.
    fn serve_lines(&mut self) {
        loop {
            let before = (self.started.len(), self.spec.answers.len());
            self.sweep(None);
            if (self.started.len(), self.spec.answers.len()) == before {
                return;
            }
        }
    }

    /// Gives each slot in the queues a turn, in order: one that gets all permits starts, one that lacks those of one pool
    /// reserves the rest of it, and one that is first everywhere and has waited long reserves all that it needs. Or only one workflow may
    /// start, and those before it keep their reservations.
    fn sweep(&mut self, only: Option<&WorkflowId>) {
        let mut left = self.left();
        let mut last: Option<InLine> = None;
        loop {
            let line = self.line();
            let is_over = |id: &WorkflowId| {
                line.iter()
                    .all(|place| place.workflow != *id || place.request.is_some() || Some(place) <= last.as_ref())
            };
            if only.is_some_and(is_over) {
                return;
            }
            let next = line.iter().find(|place| last.as_ref().is_none_or(|last| *place > last)).cloned();
            let Some(place) = next else { return };
            let uses = self.uses_of(&place).to_vec();
            let short: Vec<&PoolUse> = uses.iter().filter(|one| !left[&one.pool].has(one)).collect();
            // Tokens come by themselves, and are not reserved for a slot that also waits for permits.
            let waits_for_tokens = uses.iter().all(|one| left[&one.pool].has_permits(one));
            let fits = short.is_empty();
            let keeps_all = fits || self.is_patient(&place, &line);
            for one in &uses {
                let rest = left[&one.pool];
                let alone = !keeps_all && short.len() == 1 && !rest.has(one);
                let (permits, tokens) = match (keeps_all, alone) {
                    (true, _) => (one.permits, if waits_for_tokens { one.permits } else { 0 }),
                    (_, true) if !rest.has_permits(one) => (u32::MAX, 0),
                    (_, true) => (0, u32::MAX),
                    _ => (0, 0),
                };
                let rest = left.get_mut(&one.pool).expect("a pool that is named");
                rest.permits = rest.permits.saturating_sub(permits);
                rest.tokens = rest.tokens.map(|left| left.saturating_sub(tokens));
            }
            let may_go = fits && only.is_none_or(|id| *id == place.workflow);
            match place.request {
                Some(number) if may_go => self.grant(&place.slot(), number),
                None if may_go => self.start_or_hold_back(&place.workflow),
                _ => {}
            }
            last = Some(place);
        }
    }

    /// Grants the permits that a live run asks for. It holds those of pools that are limited in number.
    fn grant(&mut self, slot: &SlotRef, number: u64) {
        let uses = self.spec.slots[slot].requests[&number].uses.clone();
        self.take_tokens(&uses);
        let sizes = self.spec.sizes();
        let holds = uses.iter().filter(|one| sizes[&one.pool] != PoolUse::BOUNDLESS);
        let held: BTreeMap<PoolId, u32> = holds.map(|one| (one.pool.clone(), one.permits)).collect();
        let answer = if held.is_empty() { PermitAnswer::Spent } else { PermitAnswer::Held };
        self.spec.answer(slot, number, answer, held);
    }

    /// The permits that one in the line needs.
    fn uses_of(&self, place: &InLine) -> &[PoolUse] {
        match place.request {
            Some(number) => &self.spec.slots[&place.slot()].requests[&number].uses,
            None => &self.spec.workflows[&place.workflow].pools,
        }
    }

    fn start_or_hold_back(&mut self, id: &WorkflowId) {
        match self.next(id) {
            Some(_) if self.free() == 0 => self.hold_back(id),
            Some(place) => self.start(id, &place),
            None => {}
        }
    }

    /// The free permits of each pool, its smallest size less the permits of live runs by their latest definitions; and its tokens.
    fn left(&self) -> BTreeMap<PoolId, Remainder> {
        let rates = self.spec.rates();
        let tokens = |pool: &PoolId| rates.get(pool).map(|rate| self.spec.tokens(pool, rate));
        let sizes = self.spec.sizes().into_iter();
        let mut left: BTreeMap<PoolId, Remainder> =
            sizes.map(|(pool, permits)| (pool.clone(), Remainder { permits, tokens: tokens(&pool) })).collect();
        for (id, workflow) in &self.spec.known {
            let runs = u32::try_from(self.active_of(id)).unwrap_or(u32::MAX);
            for one in &workflow.pools {
                left.entry(one.pool.clone())
                    .and_modify(|left| left.permits = left.permits.saturating_sub(runs * one.permits));
            }
        }
        let requests = self.spec.slots.values().flat_map(|state| state.requests.values());
        for (pool, permits) in requests.flat_map(|request| &request.held) {
            left.entry(pool.clone()).and_modify(|left| left.permits = left.permits.saturating_sub(*permits));
        }
        left
    }

    /// The first in the queue of each workflow with pools that may have another run, except those whose runs need more than
    /// the pool has.
    fn line(&self) -> BTreeSet<InLine> {
        let sizes = self.spec.sizes();
        let rates = self.spec.rates();
        let adds_up = |one: &PoolUse| rates.get(&one.pool).is_none_or(|rate| one.permits <= rate.burst);
        let fits = |one: &PoolUse| one.permits <= sizes[&one.pool] && adds_up(one);
        let could_go = |pools: &[PoolUse]| !pools.is_empty() && pools.iter().all(fits);
        let waiting = self.spec.workflows.values().filter(|workflow| could_go(&workflow.pools));
        let place = |id: &WorkflowId| {
            let InQueue { priority, at, key } = self.next(id)?;
            let at = if key.job().is_some() { Timestamp::MAX } else { at };
            Some(InLine { priority, at, key, workflow: id.clone(), request: None })
        };
        let asking = |(slot, number): (SlotRef, u64)| {
            let priority = Reverse(self.spec.slots[&slot].requests[&number].priority);
            let at = if slot.key.job().is_some() { None } else { slot.key.time() };
            let SlotRef { workflow, key } = slot;
            InLine { priority, at: at.unwrap_or(Timestamp::MAX), key, workflow, request: Some(number) }
        };
        let asking = self.spec.waiting_requests().into_iter().map(asking);
        waiting.filter_map(|workflow| place(&workflow.id)).chain(asking).collect()
    }

    fn is_patient(&self, place: &InLine, line: &BTreeSet<InLine>) -> bool {
        let names = |place: &InLine, pool: &PoolId| self.uses_of(place).iter().any(|one| one.pool == *pool);
        let is_first = |pool: &PoolId| line.iter().find(|other| names(other, pool)) == Some(place);
        let first = self.uses_of(place).iter().all(|one| is_first(&one.pool));
        let state = &self.spec.slots[&place.slot()];
        let since = place.request.map_or(state.since, |number| state.requests[&number].since);
        first && self.spec.now.duration_since(since) >= POOL_PATIENCE
    }

    /// The next slot of a workflow, while its concurrency and its workers have room.
    fn next(&self, id: &WorkflowId) -> Option<InQueue> {
        let workflow = self.spec.workflows.get(id)?;
        let has_place = workflow.concurrency.is_none_or(|limit| self.active_of(id) < limit as usize);
        let is_taken = !self.is_for_workers(workflow) || self.is_wanted(id);
        self.going(id).filter(|_| has_place && is_taken)
    }

    /// The first slot of a workflow that does not wait for others of its batch.
    fn going(&self, id: &WorkflowId) -> Option<InQueue> {
        let queue = self.queues.get(id)?;
        let mut passed: BTreeSet<InQueue> = BTreeSet::new();
        while let Some(first) = queue.iter().find(|place| !passed.contains(*place)) {
            let lot = self.spec.lot(id, queue, first);
            if !lot.waits {
                return Some(first.clone());
            }
            passed.extend(lot.places);
        }
        None
    }

    /// Whether a worker would run another job of a workflow.
    fn is_wanted(&self, id: &WorkflowId) -> bool {
        let Some(labels) = self.spec.workflows.get(id).map(|workflow| &workflow.job.runs_on) else { return false };
        let fits = |offer: &Offer| offer.workflows.contains(id) && labels.is_subset(&offer.labels);
        self.spec.offers.values().any(|offer| offer.job.is_none() && offer.free > 0 && fits(offer))
    }

    fn active_of(&self, id: &WorkflowId) -> usize {
        self.active.get(id).copied().unwrap_or_default()
    }

    /// How many more runs the limit on all of them allows.
    fn free(&self) -> usize {
        self.spec.max_running.saturating_sub(self.active.values().sum())
    }

    fn start(&mut self, id: &WorkflowId, place: &InQueue) {
        let slot = SlotRef::new(id.clone(), place.key.clone());
        self.take_worker(&slot);
        let uses = self.spec.workflows.get(id).map(|workflow| workflow.pools.clone()).unwrap_or_default();
        self.take_tokens(&uses);
        let queue = self.queues.entry(id.clone()).or_default();
        let lot = self.spec.lot(id, queue, place);
        queue.retain(|place| !lot.places.contains(place));
        *self.active.entry(id.clone()).or_default() += 1;
        let Some(leader) = self.spec.start(slot, None) else { return };
        for other in lot.places.into_iter().skip(1) {
            self.spec.start(SlotRef::new(id.clone(), other.key), Some(&leader));
        }
        self.started.push(leader);
    }

    /// Spends the tokens of what is taken.
    fn take_tokens(&mut self, uses: &[PoolUse]) {
        let (rates, now) = (self.spec.rates(), self.spec.now.as_millisecond());
        for one in uses {
            if let Some(rate) = rates.get(&one.pool) {
                let full_at = self.spec.full_at.entry(one.pool.clone()).or_insert(now);
                *full_at = now.max(*full_at) + i64::from(one.permits) * pace(rate);
            }
        }
    }

    /// Assigns a job to the worker that waits for it by its id, or else the one with most room, the last by name.
    fn take_worker(&mut self, slot: &SlotRef) {
        let workflow = self.spec.workflows.get(&slot.workflow).filter(|workflow| self.is_for_workers(workflow));
        let Some(labels) = workflow.map(|workflow| workflow.job.runs_on.clone()) else { return };
        let fits = |offer: &Offer| {
            let serves = offer.free > 0 && offer.workflows.contains(&slot.workflow);
            serves && labels.is_subset(&offer.labels) && offer.job.as_ref().is_none_or(|job| job == slot)
        };
        let fitting = self.spec.offers.iter_mut().filter(|(_, offer)| fits(offer));
        if let Some((worker, offer)) = fitting.max_by_key(|(_, offer)| (offer.job.is_some(), offer.free)) {
            offer.free -= 1;
            self.spec.taken.insert(slot.clone(), (worker.clone(), offer.attempts));
        }
    }
}
