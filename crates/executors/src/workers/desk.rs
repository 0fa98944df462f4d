//! The leader's side: an executor whose runs are done by workers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use kelos_core::Input;
use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::{Handle, Status};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, WorkflowId};
use kelos_wire::{AssignmentDto, OfferRequest};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{Notify, watch};

use super::state::{CancelResult, Entry, Place, State};
use super::{Roll, Seen, verdict};
use crate::local::{Launcher, LocalError, gone, unique};
use crate::run_ref;

/// The number of checks for silent workers in the time of a lease.
const LOOKS: u32 = 10;

/// The longest wait between two checks for runs that no worker claims.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long the first answer to a worker is delayed by runs of which it is being found out whether they began.
const DOUBT: Duration = Duration::from_secs(1);

/// The longest age of the list of workflows for workers that accept all.
const APPS_AGE: Duration = Duration::from_secs(1);

/// The reason for which a hub rejects a worker. Messages complete "failed to …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// It was silent for too long, or its process ended.
    #[error("continue this session: the worker sent no heartbeat for too long, and its runs were taken away")]
    GivenUp,
    /// The leader ends.
    #[error("accept a worker: this leader is shutting down")]
    Closing,
    /// Its reports were not stored: the leader lost the lead, or its store failed.
    #[error("store what a worker reported: this process does not lead at the moment")]
    NotStored,
    /// The server does its jobs itself.
    #[error("register a worker: this server runs jobs itself, expected one that hands them to workers")]
    ByItself,
}

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
    lease: Duration,
    takes: bool,
    engine: OnceLock<Handle>,
    apps_at: Mutex<Option<Instant>>,
    closing: watch::Sender<bool>,
    /// The last report was sent on a run that no worker had.
    concluded: Notify,
    /// A worker reported, or a run was added: there may be a silent worker or an unclaimed run to check for.
    stirred: Arc<Notify>,
}

impl Hub {
    /// A desk for runs whose folders a launcher has, and for the workers of a roll. One that takes no workers only settles what others left.
    ///
    /// # Errors
    /// When the system gives no unique name.
    pub fn new(
        launcher: Launcher,
        roll: Roll,
        runtime: Runtime,
        lease: Duration,
        takes: bool,
    ) -> Result<Hub, LocalError> {
        let own = unique().map_err(|source| LocalError::Process { doing: "name", run: "a desk".to_owned(), source })?;
        let inner = Arc::new(HubState {
            state: Mutex::new(State::new(own)),
            launcher,
            roll,
            runtime,
            lease,
            takes,
            engine: OnceLock::new(),
            apps_at: Mutex::default(),
            closing: watch::Sender::new(false),
            concluded: Notify::new(),
            stirred: Arc::default(),
        });
        let around = look_around(Arc::downgrade(&inner), inner.stirred.clone(), (lease / LOOKS).min(LOOK_AGAIN));
        inner.runtime.spawn(around);
        Ok(Hub { inner })
    }

    /// Connects the engine whose runs these are, and which gets the offers.
    pub fn connect(&self, engine: Handle) {
        let status = engine.watch_status();
        let _ = self.inner.engine.set(engine);
        self.inner.runtime.spawn(offer_anew(Arc::downgrade(&self.inner), status));
    }

    /// The time after which a silent worker loses its runs.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.inner.lease
    }

    /// Those who are there.
    #[must_use]
    pub fn workers(&self) -> Vec<Seen> {
        self.inner.state().seen()
    }

    /// Checks as if it were a later moment.
    #[cfg(test)]
    pub(super) fn look(&self, now: Instant) {
        self.inner.look(now);
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
    /// When the worker is rejected.
    pub async fn hear(&self, worker: &str, word: OfferRequest) -> Result<AssignmentDto, HubError> {
        let (inner, worker) = (&self.inner, Arc::<str>::from(worker));
        inner.stirred.notify_one();
        if !inner.takes {
            return Err(HubError::ByItself);
        }
        if *inner.closing.borrow() {
            return Err(HubError::Closing);
        }
        if word.workflows.is_empty() {
            inner.look_for_apps().await;
        }
        let (session, is_new, refused) = inner.take_in(&worker, &word)?;
        inner.look_for_left(Instant::now());
        if is_new {
            inner.end_doubt().await;
        }
        if is_new || !word.reports.is_empty() || word.leaves {
            let is_stored = inner.settle().await;
            // A worker forgets reports that are confirmed, so only stored ones are; the others it repeats to the next leader.
            if !is_stored && !word.reports.is_empty() {
                return Err(HubError::NotStored);
            }
            inner.state().stored(&worker, &word.reports);
        }
        inner.wait_for_orders(&worker, Duration::from_millis(word.wait_millis)).await;
        inner.answer(&worker, session, &word, refused)
    }
}

