//! Lists, page by page.

use std::collections::BTreeMap;

use crate::cursor::{is_listed_in, order_time};
use crate::{
    About, Columns, EventFilter, Journal, Lease, PageRequest, RunFilter, SlotFilter, SlotRow, StoreError, Tally,
};
use kelos_model::ranges::Range;
use kelos_model::{
    Actor, BackfillId, Event, EventRecord, Outcome, Run, RunState, SlotEvent, SlotKey, SlotRef, SlotState, WorkflowId,
};

use super::Place;
use super::facts::fact;
use super::walk::{self, same};
use super::world::{Draw, World, explanation, hour, lead, named, slot_at, step_of};

pub(super) const LIMITS: [usize; 5] = [1, 2, 7, 100, 10_000];
/// Names that a store sees first in another order than their own.
const NAMES: [&str; 5] = ["é 2.1", "d~%&.7", "-1.\"a'", "c", "B"];

/// Some 300 slots in all states, several of each time, in turns of various sizes.
pub(super) fn populate(store: &mut dyn Journal, lease: Lease) -> World {
    let mut world = World::default();
    let mut draw = Draw::new(7);
    for hours in 0..60 {
        for name in NAMES {
            // Not all in the order of time.
            let id = slot_at(name, if hours % 7 == 3 { 200 - hours } else { hours });
            match draw.below(6) {
                0 => drop(world.plan(&id)),
                1 => drop(
                    world.run_to(&id, Outcome::Failed { reason: "1".to_owned(), exit_status: Some(1), code: None }),
                ),
                2 => {
                    world.plan(&id);
                    world.happen(&id, SlotEvent::TriggerMet { explanation: explanation("go") });
                    world.happen(&id, SlotEvent::Dispatched { run: 1, worker: None, batch: None });
                    if draw.below(2) == 0 {
                        world.happen(&id, SlotEvent::Killed { by: Actor::person("me"), reason: None });
                    }
                }
                _ => drop(world.run_to(&id, Outcome::Succeeded)),
            }
            if draw.below(5) == 0 {
                let backfill = Some(BackfillId::new(draw.of(&["x", "y"])).unwrap());
                let by = Actor::person("me");
                world.happen(&id, SlotEvent::Reopened { by, reason: None, priority: 1, backfill });
            }
            if hours % 5 == 0 {
                populate_steps(&mut world, &id);
            }
        }
        world.commit(store, lease);
    }
    world
}

/// Steps of a run in some states, one of them of a backfill: no list and no count shows them.
fn populate_steps(world: &mut World, run: &SlotRef) {
    let failed = Outcome::Failed { reason: "1".to_owned(), exit_status: Some(1), code: None };
    world.run_step(&step_of(run, "each", Some(0)), 1, Outcome::Succeeded);
    world.run_step(&step_of(run, "each", Some(1)), 1, failed);
    world.dispatch_step(&step_of(run, "last", None), 1);
    let waiting = step_of(run, "waits", None);
    world.open_step(&waiting, 1);
    let backfill = BackfillId::new("x").unwrap();
    world.happen(&waiting, SlotEvent::Prioritised { priority: 2, backfill, by: None, reason: None });
    world.happen(&waiting, SlotEvent::Collected { what: fact("x", None, 1).what, fact: None });
}

/// More jobs with the same time than a store would sort at once.
pub(super) fn many_slots_of_one_time_are_in_order(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    for name in ["z", "a", "m"] {
        for number in 0..1_700 {
            let job = SlotKey::Job(format!("{number}.{name}").into());
            world.plan(&SlotRef::new(named(name), job));
        }
    }
    world.plan(&slot_at("a", -1));
    world.run_to(&slot_at("z", 1), Outcome::Succeeded);
    world.commit(&mut *store, lease);
    let (reader, listed) = (store.reader(), world.listed());
    for states in [vec![], vec![SlotState::Waiting], vec![SlotState::Waiting, SlotState::Succeeded]] {
        let filter = SlotFilter { states, ..SlotFilter::default() };
        let expected = listed.iter().filter(|row| slot_passes(&filter, row)).cloned().collect::<Vec<_>>();
        for limit in [300, 1_700, 10_000] {
            same(&walk::slots(&*reader, &filter, limit), &expected, format_args!("{filter:?} by {limit}"));
        }
    }
}

