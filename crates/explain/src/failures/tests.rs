use std::collections::BTreeMap;

use kelos_model::jobs::{Group, JobKeys, JobTemplate, Member};
use kelos_model::workflow::{Job, Keys};
use kelos_model::{Actor, Outcome, Slot, SlotEvent, Trigger, Workflow};
use kelos_store::StoredState;
use proptest::prelude::*;

use super::*;
use crate::world::{World, at, failure, row};

fn on(name: &str) -> Trigger {
    Trigger::Success { workflow: WorkflowId::new(name).unwrap() }
}

fn after(name: &'static str) -> impl Fn(&mut Workflow) {
    move |workflow| workflow.trigger = on(name)
}

impl World {
    fn failures(&self) -> Failures {
        find(&*self.store.reader(), at(23, 0)).unwrap()
    }

    /// Each failure with its followers: `a@… failed: b@… waiting`.
    fn told(&self) -> Vec<String> {
        let key = |slot: &SlotRef| slot.short().replace("2016-01-01T", "").replace(":00Z", "");
        let told = |row: &Failure| {
            let followers = row.followers.iter().map(|one| format!("{} {}", key(&one.slot), one.state));
            format!("{} {}: {}", key(&row.slot), row.state, followers.collect::<Vec<_>>().join(", "))
        };
        self.failures().rows.iter().map(told).collect()
    }
}

#[test]
fn followers_at_any_distance_are_folded_under_what_failed() {
    let rows = vec![row("a", |_| {}), row("b", after("a")), row("c", after("b")), row("d", after("c"))];
    let mut world = World::new(rows);
    assert_eq!(world.failures(), Failures::default());
    let a = world.fails("a", 1);
    let b = world.expires("b", 1, &a);
    let c = world.waits("c", 1, &b);
    world.expires("d", 1, &c);
    // Another hour, of which everything is fine but the last one.
    let b2 = world.running("b", 2, 0);
    world.succeeds(&b2, at(2, 5));
    world.fails("d", 2);
    assert_eq!(world.told(), ["d@02 failed: ", "a@01 failed: b@01 expired, c@01 waiting, d@01 expired"]);
    let found = world.failures();
    let waits_for: Vec<&SlotRef> = found.followers().map(|follower| &follower.waits_for).collect();
    assert_eq!(waits_for, [&a, &b, &c]);
    assert_eq!(found.by_workflow().into_values().collect::<Vec<_>>(), [1, 1]);
    assert!(!found.is_partial);
}

