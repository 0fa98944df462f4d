//! The place for what the run of a function writes.

use std::sync::{Arc, Mutex, PoisonError};

use kelos_executors::local::{OwnLog, Stream};

/// The output of a run: files, or lines in memory where nothing outlives a test.
#[derive(Debug, Clone)]
pub(super) enum RunOutput {
    Files(OwnLog),
    Lines(Arc<Mutex<Vec<u8>>>),
}

impl RunOutput {
    /// Output in memory.
    pub(super) fn lines() -> RunOutput {
        RunOutput::Lines(Arc::default())
    }

    /// Takes the next bytes.
    pub(super) fn write(&self, stream: Stream, bytes: &[u8]) {
        match self {
            RunOutput::Files(log) => log.write(stream, bytes),
            RunOutput::Lines(all) => all.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes),
        }
    }

    /// Takes a line.
    pub(super) fn line(&self, stream: Stream, line: &str) {
        self.write(stream, format!("{line}\n").as_bytes());
    }

    /// Closes the output.
    pub(super) fn end(&self) {
        if let RunOutput::Files(log) = self {
            log.end();
        }
    }

    /// Takes the lines in memory out: those that are complete, or all of a run that is over.
    pub(super) fn take_lines(&self, is_over: bool) -> Vec<String> {
        match self {
            RunOutput::Files(_) => Vec::new(),
            RunOutput::Lines(all) => {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                let complete = all.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                let end = if is_over { all.len() } else { complete };
                let taken: Vec<u8> = all.drain(..end).collect();
                String::from_utf8_lossy(&taken).lines().map(str::to_owned).collect()
            }
        }
    }
}
