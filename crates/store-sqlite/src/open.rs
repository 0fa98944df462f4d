//! Opening the file, carefully.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelos_store::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use super::leader::Leadership;
use super::schema;

pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Which file was opened: a path may come to name another one, or none.
#[derive(Debug)]
pub(super) struct FilePlace {
    path: PathBuf,
    what: &'static str,
    identity: Option<(u64, u64)>,
}

impl FilePlace {
    /// The file that is at the path now; `what` names it in messages.
    pub(super) fn of(path: &Path, what: &'static str) -> Self {
        // The working directory may change.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let identity = identity(&path);
        Self { path, what, identity }
    }

    /// Fails when the path names another file by now, or none.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let now = identity(&self.path);
        if now == self.identity {
            return Ok(());
        }
        let (what, became) = (self.what, if now.is_some() { "replaced" } else { "deleted" });
        Err(Fault::Damaged(format!(
            "{what} was {became} while it was in use: put it back, or restart to begin with what is there"
        )))
    }
}

/// Device and number of a file.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The connection that writes. Looks at the file first, without touching it.
pub(super) fn writer(path: &Path, leadership: &mut Leadership) -> Result<Connection, Fault> {
    let place = path.display().to_string();
    let known = u32::try_from(schema::STEPS.len()).unwrap_or(u32::MAX);
    let found = if make(path)? { 0 } else { look(path, known, &place)? };
    let mut conn =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    set_up_writer(&conn)?;
    if found != known {
        migrate(&mut conn, found, leadership, &place)?;
    }
    Ok(conn)
}

/// A connection that only reads, to a database that is as this program writes it.
pub(super) fn up_to_date(path: &Path) -> Result<Connection, Fault> {
    let place = path.display().to_string();
    let known = u32::try_from(schema::STEPS.len()).unwrap_or(u32::MAX);
    let conn = reader(path)?;
    match schema::check(&conn, known, &place)? {
        found if found == known => Ok(conn),
        found => Err(StoreError::TooOld { place, found, known }.into()),
    }
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.set_prepared_statement_cache_capacity(48);
    Ok(conn)
}

/// Makes the file, for its owner alone; false when it is there.
fn make(path: &Path) -> Result<bool, Fault> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(true),
        Err(_) if path.is_dir() => Err(unusable("open", path, "it is a folder".to_owned())),
        Err(error) => match error.kind() {
            ErrorKind::AlreadyExists => Ok(false),
            ErrorKind::NotFound => Err(unusable("make", path, "its folder does not exist".to_owned())),
            _ => Err(unusable("make", path, error.to_string())),
        },
    }
}

fn unusable(doing: &str, path: &Path, cause: String) -> Fault {
    StoreError::Medium { doing: format!("{doing} {}", path.display()), cause }.into()
}

fn look(path: &Path, known: u32, place: &str) -> Result<u32, Fault> {
    let conn = reader(path)?;
    schema::check(&conn, known, place)
}

fn set_up_writer(conn: &Connection) -> Result<(), Fault> {
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // 64 MB of pages at most; they are given back when nothing is written for a while.
    conn.pragma_update(None, "cache_size", -65_536)?;
    // Pages that many commits touch reach the main file once: 32 MB of log before they are moved there.
    conn.pragma_update(None, "wal_autocheckpoint", 8_192)?;
    // A longer log is cut once it has been moved.
    conn.pragma_update(None, "journal_size_limit", 32 << 20)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.set_prepared_statement_cache_capacity(48);
    Ok(())
}

/// An old schema is not changed under a leader of the old program.
fn migrate(conn: &mut Connection, found: u32, leadership: &mut Leadership, place: &str) -> Result<(), Fault> {
    let guarded = found > 0;
    if guarded && !leadership.try_lock()? {
        let doing = format!("bring {place} from version {found} of its schema up to date");
        let cause = "another program works with it; stop that one first".to_owned();
        return Err(StoreError::Medium { doing, cause }.into());
    }
    let outcome = schema::migrate(conn, schema::STEPS, place);
    if guarded {
        leadership.unlock();
    }
    outcome
}
