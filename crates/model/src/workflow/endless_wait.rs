//! Slots that wait for slots that will never be, as far as times tell: the times of two workflows never meet, one has ended, or the
//! first slots of one need slots of before the other began.
//!
//! Looked at are the times that a definition opens now, and the next ones. The number of looks is limited: of a workflow that is not looked
//! at whole nothing is claimed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::opening::Opening;
use super::{HoldBack, Workflow, WorkflowRow};
use crate::id::WorkflowId;
use crate::time::{CronSchedule, ScheduleProblem, resolve};
use crate::trigger::{Coverage, Leaf, Node, SlotTimes, Trigger};

/// The most past times of a workflow that are looked at.
const MOST_PAST: usize = 20_000;
/// The most times ahead of a workflow that are looked at.
const MOST_AHEAD: usize = 400;
/// How far ahead times are looked at: across both changes of clocks.
const AHEAD: SignedDuration = SignedDuration::from_hours(400 * 24);
/// The most slots that are looked at for all workflows together.
const MOST_LOOKS: usize = 2_000_000;
/// How often workflows are looked at again because slots that they wait for were found to wait forever. Fewer rounds find fewer slots.
const MOST_ROUNDS: usize = 16;

/// Slots of a workflow that wait forever for slots of one other workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndlessWait {
    /// The workflow whose slots wait.
    pub workflow: WorkflowId,
    /// The workflow whose slots they wait for, perhaps the same.
    pub upstream: WorkflowId,
    /// The first slot that waits.
    pub slot: Timestamp,
    /// The first slot that it waits for and that will never be.
    pub awaited: Timestamp,
    /// The reason for which that will never be.
    pub cause: WaitCause,
    /// The slots that wait.
    pub extent: WaitExtent,
    /// How many slots were looked at.
    pub looked_at: usize,
    /// The last slot that was looked at.
    pub until: Timestamp,
    /// The seconds from the slot before an awaited time to that, where they are the same for all that wait.
    pub lag: Option<i64>,
    /// Whether the definitions are wrong. If not, it is due to the moment at which planning begins, which cuts off what the first slots
    /// need.
    pub is_mistake: bool,
}

/// The reason for which a slot will never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCause {
    /// The schedule of its workflow has no such time.
    NoSuchTime,
    /// Its workflow ends before it.
    Ended,
    /// Its workflow starts after it.
    NotBegun,
    /// It passed, and its workflow does not open it.
    Passed(HoldBack),
}

/// The share of the slots that were looked at and wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitExtent {
    /// All of them.
    All,
    /// So many at the beginning.
    #[serde(rename_all = "camelCase")]
    First {
        /// Their number.
        slots: usize,
        /// The last of them.
        last: Timestamp,
        /// The first slot that can run.
        next: Timestamp,
    },
    /// All from the first that waits on.
    Rest,
    /// So many here and there.
    Some {
        /// Their number.
        slots: usize,
    },
}

/// The slots of workflows that wait forever.
#[derive(Debug, Default)]
pub struct EndlessWaits {
    /// The waits, by workflow and upstream. Slots that wait for a slot that waits forever itself are left out.
    pub waits: Vec<EndlessWait>,
    slots: BTreeMap<WorkflowId, BTreeSet<Timestamp>>,
}

impl EndlessWaits {
    /// The endless waits of definitions beside the rows that are stored, with a planning window that ends now.
    #[must_use]
    pub fn of(all: &[Arc<Workflow>], rows: &[WorkflowRow], window: SignedDuration, now: Timestamp) -> EndlessWaits {
        let schedules = all.iter().filter_map(|one| Some((one.id.clone(), one.keys.schedule()?))).collect();
        let rows = rows.iter().map(|row| (&row.id, row)).collect();
        EndlessWaits::by_schedules(all, &rows, &resolve(&schedules), window, now)
    }

    /// The same with the schedules followed.
    pub(super) fn by_schedules(
        all: &[Arc<Workflow>],
        rows: &BTreeMap<&WorkflowId, &WorkflowRow>,
        schedules: &BTreeMap<WorkflowId, Result<CronSchedule, ScheduleProblem>>,
        window: SignedDuration,
        now: Timestamp,
    ) -> EndlessWaits {
        let timed = all.iter().filter(|one| one.keys.schedule().is_some());
        let openings = timed.filter_map(|one| {
            let schedule = schedules.get(&one.id)?.as_ref().ok()?;
            Some((&one.id, Opening::of(one, rows.get(&one.id).copied(), schedule, window, now)?))
        });
        let mut search = Search { openings: openings.collect(), found: BTreeMap::new(), left: MOST_LOOKS };
        search.run();
        search.result()
    }

