//! Schedules: when the slots of a workflow are.

use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
pub use super::cron_schedule::{CronSchedule, Fold, Gap};
use super::zone::Zone;
use crate::id::WorkflowId;

/// When the slots of a workflow are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// At the times of a cron expression in a time zone.
    Cron(CronSchedule),
    /// At the times of another workflow; see [`resolve`](super::resolve).
    Dependent(WorkflowId),
    /// At the start of each period of a calendar: the slot is about the period, and due at its end.
    Calendar(Calendar),
}

impl Schedule {
    /// The time zone of its times; none where they are those of another workflow.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        match self {
            Schedule::Cron(cron) => Some(cron.zone()),
            Schedule::Calendar(calendar) => Some(calendar.zone()),
            Schedule::Dependent(_) => None,
        }
    }
}
