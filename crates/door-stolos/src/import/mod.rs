//! Importing the state of a Stolos from its Redis or its ZooKeeper, once or several times; nothing that Kelos did since is overwritten.
//!
//! The importer is a leader like any other: it holds the lease, so that no server uses the data meanwhile, and writes events together with
//! the slots that they fold to. Jobs that were pending wait here: once a leader has the definitions, it evaluates them, opens the parents
//! that are missing, and queues those whose parents have succeeded. It reads the other store, and writes nothing there.

mod arrival;
mod commit;
mod records;
#[cfg(feature = "redis")]
mod redis;
mod source;
mod zookeeper;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::event::{Event, SlotEvent};
use kelos_model::workflow::{Moments, PlanState, WorkflowRow};
use kelos_model::{Slot, SlotRef, SlotState, Workflow, WorkflowEvent, WorkflowId};
use kelos_store::{Journal, Lease, Queries, StoreError};
use serde::Serialize;

use arrival::{Arrival, importer};
use commit::NextCommit;
pub use records::{AppRecords, JobRecord, StolosState};
pub use source::StateSource;

/// The scheduler that is imported from, as events name it.
pub const FROM: &str = "stolos";

/// The requested duration of the lease. SQLite's lasts as long as the process.
const LEASE_MILLIS: u64 = 60_000;
/// Jobs that an error names.
const NAMED: usize = 5;

/// An error of an import. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The address of the other store can't be used.
    #[error(
        "use the address: {0}; expected such as redis://localhost:6379, rediss://…, zookeeper://localhost:2181 or zookeepers://…"
    )]
    Address(String),
    /// The other store can't be read.
    #[error("read {name}: {why}")]
    Source {
        /// The store.
        name: String,
        /// The reason.
        why: String,
    },
    /// Runners of Stolos have jobs.
    #[error("import while Stolos runs jobs: {0}; stop its runners, and wait until its locks have expired")]
    Running(String),
    /// Our own database can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server uses the data.
    #[error("take the lead over the database: a server uses it; stop it first")]
    InUse,
}

/// The definitions of the apps here.
#[derive(Debug, Clone, Default)]
pub struct AppDefinitions {
    /// The workflows by id, also those that are no apps.
    pub workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
    /// The texts of the files.
    pub sources: BTreeMap<String, Arc<str>>,
}

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// The results for each app that is defined here.
    pub apps: Vec<ImportedApp>,
    /// The numbers of jobs of apps that are not defined here, which were not imported.
    pub undefined: BTreeMap<String, usize>,
    /// Jobs that were not imported, each with the reason.
    pub troubles: Vec<String>,
    /// Jobs that a runner of Stolos executes.
    pub running: Vec<String>,
    /// Records without a state, which Stolos makes beside jobs that were never submitted.
    pub stateless: usize,
    /// How many events were written; 0 if all state existed already.
    pub events: u64,
}

/// The result of an import for an app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedApp {
    /// Its name.
    pub id: String,
    /// How many jobs were imported in which state.
    pub imported: BTreeMap<&'static str, u32>,
    /// How many of those that wait were in the queue.
    pub queued: u32,
    /// How many jobs existed in the same state.
    pub same: u32,
    /// Jobs that have changed here since, and are kept.
    pub kept: Vec<KeptJob>,
}

/// A job that an import left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptJob {
    /// The job id.
    pub job: String,
    /// Its state here.
    pub here: SlotState,
    /// Its state in Stolos.
    pub there: String,
}

impl ImportedApp {
    /// How many jobs were imported.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        self.imported.values().sum()
    }
}

/// Imports what Stolos knows; `dry_run` reports only, and writes nothing.
///
/// # Errors
/// If our database can't be read or written, a server uses it, or runners of Stolos have jobs. Commits up to then are kept; the next import
/// continues from there.
pub fn import(
    store: &mut dyn Journal,
    state: &StolosState,
    definitions: &AppDefinitions,
    now: Timestamp,
    dry_run: bool,
) -> Result<ImportReport, ImportError> {
    if dry_run {
        let report = Import::new(store, None, definitions, now)?.run(state)?;
        return Ok(ImportReport { running: state.running(), ..report });
    }
    refuse_running(state)?;
    let lease = store.lease(&format!("import {}", std::process::id()), now, LEASE_MILLIS)?;
    let lease = lease.ok_or(ImportError::InUse)?;
    let outcome = Import::new(store, Some(lease), definitions, now).and_then(|import| import.run(state));
    store.release(lease)?;
    Ok(outcome?)
}

/// Refuses an import while runners of Stolos have jobs.
///
/// # Errors
/// If they have some.
pub fn refuse_running(state: &StolosState) -> Result<(), ImportError> {
    let running = state.running();
    if running.is_empty() {
        return Ok(());
    }
    let more = running.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(ImportError::Running(running[..running.len().min(NAMED)].join(", ") + &more))
}

/// An import in progress.
struct Import<'a> {
    store: &'a mut dyn Journal,
    definitions: &'a AppDefinitions,
    commit: NextCommit,
    now: Timestamp,
    done: ImportReport,
}

