//! A reader of the log with a cursor, which sends a collector what it is told of each event.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kelos_core::SetRegister;
use kelos_engine::{Handle, TraceIds, wait_after};
use kelos_executors::http::Http;
use kelos_model::Actor;
use kelos_model::register::TELEMETRY_BUCKET;
use kelos_store::{EventFilter, PageRequest, Queries};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::account::{self, Account};
use crate::receiver::{Fate, post};
use crate::settings::Collector;
use crate::{lineage, spans};

/// Events that are read at a time.
const AT_ONCE: usize = 500;
/// The least time between two looks at the log, so that spans go together.
const PAUSE: Duration = Duration::from_secs(1);
/// The least time between two times that a cursor is stored. After a crash what was sent since is sent again.
const STORE_EVERY: Duration = Duration::from_secs(60);

/// The subject of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Spans, many in a request.
    Traces,
    /// Events of runs, one in a request.
    Lineage,
}

impl Subject {
    /// Its name: of the part of the file, and of the register of the cursor.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Traces => "traces",
            Subject::Lineage => "lineage",
        }
    }
}

/// A reader of the log for a collector.
pub(crate) struct Leg {
    pub(crate) subject: Subject,
    pub(crate) collector: Collector,
    http: Http,
    handle: Handle,
    /// The reason for which nothing goes out, as a message that completes "failed to …".
    problem: Mutex<Option<String>>,
}

/// The place up to which the log was read.
struct Cursor {
    position: u64,
    /// The position that is stored; none before one is.
    stored: Option<u64>,
    stored_at: Instant,
    /// Whether anything was sent since: without that the position is not worth an event.
    sent: bool,
}

impl Leg {
    pub(crate) fn new(subject: Subject, collector: Collector, http: Http, handle: Handle) -> Leg {
        Leg { subject, collector, http, handle, problem: Mutex::default() }
    }

    /// The reason for which nothing goes out.
    pub(crate) fn problem(&self) -> Option<String> {
        self.told().clone()
    }

    fn told(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is in the log and was not sent, for as long as its engine leads.
    pub(crate) async fn run(&self) {
        let mut commits = self.handle.watch_commits();
        let mut failures = 0;
        let mut cursor = None;
        loop {
            commits.mark_unchanged();
            let gone = self.catch_up(&mut cursor).await;
            self.show(gone.as_ref().err());
            if gone.is_err() {
                failures += 1;
                sleep(wait_after(failures)).await;
                continue;
            }
            failures = 0;
            let is_unstored = cursor.as_ref().is_some_and(|cursor: &Cursor| cursor.sent);
            tokio::select! {
                changed = commits.changed() => if changed.is_err() { return },
                () = sleep(STORE_EVERY), if is_unstored => {}
            }
            sleep(PAUSE).await;
        }
    }

    /// Sends all that is in the log after the cursor.
    async fn catch_up(&self, cursor: &mut Option<Cursor>) -> Result<(), String> {
        let cursor = match cursor {
            Some(cursor) => cursor,
            None => cursor.insert(self.begin().await?),
        };
        loop {
            let position = cursor.position;
            let (documents, last) = self.read(move |reader, leg| documents(reader, leg, position)).await?;
            for document in documents {
                match post(&self.http, &self.collector, &document).await {
                    Fate::Taken => {}
                    Fate::Refused(why) => {
                        tracing::warn!(subject = self.subject.name(), "failed to {why}; it is left out");
                    }
                    Fate::Away(why) => return Err(why),
                }
                cursor.sent = true;
            }
            cursor.position = last;
            if cursor.sent && cursor.stored_at.elapsed() >= STORE_EVERY {
                self.store(cursor).await?;
            }
            if last == position {
                return Ok(());
            }
        }
    }

    /// The stored cursor; at the first start the end of the log, since what was before is not sent.
    async fn begin(&self) -> Result<Cursor, String> {
        let name = self.subject.name();
        let found =
            self.read(move |reader, _| Ok((reader.register(TELEMETRY_BUCKET, name)?, reader.last_seq()?))).await?;
        let (stored, last) = found;
        let stored = stored.as_ref().and_then(Value::as_u64).filter(|position| *position <= last);
        let mut cursor = Cursor { position: stored.unwrap_or(last), stored, stored_at: Instant::now(), sent: false };
        if stored.is_none() {
            self.store(&mut cursor).await?;
        }
        Ok(cursor)
    }

    /// Stores how far the log was read.
    async fn store(&self, cursor: &mut Cursor) -> Result<(), String> {
        if cursor.stored != Some(cursor.position) {
            let set = SetRegister {
                bucket: TELEMETRY_BUCKET.to_owned(),
                key: self.subject.name().to_owned(),
                value: Some(cursor.position.into()),
                reason: None,
            };
            let asked = self.handle.ask(&Actor::system(self.subject.name()), set).await;
            asked.map_err(|error| format!("store how far the log was read: {error}"))?;
        }
        (cursor.stored, cursor.stored_at, cursor.sent) = (Some(cursor.position), Instant::now(), false);
        Ok(())
    }

    /// Reads the store on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Queries, &LegView) -> Result<T, kelos_store::StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let (reader, view) =
            (self.handle.reader().clone(), LegView { subject: self.subject, name: self.collector.name.clone() });
        let read = tokio::task::spawn_blocking(move || read(&*reader, &view)).await;
        read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    fn show(&self, problem: Option<&String>) {
        let mut told = self.told();
        if let Some(problem) = problem.filter(|problem| told.as_ref() != Some(problem)) {
            tracing::warn!(subject = self.subject.name(), "failed to {problem}; trying again");
        }
        *told = problem.cloned();
    }
}

/// The part of a leg that makes documents.
struct LegView {
    subject: Subject,
    name: String,
}

/// The documents of the events after a position, and the position of the last one.
fn documents(reader: &dyn Queries, leg: &LegView, after: u64) -> Result<(Vec<Value>, u64), kelos_store::StoreError> {
    let page = reader.events(&EventFilter::after(after), PageRequest::oldest(AT_ONCE))?;
    let last = page.rows.last().map_or(after, |record| record.seq);
    let Some(ids) = TraceIds::of_log(reader)? else { return Ok((Vec::new(), last)) };
    let mut made = Vec::new();
    for record in &page.rows {
        let accounts: Vec<Account> = account::of_event(reader, record)?;
        made.extend(accounts.iter().flat_map(|account| match leg.subject {
            Subject::Traces => spans::span(account, &ids).into_iter().collect(),
            Subject::Lineage => lineage::events(account, &ids, &leg.name),
        }));
    }
    let documents = match leg.subject {
        Subject::Lineage => made,
        Subject::Traces if made.is_empty() => made,
        Subject::Traces => vec![spans::request(&made, &leg.name)],
    };
    Ok((documents, last))
}
