use std::collections::BTreeMap;

use kelos_model::event::{Event, Origin};
use kelos_model::probe::Verdict;
use kelos_model::{
    Actor, Answer, EventRecord, Finding, Outcome, Probe, Reason, ReasonKind, Slot, SlotEvent, WorkflowId, slot,
};
use kelos_store::{Commit, Journal, MemoryStore, SlotRow, StoredState};

use super::*;

/// A log that is written by hand; moments are minutes.
#[derive(Default)]
struct Log {
    events: Vec<EventRecord>,
    slots: BTreeMap<SlotRef, Slot>,
}

fn minute(minutes: i64) -> Timestamp {
    Timestamp::from_second(minutes * 60).unwrap()
}

fn id(workflow: &str) -> SlotRef {
    SlotRef::at(WorkflowId::new(workflow).unwrap(), minute(0))
}

impl Log {
    fn happen(&mut self, at: i64, slot: &str, what: SlotEvent) -> &mut Log {
        let (id, seq) = (id(slot), self.events.len() as u64 + 1);
        let before = self.slots.get(&id).cloned();
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let after = slot::apply(before, &what, minute(at), seq).unwrap_or_else(|| panic!("{id} can't have {what:?}"));
        self.slots.insert(id.clone(), after);
        self.events.push(EventRecord { seq, at: minute(at), previous, event: Event::Slot { slot: id, what } });
        self
    }

    fn plan(&mut self, at: i64, slot: &str) -> &mut Log {
        self.happen(at, slot, SlotEvent::planned(Origin::Schedule, 0))
    }

    fn look(&mut self, at: i64, slot: &str, explanation: Reason) -> &mut Log {
        let what = match explanation.answer {
            Answer::Met => SlotEvent::TriggerMet { explanation },
            _ => SlotEvent::Looked { explanation },
        };
        self.happen(at, slot, what)
    }

    /// Dispatched and started at once.
    fn start(&mut self, at: i64, slot: &str, run: u32) -> &mut Log {
        self.happen(at, slot, SlotEvent::Dispatched { run, worker: None, batch: None });
        self.happen(at, slot, SlotEvent::Started { run, external_id: "1".to_owned() })
    }

    fn done(&mut self, at: i64, slot: &str, run: u32) -> &mut Log {
        self.happen(at, slot, SlotEvent::Succeeded { run })
    }

    /// The path of a slot, and each link in one line.
    fn path(&self, slot: &str, now: i64) -> (CriticalPath, Vec<String>) {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", minute(0), 1_000).unwrap().unwrap();
        let rows = self.slots.iter().map(|(id, slot)| SlotRow { id: id.clone(), slot: slot.clone() });
        let commit = Commit { events: self.events.clone(), slots: rows.collect(), ..Commit::default() };
        store.commit(lease, &commit).unwrap();
        let path = read(&*store.reader(), &id(slot), minute(now)).unwrap().unwrap();
        assert_covers(&path);
        let told = path.links.iter().map(|link| format!("{}: {}", link.slot.workflow, path.sentence(link))).collect();
        (path, told)
    }
}

/// The steps follow each other from the beginning to the end.
fn assert_covers(path: &CriticalPath) {
    let mut at = path.from;
    for link in &path.links {
        assert_eq!(link.from, at, "{path:#?}");
        for step in &link.steps {
            assert_eq!(step.from, at, "{path:#?}");
            at = step.until;
        }
        assert_eq!(link.until, at, "{path:#?}");
    }
    assert_eq!(path.until, at);
    let sum: i64 = path.links.iter().flat_map(|link| &link.steps).map(Step::millis).sum();
    assert_eq!(sum, path.millis());
}

fn answer(is_met: bool) -> Answer {
    if is_met { Answer::Met } else { Answer::NotYet }
}

fn file(at: i64, is_there: bool) -> Reason {
    let verdict = if is_there { Verdict::Yes } else { Verdict::No };
    let (probe, looked_at) = (Probe::path("/in"), minute(at));
    let finding = Finding::ProbeAnswered { probe, verdict, detail: String::new(), looked_at };
    Reason::leaf(ReasonKind::LocalPath, answer(is_there), finding)
}

fn success(of: &str, state: Option<SlotState>) -> Reason {
    let slot = id(of);
    let finding = match state {
        Some(state) => Finding::UpstreamIs { slot, state },
        None => Finding::UpstreamMissing { slot },
    };
    Reason::leaf(ReasonKind::Success, answer(state == Some(SlotState::Succeeded)), finding)
}

fn clock(at: i64, until: i64) -> Reason {
    let finding = Finding::DelayUntil { now: minute(at), until: minute(until) };
    Reason::leaf(ReasonKind::Delay, answer(at > until), finding)
}

fn tree(kind: ReasonKind, nested: Vec<Reason>) -> Reason {
    let met = |nested: &Reason| nested.answer == Answer::Met;
    let is_met = if kind == ReasonKind::Or { nested.iter().any(met) } else { nested.iter().all(met) };
    let finding = if kind == ReasonKind::Or { Finding::AnyOf } else { Finding::AllOf };
    Reason { kind, answer: answer(is_met), finding, nested }
}

