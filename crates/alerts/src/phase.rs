//! The life of an incident, as its notices tell it.

use serde::{Deserialize, Serialize};

/// The place of a notice in the life of its incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The first one.
    Opened,
    /// More of the same cause happened since the last one.
    Again,
    /// It still lasts.
    Still,
    /// It is over.
    Over,
    /// Somebody tries a channel.
    Test,
}

impl Phase {
    /// Its name in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Opened => "opened",
            Phase::Again => "again",
            Phase::Still => "still",
            Phase::Over => "over",
            Phase::Test => "test",
        }
    }

    /// Whether a later notice of the same incident makes it needless.
    #[must_use]
    pub const fn is_superseded(self) -> bool {
        matches!(self, Phase::Again | Phase::Still)
    }
}
