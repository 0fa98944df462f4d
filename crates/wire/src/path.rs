//! Critical paths: the chain of slots and waits that determined when a slot ended.

use serde::{Deserialize, Serialize};

use crate::{Code, Instant, SlotNameDto};

/// The chain of slots and waits that determined when a slot ended, or that keeps it from ending.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CriticalPathDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// The start of the path: when its first slot was planned or reopened.
    pub from: Instant,
    /// When the slot ended; the present if it has not.
    pub until: Instant,
    /// Whether the slot has ended.
    pub is_over: bool,
    /// The duration of the path.
    pub millis: i64,
    /// The slots of the path in order of time; the last one is the slot itself.
    pub links: Vec<LinkDto>,
    /// The reason that the path is not followed further back, if it does not begin there.
    pub cut: Option<String>,
}

/// A slot of the path, and its share of the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LinkDto {
    /// The slot.
    #[serde(flatten)]
    pub slot: SlotNameDto,
    /// Its state at the end of its share; none if it did not exist.
    pub state: Option<Code>,
    /// The start of its share.
    pub from: Instant,
    /// The end.
    pub until: Instant,
    /// The duration.
    pub millis: i64,
    /// Its share of the path, from 0 to 1.
    pub percent: f64,
    /// Its share in one sentence.
    pub sentence: String,
    /// The event that opened it, in words, if the path begins here.
    pub opened: Option<String>,
    /// Its wait for the previous slot of the path.
    pub waited: Option<WaitedDto>,
    /// The phases of its share in order of time, without gaps.
    pub steps: Vec<PathStepDto>,
    /// Other obstacles that block it, in words.
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
    /// The start.
    pub from: Instant,
    /// The end.
    pub until: Instant,
}

/// A phase of a slot on a path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PathStepDto {
    /// `waited`, `queued`, `starting`, `ran`, `backed-off`, or `stuck` (it had ended without success).
    pub kind: Code,
    /// The start.
    pub from: Instant,
    /// The end.
    pub until: Instant,
    /// The duration.
    pub millis: i64,
    /// The number of the run, if the phase is about one.
    pub run: Option<u32>,
    /// The obstacle that it waited for, or the outcome of the run; may be empty.
    pub text: String,
}
