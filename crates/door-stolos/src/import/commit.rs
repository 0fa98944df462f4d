//! The next commit of an import: events, and the rows that they fold to.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, Slot, SlotEvent, SlotRef, WorkflowEvent, slot};
use kelos_store::{Commit, Journal, Lease, SlotRow, StoreError};

/// Events that are committed at once, so that memory and transactions stay small.
const LARGEST: usize = 20_000;

/// The next commit.
pub(super) struct NextCommit {
    /// The lease; none for a dry run.
    lease: Option<Lease>,
    first: u64,
    seq: u64,
    now: Timestamp,
    commit: Commit,
}

impl NextCommit {
    pub(super) fn new(lease: Option<Lease>, last_seq: u64, now: Timestamp) -> NextCommit {
        NextCommit { lease, first: last_seq, seq: last_seq, now, commit: Commit::default() }
    }

    /// How many events were written, or would have been.
    pub(super) fn written(&self) -> u64 {
        self.seq - self.first
    }

    pub(super) fn flush_if_large(&mut self, store: &mut dyn Journal) -> Result<(), StoreError> {
        if self.commit.events.len() < LARGEST { Ok(()) } else { self.flush(store) }
    }

    pub(super) fn flush(&mut self, store: &mut dyn Journal) -> Result<(), StoreError> {
        let commit = Commit { at: self.now, ..std::mem::take(&mut self.commit) };
        match self.lease {
            Some(lease) if !commit.is_empty() => store.commit(lease, &commit),
            _ => Ok(()),
        }
    }

    fn log(&mut self, previous: u64, event: Event) {
        self.seq += 1;
        self.commit.events.push(EventRecord { seq: self.seq, at: self.now, previous, event });
    }

    /// A workflow that is new, with the text of its file.
    pub(super) fn workflow(&mut self, row: WorkflowRow, source: Option<(String, Arc<str>)>, what: WorkflowEvent) {
        self.log(0, Event::Workflow { workflow: row.id.clone(), what });
        self.commit.sources.extend(source);
        self.commit.workflows.push(row);
    }

    /// Applies an event to a slot, and notes both. An event that is impossible in its state is skipped.
    pub(super) fn slot(&mut self, id: &SlotRef, before: Option<&Slot>, what: SlotEvent) {
        let previous = before.map_or(0, |slot| slot.last_event);
        let Some(after) = slot::apply(before.cloned(), &what, self.now, self.seq + 1) else {
            debug_assert!(false, "{what:?} was to happen to {id}");
            return;
        };
        self.log(previous, Event::Slot { slot: id.clone(), what });
        self.commit.slots.push(SlotRow { id: id.clone(), slot: after });
    }
}
