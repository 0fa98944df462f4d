//! Batches: adjacent slots of a schedule that one run serves.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::WorkflowId;
use crate::key::{SlotKey, SlotRef};
use crate::run::RunId;

/// The way in which a workflow puts adjacent slots together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batching {
    /// The most slots of a run.
    pub size: u32,
    /// For how many milliseconds a queued slot waits for others where fewer are ready.
    #[serde(default)]
    pub delay_millis: u64,
}

impl Batching {
    /// The most slots that a run may serve: all of them change in one turn.
    pub const LARGEST: u32 = 1000;

    /// How long a queued slot waits for others.
    #[must_use]
    pub fn delay(&self) -> SignedDuration {
        SignedDuration::from_millis(i64::try_from(self.delay_millis).unwrap_or(i64::MAX))
    }

    /// The mistake in it, in words; none if there is none.
    #[must_use]
    pub fn mistake(&self) -> Option<String> {
        let fits = (2..=Batching::LARGEST).contains(&self.size);
        (!fits).then(|| format!("expected a size from 2 to {}, not {}", Batching::LARGEST, self.size))
    }
}

/// Adjacent slots of a workflow that one run serves: that of the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// The time of the first slot.
    pub first: Timestamp,
    /// The number of the run of the first slot, which does the work.
    pub run: u32,
    /// The time of the last slot.
    pub last: Timestamp,
    /// How many slots there are.
    pub slots: u32,
}

impl Batch {
    /// The run that does the work.
    #[must_use]
    pub fn leader(&self, workflow: &WorkflowId) -> RunId {
        RunId { slot: SlotRef::at(workflow.clone(), self.first), number: self.run }
    }

    /// Whether a slot of it leaves the work to the run of the first.
    #[must_use]
    pub fn is_follower(&self, key: &SlotKey) -> bool {
        key.time() != Some(self.first)
    }
}

/// Writes the times of the first and the last slot.
impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.first, self.last)
    }
}
