//! Facts: each is collected by the workflows that wait for it. It is recorded together with its consequences, so that
//! it counts exactly once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::{Actor, Event, Fact, FactKey, Occurrence, Slot, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::budget::share;
use crate::mandate::Mandate;
use crate::past::PastOf;
use crate::requests::{POSITIONS, RefusedSignal, SignalFlow, SourcePosition, Tell};
use crate::rota::both_ends;
use crate::workflows::{CronTimes, MOST_MISSED, Misfires, WorkflowState};
use crate::{Core, FactTally};

impl Core {
    /// Stores new facts, and delivers them to the workflows that wait for them, or to the run of a flow that they are for.
    pub(crate) fn told<E>(&mut self, by: &Actor, request: Tell, past: PastOf<'_, E>) -> Result<FactTally, E> {
        let Tell { facts, position } = request;
        let facts: Vec<(Option<FactKey>, Fact)> = facts.into_iter().map(|fact| (fact.name(), fact)).collect();
        self.turn.known.look_up(facts.iter().filter_map(|(name, _)| name.as_ref()), past)?;
        let mut tally = FactTally::default();
        for (name, fact) in facts {
            if name.as_ref().is_some_and(|name| self.turn.known.tell(name)) {
                tally.known += 1;
                continue;
            }
            tally.new += 1;
            let (what, key) = (fact.what.brief(), fact.key.clone());
            let seq = self.turn.log(self.now, 0, Event::Fact { fact, by: Some(by.clone()) });
            if let Some(name) = name {
                self.turn.note_fact(name, seq);
            }
            match what {
                Occurrence::Signal { name, payload, run: Some(run) } => {
                    let reason = key.as_ref().map(|key| format!("message {key}"));
                    let request = SignalFlow { run, signal: name.to_string(), payload, reason };
                    if let Err(refusal) = self.signal_flow(request, by.clone()) {
                        tally.refused.push(RefusedSignal { key, refusal });
                    }
                }
                what => self.deliver(&what, Some(seq)),
            }
        }
        if let Some(SourcePosition { source, position }) = position {
            let mandate = Mandate { by: by.clone(), reason: None };
            self.turn.set_register(self.now, (POSITIONS.to_owned(), source), Some(position), mandate);
        }
        Ok(tally)
    }

    /// Delivers a fact to all workflows that wait for it.
    pub(crate) fn deliver(&mut self, what: &Occurrence, fact: Option<u64>) {
        // No workflow waits for most facts.
        let Some(waiting) = self.listeners.of(&what.subject()).cloned() else { return };
        // Cron times that have passed and wait for a tick come before the new fact.
        if self.firings.begin(self.now) {
            self.fire_due();
        }
        for id in waiting {
            self.collect(&id, what, fact, self.now);
        }
    }

    /// Collects a fact that arrived at a moment, for the slots of a workflow.
    pub(crate) fn collect(&mut self, id: &WorkflowId, what: &Occurrence, fact: Option<u64>, came: Timestamp) {
        // The definition may have been removed in the same turn. A frozen workflow, or one behind a fence, collects nothing.
        let Some(workflow) = self.workflows.get(id).filter(|one| one.is_present() && !one.is_shut()) else { return };
        let what = &*self.seen_by(id, what);
        if !workflow.is_event_schedule() {
            return self.collect_by_all(id, what, fact, came);
        }
        if !workflow.takes_facts(self.now, matches!(what, Occurrence::Fired { .. })) {
            return;
        }
        let slot = self.collector(id, came);
        self.record(&slot, SlotEvent::Collected { what: what.clone(), fact });
        if self.evaluator().may_go_on(&slot, came) {
            self.go_on(&slot);
        } else if self.slots.state(&slot) == Some(SlotState::Waiting) {
            self.wake(slot);
        }
    }

    /// Collects a fact for every waiting slot: slots of times have no other way to share it. Paused slots collect, too;
    /// slots that have timed out, or that a person started, do not.
    fn collect_by_all(&mut self, id: &WorkflowId, what: &Occurrence, fact: Option<u64>, came: Timestamp) {
        let was_started = |slot: &Slot| slot.collected.as_ref().is_some_and(|collected| collected.asked.is_some());
        let waits = |slot: &Slot| slot.state == SlotState::Waiting && !was_started(slot);
        let waiting = self.slots.of(id).filter(|(_, live)| waits(&live.slot));
        for slot in waiting.map(|(slot, _)| slot).collect::<Vec<_>>() {
            if self.evaluator().is_over(&slot, came) {
                continue;
            }
            self.record(&slot, SlotEvent::Collected { what: what.clone(), fact });
            self.wake(slot);
        }
    }