fn and(nested: Vec<Reason>) -> Reason {
    tree(ReasonKind::And, nested)
}

fn always() -> Reason {
    Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always)
}

#[test]
fn a_slot_waits_for_another_that_waits_for_its_input() {
    let mut log = Log::default();
    log.plan(0, "lax").plan(0, "report");
    log.look(0, "lax", file(0, false)).look(0, "report", success("lax", Some(SlotState::Waiting)));
    log.look(38, "lax", file(38, true)).start(39, "lax", 1).done(41, "lax", 1);
    log.look(41, "report", success("lax", Some(SlotState::Succeeded))).start(42, "report", 1).done(44, "report", 1);
    let (path, told) = log.path("report", 100);
    assert!(path.is_over && path.cut.is_none());
    assert_eq!((path.from, path.until), (minute(0), minute(44)));
    let expected = [
        "lax: planned; waited 38 min: File /in is not ready; waited 1 min for a permit; ran 2 min (run 1)",
        "report: waited 41 min for lax@1970-01-01T00:00Z, of which 38 min: File /in is not ready; \
         waited 1 min for a permit; ran 2 min (run 1)",
    ];
    assert_eq!(told, expected);
    assert_eq!(path.percent(path.links[1].millis()).round(), 7.0);
}

#[test]
fn of_what_must_be_there_the_last_counts_and_of_what_may_be_the_first() {
    let ready = Some(SlotState::Succeeded);
    let mut log = Log::default();
    for name in ["a", "b"] {
        log.plan(0, name).look(0, name, always()).start(0, name, 1);
    }
    log.done(5, "a", 1).done(9, "b", 1);
    let both = || vec![success("a", ready), success("b", ready), clock(10, 7)];
    log.plan(0, "all").look(10, "all", and(both())).start(10, "all", 1).done(11, "all", 1);
    log.plan(0, "one").look(10, "one", tree(ReasonKind::Or, both())).start(10, "one", 1).done(11, "one", 1);
    let names = |told: &[String]| told.iter().map(|line| line[..3].to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&log.path("all", 20).1), ["b: ", "all"]);
    assert_eq!(names(&log.path("one", 20).1), ["a: ", "one"]);
}

#[test]
fn an_offset_leads_to_the_slot_that_it_looks_at() {
    let mut log = Log::default();
    log.plan(0, "up").look(0, "up", always()).start(0, "up", 1).done(9, "up", 1);
    let later = tree(ReasonKind::Offset, vec![success("up", Some(SlotState::Succeeded))]);
    log.plan(2, "w").look(9, "w", and(vec![always(), later])).start(9, "w", 1).done(10, "w", 1);
    let told = ["up: planned; ran 9 min (run 1)", "w: waited 7 min for up@1970-01-01T00:00Z; ran 1 min (run 1)"];
    assert_eq!(log.path("w", 20).1, told);
}

#[test]
fn the_clock_and_a_path_that_came_are_told_as_waits() {
    let mut log = Log::default();
    log.plan(0, "w").look(0, "w", and(vec![clock(0, 3), file(0, false)]));
    log.look(4, "w", and(vec![clock(4, 3), file(4, false)])).look(6, "w", and(vec![clock(6, 3), file(6, true)]));
    log.start(6, "w", 1).done(7, "w", 1);
    assert_eq!(log.path("w", 9).1, ["w: planned; waited 6 min: File /in is not ready; ran 1 min (run 1)"]);
    let mut log = Log::default();
    log.plan(0, "w").look(0, "w", and(vec![clock(0, 3), file(0, true)]));
    log.look(4, "w", and(vec![clock(4, 3), file(4, true)])).start(4, "w", 1).done(7, "w", 1);
    let told = [
        "w: planned; waited 3 min: Delayed until 1970-01-01T00:03:00.000Z; waited 1 min: to be evaluated; ran 3 min (run 1)",
    ];
    assert_eq!(log.path("w", 9).1, told);
}

#[test]
fn retries_and_their_back_off_are_on_the_path() {
    let mut log = Log::default();
    let outcome = Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None };
    log.plan(0, "w").look(0, "w", always()).start(0, "w", 1);
    log.happen(2, "w", SlotEvent::BackedOff { run: 1, outcome, due: minute(12), again: 0 });
    log.happen(12, "w", SlotEvent::BackoffEnded).look(12, "w", always()).happen(
        12,
        "w",
        SlotEvent::Dispatched { run: 2, worker: None, batch: None },
    );
    log.happen(13, "w", SlotEvent::Deferred { run: 2, reason: "oozie is down".to_owned() });
    log.happen(15, "w", SlotEvent::Started { run: 2, external_id: "2".to_owned() }).done(16, "w", 2);
    let told = "w: planned; ran 2 min (run 1): failed: exited with status 1; waited 10 min for its retry; \
                waited 3 min for its executor to confirm the start: oozie is down; ran 1 min (run 2)";
    assert_eq!(log.path("w", 20).1, [told]);
}

