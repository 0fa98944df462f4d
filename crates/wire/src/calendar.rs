//! How much of each day is done.

use serde::{Deserialize, Serialize};

use crate::Instant;

/// How much of each day is done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CalendarDto {
    /// The zone of the days.
    pub zone: String,
    /// The number of workflows that are counted.
    pub workflows: usize,
    /// The days up to today, ascending.
    pub days: Vec<CalendarDayDto>,
    /// Whether earlier days are left out, because all would be too many.
    pub partial: bool,
}

/// The slots of a day, by what became of them: those whose time is in it. That of a period is its start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CalendarDayDto {
    /// The date: `2026-03-29`.
    pub date: String,
    /// The first moment of the day.
    pub from: Instant,
    /// The first moment of the next.
    pub to: Instant,
    /// How many slots it has, with those that are still to be planned.
    pub total: u64,
    /// How many of a hundred succeeded, rounded down; none if there are none. It is 100 only if all did, and 0 only if none did.
    pub percent: Option<u64>,
    /// Those that succeeded.
    pub done: u64,
    /// Those that failed or expired.
    pub failed: u64,
    /// Those whose run is under way.
    pub running: u64,
    /// Those whose run failed and will be retried.
    pub stuck: u64,
    /// Those that wait, or are still to be planned.
    pub to_do: u64,
    /// Those that were killed or skipped.
    pub ended: u64,
    /// Those that are done and out of range, which count as done, too: of workflows that start later, end earlier or were removed. Others that
    /// are out of range are left out.
    #[serde(default)]
    pub out_of_range: u64,
}
