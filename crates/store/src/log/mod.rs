//! The log of several machines: one leader appends each turn, every node reads it and follows.
//!
//! A [`Log`] is a small contract that PostgreSQL, Redis, ZooKeeper and object stores can keep: a lease with an epoch, entries by
//! position, and snapshots behind which the log is trimmed. It knows nothing of what entries contain. [`LogJournal`] makes a
//! [`Journal`](crate::Journal) of a log and the local state of a node; [`Keeper`] takes and renews the lease.
//!
//! **The lease is about liveness alone, the log about safety.** The first entry of each epoch is a *plug*: whatever an earlier leader
//! was about to append is before it, or never in the log. So an answer that was lost is no danger: its leader takes over from itself.

pub mod adapter;
mod candidate;
mod entry;
mod inbox;
mod journal;
mod keeper;
mod memory;
mod patient;
mod replica;
mod state;
mod status;

use std::io::{Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use candidate::{MOST_CLOCK_ERROR, WallClock, clock_error};
pub use entry::{EntryBody, Reign, entry_bytes, form_of, read_entry};
pub use inbox::{Inbox, InboxRequest, LARGEST_REQUEST, RefusedRequest};
pub use journal::{LogJournal, LogParts};
pub use keeper::{Keeper, LeaseTiming, Monotonic, NOT_HEARD_OF};
pub use memory::{MemoryLog, MemoryLogStore};
pub use replica::SnapshotPolicy;
pub use state::{LocalState, Position};
pub use status::{LogState, NodeStatus, RaiseError};

/// The newest form of entries that this program reads and writes. It reads all forms up to this one. Whatever an older program would not
/// read, such as a new kind of event, is a newer form.
pub const FORM: u32 = 4;

/// The holder of a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The name of its node.
    pub node: String,
    /// The address at which the node answers requests; none if it answers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The version of its program.
    #[serde(default)]
    pub program: String,
    /// The form in which it writes entries. It stays from one holder to the next until somebody raises it.
    #[serde(default)]
    pub writes: u32,
    /// The smallest [`FORM`] of a program that may lead.
    #[serde(default)]
    pub least: u32,
    /// The reason for which it took the lease from a leader that renewed it; none if it took a free or expired lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// The epoch beyond which it takes the lease, for data that come from elsewhere: workers hear no leader of an older epoch than one that
    /// has answered them. 0 where the log goes on; it is not stored.
    #[serde(skip)]
    pub after: u64,
}

impl LeaseRecord {
    /// The form in which entries are written.
    #[must_use]
    pub fn writes(&self) -> u32 {
        self.holder.writes.max(1)
    }

    /// The smallest [`FORM`] of a program that may lead.
    #[must_use]
    pub fn least(&self) -> u32 {
        self.holder.least.max(self.writes())
    }
}

/// The lease as it is stored. It differs after each taking, renewal and release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The epoch: it grows with each taking. 0 before the first.
    pub epoch: u64,
    /// A random number, for a store that lost its end and gives an epoch twice.
    pub nonce: u64,
    /// The number of renewals.
    pub renewals: u64,
    /// Whether its holder gave it back.
    pub is_free: bool,
    /// Its holder, or the last one.
    pub holder: Holder,
}

impl LeaseRecord {
    /// Whether it is the same taking of the lease as another record, renewed or not.
    #[must_use]
    pub fn is_same_taking(&self, other: &LeaseRecord) -> bool {
        (self.epoch, self.nonce) == (other.epoch, other.nonce)
    }

    /// The record of a holder who takes it next.
    #[must_use]
    pub fn taken_by(&self, nonce: u64, holder: &Holder) -> LeaseRecord {
        let epoch = self.epoch.max(holder.after) + 1;
        LeaseRecord { epoch, nonce, renewals: 0, is_free: false, holder: Holder { after: 0, ..holder.clone() } }
    }

    /// The record after a renewal.
    #[must_use]
    pub fn renewed(&self) -> LeaseRecord {
        LeaseRecord { renewals: self.renewals + 1, ..self.clone() }
    }

    /// The record after its holder gave it back.
    #[must_use]
    pub fn released(&self) -> LeaseRecord {
        LeaseRecord { is_free: true, ..self.clone() }
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its position, from 1, without gaps.
    pub position: u64,
    /// The epoch under which it was appended.
    pub epoch: u64,
    /// Its content, see [`read_entry`].
    pub body: Vec<u8>,
}

/// The ends of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogEnds {
    /// The position of the first entry that is kept; that of the next one to come if there is none.
    pub first: u64,
    /// The position of the last entry, also if it was trimmed; 0 before the first.
    pub last: u64,
}

