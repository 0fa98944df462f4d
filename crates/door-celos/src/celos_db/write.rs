//! Writing the database as Celos does, byte for byte, but each file atomically.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kelos_model::WorkflowId;
use kelos_model::time::format_full;
use serde_json::Value;

use super::{CelosDbError, PAUSED, REGISTER, RERUN, Record, STATE};

/// The temporary name of a file before it is renamed: in the root, which Celos does not read, because a stray file
/// in the folder of a day would stop its workflow.
const SCRATCH: &str = ".kelos-export";

/// Longest name of a file.
const LONGEST_NAME: usize = 255;

/// Whether a name can be the name of a file in the database, and of no other.
#[must_use]
pub fn is_safe_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && name.len() <= LONGEST_NAME && !name.contains(['/', '\0'])
}

/// A file of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The path from the root.
    pub path: PathBuf,
    /// The content.
    pub bytes: Vec<u8>,
}

impl TreeFile {
    /// The record of a slot.
    #[must_use]
    pub fn slot(id: &WorkflowId, time: Timestamp, record: &Record) -> TreeFile {
        let external_id = Value::from(record.external_id.clone());
        let text = format!(
            r#"{{"time":"{}","status":"{}","externalID":{external_id},"retryCount":{}}}"#,
            format_full(time),
            record.status,
            record.retry_count
        );
        TreeFile { path: place(STATE, id, time), bytes: text.into_bytes() }
    }

    /// A mark for rerun.
    #[must_use]
    pub fn mark(id: &WorkflowId, time: Timestamp, marked_at: Timestamp) -> TreeFile {
        let text = format!(r#"{{"rerunTime":"{}"}}"#, format_full(marked_at));
        TreeFile { path: place(RERUN, id, time), bytes: text.into_bytes() }
    }

    /// The file whose presence pauses a workflow.
    #[must_use]
    pub fn paused(id: &WorkflowId) -> TreeFile {
        TreeFile { path: Path::new(PAUSED).join(id.as_str()), bytes: Vec::new() }
    }

    /// A register.
    #[must_use]
    pub fn register(bucket: &str, key: &str, value: &Value) -> TreeFile {
        TreeFile { path: Path::new(REGISTER).join(bucket).join(key), bytes: value.to_string().into_bytes() }
    }
}

fn place(part: &str, id: &WorkflowId, time: Timestamp) -> PathBuf {
    let text = format_full(time);
    let (day, rest) = text.split_once('T').unwrap_or((&text, ""));
    [part, id.as_str(), day, rest].iter().collect()
}

/// The relation of a file to the one that exists at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// No file exists.
    Missing,
    /// The same file exists.
    Same,
    /// Another file exists.
    Differs,
}

/// A database for writing.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// A database in a folder, which need not exist yet.
    #[must_use]
    pub fn at(root: &Path) -> Tree {
        Tree { root: root.to_owned() }
    }

    /// Whether the folder exists and contains anything.
    ///
    /// # Errors
    /// When it can't be read, or is no folder.
    pub fn is_empty(&self) -> Result<bool, CelosDbError> {
        let root = self.root.clone();
        match kelos_sandbox::answered(move || Ok(fs::read_dir(root)?.next().is_none())) {
            Ok(is_empty) => Ok(is_empty),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(CelosDbError::io("read", &self.root, error)),
        }
    }

    /// Compares a file with the one at its path.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn standing(&self, file: &TreeFile) -> Result<FileStatus, CelosDbError> {
        let path = self.root.join(&file.path);
        match fs::read(&path) {
            Ok(bytes) if bytes == file.bytes => Ok(FileStatus::Same),
            Ok(_) => Ok(FileStatus::Differs),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileStatus::Missing),
            Err(error) => Err(CelosDbError::io("read", &path, error)),
        }
    }

    /// Writes a file atomically.
    ///
    /// # Errors
    /// If it can't be written; then the old file is unchanged.
    pub fn write(&self, file: &TreeFile) -> Result<(), CelosDbError> {
        let path = self.root.join(&file.path);
        let folder = path.parent().unwrap_or(&self.root);
        let scratch = self.root.join(SCRATCH);
        let fail = |cause| CelosDbError::io("write", &path, cause);
        fs::create_dir_all(folder).map_err(fail)?;
        fs::write(&scratch, &file.bytes).map_err(fail)?;
        fs::rename(&scratch, &path).map_err(fail)
    }

    /// Removes a file if it exists. Returns whether it existed.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove(&self, file: &TreeFile) -> Result<bool, CelosDbError> {
        let path = self.root.join(&file.path);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(CelosDbError::io("remove", &path, error)),
        }
    }

    /// Syncs everything that was written to the disk.
    ///
    /// # Errors
    /// If the system reports an error.
    pub fn sync(&self) -> Result<(), CelosDbError> {
        let fail = |cause| CelosDbError::io("write", &self.root, cause);
        fs::create_dir_all(&self.root).map_err(fail)?;
        let folder = fs::File::open(&self.root).map_err(fail)?;
        rustix::fs::syncfs(&folder).map_err(|error| fail(error.into()))
    }
}