#[test]
fn what_expired_is_a_failure_itself_once_nothing_upstream_is_one() {
    let mut world = World::new(vec![row("a", |_| {}), row("b", after("a"))]);
    let a = world.fails("a", 1);
    let b = world.expires("b", 1, &a);
    assert_eq!(world.told(), ["a@01 failed: b@01 expired"]);
    let reopened = || SlotEvent::Reopened { by: Actor::person("me"), reason: None, priority: 0, backfill: None };
    world.happens(&a, at(5, 0), reopened());
    assert_eq!(world.told(), ["b@01 expired: "], "it does not go by itself when the other one succeeds");
    world.happens(&b, at(5, 0), reopened());
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn slots_that_expired_for_each_other_are_one_failure() {
    let mut world = World::new(vec![row("a", after("b")), row("b", after("a")), row("c", after("b"))]);
    let slot = |name: &str| SlotRef::at(WorkflowId::new(name).unwrap(), at(1, 0));
    for (name, on) in [("a", "b"), ("b", "a"), ("c", "b")] {
        world.expires(name, 1, &slot(on));
    }
    let told = world.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(world.failures().followers().count(), 2);
}

#[test]
fn an_offset_leads_to_the_slot_that_looks_back() {
    let earlier = |workflow: &mut Workflow| {
        workflow.trigger = Trigger::Offset { seconds: -7200, trigger: Box::new(on("a")) };
    };
    let mut world = World::new(vec![row("a", |_| {}), row("b", earlier)]);
    let a = world.fails("a", 1);
    world.waits("b", 3, &a);
    world.planned("b", 1, at(1, 0));
    assert_eq!(world.told(), ["a@01 failed: b@03 waiting"]);
}

#[test]
fn a_failure_counts_with_its_workflow_and_says_how_it_ended() {
    let mut world = World::new(vec![row("w", |_| {})]);
    let slot = world.fails("w", 1);
    let reader = world.store.reader();
    let failures = find(&*reader, at(23, 0)).unwrap();
    let account = failures.rows[0].account(&*reader, at(23, 0)).unwrap();
    assert_eq!(account.outcome.as_deref(), Some("exited with status 3"));
    assert!(account.reason.starts_with("run 1 ended at 2016-01-01T01:04Z: it failed"), "{}", account.reason);
    let gone = World::new(vec![WorkflowRow { present: false, ..row("w", |_| {}) }]);
    let mut gone = gone;
    gone.fails("w", 1);
    assert_eq!(gone.failures(), Failures::default());
    world.happens(&slot, at(3, 0), SlotEvent::MarkedSucceeded { by: Actor::person("me"), reason: None });
    assert_eq!(world.failures(), Failures::default());
}

/// A workflow that is keyed by numbers, whose jobs wait for those of others.
fn keyed(name: &str, parents: &[&str]) -> WorkflowRow {
    let member = Member {
        workflows: parents.iter().map(|parent| WorkflowId::new(parent).unwrap()).collect(),
        ..Member::default()
    };
    let group = Group { name: "g".to_owned(), members: vec![member], functions: None };
    let depends_on = if parents.is_empty() { Vec::new() } else { vec![group] };
    let keys = JobKeys { depends_on, ..JobKeys::new(JobTemplate::new("{n}").unwrap()) };
    let job = Job::new("command", serde_json::Map::new());
    let keyed = Workflow::keyed(WorkflowId::new(name).unwrap(), Keys::Jobs(Box::new(keys)), job);
    row(name, |workflow| *workflow = keyed.clone())
}

#[test]
fn jobs_follow_their_parents() {
    let mut world = World::new(vec![keyed("a", &[]), keyed("b", &["a"]), keyed("c", &["b"])]);
    let job = |name: &str, id: &str| SlotRef::job(WorkflowId::new(name).unwrap(), id.into());
    for name in ["a", "b", "c"] {
        for id in ["1", "2"] {
            world.happens(&job(name, id), at(1, 0), SlotEvent::planned(kelos_model::event::Origin::Request, 0));
        }
    }
    let a = job("a", "1");
    world.happens(&a, at(1, 0), SlotEvent::TriggerMet { explanation: crate::world::missing(at(1, 0)) });
    world.runs(&a, at(1, 0));
    let outcome: Outcome = failure();
    world.happens(&a, at(1, 4), SlotEvent::Failed { run: 1, outcome });
    assert_eq!(world.told(), ["a@1 failed: b@1 waiting, c@1 waiting"]);
}

fn slot(number: usize) -> SlotRef {
    SlotRef::at(WorkflowId::new("w").unwrap(), at(i64::try_from(number).unwrap(), 0))
}

/// A slot and those that wait for it at any distance.
fn reached(edges: &Edges, from: &SlotRef) -> BTreeSet<SlotRef> {
    let mut seen = BTreeSet::from([from.clone()]);
    let mut queue = vec![from.clone()];
    while let Some(next) = queue.pop() {
        let waiting = edges.get(&next).into_iter().flatten().map(|(waiter, _)| waiter);
        queue.extend(waiting.filter(|waiter| seen.insert((*waiter).clone())).cloned());
    }
    seen
}

fn is_in_circle(edges: &Edges, slot: &SlotRef) -> bool {
    edges.get(slot).into_iter().flatten().any(|(waiter, _)| reached(edges, waiter).contains(slot))
}

proptest! {
    /// Whatever waits for whatever, a slot is in one place, a follower is reached from its failure, and no failure from
    /// another one unless it is in a circle.
    #[test]
    fn nothing_vanishes_and_nothing_is_listed_twice(
        is_final in prop::collection::vec(any::<bool>(), 8),
        waits in prop::collection::vec((0_usize..8, 0_usize..8), 0..16),
    ) {
        let mut edges = Edges::new();
        for (from, to) in &waits {
            edges.entry(slot(*from)).or_default().push((slot(*to), SlotState::Waiting));
        }
        let finals = (0..8).filter(|number| is_final[*number]);
        let rows: Vec<SlotRow> =
            finals.map(|number| SlotRow { id: slot(number), slot: Slot::new(SlotState::Expired, at(0, 0)) }).collect();
        // Only what is downstream of them is ever read.
        let all: BTreeSet<SlotRef> = rows.iter().flat_map(|row| reached(&edges, &row.id)).collect();
        edges.retain(|from, _| all.contains(from));
        let failures = fold(rows.clone(), &edges);
        let mut places: BTreeMap<SlotRef, usize> = BTreeMap::new();
        for failure in &failures {
            let own = reached(&edges, &failure.slot);
            *places.entry(failure.slot.clone()).or_default() += 1;
            for follower in &failure.followers {
                *places.entry(follower.slot.clone()).or_default() += 1;
                prop_assert!(own.contains(&follower.slot));
            }
            for other in failures.iter().filter(|other| other.slot != failure.slot && own.contains(&other.slot)) {
                prop_assert!(is_in_circle(&edges, &other.slot), "{other:?} waits for {failure:?}");
            }
        }
        prop_assert!(places.values().all(|count| *count == 1));
        prop_assert_eq!(places.into_keys().collect::<BTreeSet<_>>(), all);
    }
}
