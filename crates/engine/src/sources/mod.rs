//! Sources of facts, besides requests: the leader polls them.
//!
//! A [`FactSource`] may be a watched folder ([`Watch`]), or the client of a message broker. What holds, and why:
//!
//! - *Nothing is lost.* A source is told that its facts are stored only after the commit, and returns those again that
//!   were not acknowledged: a broker's offset is committed in [`FactSource::acknowledge`] and nowhere else.
//! - *Nothing counts twice.* Each fact has an idempotency key that is the same each time: for a broker its partition
//!   and offset, for a file its path and version. A fact that is returned again, by another leader or after a crash, is
//!   recognised.
//! - *A source that fails harms no other.* It is polled again with growing waits, and [`Sources::standings`] returns
//!   its problem.

mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use kelos_core::{FactTally, Tell};
use kelos_model::{Actor, Fact};
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch::Receiver;

use crate::{Handle, Status};

pub use watch::{Watch, WatchedPrefix};

/// The most facts that are published together: they are one batch of a commit, and other requests get their turn in
/// between.
const TOGETHER: usize = 1000;

/// The longest wait between two questions to a source that fails.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Something that facts come from. Only the leader asks it.
pub trait FactSource: Send {
    /// Its name for people. The log names it in its facts.
    fn name(&self) -> Arc<str>;

    /// The wait after a poll without facts.
    fn every(&self) -> Duration;

    /// The next facts, each with a key; none where there is nothing new. What was given and not acknowledged is given again.
    /// The error completes "failed to …".
    fn poll(&mut self) -> BoxFuture<'_, Result<Vec<Fact>, String>>;

    /// Acknowledges that all the facts that it returned last are stored. The error completes "failed to …".
    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

/// The status of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// Its name for people.
    pub name: Arc<str>,
    /// When it last answered.
    pub answered_at: Option<Timestamp>,
    /// The number of its facts that were new since this process leads.
    pub new: u64,
    /// Its problem, as a message that completes "failed to …".
    pub problem: Option<String>,
}

impl SourceStatus {
    fn new(name: Arc<str>) -> SourceStatus {
        SourceStatus { name, answered_at: None, new: 0, problem: None }
    }
}

/// The sources of a node. Cheap to clone.
#[derive(Clone, Default)]
pub struct Sources {
    standings: Arc<Mutex<Vec<SourceStatus>>>,
}

impl Sources {
    /// Polls sources until their engine ends, and while it leads.
    #[must_use]
    pub fn start(sources: Vec<Box<dyn FactSource>>, handle: &Handle, runtime: &Runtime) -> Sources {
        let all = Sources {
            standings: Arc::new(Mutex::new(sources.iter().map(|source| SourceStatus::new(source.name())).collect())),
        };
        for (place, source) in sources.into_iter().enumerate() {
            let feed = Feed { source, place, handle: handle.clone(), shown: all.clone() };
            runtime.spawn(feed.run());
        }
        all
    }

    /// The statuses, in the order in which the sources were given.
    #[must_use]
    pub fn standings(&self) -> Vec<SourceStatus> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SourceStatus>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One source and where its facts go.
struct Feed {
    source: Box<dyn FactSource>,
    place: usize,
    handle: Handle,
    shown: Sources,
}

impl Feed {
    async fn run(mut self) {
        let mut status = self.handle.watch_status();
        let mut failures = 0;
        loop {
            if !leads(&mut status).await {
                return;
            }
            let outcome = self.once().await;
            failures = if outcome.is_ok() { 0 } else { failures + 1 };
            let has_more = matches!(outcome, Ok(given) if given > 0);
            self.show(outcome);
            if !has_more {
                rest(self.wait(failures), &mut status).await;
            }
        }
    }

    /// Publishes the facts of one poll; returns their number.
    async fn once(&mut self) -> Result<usize, String> {
        let facts = self.source.poll().await?;
        if facts.is_empty() {
            return Ok(0);
        }
        let by = Actor::system(self.source.name());
        for together in facts.chunks(TOGETHER) {
            let told = self.handle.ask(&by, Tell { facts: together.to_vec() }).await;
            let FactTally { new, .. } = told.map_err(|error| error.to_string())?;
            if let Some(standing) = self.shown.lock().get_mut(self.place) {
                standing.new += u64::from(new);
            }
        }
        self.source.acknowledge().await?;
        Ok(facts.len())
    }

    fn show(&self, outcome: Result<usize, String>) {
        let mut standings = self.shown.lock();
        let Some(standing) = standings.get_mut(self.place) else { return };
        let problem = outcome.err();
        if let Some(problem) = problem.as_ref().filter(|problem| standing.problem.as_ref() != Some(problem)) {
            tracing::warn!(source = &*standing.name, "failed to {problem}; trying again");
        }
        if problem.is_none() {
            standing.answered_at = Some(self.handle.now());
        }
        standing.problem = problem;
    }

    fn wait(&self, failures: u32) -> Duration {
        let doubled = self.source.every().saturating_mul(1 << failures.min(16));
        if failures == 0 { self.source.every() } else { doubled.min(LONGEST_WAIT) }
    }
}

/// Waits until the engine leads; false if it has ended.
async fn leads(status: &mut Receiver<Status>) -> bool {
    let leads = status.wait_for(|status| matches!(status, Status::Leading { .. } | Status::Stopped)).await;
    leads.is_ok_and(|status| *status != Status::Stopped)
}

/// Waits, but not beyond the end of the engine.
async fn rest(wait: Duration, status: &mut Receiver<Status>) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        _ = status.wait_for(|status| *status == Status::Stopped) => {}
    }
}

#[cfg(test)]
mod tests;
