//! Who holds what runs need, and who waits for it: what people see of permits. Asked for, never kept up.

use jiff::Timestamp;
use kelos_model::{PoolId, PoolUse, RunId, SlotRef, SlotState, WorkflowId};

use crate::permits::{LinePosition, Permits, Pool, Position, Queue};
use crate::slots::SlotTable;
use crate::workflows::Workflows;

/// Holders of a pool's permits that are named; of the others there is a number.
const HOLDERS: usize = 20;
/// Waiters that are named, from the front of a line.
const WAITERS: usize = 10;
/// Workflows that are named as holders of places, or as being at their own limit.
const WORKFLOWS: usize = 50;

/// What runs need that there is not enough of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    /// The limit on the live runs of all workflows.
    pub limit: u32,
    /// Live runs.
    pub running: u32,
    /// The workflows that have them, most first.
    pub runs: Vec<(WorkflowId, u32)>,
    /// How many more workflows have some.
    pub more_runs: usize,
    /// Queued slots of workflows that only the limit on all runs holds back.
    pub queued: u64,
    /// The first of them, in the order in which they get their turns.
    pub first: Vec<Waiter>,
    /// All pools that present definitions name, or whose permits are held.
    pub pools: Vec<PoolState>,
    /// Workflows with queued slots whose own concurrency is used up, most queued first.
    pub full: Vec<FullWorkflow>,
    /// How many more workflows are.
    pub more_full: usize,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolState {
    /// Its name.
    pub pool: PoolId,
    /// How many permits it has; none once no present definition names it.
    pub size: Option<u32>,
    /// Whether definitions give it different sizes, so that the smallest holds.
    pub is_disputed: bool,
    /// How many permits are held; more than there are where a definition changed meanwhile.
    pub held: u64,
    /// The runs that hold them, by workflow and time.
    pub holders: Vec<Holder>,
    /// How many more runs do.
    pub more_holders: u64,
    /// Queued slots of the workflows that stand in its line.
    pub queued: u64,
    /// When the first slot of a workflow in line that has waited longest was queued.
    pub oldest_since: Option<Timestamp>,
    /// The first in its line.
    pub first: Vec<Waiter>,
}

/// A run that holds permits of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// How many permits.
    pub permits: u32,
    /// Since when.
    pub since: Timestamp,
}

/// A queued slot: the next of its workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// Which.
    pub slot: SlotRef,
    /// How many permits it takes: of the pool in question, or one place among all runs.
    pub permits: u32,
    /// Larger goes first.
    pub priority: i32,
    /// When it was queued.
    pub since: Timestamp,
    /// Queued slots of the same workflow that go after it.
    pub behind: u64,
}

/// A workflow whose concurrency is used up while slots of it are queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullWorkflow {
    /// Its id.
    pub workflow: WorkflowId,
    /// How many of its slots may run at a time.
    pub concurrency: u32,
    /// How many runs it has.
    pub active: u32,
    /// How many of its slots are queued.
    pub queued: u64,
    /// The one that goes next.
    pub first: Waiter,
}

/// What a queued slot finds at a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPlace {
    /// The pool.
    pub state: PoolState,
    /// How many permits its run takes.
    pub permits: u32,
    /// Queued slots in its line that go first.
    pub ahead: u64,
}

/// The permits, and the slots that hold them and wait for them.
pub(crate) struct Survey<'a> {
    pub(crate) workflows: &'a Workflows,
    pub(crate) slots: &'a SlotTable,
    pub(crate) permits: &'a Permits,
}

