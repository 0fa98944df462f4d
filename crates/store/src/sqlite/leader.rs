//! Who may write: an epoch in the database, and a lock on a file beside it that dies with its process.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::params;

use super::fault::Fault;
use super::writer::Writer;
use crate::contract::{Lease, StoreError};

/// The lock, held or not, and the epoch that was taken under it.
///
/// A database file is used from one machine, so whoever gets the lock knows that the holder before is
/// gone, without waiting for anything to run out. The epoch fences whoever gets around the lock.
#[derive(Debug)]
pub(super) struct Leadership {
    path: PathBuf,
    lock: Option<File>,
    epoch: Option<u64>,
}

impl Leadership {
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path, lock: None, epoch: None }
    }

    /// Takes the lock, if nobody else holds it.
    pub(super) fn try_lock(&mut self) -> Result<bool, Fault> {
        if self.lock.is_none() {
            self.lock = lock(&self.path).map_err(|error| StoreError::Medium {
                doing: format!("lock {}", self.path.display()),
                cause: error.to_string(),
            })?;
        }
        Ok(self.lock.is_some())
    }

    /// Lets go of the lock.
    pub(super) fn unlock(&mut self) {
        self.lock = None;
        self.epoch = None;
    }

    /// Takes or renews the lead.
    pub(super) fn take(&mut self, writer: &mut Writer, node: &str, now: Timestamp) -> Result<Option<Lease>, Fault> {
        if let Some(epoch) = self.epoch {
            writer.still_there()?;
            if epoch == writer.epoch()? {
                writer.rest();
                return Ok(Some(Lease { epoch }));
            }
            self.unlock();
            return Ok(None);
        }
        writer.still_there()?;
        if !self.try_lock()? {
            return Ok(None);
        }
        match writer.next_epoch(node, now) {
            Ok(epoch) => {
                self.epoch = Some(epoch);
                Ok(Some(Lease { epoch }))
            }
            Err(fault) => {
                self.unlock();
                Err(fault)
            }
        }
    }

    /// Gives the lead back: the epoch moves on, so that nothing more can be written under it.
    pub(super) fn release(&mut self, writer: &mut Writer, lease: Lease) -> Result<(), Fault> {
        writer.end_epoch(lease.epoch)?;
        if self.epoch == Some(lease.epoch) {
            writer.tidy_up();
            self.unlock();
        }
        Ok(())
    }
}

fn lock(path: &Path) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Writer {
    fn epoch(&self) -> Result<u64, Fault> {
        Ok(self.conn.prepare_cached("SELECT epoch FROM leadership")?.query_row([], |row| row.get(0))?)
    }

    fn next_epoch(&mut self, node: &str, now: Timestamp) -> Result<u64, Fault> {
        self.forget();
        let sql = "UPDATE leadership SET epoch = epoch + 1, node = ?1, taken_at = ?2 RETURNING epoch";
        // The whole statement has to be stepped through: it commits when it is done.
        let mut epochs = self.conn.prepare(sql)?;
        let epochs = epochs
            .query_map(params![node, now.as_millisecond()], |row| row.get(0))?
            .collect::<Result<Vec<u64>, _>>()?;
        epochs.into_iter().next().ok_or_else(|| Fault::Nonsense("nothing is known of its leadership".to_owned()))
    }

    fn end_epoch(&mut self, epoch: u64) -> Result<(), Fault> {
        let sql = "UPDATE leadership SET epoch = epoch + 1, node = NULL WHERE epoch = ?1";
        self.conn.execute(sql, [super::rows::column(epoch)])?;
        Ok(())
    }
}
