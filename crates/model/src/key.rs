//! What makes one slot of a workflow different from the next.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::time::text;

/// The key of a slot. Job ids, event generations and flow runs join as further variants; each gets a
/// text form of its own, told apart by its first character, that sorts within its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKey {
    /// A moment that a schedule yields, in whole milliseconds.
    Time(Timestamp),
}

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not the key of a slot: expected a time such as 2015-09-13T13:40Z")]
pub struct KeyError {
    /// The text as given.
    pub text: String,
}

impl SlotKey {
    /// The moment of a time key.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        match self {
            SlotKey::Time(at) => Some(*at),
        }
    }

    /// Where the slot sorts among all others: the time of a time key.
    #[must_use]
    pub fn scheduled_at(&self) -> Timestamp {
        match self {
            SlotKey::Time(at) => *at,
        }
    }

    /// The key that lies `seconds` later, or none where time ends or the key is not a time.
    #[must_use]
    pub fn offset(&self, seconds: i64) -> Option<SlotKey> {
        match self {
            SlotKey::Time(at) => at.checked_add(SignedDuration::from_secs(seconds)).ok().map(SlotKey::Time),
        }
    }

    /// Reads the text that [`fmt::Display`] writes, and the shorter forms that people type.
    ///
    /// # Errors
    /// When the text is not a time.
    pub fn parse(text: &str) -> Result<SlotKey, KeyError> {
        text::parse_instant(text).map(SlotKey::Time).map_err(|_| KeyError { text: text.to_owned() })
    }
}

/// Writes the canonical text, fixed in width: `2015-09-13T13:40:00.000Z`.
impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotKey::Time(at) => f.write_str(&text::format_full(*at)),
        }
    }
}

impl Serialize for SlotKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SlotKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        SlotKey::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A slot: the unit of state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotRef {
    /// Whose slot.
    pub workflow: WorkflowId,
    /// Which one.
    pub key: SlotKey,
}

impl SlotRef {
    /// Names the slot of a workflow at a key.
    #[must_use]
    pub fn new(workflow: WorkflowId, key: SlotKey) -> Self {
        Self { workflow, key }
    }

    /// Names the slot of a workflow at a time.
    #[must_use]
    pub fn at(workflow: WorkflowId, time: Timestamp) -> Self {
        Self::new(workflow, SlotKey::Time(time))
    }

    /// The short form that people read: `wordcount@2015-09-13T13:40Z`.
    #[must_use]
    pub fn short(&self) -> String {
        match &self.key {
            SlotKey::Time(at) => format!("{}@{}", self.workflow, text::format_short(*at)),
        }
    }
}

impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.workflow, self.key)
    }
}
