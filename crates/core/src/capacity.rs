//! The use of limits and pools, as an inspection returns it: who holds permits, and who waits for them.

use jiff::Timestamp;
use kelos_model::{PoolId, RunId, SlotRef, TokenRate, WorkflowId};

/// The use of the limits on runs and of the pools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacity {
    /// The limit on the live runs of all workflows.
    pub limit: u32,
    /// The number of live runs.
    pub running: u32,
    /// The workflows with live runs and their numbers, largest first.
    pub runs: Vec<(WorkflowId, u32)>,
    /// The number of further workflows with live runs.
    pub more_runs: usize,
    /// The number of queued slots that only the limit on all runs holds back.
    pub queued: u64,
    /// The first of these slots, in the order in which they start.
    pub first: Vec<Waiter>,
    /// All pools that a present definition names, or whose permits are held.
    pub pools: Vec<PoolState>,
    /// The workflows with queued slots whose own concurrency is used up, most queued first.
    pub full: Vec<FullWorkflow>,
    /// The number of further workflows whose concurrency is used up.
    pub more_full: usize,
}

/// The state of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolState {
    /// The name of the pool.
    pub pool: PoolId,
    /// The number of its permits; none if no present definition names it, or if its rate alone limits it.
    pub size: Option<u32>,
    /// Its rate; none if only the number of its permits is limited.
    pub rate: Option<RateState>,
    /// Whether definitions give it different sizes or rates. The smallest and the slowest apply.
    pub is_disputed: bool,
    /// The number of held permits, which exceeds the size if a definition changed meanwhile.
    pub held: u64,
    /// The runs that hold them, by workflow and time.
    pub holders: Vec<Holder>,
    /// The number of further runs that hold permits.
    pub more_holders: u64,
    /// The number of queued slots of the workflows in its queue.
    pub queued: u64,
    /// The moment at which the longest-waiting first slot of a workflow in its queue was queued.
    pub oldest_since: Option<Timestamp>,
    /// The first slots in its queue.
    pub first: Vec<Waiter>,
}

/// The state of a pool's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    /// The rate.
    pub rate: TokenRate,
    /// The number of tokens that are there.
    pub tokens: u32,
    /// When a further token comes; none if as many are there as add up.
    pub next: Option<Timestamp>,
}

/// A run that holds permits of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// The number of permits that it holds.
    pub permits: u32,
    /// The moment since which it holds them.
    pub since: Timestamp,
    /// Whether it took them while it was live, and not with its start.
    pub is_within: bool,
}

/// The first queued slot of a workflow, or a slot whose live run waits for permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// The slot.
    pub slot: SlotRef,
    /// The number of permits that it needs: of the pool in question, or one of the limit on all runs.
    pub permits: u32,
    /// Its priority. Larger runs first.
    pub priority: i32,
    /// The moment at which it was queued.
    pub since: Timestamp,
    /// The number of queued slots of the same workflow behind it.
    pub behind: u64,
    /// Whether it is a live run that waits, and not a slot that is to start.
    pub is_within: bool,
}

/// A workflow whose concurrency is used up while slots of it are queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullWorkflow {
    /// The workflow.
    pub workflow: WorkflowId,
    /// The limit on its live runs.
    pub concurrency: u32,
    /// The number of its live runs.
    pub active: u32,
    /// The number of its queued slots.
    pub queued: u64,
    /// The first of its queued slots.
    pub first: Waiter,
}

/// The position of a queued slot at a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolPlace {
    /// The state of the pool.
    pub state: PoolState,
    /// The number of permits that its run needs.
    pub permits: u32,
    /// When the pool has as many tokens as its run takes; none if it has no rate.
    pub tokens_at: Option<Timestamp>,
    /// The number of queued slots ahead of it in the queue of the pool.
    pub ahead: u64,
}
