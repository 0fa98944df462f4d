//! What a memory keeps.

use kelos_model::{Outcome, SlotRef};

use super::world::{World, lead, slot_at, step_of};
use crate::{About, EventFilter, Journal, MemoryStore, PageRequest, SlotFilter, StoredState};

/// The slot of a start under a name.
fn started(number: u32) -> SlotRef {
    format!("a@.order-{number}").parse().expect("the name of a slot")
}

/// A store in which so many starts have ended, one in each turn.
fn filled(starts: u32) -> MemoryStore {
    let mut store = MemoryStore::new();
    let lease = lead(&mut store);
    let mut world = World::default();
    world.define("a", 1);
    for number in 0..starts {
        world.run_to(&started(number), Outcome::Succeeded);
        store.commit(lease, &world.take()).unwrap();
    }
    store
}

#[test]
fn the_slots_that_ended_first_are_forgotten() {
    let mut store = MemoryStore::keeping(10);
    let lease = lead(&mut store);
    let mut world = World::default();
    world.define("a", 1);
    let (live, again, timed) = (started(1000), started(1001), slot_at("a", 0));
    world.plan(&live);
    world.run_to(&timed, Outcome::Succeeded);
    world.run_to(&again, Outcome::Succeeded);
    store.commit(lease, &world.take()).unwrap();
    let step = step_of(&started(0), "load", None);
    world.plan(&step);
    for number in 0..100 {
        world.run_to(&started(number), Outcome::Succeeded);
        store.commit(lease, &world.take()).unwrap();
        if number == 5 {
            // It goes on before it is forgotten.
            let by = kelos_model::Actor::person("me");
            let reopened = kelos_model::SlotEvent::Reopened { by, reason: None, backfill: None, priority: 0 };
            assert!(world.happen(&again, reopened));
        }
    }
    let reader = store.reader();
    for kept in [&live, &again, &timed, &started(99), &started(90)] {
        assert_eq!(reader.slot(kept).unwrap().as_ref(), world.slots.get(kept), "{kept}");
    }
    for gone in [&started(0), &started(50), &step] {
        assert_eq!(reader.slot(gone).unwrap(), None, "{gone}");
        assert_eq!((reader.history(gone).unwrap(), reader.slot_runs(gone).unwrap()), (vec![], vec![]), "{gone}");
    }
    assert_eq!(reader.history(&timed).unwrap(), []);
    assert_eq!(reader.slot_runs(&started(99)).unwrap().len(), 1);
    let slots = reader.slots(&SlotFilter::default(), PageRequest::newest(1000)).unwrap().rows.len();
    assert!(slots < 15, "{slots} slots");
    let events = reader.events(&EventFilter::about(About::Anything), PageRequest::oldest(1000)).unwrap().rows.len();
    assert!(events < 100, "{events} events");
    let turns = reader.turns(PageRequest::oldest(1000)).unwrap().rows;
    assert!(turns.len() < 15, "{} turns", turns.len());
    let known = reader.run_versions(&reader.slot_runs(&started(99)).unwrap()).unwrap();
    assert!(known[0].is_some(), "the definition is still known");
    // The log goes on, and a new leader finds what is live.
    let found: Vec<SlotRef> = store.restore().unwrap().slots.into_iter().map(|row| row.id).collect();
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Each read would go through all runs without an index, which takes minutes here.
#[test]
fn the_ends_of_many_slots_are_found() {
    let store = filled(20_000);
    let reader = store.reader();
    for number in 0..20_000 {
        let runs = reader.slot_runs(&started(number)).unwrap();
        assert_eq!(runs.len(), 1);
        assert!(reader.run_versions(&runs).unwrap()[0].is_some());
    }
}
