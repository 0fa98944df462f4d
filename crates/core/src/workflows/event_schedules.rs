//! Event schedules: the requests that they accept, and the collecting slot of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::workflow::{Keys, Provenance};
use kelos_model::{PoolId, Slot, SlotRef, Workflow, WorkflowId};

use super::deployment::bound;
use super::{WorkflowState, Workflows};
use crate::Refusal;
use crate::moments::TICK;

impl WorkflowState {
    /// Starts an event schedule anew: earlier facts don't count. Returns whether it is an event schedule.
    pub(super) fn begin_anew(&mut self, is_new: bool, now: Timestamp) -> bool {
        let Some(enabled) = self.events().map(|events| events.enabled) else { return false };
        let fired = std::mem::take(&mut self.row.moments.fired);
        if is_new {
            self.row.enabled = enabled;
        } else {
            let names: BTreeSet<_> = self.row.definition.trigger.firings().iter().map(|firing| firing.name()).collect();
            self.row.moments.fired = fired.into_iter().filter(|(name, _)| names.contains(name)).collect();
        }
        self.count_from(now);
        true
    }

    fn count_from(&mut self, now: Timestamp) {
        self.row.moments.updated = Some(now);
        self.row.moments.fired_until = Some(now);
    }

    /// Whether an event schedule collects facts at a moment. Its own cron times are checked for the end by themselves.
    pub(crate) fn takes_facts(&self, now: Timestamp, is_own_time: bool) -> bool {
        let too_early = self.row.definition.start_time.is_some_and(|start| now < start);
        let end = self.events().and_then(|events| events.end_time);
        let too_late = end.is_some_and(|end| now >= end && !is_own_time);
        self.row.enabled && !too_early && !too_late
    }

    /// The collecting slot, if there is one.
    pub(crate) fn collector(&self) -> Option<SlotRef> {
        self.collecting.clone().map(|key| SlotRef::new(self.row.id.clone(), key))
    }
}

impl Workflows {
    /// Whether a present event schedule is enabled.
    pub(crate) fn is_enabled(&self, id: &WorkflowId) -> Result<bool, Refusal> {
        let one = self.get(id).filter(|one| one.is_present() && one.is_event_schedule());
        one.map(WorkflowState::is_enabled).ok_or_else(|| Refusal::NoEventSchedule(id.clone()))
    }

    /// Refuses an event schedule whose name is taken, or whose program does not exist.
    pub(crate) fn check_new(&self, new: &Arc<Workflow>) -> Result<(), Refusal> {
        let Keys::Events(_) = &new.keys else { return Err(Refusal::NoEventSchedule(new.id.clone())) };
        if self.get(&new.id).is_some_and(WorkflowState::is_present) {
            return Err(Refusal::ScheduleTaken(new.id.clone()));
        }
        self.check_program(new)?;
        self.check_arguments(new)
    }

    /// Refuses a changed definition of anything but an event schedule, or one whose program does not exist.
    pub(crate) fn check_changed(&self, changed: &Arc<Workflow>) -> Result<(), Refusal> {
        self.is_enabled(&changed.id)?;
        let Keys::Events(_) = &changed.keys else { return Err(Refusal::NoEventSchedule(changed.id.clone())) };
        self.check_program(changed)?;
        self.check_arguments(changed)
    }

    /// Refuses an event schedule whose program does not exist.
    pub(crate) fn check_program(&self, schedule: &Workflow) -> Result<(), Refusal> {
        // Any other workflow is its own program.
        let Some(program) = schedule.keys.events().map(|events| &events.program) else { return Ok(()) };
        let is_there = self.get(program).is_some_and(|one| one.is_present() && !one.is_event_schedule());
        let none = || Refusal::NoProgram { schedule: schedule.id.clone(), program: program.clone() };
        is_there.then_some(()).ok_or_else(none)
    }

