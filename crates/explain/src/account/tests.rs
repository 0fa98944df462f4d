//! Slots of event schedules and of workflows with constraints, by a real scheduler over a clock of its own.

use std::collections::BTreeMap;

use kelos_core::{
    ChangeSchedule, Command, Config, DeleteSchedules, Disable, Enable, FireRequest, Input, Inspect, Request, Tell,
};
use kelos_engine::turn::Turns;
use kelos_model::retry::OnUnknown;
use kelos_model::run::Report;
use kelos_model::time::Window;
use kelos_model::time::{Firing, Schedule, Zone};
use kelos_model::workflow::{CatchUp, EventKeys, Job, Keys, Program, Provenance};
use kelos_model::{Actor, Constraint, Fact, Gate, Occurrence, Outcome, RetryPolicy, RunId, Trigger, WorkflowId};
use kelos_store::{Journal, Lease, MemoryStore, StoredState};

use super::*;

/// A scheduler with a program `p`, which starts at 10:00.
struct World {
    store: MemoryStore,
    turns: Turns,
    now: Timestamp,
    files: BTreeMap<WorkflowId, Workflow>,
}

fn name(id: &str) -> WorkflowId {
    WorkflowId::new(id).unwrap()
}

fn at(clock: &str) -> Timestamp {
    format!("2026-11-21T{clock}Z").parse().unwrap()
}

fn job() -> Job {
    Job::new("command", serde_json::Map::new())
}

fn partitions(count: u32) -> Trigger {
    Trigger::Partitions { dataset: "ds".into(), count }
}

/// An event schedule `s` of the program.
fn schedule(trigger: Trigger, gates: Vec<Gate>) -> Workflow {
    let keys = EventKeys { enabled: true, ..EventKeys::new("s", name("p")) };
    let constraints = gates.into_iter().map(Constraint::new).collect();
    Workflow { trigger, constraints, ..Workflow::keyed(name("s"), Keys::Events(Box::new(keys)), job()) }
}

fn night() -> Gate {
    Gate::Window(Window::new("22:00", "06:00", Zone::utc()).unwrap())
}

impl World {
    fn of(schedule: Workflow) -> World {
        let mut store = MemoryStore::new();
        let lease: Lease = store.lease("test", at("10:00:00"), 1_000).unwrap().unwrap();
        let (turns, _) = Turns::restore(Config::default(), &mut store, lease, at("10:00:00")).unwrap();
        let program = Keys::Requests(Box::new(Program { name: "p".to_owned(), kind: None }));
        let program = Workflow { retry: RetryPolicy::immediate(1), ..Workflow::keyed(name("p"), program, job()) };
        let files = [program, schedule].into_iter().map(|one| (one.id.clone(), one)).collect();
        let mut world = World { store, turns, now: at("10:00:00"), files };
        world.define();
        world
    }

    fn define(&mut self) {
        let all = self.files.values().cloned().map(Arc::new).collect();
        let deployed = self.files.keys().map(|id| (id.to_string(), deployment())).collect();
        self.take(Input::Definitions { provenance: Provenance::File, all, deployed });
    }

    fn take(&mut self, input: Input) -> Vec<Command> {
        let woke = Input::Woke { only: None, look_again: false };
        self.turns.turn(&mut self.store, self.now, [input, woke]).unwrap().commands
    }

    fn ask(&mut self, request: impl Request) -> Vec<Command> {
        self.take(Input::Asked { token: 1, by: Actor::person("ann"), ask: request.into(), warrant: None })
    }

    fn at(&mut self, clock: &str) -> &mut World {
        self.now = at(clock);
        self.take(Input::Woke { only: None, look_again: false });
        self
    }

    fn tell(&mut self, count: u32) -> &mut World {
        let what = Occurrence::Partitions { dataset: "ds".into(), count, keys: Vec::new() };
        self.ask(Tell::of(vec![Fact { source: "test".into(), key: None, what }]));
        self
    }

