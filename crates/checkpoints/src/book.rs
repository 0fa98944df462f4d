//! The checkpoints that were made, in a file beside the database, and how many of them each target has.
//!
//! The file only grows: a line for each checkpoint. A target that was away for days, or is new, gets all that it lacks.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::checkpoint::Checkpoint;

/// The file of checkpoints, in the folder of state.
const BOOK: &str = "checkpoints.jsonl";
/// The file of what was sent, beside it.
const SENT: &str = "checkpoints.sent.json";

/// Both files. Errors complete "failed to …".
pub(crate) struct Book {
    book: PathBuf,
    sent: PathBuf,
}

impl Book {
    pub(crate) fn in_folder(folder: &Path) -> Book {
        Book { book: folder.join(BOOK), sent: folder.join(SENT) }
    }

    /// The lines of all checkpoints; the last one may be unfinished if the machine crashed.
    fn lines(&self) -> Result<Vec<String>, String> {
        match fs::read(&self.book) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("read {}: {error}", self.book.display())),
        }
    }

    /// The newest one that can be read.
    pub(crate) fn newest(&self) -> Result<Option<Checkpoint>, String> {
        Ok(self.lines()?.iter().rev().find_map(|line| Checkpoint::read(line).ok()))
    }

    /// The checkpoints that a target lacks, each with the number of those that it has after it.
    pub(crate) fn lacking(&self, target: &str) -> Result<Vec<(usize, Checkpoint)>, String> {
        let lines = self.lines()?;
        let sent = self.sent()?.get(target).copied().unwrap_or(0);
        // If there are fewer lines, the file is another one.
        let sent = if sent > lines.len() { 0 } else { sent };
        let numbered = lines.iter().enumerate().skip(sent).map(|(at, line)| (at + 1, line));
        Ok(numbered.filter_map(|(number, line)| Some((number, Checkpoint::read(line).ok()?))).collect())
    }

    /// Adds a checkpoint.
    pub(crate) fn add(&self, checkpoint: &Checkpoint) -> Result<(), String> {
        let written = || {
            let is_torn = fs::read(&self.book).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
            let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.book)?;
            let end = if is_torn { "\n" } else { "" };
            file.write_all(format!("{end}{}\n", checkpoint.json()).as_bytes())?;
            file.sync_all()
        };
        written().map_err(|error: io::Error| format!("write {}: {error}", self.book.display()))
    }

    fn sent(&self) -> Result<BTreeMap<String, usize>, String> {
        match fs::read(&self.sent) {
            // If it makes no sense, all are sent again, which targets recognise.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(format!("read {}: {error}", self.sent.display())),
        }
    }

    /// Notes that a target has this many.
    pub(crate) fn has(&self, target: &str, number: usize) -> Result<(), String> {
        let mut sent = self.sent()?;
        sent.insert(target.to_owned(), number);
        let written = || {
            let beside = self.sent.with_extension("unfinished");
            fs::write(&beside, serde_json::to_vec(&sent)?)?;
            fs::rename(&beside, &self.sent)
        };
        written().map_err(|error: io::Error| format!("write {}: {error}", self.sent.display()))
    }
}
