//! The reasons for which a node does not start.

use std::time::Duration;

use kelos_executors::local::LocalError;
use kelos_executors::workers::SHORTEST_LEASE;
use kelos_store::StoreError;

#[cfg(feature = "nodes")]
use crate::nodes::FilesError;

/// The error of a node that could not be started. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of runs can't be used.
    #[error(transparent)]
    Runs(#[from] LocalError),
    /// A folder of new files can't be watched.
    #[error("watch for new files: {0}")]
    Watch(String),
    /// The files of definitions can't be shared with other nodes.
    #[cfg(feature = "nodes")]
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The lease of its workers would end with a change of leader.
    #[error(
        "accept workers with a lease of {0:?}: expected {SHORTEST_LEASE:?} or more, as a shorter one would end commands with each change of leader"
    )]
    ShortLease(Duration),
    /// A thread can't be started.
    #[error("start a thread: {0}")]
    Thread(#[from] std::io::Error),
}
