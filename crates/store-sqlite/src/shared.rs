//! A log in a SQLite file that several nodes on one machine share: to try nodes without a server, and for tests.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kelos_store::log::{Holder, Inbox, LeaseRecord, Log, LogEnds, LogEntry, LogError, LogStore};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};

use super::connection::{BUSY, log_ahead};
use super::rows::column;

/// "KelL" in the header of the file.
const APPLICATION: i32 = 0x4b65_6c4c;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS lease (
        one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, nonce INTEGER NOT NULL,
        renewals INTEGER NOT NULL, is_free INTEGER NOT NULL, holder TEXT NOT NULL
    );
    INSERT OR IGNORE INTO lease VALUES (1, 0, 0, 0, 0, '');
    CREATE TABLE IF NOT EXISTS entries (position INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS ends (
        one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL, snapshot INTEGER
    );
    INSERT OR IGNORE INTO ends VALUES (1, 0, NULL);
";

/// Bytes of entries that are read at a time.
const PAGE_BYTES: usize = 4 << 20;

/// The interval at which a waiting node looks.
const LOOK: Duration = Duration::from_millis(5);

/// The place of a log in a folder that nodes on one machine share.
#[derive(Debug, Clone)]
pub struct SharedLogStore {
    folder: PathBuf,
}

impl SharedLogStore {
    /// The log in a folder, which exists.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }
}

impl LogStore for SharedLogStore {
    fn name(&self) -> String {
        format!("file:{}", self.folder.display())
    }

    fn open(&self) -> Result<Box<dyn Log>, LogError> {
        let place = self.folder.join("log.db");
        let conn = open(&place).map_err(|error| medium(format!("open {}", place.display()), &error))?;
        Ok(Box::new(SharedLog { conn, folder: self.folder.clone() }))
    }

    /// Users have no transactions of their own here.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError> {
        Ok(None)
    }
}

fn open(place: &Path) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open(place)?;
    conn.busy_timeout(BUSY)?;
    log_ahead(&conn)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.pragma_update(None, "application_id", APPLICATION)?;
    tx.execute_batch(SCHEMA)?;
    tx.commit()?;
    Ok(conn)
}

fn medium(doing: String, error: &rusqlite::Error) -> LogError {
    LogError::Medium { doing, cause: error.to_string() }
}

struct SharedLog {
    conn: Connection,
    folder: PathBuf,
}

impl SharedLog {
    /// Writes in a transaction, if there is something to write.
    fn write<T>(
        &mut self,
        doing: &str,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate);
        let tx = tx.map_err(|error| medium(doing.to_owned(), &error))?;
        let written = write(&tx)?;
        // SQLite's commit fails before it is durable, or holds.
        tx.commit().map_err(|error| medium(doing.to_owned(), &error))?;
        Ok(written)
    }

    fn snapshot_file(&self, position: u64) -> PathBuf {
        self.folder.join(format!("snapshot-{position}"))
    }
}

fn read_lease(conn: &Connection) -> Result<LeaseRecord, LogError> {
    let sql = "SELECT epoch, nonce, renewals, is_free, holder FROM lease";
    let read = |row: &Row<'_>| {
        Ok((
            row.get::<_, u64>(0)?,
            row.get::<_, i64>(1)?.cast_unsigned(),
            row.get::<_, u64>(2)?,
            row.get::<_, bool>(3)?,
            row.get::<_, String>(4)?,
        ))
    };
    let found = conn.prepare_cached(sql).and_then(|mut statement| statement.query_row([], read));
    let (epoch, nonce, renewals, is_free, holder) =
        found.map_err(|error| medium("read the lease".to_owned(), &error))?;
    let holder = match &*holder {
        "" => Holder::default(),
        json => serde_json::from_str(json)
            .map_err(|error| LogError::Corrupt { place: "the lease".to_owned(), what: error.to_string() })?,
    };
    Ok(LeaseRecord { epoch, nonce, renewals, is_free, holder })
}

fn write_lease(tx: &Transaction<'_>, lease: &LeaseRecord) -> Result<(), LogError> {
    let fail = |error: rusqlite::Error| medium("write the lease".to_owned(), &error);
    let holder = serde_json::to_string(&lease.holder)
        .map_err(|error| LogError::Corrupt { place: "the lease".to_owned(), what: error.to_string() })?;
    let sql = "UPDATE lease SET epoch = ?1, nonce = ?2, renewals = ?3, is_free = ?4, holder = ?5";
    let values = (column(lease.epoch), lease.nonce.cast_signed(), column(lease.renewals), lease.is_free, holder);
    tx.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(fail)?;
    Ok(())
}

