//! The evaluation of a slot that something woke: it starts, keeps waiting, or expires.

use kelos_model::trigger::Evaluation;
use kelos_model::{Answer, SlotEvent, SlotRef, SlotState};

use crate::Core;
use crate::evaluator::{Evaluator, TriggerResult};

impl Core {
    /// The view of all organs that triggers and constraints depend on.
    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        Evaluator {
            now: self.now,
            ticked: self.ticked,
            workflows: &self.workflows,
            slots: &self.slots,
            wakes: &self.wakes,
            programs: &self.programs,
        }
    }

    /// Evaluates a slot that something woke.
    pub(crate) fn look(&mut self, id: &SlotRef) {
        let Some(workflow) = self.workflows.known(&id.workflow) else { return };
        // A candidate may be woken, and is not open yet.
        let Some(live) = self.slots.get(id) else { return };
        if workflow.dormant(&id.key, Some(&live.slot)).is_some() {
            self.unsubscribe(id);
            return;
        }
        let state = live.slot.state;
        if let Some(at) = workflow
            .comes_at(&id.key, &live.slot, self.now)
            .filter(|_| matches!(state, SlotState::Waiting | SlotState::Queued))
        {
            return self.wakes.look_at_moment(id, at);
        }
        match state {
            SlotState::Queued => self.permits.wake(&id.workflow),
            SlotState::Backoff => match live.slot.due.filter(|due| *due > self.now) {
                Some(due) => self.wakes.look_at_moment(id, due),
                None => self.record(id, SlotEvent::BackoffEnded),
            },
            SlotState::Waiting if id.key.step().is_some() => self.look_at_step(id),
            SlotState::Waiting if id.key.job().is_some() => self.look_at_job(id),
            SlotState::Waiting => match self.evaluator().trigger(id) {
                Some(TriggerResult::Now(evaluation)) => self.decide(id, evaluation),
                Some(TriggerResult::TooLate(evaluation)) => self.keep_waiting(id, evaluation),
                None => self.breaches.no_slot(id),
            },
            SlotState::Held => self.look_at_constraints(id),
            SlotState::Dispatched if live.is_deferred() => self.start_again(id),
            _ => {}
        }
    }

    /// Starts or ends a slot, or keeps it waiting, as its trigger answers.
    pub(crate) fn decide(&mut self, id: &SlotRef, Evaluation { explanation, wakers }: Evaluation) {
        match explanation.answer {
            Answer::Met if self.evaluator().is_constrained(id) => {
                let opened = self.evaluator().opened_at(id);
                self.record(id, SlotEvent::Held { explanation, opened });
            }
            Answer::Met => {
                self.record(id, SlotEvent::TriggerMet { explanation });
            }
            Answer::Never => {
                self.record(id, SlotEvent::Skipped { explanation });
            }
            Answer::NotYet => {
                self.pull_awaited(id, &wakers);
                self.keep_waiting(id, Evaluation { explanation, wakers });
            }
        }
    }

    /// Keeps a slot waiting for whatever can change the answer, until its timeout.
    pub(crate) fn keep_waiting(&mut self, id: &SlotRef, Evaluation { explanation, wakers }: Evaluation) {
        let expiry = self.evaluator().expiry(id);
        // A probe in flight is answered first: a slot that is ready never expires.
        let mut pending = explanation.is_pending();
        // A slot does not expire while a probe can't be answered: an outage is not its fault.
        if let Some((timeout_seconds, at)) = expiry.filter(|(_, at)| *at <= self.now && !explanation.is_uncertain()) {
            // A slot does not expire by an answer from before its timeout.
            pending = self.wakes.probes.refresh(&wakers, at, self.now);
            if !pending {
                self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
                return;
            }
        }
        let said = self.slots.get(id).map_or(0, |live| live.slot.said);
        if !pending && explanation.digest() != said && !self.evaluator().tells_by_facts(id) {
            self.record(id, SlotEvent::Looked { explanation });
        }
        let slots = &self.slots;
        let in_memory = |slot: &SlotRef| slots.get(slot).map(|live| (live.slot.state, live.slot.since));
        let unread = self.wakes.subscribe(id, &wakers, expiry.map(|(_, at)| at), self.now, in_memory);
        unread.into_iter().for_each(|slot| self.slots.want(slot));
    }
}
