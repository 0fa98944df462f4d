//! Slots over time: how much of each day is done, and what lies between two moments.
//!
//! A slot belongs to the day in which its time is: that of a period, to the day in which the period begins. Times that are
//! still to be planned count as to do. The cost follows the days and workflows that are shown, as counting in the store does.

mod calendar;
mod days;
mod focus;

use jiff::Timestamp;
use kelos_model::WorkflowId;
use kelos_model::ranges::Range;
use kelos_model::time::CronSchedule;
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};

pub use calendar::{CalendarQuery, CompletionCalendar, DayCompletion, MOST_CELLS, MOST_DAYS, read as calendar};
pub use days::Days;
pub use focus::{
    BlockedSlot, Focus, FocusBox, FocusQuery, FocusRow, MOST_HOURS as MOST_FOCUS_HOURS, MOST_ROWS, read as focus,
};

use crate::schedule;

/// A choice of workflows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this one, even if it is no longer defined.
    pub workflow: Option<WorkflowId>,
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those with this tag.
    pub tag: Option<String>,
}

/// A workflow with slots by time.
#[derive(Debug, Clone)]
struct ScheduledWorkflow {
    row: WorkflowRow,
    /// None where it is not known: of a dependent schedule that leads nowhere.
    schedule: Option<CronSchedule>,
}

impl Selection {
    fn accepts(&self, row: &WorkflowRow) -> bool {
        let definition = &row.definition;
        (row.present || self.workflow.is_some())
            && definition.keys.schedule().is_some()
            && self.project.as_ref().is_none_or(|project| definition.project == *project)
            && self.tag.as_ref().is_none_or(|tag| definition.about.tags.contains(tag))
    }

    /// The chosen workflows that have a schedule, by id.
    fn read(&self, reader: &dyn Queries) -> Result<Vec<ScheduledWorkflow>, StoreError> {
        let rows = reader.workflows(self.workflow.as_ref())?;
        let with_schedule = |row: WorkflowRow| {
            let schedule = schedule::resolved(reader, &row)?.ok();
            Ok(ScheduledWorkflow { row, schedule })
        };
        rows.into_iter().filter(|row| self.accepts(row)).map(with_schedule).collect()
    }
}

impl ScheduledWorkflow {
    /// The times that have no slot yet and will have one: those of its schedule within its bounds that come after what is planned.
    fn to_come(&self, now: Timestamp) -> Option<(&CronSchedule, Range)> {
        let (row, schedule) = (&self.row, self.schedule.as_ref().filter(|_| self.row.present)?);
        let planned = row.planned.ranges.end().or(row.planned.since).unwrap_or(now);
        let bounds = row.definition.bounds(schedule);
        let range = Range::new(planned.max(bounds.start), bounds.end);
        (!range.is_empty()).then_some((schedule, range))
    }
}
