//! Tests of the wakes without a scheduler.

use super::*;
use crate::Config;
use kelos_model::probe::Verdict;

fn wakes() -> Wakes {
    Wakes::new(Waits::of(&Config::default()))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn id(workflow: &str) -> WorkflowId {
    workflow.parse().expect("an id")
}

fn slot(workflow: &str, second: i64) -> SlotRef {
    SlotRef::at(id(workflow), at(second))
}

fn unread(_: &SlotRef) -> Option<(SlotState, Timestamp)> {
    None
}

fn path(name: &str) -> Waker {
    Waker::Probe(Probe::path(format!("file:///{name}")))
}

/// All due timers in order, of each workflow in turn.
fn due(wakes: &mut Wakes, now: Timestamp) -> Vec<Due> {
    let workflows = wakes.due(now);
    workflows.iter().flat_map(|id| std::iter::from_fn(|| wakes.pop(id, now)).collect::<Vec<_>>()).collect()
}

#[test]
fn moments_come_in_order_each_once_and_only_the_last_that_was_set() {
    let mut wakes = wakes();
    wakes.look_at_moment(&slot("b", 1), at(30));
    wakes.look_at_moment(&slot("b", 2), at(20));
    wakes.look_at_moment(&slot("b", 2), at(40));
    wakes.look_at_moment(&SlotRef::job(id("b"), "j".into()), at(30));
    wakes.watch_run(&slot("a", 1), true, at(35) - Config::default().patience);
    wakes.plan_at(&id("b"), Some(at(30)));
    wakes.look_at_moment(&slot("c", 1), at(10));
    wakes.forget_moment(&slot("c", 1));
    assert_eq!(wakes.next(), Some(at(30)));
    assert!(due(&mut wakes, at(29)).is_empty());
    let expected = [
        Due::Plan(id("b")),
        Due::Look(slot("b", 1)),
        Due::Look(SlotRef::job(id("b"), "j".into())),
        Due::Ask(slot("a", 1)),
    ];
    assert_eq!(due(&mut wakes, at(35)), expected);
    assert_eq!(wakes.next(), Some(at(40)));
    assert_eq!(due(&mut wakes, at(50)), [Due::Look(slot("b", 2))]);
    assert_eq!(wakes.next(), None);
}

#[test]
fn a_slot_is_woken_by_what_it_last_said_and_by_nothing_else() {
    let mut wakes = wakes();
    let one = slot("one", 0);
    let first = [Waker::At(at(9)), path("x"), Waker::Slot(slot("up", 0)), path("x")];
    assert_eq!(wakes.subscribe(&one, &first, Some(at(7)), at(0), unread), [slot("up", 0)]);
    assert_eq!(wakes.probes.take_questions().len(), 1, "the same question twice is one");
    assert_eq!(wakes.next_look(&one), Some(at(0)), "the answer is on its way");
    let answer = ProbeAnswer { verdict: Verdict::No, detail: String::new(), at: at(1) };
    let probe = Probe::path("file:///x".to_owned());
    assert_eq!(wakes.probes.answered(&probe, answer.clone(), at(1)), std::slice::from_ref(&one));
    assert_eq!(wakes.answers(&one), [(probe.clone(), answer)]);
    assert!(wakes.subscribe(&one, &[path("y"), Waker::At(at(9))], None, at(1), unread).is_empty());
    assert!(!wakes.probes.is_asked(&probe), "nobody waits for it");
    assert_eq!(wakes.upstream.learn(&slot("up", 0), None, None), Audience::default());
    wakes.unsubscribe(&one);
    assert!(wakes.answers(&one).is_empty());
    assert_eq!((wakes.next(), wakes.next_look(&one)), (None, None));
}

#[test]
fn where_the_clock_was_put_back_waits_go_on_from_there() {
    let mut wakes = wakes();
    wakes.look_at_moment(&slot("a", 0), at(100));
    wakes.look_at_moment(&slot("b", 0), at(100));
    wakes.watch_run(&slot("c", 0), true, at(100) - Config::default().patience);
    wakes.shift(SignedDuration::from_secs(-60), |slot| slot.workflow == id("b"));
    let expected = [Due::Look(slot("b", 0)), Due::Ask(slot("c", 0))];
    assert_eq!(due(&mut wakes, at(40)), expected, "what is an appointment stays");
    assert_eq!(due(&mut wakes, at(100)), [Due::Look(slot("a", 0))]);
}
