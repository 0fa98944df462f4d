//! Who holds what runs need, and who waits for it: what people see of permits. Asked for, never kept up.

use jiff::Timestamp;
use kelos_model::{PoolId, PoolUse, RunId, SlotKey, SlotRef, SlotState, WorkflowId};

use crate::Core;
use crate::memory::{Live, Task, place};
use crate::pools::{Pool, Rank};

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

impl Core {
    /// What runs need that there is not enough of, who holds it and who waits.
    pub(crate) fn capacity(&self) -> Capacity {
        let mut runs: Vec<_> = self.tasks.iter().map(|(id, task)| (id.clone(), task.active)).collect();
        runs.retain(|(_, active)| *active > 0);
        runs.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let mut full: Vec<_> = self.tasks.iter().filter_map(|(id, task)| full_workflow(id, task)).collect();
        full.sort_by(|a, b| (b.queued, &a.workflow).cmp(&(a.queued, &b.workflow)));
        let starved = || self.starved.iter().filter_map(|id| self.tasks.get(id));
        Capacity {
            limit: self.config.max_running,
            running: self.running,
            more_runs: cut(&mut runs, WORKFLOWS),
            runs,
            queued: starved().map(queued).sum(),
            first: starved().filter_map(|task| waiter(task, 1)).take(WAITERS).collect(),
            pools: self.pools.iter().map(|(id, pool)| self.pool_state(id, pool)).collect(),
            more_full: cut(&mut full, WORKFLOWS),
            full,
        }
    }

    fn pool_state(&self, id: &PoolId, pool: &Pool) -> PoolState {
        let holders: Vec<_> = pool.holders().keys().filter_map(|workflow| self.tasks.get(workflow)).collect();
        let all: u64 = holders.iter().map(|task| u64::from(task.active)).sum();
        let named: Vec<_> = holders.into_iter().flat_map(|task| holders_of(task, id)).take(HOLDERS).collect();
        let in_line = || pool.line().iter().filter_map(|rank| self.in_line(rank, id));
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

    fn in_line(&self, rank: &Rank, pool: &PoolId) -> Option<Waiter> {
        let task = self.tasks.get(&rank.2)?;
        let live = task.slots.get(&rank.1)?;
        Some(waiting(task, &rank.1, live, permits(task, pool)?))
    }

    /// What a queued slot finds at the pools of its workflow.
    pub(crate) fn places_in_pools(&self, slot: &SlotRef) -> Vec<PoolPlace> {
        let Some(task) = self.tasks.get(&slot.workflow) else { return Vec::new() };
        let Some(live) = task.slots.get(&slot.key).filter(|live| live.slot.state == SlotState::Queued) else {
            return Vec::new();
        };
        let (priority, _, key) = place(&live.slot, &slot.key);
        let rank = (priority, key, slot.workflow.clone());
        let place = |one: &PoolUse| {
            let pool = self.pools.get(&one.pool)?;
            let state = self.pool_state(&one.pool, pool);
            Some(PoolPlace { state, permits: one.permits, ahead: self.ahead_in(pool, &rank) })
        };
        task.row.definition.pools.iter().filter_map(place).collect()
    }

    fn ahead_in(&self, pool: &Pool, rank: &Rank) -> u64 {
        let before = pool.line().range(..rank);
        let slots = before.filter_map(|other| {
            let task = self.tasks.get(&other.2)?;
            Some(
                task.queue
                    .iter()
                    .take_while(|(priority, _, key)| (*priority, key, &other.2) < (rank.0, &rank.1, &rank.2)),
            )
        });
        slots.map(|slots| slots.count() as u64).sum()
    }
}

fn full_workflow(id: &WorkflowId, task: &Task) -> Option<FullWorkflow> {
    let concurrency = task.row.definition.concurrency;
    if !task.row.present || task.row.paused || task.active < concurrency {
        return None;
    }
    let first = waiter(task, 1)?;
    Some(FullWorkflow { workflow: id.clone(), concurrency, active: task.active, queued: queued(task), first })
}

/// Shortens a list, and says by how many.
fn cut<T>(list: &mut Vec<T>, most: usize) -> usize {
    let more = list.len().saturating_sub(most);
    list.truncate(most);
    more
}

fn queued(task: &Task) -> u64 {
    task.queue.len() as u64
}

fn permits(task: &Task, pool: &PoolId) -> Option<u32> {
    task.row.definition.pools.iter().find(|one| one.pool == *pool).map(|one| one.permits)
}

/// The slot of a workflow that goes next.
fn waiter(task: &Task, permits: u32) -> Option<Waiter> {
    let (_, _, key) = task.queue.first()?;
    Some(waiting(task, key, task.slots.get(key)?, permits))
}

fn waiting(task: &Task, key: &SlotKey, live: &Live, permits: u32) -> Waiter {
    let slot = SlotRef::new(task.row.id.clone(), key.clone());
    let behind = queued(task).saturating_sub(1);
    Waiter { slot, permits, priority: live.slot.priority, since: live.slot.since, behind }
}

/// The live runs of a workflow that hold permits of a pool.
fn holders_of<'a>(task: &'a Task, pool: &PoolId) -> impl Iterator<Item = Holder> + 'a {
    let permits = permits(task, pool).unwrap_or(0);
    let alive = task.slots.iter().filter(|(_, live)| live.slot.run_alive);
    alive.take(task.active as usize).map(move |(key, live)| {
        let slot = SlotRef::new(task.row.id.clone(), key.clone());
        let since = live.run.as_ref().map_or(live.slot.since, |run| run.dispatched_at);
        Holder { run: RunId { slot, number: live.slot.last_run }, permits, since }
    })
}
