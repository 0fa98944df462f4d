//! The store in one SQLite file: the default.
//!
//! One connection writes, owned by the leader's thread; a few more read, each in a transaction of its own,
//! and never wait for the writer (write-ahead log). Every commit reaches the disk before it returns.

mod blocks;
mod check;
mod connection;
mod counts;
mod definitions;
mod epochs;
mod event_pages;
mod fault;
mod file_identity;
mod followed;
mod kinds;
mod leader;
mod listing;
mod lookups;
mod members;
mod nineteenth;
mod note;
mod open;
mod pages;
mod pool;
mod reader;
mod rows;
mod run_pages;
mod schema;
mod shared;
mod slot_walk;
mod state;
mod steps;
mod tables;
#[cfg(test)]
mod tests;
mod trim;
mod turns;
mod twelfth;
mod unread;
mod verify;
mod views;
mod wal;
mod watch;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall, Run};
use kelos_store::{Commit, Journal, Lease, Queries, SlotRow, Snapshot, StoreError, StoredState, UnreadableRow, Watch};

use leader::{Leadership, Term};
use reader::SqliteReader;
use watch::FileWatch;
use writer::Writer;

pub use shared::SharedLogStore;
pub use state::SqliteState;
pub use tables::TableSize;
pub use views::{SqlError, SqlRows, SqlValue, SqliteViews};

/// The store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    place: Arc<str>,
    writer: Writer,
    leadership: Leadership,
    reader: Arc<SqliteReader>,
}

impl SqliteStore {
    /// Opens the file, making it where it is missing and bringing it up to date where it is old. A file
    /// that is made is readable by its owner alone.
    ///
    /// # Errors
    /// When the folder is missing, the file can't be read and written, is not a database of ours, or was
    /// written by a newer program; nothing is touched then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let place: Arc<str> = path.display().to_string().into();
        let mut leadership = Leadership::of(lock_path(path));
        let conn = open::writer(path, &mut leadership).map_err(|fault| fault.tell("open", &place))?;
        let reader = Arc::new(SqliteReader::new(path.to_owned(), Arc::clone(&place)));
        Ok(Self { place, writer: Writer::new(conn, path), leadership, reader })
    }

    /// Opens the file for reading only: it is not created and not migrated, and writing fails.
    ///
    /// # Errors
    /// When the file can't be read, is not a database of ours, or was written by a newer or an older program.
    pub fn look(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let place: Arc<str> = path.display().to_string().into();
        let conn = open::up_to_date(path).map_err(|fault| fault.tell("open", &place))?;
        let (leadership, reader) =
            (Leadership::of(lock_path(path)), SqliteReader::new(path.to_owned(), Arc::clone(&place)));
        Ok(Self { place, writer: Writer::new(conn, path), leadership, reader: Arc::new(reader) })
    }

    /// Whether a process leads on the data in this file.
    #[must_use]
    pub fn is_led(path: &Path, now: Timestamp) -> bool {
        leader::is_led(&lock_path(path), now)
    }

    /// The name of the process that leads on the data in this file; empty where it can't be read. None if none leads.
    #[must_use]
    pub fn leader(path: &Path, now: Timestamp) -> Option<String> {
        leader::name_of_leader(&lock_path(path), now)
    }

    /// The last entry of a shared log that this file has followed; none where it has a log of its own.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn followed(&self) -> Result<Option<u64>, StoreError> {
        let followed = self.told("read", followed::read(&self.writer.conn))?;
        Ok(followed.map(|(entry, _)| entry))
    }

    /// The rows and bytes of each table. Costs a read of the whole file.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn tables(&self) -> Result<Vec<TableSize>, StoreError> {
        self.told("read", tables::sizes(&self.writer.conn))
    }

    /// The version of the schema that this program writes.
    #[must_use]
    pub fn schema() -> usize {
        schema::STEPS.len()
    }

    /// Messages about damage, at most `limit`: everything is read and compared with its check values, and with the note
    /// of what was committed.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn damage(&mut self, limit: usize) -> Result<Vec<String>, StoreError> {
        let (conn, log) = self.writer.parts();
        let missing = self.leadership.missing(conn, log);
        let missing = self.told("read", missing)?;
        let found = self.reader.damage(limit)?;
        Ok(missing.into_iter().chain(found).take(limit).collect())
    }

    /// Accepts the present data as right: check values and indexes are computed anew, and nothing counts as missing any
    /// more. None while a process leads. Damage that remains after that can't be repaired in place.
    ///
    /// # Errors
    /// When the medium fails, or the data can't be read at all.
    pub fn accept(&mut self) -> Result<Option<()>, StoreError> {
        let outcome = self.leadership.try_lock();
        if !self.told("lock", outcome)? {
            return Ok(None);
        }
        let outcome = self.accept_what_is_there();
        self.leadership.unlock();
        self.told("make the check values anew of", outcome).map(Some)
    }

    fn accept_what_is_there(&mut self) -> Result<(), fault::Fault> {
        let tx = self.writer.conn.transaction()?;
        verify::accept(&tx)?;
        tx.commit()?;
        self.leadership.accept(&self.writer.conn)
    }

    fn told<T>(&self, doing: &str, outcome: Result<T, fault::Fault>) -> Result<T, StoreError> {
        outcome.map_err(|fault| fault.tell(doing, &self.place))
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl StoredState for SqliteStore {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        self.reader.restore()
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        self.reader.recall(recall)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.reader.recall_runs(seqs)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.reader.known_facts(names)
    }

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.reader.met_unreadable()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        let watch = FileWatch::new(self.reader.path(), Arc::clone(&self.place));
        self.told("watch", watch).map(|watch| Box::new(watch) as Box<dyn Watch>)
    }

    fn reader(&self) -> Arc<dyn Queries> {
        Arc::clone(&self.reader) as Arc<dyn Queries>
    }
}

impl Journal for SqliteStore {
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.reader.is_sound()?;
        self.told("read", followed::is_own_log(&self.writer.conn, &self.place))?;
        let outcome = self.leadership.take(&mut self.writer, node, Term::new(now, ttl_millis));
        self.told("take the lead over", outcome)
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        let outcome = self.leadership.release(&mut self.writer, lease);
        self.told("give back the lead over", outcome)
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        self.reader.is_sound()?;
        let outcome = self.writer.commit(lease, commit);
        let log_end = self.told("write to", outcome)?;
        self.leadership.committed(lease, commit.events.last().map(|record| record.seq), log_end);
        Ok(())
    }
}
