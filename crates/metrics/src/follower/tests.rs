use jiff::ToSpan;
use kelos_model::event::Origin;
use kelos_model::history::Trim;
use kelos_model::time::{Calendar, Schedule, Zone};
use kelos_model::workflow::{Moments, PlanState, WorkflowRow};
use kelos_model::{Actor, Job, Slot, Workflow, slot};
use kelos_store::{Commit, Journal, Lease, MemoryStore, StoredState};

use super::*;
use crate::text::Text;

/// A log in which things happen to slots, and what counts them.
struct Log {
    store: MemoryStore,
    lease: Lease,
    slots: BTreeMap<SlotRef, Slot>,
    seq: u64,
    follower: Follower,
}

fn hour(number: u64) -> Timestamp {
    "2026-03-01T00:00:00Z".parse::<Timestamp>().expect("a time") + i64::try_from(number).expect("a number").hours()
}

fn workflow(id: &str, present: bool) -> WorkflowRow {
    let id: WorkflowId = id.parse().expect("an id");
    let schedule = Schedule::Calendar(Calendar::daily(Zone::parse("UTC").expect("a zone")));
    let definition = Arc::new(Workflow::new(id.clone(), schedule, Job::new("command", serde_json::Map::new())));
    let (planned, moments) = (PlanState::default(), Moments::default());
    WorkflowRow { id, definition, version: 1, present, enabled: true, paused: false, planned, moments }
}

impl Log {
    /// A log of these workflows, of which so many have numbers of their own.
    fn of(workflows: &[&str], most: usize) -> Log {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", hour(0), 1_000).expect("an answer").expect("a lease");
        let follower = Follower::new(store.reader(), most);
        let mut log = Log { store, lease, slots: BTreeMap::new(), seq: 0, follower };
        workflows.iter().for_each(|id| log.is(id, true));
        log
    }

    fn commit(&mut self, commit: &Commit) {
        self.store.commit(self.lease, commit).expect("a commit");
    }

    /// Defines a workflow, or removes it.
    fn is(&mut self, id: &str, present: bool) {
        self.seq += 1;
        let what = kelos_model::event::WorkflowEvent::Paused { by: Actor::system("test"), reason: None };
        let event = Event::Workflow { workflow: id.parse().expect("an id"), what };
        let events = vec![EventRecord { seq: self.seq, previous: 0, at: hour(self.seq), event }];
        self.commit(&Commit { events, workflows: vec![workflow(id, present)], ..Commit::default() });
    }

    fn happens(&mut self, id: &SlotRef, what: SlotEvent) {
        self.seq += 1;
        let before = self.slots.get(id).cloned();
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let after = slot::apply(before, &what, hour(self.seq), self.seq).expect("it can happen");
        self.slots.insert(id.clone(), after.clone());
        let event = Event::Slot { slot: id.clone(), what };
        let events = vec![EventRecord { seq: self.seq, previous, at: hour(self.seq), event }];
        self.commit(&Commit { events, slots: vec![SlotRow { id: id.clone(), slot: after }], ..Commit::default() });
    }

    /// A slot that was killed.
    fn killed(&mut self, workflow: &str, number: u64) -> SlotRef {
        let id = SlotRef::at(workflow.parse().expect("an id"), hour(number));
        self.happens(&id, SlotEvent::planned(Origin::Schedule, 0));
        self.happens(&id, SlotEvent::Killed { by: Actor::system("test"), reason: None });
        id
    }

    /// Removes events of the log, which the last one is never among.
    fn trims(&mut self, positions: Vec<u64>) {
        let turn = self.store.reader().turns(PageRequest::newest(1)).expect("turns").rows[0].turn;
        self.commit(&Commit { trim: Some(Trim::of(turn, positions)), ..Commit::default() });
    }

    /// The value of a line, once all is counted; none if it is not there.
    fn number(&self, line: &str) -> Option<f64> {
        self.follower.catch_up().expect("it is counted");
        let mut text = Text::default();
        self.follower.ledger().write(&mut text, hour(99), &|_| true);
        let text = text.end();
        let found = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '))?;
        Some(found.parse().expect("a number"))
    }
}

const KILLED: &str = "kelos_slot_transitions_total{workflow=\"other\",state=\"killed\"}";