#[test]
fn what_was_there_before_a_rerun_does_not_count() {
    let mut log = Log::default();
    log.plan(0, "up").look(0, "up", always()).start(0, "up", 1).done(9, "up", 1);
    log.plan(0, "w").look(9, "w", success("up", Some(SlotState::Succeeded))).start(9, "w", 1).done(10, "w", 1);
    let by = Actor::person("ada");
    log.happen(60, "w", SlotEvent::Reopened { by, reason: None, priority: 0, backfill: None });
    log.look(60, "w", success("up", Some(SlotState::Succeeded))).start(60, "w", 2).done(62, "w", 2);
    let (path, told) = log.path("w", 90);
    assert_eq!(told, ["w: reopened by ada; ran 2 min (run 2)"]);
    assert_eq!(path.from, minute(60));
}

#[test]
fn what_keeps_a_slot_from_ending_leads_to_who_must_act() {
    let mut log = Log::default();
    let outcome = Outcome::Failed { reason: "exited with status 1".to_owned(), exit_status: Some(1), code: None };
    log.plan(0, "up").look(0, "up", always()).start(0, "up", 1);
    log.happen(5, "up", SlotEvent::Failed { run: 1, outcome });
    log.plan(0, "mid").look(0, "mid", success("up", Some(SlotState::Failed)));
    let waits = and(vec![success("mid", Some(SlotState::Waiting)), file(1, false)]);
    log.plan(1, "w").look(1, "w", waits);
    let (path, told) = log.path("w", 30);
    assert!(!path.is_over);
    let expected = [
        "up: planned; ran 5 min (run 1): failed: exited with status 1; was not scheduled for 25 min: it had failed",
        "mid: waited 30 min for up@1970-01-01T00:00Z",
        "w: waited 29 min for mid@1970-01-01T00:00Z",
    ];
    assert_eq!(told, expected);
    assert_eq!(path.links[2].besides, ["File /in is not ready"]);
}

#[test]
fn a_slot_that_is_not_there_ends_the_path() {
    let mut log = Log::default();
    log.plan(0, "w").look(0, "w", success("up", None));
    let (path, told) = log.path("w", 30);
    let expected = ["up: was not scheduled for 30 min: it does not exist", "w: waited 30 min for up@1970-01-01T00:00Z"];
    assert_eq!(told, expected);
    assert_eq!(path.links[0].state, None);
}

#[test]
fn a_circle_is_cut() {
    let mut log = Log::default();
    log.plan(0, "a").plan(0, "b");
    log.look(0, "a", success("b", Some(SlotState::Waiting))).look(0, "b", success("a", Some(SlotState::Waiting)));
    let (path, _) = log.path("a", 30);
    assert_eq!(path.links.len(), 2);
    assert_eq!(path.cut.as_deref(), Some("slot a@1970-01-01T00:00Z is waited for by itself"));
}

#[test]
fn a_long_chain_is_cut() {
    let mut log = Log::default();
    for n in 0..150 {
        log.plan(0, &format!("w{n}"));
    }
    log.look(0, "w0", always()).start(0, "w0", 1).done(1, "w0", 1);
    for n in 1..150 {
        let (name, before) = (format!("w{n}"), format!("w{}", n - 1));
        log.look(n, &name, success(&before, Some(SlotState::Succeeded))).start(n, &name, 1).done(n + 1, &name, 1);
    }
    let (path, _) = log.path("w149", 200);
    assert_eq!(path.links.len(), MOST_LINKS);
    assert!(path.cut.unwrap().starts_with("more than 100 slots are on it; w49@"));
    assert_eq!((path.from, path.until), (minute(50), minute(150)));
}

#[test]
fn a_slot_that_goes_on_is_measured_until_now() {
    let mut log = Log::default();
    log.plan(0, "w").look(0, "w", always());
    assert_eq!(log.path("w", 4).1, ["w: planned; waited 4 min for a permit"]);
    log.start(4, "w", 1);
    assert_eq!(log.path("w", 9).1, ["w: planned; waited 4 min for a permit; ran 5 min (run 1): it goes on"]);
    log.happen(10, "w", SlotEvent::Killed { by: Actor::person("ada"), reason: None });
    assert_eq!(log.path("w", 99).1, ["w: planned; waited 4 min for a permit; ran 6 min (run 1): killed by ada"]);
}

#[test]
fn a_clock_that_was_put_back_makes_no_step_negative() {
    let mut log = Log::default();
    log.plan(50, "w").look(50, "w", file(50, false)).look(20, "w", file(20, true)).start(21, "w", 1).done(15, "w", 1);
    let store_path = || {
        let mut store = MemoryStore::new();
        let lease = store.lease("test", minute(0), 1_000).unwrap().unwrap();
        let rows = log.slots.iter().map(|(id, slot)| SlotRow { id: id.clone(), slot: slot.clone() });
        let commit = Commit { events: log.events.clone(), slots: rows.collect(), ..Commit::default() };
        store.commit(lease, &commit).unwrap();
        read(&*store.reader(), &id("w"), minute(60)).unwrap().unwrap()
    };
    let path = store_path();
    assert!(path.millis() >= 0 && path.links[0].steps.iter().all(|step| step.millis() >= 0), "{path:?}");
}
