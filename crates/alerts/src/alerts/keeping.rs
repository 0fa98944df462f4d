//! The keeping of the book: events are entered, the process is looked at, and the register is written.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kelos_core::SetRegister;
use kelos_explain::backfill::progress;
use kelos_model::register::ALERTS_BUCKET;
use kelos_model::{Actor, BackfillId};
use kelos_store::{EventFilter, PageRequest, StoreError};
use tokio::time::{Instant, sleep, timeout};

use super::lapse::Lapse;
use super::{Alerts, KEY};
use crate::book::{Book, MOST_WAITING};
use crate::channel::SendError;
use crate::condition::Condition;
use crate::rule::About;
use crate::signal::Directory;
use crate::stored_directory::StoredDirectory;
use crate::stored_look::StoredLook;

/// Events that are read at a time.
const AT_ONCE: usize = 1_000;
/// The least time between two looks at the log: a busy leader commits hundreds of turns in it, which are read together.
const PAUSE: Duration = Duration::from_millis(500);
/// The time between two looks at the process, and at backfills that are not done.
const LOOK: Duration = Duration::from_secs(10);
/// The time between two looks at what is stored, which read all live slots.
const STORED_LOOK: Duration = Duration::from_secs(60);
/// The time after which a failure of the store is met again.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// The longest wait without a look at the clock, which somebody may have set.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Events behind which the stored cursor may stay without anything to tell.
const COARSE: u64 = 50_000;

/// The looks that are taken at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// At nothing but the log.
    None,
    /// At the process, and at backfills.
    Process,
    /// At what is stored, too.
    All,
}

/// When looks were taken last.
#[derive(Default)]
struct LastLooks {
    process: Option<Instant>,
    stored: Option<Instant>,
}

impl LastLooks {
    /// The looks that are due, which are taken now.
    fn take(&mut self) -> Looks {
        let is_due = |last: Option<Instant>, every| last.is_none_or(|at| at.elapsed() >= every);
        if !is_due(self.process, LOOK) {
            return Looks::None;
        }
        self.process = Some(Instant::now());
        if !is_due(self.stored, STORED_LOOK) {
            return Looks::Process;
        }
        self.stored = self.process;
        Looks::All
    }
}

impl Alerts {
    /// Keeps the book while this process leads. Failures are met again.
    pub(super) async fn keep(&self) {
        let mut commits = self.shared.handle.watch_commits();
        let mut settled = self.shared.settled.subscribe();
        let mut looked = LastLooks::default();
        loop {
            commits.mark_unchanged();
            settled.mark_unchanged();
            let kept = self.keep_once(looked.take()).await;
            self.state().problem = kept.as_ref().err().cloned();
            if let Err(problem) = kept {
                tracing::warn!("failed to {problem}; alerts go on once that is over");
                sleep(TRY_AGAIN).await;
                continue;
            }
            sleep(PAUSE).await;
            let news = async {
                tokio::select! {
                    changed = commits.changed() => changed,
                    changed = settled.changed() => changed,
                }
            };
            // The end of the engine is noticed by its status.
            if let Ok(Err(_)) = timeout(self.patience(), news).await {
                return;
            }
        }
    }