    fn fire(&mut self, workflow: &str, unconstrained: bool) -> &mut World {
        let reason = Some("to see".to_owned());
        let workflow = name(workflow);
        self.ask(FireRequest { workflow, arguments: BTreeMap::new(), key: None, priority: 0, unconstrained, reason });
        self
    }

    /// The slot by a moment, where its workflow has such.
    fn known(&self, slot: &SlotRef) -> SlotRef {
        let keys = self.files.get(&slot.workflow).map(|workflow| &workflow.keys);
        let key = slot.key.clone();
        SlotRef::new(slot.workflow.clone(), keys.map_or(key.clone(), |keys| keys.resolve(key)))
    }

    fn report(&mut self, slot: &SlotRef, number: u32, report: Report) -> &mut World {
        let run = RunId { slot: self.known(slot), number };
        self.take(Input::RunReported { run, report });
        self
    }

    /// The explanation of a slot, as of a moment or of now.
    fn why(&mut self, slot: &SlotRef, then: Option<&str>) -> Account {
        let slot = &self.known(slot);
        let reader = self.store.reader();
        let Some(clock) = then else {
            let commands = self.ask(Inspect { slot: slot.clone() });
            let inspection = commands.into_iter().find_map(|command| match command {
                Command::Reply { reply: Ok(answer), .. } => Inspect::answer(answer),
                _ => None,
            });
            return read(&*reader, slot, self.now, true, inspection.as_ref()).unwrap();
        };
        read(&*reader, slot, at(clock), false, None).unwrap()
    }

    #[track_caller]
    fn says(&mut self, clock: &str, expected: &str) -> &mut World {
        let slot = slot(clock);
        assert_eq!(self.why(&slot, None).headline, expected);
        self
    }

    #[track_caller]
    fn said(&mut self, clock: &str, then: &str, expected: &str) -> &mut World {
        let slot = slot(clock);
        assert_eq!(self.why(&slot, Some(then)).headline, expected);
        self
    }
}

fn deployment() -> kelos_core::Deployment {
    kelos_core::Deployment { digest: None, update_schedules: true, by: None }
}

fn slot(clock: &str) -> SlotRef {
    SlotRef::at(name("s"), at(clock))
}

#[test]
fn what_collects_says_how_far_it_has_come_now_and_then() {
    let mut world = World::of(schedule(partitions(4), Vec::new()));
    world.tell(1).at("10:05:00").tell(2).at("10:10:00");
    world.says(
        "10:00:00",
        "waiting since 2026-11-21T10:00Z, when the first fact came: 3 of 4 partitions of ds; expires at 2026-11-22T10:00Z",
    );
    world.said(
        "10:00:00",
        "10:04:00",
        "waiting since 2026-11-21T10:00Z, when the first fact came: 1 of 4 partitions of ds; expires at 2026-11-22T10:00Z",
    );
    let why = world.why(&slot("10:00:00"), None);
    assert_eq!(
        (reason::words::text(&why.trigger.unwrap()), why.found_at),
        ("3 of 4 partitions of ds".to_owned(), Some(at("10:10:00")))
    );
}

#[test]
fn what_is_held_says_by_what_and_until_when() {
    let mut world = World::of(schedule(partitions(1), vec![night(), Gate::Concurrency(1)]));
    world.tell(1).at("10:10:00");
    let held = "held since 2026-11-21T10:00Z: The window 22:00-06:00 UTC is closed, and opens at 2026-11-21T22:00Z; \
                expires at 2026-11-22T10:00Z";
    world.says("10:00:00", held).said("10:00:00", "10:01:00", held);
    world.at("22:00:00").said("10:00:00", "11:00:00", held);
    let why = world.why(&slot("10:00:00"), None);
    assert_eq!(why.state, Some(SlotState::Dispatched));
    assert_eq!(reason::words::text(&why.constraints.unwrap()), "All constraints are met");
    assert_eq!(reason::words::text(&why.trigger.unwrap()), "1 of 1 partitions of ds");
}

