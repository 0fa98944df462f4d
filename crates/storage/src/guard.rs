//! The guard between callers and the server of a file system: a limit on concurrent calls, a time limit for each, and
//! a circuit breaker. The failure of one server does not affect the others.
//!
//! A call that times out is dropped, and its permit is free again.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use tokio::io::AsyncRead;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::breaker::{Admission, Breaker, Moment, Outage};
use crate::transfer::{STALLED, WatchedContent};
use crate::{Entry, FileSystem, StorageError};

/// How many calls may be under way at one endpoint, besides transfers.
pub const CALLS: usize = 16;
/// How many files may be read from or written to one endpoint at a time.
pub const TRANSFERS: usize = 4;
/// How long a stat or a list may take, including the wait for a permit.
pub const LOOK: Duration = Duration::from_secs(10);
/// How long a call must have waited for its end to count as silence of the server. One that is given up earlier was cancelled by
/// its caller.
const LONG_SILENCE: Duration = Duration::from_secs(5);
/// How long a change may take: on some systems a move or a removal of a folder takes as long as its content is large.
pub const CHANGE: Duration = Duration::from_secs(120);
/// How long a read may take as a whole. File systems give up earlier if no data arrives any more.
pub const READ: Duration = Duration::from_secs(600);

/// The state of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The scheme and the server.
    pub endpoint: String,
    /// Calls and transfers under way.
    pub under_way: usize,
    /// The calls that the server has answered since this process started, if only with a refusal.
    pub answered: u64,
    /// The calls that failed because of the server.
    pub failed: u64,
    /// The outage; none if the endpoint is well, or has not failed often enough.
    pub broken: Option<BrokenState>,
}

/// The outage of an endpoint: its beginning and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenState {
    /// The first of the failures in a row.
    pub since: Timestamp,
    /// The message of the last failure: "connection refused".
    pub last_error: String,
    /// How long until it is tried again; zero if the next call is a trial, or a trial is under way.
    pub next_try: Duration,
    /// How long it might have been tried again, and nobody asked for anything.
    pub idle: Duration,
}

/// A file system behind its guard.
pub(crate) struct GuardedStore {
    endpoint: String,
    files: Arc<dyn FileSystem>,
    breaker: Mutex<Breaker>,
    calls: Semaphore,
    transfers: Semaphore,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// A call that was admitted. If it is dropped before its end is reported, it counts as given up by its caller, or as silence of
/// the server if that took long.
struct GuardedCall<'a> {
    guarded: &'a GuardedStore,
    is_trial: bool,
    is_told: bool,
    is_transfer: bool,
    began: Instant,
    _place: SemaphorePermit<'a>,
}

impl GuardedStore {
    pub(crate) fn new(endpoint: String, files: Arc<dyn FileSystem>) -> Self {
        let (calls, transfers) = (Semaphore::new(CALLS), Semaphore::new(TRANSFERS));
        let (answered, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { endpoint, files, breaker: Mutex::default(), calls, transfers, answered, failed }
    }

    pub(crate) fn health(&self) -> Health {
        let under_way = CALLS + TRANSFERS - self.calls.available_permits() - self.transfers.available_permits();
        let broken = self.breaker().state(moment()).map(|trouble| BrokenState {
            since: trouble.since,
            last_error: trouble.cause,
            next_try: trouble.next_try,
            idle: trouble.idle,
        });
        let (answered, failed) = (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        Health { endpoint: self.endpoint.clone(), under_way, answered, failed, broken }
    }

    /// Waits for a permit, at most until `deadline`; refuses at once while the endpoint is broken.
    async fn admit<'a>(
        &'a self,
        places: &'a Semaphore,
        patience: Duration,
        deadline: Instant,
    ) -> Result<GuardedCall<'a>, StorageError> {
        self.refuse_if_broken()?;
        // A wait in vain is no sign of a broken server: many calls that are answered cause the same.
        let place = match timeout_at(deadline, places.acquire()).await {
            Ok(Ok(place)) => place,
            _ => return Err(self.timed_out(patience)),
        };
        match self.breaker().admit(moment()) {
            Admission::Refused(trouble) => Err(self.refusal(trouble)),
            admission => {
                let is_trial = admission == Admission::Trial;
                let is_transfer = std::ptr::eq(places, &self.transfers);
                let began = Instant::now();
                Ok(GuardedCall { guarded: self, is_trial, is_told: false, is_transfer, began, _place: place })
            }
        }
    }

