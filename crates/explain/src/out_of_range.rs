//! Slots that their workflow, as it is defined now, would not plan: its start was moved, its calendar changed, or it was removed.
//! What they did stays, and says so wherever it is shown.

use std::fmt;

use jiff::Timestamp;
use kelos_model::dormant::Dormant;
use kelos_model::time::{CronSchedule, ScheduleProblem, text};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotKey, Workflow};

/// The reason for which a workflow would not plan a slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutOfRange {
    /// The workflow is no longer defined.
    Removed,
    /// The workflow has no slots, for this reason.
    NoSlots(String),
    /// The schedule has no such time.
    NotInSchedule,
    /// The workflow starts later.
    Before(Timestamp),
    /// The workflow ends earlier.
    Beyond(Timestamp),
}

impl OutOfRange {
    /// The reason for which a slot that exists would not be planned again; none if it would be.
    #[must_use]
    pub fn of(
        workflow: &WorkflowRow,
        schedule: Result<&CronSchedule, &ScheduleProblem>,
        key: &SlotKey,
    ) -> Option<OutOfRange> {
        let time = key.time().filter(|_| !key.is_moment())?;
        if !workflow.present {
            return Some(OutOfRange::Removed);
        }
        match workflow.definition.keys.are_moments() {
            true => None,
            false => OutOfRange::of_time(&workflow.definition, schedule, time),
        }
    }

    /// The reason for which a workflow, as it is defined now, has no slot at a time.
    pub(crate) fn of_time(
        workflow: &Workflow,
        schedule: Result<&CronSchedule, &ScheduleProblem>,
        time: Timestamp,
    ) -> Option<OutOfRange> {
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(problem) => return Some(OutOfRange::NoSlots(problem.to_string())),
        };
        if !schedule.contains(time) {
            return Some(OutOfRange::NotInSchedule);
        }
        match workflow.out_of_bounds(&SlotKey::Time(time), None)? {
            Dormant::NotBegun { start } => Some(OutOfRange::Before(start)),
            Dormant::Over { end } => Some(OutOfRange::Beyond(end)),
            _ => None,
        }
    }
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutOfRange::Removed => f.write_str("its workflow is no longer defined"),
            OutOfRange::NoSlots(problem) => write!(f, "its workflow has no slots: {problem}"),
            OutOfRange::NotInSchedule => f.write_str("its workflow's schedule has no such time"),
            OutOfRange::Before(start) => write!(f, "its workflow starts later, at {}", text::format_short(*start)),
            OutOfRange::Beyond(end) => write!(f, "its workflow ends earlier, at {}", text::format_short(*end)),
        }
    }
}
