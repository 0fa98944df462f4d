//! One random history, written to two stores: every answer must be the same.

use std::collections::BTreeSet;

use crate::{About, BackfillFilter, Commit, Journal, RegisterKeys, RunFilter, SlotFilter};
use jiff::SignedDuration;
use kelos_model::Recall;
use kelos_model::backfill::{Backfill, BackfillMode, Pause};
use kelos_model::event::Origin;
use kelos_model::history::RemovedHistory;
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{
    Actor, BackfillId, Batch, Outcome, PoolId, RunName, RunState, Slot, SlotEvent, SlotKey, SlotRef, SlotState,
    StepName,
};
use serde_json::json;

use super::Place;
use super::facts::{fact, tell};
use super::trims;
use super::walk::{self, same};
use super::world::{Draw, World, explanation, hour, lead, named, slot_at, step_of, workflow};

const NAMES: [&str; 4] = ["a", "b", "long name with ümlauts", "d"];

/// Writes `turns` random turns to both, and compares their answers; sometimes one is opened again.
///
/// # Panics
/// Where they differ.
pub fn agree(left: &mut dyn Place, right: &mut dyn Place, seed: u64, turns: usize) {
    let mut draw = Draw::new(seed);
    let mut world = World::default();
    let mut versions = [0; NAMES.len()];
    let mut stores = [left.open(), right.open()];
    let mut leases = stores.each_mut().map(|store| lead(&mut **store));
    for turn in 0..turns {
        for _ in 0..=draw.below(12) {
            change(&mut world, &mut draw, &mut versions);
        }
        let mut commit = world.take();
        if draw.below(3) == 0 {
            commit.trim = trims::trim(&mut world, &mut draw, &*stores[0].reader());
        }
        for (store, lease) in stores.iter_mut().zip(leases) {
            store.commit(lease, &commit).expect("the turn is committed");
        }
        if draw.below(10) == 0 {
            drop(stores);
            stores = [left.open(), right.open()];
            leases = stores.each_mut().map(|store| lead(&mut **store));
        }
        if draw.below(8) == 0 || turn + 1 == turns {
            let [left, right] = &mut stores;
            compare(&mut **left, &mut **right, &world, &mut draw);
        }
    }
}

/// Random turns, one after the other, as input of two stores that are compared.
#[must_use]
pub fn history(seed: u64, turns: usize) -> Vec<Commit> {
    let (mut draw, mut world, mut versions) = (Draw::new(seed), World::default(), [0; NAMES.len()]);
    let turn = |_| {
        for _ in 0..=draw.below(12) {
            change(&mut world, &mut draw, &mut versions);
        }
        world.take()
    };
    (0..turns).map(turn).collect()
}

fn change(world: &mut World, draw: &mut Draw, versions: &mut [u32; NAMES.len()]) {
    let which = draw.below(NAMES.len());
    let run = any_slot(draw, NAMES[which]);
    let id = if draw.below(3) == 0 { step(draw, &run) } else { run.clone() };
    match draw.below(32) {
        0 => {
            versions[which] += 1;
            world.define(NAMES[which], versions[which]);
        }
        1 => {
            let value = (draw.below(3) > 0).then(|| json!({ "n": draw.below(9), "f": draw.below(1000) as f64 / 7.0 }));
            world.turn.registers.push((draw.of(&["x", "y"]).to_string(), format!("k{}", draw.below(12)), value));
        }
        2 => {
            let key = (draw.below(2) == 0).then(|| format!("{}", world.next_seq()));
            tell(world, fact(draw.of(&["x", "y"]), key.as_deref(), draw.below(9) as u32));
        }
        // The file was written again, and its workflow is unchanged but for requests of people.
        30 if versions[which] > 0 => {
            let row = workflow(NAMES[which], versions[which]);
            world.turn.workflows.push(WorkflowRow { paused: draw.below(2) == 0, enabled: draw.below(2) == 0, ..row });
            let text = format!("// written {} times", draw.below(3));
            world.turn.sources.insert(format!("{}.js", NAMES[which]), text.into());
        }
        31 if world.met.contains(&named(NAMES[which])) => world.turn.backfills.push(backfill(world, draw, which)),
        3..8 if id.key.step().is_some() => {
            let run = 1 + draw.below(3) as u32;
            let awaits = names_of_steps(draw);
            world.happen(&id, SlotEvent::StepOpened { run, awaits, priority: draw.below(2) as i32 });
        }
        3..8 => drop(world.plan(&id)),
        8..12 => {
            if !world.slots.contains_key(&run) || draw.below(3) == 0 {
                open(world, draw, &run);
            }
            world.run_to(&run, Outcome::Succeeded);
        }
        12 => rerun_old(world, draw),
        _ => drop(happen(world, draw, &id)),
    }
}

