//! The nodes of a log and their contents.

use kelos_store::log::{Holder, LeaseRecord, LogError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The paths of the nodes below the one of the log.
pub(crate) struct Layout {
    root: String,
    /// The taking in force. Its version changes with takings alone.
    pub(crate) epoch: String,
    /// The renewals of that taking, and its end.
    pub(crate) renewals: String,
    /// The position of the last entry.
    pub(crate) last: String,
    /// The position of the first entry that is kept.
    pub(crate) first: String,
    /// The parent of the nodes of entries.
    pub(crate) entries: String,
    /// The parent of pieces of entries that are too large for one node.
    pub(crate) pieces: String,
    /// The latest snapshot.
    pub(crate) snapshot: String,
    /// The parent of the parts of snapshots.
    pub(crate) parts: String,
}

impl Layout {
    pub(crate) fn new(root: &str) -> Layout {
        let at = |name: &str| format!("{root}/{name}");
        Layout {
            root: root.to_owned(),
            epoch: at("epoch"),
            renewals: at("renewals"),
            last: at("last"),
            first: at("first"),
            entries: at("entries"),
            pieces: at("pieces"),
            snapshot: at("snapshot"),
            parts: at("parts"),
        }
    }

    /// The nodes that each log has, those above first, with their first contents.
    pub(crate) fn nodes(&self) -> Vec<(String, Vec<u8>)> {
        let mut above = String::new();
        let mut nodes = Vec::new();
        for name in self.root.split('/').skip(1) {
            above = format!("{above}/{name}");
            nodes.push((above.clone(), Vec::new()));
        }
        for path in [&self.entries, &self.pieces, &self.parts] {
            nodes.push((path.clone(), Vec::new()));
        }
        nodes.push((self.epoch.clone(), text_of(&EpochRecord::default())));
        nodes.push((self.renewals.clone(), text_of(&Renewals::default())));
        nodes.push((self.first.clone(), text_of(&1)));
        nodes.push((self.snapshot.clone(), text_of(&None::<Snapshot>)));
        // The last one: where it is, all are.
        nodes.push((self.last.clone(), text_of(&0)));
        nodes
    }

    pub(crate) fn entry(&self, position: u64) -> String {
        format!("{}/{position}", self.entries)
    }

    /// A piece of an entry. The number is random, so that nothing is written over what another leader left.
    pub(crate) fn piece(&self, position: u64, number: u64, piece: usize) -> String {
        format!("{}/{position}-{number:016x}-{piece}", self.pieces)
    }

    pub(crate) fn part(&self, number: u64, part: usize) -> String {
        format!("{}/{number:016x}-{part}", self.parts)
    }
}

/// The taking in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EpochRecord {
    pub(crate) epoch: u64,
    pub(crate) nonce: u64,
    pub(crate) holder: Option<Holder>,
}

/// The renewals of a taking, and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Renewals {
    pub(crate) epoch: u64,
    pub(crate) nonce: u64,
    pub(crate) renewals: u64,
    pub(crate) is_free: bool,
}

impl EpochRecord {
    pub(crate) fn of(lease: &LeaseRecord) -> EpochRecord {
        EpochRecord { epoch: lease.epoch, nonce: lease.nonce, holder: Some(lease.holder.clone()) }
    }

    /// The lease; none where the renewals are those of another taking, because one was read before and one after it.
    pub(crate) fn lease(self, renewals: &Renewals) -> Option<LeaseRecord> {
        ((self.epoch, self.nonce) == (renewals.epoch, renewals.nonce)).then(|| LeaseRecord {
            epoch: self.epoch,
            nonce: self.nonce,
            renewals: renewals.renewals,
            is_free: renewals.is_free,
            holder: self.holder.unwrap_or_default(),
        })
    }
}

impl Renewals {
    pub(crate) fn of(lease: &LeaseRecord) -> Renewals {
        Renewals { epoch: lease.epoch, nonce: lease.nonce, renewals: lease.renewals, is_free: lease.is_free }
    }
}

/// A snapshot whose parts are all there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) position: u64,
    pub(crate) number: u64,
    pub(crate) parts: usize,
}

/// The first bytes of the node of an entry: what tells its body.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) epoch: u64,
    /// The number of its pieces and how many there are; none where the body is in the node.
    pub(crate) pieces: Option<(u64, usize)>,
}

/// The content of the node of an entry: its head as a line, then the body if it has no pieces.
pub(crate) fn entry_content(head: &Head, body: &[u8]) -> Vec<u8> {
    let mut content = text_of(head);
    content.push(b'\n');
    content.extend(body);
    content
}

pub(crate) fn read_entry<'a>(path: &str, content: &'a [u8]) -> Result<(Head, &'a [u8]), LogError> {
    let end = content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len());
    let head = read(path, &content[..end])?;
    Ok((head, content.get(end + 1..).unwrap_or_default()))
}

pub(crate) fn text_of(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).unwrap_or_else(|error| unreachable!("it has only texts and numbers: {error}"))
}

pub(crate) fn read<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<T, LogError> {
    serde_json::from_slice(content).map_err(|error| LogError::Corrupt {
        place: path.to_owned(),
        what: format!("its content makes no sense: {error}"),
    })
}
