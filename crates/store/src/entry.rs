//! The content of the entries of a log.

use jiff::Timestamp;

use crate::contract::Commit;
use crate::record::TurnRecord;

/// A time of leading, as its first entry says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reign {
    /// The epoch.
    pub epoch: u64,
    /// The node that leads.
    pub node: String,
    /// The address of the node.
    pub address: Option<String>,
    /// The moment at which it began, by the clock of the node.
    pub at: Timestamp,
    /// The reason for which the leader changed.
    pub reason: String,
}

/// The content of an entry.
#[derive(Debug, Clone)]
pub enum EntryBody {
    /// The plug that begins an epoch.
    Plug(Reign),
    /// A turn with all its rows.
    Turn {
        /// The record of the turn, as the leader wrote it.
        record: TurnRecord,
        /// The rows.
        commit: Box<Commit>,
    },
}
