//! Written rows are read back, all of a turn or nothing.

use crate::cursor::is_listed_in;
use crate::{
    About, BackfillFilter, EventFilter, Journal, PageRequest, Queries, Register, RegisterKeys, RunFilter, SlotFilter,
    Snapshot, StoreError,
};
use kelos_model::Recall;
use kelos_model::backfill::{Backfill, BackfillMode, Pause};
use kelos_model::event::{BackfillEvent, Origin};
use kelos_model::ranges::Range;
use kelos_model::{
    Actor, ActorKind, BackfillId, Event, Finding, Outcome, RunName, RunState, SlotEvent, SlotKey, SlotRef, SlotState,
    WorkflowEvent,
};
use serde_json::{Value, json};

use super::Place;
use super::walk::{self, same};
use super::world::{World, explanation, hour, lead, named, slot_at, workflow};

pub(super) fn an_empty_store_answers(place: &mut dyn Place) {
    let mut store = place.open();
    let snapshot = store.restore().unwrap();
    assert_eq!((snapshot.last_seq, snapshot.last_at), (0, None));
    assert!(snapshot.workflows.is_empty() && snapshot.slots.is_empty() && snapshot.runs.is_empty());
    let reader = store.reader();
    assert_eq!(reader.workflows(None).unwrap(), []);
    assert_eq!(reader.workflow(&named("a")).unwrap(), None);
    assert_eq!(reader.definitions(&named("a"), None).unwrap(), []);
    assert_eq!(reader.slot(&slot_at("a", 0)).unwrap(), None);
    assert_eq!(reader.history(&slot_at("a", 0)).unwrap(), []);
    assert_eq!(reader.slot_runs(&slot_at("a", 0)).unwrap(), []);
    assert_eq!(reader.register("b", "k").unwrap(), None);
    assert_eq!(walk::slots(&*reader, &SlotFilter::default(), 9), []);
    assert_eq!(walk::slots(&*reader, &SlotFilter { workflow: Some(named("a")), ..SlotFilter::default() }, 9), []);
    assert_eq!(walk::runs(&*reader, &RunFilter::default(), 9), []);
    assert_eq!(walk::events(&*reader, About::Anything, 9), []);
    assert!(reader.slot_counts(&SlotFilter::default()).unwrap().is_empty());
    assert!(reader.backfills(&BackfillFilter::default()).unwrap().is_empty());
    assert_eq!(reader.backfill(&BackfillId::new("b").unwrap()).unwrap(), None);
    let lease = lead(&mut *store);
    store.commit(lease, &crate::Commit::default()).unwrap();
    assert_eq!(reader.last_seq().unwrap(), 0);
}

/// A world with every kind of row, including strange names and early times.
fn varied() -> World {
    let mut world = World::default();
    let outcomes = [
        Outcome::Succeeded,
        Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None },
        Outcome::refused("no such \"thing\"".to_owned()),
        Outcome::Killed,
        Outcome::Unknown { reason: "nobody\nsaw it".to_owned() },
    ];
    for (index, name) in ["plain", "..", "a b@c", "Iñtërnâtiônàlizætiøn"].into_iter().enumerate() {
        world.define(name, 1);
        for (number, outcome) in outcomes.iter().enumerate() {
            world.run_to(&slot_at(name, number as i64 * 3 - 6), outcome.clone());
        }
        live_slots(&mut world, name, 100 + 10 * index as i64);
        // Before 1970, and the first and last times that a schedule may give.
        world.plan(&slot_at(name, -700_000));
        world.plan(&slot_at(name, 1_600_000));
        world.log(
            Event::Workflow {
                workflow: named(name),
                what: WorkflowEvent::Paused { by: Actor::person("me"), reason: None },
            },
            0,
        );
    }
    // A key of each kind: a time and a moment that are equal, and a job whose id is the text that is stored for a moment.
    let run = SlotKey::Named(RunName::new("order-42").unwrap());
    for (name, key) in [
        ("moments", SlotKey::Moment(hour(0))),
        ("moments", SlotKey::Time(hour(0))),
        ("jobs", SlotKey::Job("_".into())),
        ("flows", run),
    ] {
        world.run_to(&SlotRef::new(named(name), key), Outcome::Succeeded);
    }
    backfilled(&mut world);
    for (key, value) in
        [("null", Value::Null), ("float", json!(0.1 + 0.2)), ("deep", json!({"b": [1, {"a": "ü"}], "a": -1}))]
    {
        let (bucket, key) = ("bucket".to_owned(), key.to_owned());
        // In an event, null can't be told from a deletion.
        let logged = Some(value.clone()).filter(|value| !value.is_null());
        world.log(
            Event::Register {
                bucket: bucket.clone(),
                key: key.clone(),
                value: logged,
                by: Some(Actor::unknown("who")),
                reason: None,
            },
            0,
        );
        world.turn.registers.push((bucket, key, Some(value)));
    }
    world
}

