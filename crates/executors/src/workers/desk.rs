//! The leader's side: an executor whose runs are done by workers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos_core::Input;
use kelos_engine::{Handle, Status};
use kelos_model::{RunId, WorkflowId};
use kelos_store::log::LogState;
use kelos_wire::{AssignmentDto, OfferRequest, OutputQuestionDto};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{Notify, watch};

use super::complaints::Complaints;
use super::elsewhere::{RecordError, RemoteWorkers};
use super::output::{OutputDesk, OutputReader, Questions};
use super::refusal::{HubError, LOOK_AGAIN};
use super::session::Now;
use super::state::State;
use super::{Roll, Terms, WorkerView, verdict};
use crate::local::{Launcher, LocalError, gone, unique};

mod executor;
mod left;
mod served;
mod tasks;

/// The number of checks for silent workers in the time of a lease.
const LOOKS: u32 = 10;

/// The longest age of the list of workflows for workers that accept all.
const APPS_AGE: Duration = Duration::from_secs(1);

/// The hub: assigns runs to workers, and receives their reports. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<HubState>,
}

struct HubState {
    state: Mutex<State>,
    launcher: Launcher,
    roll: Roll,
    runtime: Runtime,
    terms: Terms,
    /// The executors whose runs are left to workers.
    handed: OnceLock<BTreeSet<String>>,
    elsewhere: RemoteWorkers,
    /// The workers that wait because they are not in the log.
    complaints: Complaints,
    questions: Questions,
    engine: OnceLock<Handle>,
    /// The log that other nodes share.
    log: OnceLock<LogState>,
    /// The epoch in which this process leads; none while another one may.
    epoch: watch::Sender<Option<u64>>,
    apps_at: Mutex<Option<Instant>>,
    closing: watch::Sender<bool>,
    /// The last report was sent on a run that no worker had.
    concluded: Notify,
    /// A worker reported, or a run was added: there may be a silent worker or an unclaimed run to check for.
    stirred: Arc<Notify>,
}

impl Hub {
    /// A desk for runs whose folders a launcher has, and for the workers of a roll.
    ///
    /// # Errors
    /// When the system gives no unique name.
    pub fn new(launcher: Launcher, roll: Roll, runtime: Runtime, terms: Terms) -> Result<Hub, LocalError> {
        let own = unique().map_err(|source| LocalError::Process { doing: "name", run: "a desk".to_owned(), source })?;
        let elsewhere = RemoteWorkers::new(roll.clone(), terms);
        let inner = Arc::new(HubState {
            state: Mutex::new(State::new(own, terms.remote_lease)),
            launcher,
            roll,
            runtime,
            terms,
            handed: OnceLock::new(),
            elsewhere,
            complaints: Complaints::default(),
            questions: Questions::default(),
            engine: OnceLock::new(),
            log: OnceLock::new(),
            epoch: watch::Sender::new(Some(0)),
            apps_at: Mutex::default(),
            closing: watch::Sender::new(false),
            concluded: Notify::new(),
            stirred: Arc::default(),
        });
        let around = tasks::look_around(
            Arc::downgrade(&inner),
            inner.stirred.clone(),
            (terms.shortest() / LOOKS).min(LOOK_AGAIN),
        );
        inner.runtime.spawn(around);
        Ok(Hub { inner })
    }

    /// Connects the engine whose runs these are, and which gets the offers.
    pub fn connect(&self, engine: Handle) {
        let (status, commits) = (engine.watch_status(), engine.watch_commits());
        let _ = self.inner.engine.set(engine);
        self.inner.runtime.spawn(tasks::follow_apps(Arc::downgrade(&self.inner), commits));
        self.inner.runtime.spawn(tasks::offer_anew(Arc::downgrade(&self.inner), status));
    }

    /// Names the log that this node shares with others, whose lease says whether it leads.
    pub fn shares(&self, log: LogState) {
        let _ = self.inner.log.set(log);
    }

    /// Names the executors whose runs are left to workers.
    pub fn hands_out(&self, executors: &BTreeSet<String>) {
        let _ = self.inner.handed.set(executors.clone());
    }

    /// Whether it takes workers.
    #[must_use]
    pub fn takes_workers(&self) -> bool {
        self.inner.terms.takes
    }

