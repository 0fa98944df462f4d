//! The states of a slot.

use serde::{Deserialize, Serialize};

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotState {
    /// Its trigger is not met.
    Waiting,
    /// Its trigger is met, its constraints are not.
    Held,
    /// It may run and waits for a permit.
    Queued,
    /// The intent to run it is stored; the start is not confirmed.
    Dispatched,
    /// Its run is live.
    Running,
    /// Its run failed and the retry is not yet due.
    Backoff,
    /// Its run succeeded, or a person said so.
    Succeeded,
    /// Its last run failed and no retry is left.
    Failed,
    /// It waited longer than its workflow allows.
    Expired,
    /// It will never start: a trigger, a constraint or a person decided so.
    Skipped,
    /// A person ended it.
    Killed,
}

impl SlotState {
    /// Every state, in the order of a slot's life.
    pub const ALL: [SlotState; 11] = [
        SlotState::Waiting,
        SlotState::Held,
        SlotState::Queued,
        SlotState::Dispatched,
        SlotState::Running,
        SlotState::Backoff,
        SlotState::Succeeded,
        SlotState::Failed,
        SlotState::Expired,
        SlotState::Skipped,
        SlotState::Killed,
    ];

    /// Whether nothing more happens to it by itself.
    #[must_use]
    pub fn is_final(self) -> bool {
        self >= SlotState::Succeeded
    }

    /// Whether it is live and has no run: what a pause of its backfill leaves alone, and a cancellation ends.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, SlotState::Waiting | SlotState::Held | SlotState::Queued | SlotState::Backoff)
    }

    /// Whether a slot can be taken over from elsewhere in this state: the others hold promises that only the
    /// scheduler that made them can keep.
    #[must_use]
    pub fn is_importable(self) -> bool {
        self.is_final() || matches!(self, SlotState::Waiting | SlotState::Running)
    }

    /// The name in columns and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SlotState::Waiting => "waiting",
            SlotState::Held => "held",
            SlotState::Queued => "queued",
            SlotState::Dispatched => "dispatched",
            SlotState::Running => "running",
            SlotState::Backoff => "backoff",
            SlotState::Succeeded => "succeeded",
            SlotState::Failed => "failed",
            SlotState::Expired => "expired",
            SlotState::Skipped => "skipped",
            SlotState::Killed => "killed",
        }
    }

    /// Reads [`SlotState::as_str`] back.
    #[must_use]
    pub fn parse(name: &str) -> Option<SlotState> {
        SlotState::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl std::fmt::Display for SlotState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