    /// The slots of a workflow that wait forever, as far as they were looked at.
    pub(super) fn slots(&self, id: &WorkflowId) -> Option<&BTreeSet<Timestamp>> {
        self.slots.get(id)
    }
}

/// A slot that will never be, or that waits forever itself.
#[derive(Clone, Copy)]
struct Obstacle<'a> {
    upstream: &'a WorkflowId,
    awaited: Timestamp,
    /// Whether it is planned, and waits forever itself.
    is_planned: bool,
}

/// The slots of a workflow that were looked at, and those that wait forever.
#[derive(Default)]
struct Look<'a> {
    times: Vec<Timestamp>,
    waiting: BTreeMap<Timestamp, Obstacle<'a>>,
}

struct Search<'a> {
    openings: BTreeMap<&'a WorkflowId, Opening<'a>>,
    found: BTreeMap<&'a WorkflowId, Look<'a>>,
    /// The slots that may still be looked at.
    left: usize,
}

impl<'a> Search<'a> {
    fn run(&mut self) {
        let mut next: Vec<&WorkflowId> = self.openings.keys().copied().collect();
        for _ in 0..MOST_ROUNDS {
            let mut changed = BTreeSet::new();
            for id in next {
                let Some(look) = self.look(id) else { continue };
                let before = self.found.insert(id, look).map_or(0, |before| before.waiting.len());
                if self.waiting(id) > before {
                    changed.insert(id);
                }
            }
            let waits = |id: &&WorkflowId| {
                let upstream = self.openings.get(*id).map(|own| own.definition.trigger.upstream());
                upstream.into_iter().flatten().any(|other| other != *id && changed.contains(other))
            };
            next = self.openings.keys().copied().filter(waits).collect();
            if next.is_empty() {
                break;
            }
        }
    }

    /// How many slots of a workflow are known to wait forever.
    fn waiting(&self, id: &WorkflowId) -> usize {
        self.found.get(id).map_or(0, |look| look.waiting.len())
    }