pub(super) fn slot_filters() -> Vec<SlotFilter> {
    use SlotState::{Dispatched, Failed, Killed, Running, Succeeded, Waiting};
    let workflows = [None, Some(named("c")), Some(named("nobody"))];
    let states: [&[SlotState]; 7] = [
        &[],
        &[Succeeded],
        &[Failed],
        &[Failed, Killed, Failed],
        &[Waiting, Dispatched, Failed],
        &[Running],
        &[Succeeded, Waiting],
    ];
    let ranges = [None, Some(Range::new(hour(5), hour(40))), Some(Range::new(hour(9), hour(9)))];
    let backfills = [None, Some(BackfillId::new("x").unwrap())];
    let mut filters = Vec::new();
    for workflow in &workflows {
        for states in states {
            for range in ranges {
                for backfill in &backfills {
                    let (workflow, states, backfill) = (workflow.clone(), states.to_vec(), backfill.clone());
                    let filter = SlotFilter { workflow, states, range, backfill, ..SlotFilter::default() };
                    filters.push(filter);
                }
            }
        }
    }
    filters
}

pub(super) fn slot_passes(filter: &SlotFilter, row: &SlotRow) -> bool {
    filter.workflow.as_ref().is_none_or(|workflow| *workflow == row.id.workflow)
        && (filter.states.is_empty() || filter.states.contains(&row.slot.state))
        && filter.range.is_none_or(|range| is_listed_in(&range, &row.id.key))
        && (filter.backfill.is_none() || filter.backfill == row.slot.backfill)
        && !(filter.without_backlogs && row.slot.is_only_planned())
}

pub(super) fn slots_are_paged(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let world = populate(&mut *store, lease);
    let (reader, listed) = (store.reader(), world.listed());
    for filter in slot_filters() {
        let expected = listed.iter().filter(|row| slot_passes(&filter, row)).cloned().collect::<Vec<_>>();
        for limit in LIMITS {
            let states = reader.slot_states(&filter, PageRequest::newest(limit)).unwrap();
            let page = reader.slots(&filter, PageRequest::newest(limit)).unwrap();
            let in_page = page.rows.into_iter().map(|row| (row.id, row.slot.state));
            assert!(states.rows.into_iter().eq(in_page) && states.next == page.next, "{filter:?} by {limit}");
            same(&walk::slots(&*reader, &filter, limit), &expected, format_args!("{filter:?} by {limit}"));
        }
    }
}

pub(super) fn slots_are_counted(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let world = populate(&mut *store, lease);
    for filter in slot_filters() {
        let mut expected = BTreeMap::new();
        for row in world.listed().iter().filter(|row| slot_passes(&filter, row)) {
            *expected.entry(row.slot.state).or_insert(0) += 1;
        }
        assert_eq!(store.reader().slot_counts(&filter).unwrap(), expected, "{filter:?}");
    }
}

pub(super) fn the_oldest_slots_come_first(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let world = populate(&mut *store, lease);
    for state in SlotState::ALL {
        let mut listed: Vec<_> = world.listed().into_iter().filter(|row| row.slot.state == state).collect();
        listed.reverse();
        for limit in [0, 1, 3, usize::MAX] {
            let filter = SlotFilter { states: vec![state], ..SlotFilter::default() };
            let page = store.reader().slots(&filter, PageRequest::oldest(limit)).unwrap();
            same(&page.rows, &listed[..listed.len().min(limit.max(1))], format_args!("{state} by {limit}"));
        }
    }
}

