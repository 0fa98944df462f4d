//! Each turn has a record, and the records form a chain.

use crate::{Commit, Digest, EventFilter, Lease, PageRequest, Queries, TurnRecord};
use kelos_model::{Actor, Outcome, SlotEvent};
use serde_json::json;

use super::Place;
use super::walk;
use super::world::{World, explanation, hour, lead, slot_at};

/// A world with the events of one run in its turn.
fn ran(world: &mut World, hours: i64) -> Commit {
    world.run_to(&slot_at("a", hours), Outcome::Succeeded);
    Commit { at: hour(hours), ..world.take() }
}

/// Checks the records against each other and against their events; returns them.
#[track_caller]
fn chained(reader: &dyn Queries) -> Vec<TurnRecord> {
    let turns = walk::turns(reader, 2);
    let mut before: Option<&TurnRecord> = None;
    for turn in &turns {
        assert!(turn.follows(before), "{turn:?} after {before:?}");
        let digest = before.map_or_else(Digest::default, |before| before.digest);
        let counted = reader.recount(turn, &digest).unwrap();
        assert_eq!((counted.digest, counted.missing), (turn.digest, None), "{turn:?}");
        before = Some(turn);
    }
    assert_eq!(before.map_or(0, TurnRecord::last_event), reader.last_seq().unwrap());
    turns
}

pub(super) fn turns_are_numbered_and_chained(place: &mut dyn Place) {
    let mut store = place.open();
    assert_eq!(store.restore().unwrap().last_turn, None);
    assert_eq!(walk::turns(&*store.reader(), 9), []);
    let lease = lead(&mut *store);
    let mut world = World::default();
    let mut expected = Vec::new();
    for hours in 0..7 {
        let mut commit = ran(&mut world, hours);
        if hours == 4 {
            // A turn without events is a turn like any other.
            let set = ("b".to_owned(), "k".to_owned(), Some(json!(1)));
            store.commit(lease, &Commit { at: hour(4), registers: vec![set], ..Commit::default() }).unwrap();
            expected.push((5, hour(4), 21, 0));
            commit.at = hour(4);
        }
        store.commit(lease, &commit).unwrap();
        expected.push((expected.len() as u64 + 1, commit.at, hours as u64 * 5 + 1, 5));
        store.commit(lease, &Commit { at: hour(9), ..Commit::default() }).unwrap();
    }
    let turns = chained(&*store.reader());
    let told = turns.iter().map(|turn| (turn.turn, turn.at, turn.first_event, turn.events));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(turns.iter().all(|turn| turn.epoch == lease.epoch && turn.body == 2 && !turn.is_opening()));
    assert_eq!(store.restore().unwrap().last_turn, turns.last().copied());
    let page = store.reader().turns(PageRequest::oldest(1).after(Some("6"))).unwrap();
    assert_eq!((page.rows, page.next), (vec![turns[6]], Some("7".to_owned())));
    assert_eq!(store.reader().turns(PageRequest::oldest(1).after(Some("8"))).unwrap().rows, []);
}

/// Two histories that differ in one word of one event, or only in a moment, have different digests from there on.
pub(super) fn digests_tell_histories_apart(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    store.commit(lease, &ran(&mut world, 0)).unwrap();
    store.commit(lease, &ran(&mut world, 1)).unwrap();
    let [first, second] = chained(&*store.reader())[..] else { panic!("two turns") };
    let reader = store.reader();
    let again = |turn: TurnRecord, before: &Digest| reader.recount(&turn, before).unwrap().digest;
    assert_eq!(again(second, &first.digest), second.digest);
    assert_ne!(again(second, &Digest::default()), second.digest);
    for other in [
        TurnRecord { turn: 3, ..second },
        TurnRecord { epoch: second.epoch + 1, ..second },
        TurnRecord { at: hour(2), ..second },
        TurnRecord { first_event: 7, ..second },
        TurnRecord { events: 4, ..second },
        TurnRecord { body: 1, ..second },
    ] {
        assert_ne!(again(other, &first.digest), second.digest, "{other:?}");
    }
    let beyond = TurnRecord { events: 9, ..second };
    assert_eq!(reader.recount(&beyond, &first.digest).unwrap().missing, Some(11));
}