/// A slot of a workflow: of a time, or of a start, a name or a job.
fn any_slot(draw: &mut Draw, workflow: &str) -> SlotRef {
    let key = match draw.below(6) {
        0 => SlotKey::Moment(hour(draw.below(4) as i64)),
        1 => SlotKey::Named(RunName::new(&format!("run-{}", draw.below(4))).unwrap()),
        2 => SlotKey::Job(draw.of(&["_", "1", "20140601_ü", "a b"]).into()),
        _ => return slot_at(workflow, draw.below(40) as i64 - 10),
    };
    SlotRef::new(named(workflow), key)
}

/// A slot that is not there is opened by its schedule, by a backfill or by a fact, and one that has ended is sometimes opened again.
fn open(world: &mut World, draw: &mut Draw, id: &SlotRef) {
    let backfill = (draw.below(3) == 0).then(|| BackfillId::new(draw.of(&["b1", "b2"])).unwrap());
    let by = Actor::person("me");
    match world.slots.get(id) {
        None => {
            let origin = if backfill.is_some() { Origin::Backfill } else { Origin::Schedule };
            world.happen(id, SlotEvent::Planned { origin, priority: 1, backfill, by: None, reason: None });
            if draw.below(2) == 0 {
                let what = fact("x", None, draw.below(9) as u32).what;
                world.happen(id, SlotEvent::Collected { what, fact: None });
            }
        }
        Some(slot) if slot.state.is_final() => {
            world.happen(id, SlotEvent::Reopened { by, reason: None, priority: 2, backfill });
        }
        Some(_) => {}
    }
}

/// Opens a slot again whose history was removed, and often lets it succeed.
fn rerun_old(world: &mut World, draw: &mut Draw) {
    let is_old = |(id, slot): &(&SlotRef, &Slot)| id.key.step().is_none() && world.gone.contains(&slot.last_event);
    let old: Vec<SlotRef> = world.slots.iter().filter(is_old).map(|(id, _)| id.clone()).collect();
    if old.is_empty() {
        return;
    }
    let id = draw.of(&old);
    open(world, draw, &id);
    if draw.below(3) > 0 {
        world.run_to(&id, Outcome::Succeeded);
    }
}

/// A step of a run, or an item of its list.
fn step(draw: &mut Draw, run: &SlotRef) -> SlotRef {
    let item = (draw.below(2) == 0).then(|| draw.below(3) as u32);
    step_of(run, draw.of(&["a", "a-b", "each"]), item)
}

fn names_of_steps(draw: &mut Draw) -> Vec<StepName> {
    some(draw, &["a", "a-b", "each"].map(|name| StepName::new(name).unwrap()))
}

fn backfill(world: &World, draw: &mut Draw, which: usize) -> Backfill {
    let start = draw.below(9) as i64;
    Backfill {
        id: BackfillId::new(draw.of(&["b1", "b2", "b3"])).unwrap(),
        workflow: named(NAMES[which]),
        range: Range::new(hour(start), hour(start + 5)),
        mode: draw.of(&[BackfillMode::Missing, BackfillMode::All]),
        priority: draw.below(5) as i32,
        by: Actor::person("me"),
        created_at: world.now(),
        cancelled_at: (draw.below(4) == 0).then(|| world.now()),
        slots: draw.below(9) as u32,
        reason: (draw.below(2) == 0).then(|| "late data".to_owned()),
        paused: (draw.below(3) == 0).then(|| Pause { at: world.now(), by: Actor::person("you") }),
        resumed_at: None,
    }
}

/// A batch, of one run in two.
fn batch(draw: &mut Draw, run: u32) -> Option<Batch> {
    let batch = Batch { first: hour(1), run, last: hour(7), slots: 7 };
    (draw.below(2) == 0).then_some(batch)
}

