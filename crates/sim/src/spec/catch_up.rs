//! Planning: the times of a schedule that become slots, and the misfires among them that are passed over.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::CatchUp;
use kelos_model::{SlotRef, Workflow, WorkflowId};

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
            let since =
                if self.workflows[&id].passes_over_misfires() { Some(first_due(&schedule, now)) } else { before };
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
        let times = self.times_due(id, schedule, now);
        if let Some(plan) = self.plans.0.get_mut(id) {
            plan.times.extend(&times);
        }
        times
    }

    /// The times of a workflow whose slots are due before a moment, in the planning window and as far as they count.
    fn times_due(&self, id: &WorkflowId, schedule: &CronSchedule, until: Timestamp) -> Vec<Timestamp> {
        let workflow = &self.workflows[id];
        let since = self.plans.0.get(id).and_then(|plan| plan.since).filter(|_| workflow.passes_over_misfires());
        let window = first_due(schedule, self.now - self.window);
        let from = [workflow.start_time, since].into_iter().flatten().fold(window, Timestamp::max);
        let times = schedule.times(from, until);
        times.filter(|at| due(schedule, *at) < until && is_before_end(workflow, schedule, *at)).collect()
    }

    fn pass_over_misfires(&mut self, id: &WorkflowId, schedule: &CronSchedule, now: Timestamp) {
        let policy = self.workflows[id].catch_up.filter(|policy| *policy != CatchUp::All);
        let workflow = self.workflows[id].clone();
        let late = self.times_due(id, schedule, now - LATE);
        let (Some(policy), Some(plan)) = (policy, self.plans.0.get_mut(id)) else { return };
        let missed: Vec<Timestamp> = late.into_iter().filter(|at| !plan.times.contains(at)).collect();
        let Some(last) = missed.last() else { return };
        let next = schedule.next_after(*last).filter(|next| is_before_end(&workflow, schedule, *next));
        let is_latest = next.is_none_or(|next| due(schedule, next) >= now);
        if policy == CatchUp::Skip || !is_latest {
            plan.since = Some(first_due(schedule, now - LATE));
        } else if missed.len() > 1 {
            plan.since = Some(*last);
        }
    }
}

/// When the slot of a time is due: at the time or, where slots are about periods, at the next time.
pub(super) fn due(schedule: &CronSchedule, at: Timestamp) -> Timestamp {
    let next = || schedule.next_after(at).unwrap_or(Timestamp::MAX);
    if schedule.is_of_periods() { next() } else { at }
}

/// Whether a slot is due by the end of its workflow: a period that ends with it is, a time that comes with it is not.
pub(super) fn is_before_end(workflow: &Workflow, schedule: &CronSchedule, at: Timestamp) -> bool {
    let is_before = |end| if schedule.is_of_periods() { due(schedule, at) <= end } else { at < end };
    workflow.end_time.is_none_or(is_before)
}

/// A moment from which on all times have slots that are due from a moment on, and none before it has.
fn first_due(schedule: &CronSchedule, moment: Timestamp) -> Timestamp {
    // No period of the simulation is longer than a long day.
    let near = schedule.is_of_periods().then(|| schedule.times(moment - SignedDuration::from_hours(50), moment));
    near.into_iter().flatten().find(|at| due(schedule, *at) >= moment).unwrap_or(moment)
}