    /// The workflows whose runs are left to workers.
    pub async fn served(&self) -> BTreeSet<WorkflowId> {
        self.inner.look_for_apps().await;
        self.inner.state().served.apps.clone()
    }

    /// Those who are there.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerView> {
        let state = self.inner.state();
        let mut workers = state.seen(Now::read());
        workers.extend(self.inner.elsewhere.awaited(&state));
        workers.sort_by(|one, other| one.name.cmp(&other.name));
        workers
    }

    /// The number of runs that ended while this process led because their workers on other machines were cut off for longer than the
    /// lease.
    #[must_use]
    pub fn fenced(&self) -> u64 {
        self.inner.state().fenced
    }

    /// The output of a run with this name at its executor.
    #[must_use]
    pub fn output(&self, run: &RunId, external_id: Option<&str>) -> OutputReader {
        OutputReader::new(self.inner.clone(), run, external_id)
    }

    /// Checks as if it were a later moment.
    #[cfg(test)]
    pub(super) fn look(&self, now: Instant) {
        self.inner.look(Now { monotonic: now, ..Now::read() });
    }

    /// Loses a run from its table.
    #[cfg(test)]
    pub(super) fn lose(&self, run: &RunId) {
        self.inner.state().runs.remove(run);
    }

    /// Answers all waiting workers, and rejects them from now on.
    pub fn close(&self) {
        let _ = self.inner.closing.send_replace(true);
    }

    /// Takes back the runs that no worker fetched, and assigns none from now on: the next leader finds them queued.
    pub async fn take_back(&self) {
        self.close();
        let unfetched = {
            let mut state = self.inner.state();
            let unfetched = state.dismiss();
            self.inner.tell(&mut state);
            unfetched
        };
        for run in unfetched {
            let report = verdict::unclaimed(&self.inner.launcher, &run, false, "its leader ended").await;
            self.inner.conclude(&run, report).await;
        }
        self.inner.settle().await;
    }

    /// Processes a message of a worker, and answers once there is a run for it or its wait is over. Its reports are
    /// committed by then.
    ///
    /// # Errors
    /// When the worker is rejected, or this process does not lead, or does not any more.
    pub async fn hear(&self, worker: &str, word: OfferRequest) -> Result<AssignmentDto, HubError> {
        let (inner, worker) = (&self.inner, Arc::<str>::from(worker));
        inner.stirred.notify_one();
        // Functions of programs run nowhere else.
        if !inner.terms.takes && word.project.is_none() {
            return Err(HubError::ByItself);
        }
        if *inner.closing.borrow() {
            return Err(HubError::Closing);
        }
        // One that has heard of a newer leader is right: this one has been replaced, and does not know yet.
        let is_replaced = |epoch: &u64| word.epoch.is_some_and(|newest| newest > *epoch);
        let Some(epoch) = inner.leads().filter(|epoch| !is_replaced(epoch)) else { return Err(inner.not_leading()) };
        let is_told_in_words = word.epoch.is_none();
        let mut epochs = inner.epoch.subscribe();
        let heard = tokio::select! {
            heard = inner.hear_in(epoch, &worker, word) => heard,
            _ = epochs.wait_for(|now| *now != Some(epoch)) => Err(inner.not_leading()),
        };
        if inner.leads() != Some(epoch) {
            return Err(inner.not_leading());
        }
        match heard {
            Err(HubError::GivenUp) if !is_told_in_words => {
                Ok(AssignmentDto { epoch: Some(epoch), given_up: true, ..AssignmentDto::default() })
            }
            heard => heard,
        }
    }
}

impl OutputDesk for HubState {
    fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    fn questions(&self) -> &Questions {
        &self.questions
    }

    fn ask(&self, worker: &Arc<str>, question: OutputQuestionDto) -> bool {
        self.state().ask(worker, question)
    }

    fn away_since(&self, worker: &Arc<str>) -> Option<Timestamp> {
        self.state().away_since(worker, Now::read())
    }
}

