//! The output in the folder of one run: its own one, or that of a copy.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::blocking::blocking;
use super::error::LocalError;
use super::lines::{self, LogLines};
use super::log::{self, LogChunk};

/// The output of a run, in a folder of this machine.
#[derive(Clone, Debug)]
pub struct OutputFolder {
    dir: PathBuf,
    /// Keeps the folder of a copy for as long as it is read.
    _copy: Option<Arc<TempDir>>,
}

impl OutputFolder {
    pub(super) fn of_run(dir: PathBuf) -> OutputFolder {
        OutputFolder { dir, _copy: None }
    }

    pub(super) fn of_copy(copy: TempDir) -> OutputFolder {
        OutputFolder { dir: copy.path().to_owned(), _copy: Some(Arc::new(copy)) }
    }

    /// Reads a piece, see [`read_log`](super::read_log).
    pub async fn piece(&self, offset: u64, most: usize) -> Result<LogChunk, LocalError> {
        let dir = self.dir.clone();
        blocking(move || log::read_log(&dir, offset, most)).await
    }

    /// The last line with text, see [`last_line`](super::last_line).
    pub async fn last_line(&self) -> Result<Option<String>, LocalError> {
        let dir = self.dir.clone();
        blocking(move || log::last_line(&dir)).await
    }

    /// Reads lines, see [`read_lines`](super::read_lines).
    pub async fn lines(&self, offset: u64, most: usize) -> Result<LogLines, LocalError> {
        let dir = self.dir.clone();
        blocking(move || lines::read_lines(&dir, offset, most)).await
    }

    /// Reads the last lines, see [`last_lines`](super::last_lines).
    pub async fn last_lines(&self, lines: usize, most: usize) -> Result<LogLines, LocalError> {
        let dir = self.dir.clone();
        blocking(move || lines::last_lines(&dir, lines, most)).await
    }

    /// The number of bytes that were written so far, dropped ones included.
    pub async fn length(&self) -> Result<u64, LocalError> {
        let dir = self.dir.clone();
        blocking(move || log::log_len(&dir)).await
    }
}
