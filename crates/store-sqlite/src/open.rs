//! Opening a database: making the file, and bringing its schema up to date.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

use kelos_store::StoreError;
use rusqlite::Connection;

use super::fault::Fault;
use super::leader::Leadership;
use super::{connection, schema, trim};

/// Opens the connection that writes. The file is checked first, without changing it.
pub(super) fn writer(path: &Path, leadership: &mut Leadership) -> Result<Connection, Fault> {
    let place = path.display().to_string();
    let known = u32::try_from(schema::STEPS.len()).unwrap_or(u32::MAX);
    let found = if make(path)? { 0 } else { version(path, known, &place)? };
    let mut conn = connection::writer(path)?;
    if found != known {
        migrate(&mut conn, found, leadership, &place)?;
    }
    Ok(conn)
}

/// Opens a connection that only reads, to a database whose schema is this program's.
pub(super) fn up_to_date(path: &Path) -> Result<Connection, Fault> {
    let place = path.display().to_string();
    let known = u32::try_from(schema::STEPS.len()).unwrap_or(u32::MAX);
    let conn = connection::reader(path)?;
    match stored_version(&conn, known, &place)? {
        found if found == known => Ok(conn),
        found => Err(StoreError::TooOld { place, found, known }.into()),
    }
}

/// Makes the file, readable by its owner alone; false if it exists already.
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

/// The version of the schema of an existing file.
fn version(path: &Path, known: u32, place: &str) -> Result<u32, Fault> {
    stored_version(&connection::reader(path)?, known, place)
}

/// The version of the schema, of one moment: another program may be making the tables.
fn stored_version(conn: &Connection, known: u32, place: &str) -> Result<u32, Fault> {
    schema::check(&*conn.unchecked_transaction()?, known, place)
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
        if outcome.is_ok() {
            // An error, as of a full disk, costs nothing but room later.
            let _ = trim::rebuild_for_room(conn);
        }
        leadership.unlock();
    }
    outcome
}
