//! Tests of the planner without a scheduler.

use std::sync::Arc;

use kelos_model::time::Schedule;
use kelos_model::{Job, Stretch, Trigger, Workflow};

use super::*;

/// Seconds of an hour.
const HOUR: i64 = 3600;

fn hour(hours: i64) -> Timestamp {
    Timestamp::from_second(HOUR * hours).expect("a time")
}

fn hours(start: i64, end: i64) -> Range {
    Range::new(hour(start), hour(end))
}

fn id(name: &str) -> WorkflowId {
    name.parse().expect("an id")
}

fn hourly(name: &str) -> Workflow {
    Workflow::new(id(name), Schedule::Cron(CronSchedule::hourly()), Job::new("command", serde_json::Map::new()))
}

/// A planner with the organs that it reads.
struct World {
    planner: Planner,
    workflows: Workflows,
    slots: SlotTable,
    permits: Permits,
}

impl World {
    /// A world in which backlogs begin behind two queued slots.
    fn new() -> World {
        World {
            planner: Planner::new(&Config { frontier: 2, ..Config::default() }),
            workflows: Workflows::default(),
            slots: SlotTable::default(),
            permits: Permits::new(1),
        }
    }

    fn with(definition: Workflow) -> World {
        let mut world = World::new();
        let name = definition.id.clone();
        world.workflows.define(&name, &Arc::new(definition), hour(0));
        world.workflows.reschedule(&name, Ok(CronSchedule::hourly()), hour(0)).expect("it is new");
        world.slots.add_workflow(&name);
        world.slots.reschedule(&name, &CronSchedule::hourly());
        world.planner.agree(&name, world.workflows.get(&name).expect("it is defined"));
        world
    }

    fn plan(&self, name: &str, now: Timestamp, most: usize) -> Plan {
        let workflow = self.workflows.get(&id(name)).expect("it is defined");
        self.planner.plan(&id(name), workflow, &CronSchedule::hourly(), now, most)
    }

    /// Leaves a range in the backlog, as the core does with a plan.
    fn leave(&mut self, name: &str, range: Range) {
        let stretch = Stretch { range, since: hour(0), backfill: None, priority: 0, killed: None };
        self.slots.backlog_mut(&id(name)).put(stretch);
        let mut ranges = RangeSet::default();
        ranges.insert(range);
        self.planner.follow_backlog(&id(name), &ranges);
        self.workflows.cover(&id(name), range);
    }

    fn draw(&self, name: &str, now: Timestamp, most: usize, are_settled: bool) -> Draw {
        let name = id(name);
        let backlog = self.planner.backlog(&name, &self.workflows, &self.slots, &self.permits);
        backlog.expect("it is defined").draw(now, most, are_settled)
    }
}

/// A workflow with a constraint, so that none of its times stay in a backlog.
fn limited(name: &str) -> Workflow {
    Workflow { wait_timeout_seconds: Some(60), ..hourly(name) }
}

#[test]
fn no_more_is_planned_at_once_than_a_tick_may_do() {
    let mut world = World::with(limited("a"));
    let slots = |range, first: i64, end: i64| PlanPart::Slots { range, times: (first..end).map(hour).collect() };
    let plan = world.plan("a", hour(5), 3);
    let first = plan.parts.first().map(PlanPart::range).expect("there is something to plan");
    assert_eq!((plan.parts.len(), plan.is_whole), (1, false));
    world.workflows.cover(&id("a"), Range::new(first.start, hour(2)));
    let rest = world.plan("a", hour(5), 3);
    assert_eq!(rest, Plan { parts: vec![slots(hours(2, 5), 2, 5)], is_whole: true });
    world.workflows.cover(&id("a"), hours(2, 5));
    assert_eq!(world.plan("a", hour(5), 3), Plan { parts: Vec::new(), is_whole: true });
}

#[test]
fn what_can_not_be_queued_soon_is_left_in_the_backlog() {
    let mut world = World::with(hourly("a"));
    world.workflows.cover(&id("a"), hours(-1000, 0));
    let two = PlanPart::Slots { range: hours(0, 2), times: vec![hour(0), hour(1)] };
    assert_eq!(world.plan("a", hour(2), 9).parts, [two]);
    let plan = world.plan("a", hour(7), 9);
    assert_eq!(plan, Plan { parts: vec![PlanPart::Backlog { range: hours(0, 7) }], is_whole: true });
}

#[test]
fn the_first_times_of_a_backlog_become_slots_once_those_in_memory_are_settled() {
    let mut world = World::with(hourly("a"));
    assert!(matches!(world.draw("a", hour(7), 9, true), Draw::Nothing));
    world.leave("a", hours(0, 7));
    assert!(matches!(world.draw("a", hour(7), 0, true), Draw::Later));
    assert!(matches!(world.draw("a", hour(7), 9, false), Draw::Later));
    let Draw::Next(next) = world.draw("a", hour(7), 9, true) else { panic!("some go") };
    let times: Vec<_> = next.times.iter().filter_map(|position| position.key.time()).collect();
    assert_eq!((times, next.cutoff, next.check.is_none()), (vec![hour(0), hour(1)], None, true));
}