    /// Makes one call with a time limit as a whole, and reports its end to the breaker.
    async fn once<T>(
        &self,
        places: &Semaphore,
        patience: Duration,
        deadline: Instant,
        call: impl Future<Output = Result<T, StorageError>> + Send,
    ) -> Result<T, StorageError> {
        let admitted = self.admit(places, patience, deadline).await?;
        match timeout_at(deadline, call).await {
            Ok(result) => {
                admitted.tell(&result);
                result
            }
            Err(_) => Err(self.timed_out(patience)),
        }
    }

    /// Makes a call that changes nothing: it is repeated once if the connection failed and time is left.
    async fn look<T, F>(&self, call: impl Fn() -> F + Send + Sync) -> Result<T, StorageError>
    where
        T: Send,
        F: Future<Output = Result<T, StorageError>> + Send,
    {
        let deadline = Instant::now() + LOOK;
        let first = self.once(&self.calls, LOOK, deadline, call()).await;
        let is_worth_another = matches!(first, Err(StorageError::Unreachable { .. })) && !self.is_broken();
        if is_worth_another { self.once(&self.calls, LOOK, deadline, call()).await } else { first }
    }

    async fn change<T>(&self, call: impl Future<Output = Result<T, StorageError>> + Send) -> Result<T, StorageError> {
        self.once(&self.calls, CHANGE, Instant::now() + CHANGE, call).await
    }

    fn is_broken(&self) -> bool {
        self.breaker().state(moment()).is_some()
    }

    fn refuse_if_broken(&self) -> Result<(), StorageError> {
        let trouble = self.breaker().trouble(moment());
        trouble.map_or(Ok(()), |trouble| Err(self.refusal(trouble)))
    }

    fn refusal(&self, trouble: Outage) -> StorageError {
        let Outage { since, cause, next_try, .. } = trouble;
        StorageError::Broken { endpoint: self.endpoint.clone(), since, cause, next_try }
    }

    fn timed_out(&self, after: Duration) -> StorageError {
        StorageError::TimedOut { endpoint: self.endpoint.clone(), after }
    }

    fn stalled(&self, path: &str, is_content_late: bool) -> StorageError {
        if !is_content_late {
            return self.timed_out(STALLED);
        }
        let detail = format!("nothing more to write came within {} s", STALLED.as_secs());
        StorageError::Other { what: "write", place: path.to_owned(), detail }
    }

    fn failed(&self, error: &StorageError, is_trial: bool) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.breaker().failed(moment(), error, is_trial);
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardedCall<'_> {
    /// Reports the end of the call to the breaker.
    fn tell<T>(mut self, result: &Result<T, StorageError>) {
        self.is_told = true;
        match result {
            Err(error) if error.is_of_endpoint() => self.guarded.failed(error, self.is_trial),
            _ => {
                self.guarded.answered.fetch_add(1, Ordering::Relaxed);
                self.guarded.breaker().answered();
            }
        }
    }
}

impl Drop for GuardedCall<'_> {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        let silence = self.began.elapsed();
        // A call that spent its time waiting for a permit is no evidence against the server.
        if silence >= LONG_SILENCE && !self.is_transfer {
            let error = self.guarded.timed_out(silence);
            self.guarded.failed(&error, self.is_trial);
        } else if self.is_trial {
            self.guarded.breaker().trial_abandoned();
        }
    }
}