fn live_slots(world: &mut World, name: &str, from: i64) {
    let id = |hours: i64| slot_at(name, from + hours);
    let mut looked = explanation("waits");
    looked.nested.push(explanation("deep"));
    looked.finding = Finding::DelayUntil { now: hour(1), until: hour(2) };
    world.plan(&id(0));
    world.happen(&id(0), SlotEvent::Looked { explanation: looked.clone() });
    world.plan(&id(1));
    world.happen(&id(1), SlotEvent::Expired { timeout_seconds: 9, explanation: looked });
    world.plan(&id(2));
    world.happen(&id(2), SlotEvent::Skipped { explanation: explanation("never") });
    for hours in 3..7 {
        world.plan(&id(hours));
        world.happen(&id(hours), SlotEvent::TriggerMet { explanation: explanation("ready") });
    }
    for hours in 4..7 {
        world.happen(&id(hours), SlotEvent::Dispatched { run: 1, worker: None, batch: None });
    }
    world.happen(&id(5), SlotEvent::Started { run: 1, external_id: "job_1".to_owned() });
    let outcome = Outcome::Unknown { reason: "?".to_owned() };
    world.happen(&id(6), SlotEvent::BackedOff { run: 1, outcome, due: hour(500), again: 1 });
    // Killed while its run is live: the slot is final, and live.
    world.plan(&id(7));
    world.happen(&id(7), SlotEvent::TriggerMet { explanation: explanation("ready") });
    world.happen(&id(7), SlotEvent::Dispatched { run: 1, worker: None, batch: None });
    world.happen(&id(7), SlotEvent::Killed { by: Actor::person("me"), reason: Some("why not".to_owned()) });
    // Two runs of one slot.
    world.run_to(&id(8), Outcome::Killed);
    world.happen(&id(8), SlotEvent::Reopened { by: Actor::person("me"), reason: None, priority: -5, backfill: None });
    world.run_to(&id(8), Outcome::Succeeded);
}

fn backfilled(world: &mut World) {
    for (name, mode) in [("b1", BackfillMode::Missing), ("b2", BackfillMode::Unsuccessful), ("b3", BackfillMode::All)] {
        let id = BackfillId::new(name).unwrap();
        let range = Range::new(hour(-20), hour(20));
        let created_at = world.now();
        let by = Actor { credential: Some("t-7".into()), ..Actor::new(ActorKind::Token, "nightly") }
            .with_address("2001:db8::7".parse().ok());
        let reason = (name == "b1").then(|| "why \"not\"".to_owned());
        let created = BackfillEvent::Created {
            workflow: named("plain"),
            range,
            mode,
            priority: 7,
            by: by.clone(),
            slots: 2,
            reason: reason.clone(),
            made_by: (name == "b3").then(|| "1.4".parse().unwrap()),
        };
        world.log(Event::Backfill { backfill: id.clone(), what: created }, 0);
        let cancelled_at = (name == "b2").then(|| world.now());
        let workflow = named("plain");
        world.turn.backfills.push(Backfill {
            id: id.clone(),
            workflow,
            range,
            mode,
            priority: 7,
            by,
            created_at,
            cancelled_at,
            slots: 2,
            reason,
            paused: (name == "b1").then(|| Pause { at: created_at, by: Actor::unknown("Ñ") }),
            resumed_at: (name == "b3").then_some(created_at),
        });
        for hours in [700, 701] {
            let id_of_slot = slot_at("plain", hours + if name == "b3" { 9 } else { 0 });
            let planned = SlotEvent::Planned {
                origin: Origin::Backfill,
                priority: 7,
                backfill: Some(id.clone()),
                by: None,
                reason: None,
            };
            let adopted = SlotEvent::Prioritised { priority: 8, backfill: id.clone(), by: None, reason: None };
            assert!(world.happen(&id_of_slot, planned) || world.happen(&id_of_slot, adopted));
        }
    }
}

