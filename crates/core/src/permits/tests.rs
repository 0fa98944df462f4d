use jiff::SignedDuration;
use kelos_model::event::{Origin, SlotEvent};
use kelos_model::{PoolUse, SlotKey, TokenRate, slot};

use super::*;

/// Says of each slot that it may run, by itself.
struct AllReady;

impl Readiness for AllReady {
    fn is_ready(&self, _: &WorkflowId, _: &SlotKey) -> bool {
        true
    }
}

fn named(id: &str) -> WorkflowId {
    id.parse().unwrap()
}

/// Permits, and the slots that they are granted to.
struct World {
    permits: Permits,
    slots: BTreeMap<SlotRef, Slot>,
    now: Timestamp,
}

impl World {
    fn new(limit: u32) -> World {
        World { permits: Permits::new(limit), slots: BTreeMap::new(), now: Timestamp::UNIX_EPOCH }
    }

    fn agree(&mut self, id: &str, concurrency: u32, pools: &[(&str, u32, u32)]) {
        let pools = pools
            .iter()
            .map(|(pool, permits, size)| PoolUse {
                pool: pool.parse().unwrap(),
                permits: *permits,
                size: *size,
                rate: None,
            })
            .collect();
        let terms = Terms { concurrency: Some(concurrency), pools, is_present: true, ..Terms::default() };
        self.permits.agree(&named(id), terms);
    }

    fn name(id: &str, hour: i64) -> SlotRef {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour);
        SlotRef::at(id.parse().unwrap(), at)
    }

    /// Puts a slot into a state, with or without a live run.
    fn put(&mut self, id: &SlotRef, state: SlotState, run_alive: bool) {
        let before = self.slots.get(id).cloned();
        let after = Slot { state, run_alive, since: self.now, ..before.clone().expect("a slot that was queued") };
        self.permits.follow(id, before.as_ref(), &after, state == SlotState::Queued);
        self.slots.insert(id.clone(), after);
    }

    /// Queues a slot.
    fn queue(&mut self, id: &str, hour: i64, priority: i32) {
        self.queue_slot(World::name(id, hour), priority);
    }

    fn queue_slot(&mut self, slot: SlotRef, priority: i32) {
        let planned = SlotEvent::planned(Origin::Schedule, priority);
        let planned = slot::apply(None, &planned, self.now, 1).expect("an event that can happen");
        self.slots.insert(slot.clone(), planned);
        self.put(&slot, SlotState::Queued, false);
    }

    fn dispatch(&mut self, slot: &SlotRef) {
        self.put(slot, SlotState::Dispatched, true);
    }

    fn end(&mut self, id: &str, hour: i64) {
        self.put(&World::name(id, hour), SlotState::Succeeded, false);
    }

    /// Grants permits, dispatches the slots, and returns their workflows and hours.
    fn grant(&mut self) -> Vec<String> {
        let grants = self.permits.grant(self.now, &None, &AllReady);
        let mut told = Vec::new();
        for Grant { slot, .. } in grants {
            let hour = slot.key.time().unwrap().as_second() / 3600;
            told.push(format!("{}@{hour}", slot.workflow));
            self.dispatch(&slot);
        }
        assert!(!self.permits.is_due() || self.permits.woken.is_empty(), "a pass leaves nothing to do");
        told
    }
}

#[test]
fn the_oldest_go_first_as_many_as_the_concurrency_allows() {
    let mut world = World::new(100);
    world.agree("a", 2, &[]);
    for hour in [3, 1, 2] {
        world.queue("a", hour, 0);
    }
    assert_eq!(world.grant(), ["a@1", "a@2"]);
    assert!(world.grant().is_empty());
    world.end("a", 2);
    assert_eq!(world.grant(), ["a@3"]);
}

#[test]
fn a_larger_priority_goes_first() {
    let mut world = World::new(100);
    world.agree("a", 1, &[]);
    world.queue("a", 1, 0);
    world.queue("a", 2, 5);
    assert_eq!(world.grant(), ["a@2"]);
}

#[test]
fn workflows_that_the_limit_on_all_runs_holds_back_take_turns() {
    let mut world = World::new(1);
    world.agree("a", 10, &[]);
    world.agree("b", 10, &[]);
    for hour in [1, 2] {
        world.queue("a", hour, 0);
        world.queue("b", hour, 0);
    }
    assert_eq!(world.grant(), ["a@1"]);
    for (done, next) in [(("a", 1), "a@2"), (("a", 2), "b@1"), (("b", 1), "b@2")] {
        world.end(done.0, done.1);
        assert_eq!(world.grant(), [next]);
    }
}

