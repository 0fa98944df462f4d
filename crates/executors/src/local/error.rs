//! Errors around a run. A command that fails is an [`Outcome`](super::Outcome), not one of these.

use std::io;
use std::path::{Path, PathBuf};

/// An operation on a run's folder or processes that didn't work. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A file operation was refused.
    #[error("{doing} `{path}`: {source}")]
    Io {
        /// The operation, as a verb: `read`, `create`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A record on disk can't be understood.
    #[error("understand `{path}`: {source}")]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// The error in it.
        source: serde_json::Error,
    },
    /// Nothing was ever started for this run.
    #[error("find run `{0}`: it was never started")]
    NotStarted(String),
    /// The run is still live, and the request needs it to be over.
    #[error("remove run `{0}`: it is still running")]
    StillRunning(String),
    /// The output was removed, as the settings of history say.
    #[error("read the output of run {run}: it was removed on {on}, {why}")]
    Removed {
        /// The run.
        run: String,
        /// The day and time.
        on: String,
        /// The reason: `after 90 days`.
        why: String,
    },
    /// The output is not here, and the record of what was removed does not go back so far.
    #[error("read the output of run {0}: it was removed, or there was none")]
    RemovedOrNone(String),
    /// The output is neither here nor in a copy, and the history of the run was removed.
    #[error("read the output of run {run}: it was removed with the history{until}, or there was none")]
    GoneWithHistory {
        /// The run.
        run: String,
        /// The moment up to which history was removed, if that is known: ` up to 2026-08-29T00:00Z`.
        until: String,
    },
    /// The output is on the disk of a worker that is away.
    #[error("read the output: it is on worker {worker}, which is away{since}")]
    WorkerAway {
        /// The worker.
        worker: String,
        /// The time of its last heartbeat, if that is known: ` since 09:00`.
        since: String,
    },
    /// The output is on the disk of a worker, which did not read it.
    #[error("read the output, which is on worker {worker}: failed to {why}")]
    AtWorker {
        /// The worker.
        worker: String,
        /// The reason, which completes "failed to …".
        why: String,
    },
    /// The output is not here, and its copy can't be read.
    #[error("{first}; and failed to read its copy: {why}")]
    NoCopy {
        /// The reason for which it is not here.
        first: Box<LocalError>,
        /// The reason for which the copy can't be read.
        why: String,
    },
    /// The processes of a run could not be ended or watched.
    #[error("{doing} the processes of run `{run}`: {source}")]
    Process {
        /// The operation, as a verb: `stop`, `watch`.
        doing: &'static str,
        /// The run.
        run: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl LocalError {
    /// Whether it says that output is gone for good.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, LocalError::Removed { .. } | LocalError::RemovedOrNone(_) | LocalError::GoneWithHistory { .. })
    }
}

/// A run that could not be handed to a shim. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no program to run.
    #[error("start run `{0}`: its command is empty, expected at least a program")]
    EmptyCommand(String),
    /// The folder of this run belongs to another run id.
    #[error("start run `{run_id}`: its folder `{dir}` belongs to run `{owner}`")]
    Conflict {
        /// The run that was to be started.
        run_id: String,
        /// The run that has the folder.
        owner: String,
        /// The folder.
        dir: PathBuf,
    },
    /// The shim could not be spawned at all.
    #[error("spawn `{program}` for run `{run_id}`: {source}")]
    Spawn {
        /// The run that was to be started.
        run_id: String,
        /// The shim's program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The shim ended before it claimed the run, so the command did not run.
    #[error("start run `{run_id}`: its shim gave up before the command ran: {why}")]
    Shim {
        /// The run that was to be started.
        run_id: String,
        /// The shim's last words.
        why: String,
    },
    /// The run's folder could not be prepared or read.
    #[error(transparent)]
    Local(#[from] LocalError),
}

/// Adds the operation and the file to an error of the system.
pub(crate) trait At<T> {
    /// Names the operation and the path.
    fn at(self, doing: &'static str, path: &Path) -> Result<T, LocalError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T, LocalError> {
        self.map_err(|source| LocalError::Io { doing, path: path.to_owned(), source })
    }
}