/// Compares all answers of a store with the world.
pub(super) fn holds(world: &World, store: &mut dyn Journal) {
    let reader = store.reader();
    holds_for_reader(world, &*reader);
    let Snapshot { last_seq, last_at, last_turn, workflows, mut slots, mut runs, backfills } = store.restore().unwrap();
    assert_eq!(backfills.len(), reader.backfills(&BackfillFilter::default()).unwrap().len());
    assert!(backfills.iter().all(|one| reader.backfill(&one.id).unwrap().as_ref() == Some(one)));
    assert_eq!(last_seq, world.events.len() as u64);
    assert_eq!(last_at, world.events.last().map(|record| record.at));
    assert_eq!(last_turn.map_or(0, |turn| turn.last_event()), last_seq);
    assert_eq!(workflows, reader.workflows(None).unwrap());
    slots.sort_by(|a, b| a.id.cmp(&b.id));
    let live = world.slots.iter().filter(|(_, slot)| slot.is_live());
    assert!(slots.iter().map(|row| (&row.id, &row.slot)).eq(live));
    runs.sort_by_key(|run| run.seq);
    assert!(runs.iter().eq(world.runs.values().filter(|run| !run.state.is_final())));
}

fn holds_for_reader(world: &World, reader: &dyn Queries) {
    assert_eq!(reader.last_seq().unwrap(), world.events.len() as u64);
    same(&walk::events(reader, About::Anything, 7), &world.events, "the log");
    same(&walk::slots(reader, &SlotFilter::default(), 1000), &world.listed(), "all slots");
    for with_steps in [false, true] {
        let filter = RunFilter { with_steps, ..RunFilter::default() };
        let runs = world.runs.values().rev().filter(|run| with_steps || run.id.slot.key.step().is_none());
        assert!(walk::runs(reader, &filter, 1000).iter().eq(runs));
    }
    for (id, slot) in &world.slots {
        assert_eq!(reader.slot(id).unwrap().as_ref(), Some(slot));
        let of_slot = |event: &Event| matches!(event, Event::Slot { slot, .. } if slot == id);
        let history = world.events.iter().filter(|record| of_slot(&record.event));
        let history: Vec<_> = history.collect();
        assert!(reader.history(id).unwrap().iter().eq(history.iter().copied()), "the history of {id}");
        let latest = reader.events(&EventFilter::about(About::Slot(id.clone())), PageRequest::newest(2)).unwrap();
        assert!(latest.rows.iter().eq(history.iter().rev().take(2).copied()), "the newest events of {id}");
        let runs = world.runs.values().filter(|run| run.id.slot == *id);
        assert!(reader.slot_runs(id).unwrap().iter().eq(runs), "the runs of {id}");
    }
}

pub(super) fn every_row_reads_back(place: &mut dyn Place) {
    let mut world = varied();
    let states = world.slots.values().map(|slot| slot.state).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(states.len(), SlotState::ALL.len() - 1, "all but held, which nothing leads to: {states:?}");
    assert!(RunState::ALL.iter().all(|state| world.runs.values().any(|run| run.state == *state)));

    let mut store = place.open();
    let lease = lead(&mut *store);
    let commit = world.take();
    store.commit(lease, &commit).unwrap();
    let check = |store: &mut dyn Journal| {
        holds(&world, store);
        let reader = store.reader();
        for row in &commit.workflows {
            assert_eq!(reader.workflow(&row.id).unwrap().as_ref(), Some(row));
        }
        assert!(reader.backfills(&BackfillFilter::default()).unwrap().iter().eq(commit.backfills.iter().rev()));
        for (bucket, key, value) in &commit.registers {
            assert_eq!(reader.register(bucket, key).unwrap(), *value);
        }
    };
    check(&mut *store);
    drop(store);
    let mut store = place.open();
    check(&mut *store);

    // The next leader continues.
    let lease = lead(&mut *store);
    world.run_to(&slot_at("plain", 900), Outcome::Succeeded);
    world.happen(&slot_at("plain", 107), SlotEvent::RunEnded { run: 1, outcome: Outcome::Killed });
    world.commit(&mut *store, lease);
    holds(&world, &mut *store);
}

