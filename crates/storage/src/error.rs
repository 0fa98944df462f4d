//! What can go wrong with a place.

use std::time::Duration;

use jiff::Timestamp;

/// Why a place could not be looked at or changed. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The text names no place.
    #[error("understand \"{uri}\": {reason}")]
    BadUri {
        /// What was given.
        uri: String,
        /// What was expected.
        reason: String,
    },
    /// Something must be there, and is not.
    #[error("find {place}: nothing is there")]
    NotFound {
        /// Where.
        place: String,
    },
    /// The server knows who asks, and refuses.
    #[error("use {place}: permission denied ({detail})")]
    Denied {
        /// Where.
        place: String,
        /// The server's words.
        detail: String,
    },
    /// The server does not believe, or did not learn, who asks; or we do not believe that it is who it says.
    #[error("log in to {endpoint}: {detail}")]
    Login {
        /// Which server.
        endpoint: String,
        /// What went wrong and what to do.
        detail: String,
    },
    /// There was no connection, or it broke.
    #[error("reach {endpoint}: {detail}")]
    Unreachable {
        /// Which server.
        endpoint: String,
        /// What went wrong.
        detail: String,
    },
    /// No answer in time.
    #[error("get an answer from {endpoint} within {} s", after.as_secs())]
    TimedOut {
        /// Which server.
        endpoint: String,
        /// How long it was given.
        after: Duration,
    },
    /// The server failed again and again, and is left alone for a while: nothing was asked.
    #[error("reach {endpoint}: failing since {since}: {cause}; next try in {} s", next_try.as_secs_f64().ceil())]
    Broken {
        /// Which server.
        endpoint: String,
        /// When it first failed, in whole seconds.
        since: Timestamp,
        /// What it failed with last.
        cause: String,
        /// How long until it is tried again.
        next_try: Duration,
    },
    /// This kind of place can't do that.
    #[error("{what} {place}: {reason}")]
    Unsupported {
        /// What was wanted: "list", "write to".
        what: &'static str,
        /// Where.
        place: String,
        /// Why not, and what to do instead.
        reason: String,
    },
    /// Anything else that the system said.
    #[error("{what} {place}: {detail}")]
    Other {
        /// What was wanted: "list", "write".
        what: &'static str,
        /// Where.
        place: String,
        /// The system's words.
        detail: String,
    },
}

impl StorageError {
    /// Whether the fault lies with the server or the way to it, and not with the one path that was asked about: the
    /// next call would fare no better.
    #[must_use]
    pub fn is_of_endpoint(&self) -> bool {
        matches!(self, Self::Login { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. })
    }

    /// What went wrong, without what was wanted: "connection refused".
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Denied { detail, .. }
            | Self::Login { detail, .. }
            | Self::Unreachable { detail, .. }
            | Self::Other { detail, .. } => detail.clone(),
            Self::BadUri { reason, .. } | Self::Unsupported { reason, .. } => reason.clone(),
            Self::Broken { cause, .. } => cause.clone(),
            Self::NotFound { .. } => "nothing is there".to_owned(),
            Self::TimedOut { after, .. } => format!("no answer within {} s", after.as_secs()),
        }
    }

    /// A file of which only so many bytes are read, and which has more.
    pub(crate) fn too_large(place: &str, limit: u64) -> Self {
        let detail = format!("it is larger than the {limit} bytes that are read at most");
        Self::Other { what: "read", place: place.to_owned(), detail }
    }
}
