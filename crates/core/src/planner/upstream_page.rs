//! Questions to the past about the upstream slots of a backlog, in pages.
//!
//! Absent: the meaning of the answers, which the frontier keeps.

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::trigger::{PeriodsOf, Prerequisite};
use kelos_model::{SlotRef, SlotState, WorkflowId};

use super::frontier::UpstreamCheck;
use crate::moments::TICK;
use crate::slots::SlotTable;
use crate::workflows::Workflows;

/// The most slots whose success is read at once, but for those of a single time.
const ASKED_AT_ONCE: usize = 256;

/// The most times that are looked through for one page.
const LOOKED_THROUGH: usize = 4096;

/// The part of a check that is read at once.
pub(crate) struct UpstreamPage {
    check: UpstreamCheck,
    /// The times whose upstream slots are not in a backlog themselves, and so may have succeeded, with these slots.
    times: Vec<(Timestamp, Vec<SlotRef>)>,
    /// The number of slots that it asks about.
    asked: usize,
}

impl UpstreamPage {
    /// The first page of a check, which is shortened to it.
    pub(crate) fn of(
        id: &WorkflowId,
        check: &UpstreamCheck,
        schedule: &CronSchedule,
        workflows: &Workflows,
        slots: &SlotTable,
    ) -> UpstreamPage {
        let check = UpstreamCheck { upstream: check.upstream.clone(), range: check.range };
        let mut page = UpstreamPage { check, times: Vec::new(), asked: 0 };
        match page.check.upstream.clone() {
            Prerequisite::Slot { workflow, offset } => page.ask_slots(&workflow, offset, schedule, workflows, slots),
            Prerequisite::Periods(periods) => page.ask_periods(id, &periods, schedule, workflows, slots),
        }
        page
    }

    fn ask_slots(
        &mut self,
        upstream: &WorkflowId,
        offset: i64,
        schedule: &CronSchedule,
        workflows: &Workflows,
        slots: &SlotTable,
    ) {
        let range = self.check.range;
        let span = SignedDuration::from_secs(offset);
        let later = |at: Timestamp| at.checked_add(span).unwrap_or(Timestamp::MAX);
        let earlier = |at: Timestamp| at.checked_sub(span).unwrap_or(Timestamp::MIN);
        // A workflow that never existed has no slots, and none is beyond everything that was ever planned. The planned
        // ranges don't matter: slots of an earlier schedule and imported ones may lie outside them.
        let Some(until) = workflows.get(upstream).and_then(|workflow| workflow.planned().until) else { return };
        let looked_at = Range::new(later(range.start), later(range.end).min(until));
        let mut planned = RangeSet::default();
        slots.backlog(upstream).within(looked_at).for_each(|stretch| planned.insert(stretch.range));
        for part in planned.gaps(looked_at) {
            for time in schedule.times(earlier(part.start), earlier(part.end)) {
                if self.asked == ASKED_AT_ONCE {
                    self.check.range.end = time;
                    return;
                }
                if let Ok(at) = time.checked_add(span) {
                    self.ask(time, vec![SlotRef::at(upstream.clone(), at)]);
                }
            }
        }
    }

    fn ask_periods(
        &mut self,
        id: &WorkflowId,
        periods: &PeriodsOf,
        schedule: &CronSchedule,
        workflows: &Workflows,
        slots: &SlotTable,
    ) {
        let range = self.check.range;
        // Without times of theirs nobody can tell which periods are waited for.
        let (Some(own), Some(upstream)) = (workflows.times(id), workflows.times(&periods.workflow)) else { return };
        for (looked, time) in schedule.times(range.start, range.end).enumerate() {
            let covered = periods.slots_of(id, time, &own, &upstream);
            let count = covered.as_ref().map_or(0, Vec::len);
            if looked == LOOKED_THROUGH || (self.asked > 0 && self.asked + count > ASKED_AT_ONCE) {
                self.check.range.end = time;
                return;
            }
            let slot = |at: Timestamp| SlotRef::at(periods.workflow.clone(), at);
            let covered = covered.map(|times| times.into_iter().map(slot).collect::<Vec<_>>());
            if let Some(covered) = covered.filter(|covered| !covered.iter().any(|slot| slots.is_planned(slot))) {
                self.ask(time, covered);
            }
        }
    }

    fn ask(&mut self, time: Timestamp, upstream: Vec<SlotRef>) {
        self.asked += upstream.len();
        self.times.push((time, upstream));
    }

    pub(super) fn check(&self) -> &UpstreamCheck {
        &self.check
    }

    /// The number of slots that it asks about.
    pub(crate) fn len(&self) -> usize {
        self.asked
    }

    /// The slots that it asks about.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotRef> {
        self.times.iter().flat_map(|(_, upstream)| upstream.iter().cloned())
    }

    /// The times whose upstream slots have succeeded. Each extends to the next time, so that neighbours become one range.
    pub(crate) fn succeeded(&self, schedule: &CronSchedule, slots: &SlotTable) -> Vec<Range> {
        let has_succeeded = |slot: &SlotRef| slots.state(slot) == Some(SlotState::Succeeded);
        let alike = |time: Timestamp| Range::new(time, schedule.next_after(time).unwrap_or(time + TICK));
        let ready = self.times.iter().filter(|(_, upstream)| upstream.iter().all(has_succeeded));
        ready.map(|(time, _)| alike(*time)).collect()
    }
}
