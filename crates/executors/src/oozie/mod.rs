//! The executor for jobs of Apache Oozie.
//!
//! A job is submitted under an external id that is derived from the run's name, and is started by a second request. So
//! a run whose submission was not recorded is found again, and of two jobs that an uncertain submission may leave
//! behind only one is ever started.
//!
//! Absent: Kerberos. If an Oozie asks for it, the reason for which its slots are deferred says so.

mod order;
mod records;
mod rest;
mod verdict;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use tokio::runtime::Handle as Runtime;
use tokio::sync::{OwnedMutexGuard, Semaphore};

use self::order::{Order, Place};

pub use self::records::{NodeRecords, Records};
use self::rest::{Oozie, Trouble};
use self::watch::{Subject, Watch};
use crate::http::Http;
use kelos_engine::executor::{Executor, Reports, Start};
use kelos_engine::secrets::Secrets;

/// Submissions at a time; Oozie reads each workflow's definition from HDFS before it answers.
const SUBMISSIONS: usize = 8;

/// A start that is later than this has been lost.
const LATE_STARTS: Duration = Duration::from_secs(600);

/// The waits of the executor.
#[derive(Debug, Clone, Copy)]
pub struct OozieWaits {
    /// For the answer to a request.
    pub request: Duration,
    /// The shortest wait between two checks of a job.
    pub shortest: Duration,
    /// The longest wait between two checks of a job; also the wait between two attempts to reach an Oozie that is down.
    pub longest: Duration,
    /// The wait before a job that did not start is started again.
    pub restart: Duration,
    /// The wait before a submission without an answer counts as one that failed.
    pub doubt: Duration,
}

impl Default for OozieWaits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(60),
            shortest: Duration::from_secs(1),
            longest: Duration::from_secs(15),
            restart: Duration::from_secs(10),
            doubt: Duration::from_secs(60),
        }
    }
}

impl OozieWaits {
    /// Before an Oozie is asked again that failed so often in a row.
    fn after_failures(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.shortest.saturating_mul(doubled).min(self.longest)
    }

    /// The wait between two searches for a job whose submission may be under way.
    fn second_look(&self) -> Duration {
        self.doubt / 12
    }
}

/// Submits jobs to Oozie, watches them and kills them. Cheap to clone.
#[derive(Clone)]
pub struct OozieExecutor {
    inner: Arc<Inner>,
}

struct Inner {
    http: Http,
    secrets: Secrets,
    records: Arc<dyn Records>,
    runtime: Runtime,
    waits: OozieWaits,
    watch: Watch,
    submissions: Semaphore,
    /// Locks by which the actions on one run are taken one after the other.
    turns: Mutex<BTreeMap<RunId, Arc<tokio::sync::Mutex<()>>>>,
    /// Submissions of which it isn't known whether they succeeded, with the time of each.
    doubts: Mutex<BTreeMap<RunId, Instant>>,
    /// Runs whose job is being searched for, to kill it.
    cancelling: Mutex<BTreeSet<RunId>>,
    /// Runs that were to be killed, and when they were: a start that comes late must not bring them to life.
    cancelled: Mutex<BTreeMap<RunId, Instant>>,
}

impl OozieExecutor {
    /// An executor that works on a runtime.
    #[must_use]
    pub fn new(http: Http, secrets: Secrets, records: Arc<dyn Records>, runtime: Runtime) -> Self {
        Self::with_waits(http, secrets, records, runtime, OozieWaits::default())
    }

    /// An executor with waits of its own.
    #[must_use]
    pub fn with_waits(
        http: Http,
        secrets: Secrets,
        records: Arc<dyn Records>,
        runtime: Runtime,
        waits: OozieWaits,
    ) -> Self {
        let inner = Inner {
            http,
            secrets,
            records,
            runtime: runtime.clone(),
            waits,
            watch: Watch::new(waits, runtime),
            submissions: Semaphore::new(SUBMISSIONS),
            turns: Mutex::default(),
            doubts: Mutex::default(),
            cancelling: Mutex::default(),
            cancelled: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, work: impl FnOnce(Arc<Inner>) -> F) {
        self.inner.runtime.spawn(work(self.inner.clone()));
    }
}

impl Executor for OozieExecutor {
    fn start(&self, start: Start, reports: Reports) {
        self.spawn(|this| async move {
            let _turn = this.turn(&start.run).await;
            this.start(&start, &reports).await;
        });
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let (run, known) = (run.clone(), external_id.map(str::to_owned));
        self.spawn(|this| async move {
            if locked(&this.cancelling).contains(&run) {
                return;
            }
            let _turn = this.turn(&run).await;
            this.check(&run, known, &reports).await;
        });
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let (run, known) = (run.clone(), external_id.map(str::to_owned));
        self.inner.never_start(&run);
        self.spawn(|this| async move {
            // A cancellation is repeated until the end of the run is reported; one search is enough.
            if !locked(&this.cancelling).insert(run.clone()) {
                return;
            }
            let turn = this.turn(&run).await;
            this.cancel(&run, known, &reports).await;
            drop(turn);
            locked(&this.cancelling).remove(&run);
        });
    }