fn read_ends(conn: &Connection) -> Result<(LogEnds, Option<u64>), LogError> {
    let sql = "SELECT last, snapshot, (SELECT min(position) FROM entries) FROM ends";
    let read =
        |row: &Row<'_>| Ok((row.get::<_, u64>(0)?, row.get::<_, Option<u64>>(1)?, row.get::<_, Option<u64>>(2)?));
    let found = conn.prepare_cached(sql).and_then(|mut statement| statement.query_row([], read));
    let (last, snapshot, first) = found.map_err(|error| medium("read the ends of the log".to_owned(), &error))?;
    Ok((LogEnds { first: first.unwrap_or(last + 1), last }, snapshot))
}

impl Log for SharedLog {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        read_lease(&self.conn)
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        self.write("take the lease", |tx| {
            if read_lease(tx)? != *seen {
                return Ok(None);
            }
            let taken = seen.taken_by(nonce, holder);
            write_lease(tx, &taken)?;
            Ok(Some(taken))
        })
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        self.write("renew the lease", |tx| {
            let now = read_lease(tx)?;
            if !now.is_same_taking(held) || now.is_free {
                return Ok(None);
            }
            write_lease(tx, &now.renewed())?;
            Ok(Some(now.renewed()))
        })
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        self.write("give the lease back", |tx| {
            let now = read_lease(tx)?;
            if now.is_same_taking(held) { write_lease(tx, &now.released()) } else { Ok(()) }
        })
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        self.write("append to the log", |tx| {
            let current = read_lease(tx)?.epoch;
            if current != epoch {
                return Err(LogError::Deposed { held: epoch, current });
            }
            let last = read_ends(tx)?.0.last;
            if last + 1 != position {
                return Err(LogError::NotNext { position, last });
            }
            let fail = |error: rusqlite::Error| medium("append to the log".to_owned(), &error);
            let insert = "INSERT INTO entries (position, epoch, body) VALUES (?1, ?2, ?3)";
            let values = (column(position), column(epoch), body);
            tx.prepare_cached(insert).and_then(|mut statement| statement.execute(values)).map_err(fail)?;
            let update = "UPDATE ends SET last = ?1";
            tx.prepare_cached(update).and_then(|mut statement| statement.execute([column(position)])).map_err(fail)?;
            Ok(())
        })
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let fail = |error: rusqlite::Error| medium("read the log".to_owned(), &error);
        let tx = self.conn.transaction().map_err(fail)?;
        let first = read_ends(&tx)?.0.first;
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        let sql = "SELECT position, epoch, body FROM entries WHERE position > ?1 ORDER BY position";
        let mut statement = tx.prepare_cached(sql).map_err(fail)?;
        let mut rows = statement.query([column(after)]).map_err(fail)?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while entries.len() < limit && bytes < PAGE_BYTES {
            let Some(row) = rows.next().map_err(fail)? else { break };
            let read = |row: &Row<'_>| Ok(LogEntry { position: row.get(0)?, epoch: row.get(1)?, body: row.get(2)? });
            let entry: LogEntry = read(row).map_err(fail)?;
            bytes += entry.body.len();
            entries.push(entry);
        }
        Ok(entries)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        Ok(read_ends(&self.conn)?.0)
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let until = Instant::now() + patience;
        while self.ends()?.last <= after && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let place = self.snapshot_file(position);
        let part = place.with_extension("part");
        let written = File::create(&part).and_then(|mut file| {
            std::io::copy(source, &mut file)?;
            file.sync_all()?;
            std::fs::rename(&part, &place)
        });
        if let Err(error) = written {
            let _ = std::fs::remove_file(&part);
            let doing = format!("write the snapshot {}", place.display());
            return Err(LogError::Medium { doing, cause: error.to_string() });
        }
        let older = self.write("store a snapshot", |tx| {
            let fail = |error: rusqlite::Error| medium("store a snapshot".to_owned(), &error);
            let (ends, older) = read_ends(tx)?;
            let last = if ends.last == 0 { position } else { ends.last };
            let newest = older.unwrap_or(0).max(position);
            tx.execute("UPDATE ends SET last = ?1, snapshot = ?2", (column(last), column(newest))).map_err(fail)?;
            Ok(older)
        })?;
        if let Some(older) = older.filter(|older| *older < position) {
            let _ = std::fs::remove_file(self.snapshot_file(older));
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        Ok(read_ends(&self.conn)?.1)
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError> {
        let place = self.snapshot_file(position);
        let read = File::open(&place).and_then(|mut file| std::io::copy(&mut file, target));
        read.map(drop).map_err(|error| LogError::Medium {
            doing: format!("read the snapshot {}", place.display()),
            cause: error.to_string(),
        })
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        let doing = format!("trim the log before entry {before}");
        self.write(&doing, |tx| {
            let covered = read_ends(tx)?.1.unwrap_or(0);
            if before > covered + 1 {
                let cause = format!("its latest snapshot is that of entry {covered}");
                return Err(LogError::Medium { doing: doing.clone(), cause });
            }
            let deleted = tx.execute("DELETE FROM entries WHERE position < ?1", [column(before)]);
            deleted.map(drop).map_err(|error| medium(doing.clone(), &error))
        })
    }
}