#[test]
fn a_workflow_that_is_on_time_does_not_wait_for_a_turn_of_all_that_catch_up() {
    let mut world = World::new(2);
    let late: Vec<String> = (0..100).map(|n| format!("late-{n:03}")).collect();
    for id in late.iter().map(String::as_str).chain(["on-time"]) {
        world.agree(id, 10, &[]);
    }
    for (id, hour) in late.iter().flat_map(|id| (0..5).map(move |hour| (id, hour))) {
        world.queue(id, hour, 0);
    }
    let mut live = world.grant();
    let mut served = 0;
    for round in 0..40 {
        world.queue("on-time", 1000 + round, 0);
        for _ in 0..2 {
            let ended = live.remove(0);
            let (id, hour) = ended.split_once('@').unwrap();
            world.end(id, hour.parse().unwrap());
            live.extend(world.grant());
        }
        served += live.iter().filter(|one| **one == format!("on-time@{}", 1000 + round)).count();
    }
    assert_eq!(served, 40, "each of its slots is served within two grants");
    // The others go on, each in its turn.
    let waiting = world.permits.starved().filter(|id| world.permits.queue(*id).unwrap().len() == 5).count();
    assert!(waiting <= 61, "every other place is theirs, but {waiting} of 100 got none of the 82");
}

#[test]
fn a_run_takes_the_permits_of_all_its_pools_or_none() {
    let mut world = World::new(100);
    world.agree("both", 10, &[("x", 1, 1), ("y", 1, 1)]);
    world.agree("one", 10, &[("x", 1, 1)]);
    world.queue("one", 1, 0);
    assert_eq!(world.grant(), ["one@1"]);
    world.queue("both", 2, 0);
    world.queue("one", 3, 0);
    assert!(world.grant().is_empty());
    world.end("one", 1);
    assert_eq!(world.grant(), ["both@2"]);
    world.end("both", 2);
    assert_eq!(world.grant(), ["one@3"]);
}

#[test]
fn a_run_of_a_removed_workflow_holds_its_permits() {
    let mut world = World::new(100);
    world.agree("a", 1, &[("x", 1, 1)]);
    world.queue("a", 1, 0);
    assert_eq!(world.grant(), ["a@1"]);
    let before = world.permits.queue(&named("a")).unwrap().terms.clone();
    world.permits.agree(&named("a"), Terms { is_present: false, ..before });
    world.agree("b", 1, &[("x", 1, 1)]);
    world.queue("b", 1, 0);
    assert!(world.grant().is_empty());
    world.end("a", 1);
    assert_eq!(world.grant(), ["b@1"]);
}

#[test]
fn a_paused_workflow_gets_nothing_until_it_goes_on() {
    let mut world = World::new(100);
    world.agree("a", 1, &[]);
    world.queue("a", 1, 0);
    let terms = world.permits.queue(&named("a")).unwrap().terms.clone();
    world.permits.agree(&named("a"), Terms { is_paused: true, ..terms.clone() });
    assert!(world.grant().is_empty());
    world.permits.agree(&named("a"), terms);
    assert_eq!(world.grant(), ["a@1"]);
}

#[test]
fn whoever_waits_long_at_the_front_of_all_lines_is_not_overtaken_for_ever() {
    let mut world = World::new(100);
    world.agree("all", 1, &[("x", 2, 2), ("y", 2, 2)]);
    world.agree("x", 2, &[("x", 1, 2)]);
    world.agree("y", 2, &[("y", 1, 2)]);
    for (id, hour) in [("x", 1), ("y", 1)] {
        world.queue(id, hour, 0);
    }
    world.grant();
    world.queue("all", 0, 9);
    world.queue("x", 2, 0);
    // It is short in two pools, so it reserves nothing yet and is overtaken.
    assert_eq!(world.grant(), ["x@2"]);
    let until = world.permits.next_wake().expect("a moment at which its patience ends");
    assert_eq!(until, world.now + POOL_PATIENCE);
    world.now = until;
    world.queue("y", 2, 0);
    assert!(world.grant().is_empty(), "all is kept for who waits longest");
    for (id, hour) in [("x", 1), ("x", 2), ("y", 1)] {
        world.end(id, hour);
    }
    assert_eq!(world.grant(), ["all@0"]);
}