    fn note(&self, run: &RunId) -> Option<String> {
        self.inner.watch.note(run)
    }
}

/// Whether a job was found.
enum Sought {
    Found(String),
    /// It is not there, and nothing is on its way.
    Absent,
    /// It may yet come: a submission may be on its way.
    MayCome,
}

impl Inner {
    /// OozieWaits until nothing else is done about a run.
    async fn turn(&self, run: &RunId) -> OwnedMutexGuard<()> {
        let lock = {
            let mut turns = locked(&self.turns);
            turns.retain(|_, lock| Arc::strong_count(lock) > 1);
            turns.entry(run.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }

    /// Keeps a run that is killed from being started by a start that is on its way.
    fn never_start(&self, run: &RunId) {
        let mut cancelled = locked(&self.cancelled);
        cancelled.retain(|_, at| at.elapsed() < LATE_STARTS);
        cancelled.insert(run.clone(), Instant::now());
    }

    fn oozie(&self, place: Place) -> Oozie {
        Oozie::new(self.http.clone(), place, self.waits.request)
    }

    async fn start(&self, start: &Start, reports: &Reports) {
        let run = &start.run;
        if let Some(external_id) = self.watch.job_of(run) {
            return reports.run(run, Report::Started { external_id });
        }
        if locked(&self.cancelled).contains_key(run) {
            // The task that cancels it reports its end.
            return;
        }
        match self.submit(start).await {
            Ok((oozie, job)) => self.begin(run, oozie, job, reports),
            Err(report) => reports.run(run, report),
        }
    }

    /// Finds the run's job or submits it.
    async fn submit(&self, start: &Start) -> Result<(Oozie, String), Report> {
        let run = &start.run;
        let deferred = |reason: String| Report::Deferred { reason: format!("failed to {reason}") };
        let refused = |reason: String| Report::Ended { outcome: Outcome::refused(reason) };
        let installation = self.records.installation().await.map_err(deferred)?;
        let external_id = order::external_id(&installation, run);
        let filled = self.secrets.fill(&start.workflow.project, &start.properties).await;
        let place = Place::of(start).map_err(refused)?;
        let ordered = match filled {
            Ok(filled) => {
                let mask = filled.mask();
                Ok((Order::of(start, filled.settings, &external_id).map_err(refused)?, mask))
            }
            Err(error) => Err(Report::Ended { outcome: error.outcome() }),
        };
        let oozie = self.oozie(place);
        let _permit = self.submissions.acquire().await;
        let sought = self.seek(&oozie, run, &external_id).await;
        match sought.map_err(|trouble| deferred(format!("look for its job before submitting it: {trouble}")))? {
            Sought::Found(job) => return Ok((oozie, job)),
            Sought::Absent => {}
            Sought::MayCome => {
                return Err(deferred(format!(
                    "{}; looking for the job before it is submitted again",
                    unanswered(&oozie)
                )));
            }
        }
        // Only now, because its job may have been submitted before.
        let (order, mask) = ordered?;
        match oozie.submit(&order).await {
            Ok(job) => Ok((oozie, job)),
            Err(trouble) if trouble.is_for_good() => Err(refused(mask.text(&trouble.to_string()))),
            Err(trouble) => {
                self.doubt(run, &trouble);
                Err(deferred(mask.text(&format!("submit its job: {trouble}"))))
            }
        }
    }

    /// Starts a job that has its id, and watches it. A start that gets lost is made up for by the watch.
    fn begin(&self, run: &RunId, oozie: Oozie, job: String, reports: &Reports) {
        locked(&self.doubts).remove(run);
        reports.run(run, Report::Started { external_id: job.clone() });
        // It isn't known whether a job that was found had been started: the watch will tell.
        self.watch.add(self.subject(run, oozie, job, reports));
    }

    fn subject(&self, run: &RunId, oozie: Oozie, job: String, reports: &Reports) -> Subject {
        Subject { run: run.clone(), job, oozie, reports: reports.clone(), started: None, kill: false }
    }

    /// Searches for the job of a run.
    async fn seek(&self, oozie: &Oozie, run: &RunId, external_id: &str) -> Result<Sought, Trouble> {
        if let Some(job) = oozie.find(external_id).await? {
            return Ok(Sought::Found(job));
        }
        let mut doubts = locked(&self.doubts);
        if doubts.get(run).is_some_and(|since| since.elapsed() < self.waits.doubt) {
            return Ok(Sought::MayCome);
        }
        doubts.remove(run);
        Ok(Sought::Absent)
    }

    /// Remembers that a submission may be on its way.
    fn doubt(&self, run: &RunId, trouble: &Trouble) {
        if matches!(trouble, Trouble::NoWord { may_be_done: true, .. }) {
            locked(&self.doubts).insert(run.clone(), Instant::now());
        }
    }

    async fn check(&self, run: &RunId, known: Option<String>, reports: &Reports) {
        if let Some(external_id) = self.watch.job_of(run) {
            return reports.run(run, Report::Started { external_id });
        }
        match self.find_again(run, known.clone()).await {
            Ok((oozie, Some(job))) => self.begin(run, oozie, job, reports),
            Ok((_, None)) => reports.run(run, Report::NeverStarted),
            Err(reason) if let Some(external_id) = known => {
                // It is known to have started; the check is repeated when there was no report for long.
                tracing::warn!(%run, "failed to {reason}");
                reports.run(run, Report::Started { external_id });
            }
            // The next start searches for the job, too, and must wait before it does.
            Err(reason) => {
                locked(&self.doubts).insert(run.clone(), Instant::now());
                reports.run(run, Report::Deferred { reason: format!("failed to {reason}") });
            }
        }
    }

    /// The Oozie of a run, and its job id if there is one, whether or not it was known before.
    async fn find_again(&self, run: &RunId, known: Option<String>) -> Result<(Oozie, Option<String>), String> {
        let oozie = self.oozie(self.place_of(run).await?);
        if known.is_some() {
            return Ok((oozie, known));
        }
        let external_id = order::external_id(&self.records.installation().await?, run);
        let look = || async {
            oozie.find(&external_id).await.map_err(|trouble| format!("look for the job of {run}: {trouble}"))
        };
        let mut found = look().await?;
        if found.is_none() {
            // Another process may have submitted it a moment ago, and died before it got the id.
            tokio::time::sleep(self.waits.second_look()).await;
            found = look().await?;
        }
        Ok((oozie, found))
    }

    async fn place_of(&self, run: &RunId) -> Result<Place, String> {
        let (records, id) = (self.records.clone(), run.clone());
        let asked = tokio::task::spawn_blocking(move || records.start_of(&id)).await;
        let start = asked.map_err(|error| format!("look up where {run} runs: {error}"))??;
        Place::of(&start).map_err(|why| format!("look up where {run} runs: {why}"))
    }

    async fn cancel(&self, run: &RunId, known: Option<String>, reports: &Reports) {
        if self.watch.kill(run) {
            return;
        }
        let (oozie, found) = self.insist(run, known).await;
        let Some(job) = found else {
            return reports.run(run, Report::Ended { outcome: Outcome::Killed });
        };
        self.watch.add(Subject { kill: true, ..self.subject(run, oozie, job, reports) });
    }

    /// Searches for a run's job until it is known whether there is one: it may be running meanwhile.
    async fn insist(&self, run: &RunId, known: Option<String>) -> (Oozie, Option<String>) {
        let mut failures = 0;
        loop {
            match self.find_again(run, known.clone()).await {
                Ok(found) => return found,
                Err(reason) => tracing::warn!(%run, "failed to {reason}; trying again, to kill it"),
            }
            failures += 1;
            tokio::time::sleep(self.waits.after_failures(failures)).await;
        }
    }
}

fn unanswered(oozie: &Oozie) -> String {
    format!("hear from Oozie at {} whether it took the job", oozie.shown())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use kelos_model::time::{CronSchedule, Schedule};
    use kelos_model::workflow::Job;
    use kelos_model::{Workflow, WorkflowId};

    use super::*;

    /// A workflow of that name, with a job for Oozie.
    pub(super) fn workflow(id: &str) -> Workflow {
        Workflow::new(
            WorkflowId::new(id).unwrap(),
            Schedule::Cron(CronSchedule::hourly()),
            Job::new("oozie", serde_json::Map::new()),
        )
    }

    #[test]
    fn waits_grow_to_a_limit() {
        let waits = OozieWaits::default();
        let seconds: Vec<u64> = [1, 2, 3, 4, 5, 6, 60].map(|n| waits.after_failures(n).as_secs()).into();
        assert_eq!(seconds, [1, 2, 4, 8, 15, 15, 15]);
    }
}
