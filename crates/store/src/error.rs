//! Errors of a store.

use crate::paging::Cursor;

/// An error of a store. Messages complete "failed to …".
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another process leads: the epoch of the commit is stale. Nothing was written.
    #[error("write as leader of epoch {held}: epoch {current} has taken over")]
    Deposed {
        /// The epoch of the commit.
        held: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The lease was given back, or not renewed in time: another process may have taken over. Nothing was written.
    #[error("write as leader of epoch {held}: its lease is not held any more")]
    LeaseLost {
        /// The epoch of the lease.
        held: u64,
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
    /// The state of this node has entries that the log lacks, or others: the log lost its end, or was put back. Nothing was changed.
    #[error(
        "follow the log: this node ends with entry {local}, which the log, whose last entry is {log}, lacks or has differently; \
         `kelos recover` says what can be done"
    )]
    Ahead {
        /// The last entry of this node.
        local: u64,
        /// The last entry of the log.
        log: u64,
    },
    /// An entry of the log was written by a newer version of the program. Nothing was changed.
    #[error("{}", newer_form(*.entry, *.form, *.reads))]
    NewerForm {
        /// The position of the entry.
        entry: u64,
        /// Its form.
        form: u32,
        /// The newest form that this program reads.
        reads: u32,
    },
    /// The data contradicts itself.
    #[error("read {place}: {what}")]
    Corrupt {
        /// The table, row or column.
        place: String,
        /// A description of the contradiction.
        what: String,
    },
    /// A row is stored as it was written, and its content can't be read. The others can be.
    #[error("read {place}: {what}")]
    Unreadable {
        /// The table, row or column.
        place: String,
        /// The reason, and what can be done about it.
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

/// The words for an entry of a newer form.
pub(crate) fn newer_form(position: u64, form: u32, reads: u32) -> String {
    format!(
        "follow the log: its entry {position} is of form {form}, and this program reads up to form {reads}; use the program of the leader"
    )
}
