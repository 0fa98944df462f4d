//! The state database of Celos: a folder of small files, one per slot, mark, pause and register.
//!
//! Reading never fails as a whole: a file that can't be read is reported with its path, and all others are read, because
//! Celos itself leaves truncated and stray files behind. Files are written as Celos writes them, byte for byte, but so that
//! no reader sees half a file. What is *absent*: the meaning for Kelos; that is in `import` and `export`. The
//! same data in a database server (`--dbType JDBC`) is not read.

mod read;
mod status;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use kelos_model::WorkflowId;
use serde::Serialize;
use serde_json::Value;

pub use read::Database;
pub use status::Status;
pub use write::{FileStatus, Tree, TreeFile, is_safe_name};

/// How far back from now Celos considers slots that are not marked for rerun.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(168);

/// How long Celos keeps a mark for rerun.
pub const MARK_LIFE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The folders of the database.
pub(crate) const STATE: &str = "state";
pub(crate) const RERUN: &str = "rerun";
pub(crate) const PAUSED: &str = "paused";
pub(crate) const REGISTER: &str = "register";

/// An error for which a database can't be used at all. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum CelosDbError {
    /// It does not exist, is no folder, or may not be read or written.
    #[error("{doing} {}: {cause}", path.display())]
    Io {
        /// The attempted action.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// The folder contains something else.
    #[error(
        "find a state database of Celos in {}: expected a folder with one of state, rerun, paused and register in it",
        path.display()
    )]
    NoDatabase {
        /// The folder.
        path: PathBuf,
    },
}

impl CelosDbError {
    pub(crate) fn io(doing: &'static str, path: &Path, cause: std::io::Error) -> CelosDbError {
        CelosDbError::Io { doing, path: path.to_owned(), cause }
    }
}

/// A file with unexpected content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Its path, from the root of the database.
    pub path: String,
    /// A description of what is wrong with it, and of the consequence.
    pub why: String,
}

/// The record of a slot in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The status of the slot.
    pub status: Status,
    /// The id of its job in Oozie.
    pub external_id: Option<String>,
    /// How many attempts have failed so far.
    pub retry_count: u32,
}

/// The file of a slot, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotRecord {
    /// Its record.
    Record(Record),
    /// A file that can't be understood: the status of the slot is unknown.
    Unreadable,
}

/// All records of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowRecords {
    /// Its slots.
    pub slots: BTreeMap<Timestamp, SlotRecord>,
    /// Slots that are marked for rerun, with the moments of the marks.
    pub marks: BTreeMap<Timestamp, Timestamp>,
    /// Whether it is paused.
    pub paused: bool,
}

/// Registers by bucket and key.
pub type Registers = BTreeMap<(String, String), Value>;

/// The places in a database that may contain records of a workflow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// Folders of days with slots: below `state`, and, in very old databases, in the root.
    pub(crate) states: Vec<PathBuf>,
    /// Folder of days with marks.
    pub(crate) marks: Option<PathBuf>,
    pub(crate) paused: bool,
}

/// Workflows by name.
pub(crate) type Index = BTreeMap<WorkflowId, Places>;
