//! Why a command was not carried out, for the person who typed it.

use kelos_engine::MENDING;
use kelos_store::StoreError;

use crate::terminal;

/// The thing that was asked about is bad, or what was asked for was refused.
pub(crate) const BAD: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// No server answers.
pub(crate) const UNREACHABLE: u8 = 3;

/// The exit code for a damaged database.
pub(crate) const DAMAGED: u8 = 4;

/// A command that was not carried out.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) code: u8,
    /// Completes "failed to …".
    pub(crate) message: String,
    /// A hint on how to solve the problem.
    pub(crate) hint: Option<String>,
    /// Lines that show the place, printed below the message.
    pub(crate) shown: Vec<String>,
    /// The code with which a server refused it.
    pub(crate) refusal: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), hint: None, shown: Vec::new(), refusal: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Failure {
        Failure::new(BAD, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(USAGE, message)
    }

    /// The failure for an error of the store.
    pub(crate) fn of_store(error: &StoreError) -> Failure {
        match error {
            StoreError::Corrupt { .. } => Failure::damaged(error.to_string()),
            other => Failure::bad(other.to_string()),
        }
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Failure {
        Failure::new(DAMAGED, message).hint(MENDING)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// The same, as the refusal of a server with this code.
    pub(crate) fn refused(self, code: &str) -> Failure {
        Failure { refusal: Some(code.to_owned()), ..self }
    }

    pub(crate) fn show(self, shown: Vec<String>) -> Failure {
        Failure { shown, ..self }
    }

    pub(crate) fn print(&self) {
        terminal::note(format!("error: failed to {}", self.message));
        for line in &self.shown {
            terminal::note(format!("  {line}"));
        }
        if let Some(hint) = &self.hint {
            terminal::note(format!("  hint: {hint}"));
        }
    }
}
