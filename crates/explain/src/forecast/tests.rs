use kelos_model::workflow::WorkflowRow;
use kelos_model::{Deadline, SlotEvent, SlotRef, Trigger};
use kelos_store::StoredState;

use super::*;
use crate::account;
use crate::world::{World, at, backlog, missing, row};

/// Hourly slots of `load`, whose runs took so many minutes; `report` waits for it.
fn world(minutes: &[i64]) -> World {
    world_beside(Vec::new(), minutes)
}

/// The same, with other workflows.
fn world_beside(mut others: Vec<WorkflowRow>, minutes: &[i64]) -> World {
    let load = row("load", |_| {});
    let report = row("report", |one| {
        one.trigger = Trigger::Success { workflow: "load".parse().unwrap() };
        one.deadline = Some(Deadline::After(1800));
    });
    others.extend([load, report]);
    let mut world = World::new(others);
    for (hour, took) in minutes.iter().enumerate() {
        let slot = world.running("load", hour as i64, 0);
        world.succeeds(&slot, at(hour as i64, *took));
        let slot = world.running("report", hour as i64, *took);
        world.succeeds(&slot, at(hour as i64, took + 5));
    }
    world
}

fn expected(world: &World, slot: &SlotRef, now: Timestamp) -> Option<Expectation> {
    read(&*world.store.reader(), slot, now).unwrap()
}

#[test]
fn a_run_is_expected_to_take_as_long_as_those_before() {
    let mut world = world(&[10, 12, 30]);
    let slot = world.running("load", 4, 0);
    let found = expected(&world, &slot, at(4, 2)).unwrap();
    assert_eq!((found.end, found.latest), (at(4, 12), at(4, 30)));
    assert_eq!(found.takes.runs, 3);
    // One that takes longer than usual may end at any moment.
    assert_eq!(expected(&world, &slot, at(4, 20)).unwrap().end, at(4, 20));
    world.succeeds(&slot, at(4, 21));
    assert_eq!(expected(&world, &slot, at(4, 22)), None);
}

#[test]
fn what_a_slot_waits_for_decides() {
    let mut world = world(&[40, 41, 39]);
    let load = world.running("load", 4, 0);
    let report = world.waits("report", 4, &load);
    let found = expected(&world, &report, at(4, 10)).unwrap();
    assert_eq!((found.end, &found.decided_by), (at(4, 45), &load));
    assert_eq!(
        found.words(at(4, 30), false),
        "will be late: expected 2016-01-01T04:45Z, deadline 2016-01-01T04:30Z; decided by load@2016-01-01T04:00Z, \
         which takes 40 min as a rule (3 runs)"
    );
    assert!(found.words(at(4, 50), false).starts_with("expected 2016-01-01T04:45Z, deadline"));
    let told = account::read(&*world.store.reader(), &report, at(4, 31), true, None).unwrap();
    assert_eq!(told.deadline_words().unwrap(), "late since 2016-01-01T04:30Z, its deadline");
}

#[test]
fn nothing_is_expected_of_few_runs_or_after_a_failure() {
    let mut few = world(&[10, 10]);
    let slot = few.running("load", 4, 0);
    assert_eq!(expected(&few, &slot, at(4, 2)), None);
    let mut failed = world(&[10, 10, 10]);
    let load = failed.fails("load", 4);
    let report = failed.waits("report", 4, &load);
    assert_eq!(expected(&failed, &report, at(4, 10)), None);
}

#[test]
fn nothing_is_expected_of_a_slot_that_waits_for_a_file_without_a_time() {
    let mut world = world(&[10, 10, 10]);
    let load = world.planned("load", 4, at(4, 0));
    let report = world.waits("report", 4, &load);
    assert_eq!(expected(&world, &load, at(4, 1)).unwrap().end, at(4, 11), "it is about to be asked");
    world.happens(&load, at(4, 1), SlotEvent::Looked { explanation: missing(at(4, 1)) });
    assert_eq!(expected(&world, &load, at(4, 10)), None);
    assert_eq!(expected(&world, &report, at(4, 10)), None);
}

#[test]
fn past_runs_are_compared_with_those_before_them() {
    let world = world(&[10, 12, 14, 13, 40]);
    let past = calibration(&*world.store.reader(), &"load".parse().unwrap(), 100).unwrap();
    let minutes = |length: SignedDuration| length.as_mins();
    let told: Vec<_> = past.iter().map(|one| (minutes(one.expected.median), minutes(one.took))).collect();
    assert_eq!(told, [(12, 13), (13, 40)]);
}

#[test]
fn slots_that_will_be_late_are_found_in_the_order_of_their_deadlines() {
    let mut world = world(&[40, 41, 39]);
    let load = world.running("load", 4, 0);
    let report = world.waits("report", 4, &load);
    let ahead = |world: &World, now| late_ahead(&*world.store.reader(), now).unwrap();
    let found = ahead(&world, at(4, 10));
    assert!(!found.is_partial);
    let rows: Vec<_> = found.rows.iter().map(|row| (&row.slot, row.deadline, &row.expected.decided_by)).collect();
    assert_eq!(rows, [(&report, at(4, 30), &load)]);
    // A slot that is late already is not told ahead, and neither is one that was done in time.
    assert_eq!(ahead(&world, at(4, 30)).rows, []);
    world.succeeds(&load, at(4, 12));
    assert_eq!(ahead(&world, at(4, 13)).rows, []);
}

#[test]
fn neither_a_backfill_of_a_year_nor_thousands_of_older_slots_hide_one_that_will_be_late() {
    let behind = WorkflowRow { planned: backlog(8_760, Some("year")), ..row("a", |_| {}) };
    let mut world = world_beside(vec![behind, row("b", |_| {})], &[40, 41, 39]);
    world.puts_waiting("b", 6_000);
    let load = world.running("load", 4, 0);
    let report = world.waits("report", 4, &load);
    let found = late_ahead(&*world.store.reader(), at(4, 10)).unwrap();
    assert_eq!(found.rows.iter().map(|row| &row.slot).collect::<Vec<_>>(), [&report]);
    assert!(!found.is_partial);
}

#[test]
fn of_too_many_slots_with_a_deadline_those_with_the_earliest_are_expected() {
    let mut world =
        world_beside(vec![row("b", |one| one.deadline = Some(Deadline::After(5 * 366 * 86_400)))], &[40, 41, 39]);
    world.puts_waiting("b", 1_500);
    let load = world.running("load", 4, 0);
    let report = world.waits("report", 4, &load);
    let found = late_ahead(&*world.store.reader(), at(4, 10)).unwrap();
    assert_eq!(found.rows.iter().map(|row| &row.slot).collect::<Vec<_>>(), [&report]);
    assert!(found.is_partial);
}
