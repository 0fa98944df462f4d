//! Planned times without rows: readers see them among the slots.

use std::collections::BTreeMap;

use crate::cursor::order_time;
use crate::{Journal, Lease, PageRequest, SlotFilter, SlotRow};
use kelos_model::ranges::Range;
use kelos_model::time::CronSchedule;
use kelos_model::{Actor, BackfillId, Kill, SlotRef, Stretch};

use super::Place;
use super::pages::{LIMITS, all_columns, populate, slot_filters, slot_passes, tallied};
use super::walk::{self, same};
use super::world::{World, hour, lead, named, slot_at, workflow};

/// Slots in all states, and beside them the backlogs of three workflows: hours, some of a backfill, some killed.
/// Returns all of them in the order of the list.
fn populate_with_backlogs(store: &mut dyn Journal, lease: Lease) -> Vec<SlotRow> {
    let mut world = populate(store, lease);
    let mut rows = world.listed();
    for (name, first, last) in [("c", -30, 250), ("B", 10, 12), ("only planned", 0, 70)] {
        let mut row = workflow(name, 1);
        row.planned.schedule = serde_json::to_string(&CronSchedule::hourly()).unwrap();
        for (number, start) in (first..last).step_by(9).enumerate() {
            let backfill = (number % 3 == 1).then(|| BackfillId::new("x").unwrap());
            let kill = Kill { at: hour(start), by: Actor::person("me"), reason: None };
            let killed = (number % 4 == 2).then_some(kill);
            let range = Range::new(hour(start), hour((start + 9).min(last)));
            let priority = i32::try_from(number).unwrap();
            row.planned.backlog.put(Stretch { range, since: hour(last), backfill, priority, killed });
        }
        take_slots_out(&world, name, &mut row.planned.backlog);
        for stretch in row.planned.backlog.stretches() {
            for at in CronSchedule::hourly().times(stretch.range.start, stretch.range.end) {
                rows.push(SlotRow { id: SlotRef::at(named(name), at), slot: stretch.slot() });
            }
        }
        world.define(name, 1);
        world.turn.workflows.pop();
        world.turn.workflows.push(row);
        world.commit(store, lease);
    }
    rows.sort_by_key(|row| {
        let SlotRef { workflow, key } = &row.id;
        (std::cmp::Reverse(order_time(key)), workflow.clone(), key.clone())
    });
    rows
}

fn take_slots_out(world: &World, name: &str, backlog: &mut kelos_model::Backlog) {
    let of_it = world.slots.keys().filter(|id| id.workflow == named(name));
    of_it.filter_map(|id| id.key.time()).for_each(|at| backlog.take_time(at));
}

/// All filters, with the times of backlogs and without them.
fn filters() -> impl Iterator<Item = SlotFilter> {
    let without = |filter: &SlotFilter| SlotFilter { without_backlogs: true, ..filter.clone() };
    slot_filters().into_iter().flat_map(move |filter| [without(&filter), filter])
}

pub(super) fn times_are_listed_as_slots(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let listed = populate_with_backlogs(&mut *store, lease);
    let reader = store.reader();
    for filter in filters() {
        let expected = listed.iter().filter(|row| slot_passes(&filter, row)).cloned().collect::<Vec<_>>();
        for limit in LIMITS {
            let states = reader.slot_states(&filter, PageRequest::newest(limit)).unwrap();
            let page = reader.slots(&filter, PageRequest::newest(limit)).unwrap();
            let in_page = page.rows.into_iter().map(|row| (row.id, row.slot.state));
            assert!(states.rows.into_iter().eq(in_page) && states.next == page.next, "{filter:?} by {limit}");
            same(&walk::slots(&*reader, &filter, limit), &expected, format_args!("{filter:?} by {limit}"));
        }
    }
    for row in &listed {
        assert_eq!(reader.slot(&row.id).unwrap().as_ref(), Some(&row.slot), "{}", row.id);
    }
    let between = SlotRef::at(named("only planned"), hour(1) + jiff::SignedDuration::from_secs(1));
    assert_eq!(reader.slot(&between).unwrap(), None);
    assert_eq!(reader.slot(&slot_at("only planned", 70)).unwrap(), None);
}

pub(super) fn times_are_counted(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let listed = populate_with_backlogs(&mut *store, lease);
    let reader = store.reader();
    for filter in filters() {
        let mut expected = BTreeMap::new();
        for row in listed.iter().filter(|row| slot_passes(&filter, row)) {
            *expected.entry(row.slot.state).or_insert(0) += 1;
        }
        assert_eq!(reader.slot_counts(&filter).unwrap(), expected, "{filter:?}");
    }
    for columns in all_columns() {
        for of in [None, Some(named("c")), Some(named("only planned"))] {
            let expected = tallied(&listed, &columns, of.as_ref());
            assert_eq!(reader.slot_tallies(&columns, of.as_ref()).unwrap(), expected, "{columns:?} of {of:?}");
        }
    }
}
