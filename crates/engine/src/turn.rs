//! The one law of the loop: step, commit, only then act.
//!
//! A turn feeds inputs to the core, commits the events together with the rows that they fold to in one transaction, and
//! returns the commands. No command is performed before the commit. A failed commit, or a failed read of the past, ends
//! these turns: drop them and restore, for that is the only way of recovery.
//!
//! A turn in which an invariant breaks is dropped in the same way, and these turns continue from what is stored: its
//! inputs are fed again, one by one, in turns of their own. The workflow that one breaks is frozen, and the input is
//! fed once more; if it breaks an invariant of a frozen workflow, it is set aside. An input that concerns all
//! workflows, a tick or the definitions, can't be set aside.
//!
//! What is stored must be readable. A turn that could not be read back is dropped in the same way, before anything is
//! written, and the input at fault is refused. A workflow of which a stored row can't be read is frozen.
//!
//! Synchronous, without clock, threads or tasks, so that the engine and the simulator run the same code.

mod refusing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::{Command, Config, Core, Input, Offer, Past, RestoredState, StepError};
use kelos_model::ranges::Range;
use kelos_model::workflow::{DefinedVersion, Provenance};
use kelos_model::{
    Breach, Event, EventRecord, FactKey, Invariant, Recall, Run, Slot, SlotEvent, SlotRef, Workflow, WorkflowId,
};
use kelos_store::{
    Commit, Journal, Lease, Queries, ReadBack, SlotRow, Snapshot, StoreError, Unreadable, UnreadableRow, read_back,
};

/// The core, and the lease under which its results are committed.
pub struct Turns {
    core: Core,
    config: Config,
    lease: Lease,
    sources: BTreeMap<String, Arc<str>>,
    standing: CoreMemory,
    /// The broken invariants of a turn that was dropped, which did not break again when its inputs were fed one by one.
    suspects: BTreeSet<(Invariant, WorkflowId)>,
    /// The workflows that were frozen because of a row that can't be read: one that was resumed since then goes on
    /// without what can't be read.
    unread: BTreeSet<WorkflowId>,
}

/// Inputs of committed turns that are only in memory: a core that is restored between two turns needs them again.
#[derive(Default)]
struct CoreMemory {
    /// In the order in which their provenances first had some.
    definitions: Vec<(Provenance, Vec<Arc<Workflow>>)>,
    /// The offers of workers, less what was assigned to them meanwhile.
    offers: BTreeMap<Arc<str>, Offer>,
}

impl CoreMemory {
    fn note(&mut self, input: &Input, events: &[EventRecord]) {
        match input {
            Input::Definitions { provenance, all, .. } => {
                match self.definitions.iter_mut().find(|(known, _)| known == provenance) {
                    Some((_, before)) => before.clone_from(all),
                    None => self.definitions.push((*provenance, all.clone())),
                }
            }
            Input::Offered { worker, offer: Some(offer) } => drop(self.offers.insert(worker.clone(), offer.clone())),
            Input::Offered { worker, offer: None } => drop(self.offers.remove(worker)),
            _ => {}
        }
        for record in events {
            if let Event::Slot { what: SlotEvent::Dispatched { worker: Some(worker), .. }, .. } = &record.event
                && let Some(offer) = self.offers.get_mut(worker.as_str())
            {
                offer.free = offer.free.saturating_sub(1);
            }
        }
    }

    /// The same once more; no project is deployed by it.
    fn inputs(&self) -> Vec<Input> {
        let definitions = self.definitions.iter();
        let definitions = definitions.map(|(provenance, all)| Input::Definitions {
            provenance: *provenance,
            all: all.clone(),
            deployed: BTreeMap::default(),
        });
        let offers = self.offers.iter();
        let offers =
            offers.map(|(worker, offer)| Input::Offered { worker: worker.clone(), offer: Some(offer.clone()) });
        definitions.chain(offers).collect()
    }
}

