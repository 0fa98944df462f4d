//! Events of the access to a server.

use serde::{Deserialize, Serialize};

use super::Event;
use crate::register::ACCESS_BUCKET;

/// An event of the access to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum AccessEvent {
    /// A person signed in.
    SignedIn,
    /// A person signed out.
    SignedOut,
    /// Tries to sign in failed: the actor has the name that was given.
    SignInFailed {
        /// The number of tries since the last record of this kind.
        times: u32,
    },
    /// Requests were refused, because the actor lacks a right.
    Refused {
        /// The right, as a verb.
        right: String,
        /// The project that it was needed for; none if it was needed for the whole server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        /// The method and the route of the last request.
        action: String,
        /// The number of requests since the last record of this kind.
        times: u32,
    },
}

impl Event {
    /// Whether it says who came in or was refused, or changes the record of a user or a token.
    #[must_use]
    pub fn is_about_access(&self) -> bool {
        match self {
            Event::Access { .. } => true,
            // That a token is in use is noted every hour.
            Event::Register { bucket, key, .. } => bucket == ACCESS_BUCKET && !key.starts_with("used/"),
            _ => false,
        }
    }
}
