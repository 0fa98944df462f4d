use kelos_model::{
    Answer, Finding, Reason, ReasonKind, Slot, SlotEvent, SlotKey, SlotRef, SlotState, StepKey, StepName,
};
use kelos_store::{SlotRow, StoredState};

use super::{verify, verify_last_turns};
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
