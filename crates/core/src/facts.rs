//! Facts: whoever waits for one collects it. A fact is stored with what it leads to, so that it counts once and is never lost.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::arguments::kept_arguments;
use kelos_model::event::Origin;
use kelos_model::facts::ENDS;
use kelos_model::{
    Actor, Breach, Event, Fact, FactKey, Invariant, Occurrence, Run, Slot, SlotEvent, SlotRef, SlotState, Subject,
    Workflow, WorkflowId,
};

use crate::breaches::Breaches;
use crate::past::PastOf;
use crate::workflows::WorkflowState;
use crate::{Core, FactTally};

/// The workflows that wait for facts, by what these are about.
#[derive(Default)]
pub(crate) struct Listeners {
    by_subject: BTreeMap<Subject, BTreeSet<WorkflowId>>,
    subjects: BTreeMap<WorkflowId, BTreeSet<Subject>>,
    /// The ends of runs of which they are yet to hear.
    ended: Vec<Occurrence>,
    breaches: Breaches,
}

impl Listeners {
    /// Has a workflow hear of these subjects and of no others.
    fn listen(&mut self, id: &WorkflowId, subjects: BTreeSet<Subject>) {
        for subject in self.subjects.remove(id).unwrap_or_default().difference(&subjects) {
            let waiting = self.by_subject.get_mut(subject);
            if !waiting.is_some_and(|waiting| waiting.remove(id)) {
                self.breaches.report(Invariant::ListenersAreListed, id);
            }
            if self.by_subject.get(subject).is_some_and(BTreeSet::is_empty) {
                self.by_subject.remove(subject);
            }
        }
        for subject in &subjects {
            self.by_subject.entry(subject.clone()).or_default().insert(id.clone());
        }
        if !subjects.is_empty() {
            self.subjects.insert(id.clone(), subjects);
        }
    }

    /// Whether a workflow waits for any facts.
    pub(crate) fn has(&self, id: &WorkflowId) -> bool {
        self.subjects.contains_key(id)
    }

    /// The workflows that wait for facts about a subject; none where nobody does.
    fn of(&self, subject: &Subject) -> Option<&BTreeSet<WorkflowId>> {
        self.by_subject.get(subject)
    }

