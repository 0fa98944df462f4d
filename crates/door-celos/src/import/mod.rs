//! Taking over the state of Celos: once, or again; nothing that Kelos did since is overwritten.
//!
//! The importer is a leader like any other: it holds the lease, so no server works on the data meanwhile, and it
//! writes events together with the slots that they fold to. It decides slot by slot what comes over ([`takeover`])
//! and whether that may stand beside what is there (`weigh`).

mod entry;
mod scripts;
mod takeover;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::WorkflowEvent;
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Actor, Recall, Slot, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};
use kelos_store::{Journal, Lease, StoreError};
use serde::Serialize;
use serde_json::Value;

use crate::celos_db::{CelosDbError, Database, Registers, Trouble, WorkflowRecords};
use entry::Entry;
use weigh::SlotDecision;

pub use takeover::{Arrival, EXECUTOR, FROM, takeover};

/// Events that are committed at once, so that memory and transactions stay small.
const LARGEST_COMMIT: usize = 20_000;

/// How long the lease is asked for. SQLite's lasts as long as the process.
const LEASE_MILLIS: u64 = 60_000;

/// Why nothing, or not all, was imported. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The database of Celos.
    #[error(transparent)]
    Celos(#[from] CelosDbError),
    /// Our own.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server works on the data.
    #[error("take the lead over the database: a server uses it; stop it first")]
    InUse,
}

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The moment of the import, in our log.
    pub now: Timestamp,
    /// The moment that Celos's window and the life of its marks are reckoned from: mostly the same.
    pub as_of: Timestamp,
    /// Take unfinished slots that Celos had forgotten because of their age for live ones.
    pub revive: bool,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// What scripts define now.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// By name.
    pub workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The texts of the files.
    pub sources: BTreeMap<String, Arc<str>>,
}

/// What an import did.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// Workflow by workflow.
    pub workflows: Vec<ImportedWorkflow>,
    /// Registers that came over.
    pub registers: u32,
    /// Registers that were the same already.
    pub same_registers: u32,
    /// Registers that Kelos has, or deleted, since; named `bucket/key`.
    pub kept_registers: Vec<String>,
    /// Files that could not be taken for what their place says.
    pub troubles: Vec<Trouble>,
    /// How many events were written; none when all was there already.
    pub events: u64,
}

impl ImportReport {
    /// Whether nothing came over.
    #[must_use]
    pub fn is_nothing_new(&self) -> bool {
        self.events == 0
    }
}

/// What an import did to a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedWorkflow {
    /// Its name.
    pub id: String,
    /// Whether a script defines it.
    pub defined: bool,
    /// How many slots came over in which state.
    pub imported: BTreeMap<&'static str, u32>,
    /// Slots that stand as they stood there already.
    pub same: u32,
    /// Slots that Kelos has gone on with, and keeps.
    pub kept: Vec<KeptSlot>,
    /// Unfinished slots that Celos had forgotten because of their age.
    pub forgotten: u32,
    /// What became of its pause; none when it is not paused there.
    pub pause: Option<PauseFate>,
    /// The last slot that Celos has a record of.
    pub last: Option<String>,
    /// When it starts, by its script.
    pub start_time: Option<String>,
}

impl ImportedWorkflow {
    /// How many slots came over.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.imported.values().sum()
    }
}

/// A slot that an import left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptSlot {
    /// Which.
    pub time: String,
    /// Its state here.
    pub here: SlotState,
    /// Where it stands there, in Celos's words.
    pub there: String,
}

/// What became of the pause of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseFate {
    /// It is paused now.
    Paused,
    /// It was paused already.
    Same,
    /// Somebody resumed it here; that stays.
    Resumed,
}

/// Imports a database of Celos.
///
/// # Errors
/// When either database can't be read or written, or a server works on ours. What was committed until then stays;
/// the next import goes on from there.
pub fn import(
    store: &mut dyn Journal,
    mut celos: Database,
    definitions: &Definitions,
    options: &ImportOptions,
) -> Result<ImportReport, ImportError> {
    let lease = match options.dry_run {
        true => None,
        false => Some(lead(store, options.now)?),
    };
    let outcome = Import::new(store, lease, definitions, options)?.run(&mut celos);
    if let Some(lease) = lease {
        store.release(lease)?;
    }
    outcome
}

