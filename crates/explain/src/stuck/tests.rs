use kelos_model::workflow::{EventKeys, Keys, WorkflowRow};
use kelos_model::{Actor, Deadline, Occurrence, SlotEvent, Trigger, WorkflowId};
use kelos_store::StoredState;

use super::*;
use crate::world::{World, at, backlog, failure, missing, row};

impl World {
    fn stuck(&self, now: Timestamp) -> Vec<Stuck> {
        read(&*self.store.reader(), now).unwrap().rows
    }
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
    world.planned("w", 4, at(4, 0));
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
    assert_eq!(told(&world.stuck(at(22, 0))), [], "it counts from when it was planned");
    assert_eq!(told(&world.stuck(at(23, 0))), [(Kind::Late, "w@2016-01-01T17:00Z".to_owned(), 0, 60)]);
}

/// Twelve slots that were planned at 20:00, and queued at once.
fn catch_up(world: &mut World) {
    for hour in 0..12 {
        let slot = world.planned("w", hour, at(20, 0));
        world.happens(&slot, at(20, 0), SlotEvent::TriggerMet { explanation: missing(at(20, 0)) });
    }
}

#[test]
fn slots_that_catch_up_hide_none_that_waits_for_too_long() {
    let mut world = World::new(vec![row("w", |_| {})]);
    world.planned("w", 15, at(15, 0));
    catch_up(&mut world);
    assert_eq!(told(&world.stuck(at(20, 30))), [(Kind::Late, "w@2016-01-01T15:00Z".to_owned(), 0, 210)]);
}

#[test]
fn slots_that_catch_up_hide_none_that_was_queued_with_them() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let late = world.planned("w", 16, at(16, 0));
    catch_up(&mut world);
    world.happens(&late, at(20, 0), SlotEvent::TriggerMet { explanation: missing(at(20, 0)) });
    assert_eq!(told(&world.stuck(at(20, 30))), [(Kind::Late, "w@2016-01-01T16:00Z".to_owned(), 0, 150)]);
    let all = world.stuck(at(22, 1));
    assert_eq!(told(&all), [(Kind::Late, "w@2016-01-01T00:00Z".to_owned(), 12, 1)], "they, too, wait for two hours");
}

#[test]
fn a_slot_that_was_dispatched_a_moment_ago_is_not_stuck() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let slot = world.planned("w", 4, at(4, 0));
    assert_eq!(told(&world.stuck(at(9, 0))).len(), 1);
    world.happens(&slot, at(9, 0), SlotEvent::TriggerMet { explanation: missing(at(9, 0)) });
    world.happens(&slot, at(9, 0), SlotEvent::Dispatched { run: 1, worker: None, batch: None });
    assert_eq!(told(&world.stuck(at(9, 5))), []);
    let late = world.stuck(at(9, 6));
    assert_eq!(told(&late), [(Kind::Late, "w@2016-01-01T04:00Z".to_owned(), 0, 186)]);
    assert!(late[0].reason.contains("its executor has not confirmed the start"), "{}", late[0].reason);
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
    world.happens(&slot, at(1, 4), SlotEvent::BackedOff { run: 1, outcome: failure(), due, again: 0 });
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
fn a_failure_counts_until_it_is_repaired_whatever_ran_since() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let failed = [1, 2].map(|hour| world.fails("w", hour));
    let rows = world.stuck(at(3, 4));
    assert_eq!(told(&rows), [(Kind::Failed, "w@2016-01-01T01:00Z".to_owned(), 1, 120)]);
    assert!(rows[0].reason.contains("no retry is left"), "{}", rows[0].reason);
    let later = world.running("w", 3, 0);
    world.succeeds(&later, at(3, 2));
    assert_eq!(told(&world.stuck(at(3, 4))), [(Kind::Failed, "w@2016-01-01T01:00Z".to_owned(), 1, 120)]);
    world.happens(&failed[0], at(3, 5), SlotEvent::MarkedSucceeded { by: Actor::person("me"), reason: None });
    assert_eq!(told(&world.stuck(at(3, 4))), [(Kind::Failed, "w@2016-01-01T02:00Z".to_owned(), 0, 60)]);
    let (by, reason) = (Actor::person("me"), None);
    world.happens(&failed[1], at(3, 5), SlotEvent::Reopened { by, reason, priority: 0, backfill: None });
    assert_eq!(told(&world.stuck(at(3, 6))), []);
}

#[test]
fn late_slots_that_wait_for_a_failure_are_in_its_row() {
    let on = |name: &str| Trigger::Success { workflow: WorkflowId::new(name).unwrap() };
    let rows = [row("a", |_| {}), row("b", |w| w.trigger = on("a")), row("c", |w| w.trigger = on("b"))];
    let mut world = World::new(rows.to_vec());
    let a = world.fails("a", 1);
    let b = world.expires("b", 1, &a);
    world.waits("c", 1, &b);
    world.planned("c", 2, at(2, 0));
    let rows = world.stuck(at(9, 0));
    let late = (Kind::Late, "c@2016-01-01T02:00Z".to_owned(), 0, 300);
    assert_eq!(told(&rows), [(Kind::Failed, "a@2016-01-01T01:00Z".to_owned(), 0, 476), late]);
    assert_eq!((rows[0].followers, rows[1].followers), (2, 0));
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

#[test]
fn a_backfill_of_a_year_hides_no_slot_that_is_late() {
    let behind = WorkflowRow { planned: backlog(8_760, Some("year")), ..row("a", |_| {}) };
    let mut world = World::new(vec![behind, row("b", |_| {})]);
    world.planned("b", 5, at(5, 0));
    let found = read(&*world.store.reader(), at(8, 0)).unwrap();
    assert_eq!(told(&found.rows), [(Kind::Late, "b@2016-01-01T05:00Z".to_owned(), 0, 60)]);
    assert!(!found.is_partial);
}

#[test]
fn times_of_a_schedule_that_have_no_slots_yet_are_late_and_those_of_a_backfill_are_not() {
    let behind = row("a", |one| one.deadline = Some(Deadline::After(1800)));
    let behind = WorkflowRow { planned: backlog(3, None), ..behind };
    let asked_for = WorkflowRow { planned: backlog(3, Some("year")), ..row("b", |_| {}) };
    let world = World::new(vec![behind, asked_for]);
    assert_eq!(told(&world.stuck(at(1, 30))), [], "they count from when they were planned");
    assert_eq!(told(&world.stuck(at(3, 0))), [(Kind::Late, "a@2015-12-31T21:00Z".to_owned(), 2, 60)]);
}

#[test]
fn the_backlog_of_a_paused_workflow_is_counted() {
    let behind = WorkflowRow { paused: true, planned: backlog(3, Some("year")), ..row("a", |_| {}) };
    let mut world = World::new(vec![behind]);
    world.planned("a", 1, at(1, 0));
    let rows = world.stuck(at(1, 30));
    assert_eq!(told(&rows), [(Kind::Paused, "a@2015-12-31T21:00Z".to_owned(), 3, 270)]);
}
