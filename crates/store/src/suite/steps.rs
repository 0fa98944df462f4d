//! Steps of flows: found by their run, and in no other list of slots.

use crate::{Journal, PageRequest, Queries, RunFilter, StoreError};
use jiff::SignedDuration;
use kelos_model::ranges::Range;
use kelos_model::{Actor, Outcome, Recall, RunName, RunState, SlotEvent, SlotKey, SlotRef, SlotState, StepName};
use serde_json::json;

use super::Place;
use super::pages::LIMITS;
use super::rows::holds;
use super::walk::{self, same};
use super::world::{World, hour, lead, named, slot_at, step_of};

fn failed() -> Outcome {
    Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None }
}

/// Runs with keys of each kind. The ids of some jobs are the beginnings of others: their steps lie among each other.
fn runs() -> Vec<SlotRef> {
    let job = |id: &str| SlotKey::Job(id.into());
    let keys = [
        SlotKey::Time(hour(0)),
        SlotKey::Moment(hour(0)),
        SlotKey::Named(RunName::new("order-42").unwrap()),
        job("a"),
        job("a.b"),
        job("a.b.c"),
        job("a-"),
        job("a.c"),
    ];
    keys.into_iter().map(|key| SlotRef::new(named("flow"), key)).chain([slot_at("other", 0)]).collect()
}

/// A run of a flow that failed, was resumed and waits for a signal: its steps are in many states.
fn populate(world: &mut World, run: &SlotRef) {
    let by = || Actor::person("me");
    world.begin_flow(run, 3);
    world.run_step(&step_of(run, "b", None), 1, Outcome::Succeeded);
    world.run_step(&step_of(run, "b-2", None), 1, failed());
    world.run_step(&step_of(run, "bc", None), 1, Outcome::Killed);
    for number in 0..12 {
        let item = step_of(run, "each", Some(number));
        match number % 4 {
            0 => world.run_step(&item, 1, Outcome::Succeeded),
            1 => world.open_step(&item, 1),
            2 => world.dispatch_step(&item, 1),
            _ => {
                world.dispatch_step(&item, 1);
                world.happen(&item, SlotEvent::Killed { by: by(), reason: None });
            }
        }
    }
    world.happen(run, SlotEvent::Failed { run: 1, outcome: failed() });
    let from = StepName::new("b-2").ok();
    world.happen(run, SlotEvent::Resumed { by: by(), reason: None, from });
    let (name, payload) = ("go".to_owned(), json!({ "n": 0.1 }));
    world.happen(run, SlotEvent::Signalled { name, payload, by: by(), reason: None });
    let step = step_of(run, "b-2", None);
    let awaits = vec![StepName::new("bc").unwrap()];
    world.happen(&step, SlotEvent::StepOpened { run: 2, awaits, priority: 4 });
    assert!(world.slots[run].run_of_flow().is_some_and(|run| !run.signals.is_empty() && run.definition == 3));
    assert!(world.slots[&step].step_of_run().is_some_and(|step| step.run == 2 && step.inputs.is_empty()));
}

fn check(store: &mut dyn Journal, world: &World) {
    holds(world, store);
    let reader = store.reader();
    for run in runs() {
        let expected = world.steps_of(&run);
        assert_eq!(expected.len(), 15);
        same(&store.recall(&Recall::Steps(run.clone())).unwrap(), &expected, format_args!("all steps of {run}"));
        for limit in LIMITS {
            same(&walk::steps(&*reader, &run, limit), &expected, format_args!("steps of {run} by {limit}"));
        }
    }
    let some: Vec<_> = world.slots.keys().step_by(7).cloned().collect();
    let found = store.recall(&Recall::Slots(some.clone())).unwrap();
    assert!(some.iter().any(|id| id.key.step().is_some()) && found.iter().map(|row| &row.id).eq(&some));
    let range = Recall::Range { workflow: named("flow"), start: hour(-1_000_000), end: hour(1_000) };
    assert_eq!(store.recall(&range).unwrap().len(), 8, "steps lie in no range of time");
}

