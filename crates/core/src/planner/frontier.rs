//! The frontier: which times of a backlog become slots next. A workflow has no more queued slots of its backlog than may come to
//! run soon, and they are those that go first.
//!
//! A trigger that waits for time and the success of other slots alone lets whole ranges be passed over. Which of the slots that it
//! waits for have succeeded is read of the past once, in pages, when there is room for more; later successes are told.
//!
//! Absent: slots, and how one is made. What is found here to be ready is looked at like any other slot before it goes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::trigger::Prerequisites;
use kelos_model::{Breach, Invariant, SlotRef, Stretch, WorkflowId};

use crate::breaches::Breaches;
use crate::filter::{WorkflowFilter, take_allowed};
use crate::moments::TICK;
use crate::permits::Position;

/// A slot that another waits for: of which workflow, and how many seconds later.
type Upstream = (WorkflowId, i64);

/// The backlogs of all workflows, as far as is known when they may go.
#[derive(Default)]
pub(super) struct Frontier {
    workflows: BTreeMap<WorkflowId, Readiness>,
    /// The workflows that wait for the slots of another, and how many seconds before its own.
    dependents: BTreeMap<WorkflowId, Vec<(WorkflowId, i64)>>,
    /// Workflows of whose backlogs slots may be made.
    woken: BTreeSet<WorkflowId>,
    /// Where backlogs begin of which no more is queued for now, because enough is.
    cutoffs: BTreeMap<WorkflowId, Cutoff>,
    breaches: Breaches,
}

/// The first time of a backlog that may go and is not queued.
struct Cutoff {
    /// Where it will stand in the queue.
    position: Position,
    /// How many slots go before it, as far as they have not left the queue.
    ahead: usize,
}

/// The slots of a workflow's backlog that may go as far as others are concerned.
struct Readiness {
    prerequisites: Prerequisites,
    upstream: BTreeMap<Upstream, Successes>,
}

/// The times whose upstream slot has succeeded.
#[derive(Default)]
struct Successes {
    /// Of these it has, or had once.
    had: RangeSet,
    /// Of these it was asked: where they are not among `had`, their slot had not succeeded then.
    asked: RangeSet,
}

/// The next times of a stretch that may go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    /// Ascending.
    pub(super) times: Vec<Timestamp>,
    /// The question that comes before more can be said; none where there is no more, or enough.
    pub(super) check: Option<UpstreamCheck>,
}

/// A question to the past: of a range of times, whose slots that they wait for have succeeded?
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UpstreamCheck {
    /// The slots that they wait for.
    pub(super) upstream: Upstream,
    /// Their own times.
    pub(super) range: Range,
}

impl Frontier {
    /// Has slots made of a workflow's backlog, where any may go.
    pub(super) fn wake(&mut self, id: &WorkflowId) {
        self.woken.insert(id.clone());
    }

    /// Notes the first time of a backlog that may go and is not queued, and how many slots go before it; none where there is none.
    pub(super) fn cut_off(&mut self, id: &WorkflowId, first: Option<(Position, usize)>) {
        match first {
            Some((position, ahead)) => drop(self.cutoffs.insert(id.clone(), Cutoff { position, ahead })),
            None => drop(self.cutoffs.remove(id)),
        }
    }

    /// Notes that a slot has left the queue. Once fewer than so many go before the first that is not queued, more are made of the backlog.
    pub(super) fn dequeued(&mut self, id: &WorkflowId, position: &Position, fewest: usize) {
        // Most workflows have no backlog, and what lies beyond the cutoff matters to nobody.
        let Some(cutoff) = self.cutoffs.get_mut(id).filter(|cutoff| *position < cutoff.position) else { return };
        cutoff.ahead = cutoff.ahead.saturating_sub(1);
        if cutoff.ahead < fewest {
            self.woken.insert(id.clone());
        }
    }

    /// Takes out what broke.
    pub(super) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Whether slots may be made of any backlog.
    pub(super) fn is_due(&self) -> bool {
        !self.woken.is_empty()
    }

    /// How many workflows there are of whose backlogs slots may be made.
    pub(super) fn count_woken(&self) -> usize {
        self.woken.len()
    }

    /// Takes the workflows of whose backlogs slots may be made.
    pub(super) fn take_woken(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        take_allowed(&mut self.woken, only)
    }

