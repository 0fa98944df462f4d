//! Watching the file for turns that any process commits.

use std::path::Path;
use std::sync::Arc;

use kelos_store::{StoreError, Watch};
use rusqlite::Connection;

use super::connection;
use super::fault::Fault;

/// A watch that checks whether the file changed, and only then reads the turns.
#[derive(Debug)]
pub(super) struct FileWatch {
    conn: Connection,
    place: Arc<str>,
    /// SQLite's version of the data, and the last turn as of that version.
    seen: Option<(i64, u64)>,
}

impl FileWatch {
    pub(super) fn new(path: &Path, place: Arc<str>) -> Result<Self, Fault> {
        Ok(Self { conn: connection::reader(path)?, place, seen: None })
    }

    fn look(&mut self) -> Result<u64, Fault> {
        // In this order: a commit in between is read the next time.
        let version = self.conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if let Some((_, turn)) = self.seen.filter(|(seen, _)| *seen == version) {
            return Ok(turn);
        }
        let mut last = self.conn.prepare_cached("SELECT coalesce(max(turn), 0) FROM turns")?;
        let turn = last.query_row([], |row| row.get(0))?;
        self.seen = Some((version, turn));
        Ok(turn)
    }
}

impl Watch for FileWatch {
    fn last_turn(&mut self) -> Result<u64, StoreError> {
        self.look().map_err(|fault| fault.tell("look for turns in", &self.place))
    }
}