/// Imports what is known of another scheduler's workflows from elsewhere than its files.
///
/// # Errors
/// When our database can't be read or written, or a server works on it.
pub fn import_known(
    store: &mut dyn Journal,
    known: &BTreeMap<WorkflowId, WorkflowRecords>,
    registers: &Registers,
    definitions: &Definitions,
    options: &ImportOptions,
) -> Result<ImportReport, ImportError> {
    let lease = lead(store, options.now)?;
    let mut import = Import::new(store, Some(lease), definitions, options)?;
    for (id, kept) in known {
        import.workflow(id, kept)?;
    }
    import.registers(registers)?;
    let imported = import.finish()?;
    store.release(lease)?;
    Ok(imported)
}

/// Takes the lead over data that nobody works on.
///
/// # Errors
/// When somebody does.
pub fn lead(store: &mut dyn Journal, now: Timestamp) -> Result<Lease, ImportError> {
    store.lease(&format!("import {}", std::process::id()), now, LEASE_MILLIS)?.ok_or(ImportError::InUse)
}

/// An import under way.
struct Import<'a> {
    store: &'a mut dyn Journal,
    definitions: &'a Definitions,
    options: &'a ImportOptions,
    /// What our log says of what people did, where it matters.
    doings: weigh::Doings,
    entry: Entry,
    done: ImportReport,
}

