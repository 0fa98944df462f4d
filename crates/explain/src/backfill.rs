//! The progress of a backfill, the estimate of its end, and why slots of it failed.

mod failed;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::backfill::Backfill;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Run, RunState, SlotState};
use kelos_store::{PageRequest, Queries, RunFilter, SlotFilter, StoreError};

pub use failed::{Cause, FailedSlot, MOST_FAILED, causes, failed_slots};

/// The number of a workflow's latest runs that an estimate reads.
const RUNS_READ: usize = 200;
/// Latest of them that it is made of.
const RUNS_COUNTED: usize = 20;
/// The least number of ended slots for an estimate by pace.
const FEWEST_ENDED: usize = 4;
/// Nothing is estimated beyond this.
const FURTHEST: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// The progress of a backfill.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The backfill.
    pub backfill: Backfill,
    /// The number of its slots in each state.
    pub counts: BTreeMap<SlotState, u64>,
    /// The number of its live slots.
    pub left: u64,
    /// When it will be done.
    pub estimate: Estimate,
}

impl Progress {
    /// The number of requested slots that are not waiting or running for it any more; some may belong to a later
    /// backfill.
    #[must_use]
    pub fn ended(&self) -> u64 {
        u64::from(self.backfill.slots).saturating_sub(self.left)
    }

    /// The ended share of the requested slots, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.backfill.slots {
            0 => 1.0,
            slots => self.ended() as f64 / f64::from(slots),
        }
    }

    /// The number of its slots that failed or expired: those that [`kelos_core::Ask::RerunBackfill`] opens again.
    #[must_use]
    pub fn failures(&self) -> u64 {
        [SlotState::Failed, SlotState::Expired].iter().filter_map(|state| self.counts.get(state)).sum()
    }
}

/// When a backfill will be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Estimate {
    /// It is: none of its slots is live.
    Over,
    /// At about this moment.
    At(Timestamp, Basis),
    /// There is no estimate yet, for this reason.
    None(String),
}

/// The data that an estimate is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The pace of its latest slots, with the number of them.
    Pace(usize),
    /// The durations of its workflow's latest runs, with the number of them, and the most runs at once; none without a
    /// limit.
    Durations(usize, Option<u32>),
}

impl std::fmt::Display for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Basis::Pace(ended) => write!(f, "from the pace of its last {ended} slots"),
            Basis::Durations(runs, places) => {
                let runs = if *runs == 1 { "run".to_owned() } else { format!("{runs} runs") };
                let places = places.map_or_else(|| "all".to_owned(), |places| places.to_string());
                write!(f, "from the durations of the last {runs} of its workflow, {places} at a time")
            }
        }
    }
}

/// The inputs of an estimate.
#[derive(Debug, Clone, Default)]
pub struct Signs {
    /// The number of its live slots.
    pub left: u64,
    /// The reason for which none of them starts; none if they do.
    pub held: Option<String>,
    /// The most slots of its workflow that run at once; none without a limit.
    pub places: Option<u32>,
    /// When its latest slots ended, since it was made or resumed; in any order.
    pub endings: Vec<Timestamp>,
    /// The durations of its workflow's latest runs that succeeded.
    pub durations: Vec<SignedDuration>,
}

impl Signs {
    /// When it will be done, seen from `now`. Its own pace says most, for it has in it all that it waits for and competes
    /// with; where too few have ended, what runs usually take is taken for what they will.
    #[must_use]
    pub fn estimate(&self, now: Timestamp) -> Estimate {
        if self.left == 0 {
            return Estimate::Over;
        }
        if let Some(held) = &self.held {
            return Estimate::None(held.clone());
        }
        let found = self.by_pace(now).or_else(|| self.by_durations());
        let Some((span, basis)) = found else {
            let why = "fewer than 4 of its slots have ended, and no run of its workflow has succeeded lately";
            return Estimate::None(why.to_owned());
        };
        match now.checked_add(span) {
            Ok(at) if span <= FURTHEST => Estimate::At(at, basis),
            _ => Estimate::None("at this pace it takes more than ten years".to_owned()),
        }
    }

