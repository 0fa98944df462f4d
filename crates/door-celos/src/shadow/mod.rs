//! Running in parallel with a live Celos without acting, and reporting each slot on which the two disagree.
//!
//! An engine over a store in memory loads the same scripts and starts from Celos's states. It plans, evaluates triggers and
//! assigns permits as usual, but its executor starts nothing: each run follows that of the slot in Celos.
//! Requests of people to Celos (rerun, kill, pause) are repeated here. Each comparison is one step of the engine at one moment;
//! differences that last longer than a grace period count.
//!
//! What is *absent*: requests to Celos; the caller provides its answers, as [`Theirs`].

mod compare;
mod executor;
mod ledger;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Config, Kill, Pause, Request, Rerun, Resume};
use kelos_engine as engine;
use kelos_engine::clock::Clock;
use kelos_engine::executor::Executors;
use kelos_engine::{AskError, EngineParts, Handle, Pace};
use kelos_model::ranges::Range;
use kelos_model::{Actor, Slot, SlotRef, WorkflowId};
use kelos_sandbox::apps::AppFormat;
use kelos_sandbox::{Folders, Limits, Problem};
use kelos_scripts::ScriptFolder;
use kelos_storage::Storage;
use kelos_store::{MemoryStore, PageRequest, Queries, SlotFilter, StoreError, StoredState};
use serde::Serialize;
use tokio::runtime::Handle as Runtime;

use crate::celos_db::{Record, Registers, SlotRecord, Status, WorkflowRecords};
use crate::import::{Definitions, ImportError, ImportOptions, import_known};
use executor::ShadowExecutor;

pub use compare::Discrepancy;
pub use ledger::{Difference, Subject};
pub use wire::{CelosWorkflow, read_list, read_slots};

use compare::compare;
use ledger::Ledger;

/// The oldest hour of Celos's window is not compared: it is about to leave the window.
const COMPARED: SignedDuration = SignedDuration::from_hours(167);

/// The actor of requests that people made in Celos.
const BY: &str = "celos";

/// Slots that are read at once.
const PAGE: usize = 5_000;

/// The answers of Celos about each of its workflows, or the reason why there is none.
pub type Theirs = BTreeMap<WorkflowId, Result<CelosWorkflow, String>>;

/// An error of a shadow that could not be started. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    /// The states from which it starts can't be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The store in memory failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine gave no answer.
    #[error(transparent)]
    Engine(#[from] AskError),
    /// A thread can't be started.
    #[error("start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The parts of a shadow.
pub struct ShadowParts {
    /// The folders of Celos's scripts.
    pub folders: Folders,
    /// The reader of the apps in scripts.
    pub format: Arc<dyn AppFormat>,
    /// The registers of Celos, as far as they are available.
    pub registers: Registers,
    /// The file systems of paths.
    pub storage: Storage,
    /// The runtime of probes and blocking calls.
    pub runtime: Runtime,
    /// The clock of the machine.
    pub clock: Clock,
    /// How long a difference lasts before it counts.
    pub grace: SignedDuration,
}

/// The result of a comparison.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComparisonReport {
    /// The moment of the comparison.
    pub at: Timestamp,
    /// How many workflows both have.
    pub workflows: usize,
    /// How many slots agree.
    pub agreed: usize,
    /// Differences that last longer than the grace period.
    pub differences: Vec<Difference>,
    /// How many differences may still end by themselves.
    pub pending: usize,
    /// Differences that had counted and have ended.
    pub over: Vec<Difference>,
}

/// A shadow of a Celos.
pub struct Shadow {
    handle: Handle,
    scripts: ScriptFolder,
    executor: ShadowExecutor,
    ledger: Ledger,
    /// The records of Celos at the last comparison.
    before: BTreeMap<SlotRef, Record>,
}

