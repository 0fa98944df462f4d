//! The frontier: the next times of a backlog that become slots. A workflow has no more queued slots from its backlog
//! than may run soon, and they are the first ones.
//!
//! A trigger that depends only on time and on the success of other slots allows whole ranges to be passed over. The
//! success of the upstream slots is read from the past once, in pages, when there is room for more; later successes are
//! announced.
//!
//! Absent: slots, and their creation. A time that is ready here is evaluated like any other slot before it runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::trigger::{Prerequisite, Prerequisites};
use kelos_model::{Breach, Invariant, SlotKey, SlotRef, Stretch, WorkflowId};

use crate::breaches::Breaches;
use crate::due_set::DueSet;
use crate::filter::WorkflowFilter;
use crate::moments::TICK;
use crate::permits::Position;
use crate::workflows::Workflows;

/// The backlogs of all workflows, and what is known about the readiness of their times.
#[derive(Default)]
pub(super) struct Frontier {
    workflows: BTreeMap<WorkflowId, Readiness>,
    /// The workflows that depend on the slots of another, each with its prerequisite.
    dependents: BTreeMap<WorkflowId, Vec<(WorkflowId, Prerequisite)>>,
    /// The workflows whose backlogs may have times that become slots.
    woken: DueSet,
    /// The positions from which on no more is queued for now, because enough is.
    cutoffs: BTreeMap<WorkflowId, Cutoff>,
    breaches: Breaches,
}

/// The first time of a backlog that may run and is not queued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cutoff {
    /// Its position in the queue.
    pub(super) position: Position,
    /// The number of slots ahead of it that have not left the queue.
    pub(super) ahead: usize,
    /// The number of slots ahead of it below which more are drawn from the backlog.
    pub(super) fewest: usize,
}

/// The readiness of the times in a workflow's backlog, as far as prerequisites decide it.
struct Readiness {
    prerequisites: Prerequisites,
    upstream: BTreeMap<Prerequisite, Successes>,
}

/// The times whose upstream slots have succeeded.
#[derive(Default)]
struct Successes {
    /// The times whose slots have succeeded, now or once.
    had: RangeSet,
    /// The times that were asked about. Those not among `had` had not succeeded then.
    asked: RangeSet,
}

/// The next times of a stretch that may run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    /// The times, ascending.
    pub(super) times: Vec<Timestamp>,
    /// The question that has to be answered first; none if there are no further times, or enough.
    pub(super) check: Option<UpstreamCheck>,
}

/// A question to the past: which upstream slots of a range of times have succeeded?
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UpstreamCheck {
    /// The upstream slots.
    pub(super) upstream: Prerequisite,
    /// The range of the times that depend on them.
    pub(super) range: Range,
}

impl Frontier {
    /// Has slots made of a workflow's backlog, if any may run.
    pub(super) fn wake(&mut self, id: &WorkflowId) {
        self.woken.insert(id);
    }

    /// Notes the first time of a backlog that may run and is not queued; none if there is no such time.
    pub(super) fn cut_off(&mut self, id: &WorkflowId, first: Option<Cutoff>) {
        match first {
            Some(cutoff) => drop(self.cutoffs.insert(id.clone(), cutoff)),
            None => drop(self.cutoffs.remove(id)),
        }
    }

    /// The first time of a backlog that may run and is not queued, by its position.
    pub(super) fn cutoff(&self, id: &WorkflowId) -> Option<&Position> {
        self.cutoffs.get(id).map(|cutoff| &cutoff.position)
    }

    /// Whether the backlog of a workflow may have times that become slots.
    pub(super) fn is_woken(&self, id: &WorkflowId) -> bool {
        self.woken.contains(id)
    }

    /// Notes that a slot has left the queue. Once few are ahead of the first one that is not queued, more are drawn from
    /// the backlog.
    pub(super) fn dequeued(&mut self, id: &WorkflowId, position: &Position) {
        // Most workflows have no backlog, and positions beyond the cutoff don't matter.
        let Some(cutoff) = self.cutoffs.get_mut(id).filter(|cutoff| *position < cutoff.position) else { return };
        cutoff.ahead = cutoff.ahead.saturating_sub(1);
        if cutoff.ahead < cutoff.fewest {
            self.woken.insert(id);
        }
    }