fn happen(world: &mut World, draw: &mut Draw, id: &SlotRef) -> bool {
    let run = world.slots.get(id).map_or(1, |slot| slot.last_run.max(1));
    let next = world.slots.get(id).map_or(1, |slot| slot.last_run + 1);
    let by = Actor::person("me");
    let explanation = explanation(draw.of(&["one", "two"]));
    let backfill = BackfillId::new(draw.of(&["b1", "b2"])).unwrap();
    let outcome = draw.of(&[Outcome::Killed, Outcome::Unknown { reason: "?".to_owned() }]);
    let due = hour(100 + draw.below(9) as i64);
    let candidates = [
        SlotEvent::Looked { explanation: explanation.clone() },
        SlotEvent::Collected { what: fact("x", None, draw.below(9) as u32).what, fact: None },
        SlotEvent::TriggerMet { explanation: explanation.clone() },
        SlotEvent::TriggerMet { explanation: explanation.clone() },
        SlotEvent::Skipped { explanation },
        SlotEvent::Dispatched { run: next, worker: None, batch: batch(draw, next) },
        SlotEvent::Started { run, external_id: format!("x{run}") },
        SlotEvent::Given { run, inputs: [("day".to_owned(), "monday".into())].into() },
        SlotEvent::Gave { run, outputs: [("rows".to_owned(), run.into())].into_iter().collect() },
        SlotEvent::Acquired { run, request: 1, permits: [(PoolId::new("p").unwrap(), run)].into() },
        SlotEvent::Released { run, request: 1 },
        SlotEvent::Withdrawn { run },
        SlotEvent::Succeeded { run },
        SlotEvent::BackedOff { run, outcome: outcome.clone(), due, again: draw.below(3) as u32 },
        SlotEvent::BackoffEnded,
        SlotEvent::Failed { run, outcome: outcome.clone() },
        SlotEvent::Killed { by: by.clone(), reason: None },
        SlotEvent::MarkedSucceeded { by: by.clone(), reason: None },
        SlotEvent::SkippedBy { by: by.clone(), reason: Some("not needed".to_owned()) },
        SlotEvent::RunEnded { run, outcome },
        SlotEvent::Reopened {
            by: by.clone(),
            reason: None,
            priority: 3,
            backfill: (draw.below(2) == 0).then(|| backfill.clone()),
        },
        SlotEvent::Prioritised { priority: -3, backfill, by: None, reason: None },
        SlotEvent::Requested { by: Actor::unknown("you"), reason: None },
        SlotEvent::Pinned { definition: next },
        SlotEvent::StepReady { inputs: [("n".to_owned(), next.into())].into_iter().collect() },
        SlotEvent::Signalled { name: "go".to_owned(), payload: json!({ "n": run }), by: by.clone(), reason: None },
        SlotEvent::Recovered { run, failed: names_of_steps(draw) },
        SlotEvent::Resumed { by, reason: None, from: names_of_steps(draw).pop() },
        SlotEvent::Imported {
            from: "elsewhere".to_owned(),
            state: SlotState::Expired,
            retries: 2,
            external_id: None,
            requested: true,
            there: "LATE".to_owned(),
        },
    ];
    let what = draw.of(&candidates);
    let ends = matches!(&what, SlotEvent::RunEnded { .. });
    let alive = world.slots.get(id).is_some_and(|slot| slot.run_alive);
    (alive || !ends) && world.happen(id, what)
}

fn compare(left: &mut dyn Journal, right: &mut dyn Journal, world: &World, draw: &mut Draw) {
    let (mut a, mut b) = (left.restore().unwrap(), right.restore().unwrap());
    for snapshot in [&mut a, &mut b] {
        snapshot.slots.sort_by(|a, b| a.id.cmp(&b.id));
        snapshot.runs.sort_by_key(|run| run.seq);
    }
    same(&a.slots, &b.slots, "live slots");
    same(&a.runs, &b.runs, "open runs");
    assert_eq!(a.workflows, b.workflows);
    assert_eq!((a.last_seq, a.last_at, a.last_turn), (b.last_seq, b.last_at, b.last_turn));
    compare_recalls(left, right, world, draw);

    let (left, right) = (left.reader(), right.reader());
    assert_eq!(
        left.backfills(&BackfillFilter::default()).unwrap(),
        right.backfills(&BackfillFilter::default()).unwrap()
    );
    for name in NAMES.map(named) {
        assert_eq!(left.workflow(&name).unwrap(), right.workflow(&name).unwrap());
        assert_eq!(left.definitions(&name, None).unwrap(), right.definitions(&name, None).unwrap());
    }
    for id in world.slots.keys() {
        assert_eq!(left.slot(id).unwrap(), right.slot(id).unwrap());
        assert_eq!(left.history(id).unwrap(), right.history(id).unwrap());
        assert_eq!(left.slot_runs(id).unwrap(), right.slot_runs(id).unwrap());
        let life = || About::Slot(id.clone());
        same(&walk::events(&*left, life(), 2), &walk::events(&*right, life(), 2), "the life of a slot");
        let of_slot = RunFilter { slot: Some(id.clone()), ..RunFilter::default() };
        same(&walk::runs(&*left, &of_slot, 1), &walk::runs(&*right, &of_slot, 1), "the runs of a slot");
    }
    let runs = world.slots.keys().filter(|id| id.key.step().is_some());
    for run in runs.map(|step| SlotRef::new(step.workflow.clone(), step.key.of_run())).collect::<BTreeSet<_>>() {
        let expected = world.steps_of(&run);
        for reader in [&left, &right] {
            same(&walk::steps(&**reader, &run, 2), &expected, format_args!("the steps of {run}"));
        }
    }
    for bucket in ["x", "y"] {
        for prefix in ["", "k1", "k"] {
            assert_eq!(
                left.registers(Some(bucket), RegisterKeys::Prefix(prefix)).unwrap(),
                right.registers(Some(bucket), RegisterKeys::Prefix(prefix)).unwrap()
            );
        }
    }
    for _ in 0..20 {
        let limit = 1 + draw.below(30);
        let (slots, runs) = (slot_filter(draw), run_filter(draw));
        same(&walk::slots(&*left, &slots, limit), &walk::slots(&*right, &slots, limit), format_args!("{slots:?}"));
        assert_eq!(left.slot_counts(&slots).unwrap(), right.slot_counts(&slots).unwrap(), "{slots:?}");
        same(&walk::runs(&*left, &runs, limit), &walk::runs(&*right, &runs, limit), format_args!("{runs:?}"));
        let about = runs.workflow.map_or(About::Anything, About::Workflow);
        let log = |reader| walk::events(reader, about.clone(), 10 * limit);
        same(&log(&*left), &log(&*right), "the log");
    }
    let limit = 1 + draw.below(9);
    same(&walk::turns(&*left, limit), &walk::turns(&*right, limit), "turns");
    let facts = |reader| walk::events(reader, About::Facts, limit);
    same(&facts(&*left), &facts(&*right), "facts");
    for name in NAMES.map(named) {
        let all = |reader| walk::events(reader, About::WorkflowItself(name.clone()), limit);
        same(&all(&*left), &all(&*right), "what happened to a workflow");
    }
    same(&walk::slots(&*left, &SlotFilter::default(), 9), &world.listed(), "all slots");
    same(&walk::events(&*left, About::Anything, 99), &world.left(), "the log");
    let trimmed = left.removed_history().unwrap();
    assert_eq!(trimmed, RemovedHistory { is_new: trimmed.is_new, ..right.removed_history().unwrap() });
}

