//! Watching jobs until they end: one round of questions for all jobs of one Oozie, many jobs to a question.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use kelos_engine::executor::Reports;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use tokio::runtime::Handle as Runtime;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::OozieWaits;
use super::rest::{Action, Oozie, Trouble};
use super::verdict::{self, JobStatus};

/// Jobs in one question. Their ids must fit into a URL.
const BATCH: usize = 100;
/// Requests to one Oozie at a time.
const AT_A_TIME: usize = 8;
/// The number of refusals to start a job after which its run is given up.
const START_REFUSALS: u32 = 10;
/// A job is asked about after this part of its age.
const PART_OF_AGE: u32 = 20;

/// A job to be watched.
pub(super) struct Subject {
    pub(super) run: RunId,
    /// Its id in Oozie.
    pub(super) job: String,
    pub(super) oozie: Oozie,
    pub(super) reports: Reports,
    /// The time of its last start request; none if none was sent by this process.
    pub(super) started: Option<Instant>,
    /// Whether it is to be killed.
    pub(super) kill: bool,
}

/// All jobs that are watched, by Oozie. Cheap to clone.
#[derive(Clone)]
pub(super) struct Watch {
    inner: Arc<WatchState>,
}

struct WatchState {
    waits: OozieWaits,
    runtime: Runtime,
    /// The desks, by the URL of their Oozie.
    desks: Mutex<BTreeMap<String, (Arc<Desk>, AbortHandle)>>,
}

impl Watch {
    pub(super) fn new(waits: OozieWaits, runtime: Runtime) -> Self {
        Self { inner: Arc::new(WatchState { waits, runtime, desks: Mutex::default() }) }
    }

    /// Watches a job until its end is reported.
    pub(super) fn add(&self, subject: Subject) {
        let mut desks = locked(&self.inner.desks);
        let (desk, _) = desks.entry(subject.oozie.shown()).or_insert_with(|| {
            let desk = Arc::new(Desk::new(subject.oozie.shown(), self.inner.waits));
            let task = self.inner.runtime.spawn(desk.clone().work());
            (desk, task.abort_handle())
        });
        desk.add(subject);
    }

    /// The job of a run that is watched.
    pub(super) fn job_of(&self, run: &RunId) -> Option<String> {
        let desk = self.desk_of(run)?;
        locked(&desk.watched).get(run).map(|watched| watched.subject.job.clone())
    }

    /// Orders the job of a watched run to be killed; false if the run is not watched.
    pub(super) fn kill(&self, run: &RunId) -> bool {
        let Some(desk) = self.desk_of(run) else { return false };
        let found = locked(&desk.watched).get_mut(run).map(|watched| {
            watched.subject.kill = true;
            watched.due = Instant::now();
        });
        desk.wake.notify_one();
        found.is_some()
    }

    /// The obstacle to the progress of a run, as a message.
    pub(super) fn note(&self, run: &RunId) -> Option<String> {
        let desk = self.desk_of(run)?;
        let outage = locked(&desk.outage).clone();
        outage.or_else(|| locked(&desk.watched).get(run)?.note.clone())
    }

    fn desk_of(&self, run: &RunId) -> Option<Arc<Desk>> {
        let desks = locked(&self.inner.desks);
        desks.values().map(|(desk, _)| desk).find(|desk| locked(&desk.watched).contains_key(run)).cloned()
    }
}

impl Drop for WatchState {
    fn drop(&mut self) {
        for (_, task) in locked(&self.desks).values() {
            task.abort();
        }
    }
}

/// A watched job, with the state of its watch.
struct JobWatch {
    subject: Subject,
    since: Instant,
    /// When it is asked about next.
    due: Instant,
    start_refusals: u32,
    /// The obstacle to its progress, as a message.
    note: Option<String>,
}

/// The data that a round needs of a job, so that the list isn't locked meanwhile.
#[derive(Clone)]
struct Item {
    run: RunId,
    job: String,
    oozie: Oozie,
    kill: bool,
    started: Option<Instant>,
}

/// The result of a round.
type Round = Result<(), Trouble>;

/// The jobs of one Oozie.
struct Desk {
    shown: String,
    waits: OozieWaits,
    watched: Mutex<BTreeMap<RunId, JobWatch>>,
    /// The reason for which no job can be checked at present, as a message.
    outage: Mutex<Option<String>>,
    wake: Notify,
}

impl Desk {
    fn new(shown: String, waits: OozieWaits) -> Self {
        Self { shown, waits, watched: Mutex::default(), outage: Mutex::default(), wake: Notify::new() }
    }