#[test]
fn a_constraint_that_ends_a_slot_is_named_with_what_it_saw() {
    let mut world = World::of(schedule(partitions(1), vec![Gate::Concurrency(1)]));
    world.fire("p", false).at("10:10:00").tell(1);
    world.says("10:10:00", "skipped at 2026-11-21T10:10Z by a constraint: 1 run of p is live, the limit is 1");
}

#[test]
fn those_who_wait_for_fewer_runs_know_their_place() {
    let mut waits = schedule(partitions(1), Vec::new());
    waits.constraints = vec![Constraint { gate: Gate::Concurrency(1), otherwise: kelos_model::Otherwise::Wait }];
    let mut world = World::of(waits);
    world.fire("p", false).at("10:10:00").fire("s", false).at("10:11:00").tell(1);
    world.says(
        "10:11:00",
        "held since 2026-11-21T10:11Z: 1 run of p is live, the limit is 1; 1 slot that waits for the same limit is ahead; \
         expires at 2026-11-22T10:11Z",
    );
}

#[test]
fn what_was_pending_says_who_ended_it_and_what_was_lost() {
    let mut world = World::of(schedule(partitions(4), Vec::new()));
    world.tell(1).at("10:05:00").ask(Disable { schedule: name("s"), reason: None });
    let ended =
        "skipped at 2026-11-21T10:05Z, when ann disabled its schedule; it still waited: 1 of 4 partitions of ds";
    world.says("10:00:00", ended);
    world.ask(Enable { schedule: name("s"), reason: None });
    world.tell(2).at("10:06:00");
    let changed = Arc::new(schedule(partitions(9), Vec::new()));
    world.ask(ChangeSchedule { changed, reason: None });
    world.tell(3).at("10:07:00");
    let ended = "skipped at 2026-11-21T10:06Z, when ann changed its schedule; it still waited: 2 of 4 partitions of ds";
    world.says("10:05:00", ended);
    world.says(
        "10:06:00",
        "waiting since 2026-11-21T10:06Z, when the first fact came: 3 of 9 partitions of ds; expires at 2026-11-22T10:06Z",
    );
    world.ask(DeleteSchedules { schedules: vec![name("s")], reason: None });
    let ended = "skipped at 2026-11-21T10:07Z, when ann deleted its schedule; it still waited: 3 of 9 partitions of ds";
    world.says("10:06:00", ended);
}

#[test]
fn what_expired_says_what_was_lost() {
    let mut world = World::of(schedule(partitions(4), Vec::new()));
    world.tell(3).now = at("10:00:00") + jiff::SignedDuration::from_hours(25);
    world.take(Input::Woke { only: None, look_again: false });
    let lost = "3 of 4 partitions of ds";
    let words =
        format!("expired at 2026-11-22T11:00Z, 1 d 1 h after it began to collect, and its facts are dropped: {lost}");
    world.says("10:00:00", &words);
}

#[test]
fn what_a_person_fired_and_what_is_tried_again() {
    let mut world = World::of(schedule(partitions(4), vec![night()]));
    world.fire("s", true);
    let first = world.why(&slot("10:00:00"), None);
    assert_eq!(reason::words::text(&first.trigger.unwrap()), "Fired by hand");
    world.fire("s", false);
    let id = SlotRef::at(name("s"), at("10:00:00.001"));
    let held = "held since 2026-11-21T10:00Z: The window 22:00-06:00 UTC is closed, and opens at 2026-11-21T22:00Z; \
                expires at 2026-11-22T10:00Z";
    assert_eq!(world.why(&id, None).headline.replace(".001", ""), held.replace(".001", ""));
    world.report(&slot("10:00:00"), 1, Report::Started { external_id: "x1".to_owned() });
    let outcome = Outcome::Failed { reason: "exited with status 3".to_owned(), exit_status: Some(3), code: None };
    world.report(&slot("10:00:00"), 1, Report::Ended { outcome }).at("10:01:00");
    let why = world.why(&slot("10:00:00"), None);
    assert_eq!((why.state, why.runs.len()), (Some(SlotState::Dispatched), 2));
}

