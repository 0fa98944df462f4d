use jiff::SignedDuration;
use kelos_model::event::{Origin, SlotEvent};
use kelos_model::slot;

use super::*;
use crate::WorkflowFilter;

const ALL: About<'static> = About { only: &None, before: None };

struct World {
    programs: Programs,
    slots: BTreeMap<SlotRef, Slot>,
}

impl World {
    /// A world of schedules that run the program `job`.
    fn new(schedules: &[&str]) -> World {
        let mut programs = Programs::default();
        for schedule in schedules {
            programs.join(&id(schedule), &id("job"), std::iter::empty());
        }
        World { programs, slots: BTreeMap::new() }
    }

    /// Puts a slot into a state; returns the held slots that may run because a run has ended.
    fn put(&mut self, slot: &SlotRef, state: SlotState, run_alive: bool, priority: i32) -> Vec<SlotRef> {
        let before = self.slots.get(slot).cloned();
        let planned = slot::apply(None, &SlotEvent::planned(Origin::Fact, 0), at(0), 1).expect("a new slot");
        let row = before.clone().unwrap_or(planned);
        let after = Slot { state, run_alive, priority, since: slot.key.time().expect("a time"), ..row };
        let woken = self.programs.follow(slot, before.as_ref(), &after);
        self.slots.insert(slot.clone(), after);
        woken.into_iter().collect()
    }

    fn hold(&mut self, slot: &SlotRef, priority: i32) {
        self.put(slot, SlotState::Held, false, priority);
    }

    fn position(&self, slot: &SlotRef) -> HeldPosition {
        HeldPosition::of(&self.slots[slot], slot)
    }

    fn next(&self) -> Option<SlotRef> {
        self.programs.next(&id("job"), &ALL).map(|position| position.slot)
    }
}

fn id(text: &str) -> WorkflowId {
    text.parse().expect("an id")
}

fn at(hour: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour)
}

fn slot(workflow: &str, hour: i64) -> SlotRef {
    SlotRef::at(id(workflow), at(hour))
}

#[test]
fn runs_count_whoever_asked_for_them_from_when_they_are_queued() {
    let mut world = World::new(&["one", "two"]);
    world.put(&slot("one", 1), SlotState::Queued, false, 0);
    world.put(&slot("two", 1), SlotState::Running, true, 0);
    assert_eq!(world.programs.runs(&id("one")), 2);
    assert_eq!(world.programs.runs(&id("two")), 2);
    world.put(&slot("two", 1), SlotState::Succeeded, false, 0);
    assert_eq!(world.programs.runs(&id("job")), 1);
}

#[test]
fn whoever_waits_for_room_is_next_once_there_is_some() {
    let mut world = World::new(&["one"]);
    world.put(&slot("one", 1), SlotState::Running, true, 0);
    for (hour, priority) in [(2, 0), (3, 0), (4, 7)] {
        let held = slot("one", hour);
        world.hold(&held, priority);
        world.programs.await_room(world.position(&held), 1);
    }
    assert_eq!(world.programs.ahead(&slot("one", 3)), Some(2));
    assert_eq!(world.next(), None);
    world.put(&slot("one", 1), SlotState::Failed, false, 0);
    assert_eq!(world.next(), Some(slot("one", 4)));
    assert!(world.programs.has_next(&ALL, |_| true));
    world.programs.leave(&slot("one", 4));
    assert_eq!(world.next(), Some(slot("one", 2)));
}

#[test]
fn a_new_priority_moves_a_slot_in_its_line() {
    let mut world = World::new(&["one"]);
    for hour in [2, 3] {
        world.hold(&slot("one", hour), 0);
        world.programs.await_room(world.position(&slot("one", hour)), 1);
    }
    world.put(&slot("one", 3), SlotState::Held, false, 9);
    world.programs.move_in_line(world.position(&slot("one", 3)));
    assert_eq!(world.next(), Some(slot("one", 3)));
    assert_eq!(world.programs.ahead(&slot("one", 2)), Some(1));
}

#[test]
fn those_who_wait_for_an_end_hear_of_it() {
    let mut world = World::new(&["one", "two"]);
    world.put(&slot("one", 1), SlotState::Running, true, 0);
    world.hold(&slot("two", 2), 0);
    world.programs.await_end(&slot("two", 2));
    assert_eq!(world.put(&slot("one", 1), SlotState::Succeeded, false, 0), [slot("two", 2)]);
}

#[test]
fn a_look_may_be_about_some_workflows_or_about_what_was_held_before() {
    let mut world = World::new(&["one", "two"]);
    for held in [slot("one", 5), slot("two", 6)] {
        world.hold(&held, 0);
        world.programs.wake(world.position(&held));
    }
    let only: WorkflowFilter = Some(std::sync::Arc::new(BTreeSet::from([id("two")])));
    let next = |about| world.programs.next(&id("job"), &about).map(|position| position.slot);
    assert_eq!(next(About { only: &only, before: None }), Some(slot("two", 6)));
    assert_eq!(next(About { only: &None, before: Some(at(5)) }), None);
    assert_eq!(next(About { only: &None, before: Some(at(6)) }), Some(slot("one", 5)));
}

#[test]
fn a_workflow_that_joins_another_program_takes_its_runs_and_its_held_slots_along() {
    let mut world = World::new(&["one", "two"]);
    world.put(&slot("one", 1), SlotState::Running, true, 0);
    world.hold(&slot("one", 2), 0);
    world.programs.await_room(world.position(&slot("one", 2)), 1);
    world.hold(&slot("one", 3), 0);
    world.programs.wake(world.position(&slot("one", 3)));
    world.hold(&slot("two", 4), 0);
    world.programs.await_end(&slot("two", 4));
    let own: Vec<_> = world.slots.iter().filter(|(slot, _)| slot.workflow == id("one")).collect();
    let joined = world.programs.join(&id("one"), &id("other"), own.into_iter().map(|(slot, row)| (slot.clone(), row)));
    assert_eq!(joined, Transfer { left: Some(id("job")), woken: BTreeSet::from([slot("two", 4)]) });
    assert_eq!((world.programs.runs(&id("job")), world.programs.runs(&id("other"))), (0, 1));
    assert_eq!(world.next(), None);
    let next = world.programs.next(&id("other"), &ALL).map(|position| position.slot);
    assert_eq!(next, Some(slot("one", 3)));
    assert_eq!(world.programs.ahead(&slot("one", 2)), None);
}

#[test]
fn how_runs_stood_before_they_changed_is_known_until_the_next_tick() {
    let mut programs = World::new(&["one"]).programs;
    programs.keep_before(&id("one"), at(2), at(1), (3, None));
    programs.keep_before(&id("one"), at(4), at(1), (5, None));
    assert_eq!(programs.runs_before(&id("job"), at(1)), Some((3, None)));
    assert_eq!(programs.runs_before(&id("job"), at(2)), Some((5, None)));
    assert_eq!(programs.runs_before(&id("job"), at(4)), None);
    programs.keep_before(&id("one"), at(5), at(3), (6, None));
    assert_eq!(programs.runs_before(&id("job"), at(1)), Some((5, None)));
}