    fn add(&self, subject: Subject) {
        let now = Instant::now();
        let watched = JobWatch { since: now, due: now, start_refusals: 0, note: None, subject };
        let mut list = locked(&self.watched);
        // A kill that was asked for meanwhile is not forgotten.
        let kill = list.get(&watched.subject.run).is_some_and(|known| known.subject.kill);
        let known = list.entry(watched.subject.run.clone()).insert_entry(watched);
        known.into_mut().subject.kill |= kill;
        drop(list);
        self.wake.notify_one();
    }

    /// Rounds for ever. An Oozie that is down is asked less and less often, but all its jobs keep their places.
    async fn work(self: Arc<Self>) {
        let mut failures = 0_u32;
        loop {
            self.wait_for_work().await;
            let round = self.round().await;
            failures = if round.is_ok() { 0 } else { failures + 1 };
            self.tell(round.err());
            // Jobs that become due meanwhile are checked in one round.
            let wait = if failures == 0 { self.waits.shortest } else { self.waits.after_failures(failures) };
            tokio::time::sleep(wait).await;
        }
    }

    /// Logs the beginning and the end of an outage.
    fn tell(&self, trouble: Option<Trouble>) {
        let now = trouble.map(|trouble| {
            format!("nothing is heard of the job, which may go on in Oozie at {}: failed to {trouble}", self.shown)
        });
        let before = std::mem::replace(&mut *locked(&self.outage), now.clone());
        match (before, now) {
            (None, Some(_)) => tracing::warn!(oozie = self.shown, "Oozie can't be asked; it is asked again later"),
            (Some(_), None) => tracing::info!(oozie = self.shown, "Oozie is back"),
            _ => {}
        }
    }

    async fn wait_for_work(&self) {
        loop {
            let due = locked(&self.watched).values().map(|watched| watched.due).min();
            match due.map(|due| due.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return,
                Some(wait) => drop(tokio::time::timeout(wait, self.wake.notified()).await),
                None => self.wake.notified().await,
            }
        }
    }

    /// Asks about all that is due, and acts on it.
    async fn round(&self) -> Round {
        let due = self.due();
        self.kill(&due).await?;
        for batch in due.chunks(BATCH) {
            let statuses = self.statuses(batch).await?;
            let judged = batch.iter().filter_map(|item| Some((item, statuses.get(&item.job)?)));
            let work: Vec<_> = judged.map(|(item, status)| self.judge(item, status)).collect();
            some_at_a_time(work).await.into_iter().collect::<Round>()?;
        }
        Ok(())
    }

    fn due(&self) -> Vec<Item> {
        let now = Instant::now();
        let list = locked(&self.watched);
        let due = list.iter().filter(|(_, watched)| watched.due <= now);
        due.map(|(run, JobWatch { subject, .. })| Item {
            run: run.clone(),
            job: subject.job.clone(),
            oozie: subject.oozie.clone(),
            kill: subject.kill,
            started: subject.started,
        })
        .collect()
    }

