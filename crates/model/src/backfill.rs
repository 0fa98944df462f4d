//! Backfills: named requests over past slots of a workflow.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{BackfillId, WorkflowId};
use crate::ranges::Range;

/// The existing slots that a backfill reopens; slots that don't exist are always planned.
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
    /// The workflow of the slots.
    pub workflow: WorkflowId,
    /// The range of the slots' times.
    pub range: Range,
    /// The mode, which says which states it reopens.
    pub mode: BackfillMode,
    /// The priority; a larger one starts first.
    pub priority: i32,
    /// The actor who asked for it.
    pub by: Actor,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// How many slots it asked for.
    pub slots: u32,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The pause; none while it is not paused.
    pub paused: Option<Pause>,
    /// When it was last resumed.
    pub resumed_at: Option<Timestamp>,
}

/// That a backfill is left alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// The actor who asked for it.
    pub by: Actor,
}