    /// Takes what the slots of a workflow wait for; none where anything but time and success may decide.
    pub(super) fn agree(&mut self, id: &WorkflowId, prerequisites: Option<Prerequisites>) {
        if self.prerequisites(id) == prerequisites.as_ref() {
            return;
        }
        self.workflows.remove(id);
        self.dependents.retain(|_, dependents| {
            dependents.retain(|(dependent, _)| dependent != id);
            !dependents.is_empty()
        });
        // None are told of where anything else may decide.
        let Some(prerequisites) = prerequisites else { return };
        let mut upstream = BTreeMap::new();
        for (workflow, offsets) in &prerequisites.slots {
            for offset in offsets {
                upstream.insert((workflow.clone(), *offset), Successes::default());
                self.dependents.entry(workflow.clone()).or_default().push((id.clone(), *offset));
            }
        }
        self.workflows.insert(id.clone(), Readiness { prerequisites, upstream });
    }

    /// The conditions that the slots of a workflow wait for; none where anything but time and success may decide.
    pub(super) fn prerequisites(&self, id: &WorkflowId) -> Option<&Prerequisites> {
        self.workflows.get(id).map(|readiness| &readiness.prerequisites)
    }

    /// The slots that wait for one, whether they exist or not.
    pub(super) fn dependents(&self, slot: &SlotRef) -> Vec<SlotRef> {
        let dependents = self.dependents.get(&slot.workflow).map_or(&[][..], Vec::as_slice);
        let key = |offset: &i64| slot.key.offset(offset.checked_neg()?);
        dependents.iter().filter_map(|(id, offset)| Some(SlotRef::new(id.clone(), key(offset)?))).collect()
    }

    /// Notes that a slot succeeded which a time of a backlog waits for, and has that made a slot unless it lies beyond the cutoff.
    pub(super) fn succeeded(&mut self, upstream: &SlotRef, dependent: &SlotRef, position: &Position) {
        if self.cutoffs.get(&dependent.workflow).is_none_or(|cutoff| *position < cutoff.position) {
            self.woken.insert(dependent.workflow.clone());
        }
        // Only slots by time are left in backlogs.
        let (Some(time), Some(at)) = (dependent.key.time(), upstream.key.time()) else { return };
        let Some(readiness) = self.workflows.get_mut(&dependent.workflow) else {
            return self.breaches.report_slot(Invariant::BondsGoBothWays, dependent);
        };
        for ((workflow, offset), successes) in &mut readiness.upstream {
            let looks_at = time.checked_add(SignedDuration::from_secs(*offset)).ok();
            if *workflow == upstream.workflow && looks_at == Some(at) {
                successes.had.insert(Range::new(time, time + TICK));
            }
        }
    }

    /// Has a range of a workflow's times asked about anew: they are of its backlog from now on.
    pub(super) fn forget(&mut self, id: &WorkflowId, range: Range) {
        let successes = self.workflows.get_mut(id).into_iter().flat_map(|readiness| readiness.upstream.values_mut());
        successes.for_each(|one| one.asked.remove(range));
    }

    /// Takes the answer to a question: of these times the slot that they wait for has succeeded.
    pub(super) fn answered(&mut self, id: &WorkflowId, check: &UpstreamCheck, succeeded: &[Range]) {
        let readiness = self.workflows.get_mut(id);
        let Some(successes) = readiness.and_then(|readiness| readiness.upstream.get_mut(&check.upstream)) else {
            return self.breaches.report(Invariant::BondsGoBothWays, id);
        };
        successes.asked.insert(check.range);
        succeeded.iter().for_each(|range| successes.had.insert(*range));
    }

    /// The first times of a stretch that may go at a moment, no more than so many.
    pub(super) fn ready(
        &self,
        id: &WorkflowId,
        stretch: &Stretch,
        schedule: &CronSchedule,
        now: Timestamp,
        most: usize,
    ) -> Ready {
        let mut range = stretch.range;
        let Some(readiness) = self.workflows.get(id) else {
            return Ready { times: schedule.times(range.start, range.end).take(most).collect(), check: None };
        };
        range.end = range.end.min(readiness.prerequisites.free_until(now));
        let check = readiness.check(range);
        if let Some(check) = &check {
            range.end = check.range.start;
        }
        let times = readiness.times(range, schedule, most);
        let enough = times.len() == most;
        Ready { times, check: check.filter(|_| !enough) }
    }
}