#[test]
fn constraints_hold_slots_by_time_too() {
    let hourly = Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let constraints = vec![Constraint::new(night())];
    let mut world = World::of(Workflow {
        constraints,
        start_time: Some(at("11:00:00")),
        ..Workflow::new(name("s"), hourly, job())
    });
    world.at("11:00:01");
    world.says(
        "11:00:00",
        "held since 2026-11-21T11:00:01Z: The window 22:00-06:00 UTC is closed, and opens at 2026-11-21T22:00Z",
    );
}

#[test]
fn a_time_that_was_passed_over_says_how_to_open_it() {
    let hourly = Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let keys = Workflow::new(name("s"), hourly, job());
    let mut world = World::of(Workflow { catch_up: Some(CatchUp::Skip), ..keys });
    world.at("11:30:00");
    world.says(
        "08:00:00",
        "it was never planned: with catchUp \"skip\" its workflow opens no slots of before 2026-11-21T11:29Z, when its schedule was \
         first seen or misfires were passed over; rerun it, or backfill a range, to open it",
    );
}

#[test]
fn a_period_is_not_due_before_it_has_ended_and_none_is_beyond_the_end() {
    let hours = Schedule::Calendar(kelos_model::time::Calendar::hourly());
    let keys = Workflow::new(name("s"), hours, job());
    let mut world = World::of(Workflow { start_time: Some(at("11:00:00")), end_time: Some(at("13:30:00")), ..keys });
    world.at("11:30:00");
    world.says("11:00:00", "its period ends at 2026-11-21T12:00Z: it is not due before");
    world.says("10:00:00", "its workflow starts later, at 2026-11-21T11:00Z");
    world.says("13:00:00", "its workflow ends earlier, at 2026-11-21T13:30Z");
    world.at("12:00:01");
    world.said("11:00:00", "11:40:00", "its period ended at 2026-11-21T12:00Z: it was not due before");
}

#[test]
fn what_is_done_stays_and_says_that_it_is_out_of_range() {
    let hourly = Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let first = Workflow { start_time: Some(at("10:00:00")), ..Workflow::new(name("s"), hourly, job()) };
    let mut world = World::of(first.clone());
    world.at("11:00:01");
    assert_eq!(world.why(&slot("11:00:00"), None).out_of_range, None);

    let told = |world: &mut World, workflow: Option<Workflow>| {
        world.files.remove(&name("s"));
        world.files.extend(workflow.map(|one| (name("s"), one)));
        world.define();
        assert!(world.why(&slot("11:00:00"), None).state.is_some());
        assert_eq!(world.why(&slot("11:00:00"), Some("11:00:01")).out_of_range, None, "of the past");
        world.why(&slot("11:00:00"), None).out_of_range
    };
    let expect = |words: &str| Some(words.to_owned());
    let later = Workflow { start_time: Some(at("11:30:00")), ..first.clone() };
    assert_eq!(told(&mut world, Some(later)), expect("its workflow starts later, at 2026-11-21T11:30Z"));
    let earlier = Workflow { end_time: Some(at("10:30:00")), ..first.clone() };
    assert_eq!(told(&mut world, Some(earlier)), expect("its workflow ends earlier, at 2026-11-21T10:30Z"));
    let six = Schedule::Calendar(kelos_model::time::Calendar::hours(6).unwrap());
    let other = Workflow { start_time: first.start_time, ..Workflow::new(name("s"), six, job()) };
    let none = "its workflow's schedule has no such time; the nearest are 2026-11-21T06:00Z and 2026-11-21T12:00Z";
    assert_eq!(told(&mut world, Some(other)), expect(none));
    assert_eq!(told(&mut world, None), expect("its workflow is no longer defined"));
    assert_eq!(told(&mut world, Some(first)), None);
}