impl<'a> Import<'a> {
    fn new(
        store: &'a mut dyn Journal,
        lease: Option<Lease>,
        definitions: &'a AppDefinitions,
        now: Timestamp,
    ) -> Result<Import<'a>, StoreError> {
        let commit = NextCommit::new(lease, store.reader().last_seq()?, now);
        Ok(Import { store, definitions, commit, now, done: ImportReport::default() })
    }

    fn run(mut self, state: &StolosState) -> Result<ImportReport, StoreError> {
        self.done.troubles.extend(state.troubles.iter().cloned());
        for (name, records) in &state.apps {
            let id = WorkflowId::new(name).ok();
            let definition = id.and_then(|id| self.definitions.workflows.get(&id));
            match definition.filter(|one| one.keys.jobs().is_some()).cloned() {
                Some(definition) => self.app(&definition, records)?,
                None => drop(self.done.undefined.insert(name.clone(), records.jobs.len())),
            }
        }
        self.commit.flush(self.store)?;
        self.done.events = self.commit.written();
        Ok(self.done)
    }

    /// Imports the jobs of an app.
    fn app(&mut self, definition: &Arc<Workflow>, records: &AppRecords) -> Result<(), StoreError> {
        let mut told = ImportedApp { id: definition.id.to_string(), ..ImportedApp::default() };
        let mut coming = Vec::new();
        let mut named = BTreeSet::new();
        for (job, record) in &records.jobs {
            let priority = records.queued.get(job).copied();
            match Arrival::read(definition, job, record, priority) {
                Ok(Some(arrival)) if !named.insert(arrival.job.clone()) => {
                    let why = format!("{} is the same job, and was imported", arrival.job.key.short());
                    self.done.troubles.push(format!("{}@{job}: {why}", definition.id));
                }
                Ok(Some(arrival)) => coming.extend(self.sort(arrival, &mut told)?),
                Ok(None) => self.done.stateless += 1,
                Err(why) => self.done.troubles.push(format!("{}@{job}: {why}", definition.id)),
            }
        }
        if !coming.is_empty() {
            self.define(definition)?;
        }
        for (arrival, before) in coming {
            self.commit.slot(&arrival.job, before.as_ref(), arrival.event(before.is_some()));
            self.commit.flush_if_large(self.store)?;
        }
        self.done.apps.push(told);
        Ok(())
    }

    /// Decides whether a job may be imported beside what is here.
    fn sort(&self, arrival: Arrival, told: &mut ImportedApp) -> Result<Option<(Arrival, Option<Slot>)>, StoreError> {
        let reader = self.store.reader();
        let here = reader.slot(&arrival.job)?;
        if let Some(here) = &here {
            // What waits there may be queued here: the scheduler has seen that its parents have succeeded.
            let has_not_run = matches!(here.state, SlotState::Waiting | SlotState::Queued) && here.last_run == 0;
            let is_same = here.state == arrival.state || has_not_run && arrival.state == SlotState::Waiting;
            if is_same && (!has_not_run || here.retries == arrival.retries) {
                told.same += 1;
                return Ok(None);
            }
            if !has_not_run || !is_untouched(&*reader, &arrival.job)? {
                match is_same {
                    true => told.same += 1,
                    false => {
                        let (job, there) = (arrival.job.key.short(), arrival.there);
                        told.kept.push(KeptJob { job, here: here.state, there });
                    }
                }
                return Ok(None);
            }
        }
        *told.imported.entry(arrival.state.as_str()).or_default() += 1;
        told.queued += u32::from(arrival.priority.is_some() && arrival.state == SlotState::Waiting);
        Ok(Some((arrival, here)))
    }

    /// Makes the row of an app that has none.
    fn define(&mut self, definition: &Arc<Workflow>) -> Result<(), StoreError> {
        if self.store.reader().workflow(&definition.id)?.is_some() {
            return Ok(());
        }
        let row = WorkflowRow {
            id: definition.id.clone(),
            definition: definition.clone(),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned: PlanState { since: Some(self.now), ..PlanState::default() },
            moments: Moments::default(),
        };
        let file = &definition.source.file;
        let source = self.definitions.sources.get(file).map(|text| (file.clone(), text.clone()));
        self.commit.workflow(row, source, WorkflowEvent::Defined { version: 1, by: None, reason: None });
        Ok(())
    }
}

/// Whether only imports and the scheduler itself have changed a job that has not run.
fn is_untouched(reader: &dyn Queries, job: &SlotRef) -> Result<bool, StoreError> {
    use kelos_model::event::Origin;
    let is_idle = |event: &Event| {
        let Event::Slot { what, .. } = event else { return false };
        match what {
            SlotEvent::Planned { origin: Origin::Child(_) | Origin::Parent(_), .. } => true,
            // With a priority of its own it came as a request.
            SlotEvent::Planned { origin: Origin::Request, by, .. } => *by == Some(importer()),
            SlotEvent::Looked { .. }
            | SlotEvent::TriggerMet { .. }
            | SlotEvent::Held { .. }
            | SlotEvent::ConstraintsMet { .. }
            | SlotEvent::Late { .. }
            | SlotEvent::Imported { .. } => true,
            _ => false,
        }
    };
    let history = reader.history(job)?;
    Ok(history.iter().all(|record| is_idle(&record.event)) && !reader.lacks_history(job, &history)?)
}

#[cfg(test)]
mod tests;
