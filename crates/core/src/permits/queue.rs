//! The queued slots of one workflow, its live runs, and the terms on which its slots run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{PoolId, PoolUse, Slot, SlotKey, WorkflowId};

/// A position in the queue of a workflow: the largest priority goes first, then of slots by time the oldest, and of jobs the
/// one that was queued first; of several that were queued at the same moment the one whose id comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) priority: Reverse<i32>,
    /// Since when a job is queued; none for slots by time.
    queued_at: Option<Timestamp>,
    age: Age,
    pub(crate) key: SlotKey,
}

/// How old a slot is for its turn: by its time or the moment at which it came to be, whichever it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Age {
    Since(Timestamp),
    /// It has neither, and comes after all that have.
    Undated,
}

/// The position of a workflow in all lines that it waits in: by the slot that goes next, priority first, then the oldest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinePosition {
    pub(super) priority: Reverse<i32>,
    pub(super) age: Age,
    pub(crate) key: SlotKey,
    pub(crate) workflow: WorkflowId,
}

impl Position {
    /// The position of a slot once it is queued.
    pub(crate) fn of(slot: &Slot, key: &SlotKey) -> Position {
        let queued_at = key.job().map(|_| slot.since);
        let age = key.time().map_or(Age::Undated, Age::Since);
        Position { priority: Reverse(slot.priority), queued_at, age, key: key.clone() }
    }

    /// The position of its workflow in the lines of pools, while it goes next.
    pub(crate) fn in_line(&self, workflow: &WorkflowId) -> LinePosition {
        LinePosition { priority: self.priority, age: self.age, key: self.key.clone(), workflow: workflow.clone() }
    }
}

/// The terms on which the slots of a workflow run: they follow from its definition, its pauses and its workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// Runs at a time.
    pub(crate) concurrency: Option<u32>,
    /// The permits of pools that each run takes.
    pub(crate) pools: Vec<PoolUse>,
    /// Whether the workflow is defined: only then do its sizes of pools count.
    pub(crate) is_present: bool,
    /// Whether it is paused.
    pub(crate) is_paused: bool,
    /// Whether workers run its jobs.
    pub(crate) by_workers: bool,
}

/// The queue of a workflow, its live runs, and its position in the lines of its pools.
#[derive(Default)]
pub(crate) struct Queue {
    pub(super) terms: Terms,
    /// Queued slots in the order in which they go, and since when each is queued.
    waiting: BTreeMap<Position, Timestamp>,
    /// Slots with a live run.
    alive: BTreeSet<SlotKey>,
    /// Its position in the lines of its pools, and since when the slot that it has there is queued.
    pub(super) in_line: Option<(LinePosition, Timestamp)>,
    /// When it becomes starved in the lines of its pools.
    pub(super) patient_until: Option<Timestamp>,
    /// Whether it waits for the global limit.
    pub(super) is_starved: bool,
}

impl Queue {
    /// Puts a slot into the queue.
    pub(super) fn insert(&mut self, position: Position, since: Timestamp) {
        self.waiting.insert(position, since);
    }

    /// Takes a slot out of the queue. Says whether it was there.
    pub(super) fn remove(&mut self, position: &Position) -> bool {
        self.waiting.remove(position).is_some()
    }

    /// Since when a slot is queued; none where it isn't.
    pub(super) fn since(&self, position: &Position) -> Option<Timestamp> {
        self.waiting.get(position).copied()
    }

    /// Counts the run of a slot. Says whether it was not counted yet.
    pub(super) fn begin(&mut self, key: &SlotKey) -> bool {
        self.alive.insert(key.clone())
    }

    /// Counts the run of a slot no more. Says whether it was counted.
    pub(super) fn end(&mut self, key: &SlotKey) -> bool {
        self.alive.remove(key)
    }

    /// Its live runs.
    pub(crate) fn active(&self) -> u32 {
        u32::try_from(self.alive.len()).unwrap_or(u32::MAX)
    }

    /// The slots with live runs.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &SlotKey> {
        self.alive.iter()
    }

    /// Runs at a time, where they have a limit.
    pub(crate) fn concurrency(&self) -> Option<u32> {
        self.terms.concurrency
    }

    /// How many more runs that allows; as many as anybody can count where there is no limit.
    pub(crate) fn places(&self) -> u32 {
        self.terms.concurrency.map_or(u32::MAX, |limit| limit.saturating_sub(self.active()))
    }

    /// The permits of a pool that a run takes; none where it takes none.
    pub(crate) fn permits(&self, pool: &PoolId) -> Option<u32> {
        self.terms.pools.iter().find(|one| one.pool == *pool).map(|one| one.permits)
    }

    /// Whether its slots may go as far as its definition and its pauses are concerned.
    pub(crate) fn is_open(&self) -> bool {
        self.terms.is_present && !self.terms.is_paused
    }

    /// How many slots are queued.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The queued slots in order, and since when each is queued.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Position, Timestamp)> {
        self.waiting.iter().map(|(position, since)| (position, *since))
    }

    /// How many slots go before a position.
    pub(crate) fn ahead(&self, position: &Position) -> usize {
        self.waiting.range(..position).count()
    }

    /// How many slots go before a position in a line of pools.
    pub(crate) fn ahead_in_line(&self, id: &WorkflowId, other: &LinePosition) -> usize {
        let goes_first = |position: &&Position| position.in_line(id) < *other;
        self.waiting.keys().take_while(goes_first).count()
    }
}
