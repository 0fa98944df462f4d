//! Runs that were live within a range of wall-clock time.

use crate::{CLOCK_SLACK_MILLIS, Journal, RUN_LOOK_BACK_MILLIS, RunFilter};
use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::Range;
use kelos_model::{Outcome, Run, RunState, SlotEvent, SlotRef};

use super::Place;
use super::walk::{self, same};
use super::world::{World, explanation, hour, lead, named, slot_at, step_of};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn minute(minutes: i64) -> Timestamp {
    hour(0) + SignedDuration::from_mins(minutes)
}

/// A run that is dispatched at one minute and ends at another, if it ends.
fn run(world: &mut World, id: &SlotRef, from: i64, to: Option<i64>, outcome: Outcome) {
    world.clock = Some(minute(from));
    match id.key.step() {
        Some(_) => world.dispatch_step(id, 1),
        None => {
            world.plan(id);
            world.happen(id, SlotEvent::TriggerMet { explanation: explanation("go") });
            world.happen(id, SlotEvent::Dispatched { run: 1, worker: None, batch: None });
        }
    }
    let Some(to) = to else { return };
    world.happen(id, SlotEvent::Started { run: 1, external_id: "1".to_owned() });
    world.clock = Some(minute(to));
    world.happen(
        id,
        match outcome {
            Outcome::Succeeded => SlotEvent::Succeeded { run: 1 },
            outcome => SlotEvent::Failed { run: 1, outcome },
        },
    );
}

/// Five days of runs every twenty minutes: most short, some a few hours long, few longer than any look back, and
/// some that are still live. At some of them the clock is set back, by so many minutes.
fn populate(world: &mut World, put_back: &[(i64, i64)]) {
    for n in 0..360 {
        let from = n * 20 - put_back.iter().filter(|(at, _)| n >= *at).map(|(_, by)| by).sum::<i64>();
        let to = match n % 40 {
            7 => None,
            11 => Some(from + 60 * 50),
            12 => Some(from + 60 * 5),
            13 => Some(from),
            _ => Some(from + 15),
        };
        let outcome = match n % 5 {
            0 => Outcome::Failed { reason: "1".to_owned(), exit_status: Some(1), code: None },
            _ => Outcome::Succeeded,
        };
        // Reversed, so that the order of slots is not that of runs.
        let id = slot_at(NAMES[n as usize % 3], 1_000 - n);
        run(world, &id, from, to, outcome.clone());
        if n % 3 == 1 {
            run(world, &step_of(&id, "load", None), from, to.map(|to| to + n % 7), outcome);
        }
    }
}

fn ranges() -> Vec<Range> {
    let pairs = [
        (0, 7_200),
        (-600, -1),
        (-5, 1),
        (3_000, 3_001),
        (3_000, 3_060),
        (3_015, 3_020),
        (5_760, 7_200),
        (7_300, 9_000),
        (60_000, 60_060),
        (3_000, 3_000),
        (3_000, 2_000),
    ];
    pairs.into_iter().map(|(start, end)| Range::new(minute(start), minute(end))).collect()
}

fn filters() -> Vec<RunFilter> {
    use RunState::{Dispatched, Failed, Succeeded};
    let states = [vec![], vec![Succeeded], vec![Failed], vec![Dispatched], vec![Dispatched, Failed]];
    let mut filters = Vec::new();
    for workflow in [None, Some(named("b")), Some(named("nobody"))] {
        for states in &states {
            for range in ranges() {
                filters.push(RunFilter {
                    workflow: workflow.clone(),
                    states: states.clone(),
                    range: Some(range),
                    with_steps: filters.len() % 2 == 1,
                    ..RunFilter::default()
                });
            }
        }
    }
    filters
}

fn passes(filter: &RunFilter, run: &Run) -> bool {
    let Some(range) = filter.range.filter(|range| !range.is_empty()) else { return false };
    if run.id.slot.key.step().is_some() && !filter.with_steps {
        return false;
    }
    let looked_for = run.dispatched_at >= range.start - SignedDuration::from_millis(RUN_LOOK_BACK_MILLIS);
    let over = run.ended_at.map(|at| at.max(run.dispatched_at));
    (filter.states.is_empty() || filter.states.contains(&run.state))
        && filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.id.slot.workflow)
        && run.dispatched_at < range.end
        && over.is_none_or(|over| over >= range.start && looked_for)
}

fn check(store: &dyn Journal, world: &World) {
    let reader = store.reader();
    for filter in filters() {
        let expected: Vec<Run> = world.runs.values().rev().filter(|run| passes(&filter, run)).cloned().collect();
        for limit in [3, 1_000] {
            same(&walk::runs(&*reader, &filter, limit), &expected, format_args!("{filter:?} by {limit}"));
        }
    }
}

pub(super) fn runs_of_a_range_are_found(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    check(&*store, &world);
    populate(&mut world, &[]);
    world.commit(&mut *store, lease);
    check(&*store, &world);
}

pub(super) fn runs_are_found_although_the_clock_jumped(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let slack = CLOCK_SLACK_MILLIS / 60_000;
    populate(&mut world, &[(100, slack), (150, 30), (200, -600), (230, slack), (260, 1)]);
    world.commit(&mut *store, lease);
    check(&*store, &world);
}

/// The first page is empty, but has a next one.
pub(super) fn a_long_run_is_found_behind_many_short_ones(place: &mut dyn Place) {
    let mut store = place.open();
    let lease = lead(&mut *store);
    let mut world = World::default();
    let long = slot_at("long", 0);
    world.clock = Some(minute(0));
    world.plan(&long);
    world.happen(&long, SlotEvent::TriggerMet { explanation: explanation("go") });
    world.happen(&long, SlotEvent::Dispatched { run: 1, worker: None, batch: None });
    for n in 0..4_500 {
        run(&mut world, &slot_at("short", n), n / 10, Some(n / 10), Outcome::Succeeded);
    }
    world.clock = Some(minute(2_000));
    world.happen(&long, SlotEvent::Succeeded { run: 1 });
    world.commit(&mut *store, lease);
    let range = Some(Range::new(minute(1_500), minute(1_501)));
    let found = walk::runs(&*store.reader(), &RunFilter { range, ..RunFilter::default() }, 100);
    assert_eq!(found.iter().map(|run| &run.id.slot).collect::<Vec<_>>(), [&long]);
}
