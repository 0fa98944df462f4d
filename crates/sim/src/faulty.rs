//! A store that fails: before it wrote, or after, so that the word of success is lost.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall};
use kelos_store::{Commit, Lease, MemoryDisk, MemoryStore, Reader, SlotRow, Snapshot, Store, StoreError};

use crate::rng::Rng;

/// A memory store with faults drawn from a seed.
pub struct FaultyStore {
    inner: MemoryStore,
    rng: Rng,
    /// How often in a thousand an operation fails.
    pub per_mille: u64,
}

impl FaultyStore {
    /// A store on a disk.
    #[must_use]
    pub fn on(disk: &MemoryDisk, seed: u64, per_mille: u64) -> FaultyStore {
        FaultyStore { inner: MemoryStore::on(disk), rng: Rng::new(seed), per_mille }
    }

    fn fails(&mut self) -> bool {
        self.rng.below(1000) < self.per_mille
    }
}

fn broken(doing: &str) -> StoreError {
    StoreError::Medium { doing: doing.to_owned(), cause: "the simulated disk failed".to_owned() }
}

impl Store for FaultyStore {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.inner.lease(node, now, ttl_millis)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.inner.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        if self.fails() { Err(broken("recall slots")) } else { self.inner.recall(recall) }
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        if self.fails() { Err(broken("recall facts")) } else { self.inner.known_facts(names) }
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<kelos_model::Run>, StoreError> {
        self.inner.recall_runs(seqs)
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        if self.fails() {
            return Err(broken("commit a turn"));
        }
        self.inner.commit(lease, commit)?;
        if self.fails() { Err(broken("hear that a turn was committed")) } else { Ok(()) }
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.inner.reader()
    }
}
