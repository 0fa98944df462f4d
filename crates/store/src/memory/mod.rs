//! The store in memory: for tests, and for programs that need no state after they end.

mod blocks;
mod bound;
mod local;
mod reader;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kelos_model::{FactKey, Run};

use crate::contract::{Commit, Journal, Lease, SlotRow, Snapshot, StoreError, StoredState, Watch};
use crate::queries::Queries;
use crate::unreadable::UnreadableRow;
use bound::EndedSlots;
use kelos_model::Recall;
pub use local::MemoryCopies;
use state::State;

/// The data of a [`MemoryStore`], which outlives it as a disk outlives a process.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
    copies: MemoryCopies,
    is_full: Arc<AtomicBool>,
}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves no room for what nodes write to it, or some again.
    pub fn fill(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Release);
    }

    /// Fails while there is no room.
    fn has_room(&self) -> Result<(), StoreError> {
        match self.is_full.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(StoreError::Medium { doing: "write to the memory".to_owned(), cause: "it is full".to_owned() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store in memory. Several may share a [`MemoryDisk`]: one leads, the others stand by. Dropping the
/// leading one is like the crash of its process: the next may lead at once. One that is not dropped
/// may be replaced as leader once its lease has expired.
#[derive(Debug, Default)]
pub struct MemoryStore {
    disk: MemoryDisk,
    epoch: Option<u64>,
}

impl MemoryStore {
    /// A store on a disk of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store on a disk of its own that keeps so many of the slots that have ended, or a few more, and forgets those that ended before them:
    /// their events and runs, and all of a slot that came to be by a request. It is for programs that run for long.
    #[must_use]
    pub fn keeping(slots: usize) -> Self {
        let store = Self::default();
        store.disk.state().bound = Some(EndedSlots::new(slots));
        store
    }

    /// A store on a disk that may hold something already.
    #[must_use]
    pub fn on(disk: &MemoryDisk) -> Self {
        Self { disk: disk.clone(), epoch: None }
    }

    /// The disk, to open another store on it.
    #[must_use]
    pub fn disk(&self) -> MemoryDisk {
        self.disk.clone()
    }
}

impl StoredState for MemoryStore {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.disk.state().restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        Ok(self.disk.state().recall(recall))
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        let state = self.disk.state();
        Ok(seqs.iter().filter_map(|seq| state.runs.get(seq).map(|run| Run::clone(run))).collect())
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        let state = self.disk.state();
        Ok(names.iter().filter(|name| state.facts.contains_key(name)).cloned().collect())
    }

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.disk.state().unread.values().cloned().collect()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(self.disk.clone()))
    }

    fn reader(&self) -> Arc<dyn Queries> {
        Arc::new(self.disk.clone())
    }
}

impl Journal for MemoryStore {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        let ttl = SignedDuration::from_millis(i64::try_from(ttl_millis).unwrap_or(i64::MAX));
        let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
        self.epoch = self.disk.state().lease(self.epoch, node, now, until);
        Ok(self.epoch.map(|epoch| Lease { epoch }))
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.disk.state().release(lease.epoch);
        self.epoch = self.epoch.filter(|epoch| *epoch != lease.epoch);
        Ok(())
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        self.disk.state().commit(lease, commit)
    }
}

impl Watch for MemoryDisk {
    fn last_turn(&mut self) -> Result<u64, StoreError> {
        Ok(self.state().turns.last().map_or(0, |turn| turn.turn))
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        if let Some(epoch) = self.epoch {
            self.disk.state().abandon(epoch);
        }
    }
}
