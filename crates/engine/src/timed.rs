//! A journal that measures how long commits take: turns themselves have no clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_model::{FactKey, Recall, Run};
use kelos_store::{
    Commit, Journal, Lease, Queries, ReadBack, SlotRow, Snapshot, StoreError, StoredState, UnreadableRow, Watch,
};

use crate::timings::Timings;

/// A journal for one turn.
pub(crate) struct TimedJournal<'a> {
    journal: &'a mut dyn Journal,
    timings: &'a Timings,
    /// The time that commits took.
    committing: Duration,
    began: Instant,
}

impl<'a> TimedJournal<'a> {
    pub(crate) fn begin(journal: &'a mut dyn Journal, timings: &'a Timings) -> TimedJournal<'a> {
        TimedJournal { journal, timings, committing: Duration::ZERO, began: Instant::now() }
    }

    /// Counts what was no commit as deciding.
    pub(crate) fn end(self) {
        self.timings.step.add(self.began.elapsed().saturating_sub(self.committing));
    }
}

impl StoredState for TimedJournal<'_> {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.journal.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        self.journal.recall(recall)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.journal.recall_runs(seqs)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.journal.known_facts(names)
    }

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.journal.unreadable()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.journal.watch()
    }

    fn reader(&self) -> Arc<dyn Queries> {
        self.journal.reader()
    }
}

impl Journal for TimedJournal<'_> {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.journal.lease(node, now, ttl_millis)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.journal.release(lease)
    }

    fn holds(&mut self, lease: Lease) -> bool {
        self.journal.holds(lease)
    }

    fn stand_by_millis(&self) -> u64 {
        self.journal.stand_by_millis()
    }

    fn reads_back(&self) -> ReadBack {
        self.journal.reads_back()
    }

    fn knows_again(&self) -> bool {
        self.journal.knows_again()
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        let began = Instant::now();
        let outcome = self.journal.commit(lease, commit);
        let took = began.elapsed();
        self.committing += took;
        if outcome.is_ok() {
            self.timings.commit.add(took);
        }
        outcome
    }
}
