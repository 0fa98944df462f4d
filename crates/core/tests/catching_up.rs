//! Hundreds of workflows that catch up with their past, and one that is on time, on a virtual clock.

#![allow(clippy::disallowed_methods, reason = "the tests make sets; the core does not")]

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::{Command, Config, Core, Deployment, Input};
use kelos_model::run::Report;
use kelos_model::time::{Cron, CronSchedule, Firing, Schedule, Zone};
use kelos_model::workflow::{CatchUp, EventKeys, Keys, Program, Provenance};
use kelos_model::{Event, Job, Outcome, RunId, SlotEvent, Trigger, Workflow, WorkflowId};
use serde_json::Map;

#[path = "support/finished.rs"]
mod finished;

use finished::FinishedSlots;

/// The past times of each of the others, one a minute.
const TIMES: i64 = 40;
/// The time from one turn to the next.
const TURN: SignedDuration = SignedDuration::from_millis(50);
const ON_TIME: &str = "on-time";

/// A scheduler whose turns each take the same time. Of the runs of the others one ends with each turn, the oldest first; a run of the one
/// that is on time ends with the next turn.
struct World {
    core: Core,
    past: FinishedSlots,
    now: Timestamp,
    inputs: Vec<Input>,
    live: VecDeque<RunId>,
    /// The workflows with new slots, or new facts.
    served: BTreeSet<WorkflowId>,
    /// The number of turns from the one that could have started a slot that is on time to the one that did.
    late: Vec<i64>,
}

impl World {
    fn new(config: Config) -> World {
        World {
            core: Core::new(config),
            past: FinishedSlots::default(),
            now: start(),
            inputs: Vec::new(),
            live: VecDeque::new(),
            served: BTreeSet::new(),
            late: Vec::new(),
        }
    }

    fn define(&mut self, all: Vec<Workflow>) {
        let how = Deployment { digest: Some("x".to_owned()), update_schedules: true, by: None };
        let deployed = all.iter().map(|one| (one.project.clone(), how.clone())).collect();
        let all = all.into_iter().map(Arc::new).collect();
        self.inputs.push(Input::Definitions { provenance: Provenance::File, all, deployed });
    }

    /// Takes a turn. Returns the number of its events.
    fn turn(&mut self) -> usize {
        self.now += TURN;
        let mut inputs = std::mem::take(&mut self.inputs);
        let ended = self.live.pop_front();
        inputs
            .extend(ended.map(|run| Input::RunReported { run, report: Report::Ended { outcome: Outcome::Succeeded } }));
        inputs.push(Input::Woke { only: None, look_again: false });
        let mut events = 0;
        for input in inputs {
            let step = self.core.step(self.now, input, &mut self.past).expect("a step");
            events += step.events.len();
            for record in &step.events {
                if let Event::Slot { slot, what: SlotEvent::Planned { .. } | SlotEvent::TriggerMet { .. } } =
                    &record.event
                {
                    self.served.insert(slot.workflow.clone());
                }
            }
            step.commands.into_iter().for_each(|command| self.perform(command));
        }
        self.past.0.extend(self.core.rows().slots);
        self.core.settle();
        events
    }

    fn perform(&mut self, command: Command) {
        let Command::StartRun { run, .. } = command else { return };
        if run.slot.workflow.as_str() == ON_TIME {
            let due = run.slot.key.time().expect("a time");
            let passed = self.now.duration_since(due).as_millis() - 1;
            self.late.push(i64::try_from(passed / TURN.as_millis()).expect("a number"));
            self.live.push_front(run);
        } else {
            self.live.push_back(run);
        }
    }

    /// Takes turns until there is nothing to do.
    fn rest(&mut self) {
        while self.turn() > 0 || self.core.is_due(self.now) {}
    }
}

fn start() -> Timestamp {
    "2016-01-01T12:00:00Z".parse().expect("a moment")
}

fn every(cron: &str) -> CronSchedule {
    CronSchedule::utc(Cron::parse(cron).expect("an expression"))
}

fn job() -> Job {
    Job::new("command", Map::new())
}