fn compare_recalls(left: &mut dyn Journal, right: &mut dyn Journal, world: &World, draw: &mut Draw) {
    let (start, end) = (hour(draw.below(30) as i64 - 10), hour(draw.below(30) as i64));
    let flow = draw.of(&NAMES);
    let recalls = [
        Recall::Slots(world.slots.keys().filter(|_| draw.below(2) == 0).cloned().collect()),
        Recall::Range { workflow: named(draw.of(&NAMES)), start, end },
        Recall::Steps(any_slot(draw, flow)),
    ];
    for recall in recalls {
        same(&left.recall(&recall).unwrap(), &right.recall(&recall).unwrap(), format_args!("{recall:?}"));
    }
    let named: Vec<_> = (0..=world.next_seq())
        .flat_map(|seq| ["x", "y"].map(|source| fact(source, Some(&seq.to_string()), 1).name()))
        .flatten()
        .collect();
    assert_eq!(left.known_facts(&named).unwrap(), right.known_facts(&named).unwrap());
    let seqs = world.runs.keys().copied().filter(|_| draw.below(2) == 0).collect::<Vec<_>>();
    assert_eq!(left.recall_runs(&seqs).unwrap(), right.recall_runs(&seqs).unwrap());
}

fn some<T: Clone>(draw: &mut Draw, all: &[T]) -> Vec<T> {
    (0..draw.below(4)).map(|_| draw.of(all)).collect()
}

fn slot_filter(draw: &mut Draw) -> SlotFilter {
    let workflow = (draw.below(2) == 0).then(|| named(draw.of(&NAMES)));
    let start = draw.below(30) as i64 - 10;
    let range = (draw.below(3) == 0).then(|| Range::new(hour(start), hour(start + draw.below(20) as i64)));
    let backfill = (draw.below(3) == 0).then(|| BackfillId::new(draw.of(&["b1", "b2"])).unwrap());
    let (states, collecting, without_backlogs) = (some(draw, &SlotState::ALL), draw.below(4) == 0, draw.below(4) == 0);
    SlotFilter { workflow, states, range, backfill, collecting, without_backlogs }
}

fn run_filter(draw: &mut Draw) -> RunFilter {
    let workflow = (draw.below(2) == 0).then(|| named(draw.of(&NAMES)));
    let moment = |millis: usize| World::default().now() + SignedDuration::from_millis(millis as i64);
    let start = draw.below(6_000);
    let range = (draw.below(2) == 0).then(|| Range::new(moment(start), moment(start + draw.below(2_000))));
    let (states, with_steps) = (some(draw, &RunState::ALL), draw.below(2) == 0);
    RunFilter { workflow, states, range, with_steps, ..RunFilter::default() }
}
