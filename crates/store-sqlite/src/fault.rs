//! Errors inside the adapter, and their conversion to store errors.

use kelos_store::StoreError;
use rusqlite::ErrorCode;

/// A failure before it is known what was being done.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of SQLite.
    Sql(rusqlite::Error),
    /// The new rows contradict the existing ones.
    Nonsense(String),
    /// The existing rows make no sense, or some are missing.
    Damaged(String),
    /// An existing row is as it was written, and can't be read.
    Unreadable(String),
    /// Already in words.
    Told(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Fault {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Fault::Damaged(error.to_string())
    }
}

/// Rows are compared with their check values before their JSON is read.
impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Fault::Unreadable(error.to_string())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Told(error)
    }
}

impl Fault {
    /// Converts it: `doing` completes "failed to …", `place` is the path of the data.
    pub(super) fn tell(self, doing: &str, place: &str) -> StoreError {
        match self {
            Fault::Told(error) => error,
            Fault::Unreadable(what) => StoreError::Unreadable { place: place.to_owned(), what },
            Fault::Nonsense(what) | Fault::Damaged(what) => StoreError::Corrupt { place: place.to_owned(), what },
            Fault::Sql(error) => tell_sql(&error, doing, place),
        }
    }
}

fn tell_sql(error: &rusqlite::Error, doing: &str, place: &str) -> StoreError {
    use rusqlite::Error;
    let corrupt = |what: String| StoreError::Corrupt { place: place.to_owned(), what };
    match error {
        Error::FromSqlConversionFailure(..) | Error::IntegralValueOutOfRange(..) | Error::InvalidColumnType(..) => {
            corrupt(error.to_string())
        }
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => corrupt("it is not a database of Kelos".to_owned()),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation) => corrupt(error.to_string()),
            Some(ErrorCode::SystemIoFailure) => {
                let limit = file_limit().map_or_else(String::new, |bytes| {
                    format!("; no file may have more than {bytes} bytes here: raise the limit (`ulimit -f`)")
                });
                StoreError::Medium { doing: format!("{doing} {place}"), cause: format!("{error}{limit}") }
            }
            _ => StoreError::Medium { doing: format!("{doing} {place}"), cause: error.to_string() },
        },
    }
}

/// The file size limit of this process, if it has one. SQLite does not report that a write failed because of it.
fn file_limit() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file size"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
