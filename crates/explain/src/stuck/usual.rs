//! The usual times of a workflow: from the due time of its slots to their success, and of its runs.

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Origin;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, Run, RunState, SlotEvent, SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, RunFilter, SlotFilter, SlotRow, StoreError};

use super::FLOOR;

/// The number of a workflow's slots, or runs, that are sampled.
const SAMPLES: usize = 20;
/// With fewer of them nothing is known.
const LEAST: usize = 3;
/// The latest planning after a slot's time for a sample: slots that were planned later had to catch up.
const ON_TIME: SignedDuration = SignedDuration::from_mins(10);

/// The moment from which a slot counts as late: its time, or when a person or a backfill asked for it after that.
pub(super) fn due(reader: &dyn Queries, workflow: &WorkflowRow, row: &SlotRow) -> Result<Timestamp, StoreError> {
    let Some(time) = workflow.definition.keys.due(&row.id.key) else {
        return Ok(opened(&reader.history(&row.id)?).unwrap_or(row.slot.since));
    };
    if row.slot.since.duration_since(time) <= ON_TIME {
        return Ok(time);
    }
    Ok(asked(&reader.history(&row.id)?).map_or(time, |asked| asked.max(time)))
}

/// When a job was opened last.
fn opened(history: &[EventRecord]) -> Option<Timestamp> {
    let opens = |record: &&EventRecord| {
        matches!(record.event, Event::Slot { what: SlotEvent::Reopened { .. } | SlotEvent::Planned { .. }, .. })
    };
    history.iter().rev().find(opens).map(|record| record.at)
}

/// When a slot was last asked for by anybody but its schedule.
fn asked(history: &[EventRecord]) -> Option<Timestamp> {
    history.iter().rev().find_map(|record| {
        let Event::Slot { what, .. } = &record.event else { return None };
        match what {
            SlotEvent::Reopened { .. } => Some(record.at),
            SlotEvent::Planned { origin: Origin::Request | Origin::Backfill, .. } => Some(record.at),
            _ => None,
        }
    })
}

/// The p90 of the times from due to success of the latest slots; none if too few were planned in time, because catching
/// up takes longer than usual.
pub(super) fn lateness(reader: &dyn Queries, workflow: &WorkflowRow) -> Result<Option<SignedDuration>, StoreError> {
    let states = vec![SlotState::Succeeded];
    let filter = SlotFilter { workflow: Some(workflow.id.clone()), states, ..SlotFilter::default() };
    let mut samples = Vec::new();
    for row in reader.slots(&filter, PageRequest::newest(SAMPLES))?.rows {
        let Some(time) = workflow.definition.keys.due(&row.id.key) else {
            samples.extend(opened(&reader.history(&row.id)?).map(|opened| row.slot.since.duration_since(opened)));
            continue;
        };
        let late = row.slot.since.duration_since(time);
        if late <= FLOOR || was_planned_on_time(reader, &row.id, time)? {
            samples.push(late);
        }
    }
    Ok(share(samples, 9))
}

fn was_planned_on_time(reader: &dyn Queries, id: &SlotRef, time: Timestamp) -> Result<bool, StoreError> {
    let history = reader.history(id)?;
    let first = history.first().map(|first| first.at.duration_since(time));
    Ok(first.is_some_and(|late| late <= ON_TIME) && asked(&history).is_none())
}

/// The durations of the latest runs of a workflow that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTimes {
    /// Half of them took no longer.
    pub median: SignedDuration,
    /// Nine of ten took no longer.
    pub high: SignedDuration,
    /// How many there were.
    pub runs: usize,
}

impl RunTimes {
    /// The same of durations, of which the last ones count; none if there are too few.
    pub(crate) fn of_latest(took: &[SignedDuration]) -> Option<RunTimes> {
        let latest = took.get(took.len().saturating_sub(SAMPLES)..)?;
        let [median, high] = [5, 9].map(|tenths| share(latest.to_vec(), tenths));
        Some(RunTimes { median: median?, high: high?, runs: latest.len() })
    }
}

/// The durations of the latest runs that succeeded; none if there are too few.
pub(crate) fn run_times(reader: &dyn Queries, id: &WorkflowId) -> Result<Option<RunTimes>, StoreError> {
    let took: Vec<_> = succeeded_runs(reader, id, SAMPLES)?.into_iter().map(|(_, took)| took).collect();
    Ok(RunTimes::of_latest(&took))
}

/// The median duration of the latest runs that succeeded; none if there are too few.
pub(super) fn run_time(reader: &dyn Queries, id: &WorkflowId) -> Result<Option<SignedDuration>, StoreError> {
    Ok(run_times(reader, id)?.map(|times| times.median))
}

/// The latest runs of a workflow that succeeded, the newest first, and how long each took.
pub(crate) fn succeeded_runs(
    reader: &dyn Queries,
    id: &WorkflowId,
    most: usize,
) -> Result<Vec<(SlotRef, SignedDuration)>, StoreError> {
    let states = vec![RunState::Succeeded];
    let filter = RunFilter { workflow: Some(id.clone()), states, ..RunFilter::default() };
    let runs = reader.runs(&filter, PageRequest::newest(most))?.rows;
    let took = |run: &Run| Some(run.ended_at?.duration_since(run.started_at?));
    Ok(runs.into_iter().filter_map(|run| took(&run).map(|took| (run.id.slot, took))).collect())
}

/// The value that the next one does not exceed in so many tenths of all cases. The next one is as likely to fall into any of the gaps that
/// `n` values leave, so it is no longer than the `k`-th of them in `k` of `n + 1` cases: of twenty values the 18th is too short for nine tenths.
fn share(mut samples: Vec<SignedDuration>, tenths: usize) -> Option<SignedDuration> {
    samples.sort_unstable();
    let place = ((samples.len() + 1) * tenths).div_ceil(10).min(samples.len());
    samples.get(place.checked_sub(1)?).copied().filter(|_| samples.len() >= LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_few_is_not_known() {
        let minutes = |all: &[i64]| all.iter().map(|minutes| SignedDuration::from_mins(*minutes)).collect::<Vec<_>>();
        assert_eq!(share(minutes(&[1, 2]), 9), None);
        assert_eq!(share(minutes(&[9, 1, 5]), 5), Some(SignedDuration::from_mins(5)));
        assert_eq!(share(minutes(&[9, 1, 5]), 9), Some(SignedDuration::from_mins(9)));
        let twenty: Vec<i64> = (1..=20).collect();
        assert_eq!(share(minutes(&twenty), 9), Some(SignedDuration::from_mins(19)));
        assert_eq!(share(minutes(&twenty), 5), Some(SignedDuration::from_mins(11)));
    }
}