pub(super) fn a_turn_that_is_refused_leaves_nothing(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    world.define("a", 1);
    world.run_to(&slot_at("a", 0), Outcome::Succeeded);
    world.commit(&mut *store, lease);

    for (first, gap) in [(0, 1), (1, 0), (5, 5)] {
        let mut lost = world.clone();
        lost.define("lost", 1);
        lost.run_to(&slot_at("lost", 1), Outcome::Killed);
        lost.turn.registers.push(("b".to_owned(), "k".to_owned(), Some(json!(1))));
        let mut turn = lost.take();
        turn.events[0].seq -= first;
        turn.events.last_mut().unwrap().seq += gap;
        let outcome = store.commit(lease, &turn);
        assert!(matches!(outcome, Err(StoreError::Corrupt { .. })), "events that don't follow: {outcome:?}");
        holds(&world, &mut *store);
        assert_eq!(store.reader().workflow(&named("lost")).unwrap(), None);
        assert_eq!(store.reader().register("b", "k").unwrap(), None);
    }
    world.run_to(&slot_at("b", 0), Outcome::Succeeded);
    world.commit(&mut *store, lease);
    holds(&world, &mut *store);
}

pub(super) fn definitions_are_kept(place: &mut dyn Place) {
    let mut world = World::default();
    let mut moments = Vec::new();
    for version in 1..=3 {
        let mut store = place.open();
        let lease = lead(&mut *store);
        moments.push(world.now());
        world.define("a", version);
        world.commit(&mut *store, lease);
        // A change of the plan is no new definition.
        let mut row = workflow("a", version);
        row.planned.ranges.insert(Range::new(hour(0), hour(i64::from(version))));
        row.planned.until = Some(hour(9));
        world.turn.workflows.push(row.clone());
        world.commit(&mut *store, lease);
        let reader = store.reader();
        assert_eq!(reader.workflow(&named("a")).unwrap(), Some(row));
        let past = reader.definitions(&named("a"), None).unwrap();
        assert_eq!(past.len(), version as usize);
        for (definition, version) in past.iter().zip((1..=version).rev()) {
            assert_eq!(definition.version, version);
            assert_eq!(definition.at, moments[version as usize - 1]);
            assert_eq!(definition.definition, *workflow("a", version).definition);
            assert_eq!(definition.source.as_deref(), Some(format!("// a, {version}").as_str()));
        }
    }
    // The log of a turn may contain several.
    let mut store = place.open();
    let lease = lead(&mut *store);
    world.define("b", 1);
    world.define("b", 2);
    world.commit(&mut *store, lease);
    let reader = store.reader();
    assert_eq!(reader.workflow(&named("b")).unwrap(), Some(workflow("b", 2)));
    let past = reader.definitions(&named("b"), None).unwrap();
    let versions = past.iter().map(|one| (one.version, &one.definition));
    assert!(versions.eq([(2, &*workflow("b", 2).definition), (1, &*workflow("b", 1).definition)]));
    assert_eq!(reader.definitions(&named("b"), Some(1)).unwrap(), past[1..]);
    assert_eq!(reader.definitions(&named("b"), Some(3)).unwrap(), []);
}

