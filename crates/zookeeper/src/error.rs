//! Errors of a session.

use std::io;

use crate::PATIENCE;

/// The reason for which a server refuses a request. It was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Code {
    /// There is no such node, or none above it.
    #[error("there is no such node")]
    NoNode,
    /// The node may be used by others alone.
    #[error("it may only be used by others: name a user and its password in the address")]
    NotPermitted,
    /// The node has another version.
    #[error("it has another version")]
    OtherVersion,
    /// The node exists.
    #[error("it exists already")]
    Exists,
    /// The node has children.
    #[error("it has children")]
    HasChildren,
    /// The server is one that only reads, because it has lost the others.
    #[error("the server has lost the others and only reads")]
    ReadOnly,
    /// The quota of the path is used up.
    #[error("its quota is used up")]
    Quota,
    /// The session is not known, or moved.
    #[error("the session has ended")]
    SessionEnded,
}

impl Code {
    /// The meaning of a code of the protocol; none where it is not certain that the request was not done.
    pub(crate) fn of(code: i32) -> Option<Code> {
        match code {
            -101 => Some(Code::NoNode),
            -102 => Some(Code::NotPermitted),
            -103 => Some(Code::OtherVersion),
            -110 => Some(Code::Exists),
            -111 => Some(Code::HasChildren),
            -112 | -118 => Some(Code::SessionEnded),
            -119 => Some(Code::ReadOnly),
            -125 => Some(Code::Quota),
            _ => None,
        }
    }
}

/// An error of a session.
#[derive(Debug, thiserror::Error)]
pub enum ZooKeeperError {
    /// No server could be used. Nothing was asked.
    #[error("{0}")]
    Unreachable(String),
    /// The password was refused.
    #[error("it does not accept the password of {0}")]
    Password(String),
    /// The server refuses a request, which was not done.
    #[error("{path}: {code}")]
    Refused {
        /// The node.
        path: String,
        /// The reason.
        code: Code,
    },
    /// The connection failed: it is not known whether the request was done. The session can't be used any more.
    #[error("{0}")]
    Lost(String),
}

impl ZooKeeperError {
    pub(crate) fn lost(error: &io::Error) -> ZooKeeperError {
        ZooKeeperError::Lost(words(error))
    }
}

/// The cause of an error of a connection.
pub(crate) fn words(error: &io::Error) -> String {
    if let Some(distrust) = kelos_tls::explain(error) {
        return distrust.to_string();
    }
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!("no answer within {} s", PATIENCE.as_secs()),
        io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        _ => error.to_string(),
    }
}