impl Shadow {
    /// Starts from the current states of Celos.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn start(parts: ShadowParts, theirs: &Theirs, now: Timestamp) -> Result<Shadow, ShadowError> {
        let mut store = MemoryStore::new();
        take_over(&mut store, theirs, &parts.registers, now)?;
        let reader = store.reader();
        let (storage, runtime) = (parts.storage.clone(), parts.runtime.clone());
        let look = move |uri: &str| kelos_engine::prober::is_there(&storage, &runtime, uri);
        let scripts = ScriptFolder::open(parts.folders, parts.format, None, Limits::default(), reader, look)?;
        let executor = ShadowExecutor::default();
        executor.learn(&records(theirs));
        let handle = engine::start(EngineParts {
            store: Box::new(store),
            node: "shadow".to_owned(),
            clock: parts.clock,
            pace: Pace::Stepped,
            config: patient(),
            executors: Executors::only(executor.clone()),
            functions: Arc::new(scripts.functions()),
            storage: parts.storage,
            runtime: parts.runtime,
            lease: Duration::from_secs(3600),
            traces: false,
        })?;
        let ledger = Ledger::new(parts.grace);
        Ok(Shadow { handle, scripts, executor, ledger, before: records(theirs) })
    }

    /// Compares with the answers of Celos at a moment.
    ///
    /// # Errors
    /// If the engine gives no answer.
    pub async fn look(&mut self, theirs: &Theirs, now: Timestamp) -> Result<ComparisonReport, ShadowError> {
        self.reload().await?;
        let records = records(theirs);
        self.executor.learn(&records);
        self.follow_people(theirs, &records).await?;
        self.executor.follow(&self.retries(&records)?);
        self.handle.step(now, None).await?;
        let (differences, agreed) = self.differences(theirs, now)?;
        let (workflows, found) =
            (theirs.values().filter(|seen| seen.is_ok()).count(), self.ledger.note(differences, now));
        self.before = records;
        let mut looked = ComparisonReport {
            at: now,
            workflows,
            agreed,
            differences: found.counted,
            pending: found.pending,
            over: found.over,
        };
        for difference in &mut looked.differences {
            self.explain(difference, now).await?;
        }
        Ok(looked)
    }

    /// The problems of the scripts.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.scripts.problems()
    }

    /// The engine that follows Celos.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Stops it.
    pub async fn stop(&self) {
        self.handle.stop().await;
    }

    /// Loads changed scripts, and waits until the engine has accepted them.
    async fn reload(&self) -> Result<(), ShadowError> {
        let (scripts, handle) = (self.scripts.clone(), self.handle.clone());
        let _ = tokio::task::spawn_blocking(move || scripts.reload(&handle)).await;
        Ok(self.handle.settled().await.map(drop)?)
    }

    /// Repeats the requests of people to Celos.
    async fn follow_people(&self, theirs: &Theirs, records: &BTreeMap<SlotRef, Record>) -> Result<(), ShadowError> {
        let reader = self.handle.reader().clone();
        for (id, seen) in theirs {
            let (Ok(seen), Some(row)) = (seen, reader.workflow(id)?.filter(|row| row.present)) else { continue };
            match (seen.paused, row.paused) {
                (true, false) => self.ask(Pause { workflow: id.clone(), reason: None }).await?,
                (false, true) => self.ask(Resume { workflow: id.clone(), reason: None }).await?,
                _ => {}
            }
        }
        for (slot, record) in records {
            let here = reader.slot(slot)?;
            let was_final = self.before.get(slot).is_some_and(|before| before.status.is_final());
            let slot = slot.clone();
            match here.map(|here| here.state.is_final()) {
                Some(false) if record.status == Status::Killed => self.ask(Kill { slot, reason: None }).await?,
                Some(true) if was_final && !record.status.is_final() => {
                    self.ask(Rerun::of(slot)).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends a request; a refusal soon shows as a difference.
    async fn ask(&self, request: impl Request) -> Result<(), ShadowError> {
        match self.handle.ask(&Actor::system(BY), request).await {
            Ok(_) | Err(AskError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// How many attempts of each slot of Celos have failed here.
    fn retries(&self, records: &BTreeMap<SlotRef, Record>) -> Result<BTreeMap<SlotRef, u32>, StoreError> {
        let alive = self.executor.following().into_iter().filter(|slot| records.contains_key(slot));
        let reader = self.handle.reader();
        alive.map(|slot| Ok((slot.clone(), reader.slot(&slot)?.map_or(0, |slot| slot.retries)))).collect()
    }

    /// All current differences, and the number of slots that agree.
    fn differences(&self, theirs: &Theirs, now: Timestamp) -> Result<(Vec<(Subject, Discrepancy)>, usize), StoreError> {
        let reader = self.handle.reader();
        let range = Range::new(now.checked_sub(COMPARED).unwrap_or(Timestamp::MIN), now);
        let (mut found, mut agreed) = (Vec::new(), 0);
        for row in reader.workflows(None)?.into_iter().filter(|row| row.present && !theirs.contains_key(&row.id)) {
            found.push((Subject::workflow(&row.id), Discrepancy::NotInCelos));
        }
        for (id, seen) in theirs {
            let row = reader.workflow(id)?.filter(|row| row.present);
            match (seen, row) {
                (Err(why), _) => found.push((Subject::workflow(id), Discrepancy::NoAnswer { why: why.clone() })),
                (Ok(_), None) => found.push((Subject::workflow(id), Discrepancy::NotDefined)),
                (Ok(seen), Some(row)) => {
                    let mut ours = slots(&**reader, id, range)?;
                    // Celos omits slots before a workflow's start unless they are requested.
                    let start = row.definition.start_time.unwrap_or(Timestamp::MIN);
                    ours.retain(|time, _| *time >= start || seen.slots.contains_key(time));
                    let compared = compare(&ours, &seen.slots, range, row.paused);
                    agreed += compared.agreed;
                    let subject = |time| Subject::slot(&SlotRef::at(id.clone(), time));
                    found.extend(compared.differences.into_iter().map(|(time, what)| (subject(time), what)));
                }
            }
        }
        Ok((found, agreed))
    }

    /// Adds the reasons for the state here.
    async fn explain(&self, difference: &mut Difference, now: Timestamp) -> Result<(), StoreError> {
        let Some(slot) = difference.subject.slot_ref() else {
            let problems = self.scripts.problems();
            difference.because =
                problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
            return Ok(());
        };
        let why = kelos_explain::why::why(&self.handle, &slot, Some(now)).await?;
        difference.because = if why.blockers.is_empty() { vec![why.headline] } else { why.blockers };
        Ok(())
    }
}

/// Starts nothing late: a probe that is repeated is repeated in each step.
fn patient() -> Config {
    let at_once = SignedDuration::from_millis(1);
    Config {
        probe_first: at_once,
        probe_longest: at_once,
        max_running: u32::MAX,
        patience: SignedDuration::from_hours(24 * 365),
        ..Config::default()
    }
}

fn records(theirs: &Theirs) -> BTreeMap<SlotRef, Record> {
    let seen = theirs.iter().filter_map(|(id, seen)| Some((id, seen.as_ref().ok()?)));
    seen.flat_map(|(id, seen)| seen.slots.iter().map(|(time, record)| (SlotRef::at(id.clone(), *time), record.clone())))
        .collect()
}

/// Fills the store with the records of Celos. Slots without a record are left to our own planning.
fn take_over(
    store: &mut MemoryStore,
    theirs: &Theirs,
    registers: &Registers,
    now: Timestamp,
) -> Result<(), ImportError> {
    let options = ImportOptions { now, as_of: now, revive: false, dry_run: false };
    let seen = theirs.iter().filter_map(|(id, seen)| Some((id, seen.as_ref().ok()?)));
    let known = seen.map(|(id, seen)| (id.clone(), kept(seen))).collect();
    import_known(store, &known, registers, &Definitions::default(), &options)?;
    Ok(())
}

fn kept(seen: &CelosWorkflow) -> WorkflowRecords {
    let recorded = |record: &&Record| record.status != Status::Waiting || record.retry_count > 0;
    let slots = seen.slots.iter().filter(|(_, record)| recorded(record));
    let slots = slots.map(|(time, record)| (*time, SlotRecord::Record(record.clone()))).collect();
    WorkflowRecords { slots, paused: seen.paused, ..WorkflowRecords::default() }
}

fn slots(reader: &dyn Queries, id: &WorkflowId, range: Range) -> Result<BTreeMap<Timestamp, Slot>, StoreError> {
    let filter = SlotFilter { workflow: Some(id.clone()), range: Some(range), ..SlotFilter::default() };
    let mut slots = BTreeMap::new();
    let mut from = None;
    loop {
        let page = reader.slots(&filter, PageRequest::newest(PAGE).after(from.as_deref()))?;
        slots.extend(page.rows.into_iter().filter_map(|row| Some((row.id.key.scheduled()?, row.slot))));
        from = page.next;
        if from.is_none() {
            return Ok(slots);
        }
    }
}

/// The end of the range that is requested from Celos at a moment: in whole seconds, because Celos makes up a slot for any other.
#[must_use]
pub fn asked_until(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
