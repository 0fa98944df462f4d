//! The only place where the state of slots changes: an event is applied and logged, and all indices are updated.

use jiff::Timestamp;
use kelos_model::event::{Event, Origin, SlotEvent};
use kelos_model::flow::{FLOW, is_carried_out_by_the_scheduler};
use kelos_model::{Invariant, SlotRef, SlotState, slot};

use crate::constraints::held_position;
use crate::flows::StepEnd;
use crate::permits::Position;
use crate::programs::{HeldPosition, Programs};
use crate::slots::Change;
use crate::{Config, Core, PlantedIn};

impl Core {
    /// Records an event of a slot. The caller has checked that it is possible.
    pub(crate) fn record(&mut self, id: &SlotRef, what: SlotEvent) {
        if !self.record_if_possible(id, what) {
            self.breaches.report_slot(Invariant::EventFits, id);
        }
    }

    /// Records an event of a slot if it is possible, and returns whether it was: a request may come too late. Otherwise
    /// nothing changes.
    pub(crate) fn record_if_possible(&mut self, id: &SlotRef, what: SlotEvent) -> bool {
        if self.slots.is_planned(id) && self.slots.state(id).is_some_and(|state| state.after(&what).is_some()) {
            // An event of a time in the backlog makes a slot of it.
            self.make_slot(id);
        }
        self.note_late_before(id, &what);
        self.record_alone(id, what)
    }

    /// Makes a time in the backlog a slot of its own.
    pub(crate) fn make_slot(&mut self, id: &SlotRef) {
        let events = self.slots.events_of_planned(id);
        self.workflows.touch(&id.workflow);
        for what in events {
            let done = self.record_alone(id, what);
            self.breaches.check_slot(done, Invariant::EventFits, id);
        }
    }

    fn record_alone(&mut self, id: &SlotRef, what: SlotEvent) -> bool {
        self.breaches.check_slot(!is_planted(&self.config, id, &what, self.now), Invariant::Planted, id);
        let moment = (self.now, self.turn.next_seq());
        let Some(Change { before, after }) = self.slots.change(id, &what, moment.0, moment.1) else { return false };
        if id.key.step().is_some() {
            return self.record_step(id, before.as_ref(), &after, what);
        }
        if Programs::are_changed_by(before.as_ref(), &after) {
            self.keep_runs_before(id);
        }
        let Some(workflow) = self.workflows.known(&id.workflow) else { return false };
        let definition = workflow.definition();
        let (in_line, is_batched) = (workflow.is_in_line(&after), definition.batch.is_some());
        let succeeded = self.slots.enter(id, &after, &what, definition, moment);
        let has_given = matches!(&what, SlotEvent::Gave { outputs, .. } if !outputs.is_empty());
        self.listeners.note_end(id, definition, before.as_ref(), &after, || self.slots.changed_run(after.last_run_seq));
        let previous = before.as_ref().map_or(0, |slot| slot.last_event);
        let prioritised = matches!(what, SlotEvent::Prioritised { .. }).then(|| what.clone());
        self.turn.log(self.now, previous, Event::Slot { slot: id.clone(), what });
        if has_given {
            self.workflows.note_gave(&id.workflow, self.now);
        }
        if let Some(run) = succeeded {
            self.workflows.note_last_run(&id.workflow, run, self.programs.members(self.programs.of(&id.workflow)));
        }
        let freed = self.programs.follow(id, before.as_ref(), &after);
        freed.into_iter().for_each(|slot| self.wake(slot));
        self.workflows.follow_collector(id, &after);
        self.permits.follow(id, before.as_ref(), &after, in_line);
        if is_batched {
            self.permits.wake_lots(&id.workflow);
        }
        self.reindex(id, before.as_ref(), &after);
        self.watch_deadline(id);
        if let Some(left) = self.flows.follow_run(id, &after) {
            self.agree_without(&id.workflow, left.graph().flow());
        }
        if let Some(what) = prioritised.filter(|_| after.run_of_flow().is_some()) {
            self.prioritise_steps(id, &what);
        }
        true
    }

