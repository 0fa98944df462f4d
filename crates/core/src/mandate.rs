//! The mandate of a request: its actor and the reason given for it.

use kelos_model::Actor;

/// The actor of a request, and the reason given for it.
#[derive(Debug, Clone)]
pub(crate) struct Mandate {
    pub(crate) by: Actor,
    pub(crate) reason: Option<String>,
}

/// The actor and the reason of an optional mandate, for an event.
pub(crate) fn split(mandate: Option<&Mandate>) -> (Option<Actor>, Option<String>) {
    mandate.cloned().map_or((None, None), |Mandate { by, reason }| (Some(by), reason))
}
