//! The past of many event schedules, written straight to the store: most have a few slots, some thousands, one as many as two
//! months of minutes have.

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::Origin;
use kelos_model::time::{Firing, Zone};
use kelos_model::workflow::{EventKeys, Job, Keys, Moments, PlanState, Program, WorkflowRow};
use kelos_model::{
    Answer, Collection, Constraint, Event, EventRecord, Fact, Finding, Gate, Occurrence, Outcome, Reason, ReasonKind,
    Run, RunId, Slot, SlotEvent, SlotRef, SlotState, Trigger, Workflow, WorkflowId,
};
use kelos_store::{Commit, Journal, SlotRow};
use kelos_store_sqlite::SqliteStore;
use serde_json::Map;

type Answered<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The slots that the first schedule has; each of the [`SOME`] after it; and all others.
pub(crate) const MOST: i64 = 90_000;
const MANY: i64 = 3_000;
const FEW: i64 = 5;
const SOME: usize = 20;
/// Schedules of an application, which has one program.
const EACH: usize = 1_000;
/// Facts that what the second schedule has pending has collected.
const COLLECTED: u32 = 5_000;

pub(crate) fn id(text: &str) -> WorkflowId {
    WorkflowId::new(text).expect("a name")
}

/// The name of a schedule.
pub(crate) fn schedule_id(number: usize) -> WorkflowId {
    id(&format!("App{}.s{number:05}", number / EACH))
}

fn program_id(application: usize) -> WorkflowId {
    id(&format!("App{application}.P"))
}

fn job() -> Job {
    Job::new("command", Map::new())
}

/// Takes turns in what has it go.
fn trigger(number: usize) -> Trigger {
    match number % 3 {
        0 => Trigger::Fired { firing: Firing::parse("*/1 * * * *", Zone::utc()).expect("an expression") },
        1 => Trigger::Partitions { dataset: format!("ds{number}").into(), count: 10_000 },
        _ => Trigger::Ended { program: program_id(number / EACH + 1), states: vec![SlotState::Succeeded] },
    }
}

fn schedule(number: usize) -> Workflow {
    let keys = EventKeys { enabled: true, ..EventKeys::new(&format!("s{number:05}"), program_id(number / EACH)) };
    Workflow {
        project: format!("App{}", number / EACH),
        trigger: trigger(number),
        constraints: vec![Constraint::new(Gate::Concurrency(1))],
        ..Workflow::keyed(schedule_id(number), Keys::Events(Box::new(keys)), job())
    }
}

fn program(application: usize) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: "P".to_owned(), kind: None }));
    Workflow { project: format!("App{application}"), ..Workflow::keyed(program_id(application), keys, job()) }
}

fn row(workflow: Workflow, now: Timestamp) -> WorkflowRow {
    WorkflowRow {
        id: workflow.id.clone(),
        definition: Arc::new(workflow),
        version: 1,
        present: true,
        enabled: true,
        paused: false,
        planned: PlanState { until: Some(now), ..PlanState::default() },
        moments: Moments::default(),
    }
}

/// Writes so many schedules with their past, which ends now; gives how many slots there are.
pub(crate) fn fill(path: &Path, schedules: usize, now: Timestamp) -> Answered<i64> {
    let mut store = SqliteStore::open(path)?;
    let lease = store.lease("bench", Timestamp::UNIX_EPOCH, 60_000)?.ok_or("somebody else leads")?;
    let mut scribe = Scribe { seq: 0, commit: Commit::default() };
    let programs = (0..schedules.div_ceil(EACH)).map(program);
    scribe.commit.workflows = programs.chain((0..schedules).map(schedule)).map(|one| row(one, now)).collect();
    let ago = |minutes: i64| now - SignedDuration::from_mins(minutes);
    let mut slots = 0;
    for minute in (1..=MOST).rev() {
        let those = if minute <= FEW {
            schedules
        } else if minute <= MANY {
            1 + SOME
        } else {
            1
        };
        for number in 0..those.min(schedules) {
            scribe.ended(number, ago(minute));
            slots += 1;
        }
        if scribe.commit.slots.len() >= 20_000 {
            store.commit(lease, &std::mem::take(&mut scribe.commit))?;
        }
    }
    for number in 0..schedules {
        scribe.pending(number, now);
        slots += 1;
    }
    store.commit(lease, &scribe.commit)?;
    store.release(lease)?;
    Ok(slots)
}

/// Writes one slot after the other.
struct Scribe {
    seq: u64,
    commit: Commit,
}

impl Scribe {
    fn record(&mut self, at: Timestamp, previous: u64, event: Event) -> u64 {
        self.seq += 1;
        self.commit.events.push(EventRecord { seq: self.seq, at, previous, event });
        self.seq
    }

