//! Looking at a waiting slot: may it go, must it wait, has it waited too long?

use jiff::Timestamp;
use kelos_model::trigger::{Evaluation, Waker};
use kelos_model::{Answer, Finding, Reason, ReasonKind, SlotEvent, SlotRef, SlotState};

use crate::Core;
use crate::evaluator::Evaluator;

impl Core {
    /// What triggers and constraints say as things stand.
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

    /// Looks at a slot that something woke.
    pub(crate) fn look(&mut self, id: &SlotRef) {
        let Some(workflow) = self.workflows.known(&id.workflow) else { return };
        // A job that may become possible is woken like others, and is not open yet.
        let Some(live) = self.slots.get(id) else { return };
        if workflow.dormant(&id.key, Some(&live.slot)).is_some() {
            self.unsubscribe(id);
            return;
        }
        match live.slot.state {
            SlotState::Backoff => match live.slot.due.filter(|due| *due > self.now) {
                Some(due) => self.wakes.look_at_moment(id, due),
                None => self.record(id, SlotEvent::BackoffEnded),
            },
            SlotState::Waiting if id.key.job().is_some() => self.look_at_job(id),
            SlotState::Waiting => self.look_at_trigger(id),
            SlotState::Held => self.look_at_constraints(id),
            SlotState::Dispatched if live.is_deferred() => self.start_again(id),
            _ => {}
        }
    }

    fn look_at_trigger(&mut self, id: &SlotRef) {
        if let Some(explanation) = self.evaluator().needs_no_trigger(id) {
            return self.decide(id, explanation, Vec::new());
        }
        let Some(Evaluation { explanation, wakers }) = self.evaluator().evaluate(id, None) else {
            return self.breaches.no_slot(id);
        };
        if explanation.answer == Answer::Met
            && let Some(Evaluation { explanation, wakers }) = self.evaluator().evaluate_in_time(id)
            && explanation.answer != Answer::Met
        {
            return self.keep_waiting(id, explanation, wakers);
        }
        self.decide(id, explanation, wakers);
    }

    /// Looks at the trigger of a job whose parents have succeeded.
    pub(crate) fn look_beyond_parents(&mut self, id: &SlotRef, parents: Reason) {
        let Some(Evaluation { explanation, wakers }) = self.evaluator().evaluate(id, None) else {
            return self.breaches.no_slot(id);
        };
        if explanation.kind == ReasonKind::Always {
            return self.decide(id, parents, wakers);
        }
        let both = Reason {
            kind: ReasonKind::And,
            answer: explanation.answer,
            finding: Finding::ParentsAndTrigger,
            nested: vec![parents, explanation],
        };
        self.decide(id, both, wakers);
    }

    fn decide(&mut self, id: &SlotRef, explanation: Reason, wakers: Vec<Waker>) {
        match explanation.answer {
            Answer::Met if self.evaluator().is_constrained(id) => {
                self.record(id, SlotEvent::Held { explanation });
            }
            Answer::Met => {
                self.record(id, SlotEvent::TriggerMet { explanation });
            }
            Answer::Never => {
                self.record(id, SlotEvent::Skipped { explanation });
            }
            Answer::NotYet => {
                self.pull_awaited(id, &wakers);
                self.keep_waiting(id, explanation, wakers);
            }
        }
    }

    pub(crate) fn keep_waiting(&mut self, id: &SlotRef, explanation: Reason, wakers: Vec<Waker>) {
        let expiry = self.evaluator().expiry(id);
        // A question that is on its way is answered first: a slot that is ready never expires.
        let mut pending = explanation.is_pending();
        // Nor does one expire while the outside can't be asked: an outage is not its fault.
        if let Some((timeout_seconds, at)) = expiry.filter(|(_, at)| *at <= self.now && !explanation.is_uncertain()) {
            // Nor does one go by an answer from before its timeout.
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
        self.subscribe(id, &wakers, expiry.map(|(_, at)| at));
    }

    /// Ends a slot whose timeout has passed before something came, at a moment, that is for another. Says whether it did.
    pub(crate) fn expire_if_over(&mut self, id: &SlotRef, moment: Timestamp) -> bool {
        let Some((timeout_seconds, _)) = self.evaluator().expiry(id).filter(|(_, at)| *at <= moment) else {
            return false;
        };
        let Some(Evaluation { explanation, .. }) = self.evaluator().evaluate(id, None) else {
            self.breaches.no_slot(id);
            return false;
        };
        self.record(id, SlotEvent::Expired { timeout_seconds, explanation });
        true
    }

    /// Has a slot be woken by these and by nothing else, and when it has waited too long.
    fn subscribe(&mut self, id: &SlotRef, wakers: &[Waker], expiry: Option<Timestamp>) {
        let slots = &self.slots;
        let in_memory = |slot: &SlotRef| slots.get(slot).map(|live| (live.slot.state, live.slot.since));
        let unread = self.wakes.subscribe(id, wakers, expiry, self.now, in_memory);
        unread.into_iter().for_each(|slot| self.slots.want(slot));
    }
}
