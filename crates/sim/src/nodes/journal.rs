//! The journal of a node.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall, Run};
use kelos_store::log::{LogJournal, LogState};
use kelos_store::{
    Commit, Journal, Lease, MemoryStore, Queries, ReadBack, SlotRow, Snapshot, StoreError, StoredState, UnreadableRow,
    Watch,
};

use super::handle::NodeHandle;
use super::site::TIMING;

/// The journal of a node.
pub(super) struct NodeJournal {
    pub(super) inner: LogJournal<MemoryStore>,
    pub(super) shown: LogState,
    /// Whether it takes its lease for held, as a planted bug.
    pub(super) always_holds: bool,
}

impl NodeJournal {
    /// Asks for the lease.
    pub(super) fn ask(&mut self, handle: &NodeHandle) -> Result<Option<Lease>, StoreError> {
        let lasts = u64::try_from(TIMING.lasts.as_millis()).unwrap_or(u64::MAX);
        self.inner.lease("", handle.clock(), lasts)
    }
}

impl StoredState for NodeJournal {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.inner.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        self.inner.recall(recall)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.inner.recall_runs(seqs)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.inner.known_facts(names)
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

impl Journal for NodeJournal {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.inner.lease(node, now, ttl_millis)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.inner.release(lease)
    }

    fn holds(&mut self, lease: Lease) -> bool {
        self.always_holds || self.inner.holds(lease)
    }

    fn reads_back(&self) -> ReadBack {
        ReadBack::Whole
    }

    fn knows_again(&self) -> bool {
        self.inner.knows_again()
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        self.inner.commit(lease, commit)
    }
}
