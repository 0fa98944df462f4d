//! Schedulers of one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::{Timestamp, ToSpan};
use kelos::SlotState;
use kelos::embed::{Context, Places, Plan, PlannedSlots, Project, Rehearsal, Scheduler, job};

/// Runs a job a number of times, each once the one before has succeeded.
struct Times(u32);

impl Scheduler for Times {
    type Context = u32;

    fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<u32>) -> Plan<u32> {
        let all_succeeded = slots.iter().all(|slot| slot.state == SlotState::Succeeded);
        let next = slots.len() as u32 + 1;
        if all_succeeded && next <= self.0 { Plan::none().start(next) } else { Plan::none() }
    }
}

async fn hello(context: Context, time: u32, (): ()) -> Result<u32, String> {
    context.log(format!("hello for the time {time}"));
    Ok(time)
}

fn greetings(times: u32) -> Project {
    Project::new("hello", "1.0").add(job("hello", hello).with(()).planned_by(Times(times)))
}

fn keys(rehearsal: &Rehearsal) -> Vec<String> {
    rehearsal.slots("hello").unwrap().into_iter().map(|(key, _)| key.to_string()).collect()
}

#[test]
fn a_job_runs_so_many_times_each_until_it_succeeds() {
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", greetings(3)).unwrap();
    rehearsal.takes("hello", std::time::Duration::from_secs(60)).unwrap();
    rehearsal.run_until("2026-03-28T00:00:30Z").unwrap();
    let first = keys(&rehearsal);
    assert_eq!(first.len(), 1);
    rehearsal.fail("hello", &first[0], 2).unwrap();
    rehearsal.run_until("2026-03-28T00:01:30Z").unwrap();
    // Its first attempt was begun before, and succeeded.
    let second = keys(&rehearsal);
    assert_eq!(second.len(), 2);
    rehearsal.run_until("2026-03-28T06:00Z").unwrap();
    let all = keys(&rehearsal);
    assert_eq!(all.len(), 3);
    let given: Vec<u32> = all.iter().map(|key| rehearsal.output("hello", key).unwrap()).collect();
    assert_eq!(given, [1, 2, 3]);
    assert_eq!(rehearsal.lines("hello", &all[2]).unwrap(), ["hello for the time 3"]);
}

/// Opens a slot at each full hour, and nothing else.
struct Hours;

impl Scheduler for Hours {
    type Context = String;

    fn plan(&mut self, now: Timestamp, slots: &PlannedSlots<String>) -> Plan<String> {
        let hour = |at: Timestamp| Timestamp::from_second(at.as_second().div_euclid(3600) * 3600).unwrap();
        let known = slots.iter().any(|slot| slot.context == hour(now).to_string());
        let plan = Plan::none().again_at(hour(now) + 1.hour());
        if known { plan } else { plan.start(hour(now).to_string()) }
    }
}

#[test]
fn a_scheduler_is_asked_again_when_it_says() {
    async fn hello(_: Context, hour: String, (): ()) -> Result<String, String> {
        Ok(hour)
    }
    let project = Project::new("hello", "1.0").add(job("hello", hello).with(()).planned_by(Hours));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:30Z", project).unwrap();
    rehearsal.run_until("2026-03-29T00:30Z").unwrap();
    let hours: Vec<String> =
        keys(&rehearsal).iter().map(|key| rehearsal.output::<String>("hello", key).unwrap()).collect();
    assert_eq!(hours.len(), 25);
    assert_eq!((&*hours[0], &*hours[24]), ("2026-03-28T00:00:00Z", "2026-03-29T00:00:00Z"));
}

/// Opens a slot of each priority.
struct Ordered(Vec<i32>);

impl Scheduler for Ordered {
    type Context = i32;

    fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<i32>) -> Plan<i32> {
        let open = if slots.is_empty() { self.0.as_slice() } else { &[] };
        open.iter().fold(Plan::none(), |plan, priority| plan.start_at_priority(*priority, *priority))
    }
}