    /// Gives the steps of a run of a flow that have not ended the priority that it was given.
    fn prioritise_steps(&mut self, run: &SlotRef, what: &SlotEvent) {
        let open = self.slots.steps_of(run).filter(|(_, live)| !live.slot.state.is_final());
        for step in open.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.record(&step, what.clone());
        }
    }

    /// Logs an event of a step of a flow, and updates what depends on it: of all that is indexed of slots, a step is only in the queues,
    /// among the timers and in its run.
    fn record_step(&mut self, id: &SlotRef, before: Option<&slot::Slot>, after: &slot::Slot, what: SlotEvent) -> bool {
        // A person may mark a step whose run is over: nothing of it runs.
        let followed = self.definition_of(id);
        let definition = followed.or_else(|| Some(self.workflows.known(&id.workflow)?.definition().clone()));
        let Some(definition) = definition else { return false };
        let moment = (self.now, self.turn.next_seq());
        self.slots.enter(id, after, &what, &definition, moment);
        let is_marked = matches!(what, SlotEvent::MarkedSucceeded { .. });
        self.turn.log(self.now, before.map_or(0, |slot| slot.last_event), Event::Slot { slot: id.clone(), what });
        let is_carried_out_here = is_carried_out_by_the_scheduler(&definition.job.executor);
        if !is_carried_out_here {
            if after.state == SlotState::Queued {
                self.agree_on_step(id);
            }
            self.permits.follow(id, before, after, after.state == SlotState::Queued);
        }
        if before.is_some_and(|slot| slot.run_alive) != after.run_alive {
            self.wakes.watch_run(id, after.run_alive && !is_carried_out_here, self.now);
        }
        if before.is_none_or(|before| before.state != after.state) {
            match after.state {
                SlotState::Waiting => self.wakes.dirty.insert(id.clone()),
                SlotState::Backoff => self.wakes.look_at_moment(id, after.due.unwrap_or(self.now)),
                _ => {
                    self.wakes.dirty.remove(id);
                    self.wakes.forget_moment(id);
                }
            }
        }
        // A run that a person ends is alive, and has said before what it gives.
        let run = self.slots.changed_run(after.last_run_seq).or_else(|| self.slots.run(id));
        let is_of_past = run.is_none() && after.last_run > 0;
        self.flows.follow_step(id, before, after, || StepEnd::of(after.state, run));
        if is_marked && is_of_past {
            // The outputs of its latest run are in the store.
            self.flows.forget_progress(&SlotRef::new(id.workflow.clone(), id.key.of_run()));
        }
        true
    }

    /// Keeps the runs of a slot's program as they are before its first change at this moment.
    fn keep_runs_before(&mut self, id: &SlotRef) {
        if !self.programs.has_kept(&id.workflow, self.now, self.ticked) {
            let runs = self.evaluator().runs_at(self.programs.of(&id.workflow), None);
            self.programs.keep_before(&id.workflow, self.now, self.ticked, runs);
        }
    }

    fn reindex(&mut self, id: &SlotRef, before: Option<&slot::Slot>, after: &slot::Slot) {
        if before.is_some_and(|slot| slot.run_alive) != after.run_alive {
            // The executor knows only the run of the first slot of a batch.
            // The runs of flows have none.
            let is_elsewhere = self.slots.run(id).is_none_or(|run| run.executor != FLOW);
            self.wakes.watch_run(id, after.run_alive && is_elsewhere && !self.is_follower(id), self.now);
        }
        if before.is_some_and(|before| before.priority != after.priority) {
            self.programs.move_in_line(HeldPosition::of(after, id));
        }
        if before.is_some_and(|before| before.requested != after.requested) {
            // It may have been dormant until the request.
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
            self.planner.dequeued(&id.workflow, &Position::of(before, &id.key));
        }
        self.enter(id, after);
    }

    /// Updates everything that depends on the state of a slot: the slots that wait for it, and what can wake it.
    fn enter(&mut self, id: &SlotRef, after: &slot::Slot) {
        self.tell(id, Some(after.state));
        if after.state == SlotState::Succeeded {
            self.jobs.note_success(id);
            self.planner.succeeded(id, &self.slots, &self.workflows);
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
                self.wakes.unsubscribe(id);
                self.stop_awaiting(id);
            }
        }
    }

    /// Marks a slot for evaluation with the next tick.
    pub(crate) fn wake(&mut self, id: SlotRef) {
        if self.workflows.known(&id.workflow).is_none() {
            return;
        }
        self.watch_deadline(&id);
        match held_position(&self.slots, &id) {
            Some(position) => self.programs.wake(position),
            None => self.wakes.dirty.insert(id),
        }
    }

    /// Unsubscribes a slot from everything that can wake it.
    pub(crate) fn unsubscribe(&mut self, id: &SlotRef) {
        self.wakes.unsubscribe(id);
        self.programs.leave(id);
    }
}

/// Whether the simulation breaks an invariant with this event.
fn is_planted(config: &Config, id: &SlotRef, what: &SlotEvent, now: Timestamp) -> bool {
    let Some(planted) = &config.planted else { return false };
    let work = match what {
        SlotEvent::Planned { origin: Origin::Schedule | Origin::Feed | Origin::Fact, .. } => PlantedIn::Planning,
        SlotEvent::Collected { .. } => PlantedIn::Collecting,
        SlotEvent::TriggerMet { .. } | SlotEvent::Held { .. } | SlotEvent::Looked { .. } => PlantedIn::Looking,
        SlotEvent::Dispatched { .. } => PlantedIn::Dispatching,
        SlotEvent::Succeeded { .. } | SlotEvent::BackedOff { .. } | SlotEvent::Failed { .. } => PlantedIn::Reporting,
        SlotEvent::Killed { .. } | SlotEvent::Reopened { .. } => PlantedIn::Asking,
        _ => return false,
    };
    planted.workflow == id.workflow && planted.within.contains(now) && planted.when == work
}
