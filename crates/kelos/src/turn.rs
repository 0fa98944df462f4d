//! The one law of the loop: step, commit, only then act.
//!
//! A turn feeds inputs to the core, commits the events together with the rows that they fold to in one
//! transaction, and hands out the commands. Nobody performs a command before the commit. A read of the past or a commit
//! that fails ends these turns: drop them and restore, for recovery is the only way back.
//!
//! Synchronous, without clock, threads or tasks, so that the engine and the simulator run the same code.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Command, Config, Core, Input, Past, Restored};
use kelos_model::ranges::Range;
use kelos_model::{FactKey, Recall, Slot, SlotRef, WorkflowId};
use kelos_store::{Commit, Journal, Lease, SlotRow, StoreError};

/// The core and the right to write what it says.
pub struct Turns {
    core: Core,
    lease: Lease,
    sources: BTreeMap<String, Arc<str>>,
}

/// What a turn led to.
#[derive(Debug)]
pub struct Acted {
    /// What is to be done now, in order.
    pub commands: Vec<Command>,
    /// How many events were committed.
    pub events: usize,
}

impl Turns {
    /// Goes on where the store's log ends. The commands ask executors about runs that were alive.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn restore(
        config: Config,
        store: &mut dyn Journal,
        lease: Lease,
        now: Timestamp,
    ) -> Result<(Turns, Vec<Command>), StoreError> {
        let snapshot = store.restore()?;
        let restored = Restored {
            seq: snapshot.last_seq,
            workflows: snapshot.workflows,
            slots: snapshot.slots.into_iter().map(|row| (row.id, row.slot)).collect(),
            runs: snapshot.runs,
            backfills: snapshot.backfills,
        };
        let (core, commands) = Core::restore(config, restored, now);
        Ok((Turns { core, lease, sources: BTreeMap::new() }, commands))
    }

    /// The texts that the next definitions come from; kept with their history.
    pub fn set_sources(&mut self, sources: BTreeMap<String, Arc<str>>) {
        self.sources = sources;
    }

    /// Takes inputs at a moment and commits what they led to.
    ///
    /// # Errors
    /// When the store can't be read or written. Nothing was written then, no command was handed out,
    /// and these turns must not be used any more.
    pub fn turn(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Acted, StoreError> {
        let (mut events, mut commands) = (Vec::new(), Vec::new());
        for input in inputs {
            let step = self.core.step(now, input, &mut StorePast(store))?;
            events.extend(step.events);
            commands.extend(step.commands);
        }
        let count = events.len();
        let commit = self.commit_of(now, events);
        if !commit.is_empty() {
            store.commit(self.lease, &commit)?;
        }
        self.core.settle();
        Ok(Acted { commands, events: count })
    }

    fn commit_of(&mut self, at: Timestamp, events: Vec<kelos_model::EventRecord>) -> Commit {
        let rows = self.core.rows();
        Commit {
            at,
            events,
            slots: rows.slots.into_iter().map(|(id, slot)| SlotRow { id, slot }).collect(),
            runs: rows.runs,
            sources: if rows.workflows.is_empty() { BTreeMap::new() } else { self.sources.clone() },
            workflows: rows.workflows,
            backfills: rows.backfills,
            registers: rows.registers,
            facts: rows.facts,
        }
    }

    /// The scheduler's state, to look at.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The right to write that these turns hold.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease
    }
}

/// The past as a store has it.
struct StorePast<'a>(&'a mut dyn Journal);

impl StorePast<'_> {
    fn recall(&mut self, recall: &Recall) -> Result<Vec<(SlotRef, Slot)>, StoreError> {
        Ok(self.0.recall(recall)?.into_iter().map(|row| (row.id, row.slot)).collect())
    }
}

impl Past for StorePast<'_> {
    type Error = StoreError;

    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, StoreError> {
        self.recall(&Recall::Slots(ids.to_vec()))
    }

    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, StoreError> {
        self.recall(&Recall::Range { workflow: workflow.clone(), start: range.start, end: range.end })
    }

    fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.0.known_facts(names)
    }
}