#[test]
fn the_order_of_a_scheduler_is_that_of_the_lines() {
    async fn hello(_: Context, _: i32, (): ()) -> Result<(), String> {
        Ok(())
    }
    let place = Places::new("place", 1);
    let ordered = job("hello", hello).with(()).on(&place).planned_by(Ordered(vec![0, -5, 7, 0, 7]));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", Project::new("hello", "1.0").add(ordered)).unwrap();
    rehearsal.takes("hello", std::time::Duration::from_secs(60)).unwrap();
    rehearsal.run_until("2026-03-28T01:00Z").unwrap();
    let opened: Vec<String> = keys(&rehearsal);
    let started: Vec<usize> = rehearsal
        .started()
        .iter()
        .map(|(_, run)| opened.iter().position(|key| *key == run.slot.key.to_string()).unwrap())
        .collect();
    // The slot that came first took the free place.
    assert_eq!(started, [2, 4, 0, 3, 1]);
}

#[test]
fn slots_that_people_open_are_seen_and_inputs_of_others_are_not() {
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", greetings(3)).unwrap();
    rehearsal.start("hello", &17_u32).unwrap();
    let odd = rehearsal.start("hello", &"seventeen").unwrap();
    rehearsal.run_until("2026-03-28T00:01Z").unwrap();
    assert_eq!(rehearsal.slots("hello").unwrap().len(), 4);
    assert_eq!(rehearsal.state("hello", &odd.key.to_string()).unwrap(), Some(SlotState::Failed));
}

/// Opens a slot whenever it is asked.
struct Greedy;

impl Scheduler for Greedy {
    type Context = u32;

    fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<u32>) -> Plan<u32> {
        (0..2000).fold(Plan::none(), |plan, n| plan.start(n + slots.len() as u32))
    }
}

/// Panics at its second plan.
struct Broken(Arc<AtomicU32>);

impl Scheduler for Broken {
    type Context = u32;

    fn plan(&mut self, _: Timestamp, slots: &PlannedSlots<u32>) -> Plan<u32> {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(asked != 1, "the table is gone");
        if slots.len() < 2 { Plan::none().start(asked) } else { Plan::none() }
    }
}

#[test]
fn a_scheduler_that_never_has_enough_is_stopped() {
    let project = Project::new("hello", "1.0").add(job("hello", hello).with(()).planned_by(Greedy));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project).unwrap();
    rehearsal.run_until("2026-03-28T00:00:30Z").unwrap();
    assert_eq!(rehearsal.slots("hello").unwrap().len(), 10_000);
}

#[test]
fn a_scheduler_that_panics_is_asked_again() {
    let asked = Arc::new(AtomicU32::new(0));
    let project = Project::new("hello", "1.0").add(job("hello", hello).with(()).planned_by(Broken(asked.clone())));
    let mut rehearsal = Rehearsal::at("2026-03-28T00:00Z", project).unwrap();
    rehearsal.run_until("2026-03-28T00:02Z").unwrap();
    assert_eq!(rehearsal.slots("hello").unwrap().len(), 2);
}

#[test]
fn a_program_that_starts_again_goes_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let play = |times: u32| {
        runtime.block_on(async {
            let running = greetings(times).folder(folder.path()).start().await.unwrap();
            let mut commits = running.handle().watch_commits();
            let succeeded = || {
                let counts = running.reader().slot_counts(&kelos::SlotFilter::default()).unwrap();
                counts.get(&SlotState::Succeeded).copied().unwrap_or_default()
            };
            while succeeded() < u64::from(times) {
                commits.changed().await.unwrap();
            }
            running.stop().await;
        });
    };
    play(3);
    play(5);
    let running = runtime.block_on(greetings(5).folder(folder.path()).start()).unwrap();
    let slots = running.reader().slot_counts(&kelos::SlotFilter::default()).unwrap();
    assert_eq!(slots.into_iter().collect::<Vec<_>>(), [(SlotState::Succeeded, 5)]);
    runtime.block_on(running.stop());
}
