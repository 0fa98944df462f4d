//! How much of each day is done.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use kelos_model::ranges::Range;
use kelos_model::time::Zone;
use kelos_model::{SlotState, WorkflowId};
use kelos_store::{Columns, Queries, StoreError, Tally};

use super::days::columns_of;
use super::{Days, ScheduledWorkflow, Selection};
use crate::out_of_range::OutOfRange;

/// The most days of a calendar: ten years.
pub const MOST_DAYS: usize = 3_660;
/// The most days of all workflows together: those of 1,000 workflows for a year and a month.
pub const MOST_CELLS: usize = 400_000;
/// As many workflows are counted one by one; if there are more, all of the store are counted together.
const ONE_BY_ONE: usize = 20;

/// The days to count, and of which workflows.
#[derive(Debug, Clone)]
pub struct CalendarQuery {
    /// The workflows.
    pub of: Selection,
    /// The zone of the days.
    pub zone: Zone,
    /// The first day.
    pub first: Date,
    /// The last day; days after today are left out.
    pub last: Date,
}

/// How many of the slots of a day are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayCompletion {
    /// The day.
    pub date: Date,
    /// The moments of the day.
    pub range: Range,
    /// Those that succeeded.
    pub done: u64,
    /// Those that failed or expired.
    pub failed: u64,
    /// Those with a run that is under way.
    pub running: u64,
    /// Those whose run failed and will be retried.
    pub stuck: u64,
    /// Those that wait, and times that are not planned yet.
    pub to_do: u64,
    /// Those that were killed or skipped.
    pub ended: u64,
    /// Those that are done and out of range, of workflows that start later, end earlier or were removed: they count as done, too. Others
    /// that are out of range are left out.
    pub out_of_range: u64,
}

/// The days of a calendar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionCalendar {
    /// The workflows that are counted.
    pub workflows: Vec<WorkflowId>,
    /// The days up to today, ascending.
    pub days: Vec<DayCompletion>,
    /// Whether these are only the latest days, because all would be too many.
    pub is_partial: bool,
}

impl DayCompletion {
    fn none(date: Date, range: Range) -> DayCompletion {
        DayCompletion { date, range, done: 0, failed: 0, running: 0, stuck: 0, to_do: 0, ended: 0, out_of_range: 0 }
    }

    /// How many slots it has.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.done + self.failed + self.running + self.stuck + self.to_do + self.ended
    }

    /// How many of a hundred are done; none if there is nothing to do. It is never 100 where one is not done, and never 0 where
    /// one is.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        match (self.done, self.total()) {
            (_, 0) => None,
            (0, _) => Some(0),
            (done, total) => Some((done * 100 / total).max(1)),
        }
    }

    /// Counts slots that are out of range: what is done stays, and nothing comes of the rest.
    fn add_out_of_range(&mut self, state: SlotState, count: u64) {
        if state == SlotState::Succeeded {
            self.done += count;
            self.out_of_range += count;
        }
    }

    fn add(&mut self, state: SlotState, count: u64) {
        let part = match state {
            SlotState::Succeeded => &mut self.done,
            SlotState::Failed | SlotState::Expired => &mut self.failed,
            SlotState::Dispatched | SlotState::Running => &mut self.running,
            SlotState::Backoff => &mut self.stuck,
            SlotState::Waiting | SlotState::Held | SlotState::Queued => &mut self.to_do,
            SlotState::Skipped | SlotState::Killed => &mut self.ended,
        };
        *part += count;
    }
}

/// Counts the slots of each day.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, query: &CalendarQuery, now: Timestamp) -> Result<CompletionCalendar, StoreError> {
    let last = query.last.min(Days::date(&query.zone, now));
    let days = Days::of(&query.zone, query.first, last);
    let workflows = query.of.read(reader, days.hull())?;
    let most = (MOST_CELLS / workflows.len().max(1)).clamp(1, MOST_DAYS);
    let left_out = days.count().saturating_sub(most);
    let days = days.without_first(left_out);
    let mut counted: Vec<DayCompletion> = days.each().map(|(date, range)| DayCompletion::none(date, range)).collect();
    for (place, columns) in columns_of(&days.ranges()) {
        let counts = |workflow: &ScheduledWorkflow, tallies: &[Tally]| {
            for tally in tallies {
                let Some(day) = counted.get_mut(place + tally.column as usize) else { continue };
                match workflow.whole_out_of_range(day.range) {
                    // A request for a workflow that was removed shows all of it.
                    Some(OutOfRange::Removed) if query.of.workflow.is_some() => {
                        day.add(tally.state, tally.count.into());
                        day.out_of_range += if tally.state == SlotState::Succeeded { tally.count.into() } else { 0 };
                    }
                    Some(_) => day.add_out_of_range(tally.state, tally.count.into()),
                    None => day.add(tally.state, tally.count.into()),
                }
            }
        };
        tallies(reader, &columns, &workflows, counts)?;
    }
    add_to_come(&mut counted, &workflows, now);
    let counted_ones = workflows.into_iter().filter(|one| one.row.present || query.of.workflow.is_some());
    let workflows = counted_ones.map(|one| one.row.id).collect();
    Ok(CompletionCalendar { workflows, days: counted, is_partial: left_out > 0 })
}

/// Hands over the tallies of each of the workflows.
fn tallies(
    reader: &dyn Queries,
    columns: &Columns,
    workflows: &[ScheduledWorkflow],
    mut counts: impl FnMut(&ScheduledWorkflow, &[Tally]),
) -> Result<(), StoreError> {
    if workflows.len() <= ONE_BY_ONE {
        for workflow in workflows {
            let tallies = reader.slot_tallies(columns, Some(&workflow.row.id))?;
            tallies.values().for_each(|tallies| counts(workflow, tallies));
        }
        return Ok(());
    }
    let wanted: BTreeMap<&WorkflowId, &ScheduledWorkflow> = workflows.iter().map(|one| (&one.row.id, one)).collect();
    let all = reader.slot_tallies(columns, None)?;
    all.iter()
        .filter_map(|(id, tallies)| Some((wanted.get(id)?, tallies)))
        .for_each(|(one, tallies)| counts(one, tallies));
    Ok(())
}

/// Counts the times that are to be planned: mostly of today, and of all days since a workflow is paused. Workflows of one schedule
/// that are planned up to the same time are counted once.
fn add_to_come(days: &mut [DayCompletion], workflows: &[ScheduledWorkflow], now: Timestamp) {
    let mut alike: BTreeMap<(String, Timestamp, Timestamp), (u64, &ScheduledWorkflow)> = BTreeMap::new();
    for workflow in workflows {
        if let Some((schedule, range)) = workflow.to_come(now) {
            let (gap, fold) = (schedule.gap(), schedule.effective_fold());
            let words = format!("{} {} {gap:?} {fold:?}", schedule.cron().as_str(), schedule.zone().name());
            alike.entry((words, range.start, range.end)).or_insert((0, workflow)).0 += 1;
        }
    }
    for (number, workflow) in alike.into_values() {
        let Some((schedule, range)) = workflow.to_come(now) else { continue };
        let first = days.partition_point(|day| day.range.end <= range.start);
        for day in days.iter_mut().skip(first) {
            let part = Range::new(day.range.start.max(range.start), day.range.end.min(range.end));
            if part.is_empty() {
                break;
            }
            day.to_do += number * schedule.count(part);
        }
    }
}
