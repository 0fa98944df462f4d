//! The durations of the parts of turns since the engine started, and the end of its lease. Written by the engine's thread, read by
//! anybody, and neither ever waits for the other.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kelos_store::durations::Durations;

/// The durations of the parts of turns, and the end of the lease.
#[derive(Debug, Default)]
pub struct Timings {
    /// Deciding: the inputs are fed to the core, which may read the past from the store.
    pub step: Durations,
    /// Writing the turn to the store, and on several machines to the log.
    pub commit: Durations,
    /// Passing the commands on after the commit.
    pub perform: Durations,
    leased_until: Mutex<Option<Instant>>,
}

impl Timings {
    /// Notes until when this engine holds the right to write; none while it does not lead.
    pub(crate) fn hold_until(&self, until: Option<Instant>) {
        *self.leased_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// The time until the right to write ends if it is not renewed; none while this engine does not lead.
    #[must_use]
    pub fn lease_remaining(&self) -> Option<Duration> {
        let until = (*self.leased_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(until.saturating_duration_since(Instant::now()))
    }
}
