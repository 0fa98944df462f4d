//! Sources of facts, besides requests: the leader polls them.
//!
//! A [`FactSource`] may be a watched folder ([`Watch`]), or the client of a message broker. What holds, and why:
//!
//! - *Nothing is lost.* A source is told that its facts are stored only after the commit, and returns those again that
//!   were not acknowledged. How far it has been read, such as the offsets of a broker, is its *position*: it is stored in
//!   the same turn as the facts, and [`FactSource::poll`] is given what is stored.
//! - *Nothing counts twice.* Each fact has an idempotency key that is the same each time: for a broker its partition
//!   and offset, for a file its path and version. A fact that is returned again, by another leader or after a crash, is
//!   recognised.
//! - *A source that fails harms no other.* It is polled again with growing waits, and [`Sources::standings`] returns
//!   its problem.

mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kelos_core::{FactTally, POSITIONS, RefusedSignal, SourcePosition, Tell};
use kelos_model::{Actor, Fact};
use kelos_store::Queries;
use serde_json::Value;
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch::Receiver;

use crate::clock::Clock;
use crate::{Handle, Status};

pub use watch::{Watch, WatchedPrefix};

/// The most facts that are published together: they are one batch of a commit, and other requests get their turn in
/// between.
const TOGETHER: usize = 1000;

/// The longest wait between two questions to a source that fails.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The most notices that are kept of a source.
const MOST_NOTICES: usize = 20;

/// The time for which notices are shown.
const NOTICE_SHOWN: SignedDuration = SignedDuration::from_hours(24);

/// Something that facts come from. Only the leader asks it.
pub trait FactSource: Send {
    /// Its name for people. The log names it in its facts.
    fn name(&self) -> Arc<str>;

    /// The wait after a poll without facts.
    fn every(&self) -> Duration;

    /// The longest wait between two polls that fail.
    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    /// The next facts after the stored position, each with a key; none where there is nothing new. What was given and not
    /// stored is given again. The error completes "failed to …".
    fn poll(&mut self, position: Option<Value>) -> BoxFuture<'_, Result<Findings, String>>;

    /// Acknowledges that all the facts that it returned last are stored. The error completes "failed to …".
    fn acknowledge(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

/// The findings of a poll.
#[derive(Debug, Default)]
pub struct Findings {
    /// The facts, each with a key.
    pub facts: Vec<Fact>,
    /// The position up to which the source has been read with them; none where it keeps no position, or where it has not moved.
    pub position: Option<Value>,
    /// The number of things that were read and can't be facts, such as messages that make no sense.
    pub passed_over: u64,
    /// The notices for people about them, and about what is gone. Some examples are enough.
    pub notices: Vec<String>,
}

impl Findings {
    /// The facts of a source without a position.
    #[must_use]
    pub fn of(facts: Vec<Fact>) -> Findings {
        Findings { facts, ..Findings::default() }
    }
}

/// Something that people should know of a source, although it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceNotice {
    /// When it was noticed.
    pub at: Timestamp,
    /// The notice.
    pub text: String,
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
    /// The number of things that were read and can't be facts, since this process leads.
    pub passed_over: u64,
    /// The newest notices of the last day, oldest first.
    pub notices: Vec<SourceNotice>,
}

impl SourceStatus {
    fn new(name: Arc<str>) -> SourceStatus {
        SourceStatus { name, answered_at: None, new: 0, problem: None, passed_over: 0, notices: Vec::new() }
    }

    /// The same with the notices that are not too old to be shown.
    fn at(mut self, now: Timestamp) -> SourceStatus {
        self.notices.retain(|notice| now.duration_since(notice.at) < NOTICE_SHOWN);
        self
    }

    fn notice(&mut self, at: Timestamp, text: String) {
        tracing::warn!(source = &*self.name, "{text}");
        if self.notices.len() == MOST_NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(SourceNotice { at, text });
    }
}

/// The sources of a node. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    standings: Arc<Mutex<Vec<SourceStatus>>>,
    clock: Clock,
}

impl Sources {
    /// Polls sources until their engine ends, and while it leads.
    #[must_use]
    pub fn start(sources: Vec<Box<dyn FactSource>>, handle: &Handle, runtime: &Runtime) -> Sources {
        let standings = sources.iter().map(|source| SourceStatus::new(source.name())).collect();
        let handle_clock = handle.clone();
        let all = Sources { standings: Arc::new(Mutex::new(standings)), clock: Arc::new(move || handle_clock.now()) };
        for (place, source) in sources.into_iter().enumerate() {
            let feed = Feed { source, place, handle: handle.clone(), shown: all.clone() };
            runtime.spawn(feed.run());
        }
        all
    }

    /// The statuses, in the order in which the sources were given.
    #[must_use]
    pub fn standings(&self) -> Vec<SourceStatus> {
        let now = (self.clock)();
        self.lock().iter().cloned().map(|one| one.at(now)).collect()
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

    /// Publishes the facts of one poll, and stores how far the source has been read with the last of them; returns their number.
    async fn once(&mut self) -> Result<usize, String> {
        let name = self.source.name();
        let stored = stored_position(self.handle.reader().clone(), name.clone()).await?;
        let Findings { facts, position, passed_over, notices } = self.source.poll(stored).await?;
        let by = Actor::system(name.clone());
        let mut batches: Vec<Tell> = facts.chunks(TOGETHER).map(|together| Tell::of(together.to_vec())).collect();
        if let Some(position) = position.map(|position| SourcePosition { source: name.to_string(), position }) {
            match batches.last_mut() {
                Some(last) => last.position = Some(position),
                None => batches.push(Tell { facts: Vec::new(), position: Some(position) }),
            }
        }
        let is_new = !batches.is_empty();
        for batch in batches {
            let told = self.handle.ask(&by, batch).await;
            self.count(told.map_err(|error| error.to_string())?);
        }
        self.notice(passed_over, notices);
        if is_new {
            self.source.acknowledge().await?;
        }
        Ok(facts.len())
    }

    fn count(&self, FactTally { new, refused, .. }: FactTally) {
        if let Some(standing) = self.shown.lock().get_mut(self.place) {
            standing.new += u64::from(new);
        }
        let words = |RefusedSignal { key, refusal }| match key {
            Some(key) => format!("the signal of message {key} was refused: {refusal}"),
            None => format!("a signal was refused: {refusal}"),
        };
        self.notice(0, refused.into_iter().map(words).collect());
    }

    fn notice(&self, passed_over: u64, notices: Vec<String>) {
        let now = self.handle.now();
        if let Some(standing) = self.shown.lock().get_mut(self.place) {
            standing.passed_over += passed_over;
            notices.into_iter().for_each(|text| standing.notice(now, text));
        }
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
        if failures == 0 { self.source.every() } else { doubled.min(self.source.longest_wait()) }
    }
}

/// The stored position of a source.
async fn stored_position(reader: Arc<dyn Queries>, source: Arc<str>) -> Result<Option<Value>, String> {
    let read = tokio::task::spawn_blocking(move || reader.register(POSITIONS, &source));
    read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
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
