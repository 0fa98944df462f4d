use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::ToSpan;
use kelos_model::event::Origin;
use kelos_model::probe::Verdict;
use kelos_model::time::{CronSchedule, Schedule};
use kelos_model::workflow::{About, EventKeys, Job, Keys, Moments, PlanState, Properties, Source, WorkflowRow};
use kelos_model::{
    Actor, Answer, Event, EventRecord, Finding, Occurrence, Outcome, Probe, Reason, ReasonKind, RetryPolicy, Run,
    RunId, RunState, Slot, SlotEvent, Trigger, Workflow, WorkflowId, slot,
};
use kelos_store::{Commit, Journal, Lease, MemoryStore, SlotRow};

use super::*;

/// A store with the events of a test.
struct World {
    store: MemoryStore,
    lease: Lease,
    seq: u64,
    slots: BTreeMap<SlotRef, Slot>,
    /// The latest of each slot.
    runs: BTreeMap<SlotRef, Run>,
}

/// `hour:minute` of one day.
fn at(hour: i64, minute: i64) -> Timestamp {
    "2016-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + (hour * 60 + minute).minutes()
}

fn row(id: &str, change: impl Fn(&mut Workflow)) -> WorkflowRow {
    let mut definition = Workflow {
        id: WorkflowId::new(id).unwrap(),
        project: "test".to_owned(),
        source: Source::default(),
        keys: Keys::Schedule(Schedule::Cron(CronSchedule::hourly())),
        trigger: Trigger::Always,
        constraints: Vec::new(),
        concurrency: Some(1),
        pools: Vec::new(),
        retry: RetryPolicy::immediate(3),
        start_time: None,
        wait_timeout_seconds: None,
        job: Job { executor: "held".to_owned(), settings: serde_json::Map::new(), properties: Properties::default() },
        about: About::default(),
    };
    change(&mut definition);
    let planned = PlanState { until: Some(at(8, 0)), ..PlanState::default() };
    let (id, definition) = (definition.id.clone(), Arc::new(definition));
    let moments = Moments::default();
    WorkflowRow { id, definition, version: 1, present: true, enabled: true, paused: false, planned, moments }
}

impl World {
    fn new(rows: Vec<WorkflowRow>) -> World {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", at(0, 0), 1_000).unwrap().unwrap();
        store.commit(lease, &Commit { workflows: rows, ..Commit::default() }).unwrap();
        World { store, lease, seq: 0, slots: BTreeMap::new(), runs: BTreeMap::new() }
    }

    fn happens(&mut self, id: &SlotRef, moment: Timestamp, what: SlotEvent) {
        self.seq += 1;
        let before = self.slots.get(id).cloned();
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let after = slot::apply(before, &what, moment, self.seq).expect("it can happen");
        self.slots.insert(id.clone(), after.clone());
        let run = run_after(self.runs.get(id).cloned(), id, &after, moment, &what);
        self.runs.extend(run.clone().map(|run| (id.clone(), run)));
        let event = Event::Slot { slot: id.clone(), what: what.clone() };
        let commit = Commit {
            events: vec![EventRecord { seq: self.seq, previous, at: moment, event }],
            runs: run.clone().into_iter().collect(),
            slots: vec![SlotRow { id: id.clone(), slot: after }],
            ..Commit::default()
        };
        self.store.commit(self.lease, &commit).unwrap();
    }

    fn planned(&mut self, id: &str, hour: i64, moment: Timestamp) -> SlotRef {
        let slot = SlotRef::at(WorkflowId::new(id).unwrap(), at(hour, 0));
        self.happens(&slot, moment, SlotEvent::planned(Origin::Schedule, 0));
        slot
    }

    /// A slot that is planned in time, and whose run begins after `wait` minutes and stays live.
    fn running(&mut self, id: &str, hour: i64, wait: i64) -> SlotRef {
        let slot = self.planned(id, hour, at(hour, 0));
        self.happens(&slot, at(hour, wait), SlotEvent::TriggerMet { explanation: missing(at(hour, wait)) });
        self.runs(&slot, at(hour, wait));
        slot
    }

    fn runs(&mut self, slot: &SlotRef, moment: Timestamp) {
        let run = self.slots[slot].last_run + 1;
        self.happens(slot, moment, SlotEvent::Dispatched { run, worker: None });
        self.happens(slot, moment, SlotEvent::Started { run, external_id: "x".to_owned() });
    }

    fn succeeds(&mut self, slot: &SlotRef, moment: Timestamp) {
        self.happens(slot, moment, SlotEvent::Succeeded { run: self.slots[slot].last_run });
    }

    fn stuck(&self, now: Timestamp) -> Vec<Stuck> {
        read(&*self.store.reader(), now).unwrap().rows
    }
}

