//! Answers to inspections: the details of a slot, and the use of limits and pools. They are computed on request, from
//! organs that they do not change.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::workers::Label;
use kelos_model::{PoolId, PoolUse, RunId, SlotRef, SlotState, TokenRate, WorkflowId};

use crate::batches::Candidates;
use crate::capacity::{Capacity, FullWorkflow, Holder, PoolPlace, PoolState, RateState, Waiter};
use crate::inspection::{BatchWait, Inspection, WorkerWait};
use crate::jobs::Jobs;
use crate::permits::{LinePosition, LotWait, Party, Permits, Pool, Position, Queue, QueueId, RequestId, WorkersOf};
use crate::planner::Planner;
use crate::programs::Programs;
use crate::slots::SlotTable;
use crate::wakes::Wakes;
use crate::workflows::{WorkflowState, Workflows};

/// The most holders that are listed for a pool.
const HOLDERS: usize = 20;
/// The most waiting slots that are listed for a queue.
const WAITERS: usize = 10;
/// The most workflows that are listed.
const WORKFLOWS: usize = 50;

/// All organs that know why a slot waits.
pub(crate) struct Survey<'a> {
    pub(crate) workflows: &'a Workflows,
    pub(crate) slots: &'a SlotTable,
    pub(crate) permits: &'a Permits,
    pub(crate) planner: &'a Planner,
    pub(crate) programs: &'a Programs,
    pub(crate) jobs: &'a Jobs,
    pub(crate) wakes: &'a Wakes,
    pub(crate) now: Timestamp,
}