    fn happened(&mut self, slot: &SlotRef, at: Timestamp, previous: u64, what: SlotEvent) -> u64 {
        self.record(at, previous, Event::Slot { slot: slot.clone(), what })
    }

    /// One that ran, or every other one that a constraint ended.
    fn ended(&mut self, number: usize, at: Timestamp) {
        let slot = SlotRef::at(schedule_id(number), at);
        let what = occurrence(number, at);
        let mut collected = Collection::new(at);
        collected.add(&what);
        collected.met = true;
        let met = Reason::leaf(ReasonKind::Fired, Answer::Met, Finding::MetBefore);
        let mut last = self.happened(&slot, at, 0, SlotEvent::planned(Origin::Fact, 0));
        last = self.happened(&slot, at, last, SlotEvent::Collected { what, fact: None });
        last = self.happened(&slot, at, last, SlotEvent::Held { explanation: met, opened: None });
        let is_aborted = at.as_second() / 60 % 2 == 0;
        let runs = Finding::RunsCounted { program: program_id(number / EACH), active: 1, limit: 1 };
        let gate = |answer| Reason::leaf(ReasonKind::Concurrency, answer, runs.clone());
        let all = |answer| Reason {
            kind: ReasonKind::Constraints,
            answer,
            finding: Finding::Constraints,
            nested: vec![gate(answer)],
        };
        if is_aborted {
            last = self.happened(&slot, at, last, SlotEvent::Skipped { explanation: all(Answer::Never) });
            let own = Slot { last_event: last, collected: Some(collected.into()), ..Slot::new(SlotState::Skipped, at) };
            self.commit.slots.push(SlotRow { id: slot, slot: own });
            return;
        }
        last = self.happened(&slot, at, last, SlotEvent::ConstraintsMet { explanation: all(Answer::Met) });
        let dispatch = self.happened(&slot, at, last, SlotEvent::Dispatched { run: 1, worker: None, batch: None });
        let external_id = "4711".to_owned();
        last = self.happened(&slot, at, dispatch, SlotEvent::Started { run: 1, external_id: external_id.clone() });
        last = self.happened(&slot, at, last, SlotEvent::Succeeded { run: 1 });
        self.commit.runs.push(Run {
            id: RunId { slot: slot.clone(), number: 1 },
            seq: dispatch,
            previous: 0,
            state: Outcome::Succeeded.state(),
            executor: "command".to_owned(),
            external_id: Some(external_id),
            dispatched_at: at,
            started_at: Some(at),
            ended_at: Some(at),
            outcome: Some(Outcome::Succeeded),
            arguments: Default::default(),
            outputs: None,
            batch: None,
        });
        let own = Slot {
            last_run: 1,
            last_run_seq: dispatch,
            last_event: last,
            collected: Some(collected.into()),
            ..Slot::new(SlotState::Succeeded, at)
        };
        self.commit.slots.push(SlotRow { id: slot, slot: own });
    }

    /// One that has collected something that somebody told, and waits.
    fn pending(&mut self, number: usize, at: Timestamp) {
        let slot = SlotRef::at(schedule_id(number), at);
        let what = Occurrence::Partitions { dataset: format!("ds{number}").into(), count: 1, keys: Vec::new() };
        let mut collected = Collection::new(at);
        let mut last = self.happened(&slot, at, 0, SlotEvent::planned(Origin::Fact, 0));
        for _ in 0..if number == 1 { COLLECTED } else { 1 } {
            let fact = Fact { source: "bench".into(), key: None, what: what.clone() };
            let fact = Some(self.record(at, 0, Event::Fact { by: None, fact }));
            last = self.happened(&slot, at, last, SlotEvent::Collected { what: what.clone(), fact });
            collected.add(&what);
        }
        let own = Slot { last_event: last, collected: Some(collected.into()), ..Slot::new(SlotState::Waiting, at) };
        self.commit.slots.push(SlotRow { id: slot, slot: own });
    }
}

/// What has a schedule go.
fn occurrence(number: usize, time: Timestamp) -> Occurrence {
    match trigger(number) {
        Trigger::Fired { firing } => Occurrence::Fired { cron: firing.name(), time },
        Trigger::Partitions { dataset, count } => Occurrence::Partitions { dataset, count, keys: Vec::new() },
        _ => {
            let (arguments, outputs) = Default::default();
            let (program, state) = (program_id(number / EACH + 1), SlotState::Succeeded);
            Occurrence::Ended { program, state, run: None, arguments, outputs }
        }
    }
}