impl Readiness {
    /// The first range of which nobody has asked.
    fn check(&self, range: Range) -> Option<UpstreamCheck> {
        let gap = |(upstream, successes): (&Upstream, &Successes)| {
            let gap = successes.asked.gaps(range).first().copied()?;
            Some(UpstreamCheck { upstream: upstream.clone(), range: gap })
        };
        self.upstream.iter().filter_map(gap).min_by_key(|check| check.range.start)
    }

    /// The first times of a range of which all that they wait for has succeeded.
    fn times(&self, range: Range, schedule: &CronSchedule, most: usize) -> Vec<Timestamp> {
        let mut upstream = self.upstream.values();
        let Some(first) = upstream.next() else {
            return schedule.times(range.start, range.end).take(most).collect();
        };
        let of_first = first.had.within(range).flat_map(|part| schedule.times(part.start, part.end));
        of_first.filter(|time| upstream.clone().all(|other| other.had.contains(*time))).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::Trigger;

    use super::*;

    fn hour(hours: i64) -> Timestamp {
        Timestamp::from_second(3600 * hours).unwrap()
    }

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).unwrap()
    }

    fn stretch(first: i64, end: i64) -> Stretch {
        let range = Range::new(hour(first), hour(end));
        Stretch { range, since: hour(end), backfill: None, priority: 0, killed: None }
    }

    fn position(hours: i64) -> Position {
        Position::of(&stretch(0, 1).slot(), &kelos_model::SlotKey::Time(hour(hours)))
    }

    /// A frontier with a workflow `b` whose slots wait for those of `a` and for an hour to pass.
    fn after_a() -> Frontier {
        let success = Trigger::Success { workflow: id("a") };
        let trigger = Trigger::And { triggers: vec![success, Trigger::Delay { seconds: 3600 }] };
        let mut frontier = Frontier::default();
        frontier.agree(&id("b"), trigger.prerequisites());
        frontier
    }

    #[test]
    fn times_are_ready_once_it_is_known_that_their_upstream_succeeded() {
        let mut frontier = after_a();
        let ready =
            |frontier: &Frontier| frontier.ready(&id("b"), &stretch(0, 10), &CronSchedule::hourly(), hour(8), 5);
        let check = ready(&frontier).check.unwrap();
        assert_eq!(
            (&check.upstream, check.range),
            (&(id("a"), 0), Range::new(hour(0), hour(7))),
            "the delay has not passed for more"
        );
        frontier.answered(&id("b"), &check, &[Range::new(hour(1), hour(3))]);
        assert_eq!(ready(&frontier), Ready { times: vec![hour(1), hour(2)], check: None });
        let (a, b) = (SlotRef::at(id("a"), hour(5)), SlotRef::at(id("b"), hour(5)));
        assert_eq!(frontier.dependents(&a), std::slice::from_ref(&b));
        frontier.succeeded(&a, &b, &position(5));
        assert!(frontier.is_due());
        assert_eq!(ready(&frontier).times, [hour(1), hour(2), hour(5)]);
        frontier.forget(&id("b"), Range::new(hour(4), hour(6)));
        assert_eq!(
            ready(&frontier).check.unwrap().range,
            Range::new(hour(4), hour(6)),
            "new in the backlog, so it is asked again"
        );
    }

    #[test]
    fn who_is_told_of_a_success_and_waits_for_nothing_is_a_breach() {
        let mut frontier = after_a();
        frontier.workflows.clear();
        let b = SlotRef::at(id("b"), hour(5));
        frontier.succeeded(&SlotRef::at(id("a"), hour(5)), &b, &position(5));
        assert_eq!(frontier.take_breach(), Some(Breach::of_slot(Invariant::BondsGoBothWays, &b)));
    }

    #[test]
    fn a_cutoff_is_reached_when_half_of_those_before_it_have_left_the_queue() {
        let mut frontier = after_a();
        frontier.cut_off(&id("b"), Some((position(9), 3)));
        frontier.succeeded(&SlotRef::at(id("a"), hour(12)), &SlotRef::at(id("b"), hour(12)), &position(12));
        frontier.dequeued(&id("b"), &position(11), 2);
        frontier.dequeued(&id("b"), &position(1), 2);
        assert!(!frontier.is_due(), "two are left before the cutoff, and beyond it nothing matters");
        frontier.dequeued(&id("b"), &position(2), 2);
        assert!(frontier.is_due());
    }
}
