//! The queued slots of one workflow, its live runs, and the terms on which its slots run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::workers::Label;
use kelos_model::{BatchRule, PoolId, PoolUse, Slot, SlotKey};

use super::queue_id::QueueId;

/// A position in the queue of a workflow: by priority, then slots of times by age, and jobs in the order in which they
/// were queued, or by id if that was at the same moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) priority: Reverse<i32>,
    /// The moment at which a job or a step was queued; none for slots of times.
    queued_at: Option<Timestamp>,
    age: Age,
    pub(crate) key: SlotKey,
}

/// The age by which slots of several workflows are ordered: their time, or the moment of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Age {
    Since(Timestamp),
    /// It has neither, and comes last.
    Undated,
}

/// The position in the queues of pools: of a workflow, by the priority and age of its first slot, or of a request of a live run, by those
/// of its slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinePosition {
    pub(super) priority: Reverse<i32>,
    pub(super) age: Age,
    pub(crate) key: SlotKey,
    pub(crate) queue: QueueId,
    /// The number of a request of the slot's live run; none if the slot itself stands there.
    pub(crate) request: Option<u64>,
}

impl Position {
    /// The position of a slot once it is queued.
    pub(crate) fn of(slot: &Slot, key: &SlotKey) -> Position {
        let is_step = key.step().is_some();
        let queued_at = (key.job().is_some() || is_step).then_some(slot.since);
        let age = key.time().or(queued_at.filter(|_| is_step)).map_or(Age::Undated, Age::Since);
        Position { priority: Reverse(slot.priority), queued_at, age, key: key.clone() }
    }

    /// The position of a slot of another time that is queued beside this one.
    pub(crate) fn beside(&self, time: Timestamp) -> Position {
        Position { age: Age::Since(time), key: SlotKey::Time(time), ..self.clone() }
    }

    /// The position of its workflow in the queues of pools, while it is the first slot.
    pub(crate) fn in_line(&self, queue: &QueueId) -> LinePosition {
        let (priority, age, key) = (self.priority, self.age, self.key.clone());
        LinePosition { priority, age, key, queue: queue.clone(), request: None }
    }
}

/// The terms on which the slots of a workflow run. They follow from its definition, its pauses and its workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// The limit on its live runs.
    pub(crate) concurrency: Option<u32>,
    /// The way in which adjacent slots are put together for one run.
    pub(crate) batch: Option<BatchRule>,
    /// The permits of pools that each run takes.
    pub(crate) pools: Vec<PoolUse>,
    /// The pools of which its live runs may take permits.
    pub(crate) within: Vec<PoolUse>,
    /// Whether the workflow is defined. Only then do its sizes of pools count.
    pub(crate) is_present: bool,
    /// Whether it is paused.
    pub(crate) is_paused: bool,
    /// Whether workers run its jobs.
    pub(crate) by_workers: bool,
    /// The labels that such a worker needs.
    pub(crate) runs_on: BTreeSet<Label>,
    /// Whether the scheduler carries its runs out by itself, because they are runs of flows.
    pub(crate) by_scheduler: bool,
}

/// The queue of a workflow, its live runs, and its position in the queues of its pools.
#[derive(Default)]
pub(crate) struct Queue {
    pub(super) terms: Terms,
    /// The queued slots in order, with the moment at which each was queued.
    waiting: BTreeMap<Position, Timestamp>,
    /// The slots with a live run.
    alive: BTreeSet<SlotKey>,
    /// Those of them whose runs the scheduler carries out by itself: they take no place of the limit on all runs.
    pub(super) carried_out: BTreeSet<SlotKey>,
    /// The slots that the live run of another slot serves. They hold no permits.
    followers: BTreeSet<SlotKey>,
    /// Its position in the queues of its pools, and the moment at which its first slot was queued.
    pub(super) in_line: Option<(LinePosition, Timestamp)>,
    /// The moment at which it becomes starved in the queues of its pools.
    pub(super) patient_until: Option<Timestamp>,
    /// The moment at which the first of its slots that wait for their batch waits no longer.
    pub(super) batch_until: Option<Timestamp>,
}

impl Queue {
    /// Puts a slot into the queue.
    pub(super) fn insert(&mut self, position: Position, since: Timestamp) {
        self.waiting.insert(position, since);
    }

