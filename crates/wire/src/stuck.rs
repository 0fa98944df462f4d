//! What is stuck.

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// A slot that does not get on, for all of its workflow that are stuck in the same way: it is the oldest of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StuckDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `expiring` (its time to wait is nearly over), `late`, `backoff` (it is to be tried again), `long` (its run goes on
    /// for long), `failed` (and nothing later has succeeded), `paused` (it is due and its workflow is paused) or `frozen` (it
    /// is due and its workflow is frozen).
    pub kind: Code,
    /// Where it stands; none where it was not planned.
    pub state: Option<Code>,
    /// Since when: since it was due, its run began, or it failed.
    pub since: Instant,
    /// Seconds from due to success, or of a run, that are usual; none where too little is known.
    pub usual_seconds: Option<i64>,
    /// Seconds beyond what is taken for late; 0 where it is not.
    pub beyond_seconds: i64,
    /// Why, in one sentence.
    pub reason: String,
    /// When it is looked at next by itself, tried again, or expires.
    pub next: Option<Instant>,
    /// Later slots of the workflow that are stuck in the same way.
    pub others: usize,
}

/// Everything that is stuck, the worst first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StuckListDto {
    /// Furthest beyond what is usual first; what is paused comes last.
    pub items: Vec<StuckDto>,
    /// How many are left out.
    pub more: usize,
    /// Whether there are more live slots than were looked at; the newest were not.
    pub partial: bool,
}
