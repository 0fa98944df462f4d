//! Importing the state of Celos, once or several times; nothing that Kelos did since is overwritten.
//!
//! The importer is a leader like any other: it holds the lease, so that no server uses the data meanwhile, and it
//! writes events together with the slots that they fold to. It decides for each slot how it is imported ([`takeover`])
//! and whether it may be imported beside the existing data (`weigh`).

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

/// The requested duration of the lease. SQLite's lasts as long as the process.
const LEASE_MILLIS: u64 = 60_000;

/// An error of an import. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The database of Celos can't be used.
    #[error(transparent)]
    Celos(#[from] CelosDbError),
    /// Our own database can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server uses the data.
    #[error("take the lead over the database: a server uses it; stop it first")]
    InUse,
}

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The moment of the import, in our log.
    pub now: Timestamp,
    /// The moment for Celos's window and the age of its marks: mostly the same.
    pub as_of: Timestamp,
    /// Whether to import unfinished slots that Celos had forgotten because of their age as live ones.
    pub revive: bool,
    /// Whether to report only, and write nothing.
    pub dry_run: bool,
}

/// The current definitions in scripts.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// The workflows by id.
    pub workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The texts of the files.
    pub sources: BTreeMap<String, Arc<str>>,
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// The results for each workflow.
    pub workflows: Vec<ImportedWorkflow>,
    /// How many registers were imported.
    pub registers: u32,
    /// How many registers existed with the same value.
    pub same_registers: u32,
    /// Registers that Kelos has set or deleted since; named `bucket/key`.
    pub kept_registers: Vec<String>,
    /// Files with unexpected content.
    pub troubles: Vec<Trouble>,
    /// How many events were written; 0 if all state existed already.
    pub events: u64,
}

impl ImportReport {
    /// Whether nothing was imported.
    #[must_use]
    pub fn is_nothing_new(&self) -> bool {
        self.events == 0
    }
}

/// The result of an import for a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedWorkflow {
    /// Its name.
    pub id: String,
    /// Whether a script defines it.
    pub defined: bool,
    /// How many slots were imported in which state.
    pub imported: BTreeMap<&'static str, u32>,
    /// How many slots existed in the same state.
    pub same: u32,
    /// Slots that have changed here since, and are kept.
    pub kept: Vec<KeptSlot>,
    /// How many unfinished slots Celos had forgotten because of their age.
    pub forgotten: u32,
    /// The result for its pause; none if it is not paused in Celos.
    pub pause: Option<PauseFate>,
    /// The last slot with a record in Celos.
    pub last: Option<String>,
    /// When it starts, by its script.
    pub start_time: Option<String>,
}

impl ImportedWorkflow {
    /// How many slots were imported.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.imported.values().sum()
    }
}

/// A slot that an import left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptSlot {
    /// The time of the slot.
    pub time: String,
    /// Its state here.
    pub here: SlotState,
    /// Its status in Celos, in Celos's terms.
    pub there: String,
}

/// The result for the pause of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseFate {
    /// It is paused now.
    Paused,
    /// It was paused already.
    Same,
    /// It was resumed here, and stays so.
    Resumed,
}

/// Imports a database of Celos.
///
/// # Errors
/// If either database can't be read or written, or a server uses ours. Commits up to then are kept;
/// the next import continues from there.
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

/// Imports the state of another scheduler's workflows from another source than its files.
///
/// # Errors
/// If our database can't be read or written, or a server uses it.
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

/// Takes the lease of data that no server uses.
///
/// # Errors
/// If a server uses it.
pub fn lead(store: &mut dyn Journal, now: Timestamp) -> Result<Lease, ImportError> {
    store.lease(&format!("import {}", std::process::id()), now, LEASE_MILLIS)?.ok_or(ImportError::InUse)
}

/// An import in progress.
struct Import<'a> {
    store: &'a mut dyn Journal,
    definitions: &'a Definitions,
    options: &'a ImportOptions,
    /// Requests of people in our log that an import must respect.
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

    /// Imports the records of a workflow.
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
        Ok(rows.into_iter().filter_map(|row| Some((row.id.key.scheduled()?, row.slot))).collect())
    }

    /// Selects the slots that may be imported.
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

    /// The new row of a workflow: no imported slot is planned again.
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

/// The names of registers that people changed.
pub(crate) type Names = BTreeSet<(String, String)>;
