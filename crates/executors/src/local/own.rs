//! The output of a run that this process does itself, in the same files as that of a command.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::log::LogWriter;
use super::marks::Stream;
use super::paths::make_dir;
use super::records::{self, EXIT, Exit, Outcome};

/// The output of a run without a shim. Its files come with the first byte. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OwnLog {
    inner: Arc<Mutex<OwnLogState>>,
}

#[derive(Debug)]
struct OwnLogState {
    dir: PathBuf,
    limit: u64,
    /// Nothing before the first byte.
    writer: Option<LogWriter>,
    has_failed: bool,
}

impl OwnLog {
    pub(crate) fn new(dir: PathBuf, limit: u64) -> Self {
        let state = OwnLogState { dir, limit, writer: None, has_failed: false };
        Self { inner: Arc::new(Mutex::new(state)) }
    }

    /// Takes the next bytes, which come now. It never fails for the caller: a run must not break because a disk is full.
    pub fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = state.open() {
            writer.write(stream, bytes);
        }
    }

    /// Closes the output, so that those who follow it see its end.
    pub fn end(&self) {
        let mut state = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if state.writer.take().is_none() {
            return;
        }
        let exit = Exit { outcome: Outcome::Exited { code: 0 }, started_at_ms: None, ended_at_ms: records::now_ms() };
        if let Err(error) = records::create_once(&state.dir, EXIT, &exit) {
            tracing::warn!(dir = %state.dir.display(), "failed to {error}: the output seems to go on");
        }
    }
}

impl OwnLogState {
    fn open(&mut self) -> Option<&mut LogWriter> {
        if self.writer.is_none() && !self.has_failed {
            match make_dir(&self.dir) {
                Ok(()) => self.writer = Some(LogWriter::new(&self.dir, self.limit)),
                Err(error) => {
                    tracing::warn!("failed to {error}: the output of a run is lost");
                    self.has_failed = true;
                }
            }
        }
        self.writer.as_mut()
    }
}