    /// Takes the first breach out, if there is one.
    pub(super) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    /// Whether any backlog may have times that become slots.
    pub(super) fn is_due(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The number of workflows whose backlogs may have times that become slots.
    pub(super) fn count_woken(&self) -> usize {
        self.woken.len()
    }

    /// Takes the workflows whose backlogs may have times that become slots.
    pub(super) fn take_woken(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        self.woken.take_all(only)
    }

    /// Puts these workflows in order.
    pub(super) fn line_up_woken(&mut self) {
        self.woken.line_up(|_| None);
    }

    /// Takes the one of them that has waited longest.
    pub(super) fn take_next_woken(&mut self, only: &WorkflowFilter) -> Option<WorkflowId> {
        self.woken.take_next(only)
    }

    /// Sets the prerequisites of a workflow's slots; none if anything but time and success may decide.
    pub(super) fn agree(&mut self, id: &WorkflowId, prerequisites: Option<Prerequisites>) {
        if self.prerequisites(id) == prerequisites.as_ref() {
            return;
        }
        self.workflows.remove(id);
        self.dependents.retain(|_, dependents| {
            dependents.retain(|(dependent, _)| dependent != id);
            !dependents.is_empty()
        });
        // Where anything else may decide, successes are not announced.
        let Some(prerequisites) = prerequisites else { return };
        let mut upstream = BTreeMap::new();
        for one in &prerequisites.upstream {
            upstream.insert(one.clone(), Successes::default());
            self.dependents.entry(one.workflow().clone()).or_default().push((id.clone(), one.clone()));
        }
        self.workflows.insert(id.clone(), Readiness { prerequisites, upstream });
    }

    /// The prerequisites of a workflow's slots; none if anything but time and success may decide.
    pub(super) fn prerequisites(&self, id: &WorkflowId) -> Option<&Prerequisites> {
        self.workflows.get(id).map(|readiness| &readiness.prerequisites)
    }

    /// The slots that depend on a slot, whether they exist or not, and how.
    pub(super) fn dependents(&self, slot: &SlotRef, workflows: &Workflows) -> Vec<(SlotRef, Prerequisite)> {
        let mut found = Vec::new();
        for (id, one) in self.dependents.get(&slot.workflow).map_or(&[][..], Vec::as_slice) {
            let dependent = |key: SlotKey| (SlotRef::new(id.clone(), key), one.clone());
            match one {
                Prerequisite::Slot { offset, .. } => {
                    found.extend(offset.checked_neg().and_then(|back| slot.key.offset(back)).map(dependent));
                }
                Prerequisite::Periods(periods) => {
                    let (Some(upstream), Some(own)) = (workflows.times(&slot.workflow), workflows.times(id)) else {
                        continue;
                    };
                    let Some(at) = slot.key.time() else { continue };
                    let times = periods.coverage().waiting_for(at, &upstream, id, &own);
                    found.extend(times.into_iter().map(SlotKey::Time).map(dependent));
                }
            }
        }
        found
    }

    /// Notes the success of an upstream slot of a time in a backlog. Unless the time is beyond the cutoff, it becomes a
    /// slot, once all upstream slots of it have succeeded.
    pub(super) fn succeeded(&mut self, dependent: &SlotRef, upstream: &Prerequisite, position: &Position) {
        if self.cutoffs.get(&dependent.workflow).is_none_or(|cutoff| *position < cutoff.position) {
            self.woken.insert(&dependent.workflow);
        }
        // Only slots of times are in backlogs.
        let Some(time) = dependent.key.time() else { return };
        let readiness = self.workflows.get_mut(&dependent.workflow);
        let Some(successes) = readiness.and_then(|readiness| readiness.upstream.get_mut(upstream)) else {
            return self.breaches.report_slot(Invariant::BondsGoBothWays, dependent);
        };
        let range = Range::new(time, time + TICK);
        match upstream {
            Prerequisite::Slot { .. } => successes.had.insert(range),
            // Others of its periods may be missing: the past is asked again.
            Prerequisite::Periods(_) => successes.asked.remove(range),
        }
    }

    /// Forgets the answers about periods: those that a workflow waits for may be others now.
    pub(super) fn forget_periods(&mut self, id: &WorkflowId) {
        for (upstream, successes) in self.workflows.get_mut(id).into_iter().flat_map(|one| &mut one.upstream) {
            if matches!(upstream, Prerequisite::Periods(_)) {
                successes.asked = RangeSet::default();
                self.woken.insert(id);
            }
        }
    }

    /// Forgets the answers about a range of times, which are newly in the backlog.
    pub(super) fn forget(&mut self, id: &WorkflowId, range: Range) {
        let successes = self.workflows.get_mut(id).into_iter().flat_map(|readiness| readiness.upstream.values_mut());
        successes.for_each(|one| one.asked.remove(range));
    }

    /// Takes the answer to a question: the times whose upstream slot has succeeded.
    pub(super) fn answered(&mut self, id: &WorkflowId, check: &UpstreamCheck, succeeded: &[Range]) {
        let readiness = self.workflows.get_mut(id);
        let Some(successes) = readiness.and_then(|readiness| readiness.upstream.get_mut(&check.upstream)) else {
            return self.breaches.report(Invariant::BondsGoBothWays, id);
        };
        successes.asked.insert(check.range);
        succeeded.iter().for_each(|range| successes.had.insert(*range));
    }

    /// The first times of a stretch that may run at a moment, up to `most`.
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
        range.end = range.end.min(free_until(&readiness.prerequisites, schedule, now));
        let check = readiness.check(range);
        if let Some(check) = &check {
            range.end = check.range.start;
        }
        let times = readiness.times(range, schedule, most);
        let enough = times.len() == most;
        Ready { times, check: check.filter(|_| !enough) }
    }
}

