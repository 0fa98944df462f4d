//! Backfills: named requests over past slots of a workflow.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{BackfillId, WorkflowId};
use crate::ranges::Range;

/// Which existing slots a backfill opens again; slots that don't exist are always planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackfillMode {
    /// None: only what is missing is planned.
    #[default]
    Missing,
    /// Those that ended without success.
    Unsuccessful,
    /// All that are final.
    All,
}

/// A named request over past slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backfill {
    /// Its name.
    pub id: BackfillId,
    /// Whose slots.
    pub workflow: WorkflowId,
    /// Which of them.
    pub range: Range,
    /// Which states it reopens.
    pub mode: BackfillMode,
    /// Larger goes first.
    pub priority: i32,
    /// Who asked.
    pub by: Actor,
    /// When.
    pub created_at: Timestamp,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// How many slots it asked for.
    pub slots: u32,
    /// Why, in the words of who asked.
    pub reason: Option<String>,
    /// Since when it is paused, and by whom; none while it goes on.
    pub paused: Option<Pause>,
    /// When it was last resumed.
    pub resumed_at: Option<Timestamp>,
}

/// That a backfill is left alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// Who asked.
    pub by: Actor,
}