    /// Looks at the slots of a workflow, the earliest first; none where all of them can run, or not all could be looked at.
    fn look(&mut self, id: &'a WorkflowId) -> Option<Look<'a>> {
        if self.is_certain(id) {
            return None;
        }
        let mut left = self.left;
        let own = self.openings.get(id)?;
        let mut walk = Walk { search: self, own, own_times: own.slot_times(), look: Look::default(), left: &mut left };
        let is_whole = walk.all();
        let look = walk.look;
        self.left = left;
        is_whole.then_some(look)
    }

    /// Whether it is plain that all slots of a workflow can run: each waits for the slots of its own time alone, which are all there.
    fn is_certain(&self, id: &WorkflowId) -> bool {
        let Some(own) = self.openings.get(id) else { return true };
        let is_certain = |(upstream, later): (&WorkflowId, i64)| {
            self.openings.get(upstream).is_none_or(|other| {
                let bounds = other.bounds.start <= own.bounds.start.max(own.from) && own.bounds.end <= other.bounds.end;
                let same = later == 0 && other.schedule == own.schedule && other.from <= own.from && bounds;
                same && self.waiting(upstream) == 0
            })
        };
        let trigger = &own.definition.trigger;
        trigger.covered().iter().all(|one| !self.openings.contains_key(one.workflow))
            && trigger.looks_at().into_iter().all(is_certain)
    }

    fn result(self) -> EndlessWaits {
        let mut result = EndlessWaits::default();
        for (id, look) in &self.found {
            let upstream: BTreeSet<&WorkflowId> = look.waiting.values().map(|obstacle| obstacle.upstream).collect();
            result.waits.extend(upstream.into_iter().filter_map(|upstream| self.wait(id, upstream, look)));
            if !look.waiting.is_empty() {
                result.slots.insert((*id).clone(), look.waiting.keys().copied().collect());
            }
        }
        result
    }

    /// The wait of a workflow for another one, unless slots of that wait forever themselves and nothing else is missing.
    fn wait(&self, id: &WorkflowId, upstream: &WorkflowId, look: &Look<'_>) -> Option<EndlessWait> {
        let is_of_it =
            |obstacle: &Obstacle<'_>| obstacle.upstream == upstream && (!obstacle.is_planned || upstream == id);
        let mut waiting = look.waiting.iter().filter(|(_, obstacle)| is_of_it(obstacle));
        let (slot, first) = waiting.next().filter(|(_, obstacle)| !obstacle.is_planned)?;
        let slots = 1 + waiting.count();
        let other = self.openings.get(upstream)?;
        let holds = |time: &Timestamp| look.waiting.get(time).is_some_and(is_of_it);
        let last = look.times.get(slots - 1)?;
        let extent = match look.times.get(slots) {
            None => WaitExtent::All,
            Some(next) if look.times.iter().take(slots).all(holds) && !look.waiting.contains_key(next) => {
                WaitExtent::First { slots, last: *last, next: *next }
            }
            Some(_) if look.times.iter().rev().take(slots).all(holds) => WaitExtent::Rest,
            Some(_) => WaitExtent::Some { slots },
        };
        let cause = cause(other, first.awaited);
        let own = self.openings.get(id)?;
        let awaited = look.waiting.values().filter(|obstacle| is_of_it(obstacle)).map(|obstacle| obstacle.awaited);
        Some(EndlessWait {
            workflow: id.clone(),
            upstream: upstream.clone(),
            slot: *slot,
            awaited: first.awaited,
            cause,
            extent,
            is_mistake: !begins_late(own, cause, extent),
            looked_at: look.times.len(),
            until: *look.times.last()?,
            lag: lag(other.schedule, awaited),
        })
    }
}

fn cause(upstream: &Opening<'_>, awaited: Timestamp) -> WaitCause {
    let start = upstream.definition.start_time;
    if !upstream.schedule.contains(awaited) {
        WaitCause::NoSuchTime
    } else if awaited >= upstream.bounds.end {
        WaitCause::Ended
    } else if start.is_some_and(|start| awaited < start) {
        WaitCause::NotBegun
    } else {
        WaitCause::Passed(HoldBack::of(upstream.definition.catch_up))
    }
}

/// Whether the first slots of a workflow wait forever only because planning begins when it does.
fn begins_late(own: &Opening<'_>, cause: WaitCause, extent: WaitExtent) -> bool {
    let is_first = matches!(extent, WaitExtent::First { .. });
    match cause {
        WaitCause::Passed(HoldBack::Window) => is_first,
        // A workflow that catches up with everything asks too much of one that doesn't.
        WaitCause::Passed(_) => is_first && own.definition.passes_over_misfires(),
        _ => false,
    }
}

/// The seconds from the time before each of some moments to that, where they are the same for all.
fn lag(schedule: &CronSchedule, mut awaited: impl Iterator<Item = Timestamp>) -> Option<i64> {
    let lag = |at: Timestamp| Some(at.duration_since(schedule.last_until(at)?).as_secs());
    let first = lag(awaited.next()?)?;
    awaited.all(|at| lag(at) == Some(first)).then_some(first)
}

/// A walk through the slots of a workflow.
struct Walk<'s, 'a> {
    search: &'s Search<'a>,
    own: &'s Opening<'a>,
    own_times: SlotTimes,
    look: Look<'a>,
    left: &'s mut usize,
}

impl<'a> Walk<'_, 'a> {
    /// Looks at all of them; false if not all could be looked at.
    fn all(&mut self) -> bool {
        let schedule = self.own.schedule;
        let gaps = self.own.known.planned.ranges.gaps(self.own.past());
        let has_slot = |time: &Timestamp| match &self.own.known.earlier {
            Some((ranges, before)) => ranges.contains(*time) && before.contains(*time),
            None => false,
        };
        let past = gaps.iter().flat_map(|gap| schedule.times(gap.start, gap.end));
        let mut times: Vec<_> = past.filter(|time| !has_slot(time)).take(MOST_PAST + 1).collect();
        if times.len() > MOST_PAST {
            return false;
        }
        let from = self.own.from.max(self.own.due);
        let end = self.own.due.checked_add(AHEAD).unwrap_or(Timestamp::MAX).max(from);
        let ahead = schedule.times(from, end.min(self.own.bounds.end));
        times.extend(ahead.filter(|time| self.own_times.period(*time).is_some()).take(MOST_AHEAD));
        for time in times {
            let trigger = &self.own.definition.trigger;
            let obstacle = self.obstacle(trigger, time, 0);
            if *self.left == 0 {
                return false;
            }
            self.look.times.push(time);
            self.look.waiting.extend(obstacle.map(|obstacle| (time, obstacle)));
        }
        true
    }