pub(super) fn registers_are_set_and_deleted(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut set = |registers: &[(&str, &str, Option<Value>)]| {
        let owned = |(bucket, key, value): &(&str, &str, Option<Value>)| {
            ((*bucket).to_owned(), (*key).to_owned(), value.clone())
        };
        let registers = registers.iter().map(owned).collect();
        store.commit(lease, &crate::Commit { registers, ..crate::Commit::default() }).unwrap();
    };
    set(&[
        ("b", "x/1", Some(json!(1))),
        ("b", "x/2", Some(json!(2))),
        ("b", "y", Some(json!(3))),
        ("c", "x/1", Some(json!(4))),
    ]);
    set(&[("b", "x/1", None), ("b", "x/10", Some(json!(5))), ("b", "x/2", Some(json!([6]))), ("b", "none", None)]);
    set(&[("b", "twice", Some(json!(1))), ("b", "twice", Some(json!(2)))]);
    let reader = store.reader();
    let all = |bucket: Option<&str>, keys: RegisterKeys<'_>| -> Vec<(String, String, Value)> {
        let registers = reader.registers(bucket, keys).unwrap();
        registers.into_iter().map(|Register { bucket, key, value }| (bucket, key, value)).collect()
    };
    let listed = |prefix: &str| -> Vec<(String, Value)> {
        all(Some("b"), RegisterKeys::Prefix(prefix)).into_iter().map(|(_, key, value)| (key, value)).collect()
    };
    let named =
        |keys| -> Vec<String> { all(None, keys).into_iter().map(|(bucket, key, _)| bucket + " " + &key).collect() };
    assert_eq!(named(RegisterKeys::Prefix("x/1")), ["b x/10", "c x/1"]);
    assert_eq!(named(RegisterKeys::One("x/1")), ["c x/1"]);
    assert_eq!(named(RegisterKeys::Prefix("")), ["b twice", "b x/10", "b x/2", "b y", "c x/1"]);
    assert_eq!(listed("x/"), [("x/10".to_owned(), json!(5)), ("x/2".to_owned(), json!([6]))]);
    assert_eq!(listed("x/2"), [("x/2".to_owned(), json!([6]))]);
    assert_eq!(listed("").iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["twice", "x/10", "x/2", "y"]);
    assert_eq!(listed("z"), []);
    assert_eq!(reader.register("b", "x/1").unwrap(), None);
    assert_eq!(reader.register("c", "x/1").unwrap(), Some(json!(4)));
}

pub(super) fn recall_finds_slots(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = varied();
    world.commit(&mut *store, lease);
    let mut check = |recall: Recall, wanted: &dyn Fn(&SlotRef) -> bool| {
        let found = store.recall(&recall).unwrap();
        let expected = world.slots.iter().filter(|(id, _)| wanted(id)).collect::<Vec<_>>();
        assert!(found.iter().map(|row| (&row.id, &row.slot)).eq(expected), "{recall:?} found {found:?}");
        found.len()
    };
    let some = [
        slot_at("plain", 0),
        slot_at("..", 3),
        slot_at("plain", -6),
        slot_at("nobody", 0),
        slot_at("plain", 55),
        slot_at("plain", 0),
    ];
    assert_eq!(check(Recall::Slots(some.to_vec()), &|id| some.contains(id)), 3);
    for (start, end) in [(-6, 6), (-5, 7), (0, 0), (5, 0), (-700_000, -699_999), (-800_000, 2_000_000)] {
        let (start, end) = (hour(start), hour(end));
        let inside = |id: &SlotRef| id.workflow == named("..") && is_listed_in(&Range::new(start, end), &id.key);
        check(Recall::Range { workflow: named(".."), start, end }, &inside);
    }
    check(Recall::Range { workflow: named("nobody"), start: hour(0), end: hour(9) }, &|_| false);
}

pub(super) fn runs_are_recalled_in_order(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = varied();
    world.commit(&mut *store, lease);
    let seqs = world.runs.keys().copied().rev().step_by(3).collect::<Vec<_>>();
    let runs = store.recall_runs(&seqs).unwrap();
    assert!(runs.iter().eq(seqs.iter().map(|seq| &world.runs[seq])));
    assert_eq!(store.recall_runs(&[]).unwrap(), []);
    let known = store.recall_runs(&[9_999_999, seqs[0]]).unwrap();
    assert!(known.iter().eq([&world.runs[&seqs[0]]]), "{known:?}");
}