/// Random queues and ends: no limit is ever exceeded, and in the end every slot has run.
#[test]
fn no_limit_is_passed_and_nobody_is_forgotten() {
    for seed in 0..200_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = move |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % most
        };
        let mut world = World::new(1 + draw(5) as u32);
        let sizes = [1 + draw(3) as u32, 1 + draw(3) as u32];
        let workflows = ["a", "b", "c", "d"];
        let mut uses: BTreeMap<&str, Vec<(&str, u32, u32)>> = BTreeMap::new();
        for id in workflows {
            let mut pools = Vec::new();
            for (pool, size) in ["x", "y"].into_iter().zip(sizes) {
                if draw(2) == 0 {
                    pools.push((pool, 1 + draw(size.into()) as u32, size));
                }
            }
            world.agree(id, 1 + draw(3) as u32, &pools);
            uses.insert(id, pools);
        }
        let mut alive = Vec::new();
        let (mut queued, mut went) = (0, 0);
        for hour in 0..400 {
            world.now += SignedDuration::from_mins(draw(30) as i64);
            if hour < 200 && draw(3) > 0 {
                world.queue(workflows[draw(4) as usize], hour, draw(3) as i32);
                queued += 1;
            }
            if !alive.is_empty() && (hour >= 200 || draw(2) == 0) {
                let slot: SlotRef = alive.swap_remove(draw(alive.len() as u64) as usize);
                world.put(&slot, SlotState::Succeeded, false);
            }
            let grants = world.permits.grant(world.now, &None, &AllReady);
            for Grant { slot, .. } in grants {
                world.dispatch(&slot);
                alive.push(slot);
                went += 1;
            }
            assert!(alive.len() <= world.permits.limit() as usize, "seed {seed}");
            for (pool, size) in ["x", "y"].into_iter().zip(sizes) {
                let held: u32 = alive
                    .iter()
                    .flat_map(|slot| &uses[slot.workflow.as_str()])
                    .filter(|(name, ..)| *name == pool)
                    .map(|(_, permits, _)| permits)
                    .sum();
                assert!(held <= size, "seed {seed}: {held} of {size} permits of {pool}");
            }
        }
        assert_eq!(went, queued, "seed {seed}");
    }
}

#[test]
fn slots_by_time_and_slots_named_by_moments_go_by_age_in_one_line() {
    let mut world = World::new(9);
    for id in ["a", "b"] {
        world.agree(id, 9, &[("db", 1, 1)]);
    }
    world.queue("a", 5, 0);
    let moment = World::name("b", 3);
    world.queue_slot(SlotRef::moment(moment.workflow.clone(), moment.key.time().unwrap()), 0);
    assert_eq!(world.grant(), ["b@3"], "it came to be before the other's time");
}

#[test]
fn jobs_go_by_when_they_were_queued_whatever_is_noted_of_them_later() {
    let mut world = World::new(100);
    world.agree("a", 1, &[]);
    let job = |id: &str| SlotRef::job("a".parse().unwrap(), id.into());
    world.queue_slot(job("y"), 0);
    world.now += SignedDuration::from_secs(1);
    world.queue_slot(job("x"), 0);
    // For example, the run that was killed before the job was reopened has ended.
    let before = world.slots[&job("y")].clone();
    let after = Slot { last_event: 9, ..before.clone() };
    world.permits.follow(&job("y"), Some(&before), &after, true);
    let grants = world.permits.grant(world.now, &None, &AllReady);
    assert_eq!(grants, [Grant { slot: job("y"), request: None, taker: None, spent: Vec::new(), others: Vec::new() }]);
}

/// Two workflows whose jobs a worker runs, the second with a pool; the worker has room for one job.
fn two_apps(limit: u32) -> World {
    let mut world = World::new(limit);
    world.agree("a", 5, &[]);
    world.agree("b", 5, &[("p", 1, 1)]);
    for id in ["a", "b"] {
        let id: WorkflowId = id.parse().unwrap();
        let terms = Terms { by_workers: true, ..world.permits.queues[&QueueId::from(&id)].terms.clone() };
        world.permits.agree(&id, terms);
        world.queue_slot(SlotRef::job(id, "1".into()), 0);
    }
    let workflows = ["a", "b"].map(|id| id.parse().unwrap()).into();
    world.permits.offered("w".into(), Some(Offer { workflows, free: 1, ..Offer::default() }));
    world
}

