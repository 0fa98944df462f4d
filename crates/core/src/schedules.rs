//! Requests about event schedules, and runs that are fired by hand. Whether a request is allowed, and its effect on the
//! schedule, is decided by [`Workflows`](crate::workflows::Workflows).

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::event::{Abort, Origin, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::workflow::Provenance;
use kelos_model::{Actor, RunName, SlotEvent, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};

use crate::mandate::{Mandate, split};
use crate::{Core, FireRequest, Refusal, StartAnswer};

impl Core {
    pub(crate) fn create_schedules(&mut self, new: Vec<Arc<Workflow>>, mandate: &Mandate) -> Result<(), Refusal> {
        new.iter().try_for_each(|one| self.workflows.check_new(one))?;
        for one in new {
            self.put_schedule(one, mandate);
        }
        Ok(())
    }

    fn put_schedule(&mut self, schedule: Arc<Workflow>, mandate: &Mandate) {
        let definition = self.workflows.as_requested(schedule);
        self.define_alone(&definition.id, &definition, mandate);
    }

    pub(crate) fn change_schedule(&mut self, changed: Arc<Workflow>, mandate: &Mandate) -> Result<(), Refusal> {
        self.workflows.check_changed(&changed)?;
        let id = changed.id.clone();
        // Pending slots are aborted even if the definition is the same, as if the schedule were created anew.
        self.abort_pending(&id, Abort::Changed, Some(mandate));
        self.put_schedule(changed, mandate);
        self.workflows.count_from(&id, self.now);
        self.arm_firing(&id);
        Ok(())
    }

    pub(crate) fn delete_schedules(&mut self, gone: &[WorkflowId], mandate: &Mandate) -> Result<(), Refusal> {
        gone.iter().try_for_each(|id| self.workflows.is_enabled(id).map(drop))?;
        for id in gone {
            self.remove(id, Some(mandate));
        }
        if gone.iter().any(|id| self.workflows.are_given_as(id)) {
            self.enact(Provenance::Api, &BTreeMap::new());
        }
        Ok(())
    }

    /// Enables or disables an event schedule. Disabling aborts its pending slots.
    pub(crate) fn switch(&mut self, id: &WorkflowId, enabled: bool, mandate: &Mandate) -> Result<(), Refusal> {
        self.workflows.set_enabled(id, enabled, self.now)?;
        let Mandate { by, reason } = mandate.clone();
        let what = if enabled { WorkflowEvent::Enabled { by, reason } } else { WorkflowEvent::Disabled { by, reason } };
        self.turn.log_workflow(self.now, id, what);
        self.arm_firing(id);
        if !enabled {
            self.abort_pending(id, Abort::Disabled, Some(mandate));
        }
        Ok(())
    }

    pub(crate) fn enable_changed(
        &mut self,
        schedules: &[WorkflowId],
        range: Range,
        mandate: &Mandate,
    ) -> Result<Vec<WorkflowId>, Refusal> {
        let meant = self.workflows.disabled_within(schedules, range);
        for id in &meant {
            self.switch(id, true, mandate)?;
        }
        Ok(meant)
    }

    /// Aborts the slots of an event schedule that have not started yet. Live runs continue, and so do retries unless
    /// the schedule is deleted.
    pub(crate) fn abort_pending(&mut self, id: &WorkflowId, cause: Abort, mandate: Option<&Mandate>) {
        let gone = cause == Abort::Deleted;
        let pending = self.slots.of(id).filter(|(_, live)| match live.slot.state {
            SlotState::Waiting | SlotState::Held | SlotState::Queued => gone || live.slot.last_run == 0,
            SlotState::Backoff => gone,
            _ => false,
        });
        for slot in pending.map(|(slot, _)| slot).collect::<Vec<_>>() {
            let (by, reason) = split(mandate);
            self.record(&slot, SlotEvent::Aborted { cause, by, reason });
        }
    }

    pub(crate) fn fire_now(&mut self, request: FireRequest, by: Actor) -> Result<StartAnswer, Refusal> {
        let FireRequest { workflow, arguments, key, priority, unconstrained, reason } = request;
        let definition = self.workflows.present(&workflow)?.definition();
        if !definition.keys.can_be_started() {
            return Err(Refusal::NotStartable(workflow));
        }
        self.workflows.check_program(definition)?;
        let arguments = self.accepted_by_start(&workflow, &arguments)?;
        let fired = self.open_fired(&workflow, key, priority);
        if !fired.existed {
            let started = SlotEvent::FiredBy { by, reason, arguments, unconstrained, repeats: None };
            self.record(&fired.slot, started);
            self.wake(fired.slot.clone());
        }
        Ok(fired)
    }

    /// Opens the slot of a start: that of a name, unless it was started before, or one of this moment.
    pub(crate) fn open_fired(&mut self, workflow: &WorkflowId, key: Option<RunName>, priority: i32) -> StartAnswer {
        let planned = SlotEvent::planned(Origin::Request, priority);
        let Some(name) = key else {
            return StartAnswer { slot: self.open_moment(workflow, planned), existed: false };
        };
        let slot = SlotRef::new(workflow.clone(), SlotKey::Named(name));
        let existed = match self.slots.get(&slot).map(|live| (live.slot.state, live.slot.collected.is_some())) {
            // Signals came before.
            Some((SlotState::Waiting, false)) => false,
            // It was started before, or a person ended it before anybody started it.
            Some(_) => true,
            None => {
                self.record(&slot, planned);
                false
            }
        };
        StartAnswer { slot, existed }
    }
}