#[test]
fn an_event_that_could_not_be_counted_is_counted_later() {
    let mut log = Log::of(&["w"], 9);
    let id = log.killed("w", 1);
    log.number("");
    log.happens(&id, SlotEvent::Reopened { by: Actor::system("test"), reason: None, priority: 0, backfill: None });
    let reader = log.store.reader();
    let record = reader.history(&id).expect("a history").pop().expect("an event");
    {
        let mut ledger = log.follower.ledger();
        let before = ledger.position();
        let broken = || StoreError::Corrupt { place: "events".to_owned(), what: "a row is damaged".to_owned() };
        ledger.count(&record, |_| Err(broken())).expect_err("it can't be read");
        assert_eq!(ledger.position(), before);
    }
    assert_eq!(log.number("kelos_slots{project=\"w\",workflow=\"w\",state=\"waiting\"}"), Some(1.0));
    assert_eq!(log.number("kelos_slots{project=\"w\",workflow=\"w\",state=\"killed\"}"), None);
}

#[test]
fn a_slot_whose_history_was_removed_is_counted_when_it_is_opened_again() {
    let mut log = Log::of(&["w"], 9);
    log.number("");
    let [first, _] = [1, 2].map(|number| log.killed("w", number));
    let gone = log.store.reader().history(&first).expect("a history").iter().map(|record| record.seq).collect();
    log.trims(gone);
    let states = |log: &Log| {
        ["waiting", "killed"].map(|state| {
            let line = format!("kelos_slots{{project=\"w\",workflow=\"w\",state=\"{state}\"}}");
            log.number(&line)
        })
    };
    assert_eq!(states(&log), [Some(0.0), Some(2.0)]);
    log.happens(&first, SlotEvent::Reopened { by: Actor::system("test"), reason: None, priority: 0, backfill: None });
    assert_eq!(states(&log), [Some(1.0), Some(1.0)]);
    log.happens(&first, SlotEvent::Killed { by: Actor::system("test"), reason: None });
    assert_eq!(states(&log), [Some(0.0), Some(2.0)]);
}

#[test]
fn the_numbers_of_others_do_not_go_down_when_one_of_them_is_removed() {
    let mut log = Log::of(&["a", "b", "c"], 1);
    log.number("");
    log.killed("b", 1);
    log.killed("c", 2);
    assert_eq!(log.number(KILLED), Some(2.0));
    log.is("b", false);
    assert_eq!((log.number(KILLED), log.number("kelos_metrics_other_workflows")), (Some(2.0), Some(1.0)));
    log.is("c", false);
    assert_eq!((log.number(KILLED), log.number("kelos_metrics_other_workflows")), (Some(2.0), Some(0.0)));
    log.is("b", true);
    log.killed("b", 3);
    assert_eq!(log.number(KILLED), Some(3.0));
}

#[test]
fn the_numbers_of_others_do_not_go_down_when_one_of_them_gets_its_own() {
    let mut log = Log::of(&["a"], 2);
    log.is("b", false);
    log.number("");
    // A workflow that is not defined any more is shown while one of its slots is live.
    let id = log.killed("b", 1);
    log.happens(&id, SlotEvent::Reopened { by: Actor::system("test"), reason: None, priority: 0, backfill: None });
    assert_eq!(log.number(KILLED), Some(1.0));
    log.is("b", true);
    log.killed("b", 2);
    assert_eq!(log.number(KILLED), Some(1.0));
    assert_eq!(log.number(&KILLED.replace("workflow=\"other\"", "project=\"b\",workflow=\"b\"")), Some(1.0));
}

#[test]
fn numbers_that_only_grow_go_on_when_all_is_counted_anew() {
    let mut log = Log::of(&["w"], 9);
    log.number("");
    let id = log.killed("w", 1);
    let own = KILLED.replace("workflow=\"other\"", "project=\"w\",workflow=\"w\"");
    assert_eq!(log.number(&own), Some(1.0));
    // What comes is removed before it is counted.
    let first = log.seq + 1;
    log.happens(&id, SlotEvent::Reopened { by: Actor::system("test"), reason: None, priority: 0, backfill: None });
    log.killed("w", 2);
    log.trims(vec![first]);
    assert_eq!(log.number(&own), Some(1.0));
    assert_eq!(log.number("kelos_slots{project=\"w\",workflow=\"w\",state=\"killed\"}"), Some(1.0));
    log.killed("w", 3);
    assert_eq!(log.number(&own), Some(2.0));
}

#[test]
fn states_that_rules_watch_have_a_number_before_they_are_reached() {
    let log = Log::of(&["w"], 9);
    for state in ["failed", "expired"] {
        let line = format!("kelos_slot_transitions_total{{project=\"w\",workflow=\"w\",state=\"{state}\"}}");
        assert_eq!(log.number(&line), Some(0.0), "{line}");
    }
}
