//! The folders of scripts, and the resources that scripts may use.

use std::path::PathBuf;
use std::time::Duration;

/// The two folders of definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Every `*.js` directly in it is a file of definitions.
    pub workflows: PathBuf,
    /// The folder that `celos.importDefaults` imports from.
    pub defaults: PathBuf,
}

/// The resources that one file may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory of one file's world. Each file has a budget of its own, so that none starves another.
    pub memory_bytes: usize,
    /// Native stack that scripts may use; recursion beyond it is an error of the script.
    pub stack_bytes: usize,
    /// Longest text of a file: parsing can't be interrupted, so it is bounded by size.
    pub file_bytes: u64,
    /// Processor time for evaluating one file, so that a busy machine refuses no good file.
    pub load_millis: u64,
    /// Processor time for one later call of a function.
    pub call_millis: u64,
    /// Time by the clock for either: far more than a script needs on a busy machine.
    pub wall_millis: u64,
    /// Time by the clock that probes and registers may take, per evaluation or call, on top of the above.
    pub host_millis: u64,
    /// A file that was stopped for its time is tried again after this long, changed or not.
    pub retry_stopped_millis: u64,
    /// Threads that evaluate files.
    pub threads: usize,
    /// Worlds that each thread keeps for further calls.
    pub kept_worlds: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            stack_bytes: 1 << 20,
            file_bytes: 4 << 20,
            load_millis: 1000,
            call_millis: 500,
            wall_millis: 30_000,
            host_millis: 30_000,
            retry_stopped_millis: 30_000,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get().min(2)),
            kept_worlds: 16,
        }
    }
}

impl Limits {
    pub(crate) fn load(&self) -> Duration {
        Duration::from_millis(self.load_millis)
    }

    pub(crate) fn call(&self) -> Duration {
        Duration::from_millis(self.call_millis)
    }

    pub(crate) fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_millis)
    }

    pub(crate) fn host(&self) -> Duration {
        Duration::from_millis(self.host_millis)
    }
}