fn granted(world: &mut World) -> Vec<String> {
    let grants = world.permits.grant(world.now, &None, &AllReady);
    grants.iter().map(|grant| grant.slot.workflow.to_string()).collect()
}

#[test]
fn who_has_no_worker_any_more_is_not_held_back_by_the_limit_on_all_runs() {
    let mut world = two_apps(1);
    assert_eq!(granted(&mut world), ["a"]);
    assert_eq!(world.permits.starved().count(), 0);
}

#[test]
fn who_has_no_worker_any_more_leaves_the_lines_of_pools() {
    let mut world = two_apps(100);
    world.agree("c", 5, &[("p", 1, 1)]);
    world.queue("c", 1, -1);
    assert_eq!(granted(&mut world), ["a", "c"]);
}

#[test]
fn who_is_no_longer_served_by_an_offer_leaves_the_lines_of_pools() {
    let mut world = World::new(100);
    world.agree("b", 5, &[("p", 2, 2)]);
    let b: WorkflowId = "b".parse().unwrap();
    let terms = Terms { by_workers: true, ..world.permits.queues[&QueueId::from(&b)].terms.clone() };
    world.permits.agree(&b, terms);
    world.agree("c", 5, &[("p", 1, 2)]);
    world.queue("c", 1, 2);
    world.queue("c", 2, 0);
    world.queue_slot(SlotRef::job(b.clone(), "1".into()), 1);
    let offer = |id: &WorkflowId| Offer { workflows: [id.clone()].into(), free: 1, ..Offer::default() };
    world.permits.offered("w".into(), Some(offer(&b)));
    assert_eq!(world.grant(), ["c@1"], "the job reserves the rest of the pool");
    world.permits.offered("w".into(), Some(offer(&named("a"))));
    assert_eq!(world.grant(), ["c@2"]);
}

/// Gives a pool of a workflow a rate of one token in ten seconds.
fn slow_down(world: &mut World, id: &str, pool: &str, burst: u32) {
    let id: WorkflowId = id.parse().unwrap();
    let mut terms = world.permits.queues[&QueueId::from(&id)].terms.clone();
    let one = terms.pools.iter_mut().find(|one| one.pool.as_str() == pool).unwrap();
    one.rate = Some(TokenRate { tokens: 1, millis: 10_000, burst });
    world.permits.agree(&id, terms);
}

#[test]
fn a_rate_lets_a_burst_go_and_then_one_at_a_time() {
    let mut world = World::new(100);
    world.agree("a", 9, &[("crm", 1, 9)]);
    slow_down(&mut world, "a", "crm", 2);
    (1..=4).for_each(|hour| world.queue("a", hour, 0));
    assert_eq!(world.grant(), ["a@1", "a@2"]);
    for hour in [3, 4] {
        let next = world.permits.next_wake().expect("a moment at which a token comes");
        assert_eq!(next, world.now + SignedDuration::from_secs(10));
        world.now = next;
        assert_eq!(world.grant(), [format!("a@{hour}")]);
    }
    assert_eq!(world.permits.next_wake(), None);
}

#[test]
fn who_waits_for_a_rate_holds_no_permit_of_another_pool() {
    let mut world = World::new(100);
    world.agree("a", 9, &[("crm", 1, 9), ("gpu", 1, 1)]);
    slow_down(&mut world, "a", "crm", 1);
    world.agree("b", 9, &[("gpu", 1, 1)]);
    world.queue("a", 1, 0);
    assert_eq!(world.grant(), ["a@1"]);
    world.end("a", 1);
    world.queue("a", 2, 9);
    world.queue("b", 3, 0);
    assert_eq!(world.grant(), ["b@3"]);
    world.now += SignedDuration::from_secs(10);
    assert!(world.grant().is_empty(), "there is a token, and no permit");
    world.end("b", 3);
    assert_eq!(world.grant(), ["a@2"]);
}

#[test]
fn the_next_token_goes_to_who_needs_one_while_who_needs_two_lacks_more_than_that() {
    let mut world = World::new(100);
    world.agree("holder", 9, &[("gpu", 1, 1)]);
    world.agree("two", 9, &[("crm", 2, 9), ("gpu", 1, 1)]);
    world.agree("one", 9, &[("crm", 1, 9)]);
    ["two", "one"].iter().for_each(|id| slow_down(&mut world, id, "crm", 2));
    world.queue("holder", 1, 0);
    (2..=3).for_each(|hour| world.queue("one", hour, 0));
    assert_eq!(world.grant(), ["holder@1", "one@2", "one@3"]);
    world.queue("two", 4, 9);
    world.queue("one", 5, 0);
    assert!(world.grant().is_empty());
    let next = world.permits.next_wake().expect("a moment at which a token comes");
    assert_eq!(next, world.now + SignedDuration::from_secs(10));
    world.now = next;
    assert_eq!(world.grant(), ["one@5"]);
}