impl Survey<'_> {
    /// What runs need that there is not enough of, who holds it and who waits.
    pub(crate) fn capacity(&self) -> Capacity {
        let queues = || self.permits.queues();
        let mut runs: Vec<_> = queues().map(|(id, queue)| (id.clone(), queue.active())).collect();
        runs.retain(|(_, active)| *active > 0);
        runs.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let mut full: Vec<_> = queues().filter_map(|(id, queue)| full_workflow(id, queue)).collect();
        full.sort_by(|a, b| (b.queued, &a.workflow).cmp(&(a.queued, &b.workflow)));
        let starved = || self.permits.starved().filter_map(|id| Some((id, self.permits.queue(id)?)));
        Capacity {
            limit: self.permits.limit(),
            running: self.permits.running(),
            more_runs: cut(&mut runs, WORKFLOWS),
            runs,
            queued: starved().map(|(_, queue)| queue.len() as u64).sum(),
            first: starved().filter_map(|(id, queue)| first_waiter(id, queue)).take(WAITERS).collect(),
            pools: self.permits.pools().map(|(id, pool)| self.pool_state(id, pool)).collect(),
            more_full: cut(&mut full, WORKFLOWS),
            full,
        }
    }

    fn pool_state(&self, id: &PoolId, pool: &Pool) -> PoolState {
        let holders: Vec<_> =
            pool.holders().keys().filter_map(|workflow| Some((workflow, self.permits.queue(workflow)?))).collect();
        let all: u64 = holders.iter().map(|(_, queue)| u64::from(queue.active())).sum();
        let named = holders.into_iter().flat_map(|(workflow, queue)| self.holders_of(workflow, queue, id));
        let named: Vec<_> = named.take(HOLDERS).collect();
        let in_line = || pool.line().iter().filter_map(|position| self.in_line(position, id));
        PoolState {
            pool: id.clone(),
            size: pool.size(),
            is_disputed: pool.is_disputed(),
            held: pool.held(),
            more_holders: all.saturating_sub(named.len() as u64),
            holders: named,
            queued: in_line().map(|one| 1 + one.behind).sum(),
            oldest_since: in_line().map(|one| one.since).min(),
            first: in_line().take(WAITERS).collect(),
        }
    }

    fn in_line(&self, position: &LinePosition, pool: &PoolId) -> Option<Waiter> {
        let queue = self.permits.queue(&position.workflow)?;
        let (first, since) = queue.waiting().find(|(one, _)| one.key == position.key)?;
        Some(Waiter { permits: queue.permits(pool)?, ..waiter(&position.workflow, queue, first, since) })
    }

    /// The live runs of a workflow that hold permits of a pool.
    fn holders_of(&self, id: &WorkflowId, queue: &Queue, pool: &PoolId) -> impl Iterator<Item = Holder> {
        let permits = queue.permits(pool).unwrap_or(0);
        queue.alive().filter_map(move |key| {
            let slot = SlotRef::new(id.clone(), key.clone());
            let live = self.slots.get(&slot)?;
            let since = live.run().map_or(live.slot.since, |run| run.dispatched_at);
            let run = RunId { slot, number: live.slot.last_run };
            Some(Holder { run, permits, since })
        })
    }

    /// The state of the pools of a queued slot's workflow, and its position in each.
    pub(crate) fn places_in_pools(&self, slot: &SlotRef) -> Vec<PoolPlace> {
        let queued = self.workflows.get(&slot.workflow).and_then(|workflow| {
            let live = self.slots.get(slot).filter(|live| live.slot.state == SlotState::Queued)?;
            Some((&workflow.definition().pools, Position::of(&live.slot, &slot.key)))
        });
        // Only what is queued waits at pools.
        let Some((uses, position)) = queued else { return Vec::new() };
        let position = position.in_line(&slot.workflow);
        let place = |one: &PoolUse| {
            let pool = self.permits.pool(&one.pool)?;
            let state = self.pool_state(&one.pool, pool);
            Some(PoolPlace { state, permits: one.permits, ahead: self.ahead_in(pool, &position) })
        };
        uses.iter().filter_map(place).collect()
    }

    fn ahead_in(&self, pool: &Pool, position: &LinePosition) -> u64 {
        let before = pool.line().range(..position).map(|other| &other.workflow);
        let queues = before.filter_map(|id| Some((id, self.permits.queue(id)?)));
        queues.map(|(id, queue)| queue.ahead_in_line(id, position) as u64).sum()
    }
}

fn full_workflow(id: &WorkflowId, queue: &Queue) -> Option<FullWorkflow> {
    let (concurrency, active) = (queue.concurrency()?, queue.active());
    if !queue.is_open() || active < concurrency {
        return None;
    }
    let first = first_waiter(id, queue)?;
    Some(FullWorkflow { workflow: id.clone(), concurrency, active, queued: queue.len() as u64, first })
}

/// Shortens a list, and says by how many.
fn cut<T>(list: &mut Vec<T>, most: usize) -> usize {
    let more = list.len().saturating_sub(most);
    list.truncate(most);
    more
}

/// The slot of a workflow that goes next, for one place among all runs.
fn first_waiter(id: &WorkflowId, queue: &Queue) -> Option<Waiter> {
    let (first, since) = queue.waiting().next()?;
    Some(waiter(id, queue, first, since))
}

fn waiter(id: &WorkflowId, queue: &Queue, position: &Position, since: Timestamp) -> Waiter {
    Waiter {
        slot: SlotRef::new(id.clone(), position.key.clone()),
        permits: 1,
        priority: position.priority.0,
        since,
        behind: (queue.len() as u64).saturating_sub(1),
    }
}
