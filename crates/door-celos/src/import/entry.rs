//! Events and the rows that they fold to, before their commit.

use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{
    Event, EventRecord, Outcome, Run, RunId, RunState, Slot, SlotEvent, SlotRef, SlotState, WorkflowEvent, WorkflowId,
    slot,
};
use kelos_store::{Commit, Journal, Lease, SlotRow, StoreError};
use serde_json::Value;

use super::EXECUTOR;

/// The next commit.
pub(super) struct Entry {
    /// The lease; none for a dry run.
    lease: Option<Lease>,
    seq: u64,
    now: Timestamp,
    first: u64,
    commit: Commit,
}

impl Entry {
    pub(super) fn new(lease: Option<Lease>, last_seq: u64, now: Timestamp) -> Entry {
        Entry { lease, seq: last_seq, now, first: last_seq, commit: Commit::default() }
    }

    /// How many events wait to be committed.
    pub(super) fn len(&self) -> usize {
        self.commit.events.len()
    }

    /// How many events were written, or would have been.
    pub(super) fn written(&self) -> u64 {
        self.seq - self.first
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

    pub(super) fn workflow(&mut self, row: WorkflowRow, source: Option<(String, Arc<str>)>) {
        self.commit.sources.extend(source);
        self.commit.workflows.push(row);
    }

    pub(super) fn workflow_event(&mut self, id: &WorkflowId, what: WorkflowEvent) {
        self.log(0, Event::Workflow { workflow: id.clone(), what });
    }

    pub(super) fn register(&mut self, bucket: &str, key: &str, value: Value) {
        self.commit.registers.push((bucket.to_owned(), key.to_owned(), Some(value.clone())));
        self.log(
            0,
            Event::Register {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
                value: Some(value),
                by: None,
                reason: None,
            },
        );
    }

    /// Applies an event to a slot, and notes both. An event that is impossible in its state is skipped.
    pub(super) fn slot(&mut self, id: &SlotRef, before: Option<Slot>, what: SlotEvent) {
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let Some(after) = slot::apply(before, &what, self.now, self.seq + 1) else {
            debug_assert!(false, "{what:?} was to happen to {id}");
            return;
        };
        self.commit.runs.extend(self.run(id, &after));
        self.log(previous, Event::Slot { slot: id.clone(), what });
        self.commit.slots.push(SlotRow { id: id.clone(), slot: after });
    }

    /// The run that represents the latest one in Celos.
    fn run(&self, id: &SlotRef, slot: &Slot) -> Option<Run> {
        let outcome = match slot.state {
            _ if slot.last_run == 0 => return None,
            SlotState::Running => None,
            SlotState::Succeeded => Some(Outcome::Succeeded),
            SlotState::Killed => Some(Outcome::Killed),
            _ => Some(Outcome::Failed { reason: "it failed in Celos".to_owned(), exit_status: None, code: None }),
        };
        Some(Run {
            id: RunId { slot: id.clone(), number: slot.last_run },
            seq: slot.last_run_seq,
            previous: 0,
            state: outcome.as_ref().map_or(RunState::Running, Outcome::state),
            executor: EXECUTOR.to_owned(),
            external_id: slot.external_id.clone(),
            dispatched_at: self.now,
            started_at: Some(self.now),
            ended_at: outcome.as_ref().map(|_| self.now),
            outcome,
            arguments: Default::default(),
            outputs: None,
            batch: None,
        })
    }
}
