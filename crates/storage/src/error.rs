//! Errors of file systems.

use std::time::Duration;

use jiff::Timestamp;

/// An error of a file system. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The text is not a valid URI.
    #[error("understand \"{uri}\": {reason}")]
    BadUri {
        /// The URI as given.
        uri: String,
        /// A description of what was expected.
        reason: String,
    },
    /// Something does not exist that must.
    #[error("find {place}: nothing is there")]
    NotFound {
        /// Its path or URI.
        place: String,
    },
    /// The server knows the user, and refuses access.
    #[error("use {place}: permission denied ({detail})")]
    Denied {
        /// The path or URI.
        place: String,
        /// The server's message.
        detail: String,
    },
    /// The server does not accept the user's credentials, or its own identity could not be verified.
    #[error("log in to {endpoint}: {detail}")]
    Login {
        /// The scheme and the server.
        endpoint: String,
        /// The cause, and what to do.
        detail: String,
    },
    /// There was no connection, or it broke.
    #[error("reach {endpoint}: {detail}")]
    Unreachable {
        /// The scheme and the server.
        endpoint: String,
        /// The cause.
        detail: String,
    },
    /// No answer in time.
    #[error("get an answer from {endpoint} within {} s", after.as_secs())]
    TimedOut {
        /// The scheme and the server.
        endpoint: String,
        /// How long the call waited.
        after: Duration,
    },
    /// The server failed several times in a row, and is not called for a while: no request was sent.
    #[error("reach {endpoint}: failing since {since}: {cause}; next try in {} s", next_try.as_secs_f64().ceil())]
    Broken {
        /// The scheme and the server.
        endpoint: String,
        /// When it first failed, in whole seconds.
        since: Timestamp,
        /// The message of the last failure.
        cause: String,
        /// How long until it is tried again.
        next_try: Duration,
    },
    /// This kind of place can't do that.
    #[error("{what} {place}: {reason}")]
    Unsupported {
        /// The operation: "list", "write to".
        what: &'static str,
        /// The path or URI.
        place: String,
        /// The reason, and what to do instead.
        reason: String,
    },
    /// Any other error of the system.
    #[error("{what} {place}: {detail}")]
    Other {
        /// The operation: "list", "write".
        what: &'static str,
        /// The path or URI.
        place: String,
        /// The system's message.
        detail: String,
    },
}

impl StorageError {
    /// Whether the fault lies with the server or the connection, and not with the one path of the call: the
    /// next call would fail, too.
    #[must_use]
    pub fn is_of_endpoint(&self) -> bool {
        matches!(self, Self::Login { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Broken { .. })
    }

    /// The cause without the operation: "connection refused".
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

    /// The error of a file that is longer than the limit of a read.
    pub(crate) fn too_large(place: &str, limit: u64) -> Self {
        let detail = format!("it is larger than the {limit} bytes that are read at most");
        Self::Other { what: "read", place: place.to_owned(), detail }
    }
}