/// The reason for which turns ended.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An invariant of a workflow breaks in what concerns all, although it is frozen.
    #[error("continue: an internal check of the scheduler failed that concerns more than the frozen workflow: {0}")]
    Broken(Breach),
    /// A turn could not be read back, and nobody is there who could be refused.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// An invariant that broke, and what became of it.
#[derive(Debug)]
pub struct BreachReport {
    /// The invariant, and its subject.
    pub breach: Breach,
    /// The input that broke it, as a text.
    pub input: String,
    /// The remedy.
    pub remedy: Remedy,
}

/// A remedy of a broken invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The turn was taken again from what is stored, and it did not break: memory was wrong.
    Repeated,
    /// The workflow was frozen.
    Frozen,
    /// The workflow was frozen already, and the input was set aside.
    SetAside,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub struct TurnResult {
    /// The commands to perform now, in order.
    pub commands: Vec<Command>,
    /// The number of committed events.
    pub events: usize,
    /// The broken invariants.
    pub broken: Vec<BreachReport>,
    /// The inputs that were refused because what they led to could not be read back: what, and why.
    pub refused: Vec<String>,
}

impl TurnResult {
    fn and(&mut self, next: TurnResult) {
        self.commands.extend(next.commands);
        self.events += next.events;
        self.broken.extend(next.broken);
        self.refused.extend(next.refused);
    }
}