/// Columns that divide the world's hours in several ways: finely, coarsely, outside of them, and not at all.
pub(super) fn all_columns() -> Vec<Columns> {
    let columns = |start, width, count| Columns { start: hour(start), width, count };
    let an_hour = 3_600_000;
    vec![
        columns(-5, an_hour, 48),
        columns(0, an_hour / 4, 40),
        columns(-3, an_hour * 7, 9),
        columns(1, an_hour * 1000, 1),
        columns(-20, an_hour * 40, 3),
        columns(100_000, an_hour, 5),
        columns(0, 0, 5),
        columns(0, an_hour, 0),
    ]
}

/// The expected tallies, computed from the rows themselves.
pub(super) fn tallied(
    listed: &[SlotRow],
    columns: &Columns,
    of: Option<&WorkflowId>,
) -> BTreeMap<WorkflowId, Vec<Tally>> {
    let mut found: BTreeMap<WorkflowId, BTreeMap<(u32, SlotState), u32>> = BTreeMap::new();
    for column in 0..columns.count {
        let edge = |column: u32| columns.start.as_millisecond() + columns.width * i64::from(column);
        let inside = edge(column)..edge(column + 1);
        for row in listed.iter().filter(|row| inside.contains(&order_time(&row.id.key))) {
            if of.is_none_or(|of| *of == row.id.workflow) {
                let counts = found.entry(row.id.workflow.clone()).or_default();
                *counts.entry((column, row.slot.state)).or_default() += 1;
            }
        }
    }
    let listed = |counts: BTreeMap<(u32, SlotState), u32>| {
        counts.into_iter().map(|((column, state), count)| Tally { column, state, count }).collect()
    };
    found.into_iter().map(|(id, counts)| (id, listed(counts))).collect()
}

pub(super) fn slots_are_tallied(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let world = populate(&mut *store, lease);
    let (reader, listed) = (store.reader(), world.listed());
    for columns in all_columns() {
        for of in [None, Some(named("c")), Some(named("nobody"))] {
            let expected = tallied(&listed, &columns, of.as_ref());
            assert_eq!(reader.slot_tallies(&columns, of.as_ref()).unwrap(), expected, "{columns:?} of {of:?}");
        }
    }
}

fn run_passes(filter: &RunFilter, run: &Run) -> bool {
    if run.id.slot.key.step().is_some() && !filter.with_steps {
        return false;
    }
    filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.id.slot.workflow)
        && (filter.states.is_empty() || filter.states.contains(&run.state))
}

pub(super) fn runs_are_paged(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let world = populate(&mut *store, lease);
    let reader = store.reader();
    let mut choices = RunState::ALL.iter().map(|state| vec![*state]).collect::<Vec<_>>();
    choices.extend([vec![], vec![RunState::Failed, RunState::Dispatched], vec![RunState::Succeeded, RunState::Killed]]);
    for workflow in [None, Some(named("c")), Some(named("nobody"))] {
        for states in &choices {
            for with_steps in [false, true] {
                let (workflow, states) = (workflow.clone(), states.clone());
                let filter = RunFilter { workflow, states, with_steps, ..RunFilter::default() };
                let expected =
                    world.runs.values().rev().filter(|run| run_passes(&filter, run)).cloned().collect::<Vec<_>>();
                for limit in LIMITS {
                    same(&walk::runs(&*reader, &filter, limit), &expected, format_args!("{filter:?} by {limit}"));
                }
            }
        }
    }
}

fn subject(record: &EventRecord) -> Option<&WorkflowId> {
    match &record.event {
        Event::Slot { slot, .. } => Some(&slot.workflow),
        Event::Workflow { workflow, .. } => Some(workflow),
        _ => None,
    }
}

pub(super) fn the_log_is_paged(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = populate(&mut *store, lease);
    world.define("c", 1);
    world.log(Event::Register { bucket: "b".to_owned(), key: "k".to_owned(), value: None, by: None, reason: None }, 0);
    world.commit(&mut *store, lease);
    let reader = store.reader();
    for name in [None, Some(named("c")), Some(named("nobody"))] {
        let wanted = |record: &&EventRecord| name.is_none() || subject(record) == name.as_ref();
        for limit in LIMITS {
            let read = walk::events(&*reader, name.clone().map_or(About::Anything, About::Workflow), limit);
            assert!(read.iter().eq(world.events.iter().filter(wanted)), "the log of {name:?} by {limit}");
        }
    }
    let last = world.events.len() as u64;
    for after in [last, last + 1, u64::MAX] {
        let page = reader.events(&EventFilter::after(after), PageRequest::oldest(5)).unwrap();
        assert!(page.rows.is_empty() && page.next.is_none(), "after {after}: {page:?}");
    }
}

