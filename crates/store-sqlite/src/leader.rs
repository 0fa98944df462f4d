//! Leadership: an epoch in the database, a lock on a file beside it that is released when its process dies, and a lease
//! for a process that hangs.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_store::{Lease, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use super::epochs;
use super::fault::Fault;
use super::followed;
use super::lookups::last_seq;
use super::note::{self, Note, NoteState};
use super::trim;
use super::wal::{Log, LogEnd};
use super::writer::Writer;

/// The lock, held or not, and the epoch that was taken under it.
///
/// A database file is used from one machine, so the process that gets the lock knows that the previous holder is gone,
/// without waiting for a timeout. A holder that hangs keeps its lock: once its lease has expired, by the clock that all
/// processes share, another file replaces the locked one. The epoch fences a process that circumvented the lock, or
/// lost it in this way.
#[derive(Debug)]
pub(super) struct Leadership {
    path: PathBuf,
    lock: Option<File>,
    epoch: Option<u64>,
    note: Note,
}

/// Until when a lease holds that is taken now, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    now: i64,
    until: i64,
}

impl Term {
    pub(super) fn new(now: Timestamp, ttl_millis: u64) -> Self {
        let now = now.as_millisecond();
        Self { now, until: now.saturating_add(i64::try_from(ttl_millis).unwrap_or(i64::MAX)) }
    }
}

/// Whether a process leads: it has the lock, and its lease has not run out.
pub(super) fn is_led(path: &Path, now: Timestamp) -> bool {
    let is_locked =
        File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    is_locked && !has_run_out(path, now.as_millisecond())
}

/// The name of the process that leads; empty where its note can't be read. None if none leads.
pub(super) fn name_of_leader(path: &Path, now: Timestamp) -> Option<String> {
    is_led(path, now).then(|| match note::read(path) {
        Ok(NoteState::Note(note)) => note.node,
        _ => String::new(),
    })
}

/// Whether the lease of the holder has expired. A note without a lease has none that could.
fn has_run_out(path: &Path, now: i64) -> bool {
    matches!(note::read(path), Ok(NoteState::Note(note)) if note.until <= now)
}

