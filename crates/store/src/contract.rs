//! The contract of a store: the side that writes. [`Queries`] are the side that reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, FactKey, Recall, Run, WorkflowEvent, WorkflowId};

use crate::queries::Queries;
use crate::record::TurnRecord;
use crate::stored::ReadBack;
use crate::unreadable::UnreadableRow;

pub use crate::commit::{Commit, SlotRow};
pub use crate::error::StoreError;

/// The right to write, until another process takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The fencing token: it grows with each change of leader, and every commit carries it.
    pub epoch: u64,
}

/// All that a new leader needs to continue.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Position of the last event in the log; 0 when it is empty.
    pub last_seq: u64,
    /// When that event happened.
    pub last_at: Option<Timestamp>,
    /// The last turn; none before the first.
    pub last_turn: Option<TurnRecord>,
    /// Every workflow that was ever defined.
    pub workflows: Vec<WorkflowRow>,
    /// The live slots ([`Slot::is_live`](kelos_model::Slot::is_live)), steps of flows among them, in no particular order.
    pub slots: Vec<SlotRow>,
    /// All backfills that were ever requested, in no particular order.
    pub backfills: Vec<Backfill>,
    /// The runs that have not ended, in no particular order.
    pub runs: Vec<Run>,
}

/// Watches for new turns, including those that another process or machine commits.
pub trait Watch: Send {
    /// The number of the last turn; 0 before the first. Almost free if there is no new turn, so that it may be called often.
    ///
    /// # Errors
    /// When the medium fails.
    fn last_turn(&mut self) -> Result<u64, StoreError>;
}

/// The state as it was stored, for a leader that continues from it, and at its side. Synchronous, owned by one thread.
pub trait StoredState: Send {
    /// Reads the state from which a new leader continues.
    ///
    /// # Errors
    /// When the medium fails or the data contradicts itself.
    fn restore(&mut self) -> Result<Snapshot, StoreError>;

    /// Reads slots that are not in the engine's memory, ascending by name.
    ///
    /// # Errors
    /// When the medium fails.
    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError>;

    /// Reads runs by the log position of their dispatch, in the order of the question. Those that don't exist are left out.
    ///
    /// # Errors
    /// When the medium fails.
    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError>;

    /// The keys among these that were written before, in the order of the question.
    ///
    /// # Errors
    /// When the medium fails.
    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError>;

    /// The rows that this process has met so far that can't be read. What can be read of them was, and the rest is left out.
    fn unreadable(&self) -> Vec<UnreadableRow> {
        Vec::new()
    }

    /// Watches for turns, whichever process commits them.
    ///
    /// # Errors
    /// When the medium fails.
    fn watch(&self) -> Result<Box<dyn Watch>, StoreError>;

    /// A reader of the same data, for any number of threads.
    fn reader(&self) -> Arc<dyn Queries>;
}

/// The leader's side: the right to write, and turns.
pub trait Journal: StoredState {
    /// Takes or renews the right to write; none while another process holds it. Taking it anew gives a
    /// larger epoch; renewing keeps it. `now` and `ttl_millis` bound the lease unless something better
    /// (a lock that ends with its process) proves that the holder is gone.
    ///
    /// # Errors
    /// When the medium fails.
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError>;

    /// Gives the right to write back, so that a standby need not wait until it expires.
    ///
    /// # Errors
    /// When the medium fails.
    fn release(&mut self, lease: Lease) -> Result<(), StoreError>;

    /// Whether a lease may still be trusted: commands are performed only then. A store whose leader can't be replaced while it is held
    /// up, or that judges what a replaced leader performs, may always say so.
    fn holds(&mut self, _lease: Lease) -> bool {
        true
    }

    /// The interval, in milliseconds, at which a standby should ask for the lease.
    fn stand_by_millis(&self) -> u64 {
        500
    }

    /// How much of each turn is read back before it is committed, in addition to what every build does.
    fn reads_back(&self) -> ReadBack {
        ReadBack::Values
    }

    /// Whether definitions may say that a slot is done again where an outcome is unknown. A log of several machines that is written in an
    /// older form has none that do: programs of before could not follow it.
    fn knows_again(&self) -> bool {
        true
    }

    /// Writes a turn durably: all of it or nothing.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the lease is stale, [`StoreError::Corrupt`] when the events do not
    /// follow the log; otherwise when the medium fails. In each case nothing was written.
    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError>;
}

/// Checks that events continue a log that ends at `last`, without gaps.
///
/// # Errors
/// In words, if they don't.
pub fn follows(last: u64, events: &[EventRecord]) -> Result<(), String> {
    let mut expected = last;
    for record in events {
        expected += 1;
        if record.seq != expected {
            return Err(format!("event {} was to be written as number {expected} of the log", record.seq));
        }
    }
    Ok(())
}

/// The message about an idempotency key that was written before.
pub fn named_before(FactKey { source, about, key }: &FactKey) -> String {
    format!("fact \"{key}\" of \"{source}\" about {about} was to be written again, and a name is written once")
}

/// The moments at which definitions came into force: those of the turn that brought them.
pub struct DefinedAt<'a> {
    named: BTreeMap<&'a WorkflowId, Timestamp>,
    first: Timestamp,
}

impl<'a> DefinedAt<'a> {
    /// Reads them from the events of a turn.
    #[must_use]
    pub fn of(events: &'a [EventRecord]) -> DefinedAt<'a> {
        let defined = |record: &'a EventRecord| match &record.event {
            Event::Workflow { workflow, what: WorkflowEvent::Defined { .. } } => Some((workflow, record.at)),
            _ => None,
        };
        // If there are several, the first counts.
        let named = events.iter().rev().filter_map(defined).collect();
        DefinedAt { named, first: events.first().map_or(Timestamp::UNIX_EPOCH, |record| record.at) }
    }

    /// The moment at which the definition of a workflow in this turn came into force.
    #[must_use]
    pub fn at(&self, workflow: &WorkflowId) -> Timestamp {
        self.named.get(workflow).copied().unwrap_or(self.first)
    }
}