impl Survey<'_> {
    /// The details of a slot that only memory has.
    pub(crate) fn inspection(&self, slot: &SlotRef) -> Inspection {
        // A request may name a workflow that never was.
        let Some(workflow) = self.workflows.get(&slot.workflow) else { return Inspection::default() };
        let live = self.slots.get(slot);
        let queue = self.permits.queue(QueueId::of(slot));
        let queued = live.as_ref().filter(|live| live.slot.state == SlotState::Queued);
        let position = queued.map(|live| Position::of(&live.slot, &slot.key));
        let backlog = self.planner.backlog(&slot.workflow, self.workflows, self.slots, self.permits);
        let ahead = queue.zip(position.as_ref()).map_or(0, |(queue, position)| queue.ahead(position));
        let ahead = self.programs.ahead(slot).or_else(|| backlog?.ahead_of(slot)).unwrap_or(ahead);
        Inspection {
            next_look: self.wakes.next_look(slot),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            active: queue.map_or(0, Queue::active),
            at_global_limit: self.permits.running() >= self.permits.limit(),
            pools: self.places_in_pools(slot),
            dormant: workflow.dormant(&slot.key, live.as_ref().map(|live| &live.slot)),
            finishing: self.jobs.why_finishing(slot, self.workflows.are_given()),
            program_runs: self.programs.runs(&slot.workflow),
            worker: queued.and_then(|_| self.worker_wait(slot)),
            batch: queue.zip(position.as_ref()).and_then(|(queue, position)| self.batch_wait(slot, queue, position)),
            answers: self.wakes.answers(slot),
        }
    }

    /// The wait of a queued slot for a worker.
    fn worker_wait(&self, slot: &SlotRef) -> Option<WorkerWait> {
        match self.permits.workers_of(slot) {
            (WorkersOf::Enough, _) => None,
            (WorkersOf::None(outdated), labels) => Some(self.worker_missing(slot, outdated, labels)),
            (WorkersOf::OtherLabels(workers), labels) => Some(WorkerWait::Labels(labels, workers)),
            (WorkersOf::Busy, labels) => Some(WorkerWait::Busy(labels)),
        }
    }

    /// The wait of a queued slot whose workflow no worker serves.
    fn worker_missing(&self, slot: &SlotRef, outdated: u32, labels: BTreeSet<Label>) -> WorkerWait {
        let known = self.workflows.get(&slot.workflow).map(WorkflowState::definition);
        match known.filter(|definition| definition.has_functions()) {
            Some(definition) => {
                let (project, version) = (definition.project.clone(), definition.version.clone());
                WorkerWait::Program { project, version, outdated }
            }
            None => WorkerWait::None(labels),
        }
    }

    /// The wait of a queued slot for others of its batch.
    fn batch_wait(&self, slot: &SlotRef, queue: &Queue, position: &Position) -> Option<BatchWait> {
        let batching = queue.batching()?;
        let Survey { now, workflows, slots, wakes, planner, .. } = *self;
        let (others, wait) =
            Candidates { now, workflows, slots, wakes, planner }.wait_of(&slot.workflow, queue, position)?;
        let until = match wait {
            LotWait::Until(at) => Some(at),
            LotWait::Tick | LotWait::Room => None,
        };
        Some(BatchWait { ready: u32::try_from(others + 1).unwrap_or(u32::MAX), size: batching.size, until })
    }

    /// The use of the limits on runs and of the pools.
    pub(crate) fn capacity(&self) -> Capacity {
        let queues = || self.permits.queues();
        // Runs of flows are carried out by the scheduler; the runs of their steps count.
        let mut by_workflow: BTreeMap<WorkflowId, u32> = BTreeMap::new();
        for (id, queue) in queues() {
            *by_workflow.entry(id.workflow.clone()).or_default() += queue.working();
        }
        let mut runs: Vec<_> = by_workflow.into_iter().filter(|(_, active)| *active > 0).collect();
        runs.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let mut full: Vec<_> =
            queues().filter(|(id, _)| id.is_whole()).filter_map(|(id, queue)| full_workflow(id, queue)).collect();
        full.sort_by(|a, b| (b.queued, &a.workflow).cmp(&(a.queued, &b.workflow)));
        let starved = || self.permits.starved().filter_map(|id| Some((id, self.permits.queue(id)?)));
        let mut pools: Vec<_> = self.permits.pools().map(|(id, pool)| self.pool_state(id, pool)).collect();
        pools.extend(self.unused_pools());
        pools.sort_by(|a, b| a.pool.cmp(&b.pool));
        Capacity {
            limit: self.permits.limit(),
            running: self.permits.running(),
            more_runs: cut(&mut runs, WORKFLOWS),
            runs,
            queued: starved().map(|(_, queue)| queue.len() as u64).sum(),
            first: starved().filter_map(|(id, queue)| first_waiter(id, queue)).take(WAITERS).collect(),
            pools,
            more_full: cut(&mut full, WORKFLOWS),
            full,
        }
    }

    /// The pools that only steps name, and steps of which none was opened yet: the permits know of a step from then on.
    fn unused_pools(&self) -> Vec<PoolState> {
        let present = self.workflows.iter().filter(|(_, one)| one.is_present());
        let steps = present.filter_map(|(_, one)| one.definition().flow.as_ref()).flat_map(|flow| &flow.steps);
        let mut unused: BTreeMap<&PoolId, Vec<&PoolUse>> = BTreeMap::new();
        for one in steps.flat_map(|step| step.pools.iter().chain(&step.within)) {
            if self.permits.pool(&one.pool).is_none() {
                unused.entry(&one.pool).or_default().push(one);
            }
        }
        unused.into_iter().map(|(id, uses)| unused_pool(id, &uses)).collect()
    }

    fn pool_state(&self, id: &PoolId, pool: &Pool) -> PoolState {
        let holders: Vec<_> =
            pool.holders().keys().filter_map(|workflow| Some((workflow, self.permits.queue(workflow)?))).collect();
        let all: u64 = holders.iter().map(|(_, queue)| u64::from(queue.active())).sum();
        let all = all + pool.within().len() as u64;
        let named = holders.into_iter().flat_map(|(workflow, queue)| self.holders_of(workflow, queue, id));
        let within = pool.within().iter().filter_map(|(request, permits)| self.holder_within(request, *permits));
        let named = named.chain(within);
        let named: Vec<_> = named.take(HOLDERS).collect();
        let in_line = || pool.line().iter().filter_map(|position| self.in_line(position, id));
        PoolState {
            pool: id.clone(),
            size: pool.size().filter(|size| *size != PoolUse::BOUNDLESS),
            rate: self.rate_of(id, pool),
            is_disputed: pool.is_disputed(),
            held: pool.held(),
            more_holders: all.saturating_sub(named.len() as u64),
            holders: named,
            queued: in_line().map(|one| 1 + one.behind).sum(),
            oldest_since: in_line().map(|one| one.since).min(),
            first: in_line().take(WAITERS).collect(),
        }
    }

    fn rate_of(&self, id: &PoolId, pool: &Pool) -> Option<RateState> {
        let rate = *pool.rate()?;
        let (tokens, _) = self.permits.tokens(id, 1, self.now)?;
        let next = self.permits.tokens(id, tokens.saturating_add(1), self.now).map(|(_, at)| at);
        Some(RateState { rate, tokens, next: next.filter(|_| tokens < rate.burst) })
    }

    fn in_line(&self, position: &LinePosition, pool: &PoolId) -> Option<Waiter> {
        if let Party::Request(id) = position.party() {
            return self.request_in_line(id, pool);
        }
        let queue = self.permits.queue(&position.queue)?;
        let (first, since) = queue.waiting().find(|(one, _)| one.key == position.key)?;
        Some(Waiter { permits: queue.permits(pool)?, ..waiter(&position.queue, queue, first, since) })
    }

    /// A live run in the line of a pool.
    fn request_in_line(&self, id: RequestId, pool: &PoolId) -> Option<Waiter> {
        let waiting = self.permits.request(&id)?;
        let slot = id.slot;
        let priority = self.slots.get(&slot).map_or(0, |live| live.slot.priority);
        let (permits, since) = (waiting.permits(pool)?, waiting.since);
        Some(Waiter { slot, permits, priority, since, behind: 0, is_within: true })
    }

    /// A live run that holds permits of a pool beside those of its start.
    fn holder_within(&self, request: &RequestId, permits: u32) -> Option<Holder> {
        let live = self.slots.get(&request.slot)?;
        let held = live.slot.held.iter().find(|held| held.request == request.number);
        let since = held.map_or(live.slot.since, |held| held.since);
        let run = RunId { slot: request.slot.clone(), number: live.slot.last_run };
        Some(Holder { run, permits, since, is_within: true })
    }

    /// The live runs of a workflow that hold permits of a pool.
    fn holders_of(&self, id: &QueueId, queue: &Queue, pool: &PoolId) -> impl Iterator<Item = Holder> {
        let permits = queue.permits(pool).unwrap_or(0);
        queue.alive().filter_map(move |key| {
            let slot = id.slot(key);
            let live = self.slots.get(&slot)?;
            let since = live.run().map_or(live.slot.since, |run| run.dispatched_at);
            let run = RunId { slot, number: live.slot.last_run };
            Some(Holder { run, permits, since, is_within: false })
        })
    }

    /// The state of the pools for which a queued slot or the live run of a slot waits, and its position in each.
    fn places_in_pools(&self, slot: &SlotRef) -> Vec<PoolPlace> {
        let id = QueueId::of(slot);
        let queued = self.permits.queue(&id).and_then(|queue| {
            let live = self.slots.get(slot).filter(|live| live.slot.state == SlotState::Queued)?;
            Some((queue.pools(), Position::of(&live.slot, &slot.key).in_line(&id)))
        });
        let asking = || self.permits.waiting_request(slot).map(|waiting| (&*waiting.uses, waiting.position.clone()));
        // Only queued slots wait for pools, and live runs that ask for more.
        let Some((uses, position)) = queued.or_else(asking) else { return Vec::new() };
        let place = |one: &PoolUse| {
            let pool = self.permits.pool(&one.pool)?;
            let state = self.pool_state(&one.pool, pool);
            let tokens_at = self.permits.tokens(&one.pool, one.permits, self.now).map(|(_, at)| at);
            Some(PoolPlace { state, permits: one.permits, tokens_at, ahead: self.ahead_in(pool, &position) })
        };
        uses.iter().filter_map(place).collect()
    }

    fn ahead_in(&self, pool: &Pool, position: &LinePosition) -> u64 {
        let ahead = |other: &LinePosition| match other.party() {
            Party::Workflow(id) => self.permits.queue(&id).map_or(0, |queue| queue.ahead_in_line(&id, position) as u64),
            Party::Request(_) => 1,
        };
        pool.line().range(..position).map(ahead).sum()
    }
}

