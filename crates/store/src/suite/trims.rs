//! History that turns remove.

use kelos_model::history::Trim;
use kelos_model::{Event, Outcome, RunId, SlotEvent, SlotRef};

use super::Place;
use super::facts::{fact, tell};
use super::walk;
use super::world::{Draw, World, hour, lead, named, slot_at};
use crate::{About, Commit, Digest, EventFilter, KnownRun, PageRequest, Queries, RunFilter};

/// A removal of the whole histories of some slots up to a turn, and of some facts, noted in the world; none if the log is too short.
pub(super) fn trim(world: &mut World, draw: &mut Draw, reader: &dyn Queries) -> Option<Trim> {
    let mut turns = walk::turns(reader, 99);
    turns.pop();
    if turns.is_empty() {
        return None;
    }
    let until = turns[draw.below(turns.len())];
    // The last event of the log stays.
    let end = until.last_event().min(world.next_seq().saturating_sub(2));
    let is_left = |seq: &u64| *seq <= end && !world.gone.contains(seq);
    let mut going = Vec::new();
    for (id, slot) in &world.slots {
        let own: Vec<u64> = world.of_slot(id).filter(|seq| !world.gone.contains(seq)).collect();
        let has_ended = world.runs.values().filter(|run| run.id.slot == *id).all(|run| run.state.is_final());
        if has_ended && slot.state.is_final() && own.iter().all(is_left) && draw.below(2) == 0 {
            going.extend(own);
        }
    }
    let outside = world.events.iter().filter(|record| matches!(record.event, Event::Fact { .. }));
    going.extend(outside.map(|record| record.seq).filter(is_left).filter(|_| draw.below(2) == 0));
    world.gone.extend(&going);
    Some(Trim::of(until.turn, going))
}

/// The number in the record of a run, or that it was removed; none if the run is not known.
fn known(reader: &dyn Queries, slot: &SlotRef, number: u32) -> Option<Option<u32>> {
    let found = reader.known_run(&RunId { slot: slot.clone(), number }).unwrap();
    found.map(|found| match found {
        KnownRun::Kept(run) => Some(run.id.number),
        KnownRun::Removed(run) => {
            assert_eq!((&run.id.slot, run.id.number, run.until), (slot, number, Some(hour(3))));
            None
        }
    })
}

/// The slots of the first and the third hour have no history any more; those of the others have it.
fn slots_stay_without_history(reader: &dyn Queries, world: &World) {
    for hours in [0, 2] {
        let id = slot_at("a", hours);
        assert_eq!(reader.slot(&id).unwrap().as_ref(), world.slots.get(&id), "the slot itself stays");
        let (history, runs) = (reader.history(&id).unwrap(), reader.slot_runs(&id).unwrap());
        assert_eq!((&*history, &*runs), (&[][..], &[][..]));
        assert!(reader.lacks_history(&id, &history).unwrap());
        assert_eq!(known(reader, &id, 1), Some(None), "the run is known as one that was removed");
        assert_eq!(known(reader, &id, 2), None, "the slot never had it");
    }
    assert_eq!(known(reader, &slot_at("a", 1), 1), Some(Some(1)));
    assert_eq!((known(reader, &slot_at("a", 1), 0), known(reader, &slot_at("a", 99), 1)), (None, None));
}

pub(super) fn history_is_removed_and_what_is_left_reads_back(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    assert_eq!(store.reader().removed_history().unwrap().turn, 0);
    for hours in 0..5 {
        world.run_to(&slot_at("a", hours), Outcome::Succeeded);
        tell(&mut world, fact("x", Some(&hours.to_string()), 1));
        store.commit(lease, &Commit { at: hour(hours), ..world.take() }).unwrap();
    }
    let before = walk::turns(&*store.reader(), 9);
    // The last turn ends with event 30; the second and the fourth of the slots are kept.
    let positions = (1..=6).chain(13..=18).chain([12, 29, 30, 31]).collect();
    let trim = Trim::of(4, positions);
    store.commit(lease, &Commit { at: hour(9), trim: Some(trim), ..Commit::default() }).unwrap();
    drop(store);

    let mut store = place.open();
    let reader = store.reader();
    let trimmed = reader.removed_history().unwrap();
    assert_eq!((trimmed.turn, trimmed.event, trimmed.at), (4, 24, Some(hour(3))));
    assert_eq!((trimmed.events, trimmed.runs), (13, 2));
    let left: Vec<u64> = walk::events(&*reader, About::Anything, 7).iter().map(|record| record.seq).collect();
    assert_eq!(left, (7..=11).chain(19..=30).collect::<Vec<_>>());
    let turns = walk::turns(&*reader, 2);
    assert_eq!(turns[..3], [before[0], before[3], before[4]]);
    assert_eq!((turns.len(), turns[3].turn, turns[3].body), (4, 6, 3));
    assert_eq!(reader.recount(&turns[2], &turns[1].digest).unwrap().digest, turns[2].digest);
    assert_eq!(reader.recount(&turns[3], &turns[2].digest).unwrap().digest, turns[3].digest);
    assert_eq!(reader.recount(&turns[1], &Digest::default()).unwrap().missing, None, "the fourth slot is whole");

    slots_stay_without_history(&*reader, &world);
    let kept = reader.history(&slot_at("a", 1)).unwrap();
    assert_eq!((kept.len(), reader.lacks_history(&slot_at("a", 1), &kept).unwrap()), (5, false));
    let runs = RunFilter { workflow: Some(named("a")), ..RunFilter::default() };
    let times: Vec<_> = walk::runs(&*reader, &runs, 1).iter().map(|run| run.id.slot.key.clone()).collect();
    assert_eq!(times, [4, 3, 1].map(|hours| slot_at("a", hours).key));
    let names: Vec<_> = (0..5).map(|hours| fact("x", Some(&hours.to_string()), 1).name().unwrap()).collect();
    assert_eq!(store.known_facts(&names).unwrap(), [&names[3..]].concat());
    assert_eq!(reader.damage(9).unwrap(), Vec::<String>::new());

    // A slot goes on after its history was removed, and so does the log.
    let lease = lead(&mut *store);
    let again = slot_at("a", 0);
    let by = kelos_model::Actor::person("me");
    let reopened = SlotEvent::Reopened { by, reason: None, backfill: None, priority: 0 };
    assert!(world.happen(&again, reopened));
    store.commit(lease, &world.take()).unwrap();
    let reader = store.reader();
    let history = reader.history(&again).unwrap();
    assert_eq!((history.len(), history[0].previous), (1, 5));
    assert!(reader.lacks_history(&again, &history).unwrap());
    // What is gone can't go again, and a turn that is not there removes nothing.
    for until in [2, 4, 99] {
        let trim = Some(Trim { until, stretches: vec![(1, 6)] });
        store.commit(lease, &Commit { at: hour(9), trim, ..Commit::default() }).unwrap();
    }
    let trimmed = reader.removed_history().unwrap();
    assert_eq!((trimmed.turn, trimmed.events), (4, 13));
    let page = reader.events(&EventFilter::after(11), PageRequest::oldest(1)).unwrap();
    assert_eq!(page.rows[0].seq, 19);
}
