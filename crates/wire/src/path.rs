//! Critical paths.

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// What determined when a slot ended, or keeps it from ending.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CriticalPathDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// When the path begins: when the first of its slots was planned, or opened again.
    pub from: Instant,
    /// When the slot ended; the present where it has not.
    pub until: Instant,
    /// Whether the slot has ended.
    pub is_over: bool,
    /// How long the path is.
    pub millis: i64,
    /// The slots on it, the furthest back first; the last one is the slot itself.
    pub links: Vec<LinkDto>,
    /// Why it is not followed further back, where that is not because it begins there.
    pub cut: Option<String>,
}

/// A slot on a path, and its share of the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LinkDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state when the path leaves it; none where it did not exist.
    pub state: Option<Code>,
    /// From when on the path is at this slot.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// How long.
    pub millis: i64,
    /// Its share of the path.
    pub percent: f64,
    /// What it did, in one sentence.
    pub sentence: String,
    /// How it came to be open, where the path begins here.
    pub opened: Option<String>,
    /// Its wait for the slot before it on the path.
    pub waited: Option<WaitedDto>,
    /// What it did in its share of the time, oldest first, without gaps.
    pub steps: Vec<PathStepDto>,
    /// What stands in its way besides, in words.
    pub besides: Vec<String>,
}

/// A wait for another slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitedDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Since when.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
}

/// A stretch of time on a path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PathStepDto {
    /// `waited`, `queued`, `starting`, `ran`, `backed-off`, or `stuck` (it had ended without success).
    pub kind: Code,
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub until: Instant,
    /// How long.
    pub millis: i64,
    /// The number of the run that it is about.
    pub run: Option<u32>,
    /// What was waited for, or how it ended; may be empty.
    pub text: String,
}
