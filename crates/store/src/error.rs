//! Errors of a store.

use crate::paging::Cursor;

/// An error of a store. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process leads: the epoch of the commit is stale. Nothing was written.
    #[error("write as leader of epoch {held}: epoch {current} has taken over")]
    Deposed {
        /// The epoch of the commit.
        held: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The data was written by a newer version of the program. Nothing was changed.
    #[error(
        "open {place}: its schema is version {found}, this program knows up to {known}; use the newer program, or another folder"
    )]
    TooNew {
        /// The database.
        place: String,
        /// The version of its schema.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// The data was written by an older version of the program, and was opened for reading only. Nothing was changed.
    #[error(
        "read {place}: its schema is version {found}, this program reads version {known}; a server brings it up to date at its start"
    )]
    TooOld {
        /// The database.
        place: String,
        /// The version of its schema.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The data contradicts itself.
    #[error("read {place}: {what}")]
    Corrupt {
        /// The table, row or column.
        place: String,
        /// A description of the contradiction.
        what: String,
    },
    /// A cursor that no page returned.
    #[error("read on from \"{cursor}\": expected the `next` of an earlier page")]
    Cursor {
        /// The cursor as given.
        cursor: Cursor,
    },
    /// The medium failed: disk full, no permission, server gone.
    #[error("{doing}: {cause}")]
    Medium {
        /// The attempted action, completing "failed to …".
        doing: String,
        /// The error of the medium.
        cause: String,
    },
}