/// The state of a pool that no run has used, by the definitions that name it.
fn unused_pool(id: &PoolId, uses: &[&PoolUse]) -> PoolState {
    let sizes: BTreeSet<u32> = uses.iter().map(|one| one.size).collect();
    let rates: BTreeSet<Option<TokenRate>> = uses.iter().map(|one| one.rate).collect();
    PoolState {
        pool: id.clone(),
        size: sizes.first().copied().filter(|size| *size != PoolUse::BOUNDLESS),
        rate: rates.iter().flatten().next().map(|rate| RateState { rate: *rate, tokens: rate.burst, next: None }),
        is_disputed: sizes.len() > 1 || rates.len() > 1,
        held: 0,
        holders: Vec::new(),
        more_holders: 0,
        queued: 0,
        oldest_since: None,
        first: Vec::new(),
    }
}

fn full_workflow(id: &QueueId, queue: &Queue) -> Option<FullWorkflow> {
    let (concurrency, active) = (queue.concurrency()?, queue.active());
    if !queue.is_open() || active < concurrency {
        return None;
    }
    let first = first_waiter(id, queue)?;
    Some(FullWorkflow { workflow: id.workflow.clone(), concurrency, active, queued: queue.len() as u64, first })
}

/// Shortens a list, and returns the number of entries cut off.
fn cut<T>(list: &mut Vec<T>, most: usize) -> usize {
    let more = list.len().saturating_sub(most);
    list.truncate(most);
    more
}

/// The first queued slot of a workflow, which needs one permit of the limit on all runs.
fn first_waiter(id: &QueueId, queue: &Queue) -> Option<Waiter> {
    let (first, since) = queue.waiting().next()?;
    Some(waiter(id, queue, first, since))
}

fn waiter(id: &QueueId, queue: &Queue, position: &Position, since: Timestamp) -> Waiter {
    Waiter {
        slot: id.slot(&position.key),
        permits: 1,
        priority: position.priority.0,
        since,
        is_within: false,
        behind: (queue.len() as u64).saturating_sub(1),
    }
}