impl HubState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in(
        self: &Arc<Self>,
        worker: &Arc<str>,
        word: &OfferRequest,
    ) -> Result<(String, bool, Vec<RunId>), HubError> {
        let mut state = self.state();
        let (session, is_new) = state.session(worker, word, Instant::now()).ok_or(HubError::GivenUp)?;
        let (id, process) = (session.id.clone(), session.process.clone());
        let mut refused = state.reported(worker, &word.reports);
        refused.extend(state.offered(worker, word));
        state.assign_waiting();
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
        let (wait, mut closing) = (wait.min(self.lease / 3), self.closing.subscribe());
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

    fn answer(
        &self,
        worker: &Arc<str>,
        id: String,
        word: &OfferRequest,
        refused: Vec<RunId>,
    ) -> Result<AssignmentDto, HubError> {
        let mut state = self.state();
        if state.sessions.get(worker).is_none_or(|session| session.id != id) {
            return Err(HubError::GivenUp);
        }
        if word.leaves && word.declines {
            state.take_back(worker);
        }
        // Words of reports don't wait, and may overtake each other: only the one that waits gets something to do.
        let (starts, cancels) =
            if word.wait_millis > 0 || word.leaves { state.orders(worker) } else { Default::default() };
        let has_nothing = state.sessions.get(worker).is_some_and(|session| session.runs().is_empty());
        if word.leaves && has_nothing {
            state.give_up(worker);
            state.assign_waiting();
            self.tell(&mut state);
            tracing::info!(worker = &**worker, "a worker left");
        }
        let lease_millis = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        Ok(AssignmentDto { session: id, lease_millis, starts, cancels, refused })
    }

    /// Sends changes of offers to the core.
    fn tell(&self, state: &mut State) {
        let news = state.news();
        if let Some(engine) = self.engine.get() {
            for input in news {
                // An engine that ended needs no offers.
                let _ = engine.deliver(input);
            }
        }
    }

    /// Waits until what was reported is committed; false where it was not.
    async fn settle(&self) -> bool {
        match self.engine.get() {
            Some(engine) => engine.settled().await.is_ok(),
            None => true,
        }
    }

    /// The workflows whose jobs are done by workers that take all.
    async fn look_for_apps(&self) {
        let Some(engine) = self.engine.get() else { return };
        let is_fresh = |at: &Option<Instant>| at.is_some_and(|at| at.elapsed() < APPS_AGE);
        if is_fresh(&self.apps_at.lock().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let reader = engine.reader().clone();
        if let Ok(Ok(rows)) = tokio::task::spawn_blocking(move || reader.workflows(None)).await {
            let keyed = rows.into_iter().filter(|row| row.present && row.definition.keys.jobs().is_some());
            let apps: BTreeSet<WorkflowId> = keyed.map(|row| row.id).collect();
            self.state().apps = apps;
            *self.apps_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
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

    /// Sends the last report on a run that no worker has.
    async fn conclude(&self, run: &RunId, report: Report) {
        let outputs = self.launcher.outputs(&run_ref(run)).await;
        let Some(entry) = self.state().runs.remove(run) else { return };
        let report = match report {
            Report::Ended { outcome: Outcome::Unknown { .. } } | Report::NeverStarted if entry.cancelled => {
                Report::Ended { outcome: Outcome::Killed }
            }
            other => other,
        };
        let report = match (report, outputs) {
            (Report::Ended { outcome: Outcome::Succeeded }, Err(bytes)) => {
                Report::Ended { outcome: Outcome::gave_too_much(bytes) }
            }
            (report @ Report::Ended { .. }, Ok(Some(outputs))) => {
                entry.reports.run(run, Report::Gave { outputs });
                report
            }
            (report, _) => report,
        };
        entry.reports.run(run, report);
        self.concluded.notify_waiters();
    }

    /// Waits until it is known whether the runs that another leader assigned began, so that they can be assigned again.
    async fn end_doubt(&self) {
        let ended = async {
            loop {
                let concluded = self.concluded.notified();
                tokio::pin!(concluded);
                concluded.as_mut().enable();
                if !self.state().is_in_doubt() {
                    return;
                }
                concluded.await;
            }
        };
        let _ = tokio::time::timeout(DOUBT, ended).await;
    }

    /// Gives up workers that were silent for too long, and runs that no worker claimed.
    fn look(self: &Arc<Self>, now: Instant) {
        let state = self.state();
        let silent = state.sessions.iter().filter(|(_, session)| now.duration_since(session.heard) > self.lease);
        let silent: Vec<_> = silent.map(|(name, session)| (name.clone(), session.id.clone())).collect();
        drop(state);
        for (worker, id) in silent {
            let why = format!("its worker {worker} was not heard of for {:?}", self.lease);
            self.give_up_session(&worker, &id, &why);
        }
        self.look_for_left(now);
    }

    /// Takes over the runs that another leader assigned and no worker claims.
    fn look_for_left(self: &Arc<Self>, now: Instant) {
        if !self.state().has_unclaimed() {
            return;
        }
        let living = self.roll.living(self.lease);
        let left = self.state().left(&living, now);
        for (run, why) in left {
            self.take_over(&run, why);
        }
    }

    /// Ends a run that another leader assigned, unless a worker claimed it meanwhile.
    fn take_over(self: &Arc<Self>, run: &RunId, why: &str) {
        let mut state = self.state();
        let unclaimed = |entry: &&mut Entry| matches!(entry.place, Place::Unclaimed(_));
        let Some(entry) = state.runs.get_mut(run).filter(unclaimed) else { return };
        entry.place = Place::Ending;
        let was_confirmed = entry.external_id.is_some();
        drop(state);
        let (desk, run, why) = (self.clone(), run.clone(), why.to_owned());
        self.runtime.spawn(async move {
            let report = verdict::unclaimed(&desk.launcher, &run, was_confirmed, &why).await;
            desk.conclude(&run, report).await;
        });
    }

    /// Checks a run that another leader assigned at once: it may have ended, and its worker with it.
    async fn look_at(self: Arc<Self>, run: RunId) {
        if let Some(report) = verdict::found(&self.launcher, &run).await {
            let is_unclaimed =
                |state: &State| state.runs.get(&run).is_some_and(|entry| matches!(entry.place, Place::Unclaimed(_)));
            if is_unclaimed(&self.state()) {
                self.conclude(&run, report).await;
            }
            return;
        }
        self.look_for_left(Instant::now());
    }
}

/// Sends all offers again to a core that begins to lead, at first or after trouble with its store: it remembers none.
async fn offer_anew(desk: Weak<HubState>, mut status: watch::Receiver<Status>) {
    while status.changed().await.is_ok() {
        let Some(desk) = desk.upgrade() else { return };
        if matches!(*status.borrow_and_update(), Status::Leading { .. }) {
            let mut state = desk.state();
            state.doubt_offers();
            desk.tell(&mut state);
        }
    }
}

/// Checks periodically while there are workers or runs: an idle hub costs nothing. If the task itself was held up, it
/// missed the messages of that time, and extends the lease of each worker.
async fn look_around(desk: Weak<HubState>, stirred: Arc<Notify>, every: Duration) {
    let every = every.max(Duration::from_millis(20));
    let mut looked = Instant::now();
    loop {
        let Some(is_idle) = desk.upgrade().map(|desk| desk.state().is_idle()) else { return };
        if is_idle {
            stirred.notified().await;
            looked = Instant::now();
        }
        tokio::time::sleep(every).await;
        let Some(desk) = desk.upgrade() else { return };
        let now = Instant::now();
        if now.duration_since(looked) > desk.lease / 2 {
            desk.state().sessions.values_mut().for_each(|session| session.heard = now);
        }
        looked = now;
        desk.look(now);
    }
}

impl Drop for HubState {
    fn drop(&mut self) {
        // Ends the periodic checks.
        self.stirred.notify_one();
    }
}

impl Executor for Hub {
    fn start(&self, start: Start, reports: Reports) {
        let mut state = self.inner.state();
        if *self.inner.closing.borrow() {
            return reports.run(&start.run, Report::NeverStarted);
        }
        state.start(start, reports);
        self.inner.stirred.notify_one();
        self.inner.tell(&mut state);
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let mut state = self.inner.state();
        if let Some(entry) = state.runs.get_mut(run) {
            entry.reports = reports;
            if let Some(external_id) = entry.external_id.clone() {
                entry.reports.run(run, Report::Started { external_id });
            }
            return;
        }
        let until = Instant::now() + self.inner.lease;
        let external_id = external_id.map(str::to_owned);
        state.runs.insert(run.clone(), Entry::unclaimed(reports, until, external_id));
        self.inner.stirred.notify_one();
        drop(state);
        self.inner.runtime.spawn(self.inner.clone().look_at(run.clone()));
    }

    fn cancel(&self, run: &RunId, _external_id: Option<&str>, reports: Reports) {
        let cancelled = self.inner.state().cancel(run, reports.clone());
        match cancelled {
            CancelResult::Noted => {}
            CancelResult::NeverBegan => reports.run(run, Report::Ended { outcome: Outcome::Killed }),
            CancelResult::Unknown => {
                let (launcher, run) = (self.inner.launcher.clone(), run.clone());
                self.inner.runtime.spawn(async move {
                    let ended = verdict::end(&launcher, &run, "killed").await;
                    let killed = matches!(ended, Report::Ended { outcome: Outcome::Unknown { .. } });
                    reports.run(&run, if killed { Report::Ended { outcome: Outcome::Killed } } else { ended });
                });
            }
        }
    }

    fn note(&self, run: &RunId) -> Option<String> {
        let state = self.inner.state();
        match &state.runs.get(run)?.place {
            Place::Waiting => Some("it waits for a worker with room that takes such jobs".to_owned()),
            Place::Given(worker) => Some(format!("worker {worker} does it")),
            Place::Unclaimed(_) => Some("it waits for its worker to come back".to_owned()),
            Place::Ending => Some("its worker is gone, and what is left of it is being ended".to_owned()),
        }
    }
}
