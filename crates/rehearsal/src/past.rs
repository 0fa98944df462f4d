//! A store in memory that also knows the slots before a play, without their history.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall, Run, Slot};
use kelos_store::{Commit, Journal, Lease, MemoryStore, Queries, SlotRow, Snapshot, StoreError, StoredState, Watch};

use super::stage::Past;
use super::steps::FlowNews;

/// Adds a past to what a store in memory recalls.
pub(super) struct PastStore {
    pub(super) inner: MemoryStore,
    /// The slots before the start; none if there are none.
    pub(super) past: Option<Past>,
    /// The news about flows.
    pub(super) news: FlowNews,
}

impl PastStore {
    fn add_past(&self, recall: &Recall, rows: &mut Vec<SlotRow>) {
        let (Some(past), Recall::Slots(slots)) = (&self.past, recall) else { return };
        let unknown = slots.iter().filter(|id| !rows.iter().any(|row| row.id == **id));
        let supposed: Vec<SlotRow> = unknown
            .filter_map(|id| {
                Some(SlotRow { id: id.clone(), slot: Slot::new(past.state_of(id)?, Timestamp::UNIX_EPOCH) })
            })
            .collect();
        rows.extend(supposed);
        rows.sort_by(|a, b| a.id.cmp(&b.id));
    }
}

impl StoredState for PastStore {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.inner.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        let mut rows = self.inner.recall(recall)?;
        self.add_past(recall, &mut rows);
        Ok(rows)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.inner.recall_runs(seqs)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.inner.known_facts(names)
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch()
    }

    fn reader(&self) -> Arc<dyn Queries> {
        self.inner.reader()
    }
}

impl Journal for PastStore {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.inner.lease(node, now, ttl_millis)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        self.inner.commit(lease, commit)?;
        self.news.note(commit);
        Ok(())
    }
}
