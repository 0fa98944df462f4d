//! The durations of the latest runs of a workflow.

use jiff::SignedDuration;
use kelos_model::{Run, RunState, SlotRef, WorkflowId};
use kelos_store::{PageRequest, Queries, RunFilter, StoreError};

/// The number of a workflow's runs, or slots, that are sampled.
pub(crate) const SAMPLES: usize = 20;
/// With fewer of them nothing is known.
const LEAST: usize = 3;

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
pub(crate) fn run_time(reader: &dyn Queries, id: &WorkflowId) -> Result<Option<SignedDuration>, StoreError> {
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
pub(crate) fn share(mut samples: Vec<SignedDuration>, tenths: usize) -> Option<SignedDuration> {
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
