//! The inputs of one evaluation of a file.

use std::sync::Arc;

use crate::session::Session;

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Defining workflows.
    Definitions,
    /// Testing them.
    Tests,
}

/// The text of a file with everything that its evaluation depends on: the same recipe gives the same definitions.
#[derive(Clone)]
pub(crate) struct Recipe {
    /// A number that no other recipe of the folder has.
    pub(crate) number: u64,
    pub(crate) file: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) session: Arc<Session>,
    pub(crate) role: Role,
}
