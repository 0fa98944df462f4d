//! The reasons for which a hub does not hear a worker.

use std::sync::Arc;
use std::time::Duration;

/// The longest wait between two checks for runs that no worker claims.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The reason for which a hub rejects a worker. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// It was silent for too long, or its process ended.
    #[error("continue this session: the worker sent no heartbeat for too long, and its runs were taken away")]
    GivenUp,
    /// The leader ends.
    #[error("accept a worker: this leader is shutting down")]
    Closing,
    /// Its reports were not stored: the leader lost the lead, or its store failed.
    #[error("store what a worker reported: this process does not lead at the moment")]
    NotStored,
    /// Another process leads, or none: whose runs are whose is known there alone.
    #[error("hear a worker: this process does not lead at the moment{}", said(.0))]
    NotLeading(Option<String>),
    /// Another process works under the name, and is alive.
    #[error("work under the name {}: another process works under it on the machine {}; where a machine or a folder was copied, give this \
        worker an empty folder of its own", .0.name, .0.host)]
    NameTaken(HeldName),
    /// Another process had the name, and may still be alive.
    #[error("work under the name {}: another process worked under it on the machine {}, {} s ago; if it does not come back, the name is \
        free in {} s at most", .0.name, .0.host, .0.silence.as_secs(), .0.remaining().as_secs())]
    NameHeld(HeldName),
    /// The server does its jobs itself.
    #[error("register a worker: this server runs jobs itself, expected one that hands them to workers")]
    ByItself,
}

/// The name of a worker that another process has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldName {
    /// The name.
    pub name: Arc<str>,
    /// The machine of that process.
    pub host: String,
    /// The time since its last message.
    pub silence: Duration,
    /// The time of silence after which it certainly has no runs any more: the longest of its lease and those of its runs, and what clocks
    /// may differ.
    pub lease: Duration,
}

impl HeldName {
    /// How long the name may still be held, in full seconds and with the interval at which silence is looked for.
    fn remaining(&self) -> Duration {
        let left = self.lease.saturating_sub(self.silence) + LOOK_AGAIN;
        Duration::from_secs(left.as_secs() + 1)
    }
}

fn said(leader: &Option<String>) -> String {
    leader.as_ref().map(|leader| format!("; {leader} does")).unwrap_or_default()
}
