//! What can go wrong in a store.

use crate::paging::Cursor;

/// Why a store could not do what was asked. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else leads: the epoch of the commit is stale. Nothing was written.
    #[error("write as leader of epoch {held}: epoch {current} has taken over")]
    Deposed {
        /// The epoch that was held.
        held: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The data was written by a newer version of the program. Nothing was touched.
    #[error(
        "open {place}: its schema is version {found}, this program knows up to {known}; use the newer program, or another folder"
    )]
    TooNew {
        /// Where the data is.
        place: String,
        /// The version found there.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// The data was written by an older version of the program, and is only to be read. Nothing was touched.
    #[error(
        "read {place}: its schema is version {found}, this program reads version {known}; a server brings it up to date at its start"
    )]
    TooOld {
        /// Where the data is.
        place: String,
        /// The version found there.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The data contradicts itself.
    #[error("read {place}: {what}")]
    Corrupt {
        /// Where.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A cursor that no page gave.
    #[error("read on from \"{cursor}\": expected the `next` of an earlier page")]
    Cursor {
        /// The cursor as given.
        cursor: Cursor,
    },
    /// The medium failed: disk full, no permission, server gone.
    #[error("{doing}: {cause}")]
    Medium {
        /// What was being done, completing "failed to …".
        doing: String,
        /// What the medium said.
        cause: String,
    },
}
