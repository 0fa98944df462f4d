//! Facts: keyed once, paged, written with their consequences; and the facts that slots and workflows keep.

use crate::{About, EventFilter, Journal, Lease, PENDING, PageRequest, SlotFilter, StoreError};
use kelos_model::workflow::{LastRun, Moments};
use kelos_model::{
    Actor, Breach, Event, EventRecord, Fact, FactKey, Freeze, Invariant, Occurrence, Outcome, PoolId, RunId, SlotEvent,
    SlotState, WorkflowEvent,
};
use serde_json::json;

use super::Place;
use super::walk::{self, same};
use super::world::{Draw, World, hour, lead, named, slot_at, workflow};

/// A fact of one of two sources.
pub(super) fn fact(source: &str, key: Option<&str>, count: u32) -> Fact {
    let what = Occurrence::Partitions { dataset: "ds Ñ".into(), count, keys: vec![format!("p{count}")] };
    Fact { source: source.into(), key: key.map(Into::into), what }
}

fn name(source: &str, key: &str) -> FactKey {
    FactKey { source: source.into(), about: "partition:ds Ñ".into(), key: key.into() }
}

/// Publishes a fact in the turn.
pub(super) fn tell(world: &mut World, fact: Fact) {
    let (seq, name) = (world.next_seq(), fact.name());
    world.turn.facts.extend(name.map(|name| (name, seq)));
    world.log(Event::Fact { fact, by: Some(Actor::system("watch")) }, 0);
}

fn is_fact(record: &&EventRecord) -> bool {
    matches!(record.event, Event::Fact { .. })
}

pub(super) fn facts_are_paged(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    assert_eq!(walk::events(&*store.reader(), About::Facts, 9), []);
    let (mut world, mut draw) = (World::default(), Draw::new(11));
    for turn in 0..40_u32 {
        world.run_to(&slot_at("a", i64::from(turn)), Outcome::Succeeded);
        let what = WorkflowEvent::Paused { by: Actor::person("me"), reason: None };
        world.log(Event::Workflow { workflow: named("a"), what }, 0);
        // The row of an event that is neither a fact nor about a workflow may be longer than a page.
        for _ in 0..draw.below(5) {
            let register =
                Event::Register { bucket: "b".to_owned(), key: "k".to_owned(), value: None, by: None, reason: None };
            world.log(register, 0);
        }
        for number in 0..u32::try_from(draw.below(4)).unwrap() {
            tell(&mut world, fact("x", Some(&format!("{turn}/{number}")), number));
        }
        world.commit(&mut *store, lease);
    }
    let expected: Vec<EventRecord> = world.events.iter().filter(is_fact).cloned().collect();
    for limit in [1, 2, 7, 100, 10_000] {
        same(&walk::events(&*store.reader(), About::Facts, limit), &expected, format_args!("facts by {limit}"));
    }
    let of_a = |record: &&EventRecord| matches!(&record.event, Event::Workflow { .. });
    let expected: Vec<EventRecord> = world.events.iter().filter(of_a).cloned().collect();
    for limit in [1, 7, 100] {
        same(
            &walk::events(&*store.reader(), About::WorkflowItself(named("a")), limit),
            &expected,
            format_args!("by {limit}"),
        );
    }
    assert_eq!(walk::events(&*store.reader(), About::WorkflowItself(named("b")), 9), []);
    let nonsense =
        store.reader().events(&EventFilter::about(About::Facts), PageRequest::newest(3).after(Some("nonsense")));
    assert!(matches!(nonsense, Err(StoreError::Cursor { .. })), "{nonsense:?}");
}

/// The keys that the store knows already.
fn known(store: &mut dyn Journal, keys: &[(&str, &str)]) -> Vec<FactKey> {
    let asked: Vec<FactKey> = keys.iter().map(|(source, key)| name(source, key)).collect();
    store.known_facts(&asked).unwrap()
}

pub(super) fn a_name_is_written_once(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let asked = [("x", "1"), ("y", "1"), ("", ""), ("x", "2"), ("x", "a 'quoted' ü")];
    assert_eq!(known(&mut *store, &asked), []);
    let mut world = World::default();
    for key in [Some("1"), None, Some("a 'quoted' ü"), None] {
        tell(&mut world, fact("x", key, 1));
    }
    tell(&mut world, fact("", Some(""), 0));
    world.commit(&mut *store, lease);
    let expected = [name("x", "1"), name("", ""), name("x", "a 'quoted' ü")];
    assert_eq!(known(&mut *store, &asked), expected, "in the order of the question");
    told_again(&world, &mut *store, lease);
    drop(store);
    let mut store = place.open();
    assert_eq!(known(&mut *store, &asked), expected, "also after it was opened again");
    same(&walk::events(&*store.reader(), About::Anything, 7), &world.events, "the log");
}