/// An error of a log. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The epoch is not in force. Nothing was written.
    #[error("append as leader of epoch {held}: epoch {current} has taken over")]
    Deposed {
        /// The epoch of the entry.
        held: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The position is not the next one. Nothing was written.
    #[error("append entry {position} of the log: its last one is {last}")]
    NotNext {
        /// The position of the entry.
        position: u64,
        /// The position of the last entry.
        last: u64,
    },
    /// The answer was lost: it may have been written, or may still be written.
    #[error("{doing}: {cause}; whether it was written is not known")]
    Unknown {
        /// The attempted action, completing "failed to …".
        doing: String,
        /// The error of the medium.
        cause: String,
    },
    /// The store failed; nothing was written.
    #[error("{doing}: {cause}")]
    Medium {
        /// The attempted action, completing "failed to …".
        doing: String,
        /// The error of the medium.
        cause: String,
    },
    /// Entries that were asked for are trimmed.
    #[error("read the log after entry {after}: it begins with entry {first}")]
    RemovedHistory {
        /// The position after which was read.
        after: u64,
        /// The position of the first entry that is kept.
        first: u64,
    },
    /// An entry was written by a newer program.
    #[error("{}", crate::error::newer_form(*.position, *.form, *.reads))]
    NewerForm {
        /// The position of the entry.
        position: u64,
        /// Its form.
        form: u32,
        /// The newest form that this program reads.
        reads: u32,
    },
    /// The content of the store makes no sense.
    #[error("read {place}: {what}")]
    Corrupt {
        /// The key, row or entry.
        place: String,
        /// A description of the contradiction.
        what: String,
    },
}

/// The place of a log, which many nodes share.
pub trait LogStore: Send + Sync {
    /// The address of the log, without passwords.
    fn name(&self) -> String;

    /// Opens a connection of its own. The first one prepares the store: tables, keys.
    ///
    /// # Errors
    /// When the store can't be reached, refuses, or is configured so that it would lose what it acknowledged.
    fn open(&self) -> Result<Box<dyn Log>, LogError>;

    /// Opens the requests that users leave in the store; none for a store in which they have no transactions of their own.
    ///
    /// # Errors
    /// When the store can't be reached, or refuses.
    fn inbox(&self) -> Result<Option<Box<dyn Inbox>>, LogError>;
}

/// A connection to a log. Synchronous, owned by one thread. After [`LogError::Unknown`] and [`LogError::Medium`] the next call connects
/// again.
pub trait Log: Send {
    /// Reads the lease.
    ///
    /// # Errors
    /// When the store fails.
    fn lease(&mut self) -> Result<LeaseRecord, LogError>;

    /// Takes the lease if it is still as it was seen, with [`LeaseRecord::taken_by`]; none if it has changed meanwhile.
    ///
    /// # Errors
    /// When the store fails.
    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError>;

    /// Renews a lease, with [`LeaseRecord::renewed`]; none if it was taken by another holder, or given back.
    ///
    /// # Errors
    /// When the store fails.
    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError>;

    /// Gives a lease back, if it is still held.
    ///
    /// # Errors
    /// When the store fails.
    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError>;

    /// Appends an entry durably: all of it or nothing, only under the epoch in force, and only as the next entry.
    ///
    /// # Errors
    /// [`LogError::Deposed`], [`LogError::NotNext`] and [`LogError::Medium`] when nothing was written and nothing will be;
    /// [`LogError::Unknown`] otherwise.
    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError>;

    /// Reads entries after a position in order, at most `limit`, and fewer if they are large.
    ///
    /// # Errors
    /// [`LogError::RemovedHistory`] when the next one is not kept any more; otherwise when the store fails.
    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError>;

    /// Reads the ends of the log.
    ///
    /// # Errors
    /// When the store fails.
    fn ends(&mut self) -> Result<LogEnds, LogError>;

    /// The time of the store's own clock, in milliseconds since 1970; none of a store that does not tell it. No lease depends on it.
    ///
    /// # Errors
    /// When the store fails.
    fn clock_millis(&mut self) -> Result<Option<i64>, LogError> {
        Ok(None)
    }

    /// Waits until there may be entries after a position, or the lease may have been given back, at most for a time. A hint: it may return
    /// early, and a store that can't tell of the lease waits for entries alone.
    ///
    /// # Errors
    /// When the store fails.
    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError>;

    /// Stores a snapshot of the state after the entry at a position, and replaces an older one once it is complete. If the log
    /// has no entry yet, the first one follows the snapshot.
    ///
    /// # Errors
    /// When the store or the source fails; the older snapshot is kept.
    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError>;

    /// The position of the latest snapshot; none before the first.
    ///
    /// # Errors
    /// When the store fails.
    fn snapshot(&mut self) -> Result<Option<u64>, LogError>;

    /// Reads a snapshot.
    ///
    /// # Errors
    /// When the store or the target fails, or the snapshot was replaced.
    fn read_snapshot(&mut self, position: u64, target: &mut dyn Write) -> Result<(), LogError>;

    /// Deletes the entries before a position, which is at most the one after the latest snapshot.
    ///
    /// # Errors
    /// When the store fails, or there is no such snapshot.
    fn trim(&mut self, before: u64) -> Result<(), LogError>;
}
