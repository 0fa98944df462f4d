use std::collections::BTreeMap;

use jiff::ToSpan;
use kelos_engine::TraceIds;
use kelos_model::event::Origin;
use kelos_model::history::Trim;
use kelos_model::reason::ReasonKind;
use kelos_model::{Actor, Outcome, RunId, RunState, Slot, slot};
use kelos_store::{Commit, Journal, Lease, MemoryStore, SlotRow, StoredState};

use super::*;
use crate::spans;

/// A log in which things happen to one slot, a minute after each other.
struct Log {
    store: MemoryStore,
    lease: Lease,
    id: SlotRef,
    slot: Option<Slot>,
    run: Option<Run>,
    last: Option<EventRecord>,
}

fn minute(number: u64) -> Timestamp {
    "2026-03-01T00:00:00Z".parse::<Timestamp>().expect("a time") + i64::try_from(number).expect("a number").minutes()
}

impl Log {
    fn new() -> Log {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", minute(0), 1_000).expect("an answer").expect("a lease");
        let id = SlotRef::at("w".parse().expect("an id"), minute(0));
        Log { store, lease, id, slot: None, run: None, last: None }
    }

    fn happens(&mut self, what: SlotEvent) {
        let (seq, before) = (self.last.as_ref().map_or(0, |last| last.seq) + 1, self.slot.take());
        let (at, previous) = (minute(seq), before.as_ref().map_or(0, |slot| slot.last_event));
        let after = slot::apply(before, &what, at, seq).expect("it can happen");
        match &what {
            SlotEvent::Dispatched { run, .. } => self.run = Some(run_of(&self.id, *run, seq)),
            SlotEvent::Started { .. } => self.change_run(|run| run.started_at = Some(at)),
            SlotEvent::Succeeded { .. } => self.end(at, Outcome::Succeeded),
            SlotEvent::Failed { outcome, .. } => self.end(at, outcome.clone()),
            SlotEvent::Withdrawn { .. } => self.end(at, Outcome::Killed),
            _ => {}
        }
        let record = EventRecord { seq, previous, at, event: Event::Slot { slot: self.id.clone(), what } };
        let commit = Commit {
            events: vec![record.clone()],
            slots: vec![SlotRow { id: self.id.clone(), slot: after.clone() }],
            runs: self.run.iter().cloned().collect(),
            ..Commit::default()
        };
        self.store.commit(self.lease, &commit).expect("a commit");
        (self.slot, self.last) = (Some(after), Some(record));
    }

    fn change_run(&mut self, change: impl FnOnce(&mut Run)) {
        change(self.run.as_mut().expect("a run"));
    }

    fn end(&mut self, at: Timestamp, outcome: Outcome) {
        self.change_run(|run| {
            (run.state, run.ended_at, run.outcome) = (outcome.state(), Some(at), Some(outcome));
        });
    }

    /// A run that starts.
    fn runs(&mut self, run: u32) {
        let found = Reason::leaf(ReasonKind::Delay, Answer::Met, Finding::Always);
        self.happens(SlotEvent::TriggerMet { explanation: found });
        self.happens(SlotEvent::Dispatched { run, worker: None, batch: None });
        self.happens(SlotEvent::Started { run, external_id: "x".to_owned() });
    }

    /// Removes all that has happened but the last event, which no store removes, and which is about something else.
    fn trims(&mut self) {
        let seq = self.last.as_ref().expect("an event").seq + 1;
        let other =
            Event::Register { bucket: "b".to_owned(), key: "k".to_owned(), value: None, by: None, reason: None };
        let record = EventRecord { seq, previous: 0, at: minute(seq), event: other };
        self.store.commit(self.lease, &Commit { events: vec![record.clone()], ..Commit::default() }).expect("a commit");
        let turn = self.store.reader().turns(kelos_store::PageRequest::newest(1)).expect("turns").rows[0].turn;
        let trim = Some(Trim::of(turn, (1..seq).collect()));
        self.store.commit(self.lease, &Commit { trim, ..Commit::default() }).expect("a commit");
        (self.run, self.last) = (None, Some(record));
        assert_eq!(self.store.reader().history(&self.id).expect("a history"), []);
    }

    /// The accounts of which the last event is the reason.
    fn told(&self) -> Vec<Account> {
        of_event(&*self.store.reader(), self.last.as_ref().expect("an event")).expect("accounts")
    }
}

fn person() -> Actor {
    Actor::person("ann")
}

fn run_of(slot: &SlotRef, number: u32, seq: u64) -> Run {
    Run {
        id: RunId { slot: slot.clone(), number },
        seq,
        previous: 0,
        state: RunState::Dispatched,
        executor: "command".to_owned(),
        external_id: None,
        dispatched_at: minute(seq),
        started_at: None,
        ended_at: None,
        outcome: None,
        arguments: BTreeMap::new(),
        outputs: None,
        batch: None,
    }
}

#[test]
fn a_slot_that_is_opened_again_after_its_history_was_removed_has_a_span_around_its_runs() {
    let mut log = Log::new();
    log.happens(SlotEvent::planned(Origin::Schedule, 0));
    log.runs(1);
    log.happens(SlotEvent::Succeeded { run: 1 });
    log.trims();
    log.happens(SlotEvent::Reopened { by: person(), reason: None, priority: 0, backfill: None });
    let opening = log.last.as_ref().expect("an event").clone();
    log.runs(2);
    log.happens(SlotEvent::Succeeded { run: 2 });

    let told = log.told();
    let [Account::Ended(run), Account::Final(slot)] = &*told else { panic!("{} accounts", told.len()) };
    assert_eq!((run.run.id.number, run.opening.seq), (2, opening.seq));
    assert_eq!((slot.state, slot.opening.seq, slot.opening.at), (SlotState::Succeeded, opening.seq, opening.at));
    let ids = TraceIds::new("a log");
    let spans: Vec<_> = told.iter().map(|account| spans::span(account, &ids).expect("a span")).collect();
    assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
}

#[test]
fn a_slot_that_is_marked_after_its_history_was_removed_has_a_span() {
    let mut log = Log::new();
    log.happens(SlotEvent::planned(Origin::Schedule, 0));
    log.happens(SlotEvent::Killed { by: person(), reason: None });
    log.trims();
    log.happens(SlotEvent::MarkedSucceeded { by: person(), reason: None });
    let told = log.told();
    let [Account::Final(slot)] = &*told else { panic!("{} accounts", told.len()) };
    assert_eq!((slot.state, slot.at), (SlotState::Succeeded, slot.opening.at));
}

#[test]
fn a_run_that_its_worker_gave_back_has_ended_if_it_had_started() {
    let mut log = Log::new();
    log.happens(SlotEvent::planned(Origin::Schedule, 0));
    log.runs(1);
    log.happens(SlotEvent::Withdrawn { run: 1 });
    let told = log.told();
    assert!(
        matches!(&*told, [Account::Ended(ended)] if ended.run.state == RunState::Killed),
        "{} accounts",
        told.len()
    );
    log.happens(SlotEvent::Dispatched { run: 2, worker: None, batch: None });
    log.happens(SlotEvent::Withdrawn { run: 2 });
    assert!(log.told().is_empty(), "no worker fetched it");
}
