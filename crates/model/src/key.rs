//! What makes one slot of a workflow different from the next.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{WorkflowId, is_invisible};
use crate::time::text;

/// The key of a slot. Event generations and flow runs join as further variants; each gets a
/// text form of its own, told apart by its first character, that sorts within its kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKey {
    /// A moment that a schedule yields, in whole milliseconds.
    Time(Timestamp),
    /// A job id in its normal form: `20140601_testID1`. Never empty, without slashes and invisible characters.
    Job(Arc<str>),
}

/// What the text of a job's key begins with: a letter that no address has to escape, and no time begins with.
const JOB: char = '~';

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not the key of a slot: expected a time such as 2015-09-13T13:40Z, or a job id after a ~")]
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
            SlotKey::Job(_) => None,
        }
    }

    /// The job id of a job's key.
    #[must_use]
    pub fn job(&self) -> Option<&Arc<str>> {
        match self {
            SlotKey::Time(_) => None,
            SlotKey::Job(id) => Some(id),
        }
    }

    /// Where the slot sorts among all others: the time of a time key. Jobs have none, and come before all of them.
    #[must_use]
    pub fn scheduled_at(&self) -> Timestamp {
        match self {
            SlotKey::Time(at) => *at,
            SlotKey::Job(_) => Timestamp::UNIX_EPOCH,
        }
    }

    /// The key that lies `seconds` later, or none where time ends or the key is not a time.
    #[must_use]
    pub fn offset(&self, seconds: i64) -> Option<SlotKey> {
        match self {
            SlotKey::Time(at) => at.checked_add(SignedDuration::from_secs(seconds)).ok().map(SlotKey::Time),
            SlotKey::Job(_) => None,
        }
    }

    /// The form that people read: `2015-09-13T13:40Z`, or the job id.
    #[must_use]
    pub fn short(&self) -> String {
        match self {
            SlotKey::Time(at) => text::format_short(*at),
            SlotKey::Job(id) => id.to_string(),
        }
    }

    /// Reads the text that [`fmt::Display`] writes, and the shorter forms that people type.
    ///
    /// # Errors
    /// When the text is neither a time nor a job id.
    pub fn parse(text: &str) -> Result<SlotKey, KeyError> {
        let no_key = || KeyError { text: text.to_owned() };
        match text.strip_prefix(JOB) {
            Some(id) if id.is_empty() || id.contains('/') || id.contains(is_invisible) => Err(no_key()),
            Some(id) => Ok(SlotKey::Job(id.into())),
            None => text::parse_instant(text).map(SlotKey::Time).map_err(|_| no_key()),
        }
    }
}

/// Writes the canonical text: `2015-09-13T13:40:00.000Z`, fixed in width, or `~20140601_testID1`.
impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotKey::Time(at) => f.write_str(&text::format_full(*at)),
            SlotKey::Job(id) => write!(f, "{JOB}{id}"),
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

    /// Names a job: the slot of a workflow with a job id, in its normal form.
    #[must_use]
    pub fn job(workflow: WorkflowId, id: Arc<str>) -> Self {
        Self::new(workflow, SlotKey::Job(id))
    }

    /// The short form that people read: `wordcount@2015-09-13T13:40Z`, `modelBuild@1_purchaseRevenue`.
    #[must_use]
    pub fn short(&self) -> String {
        format!("{}@{}", self.workflow, self.key.short())
    }
}

/// What begins the text of a job's key in that of its slot.
const OF_JOB: &str = "@~";

/// Writes the canonical text: `wordcount@2015-09-13T13:40:00.000Z`, `modelBuild@~1_purchaseRevenue`. Where the id of a workflow
/// has an `@` before a `~` or a `%`, a `%` is put between them, so that different slots have different texts.
impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflow = self.workflow.as_str();
        if workflow.contains(OF_JOB) || workflow.contains("@%") {
            return write!(f, "{}@{}", workflow.replace("@%", "@%%").replace(OF_JOB, "@%~"), self.key);
        }
        write!(f, "{workflow}@{}", self.key)
    }
}

/// Why a text names no slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" names no slot: expected a form such as wordcount@2015-09-13T13:40Z or modelBuild@~1_purchaseRevenue"
)]
pub struct SlotRefError {
    /// The text as given.
    pub text: String,
}

impl std::str::FromStr for SlotRef {
    type Err = SlotRefError;

    fn from_str(text: &str) -> Result<SlotRef, SlotRefError> {
        // A time has no @, and no written workflow one before a ~.
        let at = text.find(OF_JOB).or_else(|| text.rfind('@'));
        let parts = at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
        let none = || SlotRefError { text: text.to_owned() };
        let (workflow, key) = parts.ok_or_else(none)?;
        let workflow = workflow.replace("@%~", OF_JOB).replace("@%%", "@%");
        let workflow = WorkflowId::new(&workflow).map_err(|_| none())?;
        Ok(SlotRef { workflow, key: SlotKey::parse(key).map_err(|_| none())? })
    }
}