/// The deletions of a turn are in its body; a turn that deletes nothing has the body of version 2.
pub(super) fn a_turn_says_what_it_deletes(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut set = |registers: &[(&str, Option<i64>)]| {
        let one = |(key, value): &(&str, Option<i64>)| ("b".to_owned(), (*key).to_owned(), value.map(|n| json!(n)));
        let registers = registers.iter().map(one).collect();
        store.commit(lease, &Commit { at: hour(1), registers, ..Commit::default() }).unwrap();
    };
    set(&[("k", Some(1)), ("l", Some(1))]);
    // One is set again in the turn that deletes it, one never existed.
    set(&[("m", None), ("k", None), ("l", None), ("l", Some(2))]);
    set(&[("k", Some(1)), ("n", Some(1)), ("n", None)]);
    set(&[("k", Some(2))]);
    drop(store);
    let reader = place.open().reader();
    let turns = chained(&*reader);
    let deleted = |turn: &TurnRecord| reader.recount(turn, &Digest::default()).unwrap().deletions.registers;
    let keys = |turn: &TurnRecord| deleted(turn).into_iter().map(|(_, key)| key).collect::<Vec<_>>();
    assert_eq!(turns.iter().map(keys).collect::<Vec<_>>(), [vec![], vec!["k", "m"], vec!["n"], vec![]]);
    assert_eq!(turns.iter().map(|turn| turn.body).collect::<Vec<_>>(), [2, 3, 3, 2]);
}

pub(super) fn a_refusal_leaves_no_turn(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    store.commit(lease, &ran(&mut world, 0)).unwrap();
    let commit = ran(&mut world.clone(), 1);
    let mut gap = commit.clone();
    gap.events[0].seq += 1;
    store.commit(lease, &gap).unwrap_err();
    store.commit(Lease { epoch: lease.epoch + 1 }, &commit).unwrap_err();
    assert_eq!(chained(&*store.reader()).len(), 1);
    store.commit(lease, &commit).unwrap();
    assert_eq!(chained(&*store.reader()).len(), 2);
}

pub(super) fn turns_go_on_under_the_next_leader(place: &mut dyn Place) {
    let mut world = World::default();
    let mut epochs = Vec::new();
    for hours in 0..3 {
        let mut store = place.open();
        let lease = lead(&mut *store);
        epochs.push(lease.epoch);
        store.commit(lease, &ran(&mut world, hours)).unwrap();
        if hours == 1 {
            store.release(lease).unwrap();
            // A deposed leader writes no record.
            let late = ran(&mut world.clone(), 9);
            store.commit(lease, &late).unwrap_err();
        }
    }
    let store = place.open();
    let turns = chained(&*store.reader());
    assert!(turns.iter().map(|turn| turn.epoch).eq(epochs));
}

pub(super) fn a_frozen_reader_sees_one_turn(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    store.commit(lease, &ran(&mut world, 0)).unwrap();
    let frozen = store.reader().frozen().unwrap();
    let id = slot_at("a", 0);
    let before = frozen.slot(&id).unwrap();
    let reopened = SlotEvent::Reopened { by: Actor::person("me"), reason: None, priority: 0, backfill: None };
    assert!(world.happen(&id, reopened));
    assert!(world.happen(&id, SlotEvent::TriggerMet { explanation: explanation("ready") }));
    world.define("later", 1);
    world.commit(&mut *store, lease);
    assert_ne!(store.reader().slot(&id).unwrap(), before);
    assert_eq!(frozen.slot(&id).unwrap(), before);
    assert_eq!(chained(&*frozen).len(), 1);
    assert_eq!(frozen.workflows(None).unwrap(), []);
    assert_eq!(frozen.frozen().unwrap().last_seq().unwrap(), 5);
}

/// A watch sees turns, whether they are of the same store or of another one on the same data.
pub(super) fn turns_of_others_are_heard_of(place: &mut dyn Place) {
    let mut leader = place.open();
    let lease = lead(&mut *leader);
    let other = place.open();
    let mut watches = [leader.watch().unwrap(), other.watch().unwrap()];
    let mut all_hear = |expected: u64| {
        for watch in &mut watches {
            // There is no new turn between the two calls.
            assert_eq!((watch.last_turn().unwrap(), watch.last_turn().unwrap()), (expected, expected));
        }
    };
    all_hear(0);
    let mut world = World::default();
    for turn in 1..4 {
        world.plan(&slot_at("a", turn as i64));
        world.commit(&mut *leader, lease);
        all_hear(turn);
    }
    leader.commit(lease, &Commit::default()).unwrap();
    all_hear(3);
    leader.release(lease).unwrap();
    drop(leader);
    all_hear(3);
    let mut next = place.open();
    let lease = lead(&mut *next);
    world.plan(&slot_at("a", 9));
    world.commit(&mut *next, lease);
    all_hear(4);
    assert_eq!(other.reader().events(&EventFilter::default(), PageRequest::newest(1)).unwrap().rows[0].seq, 4);
}