    fn by_pace(&self, now: Timestamp) -> Option<(SignedDuration, Basis)> {
        let first = self.endings.iter().min()?;
        // Between the first ending and now came all the others.
        let others = self.endings.len().checked_sub(1).filter(|others| others + 1 >= FEWEST_ENDED)?;
        let span = now.duration_since(*first).max(SignedDuration::from_millis(1));
        Some((times(span, self.left, others as u64), Basis::Pace(self.endings.len())))
    }

    fn by_durations(&self) -> Option<(SignedDuration, Basis)> {
        let count = self.durations.len() as u64;
        let all: SignedDuration = self.durations.iter().sum();
        let rounds = match self.places {
            None => 1,
            Some(0) => return None,
            Some(places) => self.left.div_ceil(u64::from(places)),
        };
        (count > 0).then(|| (times(all, rounds, count), Basis::Durations(self.durations.len(), self.places)))
    }
}

/// `span * by / of`, saturating.
fn times(span: SignedDuration, by: u64, of: u64) -> SignedDuration {
    let millis = span.as_millis().max(0).saturating_mul(i128::from(by)) / i128::from(of.max(1));
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// The progress of a backfill.
///
/// # Errors
/// When the store can't be read.
pub fn progress(reader: &dyn Queries, backfill: Backfill, now: Timestamp) -> Result<Progress, StoreError> {
    let counts = reader.slot_counts(&slots_of(&backfill))?;
    let left = counts.iter().filter(|(state, _)| !state.is_final()).map(|(_, slots)| slots).sum();
    let estimate = match left {
        0 => Estimate::Over,
        _ => signs(reader, &backfill, left, &counts)?.estimate(now),
    };
    Ok(Progress { backfill, counts, left, estimate })
}

/// The slots of a backfill.
#[must_use]
pub fn slots_of(backfill: &Backfill) -> SlotFilter {
    SlotFilter {
        workflow: Some(backfill.workflow.clone()),
        backfill: Some(backfill.id.clone()),
        ..SlotFilter::default()
    }
}

fn signs(
    reader: &dyn Queries,
    backfill: &Backfill,
    left: u64,
    counts: &BTreeMap<SlotState, u64>,
) -> Result<Signs, StoreError> {
    let workflow = reader.workflow(&backfill.workflow)?;
    let held = held(backfill, workflow.as_ref(), counts);
    if held.is_some() {
        return Ok(Signs { left, held, ..Signs::default() });
    }
    let states = vec![RunState::Succeeded, RunState::Failed];
    let filter = RunFilter { workflow: Some(backfill.workflow.clone()), states, ..RunFilter::default() };
    let runs = reader.runs(&filter, PageRequest::newest(RUNS_READ))?.rows;
    let took = runs.iter().filter(|run| run.state == RunState::Succeeded).filter_map(took);
    Ok(Signs {
        left,
        held,
        places: workflow.map_or(Some(0), |row| row.definition.concurrency),
        endings: endings(backfill, &runs),
        durations: took.take(RUNS_COUNTED).collect(),
    })
}

/// The reason for which none of its slots starts.
fn held(backfill: &Backfill, workflow: Option<&WorkflowRow>, counts: &BTreeMap<SlotState, u64>) -> Option<String> {
    if let Some(pause) = &backfill.paused {
        return Some(format!("it is paused by {}", pause.by));
    }
    match workflow {
        Some(row) if row.present && row.paused => Some("its workflow is paused".to_owned()),
        Some(row) if row.present && row.definition.concurrency == Some(0) => {
            Some("its workflow allows no runs".to_owned())
        }
        Some(row) if row.present => {
            let waiting = counts.keys().all(|state| *state == SlotState::Waiting || state.is_final());
            waiting.then(|| "all remaining slots wait for their triggers".to_owned())
        }
        _ => Some("its workflow is no longer defined".to_owned()),
    }
}

fn took(run: &Run) -> Option<SignedDuration> {
    Some(run.ended_at?.duration_since(run.started_at.unwrap_or(run.dispatched_at)).max(SignedDuration::ZERO))
}

/// When the latest of its slots ended since it was made or resumed; an attempt that another one followed does not count.
fn endings(backfill: &Backfill, newest_first: &[Run]) -> Vec<Timestamp> {
    let since = backfill.resumed_at.unwrap_or(backfill.created_at);
    let mine = newest_first.iter().filter(|run| backfill.range.holds(&run.id.slot.key));
    let mut seen = BTreeSet::new();
    let last_runs = mine.filter(|run| seen.insert(&run.id.slot));
    last_runs.filter_map(|run| run.ended_at).filter(|ended| *ended >= since).take(RUNS_COUNTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn going(left: u64, endings: &[i64], durations: &[i64], places: impl Into<Option<u32>>) -> Estimate {
        let signs = Signs {
            left,
            held: None,
            places: places.into(),
            endings: endings.iter().map(|seconds| at(*seconds)).collect(),
            durations: durations.iter().map(|seconds| SignedDuration::from_secs(*seconds)).collect(),
        };
        signs.estimate(at(1000))
    }

    #[test]
    fn what_is_over_or_held_has_no_estimate() {
        assert_eq!(going(0, &[900, 910, 920, 930], &[10], 1), Estimate::Over);
        let held = Signs { left: 3, held: Some("it is paused by ann".to_owned()), ..Signs::default() };
        assert_eq!(held.estimate(at(1000)), Estimate::None("it is paused by ann".to_owned()));
    }

    #[test]
    fn its_own_pace_says_most() {
        // Four in the hundred seconds after the first: one in 25.
        let told = going(8, &[900, 920, 960, 980, 1000], &[1], 9);
        assert_eq!(told, Estimate::At(at(1200), Basis::Pace(5)));
    }

    #[test]
    fn a_backfill_that_stalls_is_put_off() {
        assert_eq!(going(3, &[10, 20, 30, 40], &[], 1), Estimate::At(at(1990), Basis::Pace(4)));
    }

    #[test]
    fn endings_at_one_moment_are_no_division_by_zero() {
        let Estimate::At(done, _) = going(9, &[1000, 1000, 1000, 1000], &[], 1) else { panic!("an estimate") };
        assert!(done >= at(1000) && done < at(1001));
    }

    #[test]
    fn where_few_have_ended_usual_durations_are_shared_by_the_places() {
        assert_eq!(going(7, &[1000], &[10, 30], 2), Estimate::At(at(1080), Basis::Durations(2, Some(2))));
        assert_eq!(going(1, &[], &[60], 100), Estimate::At(at(1060), Basis::Durations(1, Some(100))));
    }

    #[test]
    fn without_a_basis_nothing_is_guessed() {
        for none in [going(5, &[1000], &[], 2), going(5, &[], &[10], 0)] {
            let Estimate::None(why) = none else { panic!("{none:?}") };
            assert!(why.starts_with("fewer than 4 of its slots have ended"), "{why}");
        }
        let far = going(u64::MAX, &[], &[1_000_000], 1);
        assert_eq!(far, Estimate::None("at this pace it takes more than ten years".to_owned()));
        let many = going(u64::MAX, &[], &[1], u32::MAX);
        assert!(matches!(many, Estimate::None(_)), "a sum that does not fit is no panic: {many:?}");
        assert_eq!(going(u64::MAX, &[], &[5], None), Estimate::At(at(1005), Basis::Durations(1, None)));
    }

    #[test]
    fn words() {
        assert_eq!(Basis::Pace(20).to_string(), "from the pace of its last 20 slots");
        assert_eq!(
            Basis::Durations(1, Some(2)).to_string(),
            "from the durations of the last run of its workflow, 2 at a time"
        );
        assert_eq!(
            Basis::Durations(3, Some(1)).to_string(),
            "from the durations of the last 3 runs of its workflow, 1 at a time"
        );
        assert_eq!(
            Basis::Durations(3, None).to_string(),
            "from the durations of the last 3 runs of its workflow, all at a time"
        );
    }
}