#[test]
fn facts_hold_slots_by_time_too() {
    let hourly = Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let keys = Workflow::new(name("s"), hourly, job());
    let firing = Firing::parse("30 * * * *", Zone::utc()).unwrap();
    let trigger = Trigger::And { triggers: vec![partitions(2), Trigger::Fired { firing }] };
    let mut world = World::of(Workflow { trigger, start_time: Some(at("11:00:00")), ..keys });
    world.at("11:00:01");
    let nothing = "waiting since 2026-11-21T11:00:01Z: 0 of 2 partitions of ds; 30 * * * * has not come yet";
    world.says("11:00:00", nothing).at("11:10:00").tell(1);
    world.says("11:00:00", "waiting since 2026-11-21T11:00:01Z: 1 of 2 partitions of ds; 30 * * * * has not come yet");
    world.said("11:00:00", "11:05:00", nothing);
}

#[test]
fn a_moment_at_which_nothing_came_is_no_slot() {
    let mut world = World::of(schedule(partitions(4), Vec::new()));
    world.says("09:00:00", "nothing opened it: its workflow's slots are named by the moments at which they came to be");
}

#[test]
fn counts_are_those_of_the_moment_although_looks_leave_no_lines() {
    let hourly = Schedule::Cron(kelos_model::time::CronSchedule::hourly());
    let trigger = Trigger::And { triggers: vec![partitions(4), Trigger::Success { workflow: name("up") }] };
    let keys = Workflow::new(name("s"), hourly, job());
    let mut world = World::of(Workflow { trigger, start_time: Some(at("11:00:00")), ..keys });
    let waits = |count: u32| {
        let up = "Workflow slot up@2026-11-21T11:00Z is not ready";
        format!("waiting since 2026-11-21T11:00:01Z: {count} of 4 partitions of ds; {up}")
    };
    world.at("11:00:01").says("11:00:00", &waits(0));
    world.at("11:10:00").tell(1).at("11:20:00").tell(2).at("11:30:00").says("11:00:00", &waits(3));
    world.said("11:00:00", "11:15:00", &waits(1));
    assert_eq!(world.why(&slot("11:00:00"), None).found_at, Some(at("11:20:00")));
    let history = world.store.reader().history(&world.known(&slot("11:00:00"))).unwrap();
    let looked = |record: &&EventRecord| matches!(record.event, Event::Slot { what: SlotEvent::Looked { .. }, .. });
    assert_eq!(history.iter().filter(looked).count(), 1);
}

#[test]
fn what_is_done_again_after_a_crash_says_how_often_it_may_be() {
    let retry = RetryPolicy { delay_seconds: 60, on_unknown: OnUnknown::Again, ..RetryPolicy::default() };
    let mut world = World::of(schedule(partitions(1), Vec::new()));
    world.files.values_mut().for_each(|one| one.retry = retry);
    world.define();
    world.tell(1);
    let id = slot("10:00:00");
    let unknown =
        || Report::Ended { outcome: Outcome::Unknown { reason: "the program that did it has ended".to_owned() } };
    for (number, minute) in [(1, 0), (2, 1), (3, 2)] {
        world.report(&id, number, Report::Started { external_id: "7".to_owned() }).report(&id, number, unknown());
        let expected = format!(
            "run {number} ended at 2026-11-21T10:0{minute}Z: its outcome is unknown (the program that did it has ended); \
             done again at 2026-11-21T10:0{next}:00.000Z, {number} of 3 times",
            next = minute + 1,
        );
        world.says("10:00:00", &expected);
        world.at(&format!("10:0{}:00", minute + 1));
    }
    world.report(&id, 4, Report::Started { external_id: "7".to_owned() }).report(&id, 4, unknown());
    let expected = "run 4 ended at 2026-11-21T10:03Z: its outcome is unknown (the program that did it has ended); it was done again 3 times, \
                    and no retry is left";
    world.says("10:00:00", expected);
}
