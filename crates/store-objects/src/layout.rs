//! The objects of a log and their contents.

use bytes::Bytes;
use kelos_store::log::{Holder, LeaseRecord, LogError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The lease.
pub(crate) const LEASE: &str = "lease";
/// The first entry that is kept, and the latest snapshot.
pub(crate) const ENDS: &str = "ends";
/// An object that says nothing: it is to be refused by a store that keeps conditions.
pub(crate) const CHECK: &str = "check";
/// The folders of entries, and of parts of snapshots.
pub(crate) const ENTRIES: &str = "entries";
pub(crate) const PARTS: &str = "parts";

/// The path of an entry. Names are in the order of numbers.
pub(crate) fn entry(position: u64) -> String {
    format!("{ENTRIES}/{}", name_of(position))
}

pub(crate) fn name_of(position: u64) -> String {
    format!("{position:020}")
}

/// The position of the entry at a path.
pub(crate) fn position_of(path: &str) -> Option<u64> {
    path.strip_prefix(ENTRIES)?.strip_prefix('/')?.parse().ok()
}

/// The path of a part of a snapshot.
pub(crate) fn part(number: u64, part: usize) -> String {
    format!("{PARTS}/{number:016x}-{part}")
}

/// The lease as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lease {
    epoch: u64,
    nonce: u64,
    renewals: u64,
    is_free: bool,
    holder: Option<Holder>,
}

impl Lease {
    pub(crate) fn of(lease: &LeaseRecord) -> Lease {
        let (epoch, nonce, renewals, is_free) = (lease.epoch, lease.nonce, lease.renewals, lease.is_free);
        Lease { epoch, nonce, renewals, is_free, holder: Some(lease.holder.clone()) }
    }

    pub(crate) fn record(self) -> LeaseRecord {
        let (epoch, nonce, renewals, is_free) = (self.epoch, self.nonce, self.renewals, self.is_free);
        LeaseRecord { epoch, nonce, renewals, is_free, holder: self.holder.unwrap_or_default() }
    }
}

/// The first entry that is kept, and the latest snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ends {
    pub(crate) first: u64,
    pub(crate) snapshot: Option<Snapshot>,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { first: 1, snapshot: None }
    }
}

/// A snapshot whose parts are all there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) position: u64,
    pub(crate) number: u64,
    pub(crate) parts: usize,
}

/// The head of an entry: all but its body.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) epoch: u64,
    /// A random number of its writer, who recognises what was written although the answer said otherwise.
    pub(crate) writer: u64,
}

/// The content of an entry: its head as a line, then its body.
pub(crate) fn entry_content(head: &Head, body: &[u8]) -> Bytes {
    let mut content = json(head);
    content.push(b'\n');
    content.extend(body);
    content.into()
}

pub(crate) fn read_entry(path: &str, content: &Bytes) -> Result<(Head, Vec<u8>), LogError> {
    let end = content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len());
    let head = read(path, &content[..end])?;
    Ok((head, content.get(end + 1..).unwrap_or_default().to_vec()))
}

pub(crate) fn text_of(content: &impl Serialize) -> Bytes {
    json(content).into()
}

fn json(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).unwrap_or_else(|error| unreachable!("it has only texts and numbers: {error}"))
}

pub(crate) fn read<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<T, LogError> {
    serde_json::from_slice(content).map_err(|error| LogError::Corrupt {
        place: path.to_owned(),
        what: format!("its content makes no sense: {error}"),
    })
}