#[async_trait]
impl FileSystem for GuardedStore {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        self.look(|| self.files.stat(path)).await
    }

    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        self.look(|| self.files.list(folder)).await
    }

    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        self.once(&self.transfers, READ, Instant::now() + READ, self.files.read(path, limit)).await
    }

    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        let admitted = self.admit(&self.transfers, READ, Instant::now() + READ).await?;
        let mut watched = WatchedContent::new(content);
        let progress = watched.progress();
        let result = tokio::select! {
            biased;
            result = self.files.put(path, &mut watched) => result,
            () = progress.stalled() => Err(self.stalled(path, progress.is_content_late())),
        };
        admitted.tell(&result);
        result
    }

    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        self.change(self.files.make_folder(path)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.change(self.files.rename(from, to)).await
    }

    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        self.change(self.files.remove(path)).await
    }
}

fn moment() -> Moment {
    Moment { instant: Instant::now(), time: Timestamp::now() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::time::sleep;

    /// A server that answers, refuses, or never answers.
    #[derive(Default)]
    struct Server {
        is_down: AtomicBool,
        is_silent: AtomicBool,
        asked: AtomicUsize,
        most_at_once: AtomicUsize,
        at_once: AtomicUsize,
    }

    /// A call that leaves the server, answered or given up.
    struct Leaves<'a>(&'a AtomicUsize);

    impl Drop for Leaves<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Server {
        async fn answer(&self) -> Result<(), StorageError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
            let _leaves = Leaves(&self.at_once);
            sleep(Duration::from_millis(100)).await;
            while self.is_silent.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(100)).await;
            }
            match self.is_down.load(Ordering::Relaxed) {
                true => {
                    Err(StorageError::Unreachable { endpoint: "x://e".into(), detail: "connection refused".into() })
                }
                false => Ok(()),
            }
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[async_trait]
    impl FileSystem for Server {
        async fn stat(&self, _: &str) -> Result<Option<Entry>, StorageError> {
            self.answer().await.map(|()| None)
        }
        async fn list(&self, _: &str) -> Result<Option<Vec<Entry>>, StorageError> {
            self.answer().await.map(|()| None)
        }
        async fn read(&self, path: &str, _: u64) -> Result<Bytes, StorageError> {
            self.answer().await?;
            Err(StorageError::NotFound { place: path.to_owned() })
        }
        async fn put(&self, _: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
            let mut piece = [0; 10];
            while tokio::io::AsyncReadExt::read(content, &mut piece).await.unwrap_or(0) > 0 {
                self.answer().await?;
            }
            Ok(())
        }
        async fn make_folder(&self, _: &str) -> Result<(), StorageError> {
            self.answer().await
        }
        async fn rename(&self, _: &str, _: &str) -> Result<(), StorageError> {
            self.answer().await
        }
        async fn remove(&self, _: &str) -> Result<(), StorageError> {
            self.answer().await
        }
    }

    fn guarded() -> (Arc<Server>, Arc<GuardedStore>) {
        let server = Arc::new(Server::default());
        (server.clone(), Arc::new(GuardedStore::new("x://e".to_owned(), server)))
    }

    /// The message, without the moment.
    fn told(error: &StorageError) -> String {
        let text = error.to_string();
        match (text.find("since "), text.find("Z: ")) {
            (Some(start), Some(end)) => format!("{}since TIME{}", &text[..start], &text[end + 1..]),
            _ => text,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_server_is_asked_ever_more_seldom_and_used_again_at_once() {
        let (server, files) = guarded();
        server.is_down.store(true, Ordering::Relaxed);
        // The first look is made twice.
        let first = files.stat("/a").await.unwrap_err();
        assert_eq!(told(&first), "reach x://e: connection refused");
        assert_eq!(server.asked(), 2);
        files.stat("/a").await.unwrap_err();
        assert_eq!(server.asked(), 3);
        let refused = files.stat("/a").await.unwrap_err();
        assert_eq!(told(&refused), "reach x://e: failing since TIME: connection refused; next try in 1 s");
        let health = files.health().broken.unwrap();
        assert_eq!(health.last_error, "connection refused");
        for _ in 0..3600 {
            let _ = files.stat("/a").await;
            sleep(Duration::from_secs(1)).await;
        }
        assert!((60..75).contains(&server.asked()), "{} in an hour", server.asked());
        server.is_down.store(false, Ordering::Relaxed);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(files.stat("/a").await, Ok(None));
        assert_eq!(files.health().broken, None);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_in_time_and_gives_places_back() {
        let (server, files) = guarded();
        let (_, well) = guarded();
        server.is_silent.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let many = (0..100).map(|_| files.list("/a"));
        let (all, other) = tokio::join!(futures_util::future::join_all(many), async {
            well.stat("/a").await.unwrap();
            start.elapsed()
        });
        assert_eq!(start.elapsed(), LOOK);
        assert!(other < Duration::from_secs(1), "another server waited {other:?}");
        assert!(all.iter().all(|result| result.as_ref().is_err_and(StorageError::is_of_endpoint)));
        assert_eq!(server.most_at_once.load(Ordering::Relaxed), CALLS);
        assert_eq!(files.health().under_way, 0);
        let refused = files.stat("/a").await.unwrap_err();
        assert_eq!(told(&refused), "reach x://e: failing since TIME: no answer within 10 s; next try in 1 s");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_long_for_a_place_breaks_nothing() {
        let (server, files) = guarded();
        let many = (0..CALLS * 150).map(|_| files.stat("/a"));
        let all = futures_util::future::join_all(many).await;
        assert!(all.iter().any(Result::is_err), "all had a place in time");
        assert_eq!(files.health().broken, None);
        assert_eq!(server.most_at_once.load(Ordering::Relaxed), CALLS);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_say_no_break_nothing() {
        let (_, files) = guarded();
        for _ in 0..10 {
            files.read("/a", 1).await.unwrap_err();
        }
        assert_eq!(files.health().broken, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_nobody_waits_for_makes_place_for_another() {
        let (server, files) = guarded();
        server.is_down.store(true, Ordering::Relaxed);
        let _ = files.make_folder("/").await;
        let _ = files.make_folder("/").await;
        let _ = files.make_folder("/").await;
        sleep(Duration::from_secs(1)).await;
        server.is_silent.store(true, Ordering::Relaxed);
        let given_up = tokio::time::timeout(Duration::from_secs(1), files.stat("/")).await;
        assert!(given_up.is_err());
        server.is_silent.store(false, Ordering::Relaxed);
        server.is_down.store(false, Ordering::Relaxed);
        assert_eq!(files.stat("/").await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_though_callers_lose_patience_first() {
        let (server, files) = guarded();
        server.is_silent.store(true, Ordering::Relaxed);
        for _ in 0..crate::breaker::FAILURES {
            let given_up = tokio::time::timeout(Duration::from_secs(6), files.stat("/")).await;
            assert!(given_up.is_err());
        }
        let told = told(&files.stat("/").await.unwrap_err());
        assert_eq!(told, "reach x://e: failing since TIME: no answer within 6 s; next try in 1 s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_takes_as_long_as_it_moves() {
        let (server, files) = guarded();
        // 10 000 pieces of 0.1 s each.
        let content = vec![7; 100_000];
        let start = Instant::now();
        files.put("/a", &mut content.as_slice()).await.unwrap();
        assert!(start.elapsed() > Duration::from_secs(900));
        server.is_silent.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let error = files.put("/a", &mut content.as_slice()).await.unwrap_err();
        assert_eq!(error.to_string(), "get an answer from x://e within 30 s");
        assert_eq!(start.elapsed(), STALLED);
    }

    #[tokio::test(start_paused = true)]
    async fn content_that_does_not_come_is_not_the_servers_fault() {
        let (_, files) = guarded();
        let (_kept, mut never) = tokio::io::duplex(10);
        for _ in 0..3 {
            let error = files.put("/a", &mut never).await.unwrap_err();
            assert_eq!(error.to_string(), "write /a: nothing more to write came within 30 s");
        }
        assert_eq!(files.health().broken, None);
    }
}
