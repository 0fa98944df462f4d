//! Who holds what runs need, and who waits for it: what people see of permits. Asked for, never kept up.

use jiff::Timestamp;
use kelos_model::{PoolId, RunId, SlotRef, WorkflowId};

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
