//! The workers on other machines, as the log has them: so that each leader knows whose runs may be alive, and for how long.
//!
//! Each has a register of its own, which is committed before the worker is told anything, and deleted once it left or its lease is surely
//! over. The log also says to which worker a run was given. Both together tell a new leader for whom it has to wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_core::SetRegister;
use kelos_engine::{AskError, Handle};
use kelos_model::register::WORKERS_BUCKET;
use kelos_model::workers::{LossPolicy, WorkerRecord};
use kelos_model::{Actor, Flow, RunId, SlotRef};
use kelos_store::{Queries, RegisterKeys, StoreError};
use kelos_wire::{OfferRequest, RemoteWorkerDto};
use tokio::task::spawn_blocking;

use super::refusal::HeldName;
use super::session::Now;
use super::state::State;
use super::verdict::{HandedRun, Loss, millis};
use super::{Process, Roll, Terms, WorkerView};
use crate::local::surely_over;

/// The reason for which the workers in the log can't be read or written. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("{0}")]
    Read(#[from] StoreError),
    #[error("{0}")]
    Written(#[from] AskError),
    #[error("read a worker from the log: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

/// The workers on other machines.
pub(super) struct RemoteWorkers {
    roll: Roll,
    terms: Terms,
    /// Held while a register is written.
    writing: tokio::sync::Mutex<()>,
    /// None until they are read.
    logged: Mutex<Option<LoggedWorkers>>,
    /// The epoch for which they are read.
    epoch: AtomicU64,
}

struct LoggedWorkers {
    read_at: Now,
    records: BTreeMap<Arc<str>, WorkerRecord>,
    /// Those of an earlier leader that have not come yet.
    awaited: BTreeSet<Arc<str>>,
    /// The longest lease of the list on the leader's disk that a program of before left.
    former_list: Option<Duration>,
}

impl RemoteWorkers {
    /// Those of a log, for a hub with these terms.
    pub(super) fn new(roll: Roll, terms: Terms) -> RemoteWorkers {
        RemoteWorkers {
            roll,
            terms,
            writing: tokio::sync::Mutex::default(),
            logged: Mutex::default(),
            epoch: AtomicU64::new(0),
        }
    }

    fn logged(&self) -> MutexGuard<'_, Option<LoggedWorkers>> {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, worker: &Arc<str>) -> Option<WorkerRecord> {
        self.logged().as_ref()?.records.get(worker).cloned()
    }

    fn note(&self, worker: &Arc<str>, record: Option<WorkerRecord>) {
        if let Some(logged) = &mut *self.logged() {
            logged.awaited.remove(worker);
            match record {
                Some(record) => logged.records.insert(worker.clone(), record),
                None => logged.records.remove(worker),
            };
        }
    }

    /// Forgets what was read: another process may write from now on.
    pub(super) fn forget(&self) {
        *self.logged() = None;
    }

    /// Begins an epoch: what others wrote before is in the log.
    pub(super) fn begin(&self, epoch: u64) {
        let mut logged = self.logged();
        self.epoch.store(epoch, Ordering::Release);
        *logged = None;
    }

    /// Another process that has the name of a worker, as an earlier leader wrote it down, and that has not come yet. It may be alive.
    pub(super) fn held(&self, worker: &Arc<str>, word: &OfferRequest, now: Now) -> Option<HeldName> {
        let logged = self.logged();
        let logged = logged.as_ref().filter(|logged| logged.awaited.contains(worker))?;
        let record = logged.records.get(worker)?;
        let own = word.process.clone().map(Process::from);
        let is = |process: &Process| record.process.as_ref() == Some(&process.text());
        let has_ended = word.succeeds.iter().any(|ended| is(&Process::from(ended.clone())));
        if record.process.is_none() || has_ended || own.as_ref().is_none_or(is) {
            return None;
        }
        let (silence, lease) = (now.monotonic.duration_since(logged.read_at.monotonic), surely_over(record.lease()));
        let held = HeldName { name: worker.clone(), host: record.host.clone(), silence, lease };
        (silence <= lease).then_some(held)
    }

    /// Reads them, once for each time of leading. Those of the list that a program of before kept on its disk are written to the log.
    async fn read(&self, engine: &Handle) -> Result<(), RecordError> {
        if self.logged().is_some() {
            return Ok(());
        }
        // What was on its way is in the log, or never gets there.
        let epoch = engine.settled().await?;
        let read_at = Now::read();
        let reader = engine.reader().clone();
        let registers =
            spawn_blocking(move || reader.registers(Some(WORKERS_BUCKET), RegisterKeys::Prefix(""))).await??;
        let read = registers.into_iter().filter_map(|register| {
            let record = serde_json::from_value(register.value).ok()?;
            Some((Arc::from(register.key), record))
        });
        let mut records: BTreeMap<Arc<str>, WorkerRecord> = read.collect();
        let list = self.roll.elsewhere();
        for (worker, lease) in &list {
            let record = records.entry(worker.clone()).or_default();
            record.lease_millis = record.lease_millis.max(millis(*lease));
            set(engine, worker, Some(record)).await?;
        }
        self.roll.forget_elsewhere();
        let (awaited, former_list) = (records.keys().cloned().collect(), list.into_values().max());
        let mut logged = self.logged();
        if self.epoch.load(Ordering::Acquire) != epoch {
            return Err(AskError::Standby.into());
        }
        *logged = Some(LoggedWorkers { read_at, records, awaited, former_list });
        Ok(())
    }

    /// Reads them where they have not been read.
    pub(super) async fn read_for(&self, engine: &Handle) -> Result<(), RecordError> {
        let _writing = self.writing.lock().await;
        self.read(engine).await
    }

    /// Has the log know a worker as the hub knows it. Until then it is told nothing, and offered nothing of it.
    pub(super) async fn register(
        &self,
        engine: Option<&Handle>,
        worker: &Arc<str>,
        state: &Mutex<State>,
    ) -> Result<(), RecordError> {
        let state = || state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state().is_unregistered(worker) {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        if let Some(engine) = engine {
            self.read(engine).await?;
        }
        let known = self.record(worker);
        let Some(wanted) = state().record(worker, known.as_ref()) else { return Ok(()) };
        match engine.filter(|_| known.as_ref() != Some(&wanted)) {
            Some(engine) => self.set(engine, worker, Some(wanted.clone())).await?,
            None => self.note(worker, Some(wanted.clone())),
        }
        state().registered(worker, wanted);
        Ok(())
    }

    /// Removes a worker from the log, unless it is there or may have runs.
    pub(super) async fn strike(
        &self,
        engine: &Handle,
        worker: &Arc<str>,
        state: &Mutex<State>,
    ) -> Result<(), RecordError> {
        let is_needed = || state.lock().unwrap_or_else(PoisonError::into_inner).needs(worker);
        let _writing = self.writing.lock().await;
        self.read(engine).await?;
        if self.record(worker).is_none() || is_needed() {
            return Ok(());
        }
        // Its last reports, and that it offers nothing any more, come first.
        engine.settled().await?;
        if is_needed() {
            return Ok(());
        }
        self.set(engine, worker, None).await?;
        Ok(())
    }

    async fn set(&self, engine: &Handle, worker: &Arc<str>, record: Option<WorkerRecord>) -> Result<(), AskError> {
        match set(engine, worker, record.as_ref()).await {
            Ok(()) => self.note(worker, record),
            Err(error) => {
                // It may have been done.
                self.forget();
                return Err(error);
            }
        }
        Ok(())
    }

    /// The workers that have left or were lost, and those of an earlier leader that did not come back until their runs were surely over.
    pub(super) fn overdue(&self, state: &State, now: Now) -> Vec<Arc<str>> {
        let logged = self.logged();
        let Some(logged) = &*logged else { return Vec::new() };
        let waited = now.monotonic.duration_since(logged.read_at.monotonic);
        let is_overdue = |(name, record): &(&Arc<str>, &WorkerRecord)| {
            let is_over = waited > surely_over(record.lease().max(self.terms.remote_lease));
            !state.needs(name) && (is_over || !logged.awaited.contains(*name))
        };
        logged.records.iter().filter(is_overdue).map(|(name, _)| name.clone()).collect()
    }

    /// Whether some worker is in the log that is not there.
    pub(super) fn awaits_any(&self, state: &State) -> bool {
        let logged = self.logged();
        logged.as_ref().is_some_and(|logged| logged.records.keys().any(|name| !state.sessions.contains_key(name)))
    }

    /// The workers of an earlier leader that have not come back yet.
    pub(super) fn awaited(&self, state: &State) -> Vec<WorkerView> {
        let logged = self.logged();
        let Some(logged) = &*logged else { return Vec::new() };
        let is_awaited = |name: &Arc<str>| logged.awaited.contains(name) && !state.sessions.contains_key(name);
        let away = logged.records.iter().filter(|(name, _)| is_awaited(name));
        let seen = |(name, record): (&Arc<str>, &WorkerRecord)| {
            let WorkerRecord { host, version, node, labels, outputs, .. } = record.clone();
            WorkerView {
                name: name.clone(),
                workflows: Default::default(),
                project: None,
                labels,
                free: 0,
                runs: state.runs_named_for(name),
                remote: Some(RemoteWorkerDto { host, version, node, outputs }),
                folders: None,
                since: logged.read_at.wall,
                leaves: false,
                away_since: Some(logged.read_at.wall),
            }
        };
        away.map(seen).collect()
    }

    /// The run that an earlier leader gave away, as the log tells of it.
    pub(super) async fn handed(&self, engine: &Handle, run: &RunId) -> Result<HandedRun, RecordError> {
        self.read_for(engine).await?;
        let (reader, run) = (engine.reader().clone(), run.clone());
        let read = spawn_blocking(move || Ok::<_, StoreError>((reader.worker_of(&run)?, on_lost(&*reader, &run)?)));
        let (worker, on_lost) = read.await??;
        let record = worker.as_ref().and_then(|worker| self.record(worker));
        let former_list = self.logged().as_ref().and_then(|logged| logged.former_list);
        let wait = Duration::from_secs(on_lost.wait_seconds());
        // A worker that is in no record was told by a program that kept none, or is in the folder of the leader.
        let lease = match &record {
            Some(record) => Some(record.lease()),
            None if self.terms.is_of_several => Some(self.terms.remote_lease.max(wait)),
            None => None,
        };
        let lease = lease.max(former_list.map(|longest| longest.max(wait)));
        let loss = lease.map(|lease| Loss { lease, ends: on_lost == LossPolicy::End });
        Ok(HandedRun { worker, loss, is_sure: record.is_some() && former_list.is_none() })
    }
}

async fn set(engine: &Handle, worker: &Arc<str>, record: Option<&WorkerRecord>) -> Result<(), AskError> {
    let value = record.and_then(|record| serde_json::to_value(record).ok());
    let ask = SetRegister { bucket: WORKERS_BUCKET.to_owned(), key: worker.to_string(), value, reason: None };
    engine.ask(&Actor::system("workers"), ask).await
}

/// The treatment of a run whose worker is lost, by the definition that it follows.
fn on_lost(reader: &dyn Queries, run: &RunId) -> Result<LossPolicy, StoreError> {
    let id = &run.slot.workflow;
    let Some(present) = reader.workflow(id)?.map(|row| row.definition) else { return Ok(LossPolicy::default()) };
    let Some(key) = run.slot.key.step() else { return Ok(present.job.on_lost) };
    let flow_run = SlotRef { workflow: id.clone(), key: key.run() };
    let pinned = reader.slot(&flow_run)?.and_then(|slot| slot.run_of_flow().map(|run| run.definition));
    let followed = match pinned {
        Some(number) => reader.definitions(id, Some(number))?.pop().map(|past| Arc::new(past.definition)),
        None => None,
    };
    let definition = followed.unwrap_or(present);
    let step = definition.flow.as_ref().and_then(|flow| flow.step(key.step()));
    let step = step.map(|step| Flow::as_workflow(&definition, step, key.item_number().is_some()));
    Ok(step.map(|step| step.job.on_lost).unwrap_or_default())
}