impl<'a> Import<'a> {
    fn new(
        store: &'a mut dyn Journal,
        lease: Option<Lease>,
        definitions: &'a Definitions,
        options: &'a ImportOptions,
    ) -> Result<Import<'a>, StoreError> {
        let reader = store.reader();
        let doings = weigh::Doings::read(&*reader)?;
        let entry = Entry::new(lease, reader.last_seq()?, options.now);
        Ok(Import { store, definitions, options, doings, entry, done: ImportReport::default() })
    }

    fn run(mut self, celos: &mut Database) -> Result<ImportReport, ImportError> {
        let ids: Vec<WorkflowId> = celos.workflows().cloned().collect();
        for id in ids {
            let kept = celos.workflow(&id);
            self.workflow(&id, &kept)?;
        }
        let registers = celos.registers();
        self.registers(&registers)?;
        self.done.troubles.extend(celos.take_troubles());
        Ok(self.finish()?)
    }

    fn finish(mut self) -> Result<ImportReport, StoreError> {
        self.entry.flush(self.store)?;
        self.done.events = self.entry.written();
        Ok(self.done)
    }

    /// Takes over what is kept of a workflow.
    fn workflow(&mut self, id: &WorkflowId, kept: &WorkflowRecords) -> Result<(), StoreError> {
        let arrivals = takeover(kept, self.options.as_of, self.options.revive);
        let definition = self.definitions.workflows.get(id);
        let mut told = ImportedWorkflow {
            id: id.to_string(),
            defined: definition.is_some(),
            start_time: definition.and_then(|one| one.start_time).map(kelos_model::time::format_full),
            last: kept.slots.keys().next_back().map(|time| kelos_model::time::format_full(*time)),
            ..ImportedWorkflow::default()
        };
        let row = self.store.reader().workflow(id)?;
        let existing = self.existing(id, &arrivals)?;
        let coming = self.sort(id, &arrivals, &existing, &mut told)?;
        told.pause = kept.paused.then(|| self.pause_fate(id, row.as_ref()));
        let pauses = told.pause == Some(PauseFate::Paused);
        if row.is_none() || pauses || !coming.is_empty() {
            let row = self.row(id, row, &coming);
            self.write(row, coming, &existing, pauses)?;
        }
        for trouble in kept.troubled_marks(self.options.as_of) {
            self.done.troubles.push(Trouble { path: format!("rerun/{id}/{}", trouble.path), why: trouble.why });
        }
        self.done.workflows.push(told);
        Ok(())
    }

    fn existing(&mut self, id: &WorkflowId, arrivals: &[Arrival]) -> Result<BTreeMap<Timestamp, Slot>, StoreError> {
        let (Some(first), Some(last)) = (arrivals.first(), arrivals.last()) else { return Ok(BTreeMap::new()) };
        let end = last.time.checked_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX);
        let rows = self.store.recall(&Recall::Range { workflow: id.clone(), start: first.time, end })?;
        Ok(rows.into_iter().filter_map(|row| Some((row.id.key.time()?, row.slot))).collect())
    }

    /// Those that may come over.
    fn sort(
        &self,
        id: &WorkflowId,
        arrivals: &[Arrival],
        existing: &BTreeMap<Timestamp, Slot>,
        told: &mut ImportedWorkflow,
    ) -> Result<Vec<Arrival>, StoreError> {
        let mut coming = Vec::new();
        for arrival in arrivals {
            let slot = SlotRef::at(id.clone(), arrival.time);
            match weigh::weigh(&*self.store.reader(), &slot, existing.get(&arrival.time), arrival)? {
                SlotDecision::Comes => {
                    *told.imported.entry(arrival.state.as_str()).or_default() += 1;
                    told.forgotten += u32::from(arrival.forgotten);
                    coming.push(arrival.clone());
                }
                SlotDecision::Same => told.same += 1,
                SlotDecision::Stays(here) => {
                    let time = kelos_model::time::format_full(arrival.time);
                    told.kept.push(KeptSlot { time, here, there: arrival.there.clone() });
                }
            }
        }
        Ok(coming)
    }

    fn pause_fate(&self, id: &WorkflowId, row: Option<&WorkflowRow>) -> PauseFate {
        match row {
            Some(row) if row.paused => PauseFate::Same,
            Some(_) if self.doings.resumed.contains(id) => PauseFate::Resumed,
            _ => PauseFate::Paused,
        }
    }

    /// The row of a workflow as it will be: no slot that comes over is ever planned besides.
    fn row(&self, id: &WorkflowId, row: Option<WorkflowRow>, coming: &[Arrival]) -> (bool, WorkflowRow) {
        let fresh = row.is_none();
        let mut row = row.unwrap_or_else(|| match self.definitions.workflows.get(id) {
            Some(definition) => takeover::defined(definition),
            None => takeover::undefined(id),
        });
        if let Some(last) = coming.last() {
            let until = last.time.checked_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX);
            row.planned.until = row.planned.until.max(Some(until));
        }
        coming.iter().for_each(|arrival| row.planned.backlog.take_time(arrival.time));
        (fresh, row)
    }

    fn write(
        &mut self,
        (fresh, mut row): (bool, WorkflowRow),
        coming: Vec<Arrival>,
        existing: &BTreeMap<Timestamp, Slot>,
        pauses: bool,
    ) -> Result<(), StoreError> {
        let id = row.id.clone();
        row.paused |= pauses;
        let sources = self.definitions.sources.get(&row.definition.source.file);
        self.entry.workflow(row.clone(), sources.map(|text| (row.definition.source.file.clone(), text.clone())));
        if fresh {
            self.entry.workflow_event(&id, WorkflowEvent::Defined { version: row.version, by: None, reason: None });
            if !row.present {
                self.entry.workflow_event(&id, WorkflowEvent::Removed { by: None, reason: None });
            }
        }
        if let (Some(first), Some(last)) = (coming.first(), coming.last()) {
            let range = Range::new(first.time, last.time);
            let slots = u32::try_from(coming.len()).unwrap_or(u32::MAX);
            self.entry.workflow_event(&id, WorkflowEvent::Imported { from: FROM.to_owned(), range, slots });
        }
        for arrival in coming {
            let slot = SlotRef::new(id.clone(), SlotKey::Time(arrival.time));
            self.entry.slot(&slot, existing.get(&arrival.time).cloned(), arrival.event());
            if self.entry.len() >= LARGEST_COMMIT {
                self.entry.flush(self.store)?;
            }
        }
        if pauses {
            let by = Actor::system(format!("import from {FROM}"));
            self.entry.workflow_event(&id, WorkflowEvent::Paused { by, reason: None });
        }
        Ok(())
    }

    fn registers(&mut self, registers: &Registers) -> Result<(), StoreError> {
        let reader = self.store.reader();
        for ((bucket, key), value) in registers {
            let name = (bucket.clone(), key.clone());
            match reader.register(bucket, key)? {
                Some(here) if here == *value => self.done.same_registers += 1,
                None if !self.doings.registers.contains(&name) => {
                    self.done.registers += 1;
                    self.entry.register(bucket, key, Value::clone(value));
                }
                _ => self.done.kept_registers.push(format!("{bucket}/{key}")),
            }
        }
        Ok(())
    }
}

/// Names of what people changed.
pub(crate) type Names = BTreeSet<(String, String)>;