impl HubState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch in which this process leads, as far as it may trust that. While the store of a process that shares it with no other is
    /// troubled, its workers are heard, too.
    fn leads(&self) -> Option<u64> {
        let epoch = (*self.epoch.borrow())?;
        let Some(engine) = self.engine.get() else { return Some(epoch) };
        let lasts = |remaining: Option<Duration>| remaining.is_some_and(|time| !time.is_zero());
        match engine.status() {
            Status::Leading { epoch: shown } => {
                let is_trusted = lasts(engine.timings().lease_remaining())
                    && self.log.get().is_none_or(|log| lasts(log.lease_remaining()));
                (shown == epoch && is_trusted).then_some(epoch)
            }
            Status::Troubled { .. } | Status::Damaged { .. } => (!self.terms.is_of_several).then_some(epoch),
            Status::Starting | Status::Standby | Status::Stopped => None,
        }
    }

    fn not_leading(&self) -> HubError {
        let holder = self.log.get().map(|log| (log.node().to_owned(), log.status().lease));
        let other = holder.filter(|(own, lease)| !lease.is_free && lease.epoch > 0 && lease.holder.node != *own);
        HubError::NotLeading(other.map(|(_, lease)| match lease.holder.address {
            Some(address) => format!("{} at {address}", lease.holder.node),
            None => lease.holder.node,
        }))
    }

    /// Processes a message in an epoch of this leader.
    async fn hear_in(
        self: &Arc<Self>,
        epoch: u64,
        worker: &Arc<str>,
        word: OfferRequest,
    ) -> Result<AssignmentDto, HubError> {
        if word.workflows.is_empty() {
            self.look_for_apps().await;
        }
        self.admit(worker, &word).await?;
        self.questions.answered(&word.outputs);
        let (session, is_new, refused) = self.take_in(worker, &word)?;
        let refused = self.refused(worker, refused).await;
        self.register(worker).await?;
        self.look_for_left(Instant::now());
        if is_new {
            self.end_doubt().await;
        }
        if is_new || !word.reports.is_empty() || word.leaves {
            let is_stored = self.settle().await.is_none_or(|settled| settled == Some(epoch));
            // A worker forgets reports that are confirmed, so only stored ones are; the others it repeats to the next leader.
            if !is_stored && !word.reports.is_empty() {
                return Err(HubError::NotStored);
            }
            self.state().stored(worker, &word.reports);
        }
        // A worker of an earlier leader has waited for this one already.
        if !(is_new && word.session.is_some()) {
            let wait = self.terms.longest_wait(word.remote.is_some());
            self.wait_for_orders(worker, Duration::from_millis(word.wait_millis).min(wait)).await;
        }
        loop {
            if let Some(answer) = self.answer(worker, &session, &word, &refused)? {
                return Ok(AssignmentDto { epoch: Some(epoch), ..answer });
            }
            // A run that may go on for longer than the log says of any of this worker.
            self.register(worker).await?;
        }
    }

    /// Refuses a new process of a worker of an earlier leader, unless its former process has certainly ended.
    async fn admit(&self, worker: &Arc<str>, word: &OfferRequest) -> Result<(), HubError> {
        let is_fresh = word.remote.is_some() && word.session.is_none() && word.epoch.is_some();
        let Some(engine) = self.engine.get().filter(|_| is_fresh && !self.state().is_there(worker)) else {
            return Ok(());
        };
        if let Err(error) = self.elsewhere.read_for(engine).await {
            return Err(self.waits(worker, &error));
        }
        match self.elsewhere.held(worker, word, Now::read()) {
            Some(held) => Err(HubError::NameHeld(held)),
            None => Ok(()),
        }
    }

    /// Those of the runs that a worker may not have which are over in the log, or at another worker. Of the others it keeps what it has: it
    /// alone may know how they ended.
    async fn refused(&self, worker: &Arc<str>, runs: Vec<RunId>) -> Vec<RunId> {
        let Some(engine) = self.engine.get().filter(|_| !runs.is_empty()) else { return runs };
        let (mut refused, rest): (Vec<RunId>, Vec<RunId>) = {
            let state = self.state();
            runs.into_iter().partition(|run| state.is_at_another(run, worker))
        };
        let reader = engine.reader().clone();
        let is_alive = move |run: &RunId| match reader.slot(&run.slot) {
            Ok(slot) => slot.is_some_and(|slot| slot.run_alive && slot.last_run == run.number),
            Err(error) => {
                tracing::warn!(%run, "failed to {error}: a worker keeps a run");
                true
            }
        };
        let over = move || rest.into_iter().filter(|run| !is_alive(run)).collect::<Vec<_>>();
        refused.extend(tokio::task::spawn_blocking(over).await.unwrap_or_default());
        refused
    }

    fn take_in(
        self: &Arc<Self>,
        worker: &Arc<str>,
        word: &OfferRequest,
    ) -> Result<(String, bool, Vec<RunId>), HubError> {
        let mut state = self.state();
        let (session, is_new) = state.session(worker, word, Now::read())?;
        // The end of a process on another machine can't be seen; that of one with folders of its own says nothing of its commands.
        let process = session.process.clone().filter(|_| session.remote.is_none());
        let id = session.id.clone();
        let mut refused = state.reported(worker, &word.reports);
        refused.extend(state.offered(worker, word));
        state.pass_on();
        self.tell(&mut state);
        drop(state);
        if is_new {
            tracing::info!(worker = &**worker, "a worker came");
            if let Some(process) = process.filter(super::Process::is_here) {
                let (desk, worker, id) = (Arc::downgrade(self), worker.clone(), id.clone());
                self.runtime.spawn(async move {
                    gone(process.id).await;
                    if let Some(desk) = desk.upgrade() {
                        desk.give_up_session(&worker, &id, &format!("its worker {worker} ended"));
                    }
                });
            }
        }
        Ok((id, is_new, refused))
    }

    /// Waits until there is something to do for a worker, though not for long.
    async fn wait_for_orders(&self, worker: &Arc<str>, wait: Duration) {
        let wake = self.state().sessions.get(worker).map(|session| session.wake.clone());
        let Some(wake) = wake else { return };
        let mut closing = self.closing.subscribe();
        let waits = async {
            loop {
                let woken = wake.notified();
                tokio::pin!(woken);
                // From here on no notification is missed, whether it comes before the check or after.
                woken.as_mut().enable();
                if self.state().has_orders(worker) {
                    return;
                }
                woken.await;
            }
        };
        tokio::select! {
            () = waits => {}
            _ = closing.wait_for(|closing| *closing) => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// The answer to a worker; none if the log does not have all yet that it has to have before.
    fn answer(
        &self,
        worker: &Arc<str>,
        id: &str,
        word: &OfferRequest,
        refused: &[RunId],
    ) -> Result<Option<AssignmentDto>, HubError> {
        let mut state = self.state();
        if state.sessions.get(worker).is_none_or(|session| session.id != id) {
            return Err(HubError::GivenUp);
        }
        if word.leaves && word.declines {
            state.take_back(worker);
        }
        if state.is_unregistered(worker) {
            return Ok(None);
        }
        // Words of reports don't wait, and may overtake each other: only the one that waits gets something to do.
        let is_asking = word.wait_millis > 0 || word.leaves;
        let (starts, cancels) = if is_asking { state.orders(worker) } else { Default::default() };
        let outputs = if is_asking { state.questions(worker) } else { Vec::new() };
        let permits = if is_asking { state.permits(worker) } else { Vec::new() };
        let sought = if is_asking { state.sought(worker) } else { Vec::new() };
        let outdated = state.outdated(worker);
        let has_nothing = state.sessions.get(worker).is_some_and(|session| session.runs().is_empty());
        if word.leaves && has_nothing {
            state.give_up(worker);
            state.pass_on();
            self.tell(&mut state);
            // An offer that another word of it renewed meanwhile is void.
            if let Some(engine) = self.engine.get() {
                let _ = engine.deliver(Input::Offered { worker: worker.clone(), offer: None });
            }
            tracing::info!(worker = &**worker, "a worker left");
        }
        self.tell(&mut state);
        self.stirred.notify_one();
        let lease_millis = u64::try_from(self.terms.of(word.remote.is_some()).as_millis()).unwrap_or(u64::MAX);
        let (session, refused) = (id.to_owned(), refused.to_vec());
        let answer = AssignmentDto {
            session,
            lease_millis,
            starts,
            cancels,
            outputs,
            permits,
            outdated,
            refused,
            sought,
            ..AssignmentDto::default()
        };
        Ok(Some(answer))
    }

    /// Has the log know a worker on another machine before it is told anything, and then offers its room to the core.
    async fn register(&self, worker: &Arc<str>) -> Result<(), HubError> {
        let registered = self.elsewhere.register(self.engine.get(), worker, &self.state).await;
        registered.map_err(|error| self.waits(worker, &error))?;
        if self.complaints.is_over(worker) {
            tracing::info!(worker = &**worker, "a worker that waited is in the log");
        }
        self.tell(&mut self.state());
        Ok(())
    }

    /// Says that a worker waits until it is in the log, once for each reason: it asks again soon.
    fn waits(&self, worker: &Arc<str>, error: &RecordError) -> HubError {
        if self.complaints.is_new(worker, &error.to_string()) {
            tracing::warn!(worker = &**worker, "failed to {error}: a worker is not in the log, and waits");
        }
        HubError::NotStored
    }

    /// Sends changes of offers to the core, and then the runs that go back to its queue.
    fn tell(&self, state: &mut State) {
        let news = state.news();
        if let Some(engine) = self.engine.get() {
            for input in news {
                // An engine that ended needs no offers.
                let _ = engine.deliver(input);
            }
        }
        for (reports, run, report) in state.returned() {
            reports.run(&run, report);
        }
    }

    /// Has the log and the core know the workers that are there: an engine that begins to lead remembers none.
    async fn lead(&self) {
        let remote = self.state().remote_workers();
        for worker in remote {
            // If it fails it is tried again with the next message of the worker.
            let _ = self.register(&worker).await;
        }
        if let Some(engine) = self.engine.get()
            && let Err(error) = self.elsewhere.read_for(engine).await
        {
            tracing::debug!("failed to {error}");
        }
        let mut state = self.state();
        state.doubt_offers();
        self.tell(&mut state);
        self.stirred.notify_one();
    }

    /// Waits until what was reported is committed, and gives the epoch in which it is; an inner none if it is not. A hub without an engine
    /// has nowhere to store it.
    async fn settle(&self) -> Option<Option<u64>> {
        Some(self.engine.get()?.settled().await.ok())
    }

    fn give_up_session(self: &Arc<Self>, worker: &Arc<str>, id: &str, why: &str) {
        let mut state = self.state();
        if state.sessions.get(worker).is_none_or(|session| session.id != id) {
            return;
        }
        let had = state.give_up(worker).unwrap_or_default();
        if let Some(engine) = self.engine.get() {
            let _ = engine.deliver(Input::Offered { worker: worker.clone(), offer: None });
        }
        drop(state);
        tracing::warn!(worker = &**worker, runs = had.len(), "{why}: what it had is ended");
        for run in had {
            let (desk, why) = (self.clone(), why.to_owned());
            self.runtime.spawn(async move {
                let report = verdict::end(&desk.launcher, &run, &why).await;
                desk.conclude(&run, report).await;
            });
        }
    }

    /// Gives up workers that were silent for too long, and runs that no worker claimed.
    fn look(self: &Arc<Self>, now: Now) {
        if self.leads().is_none() {
            return;
        }
        let mut state = self.state();
        let is_silent = |heard: Instant| now.monotonic.duration_since(heard) > self.terms.lease;
        let here = state.sessions.iter().filter(|(_, session)| session.remote.is_none());
        let silent = here.filter(|(_, session)| is_silent(session.heard));
        let silent: Vec<_> = silent.map(|(name, session)| (name.clone(), session.id.clone())).collect();
        let before: BTreeSet<Arc<str>> = state.sessions.keys().cloned().collect();
        let lost = state.miss_remote(now);
        state.pass_on();
        self.tell(&mut state);
        let gone: Vec<_> = before.into_iter().filter(|worker| !state.sessions.contains_key(worker)).collect();
        let overdue = self.elsewhere.overdue(&state, now);
        drop(state);
        for worker in gone {
            tracing::warn!(worker = &*worker, "a worker on another machine was not heard of for too long");
            if let Some(engine) = self.engine.get() {
                let _ = engine.deliver(Input::Offered { worker, offer: None });
            }
        }
        for (run, report) in lost {
            let desk = self.clone();
            self.runtime.spawn(async move { desk.conclude(&run, report).await });
        }
        if !overdue.is_empty() {
            self.runtime.spawn(self.clone().strike(overdue));
        }
        for (worker, id) in silent {
            let why = format!("its worker {worker} was not heard of for {:?}", self.terms.lease);
            self.give_up_session(&worker, &id, &why);
        }
        self.look_for_left(now.monotonic);
    }
}

impl Drop for HubState {
    fn drop(&mut self) {
        // Ends the periodic checks.
        self.stirred.notify_one();
    }
}
