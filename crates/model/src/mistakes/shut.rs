//! Times that never come, and windows that none of them falls into.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use crate::constraint::{Constraint, Gate, Otherwise};
use crate::time::{Cron, CronSchedule, Window};
use crate::trigger::{Leaf, Node, Trigger};
use crate::workflow::Workflow;

/// Times of a schedule are tried from here on where a workflow has no start: zones have their present rules then.
const FROM: Timestamp = Timestamp::constant(1_735_689_600, 0);

/// Times are tried on so many days, a month apart, so that summer and winter are among them.
const DAYS: usize = 12;
const APART: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A day has so many minutes, and windows are open to the minute.
const MINUTES: usize = 24 * 60;

/// Whether no day and time are as an expression has it, as on 30 February.
#[must_use]
pub fn never_fires(cron: &Cron) -> bool {
    cron.next_after(DateTime::constant(1969, 12, 31, 23, 59, 59, 0)).is_none()
}

/// A time window that no slot of a workflow gets through, if slots are looked at in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutWindow<'w> {
    /// The window.
    pub window: &'w Window,
    /// The fate of the slots: they are aborted, or wait for the window and expire before.
    pub otherwise: Otherwise,
}

/// The windows of a workflow that are shut at each of its times. `ticks` is its schedule, with dependent ones followed. Nothing is
/// said where a slot may be ready later than at its time, because it waits for more than time.
#[must_use]
pub fn shut_windows<'w>(workflow: &'w Workflow, ticks: Option<&CronSchedule>) -> Vec<ShutWindow<'w>> {
    let waits = |one: &&Constraint| one.otherwise == Otherwise::Wait && !matches!(one.gate, Gate::Window(_));
    if !workflow.constraints.iter().any(|one| matches!(one.gate, Gate::Window(_)))
        || workflow.constraints.iter().any(|one| waits(&one))
    {
        return Vec::new();
    }
    let Some(ready) = ready(workflow, ticks) else { return Vec::new() };
    let shut = |one: &'w Constraint| {
        let Gate::Window(window) = &one.gate else { return None };
        let passes = |slot: &ReadySlot| match one.otherwise {
            Otherwise::Abort => window.is_open(slot.at),
            Otherwise::Wait => {
                window.is_open(slot.at) || slot.expires.is_none_or(|end| opens_before(window, slot.at, end))
            }
        };
        let is_shut = !ready.is_empty() && !ready.iter().any(passes);
        is_shut.then_some(ShutWindow { window, otherwise: one.otherwise })
    };
    workflow.constraints.iter().filter_map(shut).collect()
}

fn opens_before(window: &Window, at: Timestamp, end: Timestamp) -> bool {
    window.opens_after(at).is_none_or(|opens| opens < end)
}

/// A slot whose trigger is met.
struct ReadySlot {
    at: Timestamp,
    expires: Option<Timestamp>,
}

/// Some slots of a workflow, at the moments at which their triggers are met; none where that is not known.
fn ready(workflow: &Workflow, ticks: Option<&CronSchedule>) -> Option<Vec<ReadySlot>> {
    let from = workflow.start_time.unwrap_or(FROM);
    if let Some(events) = workflow.keys.events() {
        let is_exact = events.jitter_millis == 0 && is_of_times(&workflow.trigger);
        let firings = is_exact.then(|| workflow.trigger.firings())?;
        let timeout = SignedDuration::from_millis(i64::try_from(events.timeout_millis).ok()?);
        let times = firings.iter().flat_map(|firing| some_times(firing.schedule(), from));
        return Some(times.map(|at| ReadySlot { at, expires: at.checked_add(timeout).ok() }).collect());
    }
    workflow.keys.schedule()?;
    let prerequisites = workflow.trigger.prerequisites().filter(|needed| needed.upstream.is_empty())?;
    let timeout = workflow.wait_timeout_seconds.and_then(|seconds| i64::try_from(seconds).ok());
    let ticks = ticks?;
    let slot = |time: Timestamp| {
        let time = ticks.due(time);
        let expires = timeout.and_then(|seconds| time.checked_add(SignedDuration::from_secs(seconds)).ok());
        prerequisites.free_at(time).map(|at| ReadySlot { at, expires })
    };
    some_times(ticks, from).into_iter().map(slot).collect()
}

/// Whether a trigger is met by any one time of its expressions.
fn is_of_times(trigger: &Trigger) -> bool {
    match trigger.node() {
        Node::Leaf(Leaf::Facts(leaf)) => leaf.firing.is_some(),
        Node::Any(triggers) => !triggers.is_empty() && triggers.iter().all(is_of_times),
        _ => false,
    }
}

/// Times of a schedule that show all times of the day that it has: those of whole days, all over a year.
fn some_times(schedule: &CronSchedule, from: Timestamp) -> Vec<Timestamp> {
    let mut found = Vec::new();
    // One that has no times any more once had.
    let mut day = if schedule.next_after(from).is_some() { from } else { Timestamp::UNIX_EPOCH };
    for _ in 0..DAYS {
        let Some(first) = schedule.next_after(day) else { break };
        let (Ok(end), Ok(next)) = (first.checked_add(SignedDuration::from_hours(24)), first.checked_add(APART)) else {
            break;
        };
        found.extend(of_minutes(schedule, first, end));
        day = next;
    }
    found
}

