//! The one door through which state changes: an event is applied, logged, and all indices follow.

use jiff::Timestamp;
use kelos_model::event::{BackfillEvent, Event, Origin, SlotEvent, WorkflowEvent};
use kelos_model::{BackfillId, EventRecord, Invariant, SlotRef, SlotState, WorkflowId, slot};

use crate::asks::Mandate;
use crate::permits::Position;
use crate::programs::HeldPosition;
use crate::slots::Change;
use crate::{Config, Core, PlantedIn};

impl Core {
    /// Records what happened to nothing that has a state. Gives its log position.
    pub(crate) fn record_event(&mut self, event: Event) -> u64 {
        self.log(0, event);
        self.seq
    }

    fn log(&mut self, previous: u64, event: Event) {
        self.seq += 1;
        let record = EventRecord { seq: self.seq, at: self.now, previous, event };
        self.push_event(record);
    }

    /// Records what happened to a slot, which must be possible as it stands: whoever decided it has looked.
    pub(crate) fn record(&mut self, id: &SlotRef, what: SlotEvent) {
        if !self.record_if_possible(id, what) {
            self.breaches.report_slot(Invariant::EventFits, id);
        }
    }

    /// Records what happens to a slot if it can happen as it stands, and says whether it could: somebody asks for what may
    /// come too late. Where it could not, nothing changes.
    pub(crate) fn record_if_possible(&mut self, id: &SlotRef, what: SlotEvent) -> bool {
        if self.slots.is_planned(id) && self.slots.state(id).is_some_and(|state| state.after(&what).is_some()) {
            // What happens to a time of a backlog makes a slot of it.
            self.make_slot(id);
        }
        self.record_alone(id, what)
    }

    /// Makes a slot of its own of a time of a backlog.
    pub(crate) fn make_slot(&mut self, id: &SlotRef) {
        let events = self.slots.events_of_planned(id);
        self.turn.workflows.insert(id.workflow.clone());
        for what in events {
            let done = self.record_alone(id, what);
            self.breaches.check_slot(done, Invariant::EventFits, id);
        }
    }

    fn record_alone(&mut self, id: &SlotRef, what: SlotEvent) -> bool {
        self.breaches.check_slot(!is_planted(&self.config, id, &what, self.now), Invariant::Planted, id);
        let moment = (self.now, self.seq + 1);
        let Some(Change { before, after }) = self.slots.change(id, &what, moment.0, moment.1) else { return false };
        self.keep_runs(id, before.as_ref(), &after);
        let Some(task) = self.tasks.get(&id.workflow) else {
            self.no_workflow(&id.workflow);
            return false;
        };
        let succeeded = self.slots.enter(id, &after, &what, &task.row.definition, moment);
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        self.log(previous, Event::Slot { slot: id.clone(), what });
        if let Some(run) = succeeded {
            self.note_last_run(&id.workflow, run);
        }
        let freed = self.programs.follow(id, before.as_ref(), &after);
        freed.into_iter().for_each(|slot| self.wake(slot));
        self.note_collecting(id, &after);
        self.note_end(id, before.as_ref(), &after);
        self.reindex(id, before.as_ref(), &after);
        true
    }

    fn reindex(&mut self, id: &SlotRef, before: Option<&slot::Slot>, after: &slot::Slot) {
        let Some(task) = self.tasks.get(&id.workflow) else { return self.no_workflow(&id.workflow) };
        self.permits.follow(id, before, after, task.is_in_line(after));
        if before.is_some_and(|slot| slot.run_alive) != after.run_alive {
            self.watch_run(id, after.run_alive);
        }
        if before.is_some_and(|before| before.priority != after.priority) {
            self.programs.move_in_line(HeldPosition::of(after, id));
        }
        if before.is_some_and(|before| before.requested != after.requested) {
            // It may have been left alone until somebody asked for it.
            self.wake(id.clone());
            self.permits.wake(&id.workflow);
        }
        if let Some(before) = before.filter(|before| before.state == after.state) {
            if before.backfill != after.backfill && after.state.is_idle() {
                // The backfill that it left may be paused.
                self.wake(id.clone());
            }
            return;
        }
        if let Some(before) = before.filter(|before| before.state == SlotState::Queued) {
            let fewest = self.config.frontier.div_ceil(2);
            self.frontier.dequeued(&id.workflow, &Position::of(before, &id.key), fewest);
        }
        self.enter(id, after);
    }

