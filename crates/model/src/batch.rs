//! The rule by which adjacent slots of a schedule are put together for one run.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// The rule by which a workflow puts adjacent slots together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchRule {
    /// The most slots of a run.
    pub size: u32,
    /// For how many milliseconds a queued slot waits for others where fewer are ready.
    #[serde(default)]
    pub delay_millis: u64,
}

impl BatchRule {
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
        let fits = (2..=BatchRule::LARGEST).contains(&self.size);
        (!fits).then(|| format!("expected a size from 2 to {}, not {}", BatchRule::LARGEST, self.size))
    }
}