/// The first time of each minute, from one time on until a moment.
fn of_minutes(schedule: &CronSchedule, first: Timestamp, end: Timestamp) -> impl Iterator<Item = Timestamp> {
    let next = move |at: &Timestamp| {
        let minute = at.as_second().div_euclid(60) * 60 + 59;
        schedule.next_after(Timestamp::from_second(minute).ok()?).filter(|at| *at < end)
    };
    std::iter::successors(Some(first), next).take(MINUTES)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::id::WorkflowId;
    use crate::time::{Firing, Fold, Gap, Schedule, Zone};
    use crate::workflow::{EventKeys, Job, Keys};

    fn cron(text: &str) -> Cron {
        Cron::parse(text).expect("an expression")
    }

    fn zone(name: &str) -> Zone {
        Zone::parse(name).expect("a zone")
    }

    fn window(start: &str, end: &str, zone: Zone, otherwise: Otherwise) -> Constraint {
        Constraint { gate: Gate::Window(Window::new(start, end, zone).expect("a window")), otherwise }
    }

    fn at(cron_text: &str, constraint: Constraint) -> Workflow {
        let schedule = CronSchedule::new(cron(cron_text), Zone::utc(), Gap::default(), Fold::default());
        let id = WorkflowId::new("w").expect("an id");
        let workflow = Workflow::new(id, Schedule::Cron(schedule), Job::new("command", Map::new()));
        Workflow { constraints: vec![constraint], ..workflow }
    }

    fn is_shut(workflow: &Workflow) -> bool {
        let ticks = match workflow.keys.schedule() {
            Some(Schedule::Cron(cron)) => Some(cron),
            _ => None,
        };
        !shut_windows(workflow, ticks).is_empty()
    }

    #[test]
    fn some_days_never_come() {
        assert!(never_fires(&cron("0 0 0 30 2 ?")) && never_fires(&cron("0 0 0 31 4,6,9,11 ?")));
        assert!(!never_fires(&cron("0 0 0 29 2 ?")) && !never_fires(&cron("0 0 0 1 1 ? 2015")));
        assert!(!never_fires(&cron("0 0 0 1 1 ? 1970")));
    }

    #[test]
    fn a_window_that_aborts_has_to_be_open_at_some_time() {
        let night = || window("22:00", "06:00", Zone::utc(), Otherwise::Abort);
        assert!(is_shut(&at("0 0 12 * * ?", night())));
        assert!(is_shut(&at("0 0/5 6-21 * * ?", night())));
        assert!(!is_shut(&at("0 0 0 * * ?", night())) && !is_shut(&at("0 0/5 * * * ?", night())));
    }

    #[test]
    fn times_are_tried_in_summer_and_in_winter() {
        let berlin = |start, end| window(start, end, zone("Europe/Berlin"), Otherwise::Abort);
        assert!(!is_shut(&at("0 0 12 * * ?", berlin("13:00", "13:30"))), "in winter");
        assert!(!is_shut(&at("0 0 12 * * ?", berlin("14:00", "14:30"))), "in summer");
        assert!(is_shut(&at("0 0 12 * * ?", berlin("12:00", "12:30"))));
    }

    #[test]
    fn a_window_that_is_waited_for_has_to_open_before_the_timeout() {
        let night = || window("22:00", "06:00", Zone::utc(), Otherwise::Wait);
        assert!(!is_shut(&at("0 0 12 * * ?", night())), "it waits for ever");
        let within = |seconds| Workflow { wait_timeout_seconds: Some(seconds), ..at("0 0 12 * * ?", night()) };
        assert!(is_shut(&within(3600)) && is_shut(&within(10 * 3600)) && !is_shut(&within(10 * 3600 + 1)));
    }

    #[test]
    fn a_slot_that_waits_for_more_than_time_may_meet_any_window() {
        let night = || window("22:00", "06:00", Zone::utc(), Otherwise::Abort);
        let noon = |trigger| Workflow { trigger, ..at("0 0 12 * * ?", night()) };
        let upstream = Trigger::Success { workflow: WorkflowId::new("u").expect("an id") };
        assert!(!is_shut(&noon(upstream)));
        assert!(
            is_shut(&noon(Trigger::Delay { seconds: 3600 })) && !is_shut(&noon(Trigger::Delay { seconds: 36_000 }))
        );
        let mut delayed = noon(Trigger::Always);
        delayed.constraints.push(Constraint::new(Gate::Delay(1000)));
        assert!(!is_shut(&delayed));
        delayed.constraints.pop();
        delayed.constraints.push(Constraint::new(Gate::Concurrency(1)));
        assert!(is_shut(&delayed), "that one aborts");
    }

    #[test]
    fn event_schedules_meet_their_windows_when_they_fire() {
        let fired = |text: &str| Trigger::Fired { firing: Firing::parse(text, Zone::utc()).expect("an expression") };
        let schedule = |trigger: Trigger| {
            let mut keys = EventKeys::new("s", WorkflowId::new("p").expect("an id"));
            keys.timeout_millis = 3_600_000;
            let id = WorkflowId::new("a.s").expect("an id");
            let constraints = vec![window("22:00", "06:00", Zone::utc(), Otherwise::Wait)];
            let keyed = Workflow::keyed(id, Keys::Events(Box::new(keys)), Job::new("command", Map::new()));
            Workflow { trigger, constraints, ..keyed }
        };
        let or = |triggers| Trigger::Or { triggers };
        assert!(is_shut(&schedule(fired("0 12 * * *"))) && !is_shut(&schedule(fired("30 21 * * *"))));
        assert!(is_shut(&schedule(or(vec![fired("0 12 * * *"), fired("0 13 * * *")]))));
        assert!(!is_shut(&schedule(or(vec![fired("0 12 * * *"), Trigger::Signal { name: "go".into() }]))));
    }
}