    /// The time for which nothing is due.
    fn patience(&self) -> Duration {
        let now = self.shared.handle.now();
        let mut state = self.state();
        let Some(book) = &mut state.book else { return TRY_AGAIN };
        let until = book
            .next_due()
            .map_or(LONGEST_WAIT, |next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
        let looks = book.backfills().next().is_some() || self.told().any(Condition::is_observed);
        until.min(if looks { LOOK } else { LONGEST_WAIT })
    }

    /// The conditions that some rule tells.
    fn told(&self) -> impl Iterator<Item = Condition> {
        self.shared.settings.rules.iter().flat_map(|rule| rule.when.iter().copied())
    }

    async fn keep_once(&self, looks: Looks) -> Result<(), String> {
        if self.state().book.is_none() {
            // What was on its way is in the log, or never gets there.
            self.shared.handle.settled().await.map_err(|error| error.to_string())?;
        }
        let alerts = self.clone();
        let read = tokio::task::spawn_blocking(move || alerts.read(looks)).await;
        read.map_err(|error| error.to_string()).and_then(|read| read)?;
        self.store().await
    }

    /// Enters all that happened. Blocks.
    fn read(&self, looks: Looks) -> Result<(), String> {
        let words = |error: StoreError| error.to_string();
        let handle = &self.shared.handle;
        self.open()?;
        loop {
            let Some(cursor) = self.state().book.as_ref().map(Book::cursor) else { return Ok(()) };
            let page =
                handle.reader().events(&EventFilter::after(cursor), PageRequest::oldest(AT_ONCE)).map_err(words)?;
            let directory = StoredDirectory::new(&**handle.reader());
            let mut state = self.state();
            let Some(book) = &mut state.book else { return Ok(()) };
            page.rows.iter().for_each(|record| book.read(record, &directory));
            if page.rows.len() < AT_ONCE {
                book.advance(handle.now());
                break;
            }
        }
        if looks != Looks::None {
            self.look(looks).map_err(words)?;
        }
        let given_up = self.state().book.as_mut().map(Book::take_given_up).unwrap_or_default();
        for notice in given_up {
            let words = format!("keep more than {MOST_WAITING} alerts that wait");
            self.note(&notice, &Err(SendError::Refused(words)));
        }
        Ok(())
    }

    /// Reads the book, or begins one where the log ended when this process started: its first turns are told, too.
    fn open(&self) -> Result<(), String> {
        if self.state().book.is_some() {
            return Ok(());
        }
        let (handle, rules) = (&self.shared.handle, self.shared.settings.rules.clone());
        let words = |error: StoreError| error.to_string();
        let stored = handle.reader().register(ALERTS_BUCKET, KEY).map_err(words)?;
        let last = handle.reader().last_seq().map_err(words)?;
        let restored = stored.map(|stored| Book::restore(rules.clone(), stored)).transpose()?;
        // A cursor behind the end is of a log that an older copy took the place of.
        let restored = restored.filter(|book| book.cursor() <= last);
        let is_stored = restored.is_some();
        let begin = self.shared.since.min(last);
        let mut book = restored.unwrap_or_else(|| Book::since(rules, begin, last, handle.now()));
        book.take_rules(last, handle.now());
        if handle.reader().removed_history().map_err(words)?.covers(book.cursor() + 1) {
            // The events that ended something may be among those that were removed.
            let directory = StoredDirectory::new(&**handle.reader());
            book.end_unless(|condition, member| directory.lasts(condition, member));
        }
        let mut state = self.state();
        state.kept = is_stored.then(|| (book.version(), book.cursor()));
        state.sendable = keys(&book);
        state.book = Some(book);
        Ok(())
    }

    /// Looks at the process and at backfills, and maybe at what is stored.
    fn look(&self, looks: Looks) -> Result<(), StoreError> {
        let now = self.shared.handle.now();
        let backfills: Vec<BackfillId> =
            self.state().book.iter().flat_map(|book| book.backfills().cloned().collect::<Vec<_>>()).collect();
        let mut done = Vec::new();
        for id in backfills {
            if let Some(words) = self.done(&id, now)? {
                done.push((id, words));
            }
        }
        let wanted: BTreeSet<Condition> = self.told().filter(|condition| condition.is_observed()).collect();
        let mut observed = (!wanted.is_empty()).then(|| (self.shared.lookout)());
        if let Some(observed) = observed.as_mut().filter(|_| looks == Looks::All) {
            StoredLook { reader: &**self.shared.handle.reader(), wanted: &wanted, now }.add_to(observed)?;
        }
        if let Some(observed) = &mut observed {
            let directory = StoredDirectory::new(&**self.shared.handle.reader());
            let members = observed.troubles.iter_mut().flat_map(|trouble| &mut trouble.members);
            for about in members.map(|(_, about)| about).filter(|about| about.project.is_none()) {
                *about = about.workflow.as_ref().map_or_else(About::default, |workflow| directory.about(workflow));
            }
            // It is told once: nothing that may fail comes between it and the book.
            observed.troubles.extend(self.lapse().take().and_then(Lapse::trouble));
        }
        let mut state = self.state();
        let Some(book) = &mut state.book else { return Ok(()) };
        if let Some(observed) = observed {
            book.observe(&observed, now);
        }
        done.into_iter().for_each(|(id, words)| book.finish(&id, words, now));
        book.advance(now);
        Ok(())
    }

    /// The result of a backfill; none while it is not done.
    fn done(&self, id: &BackfillId, now: Timestamp) -> Result<Option<String>, StoreError> {
        let reader = self.shared.handle.reader();
        let Some(backfill) = reader.backfill(id)? else { return Ok(Some(format!("the backfill {id} is gone"))) };
        let progress = progress(&**reader, backfill, now)?;
        let (slots, failures) = (progress.backfill.slots, progress.failures());
        let failed = if failures == 0 { "none failed".to_owned() } else { format!("{failures} failed") };
        let words = format!("the backfill {id} of {} is done: {slots} slots, {failed}", progress.backfill.workflow);
        Ok((progress.left == 0).then_some(words))
    }

    /// Writes the register where it has to be written.
    pub(super) async fn store(&self) -> Result<(), String> {
        let _storing = self.shared.storing.lock().await;
        let (value, version, cursor, stored_keys) = {
            let state = self.state();
            let Some(book) = &state.book else { return Ok(()) };
            let (version, cursor) = (book.version(), book.cursor());
            let is_kept =
                state.kept.is_some_and(|(kept, behind)| kept == version && cursor.saturating_sub(behind) < COARSE);
            if is_kept {
                return Ok(());
            }
            (book.stored(), version, cursor, keys(book))
        };
        let ask =
            SetRegister { bucket: ALERTS_BUCKET.to_owned(), key: KEY.to_owned(), value: Some(value), reason: None };
        let asked = self.shared.handle.ask(&Actor::system("alerts"), ask).await;
        asked.map_err(|error| format!("keep what is to be told: {error}"))?;
        let mut state = self.state();
        (state.kept, state.sendable) = (Some((version, cursor)), stored_keys);
        drop(state);
        self.shared.stored.send_modify(|count| *count += 1);
        Ok(())
    }
}

/// The keys of the notices in a book.
fn keys(book: &Book) -> BTreeSet<String> {
    book.notices().map(|notice| notice.key.clone()).collect()
}