/// The record of a run after an event, where it changes.
fn run_after(run: Option<Run>, id: &SlotRef, slot: &Slot, moment: Timestamp, what: &SlotEvent) -> Option<Run> {
    let ended = |outcome: Outcome| {
        let run = run.clone()?;
        Some(Run { state: outcome.state(), ended_at: Some(moment), outcome: Some(outcome), ..run })
    };
    match what {
        SlotEvent::Dispatched { .. } => Some(Run {
            id: RunId { slot: id.clone(), number: slot.last_run },
            seq: slot.last_run_seq,
            previous: run.map_or(0, |run| run.seq),
            state: RunState::Dispatched,
            executor: "held".to_owned(),
            external_id: None,
            dispatched_at: moment,
            started_at: None,
            ended_at: None,
            outcome: None,
            arguments: BTreeMap::new(),
            outputs: None,
        }),
        SlotEvent::Started { .. } => Some(Run { state: RunState::Running, started_at: Some(moment), ..run? }),
        SlotEvent::Succeeded { .. } => ended(Outcome::Succeeded),
        SlotEvent::BackedOff { outcome, .. } | SlotEvent::Failed { outcome, .. } => ended(outcome.clone()),
        _ => None,
    }
}

fn missing(looked_at: Timestamp) -> Reason {
    let (probe, verdict, detail) = (Probe::path("hdfs://n/in"), Verdict::No, String::new());
    let finding = Finding::ProbeAnswered { probe, verdict, detail, looked_at };
    Reason::leaf(ReasonKind::HdfsPath, Answer::NotYet, finding)
}

fn failure() -> Outcome {
    Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None }
}

fn told(rows: &[Stuck]) -> Vec<(Kind, String, usize, i64)> {
    rows.iter().map(|row| (row.kind, row.slot.short(), row.others, row.beyond.as_mins())).collect()
}

#[test]
fn a_slot_is_late_beyond_twice_what_is_usual() {
    let mut world = World::new(vec![row("w", |_| {})]);
    for hour in 0..4 {
        let slot = world.running("w", hour, 10);
        world.succeeds(&slot, at(hour, 12));
    }
    for hour in [4, 5] {
        let slot = world.planned("w", hour, at(hour, 0));
        world.happens(&slot, at(hour, 1), SlotEvent::Looked { explanation: missing(at(hour, 1)) });
    }
    assert_eq!(told(&world.stuck(at(4, 24))), []);
    let late = world.stuck(at(5, 30));
    assert_eq!(told(&late), [(Kind::Late, "w@2016-01-01T04:00Z".to_owned(), 1, 66)]);
    assert_eq!((late[0].usual, late[0].since), (Some(SignedDuration::from_mins(12)), at(4, 0)));
    assert_eq!(late[0].reason, "HDFS path hdfs://n/in is not ready");
}

#[test]
fn where_nothing_is_usual_yet_a_slot_has_two_hours_and_the_delay_of_its_trigger() {
    let mut world = World::new(vec![row("w", |w| w.trigger = Trigger::Delay { seconds: 3600 })]);
    world.planned("w", 4, at(7, 30));
    assert_eq!(told(&world.stuck(at(7, 0))), []);
    assert_eq!(told(&world.stuck(at(7, 40))), [(Kind::Late, "w@2016-01-01T04:00Z".to_owned(), 0, 40)]);
}

#[test]
fn slots_that_caught_up_say_nothing_about_what_is_usual() {
    let mut world = World::new(vec![row("w", |_| {})]);
    for hour in 0..4 {
        let slot = world.planned("w", hour, at(20, 0));
        world.happens(&slot, at(20, 1), SlotEvent::TriggerMet { explanation: missing(at(20, 1)) });
        world.runs(&slot, at(20, 1));
        world.succeeds(&slot, at(20, 3));
    }
    world.planned("w", 17, at(20, 0));
    assert_eq!(told(&world.stuck(at(20, 0))), [(Kind::Late, "w@2016-01-01T17:00Z".to_owned(), 0, 60)]);
}

#[test]
fn a_slot_that_was_opened_again_is_late_from_then_on() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let slot = world.running("w", 1, 0);
    world.succeeds(&slot, at(1, 2));
    world.happens(
        &slot,
        at(8, 0),
        SlotEvent::Reopened { by: Actor::person("me"), reason: None, priority: 0, backfill: None },
    );
    assert_eq!(told(&world.stuck(at(9, 0))), []);
    assert_eq!(told(&world.stuck(at(11, 0))), [(Kind::Late, "w@2016-01-01T01:00Z".to_owned(), 0, 60)]);
}