impl Turns {
    /// Continues at the end of the store's log. The commands ask executors about runs that were live.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn restore(
        config: Config,
        store: &mut dyn Journal,
        lease: Lease,
        now: Timestamp,
    ) -> Result<(Turns, Vec<Command>), StoreError> {
        let (core, commands) = restored(&config, store, now)?;
        Ok((
            Turns {
                core,
                config,
                lease,
                sources: BTreeMap::new(),
                standing: CoreMemory::default(),
                suspects: BTreeSet::new(),
                unread: BTreeSet::new(),
            },
            commands,
        ))
    }

    /// The texts that the next definitions come from; kept with their history.
    pub fn set_sources(&mut self, sources: BTreeMap<String, Arc<str>>) {
        self.sources = sources;
    }

    /// Takes inputs at a moment and commits what they led to: in one turn, unless an invariant breaks.
    ///
    /// # Errors
    /// When the store can't be read or written, or an invariant breaks that can't be kept from the others. Whatever was not
    /// committed is lost then, no command was handed out, and these turns must not be used any more.
    pub fn turn(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<TurnResult, TurnError> {
        let inputs: Vec<Input> = inputs.into_iter().collect();
        match self.attempt(store, now, &inputs) {
            Err(TurnError::Broken(breach)) => self.one_by_one(store, now, inputs, breach),
            Err(TurnError::Unreadable(_)) => self.feed_anew(store, now, inputs),
            other => other,
        }
    }

    /// One turn for inputs, all or nothing. Where it fails the core must not be used any more.
    fn attempt(&mut self, store: &mut dyn Journal, now: Timestamp, inputs: &[Input]) -> Result<TurnResult, TurnError> {
        let (mut events, mut commands, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for input in inputs {
            let step = self.core.step(now, input.clone(), &mut StorePast(store)).map_err(|error| match error {
                StepError::Past(error) => TurnError::Store(error),
                StepError::Broken(breach) => TurnError::Broken(breach),
            })?;
            events.extend(step.events);
            ends.push(events.len());
            commands.extend(step.commands);
        }
        let count = events.len();
        let commit = self.commit_of(now, events);
        if let Some(breach) = self.unread_row(store) {
            return Err(TurnError::Broken(breach));
        }
        let how_much = if cfg!(debug_assertions) { ReadBack::Whole } else { store.reads_back() };
        read_back(&commit, how_much)?;
        if !commit.is_empty() {
            store.commit(self.lease, &commit)?;
        }
        self.core.settle();
        let mut from = 0;
        for (input, end) in inputs.iter().zip(ends) {
            self.standing.note(input, commit.events.get(from..end).unwrap_or_default());
            from = end;
        }
        Ok(TurnResult { commands, events: count, ..TurnResult::default() })
    }

    /// The breach of a workflow of which a row was met that can't be read, or a run follows a definition that can't, unless it is frozen or
    /// was.
    fn unread_row(&mut self, store: &dyn Journal) -> Option<Breach> {
        let met = store.unreadable();
        for breach in met.iter().filter_map(UnreadableRow::breach).chain(self.core.lost_runs()) {
            match self.core.is_frozen(&breach.workflow) {
                Some(false) if !self.unread.contains(&breach.workflow) => return Some(breach),
                Some(true) => drop(self.unread.insert(breach.workflow)),
                _ => {}
            }
        }
        None
    }

    /// Feeds the inputs of a turn that was dropped once more, each in a turn of its own. A tick does only so much, and may not
    /// come as far as the one that broke: what breaks for the second time is frozen before.
    fn one_by_one(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        inputs: Vec<Input>,
        breach: Breach,
    ) -> Result<TurnResult, TurnError> {
        let mut acted = self.start_over(store, now)?;
        let is_suspect = !self.suspects.insert((breach.invariant, breach.workflow.clone()));
        if is_suspect && self.core.is_frozen(&breach.workflow) == Some(false) {
            acted.and(self.freeze(store, now, breach.clone(), "a turn".to_owned())?);
        }
        for input in inputs {
            acted.and(self.feed(store, now, input)?);
        }
        if acted.broken.is_empty() {
            acted.broken.push(BreachReport { breach, input: "a turn".to_owned(), remedy: Remedy::Repeated });
        }
        Ok(acted)
    }

    fn freeze(
        &mut self,
        store: &mut dyn Journal,
        now: Timestamp,
        breach: Breach,
        input: String,
    ) -> Result<TurnResult, TurnError> {
        let mut acted = self.attempt(store, now, &[Input::Freeze(breach.clone())])?;
        acted.broken.push(BreachReport { breach, input, remedy: Remedy::Frozen });
        Ok(acted)
    }

    /// Feeds one input. Where it breaks an invariant the workflow is frozen first; where that is frozen already the input is set aside.
    fn feed(&mut self, store: &mut dyn Journal, now: Timestamp, mut input: Input) -> Result<TurnResult, TurnError> {
        let mut acted = TurnResult::default();
        loop {
            let breach = match self.attempt(store, now, std::slice::from_ref(&input)) {
                Ok(next) => {
                    acted.and(next);
                    return Ok(acted);
                }
                Err(TurnError::Broken(breach)) => breach,
                Err(TurnError::Unreadable(unreadable)) => {
                    acted.and(self.start_over(store, now)?);
                    match self.refuse(store, now, input, unreadable, &mut acted)? {
                        Some(instead) => input = instead,
                        None => return Ok(acted),
                    }
                    continue;
                }
                Err(other) => return Err(other),
            };
            acted.and(self.start_over(store, now)?);
            let (words, is_for_all) = (input.words(), matches!(input, Input::Woke { .. } | Input::Definitions { .. }));
            if self.core.is_frozen(&breach.workflow) == Some(false) {
                let is_unread = breach.invariant == Invariant::RowsAreReadable;
                acted.and(self.freeze(store, now, breach.clone(), words.clone())?);
                // A request that needs what can't be read would go on without it.
                if !(is_unread && matches!(input, Input::Asked { .. })) {
                    continue;
                }
            }
            if is_for_all {
                return Err(TurnError::Broken(breach));
            }
            let set_aside = Input::SetAside { breach: breach.clone(), input: Box::new(input) };
            acted.and(self.attempt(store, now, &[set_aside])?);
            acted.broken.push(BreachReport { breach, input: words, remedy: Remedy::SetAside });
            return Ok(acted);
        }
    }

    /// Continues from what is stored, with the inputs that were only in memory.
    fn start_over(&mut self, store: &mut dyn Journal, now: Timestamp) -> Result<TurnResult, TurnError> {
        let mut acted = TurnResult::default();
        loop {
            let (core, commands) = restored(&self.config, store, now)?;
            self.core = core;
            acted.commands.extend(commands);
            let standing = self.standing.inputs();
            let breach = match self.attempt(store, now, &standing) {
                Ok(next) => {
                    acted.and(next);
                    return Ok(acted);
                }
                Err(TurnError::Broken(breach)) => breach,
                Err(other) => return Err(other),
            };
            let (core, _) = restored(&self.config, store, now)?;
            self.core = core;
            if self.core.is_frozen(&breach.workflow) != Some(false) {
                return Err(TurnError::Broken(breach));
            }
            acted.and(self.freeze(store, now, breach, "the definitions".to_owned())?);
        }
    }

    fn commit_of(&mut self, at: Timestamp, events: Vec<EventRecord>) -> Commit {
        let rows = self.core.rows();
        Commit {
            at,
            events,
            slots: rows.slots.into_iter().map(|(id, slot)| SlotRow { id, slot }).collect(),
            runs: rows.runs,
            sources: if rows.workflows.is_empty() { BTreeMap::new() } else { self.sources.clone() },
            workflows: rows.workflows,
            unread: BTreeMap::new(),
            backfills: rows.backfills,
            registers: rows.registers,
            facts: rows.facts,
            trim: rows.trim,
        }
    }

    /// The scheduler's state, for reading.
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

/// A core that continues at the end of the store's log. The commands ask executors about runs that were live.
fn restored(config: &Config, store: &mut dyn Journal, now: Timestamp) -> Result<(Core, Vec<Command>), StoreError> {
    let snapshot = store.restore()?;
    let pinned = pinned(&*store.reader(), &snapshot)?;
    let restored = RestoredState {
        seq: snapshot.last_seq,
        workflows: snapshot.workflows,
        slots: snapshot.slots.into_iter().map(|row| (row.id, row.slot)).collect(),
        runs: snapshot.runs,
        backfills: snapshot.backfills,
        pinned,
    };
    Ok(Core::restore(config.clone(), restored, now))
}

/// The definitions that live runs of flows follow, where these are not the present ones.
fn pinned(reader: &dyn Queries, snapshot: &Snapshot) -> Result<Vec<(u32, Arc<Workflow>)>, StoreError> {
    let followed = snapshot.slots.iter().filter_map(|row| Some((&row.id.workflow, row.slot.run_of_flow()?.definition)));
    let followed: BTreeSet<(&WorkflowId, u32)> = followed.filter(|(_, number)| *number > 0).collect();
    let mut pinned = Vec::new();
    for (id, number) in followed {
        if !snapshot.workflows.iter().any(|row| row.id == *id && row.version == number) {
            let past = reader.definitions(id, Some(number))?.pop();
            pinned.extend(past.map(|past| (number, Arc::new(past.definition))));
        }
    }
    Ok(pinned)
}

/// The past as a store returns it.
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

    fn definitions(&mut self, workflow: &WorkflowId) -> Result<Vec<DefinedVersion>, StoreError> {
        self.0.reader().defined_versions(workflow)
    }

    fn definition(&mut self, workflow: &WorkflowId, number: u32) -> Result<Option<Arc<Workflow>>, StoreError> {
        Ok(self.0.reader().definitions(workflow, Some(number))?.pop().map(|past| Arc::new(past.definition)))
    }

    fn steps(&mut self, run: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, StoreError> {
        self.recall(&Recall::Steps(run.clone()))
    }

    fn runs(&mut self, dispatched: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.0.recall_runs(dispatched)
    }
}
