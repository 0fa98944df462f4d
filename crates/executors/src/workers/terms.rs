//! The terms on which a hub accepts workers.

use std::time::Duration;

/// The longest wait of a worker on another machine: whoever is in between may end connections on which nothing is said.
const REMOTE_WAIT: Duration = Duration::from_secs(15);

/// The terms on which a hub accepts workers.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The time after which a silent worker on this machine loses its runs.
    pub lease: Duration,
    /// The same for a worker on another machine.
    pub remote_lease: Duration,
    /// Whether it is the hub of one node of several: then another node may have led before, whose workers are not known here.
    pub is_of_several: bool,
    /// Whether it takes workers. One that does not only settles what others left.
    pub takes: bool,
}

impl Terms {
    /// The lease of a worker on this machine, or on another one.
    pub(super) fn of(&self, is_remote: bool) -> Duration {
        if is_remote { self.remote_lease } else { self.lease }
    }

    /// The longest wait of a worker for something to do.
    pub(super) fn longest_wait(&self, is_remote: bool) -> Duration {
        let third = self.of(is_remote) / 3;
        if is_remote { third.min(REMOTE_WAIT) } else { third }
    }

    pub(super) fn shortest(&self) -> Duration {
        self.lease.min(self.remote_lease)
    }
}
