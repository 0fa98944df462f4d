//! The way of a worker's messages to a hub.

use std::future::Future;
use std::time::Duration;

use kelos_wire::{AssignmentDto, OfferRequest};

/// The transport of a worker's messages to a hub.
pub trait Door: Send + Sync + 'static {
    /// Sends a message and waits for the answer, but no longer than `patience`: then the leader is [away](NoAnswer::Away), and a door that
    /// leads to several nodes goes on to the next one. A caller that drops the future has changed its mind, which says nothing of the leader.
    fn say(
        &self,
        worker: &str,
        word: &OfferRequest,
        patience: Duration,
    ) -> impl Future<Output = Result<AssignmentDto, NoAnswer>> + Send;
}

/// The reason for which there is no answer. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No hub can be reached now; one may be later.
    #[error("{0}")]
    Away(String),
    /// The desk gave this worker up.
    #[error("{0}")]
    GivenUp(String),
    /// It makes no sense to ask again.
    #[error("{0}")]
    Never(String),
}