#[test]
fn what_was_planned_by_an_earlier_schedule_becomes_slots_as_a_whole() {
    let mut world = World::with(hourly("a"));
    world.leave("a", hours(0, 3));
    world.workflows.reschedule(&id("a"), Ok(CronSchedule::minutely()), hour(0)).expect("it is another");
    let Draw::ByEarlier { times, are_last } = world.draw("a", hour(7), 9, true) else { panic!("all go") };
    assert_eq!((times, are_last), (vec![hour(0), hour(1), hour(2)], true));
}

#[test]
fn nothing_is_drawn_for_a_workflow_that_is_paused() {
    let mut world = World::with(hourly("a"));
    world.leave("a", hours(0, 3));
    world.workflows.set_paused(&id("a"), true, Timestamp::UNIX_EPOCH).expect("it is there");
    assert!(matches!(world.draw("a", hour(7), 9, true), Draw::Nothing));
}

#[test]
fn times_that_wait_for_others_are_asked_about_in_pages() {
    let after = Workflow { trigger: Trigger::Success { workflow: id("up") }, ..hourly("a") };
    let mut world = World::with(after);
    world.leave("a", hours(0, 500));
    world.workflows.define(&id("up"), &Arc::new(hourly("up")), hour(0));
    world.workflows.cover(&id("up"), hours(0, 400));
    let Draw::Next(Next { check: Some(check), .. }) = world.draw("a", hour(600), 9, true) else {
        panic!("it is asked first")
    };
    let page = UpstreamPage::of(&id("a"), &check, &CronSchedule::hourly(), &world.workflows, &world.slots);
    assert_eq!((page.len(), page.slots().next()), (256, Some(SlotRef::at(id("up"), hour(0)))));
    world.planner.answered(&id("a"), &page, &[hours(3, 5)]);
    let Draw::Next(next) = world.draw("a", hour(600), 9, true) else { panic!("some go") };
    let times: Vec<_> = next.times.iter().filter_map(|position| position.key.time()).collect();
    assert_eq!(times, [hour(3), hour(4)]);
}

#[test]
fn a_time_that_waits_for_periods_is_ready_once_all_of_them_have_succeeded() {
    let covers = Trigger::Covers { workflow: id("up"), from: -HOUR, to: 0 };
    let mut world = World::with(Workflow { trigger: covers, ..hourly("a") });
    world.workflows.define(&id("up"), &Arc::new(hourly("up")), hour(0));
    world.workflows.reschedule(&id("up"), Ok(CronSchedule::hourly()), hour(0)).expect("it is new");
    world.slots.add_workflow(&id("up"));
    world.leave("a", hours(100, 400));
    let check = |world: &World| match world.draw("a", hour(600), 9, true) {
        Draw::Next(Next { check, times, .. }) => (check, times),
        _ => panic!("it is asked first"),
    };
    let (first, _) = check(&world);
    let first = first.expect("nothing is known");
    let page = UpstreamPage::of(&id("a"), &first, &CronSchedule::hourly(), &world.workflows, &world.slots);
    assert_eq!((page.len(), page.slots().next()), (256, Some(SlotRef::at(id("up"), hour(99)))), "two for each time");
    world.planner.answered(&id("a"), &page, &[hours(103, 104)]);
    let (rest, times) = check(&world);
    assert_eq!(times.iter().filter_map(|one| one.key.time()).collect::<Vec<_>>(), [hour(103)]);
    assert_eq!(rest.expect("pages follow").range, hours(228, 400));
    // An upstream slot succeeds: both times that wait for it are asked about again, the first of them first.
    world.planner.succeeded(&SlotRef::at(id("up"), hour(150)), &world.slots, &world.workflows);
    let (again, _) = check(&world);
    assert_eq!(again.expect("it may be ready").range, Range::new(hour(150), hour(150) + TICK));
    // Where the periods may be others, all are asked about again.
    world.planner.forget_periods(&id("a"));
    assert_eq!(check(&world).0.expect("nothing is known any more").range, hours(100, 400));
}

#[test]
fn a_workflow_is_planned_once_it_is_due_and_where_a_tick_is_about_it() {
    let mut planner = World::new().planner;
    assert!(!planner.is_due());
    planner.plan_soon(&id("a"));
    planner.plan_soon(&id("b"));
    let only = Some(Arc::new(BTreeSet::from([id("a")])));
    assert_eq!(planner.take_due(&only), BTreeSet::from([id("a")]));
    assert_eq!((planner.is_due(), planner.take_due(&None)), (true, BTreeSet::from([id("b")])));
    planner.draw_soon(&id("a"));
    assert_eq!((planner.is_due(), planner.count_to_draw()), (true, 1));
}