    /// Takes a slot out of the queue. Returns whether it was there.
    pub(super) fn remove(&mut self, position: &Position) -> bool {
        self.waiting.remove(position).is_some()
    }

    /// The moment at which a slot was queued; none if it isn't queued.
    pub(crate) fn since(&self, position: &Position) -> Option<Timestamp> {
        self.waiting.get(position).copied()
    }

    /// The time of the slot that is next in order, or the moment at which it was queued where it has none; none if no slot is queued.
    pub(super) fn next_time(&self) -> Option<Timestamp> {
        self.waiting.first_key_value().map(|(position, since)| position.key.time().unwrap_or(*since))
    }

    /// Its turn among the first slots of all workflows that wait for workers: by priority, then by its time, or the moment at which it was
    /// queued where it has none.
    pub(super) fn turn(&self, position: &Position) -> (Reverse<i32>, Timestamp, SlotKey) {
        let at = position.key.time().or_else(|| self.since(position)).unwrap_or(Timestamp::MAX);
        (position.priority, at, position.key.clone())
    }

    /// Counts the run of a slot. Returns whether it was not counted before; the run that serves a follower counts as that of another slot.
    pub(super) fn begin(&mut self, key: &SlotKey) -> bool {
        !self.followers.contains(key) && self.alive.insert(key.clone())
    }

    /// Notes that the run of another slot serves this one.
    pub(super) fn follow_along(&mut self, key: &SlotKey) {
        self.followers.insert(key.clone());
    }

    /// Whether the live run of another slot serves this one.
    pub(super) fn is_following(&self, key: &SlotKey) -> bool {
        self.followers.contains(key)
    }

    /// Notes that no run of another slot serves this one any more. Returns whether one did.
    pub(super) fn unfollow(&mut self, key: &SlotKey) -> bool {
        self.followers.remove(key)
    }

    /// Discounts the run of a slot. Returns whether it was counted.
    pub(super) fn end(&mut self, key: &SlotKey) -> bool {
        self.alive.remove(key)
    }

    /// Whether a slot is in the queue.
    pub(super) fn has(&self, key: &SlotKey) -> bool {
        self.waiting.keys().any(|position| position.key == *key)
    }

    /// The number of its live runs.
    pub(crate) fn active(&self) -> u32 {
        u32::try_from(self.alive.len()).unwrap_or(u32::MAX)
    }

    /// The number of its live runs that take a place of the limit on all runs.
    pub(crate) fn working(&self) -> u32 {
        u32::try_from(self.alive.len().saturating_sub(self.carried_out.len())).unwrap_or(u32::MAX)
    }

    /// The slots with live runs.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &SlotKey> {
        self.alive.iter()
    }

    /// The limit on its live runs; none if there is none.
    pub(crate) fn concurrency(&self) -> Option<u32> {
        self.terms.concurrency
    }

    /// The way in which adjacent slots are put together.
    pub(crate) fn batching(&self) -> Option<BatchRule> {
        self.terms.batch
    }

    /// The number of further runs that the limit allows; the largest number if there is no limit.
    pub(crate) fn places(&self) -> u32 {
        self.terms.concurrency.map_or(u32::MAX, |limit| limit.saturating_sub(self.active()))
    }

    /// The permits of pools that each run takes.
    pub(crate) fn pools(&self) -> &[PoolUse] {
        &self.terms.pools
    }

    /// The permits of a pool that a run needs; none if it does not need the pool.
    pub(crate) fn permits(&self, pool: &PoolId) -> Option<u32> {
        self.terms.pools.iter().find(|one| one.pool == *pool).map(|one| one.permits)
    }

    /// Whether its slots may run as far as its definition and its pauses allow.
    pub(crate) fn is_open(&self) -> bool {
        self.terms.is_present && !self.terms.is_paused
    }

    /// The number of queued slots.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The queued slots in order, with the moment at which each was queued.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Position, Timestamp)> {
        self.waiting.iter().map(|(position, since)| (position, *since))
    }

    /// The number of slots ahead of a position.
    pub(crate) fn ahead(&self, position: &Position) -> usize {
        self.waiting.range(..position).count()
    }

    /// The number of slots ahead of a position in the queue of a pool.
    pub(crate) fn ahead_in_line(&self, id: &QueueId, other: &LinePosition) -> usize {
        let goes_first = |position: &&Position| position.in_line(id) < *other;
        self.waiting.keys().take_while(goes_first).count()
    }
}
