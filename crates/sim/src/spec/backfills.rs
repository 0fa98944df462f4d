//! The rules of backfills, as scans over all slots.

use jiff::Timestamp;
use kelos_core::BackfillRequest;
use kelos_model::backfill::BackfillMode;
use kelos_model::time::CronSchedule;
use kelos_model::workflow::VersionChoice;
use kelos_model::{BackfillId, SlotRef, SlotState, WorkflowId};

use super::{Spec, SpecSlot};

/// A backfill in the specification.
pub(super) struct SpecBackfill {
    workflow: WorkflowId,
    pub(super) priority: i32,
    pub(super) paused: bool,
    pub(super) resumed: Option<Timestamp>,
    cancelled: bool,
}

impl Spec {
    /// Whether a slot's backfill is paused; only for slots that have no run.
    pub(super) fn is_left_alone(&self, slot: &SpecSlot) -> bool {
        slot.backfill.as_ref().and_then(|id| self.backfills.get(id)).is_some_and(|backfill| backfill.paused)
    }

    /// When a slot's backfill was last resumed.
    pub(super) fn resumed_with(&self, slot: &SpecSlot) -> Option<Timestamp> {
        let row = slot.backfill.as_ref().and_then(|id| self.backfills.get(id))?;
        row.resumed.filter(|_| !row.cancelled)
    }

    pub(super) fn backfill(&mut self, request: &BackfillRequest, now: Timestamp) {
        let schedules = self.schedules();
        let Some(schedule) = schedules.get(&request.workflow) else { return };
        if self.backfills.contains_key(&request.id) {
            return;
        }
        let BackfillRequest { id, workflow, priority, mode, .. } = request.clone();
        if let Some(version) = &request.made_by {
            return self.backfill_made_by(request, version, schedule, now);
        }
        let times = schedule.times(request.range.start, request.range.end.min(now));
        for at in times.filter(|at| super::catch_up::due(schedule, *at) < now) {
            let slot = SlotRef::at(workflow.clone(), at);
            let is_in_bounds = self.is_in_bounds(&slot);
            match self.slots.get_mut(&slot) {
                None => {
                    self.slots
                        .insert(slot, SpecSlot { asked: Some(now), ..SpecSlot::waiting(priority, Some(id.clone())) });
                }
                Some(state) if !state.state.is_final() && (priority > state.priority || !is_in_bounds) => {
                    state.priority = priority;
                    state.backfill = Some(id.clone());
                    state.requested = true;
                    state.asked = Some(now);
                }
                Some(state) => match (mode, state.state) {
                    (_, live) if !live.is_final() => {}
                    (BackfillMode::Missing, _) | (BackfillMode::Unsuccessful, SlotState::Succeeded) => {}
                    _ => state.reopen(priority, Some(id.clone()), now),
                },
            }
        }
        self.backfills.insert(id, SpecBackfill { workflow, priority, paused: false, resumed: None, cancelled: false });
    }

    /// Reopens the slots of a range that are due, and have succeeded with a last run by a version; unknown versions are refused.
    fn backfill_made_by(
        &mut self,
        request: &BackfillRequest,
        version: &VersionChoice,
        schedule: &CronSchedule,
        now: Timestamp,
    ) {
        let BackfillRequest { id, workflow, priority, range, .. } = request.clone();
        let VersionChoice::Project(version) = version else { panic!("the workload has no numbers of definitions") };
        if !self.versions.contains(&(workflow.clone(), version.clone())) {
            return;
        }
        let is_made = |slot: &SlotRef, state: &SpecSlot| {
            let is_there = slot.workflow == workflow && schedule.has(&slot.key) && range.holds(&slot.key);
            // A slot that ran as an hour may have the name of a day that is not over.
            let is_due = slot.key.time().is_some_and(|at| super::catch_up::due(schedule, at) < now);
            is_there && is_due && state.state == SlotState::Succeeded && state.maker.as_ref() == Some(version)
        };
        for (_, state) in self.slots.iter_mut().filter(|(slot, state)| is_made(slot, state)) {
            state.reopen(priority, Some(id.clone()), now);
        }
        self.backfills.insert(id, SpecBackfill { workflow, priority, paused: false, resumed: None, cancelled: false });
    }

    /// Its slots in some of the states.
    fn slots_of(&mut self, id: &BackfillId, wanted: impl Fn(SlotState) -> bool) -> Vec<(&SlotRef, &mut SpecSlot)> {
        let mine = self.slots.iter_mut().filter(|(_, slot)| slot.backfill.as_ref() == Some(id) && wanted(slot.state));
        mine.collect()
    }

    /// Changes one that was not cancelled, and, if required, only while a slot of it is live. Its live slots get its
    /// priority.
    pub(super) fn change_backfill(&mut self, id: &BackfillId, must_live: bool, change: impl Fn(&mut SpecBackfill)) {
        let is_over = self.slots_of(id, |state| !state.is_final()).is_empty();
        let Some(row) = self.backfills.get_mut(id).filter(|row| !(row.cancelled || must_live && is_over)) else {
            return;
        };
        change(row);
        let priority = row.priority;
        self.slots_of(id, |state| !state.is_final()).into_iter().for_each(|(_, slot)| slot.priority = priority);
    }

    pub(super) fn rerun_backfill(&mut self, id: &BackfillId, now: Timestamp) {
        let schedules = self.schedules();
        let Some(row) = self.backfills.get(id).filter(|row| !row.cancelled) else { return };
        let Some(schedule) = schedules.get(&row.workflow) else { return };
        let priority = row.priority;
        for (slot, state) in self.slots_of(id, |state| matches!(state, SlotState::Failed | SlotState::Expired)) {
            if schedule.has(&slot.key) {
                state.reopen(priority, Some(id.clone()), now);
            }
        }
    }

    pub(super) fn cancel_backfill(&mut self, id: &BackfillId) {
        let Some(row) = self.backfills.get_mut(id).filter(|row| !row.cancelled) else { return };
        (row.cancelled, row.paused) = (true, false);
        for (_, slot) in self.slots_of(id, |state| !state.is_final() && state != SlotState::Running) {
            (slot.state, slot.retries, slot.again) = (SlotState::Killed, 0, 0);
        }
    }
}