    /// A reason for which a trigger can never be met for a slot, asked so many seconds later; none if it may be.
    fn obstacle(&mut self, trigger: &'a Trigger, time: Timestamp, later: i64) -> Option<Obstacle<'a>> {
        match trigger.node() {
            Node::Leaf(Leaf::Slot(upstream)) => self.missing(upstream, shifted(time, later)?),
            Node::Leaf(Leaf::Periods(covered)) => self.missing_period(covered, shifted(time, later)?),
            Node::Leaf(_) | Node::Not(_) => None,
            Node::Later(seconds, nested) => self.obstacle(nested, time, later.checked_add(seconds)?),
            Node::All(nested) => {
                let mut all = nested.iter().filter_map(|one| self.obstacle(one, time, later)).collect::<Vec<_>>();
                // What is missing itself says more than what waits for that.
                all.sort_by_key(|obstacle| obstacle.is_planned);
                all.first().copied()
            }
            Node::Any(nested) => {
                let all: Option<Vec<_>> = nested.iter().map(|one| self.obstacle(one, time, later)).collect();
                all?.first().copied()
            }
        }
    }

    fn missing(&mut self, upstream: &'a WorkflowId, awaited: Timestamp) -> Option<Obstacle<'a>> {
        *self.left = self.left.saturating_sub(1);
        let other = self.search.openings.get(upstream)?;
        let is_planned = self.waits_forever(upstream, awaited);
        (is_planned || !other.may_have(awaited)).then_some(Obstacle { upstream, awaited, is_planned })
    }

    fn missing_period(&mut self, covered: Coverage<'a>, time: Timestamp) -> Option<Obstacle<'a>> {
        let other = self.search.openings.get(covered.workflow)?;
        let interval = covered.interval(&self.own.definition.id, self.own_times.period(time)?);
        let slots = other.slot_times().slots_in(interval);
        *self.left = self.left.saturating_sub(1 + slots.len());
        slots.into_iter().find_map(|awaited| {
            let is_planned = self.waits_forever(covered.workflow, awaited);
            let is_missing = is_planned || !other.may_have(awaited);
            is_missing.then_some(Obstacle { upstream: covered.workflow, awaited, is_planned })
        })
    }

    fn waits_forever(&self, upstream: &WorkflowId, time: Timestamp) -> bool {
        let known =
            if *upstream == self.own.definition.id { Some(&self.look) } else { self.search.found.get(upstream) };
        known.is_some_and(|look| look.waiting.contains_key(&time))
    }
}

fn shifted(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    time.checked_add(SignedDuration::from_secs(seconds)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::time::{Calendar, Cron, Fold, Gap, Schedule, Zone};
    use crate::workflow::{CatchUp, Job, PastSlots, PlanState};

    const WEEK: SignedDuration = SignedDuration::from_hours(168);

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    fn now() -> Timestamp {
        at("2026-11-28T16:05:00Z")
    }

    fn cron(expression: &str, zone: &str) -> Schedule {
        let (cron, zone) = (Cron::parse(expression).expect("cron"), Zone::parse(zone).expect("a zone"));
        Schedule::Cron(CronSchedule::new(cron, zone, Gap::default(), Fold::default()))
    }

    fn workflow(name: &str, schedule: Schedule, trigger: Trigger) -> Workflow {
        Workflow { trigger, ..Workflow::new(id(name), schedule, Job::new("command", Map::new())) }
    }

    fn after(name: &str) -> Trigger {
        Trigger::Success { workflow: id(name) }
    }

    fn covers(name: &str, from: i64) -> Trigger {
        Trigger::Covers { workflow: id(name), from, to: 0 }
    }

    fn earlier(seconds: i64, trigger: Trigger) -> Trigger {
        Trigger::Offset { seconds: -seconds, trigger: Box::new(trigger) }
    }

    fn found(all: Vec<Workflow>) -> Vec<EndlessWait> {
        let all: Vec<_> = all.into_iter().map(Arc::new).collect();
        EndlessWaits::of(&all, &[], WEEK, now()).waits
    }

    /// The only wait: who waits for whom, why, and which slots.
    fn only(all: Vec<Workflow>) -> (WaitCause, WaitExtent) {
        let found = found(all);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].cause, found[0].extent)
    }

    #[test]
    fn times_of_two_schedules_that_never_meet_are_found() {
        let half = || workflow("half", cron("30 * * * *", "UTC"), Trigger::Always);
        let hour = |trigger| workflow("hour", cron("0 * * * *", "UTC"), trigger);
        assert_eq!(only(vec![half(), hour(after("half"))]), (WaitCause::NoSuchTime, WaitExtent::All));
        assert_eq!(found(vec![half(), hour(after("half"))])[0].lag, Some(1800));
        assert!(found(vec![half(), hour(earlier(1800, after("half")))]).is_empty());
        let berlin = workflow("berlin", cron("0 6 * * *", "Europe/Berlin"), Trigger::Always);
        let utc = workflow("utc", cron("0 6 * * *", "UTC"), after("berlin"));
        let wait = found(vec![berlin, utc]).remove(0);
        assert_eq!((wait.cause, wait.extent, wait.lag), (WaitCause::NoSuchTime, WaitExtent::All, None));
        let monday = workflow("monday", cron("0 6 * * MON", "UTC"), Trigger::Always);
        let tuesday = workflow("tuesday", cron("0 6 * * TUE", "UTC"), after("monday"));
        assert_eq!(only(vec![monday, tuesday]), (WaitCause::NoSuchTime, WaitExtent::All));
    }

    #[test]
    fn calendars_of_two_zones_never_meet_or_only_for_half_of_the_year() {
        let days = |name: &str, zone: &str, trigger| {
            workflow(name, Schedule::Calendar(Calendar::daily(Zone::parse(zone).expect("a zone"))), trigger)
        };
        let paris = days("paris", "Europe/Paris", Trigger::Always);
        assert_eq!(only(vec![paris, days("utc", "UTC", after("paris"))]), (WaitCause::NoSuchTime, WaitExtent::All));
        let london = days("london", "Europe/London", Trigger::Always);
        let (cause, extent) = only(vec![london, days("utc", "UTC", after("london"))]);
        assert_eq!(cause, WaitCause::NoSuchTime);
        assert!(matches!(extent, WaitExtent::Some { slots: 200..230 }), "{extent:?}");
    }

    #[test]
    fn an_upstream_that_has_ended_or_begins_later_is_found() {
        let hourly = || cron("0 * * * *", "UTC");
        let bounded = |start: Option<&str>, end: Option<&str>| Workflow {
            start_time: start.map(at),
            end_time: end.map(at),
            ..workflow("up", hourly(), Trigger::Always)
        };
        let down = || workflow("down", hourly(), after("up"));
        let ended = bounded(None, Some("2026-11-20T00:00:00Z"));
        assert_eq!(only(vec![ended, down()]), (WaitCause::Ended, WaitExtent::All));
        let ends = bounded(None, Some("2026-11-30T00:00:00Z"));
        assert_eq!(only(vec![ends, down()]), (WaitCause::Ended, WaitExtent::Rest));
        let (last, next) = (at("2026-11-28T23:00:00Z"), at("2026-11-29T00:00:00Z"));
        let begins = bounded(Some("2026-11-29T00:00:00Z"), None);
        let extent = WaitExtent::First { slots: 175, last, next };
        assert_eq!(only(vec![begins, down()]), (WaitCause::NotBegun, extent));
    }

    #[test]
    fn a_workflow_whose_first_slot_waits_for_its_own_past_never_runs() {
        let own = |trigger| Workflow {
            start_time: Some(at("2026-11-28T00:00:00Z")),
            ..workflow("own", cron("0 * * * *", "UTC"), trigger)
        };
        let wait = found(vec![own(earlier(3600, after("own")))]).remove(0);
        assert_eq!((wait.cause, wait.extent, wait.is_mistake), (WaitCause::NotBegun, WaitExtent::All, true));
        assert!(found(vec![own(covers("own", -3600))]).is_empty(), "periods of before the start are not waited for");
        let or_begin = Trigger::Or { triggers: vec![earlier(3600, after("own")), Trigger::Always] };
        assert!(found(vec![own(or_begin)]).is_empty());
    }

    #[test]
    fn slots_of_a_window_that_cuts_a_period_are_not_counted_among_those_that_run() {
        let hourly = |catch_up| Workflow { catch_up, ..workflow("hourly", cron("0 * * * *", "UTC"), Trigger::Always) };
        let calendar = || Schedule::Calendar(Calendar::daily(Zone::utc()));
        let daily = |catch_up| Workflow { catch_up, ..workflow("daily", calendar(), covers("hourly", 0)) };
        let past = |all: Vec<Workflow>| {
            let all: Vec<_> = all.into_iter().map(Arc::new).collect();
            PastSlots::of(&all, &[], WEEK, now()).lines()
        };
        let all = Some(CatchUp::All);
        assert_eq!(
            past(vec![hourly(all), daily(all)]),
            [
                "174 past slots will run: hourly 168, daily 6",
                "the first slot of daily, 2026-11-21T00:00Z, waits forever for hourly@2026-11-21T00:00Z, which is not planned: it lies \
                 before the planning window; startTime: \"2026-11-22T00:00Z\" of daily leaves it out"
            ]
        );
        let latest = Some(CatchUp::Latest);
        assert_eq!(
            past(vec![hourly(latest), daily(latest)]),
            [
                "the first slot of daily, 2026-11-28T00:00Z, waits forever for hourly@2026-11-28T00:00Z, which is not planned: catchUp is \
                 \"latest\"; startTime: \"2026-11-29T00:00Z\" of daily leaves it out"
            ]
        );
        let started = Workflow { start_time: Some(at("2026-11-22T00:00:00Z")), ..daily(all) };
        assert_eq!(past(vec![hourly(all), started]), ["174 past slots will run: hourly 168, daily 6"]);
        let wait = found(vec![hourly(latest), daily(all)]).remove(0);
        assert!(wait.is_mistake, "one catches up with everything, the other doesn't: {wait:?}");
    }

    #[test]
    fn slots_that_wait_for_slots_that_wait_forever_are_not_counted_either() {
        let chain = |name: &str, trigger| workflow(name, cron("0 * * * *", "UTC"), trigger);
        let half = workflow("half", cron("30 * * * *", "UTC"), Trigger::Always);
        let all = vec![
            half,
            chain("b", after("half")),
            chain("a", after("b")),
            chain("c", after("a")),
            chain("d", Trigger::Always),
        ];
        let all: Vec<_> = all.into_iter().map(Arc::new).collect();
        let waits = EndlessWaits::of(&all, &[], WEEK, now()).waits;
        assert_eq!(waits.iter().map(|wait| wait.workflow.as_str()).collect::<Vec<_>>(), ["b"], "the others follow");
        assert_eq!(PastSlots::of(&all, &[], WEEK, now()).lines(), ["336 past slots will run: d 168, half 168"]);
    }

    #[test]
    fn the_past_of_a_workflow_that_is_known_is_not_judged() {
        let own = workflow("own", cron("0 * * * *", "UTC"), earlier(3600, after("own")));
        let mut planned = PlanState { since: Some(at("2026-11-01T00:00:00Z")), ..PlanState::default() };
        planned.schedule =
            serde_json::to_string(&CronSchedule::utc(Cron::parse("0 * * * *").expect("cron"))).expect("json");
        planned.ranges.insert(crate::ranges::Range::new(at("2026-11-01T00:00:00Z"), now()));
        let row = WorkflowRow {
            id: own.id.clone(),
            definition: Arc::new(own.clone()),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned,
            moments: crate::workflow::Moments::default(),
        };
        assert!(EndlessWaits::of(&[Arc::new(own)], &[row], WEEK, now()).waits.is_empty());
    }

    #[test]
    fn a_workflow_with_too_many_slots_is_not_judged() {
        let minutes = || cron("* * * * *", "UTC");
        let wide =
            Workflow { catch_up: Some(CatchUp::All), ..workflow("wide", minutes(), covers("minutes", -86_400 * 6)) };
        assert!(found(vec![workflow("minutes", minutes(), Trigger::Always), wide]).is_empty());
    }
}
