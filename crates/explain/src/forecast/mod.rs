//! The expected end of a slot, from the recorded durations of runs: its own, and those of the slots that it still waits for, of which the one
//! that ends last decides. It is compared with the deadline.
//!
//! Absent: queues and permits. A slot that waits for capacity is expected as if it could start now.

mod ahead;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::{Slot, SlotRef, SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};

use crate::expectation::Expectation;
use crate::graph::{Obstacle, View};
use crate::run_times::{RunTimes, run_times, succeeded_runs};
pub use ahead::{LateAhead, LatenessForecast, MOST_FORESEEN, late_ahead};

/// The most slots that are looked at for one expectation.
const LOOKED_AT: usize = 200;

/// Expects the end of a live slot; none if it has ended, if too few runs are known of it or of what it waits for, or if that needs a person,
/// or something outside that has no time, such as a file. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, slot: &SlotRef, now: Timestamp) -> Result<Option<Expectation>, StoreError> {
    Forecast::new(reader, now).of(slot)
}

struct Forecast<'a> {
    reader: &'a dyn Queries,
    view: View<'a>,
    now: Timestamp,
    /// The expectations of slots; none while one is looked at, so that circles end.
    known: BTreeMap<SlotRef, Option<Expectation>>,
    /// The durations of the runs of workflows.
    times: BTreeMap<WorkflowId, Option<RunTimes>>,
    /// The slots that may still be looked at for this expectation.
    left: usize,
}

impl<'a> Forecast<'a> {
    fn new(reader: &'a dyn Queries, now: Timestamp) -> Forecast<'a> {
        let (view, known, times) = (View::new(reader, now, true), BTreeMap::new(), BTreeMap::new());
        Forecast { reader, view, now, known, times, left: LOOKED_AT }
    }

    /// The expectation of a slot. What is known of others is kept for the next one.
    fn of(&mut self, id: &SlotRef) -> Result<Option<Expectation>, StoreError> {
        self.left = LOOKED_AT;
        let found = self.end(id);
        if self.left == 0 {
            // A slot that was not looked at may have an expectation after all.
            self.known.retain(|_, known| known.is_some());
        }
        found
    }

    fn end(&mut self, id: &SlotRef) -> Result<Option<Expectation>, StoreError> {
        if let Some(known) = self.known.get(id) {
            return Ok(known.clone());
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.known.insert(id.clone(), None);
        let found = self.look(id)?;
        self.known.insert(id.clone(), found.clone());
        Ok(found)
    }

    fn look(&mut self, id: &SlotRef) -> Result<Option<Expectation>, StoreError> {
        let slot = self.reader.slot(id)?;
        let Some(takes) = self.takes(&id.workflow)? else { return Ok(None) };
        match slot {
            Some(slot) if slot.state.is_final() => Ok(None),
            Some(slot) if slot.state == SlotState::Running => Ok(Some(self.running(id, &slot, takes))),
            slot => self.starting(id, slot.as_ref(), takes),
        }
    }

    /// The durations of the runs of a workflow; none if there are too few.
    fn takes(&mut self, id: &WorkflowId) -> Result<Option<RunTimes>, StoreError> {
        if let Some(known) = self.times.get(id) {
            return Ok(*known);
        }
        let found = run_times(self.reader, id)?;
        self.times.insert(id.clone(), found);
        Ok(found)
    }

    fn running(&self, id: &SlotRef, slot: &Slot, takes: RunTimes) -> Expectation {
        let [end, latest] = [takes.median, takes.high].map(|took| later(slot.since, took).max(self.now));
        Expectation { end, latest, decided_by: id.clone(), takes }
    }

    /// A slot that has not started: it does when it is due, and the last of those that it waits for has succeeded.
    fn starting(
        &mut self,
        id: &SlotRef,
        slot: Option<&Slot>,
        takes: RunTimes,
    ) -> Result<Option<Expectation>, StoreError> {
        let due = self.reader.workflow(&id.workflow)?.and_then(|row| row.definition.keys.due(&id.key));
        let ready = [due, slot.and_then(|slot| slot.due)].into_iter().flatten().fold(self.now, Timestamp::max);
        let (mut start, mut latest_start, mut decider) = (ready, ready, None);
        let look = self.view.look(id, None)?;
        if look.obstacles.iter().any(Obstacle::has_no_known_end) {
            return Ok(None);
        }
        for wait in look.waits_for {
            let Some(before) = self.end(&wait.slot)? else { return Ok(None) };
            latest_start = latest_start.max(before.latest);
            if before.end > start {
                start = before.end;
                decider = Some((before.decided_by, before.takes)).filter(|(_, its)| its.median > takes.median);
            }
        }
        let (end, latest) = (later(start, takes.median), later(latest_start, takes.high));
        let (decided_by, takes) = decider.unwrap_or((id.clone(), takes));
        Ok(Some(Expectation { end, latest, decided_by, takes }))
    }
}

/// A moment so much later; the last moment of all beyond the end of time.
fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A run that is over, with what was expected of it when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastExpectation {
    /// The slot of the run.
    pub slot: SlotRef,
    /// The durations of the runs before it.
    pub expected: RunTimes,
    /// How long it took.
    pub took: SignedDuration,
}

/// Compares runs of a workflow that succeeded with what the runs before each of them let expect, oldest first. Blocks.
///
/// # Errors
/// When the store can't be read.
pub fn calibration(
    reader: &dyn Queries,
    workflow: &kelos_model::WorkflowId,
    most: usize,
) -> Result<Vec<PastExpectation>, StoreError> {
    let mut runs = succeeded_runs(reader, workflow, most)?;
    runs.reverse();
    let took: Vec<SignedDuration> = runs.iter().map(|(_, took)| *took).collect();
    let past = runs.into_iter().enumerate().filter_map(|(place, (slot, took_it))| {
        let expected = RunTimes::of_latest(took.get(..place)?)?;
        Some(PastExpectation { slot, expected, took: took_it })
    });
    Ok(past.collect())
}

#[cfg(test)]
mod tests;