pub(super) fn pages_hold_still_while_rows_come(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = populate(&mut *store, lease);
    let (reader, before) = (store.reader(), world.clone());
    let (mut slots, mut runs) = (Vec::new(), Vec::new());
    let (mut slot_cursor, mut run_cursor) = (None, None);
    for round in 0.. {
        let page = reader.slots(&SlotFilter::default(), PageRequest::newest(50).after(slot_cursor.as_deref())).unwrap();
        slots.extend(page.rows.into_iter().map(|row| row.id));
        slot_cursor = page.next;
        if round < 4 {
            let page =
                reader.runs(&RunFilter::default(), PageRequest::newest(50).after(run_cursor.as_deref())).unwrap();
            runs.extend(page.rows.into_iter().map(|run| run.seq));
            run_cursor = page.next;
        }
        if slot_cursor.is_none() {
            break;
        }
        for name in NAMES {
            world.run_to(&slot_at(name, 1000 + round), Outcome::Succeeded);
        }
        world.commit(&mut *store, lease);
    }
    assert!(slots.iter().eq(before.listed().iter().map(|row| &row.id)), "newer slots shift none of the older");
    let older = before.runs.values().rev().filter(|run| run.id.slot.key.step().is_none()).map(|run| &run.seq);
    assert!(runs.iter().eq(older.take(200)), "newer runs shift none of the older");
}

/// Pages may end before they are full; the next ones still lead to every row.
pub(super) fn a_needle_is_found(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let needles = [slot_at("hay", 3), slot_at("hay", 6_100)];
    for hours in 0..9_000 {
        let id = slot_at("hay", hours);
        if needles.contains(&id) {
            world.plan(&id);
            world.happen(&id, SlotEvent::TriggerMet { explanation: explanation("go") });
        } else {
            world.run_to(&id, Outcome::Succeeded);
        }
    }
    world.run_to(&slot_at("other", 1), Outcome::Succeeded);
    world.commit(&mut *store, lease);
    let reader = store.reader();
    for states in [vec![SlotState::Queued], vec![SlotState::Queued, SlotState::Failed]] {
        let filter = SlotFilter { workflow: Some(named("hay")), states, ..SlotFilter::default() };
        let found = walk::slots(&*reader, &filter, 10);
        assert!(found.iter().map(|row| &row.id).eq(needles.iter().rev()), "{found:?}");
    }
    let states = vec![RunState::Succeeded, RunState::Failed];
    let filter = RunFilter { workflow: Some(named("hay")), states, ..RunFilter::default() };
    assert_eq!(walk::runs(&*reader, &filter, 4_500).len(), 8_998);
    let filter = SlotFilter { states: vec![SlotState::Succeeded, SlotState::Queued], ..SlotFilter::default() };
    assert_eq!(walk::slots(&*reader, &filter, 4_500).len(), 9_001);
}

pub(super) fn nonsense_is_no_cursor(place: &mut dyn Place) {
    let store = place.open();
    let reader = store.reader();
    let refused = |outcome: StoreError, nonsense: &str| {
        assert!(matches!(&outcome, StoreError::Cursor { cursor } if cursor == nonsense), "{outcome:?}");
    };
    for nonsense in ["", "x", "1;2", "-", "next page", "ü"] {
        refused(
            reader.slots(&SlotFilter::default(), PageRequest::newest(5).after(Some(nonsense))).unwrap_err(),
            nonsense,
        );
        refused(
            reader.runs(&RunFilter::default(), PageRequest::newest(5).after(Some(nonsense))).unwrap_err(),
            nonsense,
        );
    }
}