/// A workflow with a slot each second from a moment.
fn on_time(from: Timestamp) -> Workflow {
    let id = ON_TIME.parse().expect("an id");
    Workflow { start_time: Some(from), ..Workflow::new(id, Schedule::Cron(every("* * * * * ?")), job()) }
}

fn others(number: usize, one: impl Fn(WorkflowId) -> Workflow) -> Vec<Workflow> {
    (0..number).map(|n| one(format!("late-{n:04}").parse().expect("an id"))).collect()
}

/// A workflow with a slot each minute before the start.
fn late(id: WorkflowId) -> Workflow {
    let (start_time, end_time) = (Some(start() - SignedDuration::from_mins(TIMES)), Some(start()));
    Workflow { start_time, end_time, ..Workflow::new(id, Schedule::Cron(every("0 * * * * ?")), job()) }
}

/// The program of an event schedule.
fn program(schedule: &WorkflowId) -> Workflow {
    let name = format!("program-of-{schedule}");
    let id = name.parse().expect("an id");
    Workflow::keyed(id, Keys::Requests(Box::new(Program { name, kind: None })), job())
}

/// Takes turns while the others catch up. All of them are served, no turn is long, and each slot that is on time starts soon.
fn assert_on_time(mut world: World, others: usize, longest: usize) {
    let turns = if others > 1_000 { 45 } else { 120 };
    for _ in 0..turns {
        let events = world.turn();
        assert!(events <= longest, "a turn has {events} events");
    }
    assert!(world.core.is_due(world.now), "the others still catch up");
    let served = world.served.iter().filter(|id| id.as_str() != ON_TIME).count();
    assert_eq!(served, others, "each of the others is served");
    let most = world.late.iter().max().expect("some slots are on time");
    assert!(*most <= 4 && world.late.len() >= 2, "turns that slots were late: {:?}", world.late);
}

fn few_at_once() -> Config {
    Config { at_once: 64, ..Config::default() }
}

#[test]
fn a_slot_is_planned_soon_while_others_catch_up() {
    let mut world = World::new(few_at_once());
    world.define(others(600, late).into_iter().chain([on_time(start())]).collect());
    world.turn();
    assert_on_time(world, 600, 500);
}

#[test]
fn a_slot_is_planned_soon_while_others_draw_from_their_backlogs() {
    let mut world = World::new(Config { frontier: 20, ..few_at_once() });
    world.define(others(600, late).into_iter().chain([on_time(start())]).collect());
    world.turn();
    assert_on_time(world, 600, 500);
}

#[test]
fn a_slot_is_evaluated_soon_while_timers_of_others_are_overdue() {
    let mut world = World::new(few_at_once());
    let delayed = |id| Workflow { trigger: Trigger::Delay { seconds: 7200 }, ..late(id) };
    world.define(others(600, delayed).into_iter().chain([on_time(start() + SignedDuration::from_hours(3))]).collect());
    world.rest();
    world.served.clear();
    world.now = start() + SignedDuration::from_hours(3);
    assert_on_time(world, 600, 500);
}

#[test]
fn a_slot_is_planned_soon_while_cron_times_of_others_are_counted() {
    let mut world = World::new(few_at_once());
    let firing = Firing::parse("* * * * *", Zone::utc()).expect("an expression");
    let scheduled = |id: WorkflowId| {
        let keys = EventKeys { enabled: true, catch_up: CatchUp::All, ..EventKeys::new(id.as_str(), program(&id).id) };
        // They never run, so that this is about the cron times alone.
        let fired = Trigger::Fired { firing: firing.clone() };
        let trigger = Trigger::And { triggers: vec![fired, Trigger::Signal { name: "never".into() }] };
        Workflow { trigger, ..Workflow::keyed(id, Keys::Events(Box::new(keys)), job()) }
    };
    let woken = start() + SignedDuration::from_mins(TIMES);
    let schedules = others(1_100, scheduled);
    let programs: Vec<Workflow> = schedules.iter().map(|one| program(&one.id)).collect();
    world.define(programs.into_iter().chain(schedules).chain([on_time(woken)]).collect());
    world.rest();
    world.now = woken;
    assert_on_time(world, 1_100, 4_000);
}
