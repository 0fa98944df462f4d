//! Slots over time: how much of each day is done, and what lies between two moments.
//!
//! A slot belongs to the day in which its time is: that of a period, to the day in which the period begins. Times that are
//! still to be planned count as to do. The cost follows the days and workflows that are shown, as counting in the store does.

mod calendar;
mod days;
mod focus;

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::time::{CronSchedule, ScheduleProblem};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotKey, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};

pub use calendar::{CalendarQuery, CompletionCalendar, DayCompletion, MOST_CELLS, MOST_DAYS, read as calendar};
pub use days::Days;
pub use focus::{
    BlockedSlot, Focus, FocusBox, FocusQuery, FocusRow, MOST_HOURS as MOST_FOCUS_HOURS, MOST_ROWS, read as focus,
};

use crate::out_of_range::OutOfRange;
use crate::schedule;

/// As many removed workflows are asked whether they have slots in a range.
const MOST_REMOVED: usize = 200;

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
    /// A dependent schedule that leads nowhere is a problem.
    schedule: Result<CronSchedule, ScheduleProblem>,
}

impl Selection {
    fn accepts(&self, row: &WorkflowRow) -> bool {
        let definition = &row.definition;
        definition.keys.schedule().is_some()
            && self.project.as_ref().is_none_or(|project| definition.project == *project)
            && self.tag.as_ref().is_none_or(|tag| definition.about.tags.contains(tag))
    }

    /// The chosen workflows that have a schedule, by id. Those that were removed are among them if they are chosen by their id, or have slots
    /// in the range; of very many the ones that were planned last.
    fn read(&self, reader: &dyn Queries, range: Range) -> Result<Vec<ScheduledWorkflow>, StoreError> {
        let rows = reader.workflows(self.workflow.as_ref())?.into_iter().filter(|row| self.accepts(row));
        let (mut rows, mut removed): (Vec<_>, Vec<_>) = rows.partition(|row| row.present || self.workflow.is_some());
        removed.retain(|row| row.planned.until.is_some_and(|until| until > range.start));
        removed.sort_by_key(|row| std::cmp::Reverse(row.planned.until));
        for row in removed.into_iter().take(MOST_REMOVED) {
            let filter = SlotFilter { workflow: Some(row.id.clone()), range: Some(range), ..SlotFilter::default() };
            if !reader.slot_states(&filter, PageRequest::newest(1))?.rows.is_empty() {
                rows.push(row);
            }
        }
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        let with_schedule = |row: WorkflowRow| {
            let schedule = schedule::resolved(reader, &row)?;
            Ok(ScheduledWorkflow { row, schedule })
        };
        rows.into_iter().map(with_schedule).collect()
    }
}

impl ScheduledWorkflow {
    /// Its schedule, where it has one.
    fn schedule(&self) -> Option<&CronSchedule> {
        self.schedule.as_ref().ok()
    }

    /// The reason for which it would not plan a slot that exists.
    fn out_of_range(&self, key: &SlotKey) -> Option<OutOfRange> {
        OutOfRange::of(&self.row, self.schedule.as_ref(), key)
    }

    /// The reason for which it would plan none of the slots of a range; none if it would plan some.
    fn whole_out_of_range(&self, range: Range) -> Option<OutOfRange> {
        if !self.row.present {
            return Some(OutOfRange::Removed);
        }
        let schedule = match &self.schedule {
            Ok(schedule) => schedule,
            Err(problem) => return Some(OutOfRange::NoSlots(problem.to_string())),
        };
        let (definition, bounds) = (&self.row.definition, self.row.definition.bounds(schedule));
        let before = definition.start_time.filter(|_| range.end <= bounds.start).map(OutOfRange::Before);
        before.or_else(|| definition.end_time.filter(|_| range.start >= bounds.end).map(OutOfRange::Beyond))
    }

    /// The times that have no slot yet and will have one: those of its schedule within its bounds that come after what is planned.
    fn to_come(&self, now: Timestamp) -> Option<(&CronSchedule, Range)> {
        let (row, schedule) = (&self.row, self.schedule().filter(|_| self.row.present)?);
        let planned = row.planned.ranges.end().or(row.planned.since).unwrap_or(now);
        let bounds = row.definition.bounds(schedule);
        let range = Range::new(planned.max(bounds.start), bounds.end);
        (!range.is_empty()).then_some((schedule, range))
    }
}