pub(super) fn steps_are_found_by_their_run(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    for run in runs() {
        populate(&mut world, &run);
        world.commit(&mut *store, lease);
    }
    check(&mut *store, &world);
    let states: std::collections::BTreeSet<_> = world.slots.values().map(|slot| slot.state).collect();
    assert!(states.len() > 4 && states.contains(&SlotState::Dispatched), "{states:?}");
    let reader = store.reader();
    let nobodys = [
        slot_at("nobody", 0),
        slot_at("flow", 1),
        SlotRef::new(named("flow"), SlotKey::Named(RunName::new("order").unwrap())),
        step_of(&runs()[0], "b", None),
        step_of(&runs()[0], "none", None),
    ];
    for nothing in nobodys {
        assert_eq!(walk::steps(&*reader, &nothing, 9), [], "{nothing} has no steps");
        assert_eq!(store.recall(&Recall::Steps(nothing)).unwrap(), []);
    }
    drop(store);
    let mut store = place.open();
    check(&mut *store, &world);

    // The next leader continues.
    let lease = lead(&mut *store);
    for run in runs() {
        let step = step_of(&run, "b-2", None);
        world.ready_step(&step);
        world.happen(&step, SlotEvent::Dispatched { run: 2, worker: None, batch: None });
        world.happen(&step, SlotEvent::Succeeded { run: 2 });
        world.happen(&run, SlotEvent::TriggerMet { explanation: super::world::explanation("ready") });
        world.happen(&run, SlotEvent::Dispatched { run: 2, worker: None, batch: None });
        world.happen(&run, SlotEvent::Recovered { run: 2, failed: vec![StepName::new("bc").unwrap()] });
    }
    world.commit(&mut *store, lease);
    check(&mut *store, &world);
}

pub(super) fn pages_of_steps_begin_after_steps(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    runs().iter().for_each(|run| populate(&mut world, run));
    world.commit(&mut *store, lease);
    let (reader, run) = (store.reader(), SlotRef::new(named("flow"), SlotKey::Job("a".into())));
    let another = step_of(&SlotRef::new(named("flow"), SlotKey::Job("a.b".into())), "b", None).key.to_string();
    for nonsense in ["", "x", "1;2", "-", "next page", "ü", "~a", ".~a.", &another] {
        let told = reader.steps(&run, PageRequest::newest(5).after(Some(nonsense))).unwrap_err();
        assert!(matches!(&told, StoreError::Cursor { cursor } if cursor == nonsense), "{told:?}");
    }
    // A page begins where the one before it ended, whatever comes meanwhile.
    let first = reader.steps(&run, PageRequest::newest(3)).unwrap();
    for new in ["a", "each-more"] {
        world.open_step(&step_of(&run, new, None), 2);
    }
    world.commit(&mut *store, lease);
    let rest = reader.steps(&run, PageRequest::newest(100).after(first.next.as_deref())).unwrap();
    let expected = world.steps_of(&run);
    assert!(first.rows.iter().chain(&rest.rows).eq(&expected[1..]), "all but the one that came before");
}

/// Where nearly all runs are of steps, a page of the others is neither empty nor short.
pub(super) fn runs_of_slots_are_found_among_those_of_steps(place: &mut dyn Place) {
    const STEPS: u32 = 4_300;
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let flows = [slot_at("flow", 0), slot_at("flow", 1), slot_at("flow", 2)];
    for (index, run) in flows.iter().enumerate() {
        world.begin_flow(run, 1);
        for number in 0..STEPS {
            let step = step_of(run, "each", Some(number));
            match number % 3 {
                0 => world.run_step(&step, 1, Outcome::Succeeded),
                1 => world.run_step(&step, 1, failed()),
                _ => world.dispatch_step(&step, 1),
            }
        }
        match index {
            0 => world.happen(run, SlotEvent::Succeeded { run: 1 }),
            1 => world.happen(run, SlotEvent::Failed { run: 1, outcome: failed() }),
            _ => true,
        };
        world.commit(&mut *store, lease);
    }
    let reader = store.reader();
    let range = Range::new(hour(0), world.now() + SignedDuration::from_secs(1));
    for workflow in [None, Some(named("flow"))] {
        for range in [None, Some(range)] {
            let filter = RunFilter { workflow: workflow.clone(), range, ..RunFilter::default() };
            pages_are_full(&*reader, &filter, &world);
        }
    }
    let (mut steps, mut from) = (0, None);
    loop {
        let filter = RunFilter { with_steps: true, ..RunFilter::default() };
        let page = reader.runs(&filter, PageRequest::newest(1_000).after(from.as_deref())).unwrap();
        steps += page.rows.iter().filter(|run| run.id.slot.key.step().is_some()).count();
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(steps, 3 * STEPS as usize);
}

fn pages_are_full(reader: &dyn Queries, filter: &RunFilter, world: &World) {
    for states in
        [vec![], vec![RunState::Succeeded], vec![RunState::Failed], vec![RunState::Dispatched, RunState::Running]]
    {
        let filter = RunFilter { states, ..filter.clone() };
        let expected: Vec<_> = world.runs.values().rev().filter(|run| filter.passes(run)).cloned().collect();
        assert!(!expected.is_empty() && expected.len() <= 3, "{filter:?}");
        for paging in [PageRequest::newest(5), PageRequest::oldest(5)] {
            let mut page = reader.runs(&filter, paging).unwrap();
            page.rows.sort_by_key(|run| std::cmp::Reverse(run.seq));
            same(&page.rows, &expected, format_args!("{filter:?}"));
            assert_eq!(page.next, None, "{filter:?}");
        }
    }
}
