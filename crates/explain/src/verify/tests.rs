use kelos_model::history::Trim;
use kelos_model::{
    Actor, Answer, Finding, Reason, ReasonKind, Slot, SlotEvent, SlotKey, SlotRef, SlotState, StepKey, StepName,
};
use kelos_store::{SlotRow, StoredState};

use super::{verify, verify_last_turns};
use crate::account;
use crate::world::{World, at, row};

fn step_of(run: &SlotRef, name: &str) -> SlotRef {
    let step = StepKey::new(&run.key, &StepName::new(name).unwrap()).unwrap();
    SlotRef::new(run.workflow.clone(), SlotKey::Step(step))
}

#[test]
fn steps_are_folded_and_those_that_the_log_does_not_know_are_named() {
    let mut world = World::new(vec![row("flow", |_| {}), row("other", |_| {})]);
    world.planned("other", 1, at(1, 0));
    let run = world.planned("flow", 1, at(1, 0));
    let explanation = Reason::leaf(ReasonKind::Always, Answer::Met, Finding::Always);
    world.happens(&run, at(1, 0), SlotEvent::TriggerMet { explanation });
    world.happens(&run, at(1, 0), SlotEvent::Pinned { definition: 1 });
    world.runs(&run, at(1, 1));
    let step = step_of(&run, "load");
    world.happens(&step, at(1, 2), SlotEvent::StepOpened { run: 1, awaits: Vec::new(), priority: 0 });
    world.happens(&step, at(1, 2), SlotEvent::StepReady { inputs: serde_json::Map::new() });
    world.runs(&step, at(1, 2));
    world.succeeds(&step, at(1, 3));
    let verified = verify(&*world.store.reader(), 9).unwrap();
    assert_eq!((verified.slots, verified.disagreements), (3, Vec::new()));

    let stranger = step_of(&run, "stranger");
    let slot = Slot { last_event: 3, ..Slot::new(SlotState::Succeeded, at(1, 4)) };
    world.puts(SlotRow { id: stranger.clone(), slot });
    let disagreements = verify(&*world.store.reader(), 9).unwrap().disagreements;
    assert_eq!(disagreements.len(), 1, "{disagreements:?}");
    assert_eq!(disagreements[0].slot, Some(stranger));
}

#[test]
fn the_last_turns_are_verified_alone() {
    let mut world = World::new(vec![row("w", |_| {})]);
    (1..=5).for_each(|hour| drop(world.planned("w", hour, at(1, 0))));
    let reader = world.store.reader();
    let all = verify(&*reader, 9).unwrap();
    let last = verify_last_turns(&*reader, 3, 9).unwrap();
    assert_eq!((last.turns, last.events, last.slots, last.disagreements), (3, 3, 0, Vec::new()));
    // More than there are, which begins with the first one.
    let every = verify_last_turns(&*reader, 1000, 9).unwrap();
    assert_eq!((every.turns, every.events), (all.turns, all.events));
    assert_eq!(every.disagreements, Vec::new());
}

#[test]
fn what_is_left_of_a_history_agrees_and_is_explained() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let (first, second) = (world.fails("w", 1), world.fails("w", 2));
    world.trims(Trim::of(6, (1..=5).collect()));
    let told = |world: &World, slot: &SlotRef, moment| {
        account::read(&*world.store.reader(), slot, moment, false, None).unwrap()
    };
    let verified = verify(&*world.store.reader(), 9).unwrap();
    // The sixth turn vouches for those before it; the five of the second slot and the removal are verified.
    assert_eq!((verified.turns, verified.events, verified.slots), (6, 5, 1));
    assert_eq!(verified.disagreements, Vec::new());
    let known = told(&world, &first, at(9, 0));
    assert_eq!((known.state, known.since), (Some(SlotState::Failed), Some(at(1, 4))));
    assert_eq!(
        known.headline,
        "failed since 2016-01-01T01:04Z; how it came to that was removed with the history up to 1970-01-01T00:00Z"
    );
    let unknown = told(&world, &first, at(1, 2));
    assert_eq!(unknown.state, None);
    assert_eq!(
        unknown.headline,
        "what it was then is not known any more: the history up to 1970-01-01T00:00Z was removed"
    );
    assert_eq!(told(&world, &second, at(2, 2)).state, Some(SlotState::Running));

    let reopened = SlotEvent::Reopened { by: Actor::person("me"), reason: None, backfill: None, priority: 0 };
    world.happens(&first, at(9, 0), reopened);
    assert_eq!(verify(&*world.store.reader(), 9).unwrap().disagreements, Vec::new());
    assert_eq!(told(&world, &first, at(9, 1)).state, Some(SlotState::Waiting));
    assert_eq!(told(&world, &first, at(8, 0)).state, None, "its row is of later");
}

#[test]
fn a_slot_whose_history_is_there_is_still_held_against_it() {
    let mut world = World::new(vec![row("w", |_| {})]);
    world.fails("w", 1);
    let second = world.fails("w", 2);
    world.trims(Trim::of(6, (1..=5).collect()));
    let slot = Slot { last_event: 10, ..Slot::new(SlotState::Succeeded, at(2, 4)) };
    world.puts(SlotRow { id: second.clone(), slot });
    let disagreements = verify(&*world.store.reader(), 9).unwrap().disagreements;
    assert_eq!((disagreements.len(), disagreements[0].slot.as_ref()), (1, Some(&second)));
}
