//! A store that fails: before a write, or after it, so that the success is not reported.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall};
use kelos_store::{
    Commit, Journal, Lease, MemoryDisk, MemoryStore, Queries, ReadBack, SlotRow, Snapshot, StoreError, StoredState,
    UnreadableRow, Watch,
};

use crate::rng::Rng;
use crate::trims::Whole;

/// A memory store with faults from a seed.
pub struct FaultyStore {
    inner: MemoryStore,
    rng: Rng,
    /// How many of a thousand operations fail.
    pub per_mille: u64,
    /// The disk that keeps what turns remove, if any do.
    whole: Option<Whole>,
}

impl FaultyStore {
    /// A store on a disk.
    #[must_use]
    pub fn on(disk: &MemoryDisk, seed: u64, per_mille: u64) -> FaultyStore {
        FaultyStore { inner: MemoryStore::on(disk), rng: Rng::new(seed), per_mille, whole: None }
    }

    /// The same, with a disk that keeps what turns remove.
    #[must_use]
    pub fn beside(self, whole: Option<&Whole>) -> FaultyStore {
        FaultyStore { whole: whole.cloned(), ..self }
    }

    fn fails(&mut self) -> bool {
        self.rng.below(1000) < self.per_mille
    }
}

fn broken(doing: &str) -> StoreError {
    StoreError::Medium { doing: doing.to_owned(), cause: "the simulated disk failed".to_owned() }
}

impl StoredState for FaultyStore {
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

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.inner.unreadable()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch()
    }

    fn reader(&self) -> Arc<dyn Queries> {
        self.inner.reader()
    }
}

impl Journal for FaultyStore {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.inner.lease(node, now, ttl_millis)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn reads_back(&self) -> ReadBack {
        ReadBack::Whole
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        if self.fails() {
            return Err(broken("commit a turn"));
        }
        self.inner.commit(lease, commit)?;
        self.whole.as_ref().map_or(Ok(()), |whole| whole.keep(commit))?;
        if self.fails() { Err(broken("hear that a turn was committed")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kelos_core::{Ask, Input, Kill};
    use kelos_engine::turn::{TurnError, Turns};
    use kelos_model::{Actor, SlotRef};

    use super::*;
    use crate::workload::Workload;

    #[test]
    fn a_read_of_the_past_that_fails_ends_the_turn_with_the_error_of_the_store() {
        let workload = Workload::new(1);
        let (disk, now) = (MemoryDisk::new(), workload.start);
        let mut store = FaultyStore::on(&disk, 0, 0);
        let lease = store.lease("simulated", now, 10_000).unwrap().unwrap();
        let (mut turns, _) = Turns::restore(workload.config.clone(), &mut store, lease, now).unwrap();
        let all = workload.definitions[0].1.clone();
        let slot = SlotRef::at(all[0].id.clone(), now);
        turns
            .turn(
                &mut store,
                now,
                [Input::Definitions {
                    provenance: kelos_model::workflow::Provenance::File,
                    all,
                    deployed: BTreeMap::new(),
                }],
            )
            .unwrap();
        store.per_mille = 1000;
        let ask = Ask::Kill(Kill { slot, reason: None });
        let failed =
            turns.turn(&mut store, now, [Input::Asked { token: 0, by: Actor::person("somebody"), ask, warrant: None }]);
        let is_of_the_read = |error: TurnError| match error {
            TurnError::Store(StoreError::Medium { doing, .. }) => doing == "recall slots",
            _ => false,
        };
        assert!(failed.is_err_and(is_of_the_read));
    }
}
