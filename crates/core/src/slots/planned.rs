//! The backlogs of all workflows: planned times without slots.

use std::collections::BTreeMap;

use kelos_model::time::CronSchedule;
use kelos_model::{Backlog, SlotRef, Stretch, WorkflowId};

/// The backlogs, and the schedules of their times.
#[derive(Default)]
pub(super) struct PlannedTimes {
    backlogs: BTreeMap<WorkflowId, Backlog>,
    schedules: BTreeMap<WorkflowId, CronSchedule>,
}

static NONE: Backlog = Backlog::EMPTY;

impl PlannedTimes {
    /// The stretch of a time in a backlog; none for any other slot.
    pub(super) fn of(&self, id: &SlotRef) -> Option<&Stretch> {
        let at = id.key.scheduled()?;
        let stretch = self.backlogs.get(&id.workflow)?.at(at)?;
        self.schedules.get(&id.workflow).filter(|schedule| schedule.contains(at)).map(|_| stretch)
    }

    pub(super) fn backlog(&self, id: &WorkflowId) -> &Backlog {
        self.backlogs.get(id).unwrap_or(&NONE)
    }

    pub(super) fn backlog_mut(&mut self, id: &WorkflowId) -> &mut Backlog {
        self.backlogs.entry(id.clone()).or_default()
    }

    /// The schedule of the times in a workflow's backlog, even if that is empty.
    pub(super) fn schedule(&self, id: &WorkflowId) -> Option<&CronSchedule> {
        self.schedules.get(id)
    }

    /// The text of the schedule that planned a backlog, if it differs from this one.
    pub(super) fn earlier_schedule(&self, id: &WorkflowId, words: &str) -> Option<String> {
        let earlier = self.schedule(id).filter(|_| !self.backlog(id).is_empty())?;
        serde_json::to_string(earlier).ok().filter(|earlier| earlier != words)
    }

    /// Sets the schedule of a backlog, unless that is not empty and another schedule planned it.
    pub(super) fn reschedule(&mut self, id: &WorkflowId, schedule: &CronSchedule) {
        if self.backlog(id).is_empty() {
            self.schedules.insert(id.clone(), schedule.clone());
        }
    }

    /// Restores a backlog from the store.
    pub(super) fn restore(&mut self, id: &WorkflowId, backlog: Backlog, schedule: CronSchedule) {
        self.backlogs.insert(id.clone(), backlog);
        self.schedules.insert(id.clone(), schedule);
    }

    /// Notes that a time has a slot of its own. Returns whether the schedule of its backlog is known.
    pub(super) fn take(&mut self, id: &SlotRef) -> bool {
        // Only times are in backlogs.
        let Some(at) = id.key.scheduled() else { return true };
        let Some(backlog) = self.backlogs.get_mut(&id.workflow).filter(|backlog| backlog.at(at).is_some()) else {
            return true;
        };
        backlog.take_time(at);
        let schedule = self.schedules.get(&id.workflow);
        if let Some(schedule) = schedule {
            backlog.trim(at, schedule);
        }
        if backlog.is_empty() {
            self.backlogs.remove(&id.workflow);
        }
        schedule.is_some()
    }
}