#[test]
fn what_waits_to_be_tried_again_says_how_often_and_when() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let slot = world.running("w", 1, 0);
    let due = at(1, 20);
    world.happens(&slot, at(1, 4), SlotEvent::BackedOff { run: 1, outcome: failure(), due });
    let rows = world.stuck(at(1, 5));
    assert_eq!(told(&rows), [(Kind::Backoff, "w@2016-01-01T01:00Z".to_owned(), 0, 0)]);
    assert_eq!((rows[0].next, rows[0].since), (Some(due), at(1, 4)));
    assert_eq!(rows[0].reason, "attempt 1 of 4 failed: exited with status 3");
}

#[test]
fn a_run_is_long_beyond_three_times_what_is_usual() {
    let mut world = World::new(vec![row("w", |_| {})]);
    for hour in 0..3 {
        let slot = world.running("w", hour, 0);
        world.succeeds(&slot, at(hour, 2));
    }
    world.running("w", 3, 0);
    assert_eq!(told(&world.stuck(at(3, 6))), []);
    assert_eq!(told(&world.stuck(at(3, 20))), [(Kind::Long, "w@2016-01-01T03:00Z".to_owned(), 0, 14)]);
}

#[test]
fn a_failure_counts_until_something_later_succeeds() {
    let mut world = World::new(vec![row("w", |_| {})]);
    for hour in [1, 2] {
        let slot = world.running("w", hour, 0);
        world.happens(&slot, at(hour, 4), SlotEvent::Failed { run: 1, outcome: failure() });
    }
    let rows = world.stuck(at(3, 4));
    assert_eq!(told(&rows), [(Kind::Failed, "w@2016-01-01T01:00Z".to_owned(), 1, 120)]);
    assert!(rows[0].reason.contains("no retry is left"), "{}", rows[0].reason);
    let slot = world.running("w", 3, 0);
    world.succeeds(&slot, at(3, 2));
    assert_eq!(told(&world.stuck(at(3, 4))), []);
}

#[test]
fn a_slot_that_will_expire_soon_is_told_with_the_moment() {
    let mut world = World::new(vec![row("w", |w| w.wait_timeout_seconds = Some(3600))]);
    world.planned("w", 1, at(1, 0));
    assert_eq!(told(&world.stuck(at(1, 40))), []);
    let rows = world.stuck(at(1, 50));
    assert_eq!(told(&rows), [(Kind::Expiring, "w@2016-01-01T01:00Z".to_owned(), 0, 0)]);
    assert_eq!(rows[0].next, Some(at(2, 0)));
}

#[test]
fn what_is_due_of_a_paused_workflow_comes_last_though_it_was_not_planned() {
    let paused = WorkflowRow { paused: true, ..row("p", |_| {}) };
    let mut world = World::new(vec![paused, row("w", |_| {})]);
    world.planned("p", 1, at(1, 0));
    world.planned("w", 7, at(7, 0));
    let rows = world.stuck(at(10, 30));
    let expected = [
        (Kind::Late, "w@2016-01-01T07:00Z".to_owned(), 0, 90),
        (Kind::Paused, "p@2016-01-01T01:00Z".to_owned(), 3, 570),
    ];
    assert_eq!(told(&rows), expected);
    assert_eq!(rows[1].reason, "its workflow is paused; 4 slots are due");
}

#[test]
fn what_lies_before_its_workflows_start_is_not_stuck_until_somebody_asks_for_it() {
    let mut world = World::new(vec![row("w", |w| w.start_time = Some(at(5, 0)))]);
    let slot = world.planned("w", 1, at(1, 0));
    assert_eq!(told(&world.stuck(at(10, 30))), []);
    world.happens(&slot, at(6, 0), SlotEvent::Requested { by: Actor::person("ann"), reason: None });
    assert_eq!(told(&world.stuck(at(10, 30))).len(), 1);
}

#[test]
fn what_collects_facts_is_never_late_but_may_be_about_to_expire() {
    let events = row("s", |one| {
        one.trigger = Trigger::Partitions { dataset: "ds".into(), count: 4 };
        let keys = EventKeys { timeout_millis: 10 * 3_600_000, ..EventKeys::new("s", WorkflowId::new("p").unwrap()) };
        one.keys = Keys::Events(Box::new(keys));
    });
    let mut world = World::new(vec![events]);
    let slot = world.planned("s", 1, at(1, 0));
    let what = Occurrence::Partitions { dataset: "ds".into(), count: 3, keys: Vec::new() };
    world.happens(&slot, at(1, 0), SlotEvent::Collected { what, fact: None });
    assert!(world.stuck(at(8, 30)).is_empty());
    let expiring = world.stuck(at(9, 30));
    assert_eq!((expiring[0].kind, expiring[0].next), (Kind::Expiring, Some(at(11, 0))));
    assert_eq!(expiring[0].reason, "3 of 4 partitions of ds");
}