/// Times before this wait for time no more, at a moment.
pub(super) fn free_until(prerequisites: &Prerequisites, schedule: &CronSchedule, now: Timestamp) -> Timestamp {
    let moments = Range::new(Timestamp::MIN, prerequisites.free_until(now));
    if prerequisites.delay.is_some() { schedule.due_in(moments).end } else { moments.end }
}

impl Readiness {
    /// The first range that was not asked about.
    fn check(&self, range: Range) -> Option<UpstreamCheck> {
        let gap = |(upstream, successes): (&Prerequisite, &Successes)| {
            let gap = successes.asked.gaps(range).first().copied()?;
            Some(UpstreamCheck { upstream: upstream.clone(), range: gap })
        };
        self.upstream.iter().filter_map(gap).min_by_key(|check| check.range.start)
    }

    /// The first times of a range whose upstream slots have all succeeded.
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

    fn on_a() -> Prerequisite {
        Prerequisite::Slot { workflow: id("a"), offset: 0 }
    }

    /// A frontier with a workflow `b` whose slots wait for those of `a` and for a delay of an hour.
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
            (&on_a(), Range::new(hour(0), hour(7))),
            "the delay has not passed for more"
        );
        frontier.answered(&id("b"), &check, &[Range::new(hour(1), hour(3))]);
        assert_eq!(ready(&frontier), Ready { times: vec![hour(1), hour(2)], check: None });
        let (a, b) = (SlotRef::at(id("a"), hour(5)), SlotRef::at(id("b"), hour(5)));
        assert_eq!(frontier.dependents(&a, &Workflows::default()), [(b.clone(), on_a())]);
        frontier.succeeded(&b, &on_a(), &position(5));
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
        frontier.succeeded(&b, &on_a(), &position(5));
        assert_eq!(frontier.take_breach(), Some(Breach::of_slot(Invariant::BondsGoBothWays, &b)));
    }

    #[test]
    fn a_cutoff_is_reached_when_half_of_those_before_it_have_left_the_queue() {
        let mut frontier = after_a();
        frontier.cut_off(&id("b"), Some(Cutoff { position: position(9), ahead: 3, fewest: 2 }));
        frontier.succeeded(&SlotRef::at(id("b"), hour(12)), &on_a(), &position(12));
        frontier.dequeued(&id("b"), &position(11));
        frontier.dequeued(&id("b"), &position(1));
        assert!(!frontier.is_due(), "two are left before the cutoff, and beyond it nothing matters");
        frontier.dequeued(&id("b"), &position(2));
        assert!(frontier.is_due());
    }
}