    /// Notes that a run has ended, where somebody waits for that; `run` is the run, as it ended.
    pub(crate) fn note_end<'a>(
        &mut self,
        id: &SlotRef,
        definition: &Workflow,
        before: Option<&Slot>,
        after: &Slot,
        run: impl FnOnce() -> Option<&'a Run>,
    ) {
        // What was killed before has ended for them, though its run may still be dying.
        let going = |slot: &Slot| matches!(slot.state, SlotState::Dispatched | SlotState::Running);
        if !before.is_some_and(going) || !ENDS.contains(&after.state) {
            return;
        }
        let subject = Subject::Ended(definition.program().clone(), after.state);
        if self.of(&subject).is_none() {
            return;
        }
        // What was killed gives nothing, whatever it had said by then.
        let run = run().filter(|_| after.state != SlotState::Killed);
        let outputs = run.and_then(|run| run.outputs.as_deref()).cloned();
        self.ended.push(Occurrence::Ended {
            program: definition.program().clone(),
            state: after.state,
            run: Some(format!("{}#{}", id.short(), after.last_run)),
            arguments: kept_arguments(definition, after.collected.as_deref(), &id.key).unwrap_or_default(),
            outputs: outputs.unwrap_or_default(),
        });
    }

    /// Takes the ends of runs of which those who wait for them are yet to hear.
    fn take_ended(&mut self) -> Vec<Occurrence> {
        std::mem::take(&mut self.ended)
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

impl Core {
    /// Stores the facts that are new, and has those collect them who wait for them.
    pub(crate) fn told<E>(&mut self, by: &Actor, facts: Vec<Fact>, past: PastOf<'_, E>) -> Result<FactTally, E> {
        let facts: Vec<(Option<FactKey>, Fact)> = facts.into_iter().map(|fact| (fact.name(), fact)).collect();
        self.turn.known.look_up(facts.iter().filter_map(|(name, _)| name.as_ref()), past)?;
        let (mut new, mut known) = (0, 0);
        for (name, fact) in facts {
            if name.as_ref().is_some_and(|name| self.turn.known.tell(name)) {
                known += 1;
                continue;
            }
            new += 1;
            let what = fact.what.brief();
            let seq = self.turn.log(self.now, 0, Event::Fact { fact, by: Some(by.clone()) });
            if let Some(name) = name {
                self.turn.note_fact(name, seq);
            }
            self.deliver(&what, Some(seq));
        }
        Ok(FactTally { new, known })
    }

    /// Has everybody collect a fact who waits for it.
    pub(crate) fn deliver(&mut self, what: &Occurrence, fact: Option<u64>) {
        // Most facts are waited for by nobody.
        let Some(waiting) = self.listeners.of(&what.subject()).cloned() else { return };
        // Cron times that have passed and wait for a tick come before what comes now.
        if self.firings.begin(self.now) {
            self.fire_due();
        }
        for id in waiting {
            self.collect(&id, what, fact, self.now);
        }
    }

    /// Has the slots of a workflow collect a fact that came at a moment.
    pub(crate) fn collect(&mut self, id: &WorkflowId, what: &Occurrence, fact: Option<u64>, came: Timestamp) {
        // The definition may have gone in the same turn. What is frozen collects nothing.
        let Some(workflow) = self.workflows.get(id).filter(|one| one.is_present() && !one.is_frozen()) else { return };
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

    /// Every slot that waits collects what comes: those of a time have no other way to share it. A pause leaves them alone, and
    /// takes nothing away. Whose time was over gets nothing more.
    fn collect_by_all(&mut self, id: &WorkflowId, what: &Occurrence, fact: Option<u64>, came: Timestamp) {
        let waiting = self.slots.of(id).filter(|(_, live)| live.slot.state == SlotState::Waiting);
        for slot in waiting.map(|(slot, _)| slot).collect::<Vec<_>>() {
            if self.evaluator().is_over(&slot, came) {
                continue;
            }
            self.record(&slot, SlotEvent::Collected { what: what.clone(), fact });
            self.wake(slot);
        }
    }

    /// The slot of an event schedule that collects; a new one where there is none, or the last has gone on or has waited too long
    /// by the moment at which something comes.
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

    /// Has a slot go on at once for which all has come: each fact is judged as if it had come alone.
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

    /// Opens a slot that is named by this moment, or the first free one after it.
    pub(crate) fn open_moment(&mut self, id: &WorkflowId, planned: SlotEvent) -> SlotRef {
        let at = self.workflows.next_moment(id, self.now);
        let slot = SlotRef::moment(id.clone(), at);
        self.record(&slot, planned);
        slot
    }

    /// Tells those who wait for the ends of runs.
    pub(crate) fn deliver_ends(&mut self) {
        for what in self.listeners.take_ended() {
            self.deliver(&what, None);
        }
    }

    /// Listens to what the trigger of a workflow waits for, as it is now.
    pub(crate) fn listen_to_facts(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let is_present = workflow.is_present();
        let subjects = if is_present { workflow.definition().trigger.subjects() } else { BTreeSet::new() };
        self.listeners.listen(id, subjects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(workflow: &WorkflowId) -> Subject {
        Subject::Ended(workflow.clone(), SlotState::Succeeded)
    }

    #[test]
    fn those_listen_who_said_so_last() {
        let ids: [WorkflowId; 3] = ["a", "b", "up"].map(|name| name.parse().expect("an id"));
        let [a, b, up] = &ids;
        let mut listeners = Listeners::default();
        listeners.listen(a, BTreeSet::from([fired(up), fired(b)]));
        listeners.listen(b, BTreeSet::from([fired(up)]));
        assert_eq!(listeners.of(&fired(up)), Some(&BTreeSet::from([a.clone(), b.clone()])));
        listeners.listen(a, BTreeSet::from([fired(b)]));
        assert_eq!(listeners.of(&fired(up)), Some(&BTreeSet::from([b.clone()])));
        listeners.listen(b, BTreeSet::new());
        assert_eq!((listeners.of(&fired(up)), listeners.has(b), listeners.has(a)), (None, false, true));
        assert_eq!(listeners.take_breach(), None);
    }

    #[test]
    fn who_listens_and_is_not_listed_is_a_breach() {
        let id: WorkflowId = "a".parse().expect("an id");
        let mut listeners = Listeners::default();
        listeners.listen(&id, BTreeSet::from([fired(&id)]));
        listeners.by_subject.clear();
        listeners.listen(&id, BTreeSet::new());
        assert_eq!(listeners.take_breach(), Some(Breach::of(Invariant::ListenersAreListed, &id)));
    }
}