/// A turn with a known idempotency key is refused as a whole, and so is one with the same key twice.
fn told_again(world: &World, store: &mut dyn Journal, lease: Lease) {
    for keys in [["1", "3"], ["3", "1"], ["3", "3"]] {
        let mut lost = world.clone();
        keys.iter().for_each(|key| tell(&mut lost, fact("x", Some(key), 1)));
        lost.plan(&slot_at("lost", 1));
        let outcome = store.commit(lease, &lost.take());
        assert!(matches!(outcome, Err(StoreError::Corrupt { .. })), "a name twice: {outcome:?}");
        assert_eq!(known(store, &[("x", "3")]), []);
        assert_eq!(store.reader().slot(&slot_at("lost", 1)).unwrap(), None);
        assert_eq!(store.reader().last_seq().unwrap(), world.events.len() as u64);
    }
}

/// A turn that is refused for another reason leaves no key either.
pub(super) fn a_fact_is_written_with_what_it_leads_to(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let told = fact("x", Some("1"), 2);
    let slot = slot_at("a", 0);
    world.plan(&slot);
    tell(&mut world, told.clone());
    assert!(world.happen(&slot, SlotEvent::Collected { what: told.what.brief(), fact: Some(2) }));
    let turn = world.take();
    let mut gap = turn.clone();
    gap.events[2].seq += 1;
    for (lease, turn) in [(Lease { epoch: lease.epoch + 1 }, &turn), (lease, &gap)] {
        assert!(store.commit(lease, turn).is_err());
        assert_eq!(known(&mut *store, &[("x", "1")]), []);
        assert_eq!(walk::events(&*store.reader(), About::Facts, 9), []);
    }
    store.commit(lease, &turn).unwrap();
    assert_eq!(known(&mut *store, &[("x", "1")]), [name("x", "1")]);
    assert_eq!(store.reader().slot(&slot).unwrap().as_ref(), world.slots.get(&slot));
    assert_eq!(walk::events(&*store.reader(), About::Facts, 9).len(), 1);
}

fn all_kinds() -> [Occurrence; 4] {
    [
        Occurrence::Partitions { dataset: "ns:ds".into(), count: 3, keys: Vec::new() },
        Occurrence::Ended {
            program: named("Purchase.Loader"),
            state: SlotState::Succeeded,
            run: Some("a@1#2".to_owned()),
            arguments: [("in".to_owned(), "\"ü\"".into()), ("n".to_owned(), 3.into())].into(),
            outputs: json!({"rows": 12, "deep": [{"b": null, "a": 0.5}]}).as_object().cloned().unwrap_or_default(),
        },
        Occurrence::Fired { cron: "0 4 * * *".into(), time: hour(4) },
        Occurrence::Signal { name: "go".into(), payload: json!({"why": ["not"]}), run: None },
    ]
}

pub(super) fn what_is_collected_reads_back(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let (waiting, gone) = (slot_at("a", 0), slot_at("a", 1));
    for slot in [&waiting, &gone] {
        world.plan(slot);
        for what in all_kinds() {
            assert!(world.happen(slot, SlotEvent::Collected { what, fact: None }));
        }
        world.commit(&mut *store, lease);
    }
    world.run_to(&gone, Outcome::Succeeded);
    let mut row = workflow("a", 1);
    let last_run = Some(LastRun { seq: 7, started: hour(3) });
    row.moments = Moments {
        resumed: Some(hour(5)),
        started_until: Some(hour(6)),
        gave: Some(hour(8)),
        spent: [(PoolId::new("crm").expect("a name"), hour(7))].into(),
        updated: Some(hour(1)),
        fired_until: Some(hour(2)),
        fired: [("0 4 * * *".into(), hour(2))].into(),
        last_run,
        frozen: Some(Freeze {
            at: hour(4),
            breach: Breach::of_slot(Invariant::EventFits, &waiting),
            set_aside: [RunId { slot: waiting.clone(), number: 3 }].into(),
        }),
    };
    world.turn.workflows.push(row.clone());
    world.commit(&mut *store, lease);
    drop(store);
    let mut store = place.open();
    let snapshot = store.restore().unwrap();
    let live: Vec<_> = snapshot.slots.iter().map(|row| (&row.id, &row.slot)).collect();
    assert_eq!(live, [(&waiting, &world.slots[&waiting])]);
    assert_eq!(world.slots[&waiting].collected.as_ref().map(|collected| collected.tallies.len()), Some(4));
    assert_eq!(store.reader().slot(&gone).unwrap().as_ref(), world.slots.get(&gone));
    // Pending slots have collected facts, and neither run nor have ended.
    let lease = lead(&mut *store);
    let later = slot_at("a", 2);
    world.plan(&later);
    world.plan(&slot_at("a", 3));
    assert!(world.happen(&later, SlotEvent::Collected { what: all_kinds()[0].clone(), fact: None }));
    world.commit(&mut *store, lease);
    let pending = |limit| {
        let filter = SlotFilter {
            workflow: Some(named("a")),
            states: PENDING.to_vec(),
            collecting: true,
            ..SlotFilter::default()
        };
        let page = store.reader().slots(&filter, PageRequest::newest(limit)).unwrap();
        page.rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!((pending(9), pending(1)), (vec![later.clone(), waiting], vec![later]));
    assert_eq!(snapshot.workflows, [row]);
}