impl Leadership {
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path, lock: None, epoch: None, note: Note::default() }
    }

    /// Takes the lock, unless another process holds it.
    pub(super) fn try_lock(&mut self) -> Result<bool, Fault> {
        if self.lock.is_none() {
            self.lock = note::lock(&self.path).map_err(|error| self.unusable("lock", &error))?;
        }
        Ok(self.lock.is_some())
    }

    /// Lets go of the lock.
    pub(super) fn unlock(&mut self) {
        self.lock = None;
        self.epoch = None;
    }

    /// Takes or renews the lead.
    pub(super) fn take(&mut self, writer: &mut Writer, node: &str, term: Term) -> Result<Option<Lease>, Fault> {
        writer.still_there()?;
        if let Some(epoch) = self.epoch {
            if epoch == epochs::current(&writer.conn)? {
                writer.rest()?;
                self.note.until = term.until;
                self.write_down(writer.log_end());
                return Ok(Some(Lease { epoch }));
            }
            self.unlock();
            return Ok(None);
        }
        if !self.try_lock()? && !has_run_out(&self.path, term.now) {
            return Ok(None);
        }
        let taken = self.take_over(writer, node, term);
        if !matches!(taken, Ok(Some(_))) {
            self.unlock();
        }
        taken
    }

    /// Takes the lead from a process that is gone or hangs. Candidates wait for each other here, so a faster one is
    /// noticed.
    fn take_over(&mut self, writer: &mut Writer, node: &str, term: Term) -> Result<Option<Lease>, Fault> {
        writer.forget();
        let (conn, log) = writer.parts();
        let tx =
            conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| self.in_the_way(error))?;
        let found = note::read(&self.path).map_err(|error| self.unusable("read", &error))?;
        let kept = note_of(&found)?;
        match &self.lock {
            Some(lock) if !note::is_at(lock, &self.path) => return Ok(None),
            None if kept.until > term.now => return Ok(None),
            _ => {}
        }
        is_all_there(&tx, &kept, log.walk()?)?;
        // The next candidate must see that the lease was taken; the note says nothing yet of what is not committed.
        self.note = Note { until: term.until, ..kept };
        self.note.name(node);
        match &self.lock {
            Some(_) => self.write_note(),
            None => {
                let replaced = note::replace(&self.path, &self.note);
                self.lock = Some(replaced.map_err(|error| self.unusable("replace", &error))?);
            }
        }
        let epoch = epochs::begin(&tx, node, term.now)?;
        let committed = last_seq(&tx)?;
        tx.commit()?;
        (self.note.epoch, self.note.committed, self.epoch) = (epoch, committed, Some(epoch));
        let log_end = writer.follow_log()?;
        self.write_down(log_end);
        Ok(Some(Lease { epoch }))
    }

    /// Takes note of what was committed under the lease.
    pub(super) fn committed(&mut self, lease: Lease, last: Option<u64>, log: LogEnd) {
        if self.epoch == Some(lease.epoch) {
            self.note.committed = last.unwrap_or(self.note.committed);
            self.write_down(log);
        }
    }

    fn write_down(&mut self, log: LogEnd) {
        self.note.log = log;
        self.write_note();
    }

    /// If the note can't be written, the previous one stays, which claims less than is true.
    fn write_note(&self) {
        if let Some(lock) = &self.lock {
            let _ = self.note.write(lock);
        }
    }

    /// Gives the lead back: the epoch moves on, so that nothing more can be written under it.
    pub(super) fn release(&mut self, writer: &mut Writer, lease: Lease) -> Result<(), Fault> {
        let ended = epochs::end(&mut writer.conn, lease.epoch)?;
        if self.epoch == Some(lease.epoch) {
            if ended {
                self.note.epoch = lease.epoch + 1;
            }
            self.note.until = 0;
            let log_end = writer.tidy_up()?;
            self.write_down(log_end);
            self.unlock();
        }
        Ok(())
    }

    /// Accepts the data as complete: the note says from now on that they are all that was committed.
    pub(super) fn accept(&mut self, conn: &Connection) -> Result<(), Fault> {
        self.note = Note { epoch: epochs::current(conn)?, committed: last_seq(conn)?, ..Note::default() };
        self.write_note();
        Ok(())
    }

    /// The difference between the note beside the database and the data, as a message. While another process leads,
    /// both change, and nothing is compared.
    pub(super) fn missing(&mut self, conn: &Connection, log: &mut Log) -> Result<Option<String>, Fault> {
        let held = self.lock.is_some();
        if !held && !self.path.exists() {
            return Ok(None);
        }
        if !self.try_lock()? {
            return Ok(None);
        }
        let found = note::read(&self.path).map_err(|error| self.unusable("read", &error));
        let tested = found.and_then(|found| is_all_there(conn, &note_of(&found)?, log.walk()?));
        if !held {
            self.unlock();
        }
        match tested {
            Ok(()) => Ok(None),
            Err(Fault::Damaged(what)) => Ok(Some(what)),
            Err(other) => Err(other),
        }
    }

    fn unusable(&self, doing: &str, error: &std::io::Error) -> Fault {
        StoreError::Medium { doing: format!("{doing} {}", self.path.display()), cause: error.to_string() }.into()
    }

    /// The error of a takeover that failed, which names a holder that was stopped in the middle of a write and blocks
    /// all others.
    fn in_the_way(&self, error: rusqlite::Error) -> Fault {
        let busy = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
        match note::read(&self.path) {
            Ok(NoteState::Note(note)) if busy && self.lock.is_none() => StoreError::Medium {
                doing: "take the lead over from a process that stands still".to_owned(),
                cause: format!("{} stopped in the middle of a write; end it by `kill -9`", note.node),
            }
            .into(),
            _ => error.into(),
        }
    }
}

/// The note that was found; an empty one where there is none.
fn note_of(found: &NoteState) -> Result<Note, Fault> {
    match found {
        NoteState::Note(note) => Ok(note.clone()),
        NoteState::Nothing => Ok(Note::default()),
        NoteState::Nonsense => Err(Fault::Damaged(
            "the note in its lock file makes no sense, so nobody can tell whether anything that was committed is missing"
                .to_owned(),
        )),
    }
}

/// Fails where something is missing that was committed.
fn is_all_there(conn: &Connection, kept: &Note, log: LogEnd) -> Result<(), Fault> {
    if followed::read(conn)?.is_some() {
        // The state of a node: its log counts epochs from 1 again, and has what a power failure took.
        return Ok(());
    }
    let (last, epoch) = (last_seq(conn)?, epochs::current(conn)?);
    let lost = |what: String| Err(Fault::Damaged(what));
    if last < kept.committed {
        return lost(format!("it ends with event {last}, and event {} had been committed", kept.committed));
    }
    if epoch < kept.epoch {
        return lost(format!("its leader is number {epoch}, and number {} had led", kept.epoch));
    }
    if kept.log.frames > 0 && log.salts == kept.log.salts && log.frames < kept.log.frames {
        let (left, of) = (log.frames, kept.log.frames);
        return lost(format!("its write-ahead log breaks off after {left} of {of} pages that had been committed"));
    }
    if kept.log.frames > 0 && log.salts == 0 {
        // The log was moved into the database and deleted, or just deleted.
        let left: u64 = conn.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
        let events = left + trim::read(conn)?.events;
        if events != last {
            return lost(format!("its write-ahead log is gone, and its log of {last} events has {events}"));
        }
    }
    Ok(())
}
