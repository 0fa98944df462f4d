//! The row that the scheduler stores of a workflow, beside its definition and its slots.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Workflow;
use crate::backlog::Backlog;
use crate::breach::Freeze;
use crate::id::{PoolId, WorkflowId};
use crate::ranges::RangeSet;
use crate::time::CronSchedule;

/// The row of a workflow: all that is stored of it beside its slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRow {
    /// Its name.
    pub id: WorkflowId,
    /// Its latest definition.
    pub definition: Arc<Workflow>,
    /// The version of the definition, counted from 1.
    pub version: u32,
    /// Whether it is defined now; false once its definition went away.
    pub present: bool,
    /// Whether it is in force at all: an event schedule is disabled until a person enables it, all else is always enabled.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Whether a person paused it. An event schedule never is: it is disabled.
    pub paused: bool,
    /// The state of its planning.
    pub planned: PlanState,
    /// Moments of its past that matter to what comes.
    #[serde(default)]
    pub moments: Moments,
}

fn enabled() -> bool {
    true
}

impl WorkflowRow {
    /// The moment before which its schedule opens no slots.
    #[must_use]
    pub fn opens_from(&self) -> Timestamp {
        self.definition.opens_from(&self.planned)
    }

    /// Since when and why it is left alone, where an invariant of it broke.
    #[must_use]
    pub fn frozen(&self) -> Option<&Freeze> {
        self.moments.frozen.as_ref()
    }
}

/// Moments of a workflow's past that matter to what comes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Moments {
    /// When an event schedule was last created, changed, enabled or disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<Timestamp>,
    /// The cron times of its trigger up to here, inclusive, are done with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired_until: Option<Timestamp>,
    /// The last time of each cron expression of an event schedule that counted, by [`crate::time::Firing::name`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fired: BTreeMap<Arc<str>, Timestamp>,
    /// Its successful run that was dispatched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Since when and why it is frozen: an invariant of it broke, and it has not been resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Freeze>,
    /// When it was last resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Timestamp>,
    /// No slot that is named by a moment beside the times of its schedule lies at or after this one; none where none was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_until: Option<Timestamp>,
    /// When one of its slots first gave outputs; none where none ever did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave: Option<Timestamp>,
    /// When the bucket of each rate is full again after what its runs took last, to the nanosecond. Of several workflows the latest counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<PoolId, Timestamp>,
}

/// A successful run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LastRun {
    /// Log position of its dispatch.
    pub seq: u64,
    /// When it was started.
    pub started: Timestamp,
}

/// The state of a workflow's planning: which times have been planned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanState {
    /// The parts of its schedule whose slots all exist, or are its backlog.
    pub ranges: RangeSet,
    /// The resolved schedule that `ranges` holds for, in words; another one asks for planning anew.
    pub schedule: String,
    /// When its schedule was first seen, or up to where misfires were passed over, if not all of them are caught up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// No slot at or after this moment has ever been planned; none when no slot has.
    pub until: Option<Timestamp>,
    /// The times within `ranges` that have no slots yet.
    #[serde(default, skip_serializing_if = "Backlog::is_empty")]
    pub backlog: Backlog,
    /// The schedule that says which times lie in the backlog, in words, where it is an earlier one than `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_schedule: Option<String>,
}

impl PlanState {
    /// The schedule that says which times lie in the backlog; none where there is no backlog.
    #[must_use]
    pub fn schedule_of_backlog(&self) -> Option<CronSchedule> {
        let words = self.backlog_schedule.as_ref().unwrap_or(&self.schedule);
        // The scheduler wrote it there, from a schedule.
        serde_json::from_str(words).ok().filter(|_| !self.backlog.is_empty())
    }

    /// How many times have no slots yet.
    #[must_use]
    pub fn in_backlog(&self) -> u64 {
        self.schedule_of_backlog().map_or(0, |schedule| self.backlog.count(&schedule))
    }
}
