//! Listeners: the workflows that wait for facts, and the ends of runs that are not delivered to them yet.
//!
//! Absent: slots, and how one collects facts.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::arguments::kept_arguments;
use kelos_model::facts::ENDS;
use kelos_model::{Breach, Invariant, Occurrence, Run, Slot, SlotRef, SlotState, Subject, Workflow, WorkflowId};

use crate::breaches::Breaches;

/// The workflows that wait for facts, by subject.
#[derive(Default)]
pub(crate) struct Listeners {
    by_subject: BTreeMap<Subject, BTreeSet<WorkflowId>>,
    subjects: BTreeMap<WorkflowId, BTreeSet<Subject>>,
    /// The ends of runs that are not delivered yet.
    ended: Vec<Occurrence>,
    breaches: Breaches,
}

impl Listeners {
    /// Subscribes a workflow to these subjects and to no others.
    pub(crate) fn listen(&mut self, id: &WorkflowId, subjects: BTreeSet<Subject>) {
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

    /// The workflows that wait for facts about a subject; none if there are none.
    pub(crate) fn of(&self, subject: &Subject) -> Option<&BTreeSet<WorkflowId>> {
        self.by_subject.get(subject)
    }

    /// Notes the end of a run, if a workflow waits for it. `run` returns the ended run.
    pub(crate) fn note_end<'a>(
        &mut self,
        id: &SlotRef,
        definition: &Workflow,
        before: Option<&Slot>,
        after: &Slot,
        run: impl FnOnce() -> Option<&'a Run>,
    ) {
        // A killed run counts as ended, even if it is still dying.
        let going = |slot: &Slot| matches!(slot.state, SlotState::Dispatched | SlotState::Running);
        if !before.is_some_and(going) || !ENDS.contains(&after.state) {
            return;
        }
        if after.run_of_flow().is_some_and(|run| run.repeats.is_some()) {
            // The step of another run was done again, which is no end of a run to whoever waits for one.
            return;
        }
        let subject = Subject::Ended(definition.program().clone(), after.state);
        if self.of(&subject).is_none() {
            return;
        }
        // The outputs of a killed run don't count.
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

    /// Takes the ends of runs that are not delivered yet.
    pub(crate) fn take_ended(&mut self) -> Vec<Occurrence> {
        std::mem::take(&mut self.ended)
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
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