    /// What entering a state entails: whoever waits for this slot hears of it, and what can wake it changes.
    fn enter(&mut self, id: &SlotRef, after: &slot::Slot) {
        self.tell(id, Some(after.state));
        if after.state == SlotState::Succeeded {
            self.jobs.note_success(id);
            self.tell_backlogs(id);
        }
        if after.state != SlotState::Held {
            self.programs.leave(id);
        }
        match after.state {
            SlotState::Waiting => self.wake(id.clone()),
            SlotState::Held => {
                self.wakes.dirty.remove(id);
                self.unsubscribe(id);
                self.stop_awaiting(id);
                self.wake(id.clone());
            }
            SlotState::Backoff => {
                self.wakes.look_at_moment(id, after.due.unwrap_or(self.now));
            }
            _ => {
                self.wakes.dirty.remove(id);
                self.unsubscribe(id);
                self.stop_awaiting(id);
            }
        }
    }

    /// Has a slot looked at.
    pub(crate) fn wake(&mut self, id: SlotRef) {
        if !self.tasks.contains_key(&id.workflow) {
            return;
        }
        match self.live(&id).filter(|live| live.slot.state == SlotState::Held) {
            Some(live) => {
                let position = HeldPosition::of(&live.slot, &id);
                self.programs.wake(position);
            }
            None => self.wakes.dirty.insert(id),
        }
    }

    /// Stops listening to whatever can wake a slot.
    pub(crate) fn unsubscribe(&mut self, id: &SlotRef) {
        self.wakes.unsubscribe(id);
        self.programs.leave(id);
    }

    /// Records what happened to a workflow; the caller has changed its row accordingly.
    pub(crate) fn record_workflow(&mut self, id: &WorkflowId, what: WorkflowEvent) {
        if !self.tasks.contains_key(id) {
            self.no_workflow(id);
        }
        self.turn.workflows.insert(id.clone());
        self.log(0, Event::Workflow { workflow: id.clone(), what });
    }

    pub(crate) fn record_backfill(&mut self, id: &BackfillId, what: BackfillEvent) {
        self.log(0, Event::Backfill { backfill: id.clone(), what });
    }

    pub(crate) fn record_register(
        &mut self,
        bucket: String,
        key: String,
        value: Option<serde_json::Value>,
        mandate: Mandate,
    ) {
        let Mandate { by, reason } = mandate;
        self.turn.registers.push((bucket.clone(), key.clone(), value.clone()));
        self.log(0, Event::Register { bucket, key, value, by: Some(by), reason });
    }
}

/// Whether the simulation breaks an invariant by this event.
fn is_planted(config: &Config, id: &SlotRef, what: &SlotEvent, now: Timestamp) -> bool {
    let Some(planted) = &config.planted else { return false };
    let work = match what {
        SlotEvent::Planned { origin: Origin::Schedule, .. } => PlantedIn::Planning,
        SlotEvent::TriggerMet { .. } | SlotEvent::Held { .. } | SlotEvent::Looked { .. } => PlantedIn::Looking,
        SlotEvent::Dispatched { .. } => PlantedIn::Dispatching,
        SlotEvent::Succeeded { .. } | SlotEvent::BackedOff { .. } | SlotEvent::Failed { .. } => PlantedIn::Reporting,
        SlotEvent::Killed { .. } | SlotEvent::Reopened { .. } => PlantedIn::Asking,
        _ => return false,
    };
    planted.workflow == id.workflow && planted.within.contains(now) && planted.when == work
}
