//! A past, written straight to the store: hourly slots of a thousand workflows, all ended.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Origin;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::retry::scramble;
use kelos_model::time::schedule::Schedule;
use kelos_model::workflow::{Keys, Moments, PlanState, WorkflowRow};
use kelos_model::{
    Answer, Event, EventRecord, Finding, Outcome as Ended, Reason, ReasonKind, Run, RunId, Slot, SlotEvent, SlotRef,
    SlotState, Workflow,
};
use kelos_store::{Commit, Journal, SlotRow};

use crate::support::{Outcome, open, workflow};

/// How many workflows the past has.
pub(crate) const WORKFLOWS: usize = 1_000;

/// How much of each slot's history is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// All five events of a run that ended.
    Whole,
    /// The last one: the log is only appended to, so its length matters to nobody but the disk.
    LastEvent,
}

/// The past's workflows.
pub(crate) fn workflows() -> Vec<Workflow> {
    let hourly = |n: usize| {
        let mut hourly = workflow(&format!("past-{n:04}"), "0 0 * * * ?");
        hourly.concurrency = Some(1_000);
        hourly
    };
    (0..WORKFLOWS).map(hourly).collect()
}

/// Writes a past that ends with the hour before `until`. One run in a hundred failed.
pub(crate) fn fill(path: &Path, finished: usize, until: Timestamp, history: History) -> Outcome {
    fill_in_turns(path, finished, until, history, 20_000)
}

/// The same in turns with so many slots each.
pub(crate) fn fill_in_turns(
    path: &Path,
    finished: usize,
    until: Timestamp,
    history: History,
    slots_a_turn: usize,
) -> Outcome {
    let (mut store, lease) = open(path)?;
    let hours = i64::try_from(finished / WORKFLOWS)?;
    let end = Timestamp::from_second(until.as_second() / 3_600 * 3_600)?;
    let start = end - SignedDuration::from_hours(hours);
    let workflows = workflows();
    let mut scribe = Scribe { seq: 0, commit: Commit::default(), history };
    scribe.commit.workflows = workflows.iter().map(|one| row(one, start, until)).collect();
    for hour in 0..hours {
        let at = start + SignedDuration::from_hours(hour);
        for workflow in &workflows {
            scribe.write(SlotRef::at(workflow.id.clone(), at), at);
            if scribe.commit.slots.len() >= slots_a_turn {
                store.commit(lease, &std::mem::take(&mut scribe.commit))?;
            }
        }
    }
    if !scribe.commit.slots.is_empty() {
        store.commit(lease, &scribe.commit)?;
    }
    store.release(lease)?;
    Ok(())
}

fn row(workflow: &Workflow, start: Timestamp, until: Timestamp) -> WorkflowRow {
    let Keys::Schedule(Schedule::Cron(schedule)) = &workflow.keys else { unreachable!("all are by cron expression") };
    let mut ranges = RangeSet::default();
    ranges.insert(Range::new(start.min(until - SignedDuration::from_hours(8 * 24)), until));
    WorkflowRow {
        id: workflow.id.clone(),
        definition: workflow.clone().into(),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState {
            ranges,
            schedule: serde_json::to_string(schedule).expect("a schedule in words"),
            until: Some(until),
            ..PlanState::default()
        },
        moments: Moments::default(),
    }
}

/// Writes one slot after the other.
struct Scribe {
    seq: u64,
    commit: Commit,
    history: History,
}

impl Scribe {
    fn happened(&mut self, slot: &SlotRef, at: Timestamp, previous: u64, what: SlotEvent) -> u64 {
        self.seq += 1;
        let slot = slot.clone();
        self.commit.events.push(EventRecord { seq: self.seq, at, previous, event: Event::Slot { slot, what } });
        self.seq
    }

    fn write(&mut self, id: SlotRef, at: Timestamp) {
        let failed = scramble(self.seq).is_multiple_of(100);
        let outcome = match failed {
            true => Ended::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None },
            false => Ended::Succeeded,
        };
        let before = match self.history {
            History::Whole => self.begin(&id, at),
            History::LastEvent => 0,
        };
        let last = match &outcome {
            Ended::Succeeded => SlotEvent::Succeeded { run: 1 },
            _ => SlotEvent::Failed { run: 1, outcome: outcome.clone() },
        };
        let last_event = self.happened(&id, at, before, last);
        // The dispatch lies before the start and the end, where it was written.
        let dispatch = if before == 0 { last_event } else { before - 1 };
        self.commit.runs.push(Run {
            id: RunId { slot: id.clone(), number: 1 },
            seq: dispatch,
            previous: 0,
            state: outcome.state(),
            executor: "command".to_owned(),
            external_id: Some("4711".to_owned()),
            dispatched_at: at,
            started_at: Some(at),
            ended_at: Some(at),
            outcome: Some(outcome),
            arguments: Default::default(),
            outputs: None,
            batch: None,
        });
        let state = if failed { SlotState::Failed } else { SlotState::Succeeded };
        let slot = ended(state, at, dispatch, last_event);
        self.commit.slots.push(SlotRow { id, slot });
    }

    /// Planned, met, dispatched, started.
    fn begin(&mut self, id: &SlotRef, at: Timestamp) -> u64 {
        let explanation = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
        let planned = SlotEvent::planned(Origin::Schedule, 0);
        let started = SlotEvent::Started { run: 1, external_id: "4711".to_owned() };
        let events = [
            planned,
            SlotEvent::TriggerMet { explanation },
            SlotEvent::Dispatched { run: 1, worker: None, batch: None },
            started,
        ];
        let log = |before, what| self.happened(id, at, before, what);
        events.into_iter().fold(0, log)
    }
}

fn ended(state: SlotState, since: Timestamp, dispatch: u64, last_event: u64) -> Slot {
    Slot {
        last_run: 1,
        last_run_seq: dispatch,
        external_id: Some("4711".to_owned()),
        last_event,
        ..Slot::new(state, since)
    }
}