    /// The collecting slot of an event schedule. It is a new one if there is none, or if the last one was complete or
    /// had timed out when the fact arrived.
    fn collector(&mut self, id: &WorkflowId, came: Timestamp) -> SlotRef {
        if let Some(slot) = self.workflows.get(id).and_then(WorkflowState::collector)
            && self.evaluator().may_go_on(&slot, came)
        {
            self.go_on(&slot);
        }
        if let Some(slot) = self.workflows.get(id).and_then(WorkflowState::collector) {
            match self.evaluator().expired(&slot, came) {
                Some(expired) => self.record(&slot, expired),
                None => return slot,
            }
        }
        self.open_moment(id, SlotEvent::planned(Origin::Fact, 0))
    }

    /// Advances a complete slot at once: each fact is judged as if it had come alone.
    fn go_on(&mut self, slot: &SlotRef) {
        let state = |core: &Core| core.slots.state(slot);
        if state(self) == Some(SlotState::Waiting) {
            self.look(slot);
        }
        if state(self) == Some(SlotState::Held) {
            self.wake(slot.clone());
            self.judge_program(&self.programs.of(&slot.workflow).clone(), slot);
        }
    }

    /// Opens a slot that is named by this moment, or by the first one after it that can name one.
    pub(crate) fn open_moment(&mut self, id: &WorkflowId, planned: SlotEvent) -> SlotRef {
        let at = self.workflows.next_moment(id, self.now);
        let slot = SlotRef::moment(id.clone(), at);
        self.record(&slot, planned);
        slot
    }

    /// Delivers the ends of runs to the workflows that wait for them.
    pub(crate) fn deliver_ends(&mut self) {
        for what in self.listeners.take_ended() {
            self.deliver(&what, None);
        }
    }

    /// Subscribes a workflow to the subjects of its present trigger.
    pub(crate) fn listen_to_facts(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let is_present = workflow.is_present();
        let subjects = if is_present { workflow.definition().trigger.subjects() } else { BTreeSet::new() };
        self.listeners.listen(id, subjects);
    }

    /// Sets the timer for the next cron time of a workflow's trigger, even if that has passed.
    pub(crate) fn arm_firing(&mut self, id: &WorkflowId) {
        let waits = self.listeners.has(id);
        let next = if waits { self.workflows.next_firing(id, self.now) } else { None };
        self.firings.set(id, next);
    }

    /// Counts the next cron time of a workflow's trigger, if it has passed. It counts only one, so that the times of
    /// all workflows are counted in order. Misfires that don't count are recorded first, and the next time is counted
    /// later.
    fn fire_next(&mut self, id: &WorkflowId) {
        match self.workflows.take_passed(id, self.now) {
            Some(CronTimes::Missed(Misfires { range, times })) => {
                self.turn.log_workflow(self.now, id, WorkflowEvent::Missed { range, times });
            }
            Some(CronTimes::Next(due, times)) => {
                for (time, cron) in times {
                    self.collect(id, &Occurrence::Fired { cron, time }, None, due);
                }
            }
            None => {}
        }
        self.arm_firing(id);
    }

    /// Counts the cron times that have passed, in order and at most a share for each program. Of too many programs it serves those that have
    /// waited longest, and the latest. The rest is due with the next turn.
    pub(crate) fn fire_due(&mut self) {
        let mut passed = self.firings.passed(self.now);
        let programs: BTreeSet<_> = passed.iter().map(|(_, id)| self.programs.of(id)).collect();
        let most = share(MOST_MISSED, programs.len());
        if programs.len() > MOST_MISSED {
            let left = MOST_MISSED.saturating_sub(self.firings.count());
            passed = both_ends(passed.into_iter().collect(), left).into_iter().collect();
        }
        while let Some((_, id)) = passed.pop_first() {
            if self.firings.use_up(self.programs.of(&id), most) {
                self.fire_next(&id);
                passed.extend(self.firings.passed_of(&id, self.now).map(|next| (next, id)));
            }
        }
    }
}