    async fn kill(&self, due: &[Item]) -> Round {
        let kill = |item: &Item| {
            let item = item.clone();
            async move { (item.oozie.act(&item.job, Action::Kill).await, item) }
        };
        let kills = due.iter().filter(|item| item.kill).map(kill).collect();
        for (killed, item) in some_at_a_time(kills).await {
            match killed {
                Err(trouble @ Trouble::NoWord { .. }) => return Err(trouble),
                // It may have ended by itself; its status will tell.
                Err(said) => tracing::info!(run = %item.run, job = item.job, "failed to {said} when killing it"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// The statuses of a batch. Jobs that Oozie does not know are reported, and not among them.
    async fn statuses(&self, batch: &[Item]) -> Result<BTreeMap<String, String>, Trouble> {
        let ids: BTreeSet<&str> = batch.iter().map(|item| item.job.as_str()).collect();
        let Some(first) = batch.first() else { return Ok(BTreeMap::new()) };
        let mut found = match first.oozie.statuses(&ids.into_iter().collect::<Vec<_>>()).await {
            Ok(found) => found,
            Err(trouble) if trouble.is_bad_filter() => BTreeMap::new(),
            Err(trouble) => return Err(trouble),
        };
        let missing: Vec<_> = batch.iter().filter(|item| !found.contains_key(&item.job)).collect();
        let asked = missing.into_iter().map(|item| async move { (item, item.oozie.status(&item.job).await) }).collect();
        for (item, answer) in some_at_a_time(asked).await {
            match answer {
                Ok(status) => drop(found.insert(item.job.clone(), status)),
                Err(trouble) if trouble.is_no_such_job() => self.lost(item),
                Err(trouble @ Trouble::NoWord { .. }) => return Err(trouble),
                Err(said) => self.later(item, Some(format!("failed to ask about Oozie job {}: {said}", item.job))),
            }
        }
        Ok(found)
    }

    async fn judge(&self, item: &Item, status: &str) -> Round {
        match JobStatus::of(status) {
            JobStatus::Prepared => self.start(item).await?,
            JobStatus::Running => self.later(item, None),
            JobStatus::Suspended => {
                let why =
                    format!("Oozie job {} is suspended in Oozie: resume or kill it there, or kill the slot", item.job);
                self.later(item, Some(why));
            }
            JobStatus::Unheard => {
                let why = format!("Oozie says that job {} is {status}, which is taken for running", item.job);
                self.later(item, Some(why));
            }
            JobStatus::Succeeded => self.ended(item, Outcome::Succeeded),
            JobStatus::Ended => self.failed(item).await?,
        }
        Ok(())
    }

    /// Starts a job whose start got lost, or was refused.
    async fn start(&self, item: &Item) -> Round {
        let waited = item.started.is_none_or(|started| started.elapsed() >= self.waits.restart);
        if item.kill || !waited {
            self.later(item, None);
            return Ok(());
        }
        match item.oozie.act(&item.job, Action::Start).await {
            Ok(()) => {
                self.update(item, |watched| watched.subject.started = Some(Instant::now()));
                self.later(item, None);
            }
            Err(trouble @ Trouble::NoWord { .. }) => return Err(trouble),
            Err(said) => self.not_started(item, &said),
        }
        Ok(())
    }

    /// A run whose job Oozie will not start must not stay as if it ran: it is ended, and so is the job.
    fn not_started(&self, item: &Item, said: &Trouble) {
        let refusals = self.update(item, |watched| {
            watched.subject.started = Some(Instant::now());
            watched.start_refusals += 1;
            watched.start_refusals
        });
        let why = format!("Oozie job {} is submitted, and can't be started: failed to {said}", item.job);
        if refusals.is_some_and(|refusals| refusals >= START_REFUSALS) {
            let (oozie, job) = (item.oozie.clone(), item.job.clone());
            tokio::spawn(async move { oozie.act(&job, Action::Kill).await });
            self.ended(item, Outcome::Failed { reason: why, exit_status: None, code: None });
        } else {
            self.later(item, Some(why));
        }
    }

    async fn failed(&self, item: &Item) -> Round {
        let details = match item.oozie.details(&item.job).await {
            Ok(details) => details,
            Err(trouble) if trouble.is_no_such_job() => {
                self.lost(item);
                return Ok(());
            }
            Err(trouble) => return Err(trouble),
        };
        let killed = self.update(item, |watched| watched.subject.kill).unwrap_or(item.kill);
        self.ended(item, verdict::outcome(&item.job, &details, killed));
        Ok(())
    }

    fn lost(&self, item: &Item) {
        let reason = format!(
            "Oozie at {} does not know job {} any more: it was purged there, or the URL now leads to another Oozie",
            self.shown, item.job
        );
        self.ended(item, Outcome::Unknown { reason });
    }

    fn ended(&self, item: &Item, outcome: Outcome) {
        let Some(watched) = locked(&self.watched).remove(&item.run) else { return };
        watched.subject.reports.run(&item.run, Report::Ended { outcome });
    }

    /// Schedules the next check, with a wait that grows.
    fn later(&self, item: &Item, note: Option<String>) {
        let changed = self.update(item, |watched| {
            let now = Instant::now();
            let wait = (now.saturating_duration_since(watched.since) / PART_OF_AGE)
                .clamp(self.waits.shortest, self.waits.longest);
            // A kill that was asked for in the middle of the round stays due.
            if watched.subject.kill == item.kill {
                watched.due = now + wait;
            }
            let changed = watched.note != note;
            watched.note.clone_from(&note);
            changed
        });
        if let Some(note) = note.filter(|_| changed == Some(true)) {
            tracing::warn!(run = %item.run, "{note}");
        }
    }

    fn update<T>(&self, item: &Item, change: impl FnOnce(&mut JobWatch) -> T) -> Option<T> {
        locked(&self.watched).get_mut(&item.run).map(change)
    }
}

async fn some_at_a_time<F: Future>(work: Vec<F>) -> Vec<F::Output> {
    stream::iter(work).buffer_unordered(AT_A_TIME).collect().await
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
