//! Stuck slots.

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// A stuck slot, the oldest of those of its workflow that are stuck in the same way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StuckDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// `expiring` (its time to wait is nearly over), `late`, `backoff` (it is to be tried again), `long` (its run goes on
    /// for long), `failed` (and not repaired since), `paused` (it is due and its workflow is paused) or `frozen` (it
    /// is due and its workflow is frozen).
    pub kind: Code,
    /// Its state; none if it was not planned.
    pub state: Option<Code>,
    /// When it was due, its run began, or it failed.
    pub since: Instant,
    /// The usual seconds from due to success, or of a run; none if too little is known.
    pub usual_seconds: Option<i64>,
    /// Seconds by which it is late; 0 if it is not.
    pub beyond_seconds: i64,
    /// The cause in one sentence.
    pub reason: String,
    /// When it is evaluated next without an event, retried, or expires.
    pub next: Option<Instant>,
    /// The number of later slots of the workflow that are stuck in the same way.
    pub others: usize,
    /// The number of slots that wait for these, or expired while they did; only of kind `failed`.
    #[serde(default)]
    pub followers: usize,
}

/// All stuck slots, the worst first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StuckListDto {
    /// The slots, the latest first, paused ones last.
    pub items: Vec<StuckDto>,
    /// The number of slots that are left out.
    pub more: usize,
    /// Whether there are more live slots or failures than were examined.
    pub partial: bool,
}
