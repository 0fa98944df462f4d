//! Planning: the times of a schedule that become slots, and the misfires among them that are passed over.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::CatchUp;
use kelos_model::{SlotRef, WorkflowId};

use super::{Spec, SpecSlot, schedules_of_feeds};

/// From this delay on, a time is a misfire.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// The planning of a workflow.
#[derive(Debug)]
struct PlanRecord {
    /// The schedule that holds.
    schedule: CronSchedule,
    /// The times of it that were planned.
    times: BTreeSet<Timestamp>,
    /// When it was first seen, or up to where misfires were passed over.
    since: Option<Timestamp>,
}

/// The planning of all workflows.
#[derive(Debug, Default)]
pub(super) struct Plans(BTreeMap<WorkflowId, PlanRecord>);

impl Spec {
    /// Notes the schedules that are new or have changed.
    pub(super) fn see_schedules(&mut self, now: Timestamp) {
        let feeds = schedules_of_feeds(&self.workflows.values().cloned().collect::<Vec<_>>());
        for (id, schedule) in self.schedules().into_iter().chain(feeds) {
            let known = self.plans.0.get(&id);
            if known.is_some_and(|known| known.schedule == schedule) {
                continue;
            }
            let before = known.and_then(|known| known.since);
            let since = if self.workflows[&id].passes_over_misfires() { Some(now) } else { before };
            self.plans.0.insert(id, PlanRecord { schedule, times: BTreeSet::new(), since });
        }
    }

    /// Makes slots of the times of a workflow that are not caught up with, as far as they count.
    pub(super) fn plan(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp) {
        for at in self.take_times(id, schedule, now) {
            let planned = || SpecSlot { planned: now, ..SpecSlot::waiting(0, None) };
            self.slots.entry(SlotRef::at(id.clone(), at)).or_insert_with(planned);
        }
    }

    /// The times in the planning window that count by now, after misfires were passed over.
    pub(super) fn take_times(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp) -> Vec<Timestamp> {
        self.pass_over_misfires(id, schedule, now);
        let times: Vec<Timestamp> = schedule.times(self.opens_from(id, now), now).collect();
        if let Some(plan) = self.plans.0.get_mut(id) {
            plan.times.extend(&times);
        }
        times
    }

    /// The moment before which a schedule opens no slots.
    fn opens_from(&self, id: &WorkflowId, now: Timestamp) -> Timestamp {
        let workflow = &self.workflows[id];
        let since = self.plans.0.get(id).and_then(|plan| plan.since).filter(|_| workflow.passes_over_misfires());
        [workflow.start_time, since].into_iter().flatten().fold(now - self.window, Timestamp::max)
    }

    fn pass_over_misfires(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp) {
        let policy = self.workflows[id].catch_up.filter(|policy| *policy != CatchUp::All);
        let from = self.opens_from(id, now);
        let (Some(policy), Some(plan)) = (policy, self.plans.0.get_mut(id)) else { return };
        let late = now - LATE;
        let missed: Vec<Timestamp> = schedule.times(from, late).filter(|at| !plan.times.contains(at)).collect();
        let Some(last) = missed.last() else { return };
        let is_latest = schedule.next_after(*last).is_none_or(|next| next >= now);
        if policy == CatchUp::Skip || !is_latest {
            plan.since = Some(late);
        } else if missed.len() > 1 {
            plan.since = Some(*last);
        }
    }
}
