//! The state database of Celos: a folder of small files, one per slot, mark, pause and register.
//!
//! Read without ever failing as a whole: what can't be read is reported with its path and the rest goes on, as
//! Celos itself leaves truncated and stray files behind. Written as Celos writes it, byte for byte, but so that
//! nobody sees half a file. What is *absent*: what any of it means to Kelos; that is `import` and `export`. The
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

/// How far back from now Celos looks at slots that nobody marked for rerun.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(168);

/// How long Celos keeps a mark for rerun.
pub const MARK_LIFE: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The folders of the database.
pub(crate) const STATE: &str = "state";
pub(crate) const RERUN: &str = "rerun";
pub(crate) const PAUSED: &str = "paused";
pub(crate) const REGISTER: &str = "register";

/// Why a database can't be used at all. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum CelosDbError {
    /// It is not there, or is no folder, or may not be read or written.
    #[error("{doing} {}: {cause}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A folder of something else.
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

/// A file that could not be taken for what its place says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Its path, from the root of the database.
    pub path: String,
    /// What is wrong with it, and what became of it.
    pub why: String,
}

/// A slot as its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub status: Status,
    /// What Oozie calls its job.
    pub external_id: Option<String>,
    /// Failed attempts so far.
    pub retry_count: u32,
}

/// What there is of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotRecord {
    /// Its record.
    Record(Record),
    /// A file that says nothing that can be understood: nobody knows where the slot stands.
    Unreadable,
}

/// All that is kept of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkflowRecords {
    /// Its slots.
    pub slots: BTreeMap<Timestamp, SlotRecord>,
    /// Slots that somebody marked for rerun, and when that was.
    pub marks: BTreeMap<Timestamp, Timestamp>,
    /// Whether it is paused.
    pub paused: bool,
}

/// Registers by bucket and key.
pub type Registers = BTreeMap<(String, String), Value>;

/// Where a database may have something of a workflow.
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
