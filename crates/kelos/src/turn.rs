//! The one law of the loop: step, commit, only then act.
//!
//! A turn feeds inputs to the core, commits the events together with the rows that they fold to in one
//! transaction, and hands out the commands. Nobody performs a command before the commit. A commit
//! that fails ends these turns: drop them and restore, for recovery is the only way back.
//!
//! Synchronous, without clock, threads or tasks, so that the engine and the simulator run the same code.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Command, Config, Core, Input, Restored, Step};
use kelos_store::{Commit, Lease, SlotRow, Store, StoreError};

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
        store: &mut dyn Store,
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
        store: &mut dyn Store,
        now: Timestamp,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Acted, StoreError> {
        let mut turn = Step::default();
        for input in inputs {
            self.feed(store, now, input, &mut turn)?;
        }
        let events = turn.events.len();
        let commit = self.commit_of(now, turn.events);
        if !commit.is_empty() {
            store.commit(self.lease, &commit)?;
        }
        self.core.settle();
        Ok(Acted { commands: turn.commands, events })
    }

    /// Feeds one input, and answers at once what the core asks of the store. A tick goes on after
    /// such an answer, because it may have been what the tick waited for.
    fn feed(&mut self, store: &mut dyn Store, now: Timestamp, input: Input, turn: &mut Step) -> Result<(), StoreError> {
        let mut pending = VecDeque::from([input]);
        while let Some(input) = pending.pop_front() {
            let tick_again = match &input {
                Input::Woke { only, .. } => Some(Input::Woke { only: only.clone(), look_again: false }),
                _ => None,
            };
            let step = self.core.step(now, input);
            turn.events.extend(step.events);
            let mut recalled = false;
            for command in step.commands {
                match command {
                    Command::Recall(recall) => {
                        let rows = store.recall(&recall)?.into_iter().map(|row| (row.id, row.slot)).collect();
                        pending.push_back(Input::Recalled { recall, rows });
                        recalled = true;
                    }
                    Command::AskFacts(asked) => {
                        let known = store.known_facts(&asked)?;
                        pending.push_back(Input::KnownFacts { asked, known });
                    }
                    other => turn.commands.push(other),
                }
            }
            pending.extend(tick_again.filter(|_| recalled));
        }
        Ok(())
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
