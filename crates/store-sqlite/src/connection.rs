//! Connections to the database file, and their settings.

use std::path::Path;
use std::time::{Duration, Instant};

use kelos_store::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::fault::Fault;

/// The longest time that a connection waits for the lock of another one.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// How long it waits where SQLite does not wait by itself.
const AGAIN: Duration = Duration::from_millis(2);

/// Opens a connection that reads and writes an existing file, and its write-ahead log.
pub(super) fn writer(path: &Path) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    // Room of removed history can be given back. A file that has pages keeps the setting that it was made with, until it is rebuilt;
    // saying the same again would be a write, for which a program that only opens the file would wait.
    if conn.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0 {
        conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    log_ahead(&conn)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // 64 MB of pages at most; they are given back when nothing is written for a while.
    conn.pragma_update(None, "cache_size", -65_536)?;
    // Pages that many commits touch reach the main file once: 32 MB of log before they are moved there.
    conn.pragma_update(None, "wal_autocheckpoint", 8_192)?;
    // A longer log is cut once it has been moved.
    conn.pragma_update(None, "journal_size_limit", 32 << 20)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.set_prepared_statement_cache_capacity(48);
    // A file that has just been switched to a log has none until it is read.
    read_something(&conn)?;
    Ok(conn)
}

/// The same for the state of a node, which is written again from its log if its last turns are lost: nothing waits for the disk.
pub(super) fn follower(path: &Path) -> Result<Connection, Fault> {
    let conn = writer(path)?;
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(conn)
}

/// Sets write-ahead logging. Of two programs that do so for a new file at once, SQLite refuses one without waiting, whatever the busy
/// timeout is: each has read, and neither may write before the other has stopped reading.
pub(super) fn log_ahead(conn: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY;
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(AGAIN);
            }
            // SQLite keeps the mode without an error where the log can't be made, as on a disk that fails.
            Ok(mode) if !mode.eq_ignore_ascii_case("wal") => {
                let what = format!("its write-ahead log can't be made; the journal mode is still {mode}");
                return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(what)));
            }
            outcome => return outcome.map(|_| ()),
        }
    }
}

/// Opens a connection that only reads. A transaction that a killed process left unfinished is rolled back first, for which the file
/// must be writable: until its first start has set write-ahead logging, SQLite lets nobody read it before.
pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    match read_only(path) {
        Err(error) if is_unfinished(&error) => {
            roll_back(path)?;
            Ok(read_only(path)?)
        }
        outcome => Ok(outcome?),
    }
}

fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    // Reads the schema, and so finds an unfinished transaction.
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.set_prepared_statement_cache_capacity(48);
    Ok(conn)
}

/// Whether an error says that a transaction is unfinished, and can't be rolled back by a connection that only reads.
fn is_unfinished(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_ROLLBACK)
}

fn roll_back(path: &Path) -> Result<(), Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(BUSY)?;
    read_something(&conn).map_err(|error| {
        if !is_unfinished(&error) {
            return error.into();
        }
        let doing = format!("roll back what a killed program left unfinished in {}", path.display());
        let cause = "this user may not write to the file: run the command as its owner".to_owned();
        Fault::from(StoreError::Medium { doing, cause })
    })
}

fn read_something(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}
