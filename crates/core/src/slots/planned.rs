//! The backlogs of all workflows: which times are planned and have no slots yet.

use std::collections::BTreeMap;

use kelos_model::time::CronSchedule;
use kelos_model::{Backlog, SlotRef, Stretch, WorkflowId};

/// The backlog of each workflow that has one, and the schedules that say which times lie in them.
#[derive(Default)]
pub(super) struct PlannedTimes {
    backlogs: BTreeMap<WorkflowId, Backlog>,
    schedules: BTreeMap<WorkflowId, CronSchedule>,
}

static NONE: Backlog = Backlog::EMPTY;

impl PlannedTimes {
    /// What a slot is part of that is no slot of its own yet.
    pub(super) fn of(&self, id: &SlotRef) -> Option<&Stretch> {
        let at = id.key.time()?;
        let stretch = self.backlogs.get(&id.workflow)?.at(at)?;
        self.schedules.get(&id.workflow).filter(|schedule| schedule.contains(at)).map(|_| stretch)
    }

    pub(super) fn backlog(&self, id: &WorkflowId) -> &Backlog {
        self.backlogs.get(id).unwrap_or(&NONE)
    }

    pub(super) fn backlog_mut(&mut self, id: &WorkflowId) -> &mut Backlog {
        self.backlogs.entry(id.clone()).or_default()
    }

    /// The schedule that says which times lie in a workflow's backlog, or would.
    pub(super) fn schedule(&self, id: &WorkflowId) -> Option<&CronSchedule> {
        self.schedules.get(id)
    }

    /// The schedule that a backlog was planned by, in words, where those are not these.
    pub(super) fn earlier_schedule(&self, id: &WorkflowId, words: &str) -> Option<String> {
        let earlier = self.schedule(id).filter(|_| !self.backlog(id).is_empty())?;
        serde_json::to_string(earlier).ok().filter(|earlier| earlier != words)
    }

    /// Has a schedule say which times lie in a backlog, unless there is one by another schedule.
    pub(super) fn reschedule(&mut self, id: &WorkflowId, schedule: &CronSchedule) {
        if self.backlog(id).is_empty() {
            self.schedules.insert(id.clone(), schedule.clone());
        }
    }

    /// Takes over a backlog as the store has it.
    pub(super) fn restore(&mut self, id: &WorkflowId, backlog: Backlog, schedule: CronSchedule) {
        self.backlogs.insert(id.clone(), backlog);
        self.schedules.insert(id.clone(), schedule);
    }

    /// Notes that a time has a slot of its own. Says whether it is known which times lie in the backlog that it was of.
    pub(super) fn take(&mut self, id: &SlotRef) -> bool {
        // Only times lie in backlogs, and few of them.
        let Some(at) = id.key.time() else { return true };
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