#[test]
fn a_clock_that_was_put_back_does_not_stop_a_rate() {
    let mut world = World::new(100);
    world.now += SignedDuration::from_hours(9);
    world.agree("a", 9, &[("crm", 1, 9)]);
    slow_down(&mut world, "a", "crm", 1);
    world.queue("a", 1, 0);
    world.queue("a", 2, 0);
    assert_eq!(world.grant(), ["a@1"]);
    world.now -= SignedDuration::from_hours(5);
    assert!(world.grant().is_empty());
    let next = world.permits.next_wake().expect("a moment at which a token comes");
    assert_eq!(next, world.now + SignedDuration::from_secs(10));
    world.now = next;
    assert_eq!(world.grant(), ["a@2"]);
}

#[test]
fn a_job_that_a_worker_asks_for_by_name_is_looked_at_when_a_token_comes() {
    let mut world = World::new(100);
    world.agree("a", 9, &[("crm", 1, 9)]);
    slow_down(&mut world, "a", "crm", 1);
    let a: WorkflowId = "a".parse().unwrap();
    let terms = Terms { by_workers: true, ..world.permits.queues[&QueueId::from(&a)].terms.clone() };
    world.permits.agree(&a, terms);
    for id in ["1", "2"] {
        let slot = SlotRef::job(a.clone(), id.into());
        world.queue_slot(slot.clone(), 0);
        let offer = Offer { workflows: [a.clone()].into(), job: Some(slot), free: 1, ..Offer::default() };
        world.permits.offered(id.into(), Some(offer));
    }
    assert_eq!(granted(&mut world), ["a"], "there is one token");
    world.now = world.permits.next_wake().expect("a moment at which a token comes");
    assert_eq!(granted(&mut world), ["a"]);
    assert_eq!(world.permits.next_wake(), None);
}

#[test]
fn a_job_that_a_worker_without_its_labels_asks_for_overtakes_none() {
    let mut world = World::new(100);
    let a: WorkflowId = "a".parse().unwrap();
    let gpu: BTreeSet<Label> = Label::new("gpu").into_iter().collect();
    let terms = Terms { by_workers: true, runs_on: gpu.clone(), is_present: true, ..Terms::default() };
    world.permits.agree(&a, terms);
    let [first, second] = ["1", "2"].map(|id| SlotRef::job(a.clone(), id.into()));
    world.queue_slot(first.clone(), 0);
    world.now += SignedDuration::from_secs(1);
    world.queue_slot(second.clone(), 0);
    let offer = Offer { workflows: [a.clone()].into(), free: 1, ..Offer::default() };
    world.permits.offered("plain".into(), Some(Offer { job: Some(second.clone()), ..offer.clone() }));
    world.permits.offered("with-gpu".into(), Some(Offer { labels: gpu.clone(), ..offer.clone() }));
    let grants = |world: &mut World| world.permits.grant(world.now, &None, &AllReady);
    let taken: Vec<_> = grants(&mut world).into_iter().map(|grant| (grant.slot, grant.taker.unwrap().worker)).collect();
    assert_eq!(taken, [(first, "with-gpu".into())]);
    // One with the labels has it at once.
    world.permits.offered("gpu-too".into(), Some(Offer { labels: gpu, job: Some(second.clone()), ..offer }));
    let taken: Vec<_> = grants(&mut world).into_iter().map(|grant| (grant.slot, grant.taker.unwrap().worker)).collect();
    assert_eq!(taken, [(second, "gpu-too".into())]);
}

#[test]
fn what_was_spent_is_known_after_a_restart() {
    let mut world = World::new(100);
    world.permits.restore_spent(&"crm".parse().unwrap(), world.now + SignedDuration::from_secs(4));
    world.agree("a", 9, &[("crm", 1, 9)]);
    slow_down(&mut world, "a", "crm", 1);
    world.queue("a", 1, 0);
    assert!(world.grant().is_empty());
    assert_eq!(world.permits.next_wake(), Some(world.now + SignedDuration::from_secs(4)));
}