    /// Refuses an event schedule that gives its program other arguments than that expects.
    fn check_arguments(&self, schedule: &Arc<Workflow>) -> Result<(), Refusal> {
        let mistakes = kelos_model::mistakes::parameter_mistakes(&self.as_requested(schedule.clone()));
        let workflow = schedule.program().clone();
        if mistakes.is_empty() { Ok(()) } else { Err(Refusal::ArgumentsMismatched { workflow, mistakes }) }
    }

    /// The definition of an event schedule that a request gave, with the job of its program.
    pub(crate) fn as_requested(&self, schedule: Arc<Workflow>) -> Arc<Workflow> {
        let schedule = schedule.given_by(Provenance::Api);
        let program = schedule.keys.events().and_then(|events| self.get(&events.program));
        let programs = program.map(|one| (one.row.id.clone(), one.row.definition.clone())).into_iter().collect();
        bound(schedule, &programs)
    }

    /// Those of some event schedules that are disabled and were last changed within a range.
    pub(crate) fn disabled_within(&self, schedules: &[WorkflowId], range: Range) -> Vec<WorkflowId> {
        let is_meant = |id: &&WorkflowId| {
            let one = self.get(id).filter(|one| one.is_present() && !one.is_enabled() && one.is_event_schedule());
            one.and_then(|one| one.row.moments.updated).is_some_and(|at| range.start <= at && at < range.end)
        };
        schedules.iter().filter(is_meant).cloned().collect()
    }

    /// Enables or disables an event schedule, and starts it anew: earlier facts don't count.
    pub(crate) fn set_enabled(&mut self, id: &WorkflowId, enabled: bool, now: Timestamp) -> Result<(), Refusal> {
        match (self.is_enabled(id)?, enabled) {
            (true, true) => return Err(Refusal::AlreadyEnabled(id.clone())),
            (false, false) => return Err(Refusal::AlreadyDisabled(id.clone())),
            _ => {}
        }
        if let Some(one) = self.change(id) {
            one.row.enabled = enabled;
            one.count_from(now);
        }
        Ok(())
    }

    /// Starts an event schedule anew, as if it were just created.
    pub(crate) fn count_from(&mut self, id: &WorkflowId, now: Timestamp) {
        if let Some(one) = self.change(id) {
            one.count_from(now);
        }
    }

    /// The moment that names the next slot of a workflow that facts or people open: this one, or the first free one after it.
    pub(crate) fn next_moment(&mut self, id: &WorkflowId, now: Timestamp) -> Timestamp {
        let Some(one) = self.change(id) else { return now };
        let row = &mut one.row;
        let are_moments = row.definition.keys.are_moments();
        // Where a schedule plans, its times are no moments.
        let planned = row.planned.until.filter(|_| are_moments);
        let free = [planned, row.moments.started_until].into_iter().flatten().fold(now, Timestamp::max);
        let at = row.definition.keys.moment_from(free);
        let until = at.checked_add(TICK).ok();
        match are_moments {
            true => row.planned.until = until,
            false => row.moments.started_until = until,
        }
        at
    }

    /// Notes when the buckets are full again that a run of a workflow took tokens of.
    pub(crate) fn note_spent(&mut self, id: &WorkflowId, spent: Vec<(PoolId, Timestamp)>, now: Timestamp) {
        if spent.is_empty() {
            return;
        }
        let Some(one) = self.change(id) else { return };
        one.row.moments.spent.retain(|_, full_at| *full_at > now);
        one.row.moments.spent.extend(spent);
    }

    /// Follows which slot of an event schedule collects.
    pub(crate) fn follow_collector(&mut self, id: &SlotRef, after: &Slot) {
        let Some(one) = self.all.get_mut(&id.workflow).filter(|one| one.is_event_schedule()) else {
            // Other workflows have no such slot.
            return;
        };
        if after.is_collecting() {
            // A slot that was fired by hand collects nothing, but looks collecting until that is recorded.
            one.collecting.get_or_insert_with(|| id.key.clone());
        } else if one.collecting.as_ref() == Some(&id.key) {
            one.collecting = None;
        }
    }
}
