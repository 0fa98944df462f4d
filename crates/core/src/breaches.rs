//! Broken invariants. The owner of an invariant checks it and reports a breach. The step continues as well as it can
//! and returns the breach at its end, so that nothing of it is ever committed.

use kelos_model::{Breach, Invariant, SlotRef, WorkflowId};

/// The first breach of a step. Later ones may only be its consequences.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Breaches(Option<Breach>);

impl Breaches {
    /// Notes a breach about a workflow.
    pub(crate) fn report(&mut self, invariant: Invariant, about: &WorkflowId) {
        self.0.get_or_insert_with(|| Breach::of(invariant, about));
    }

    /// Notes a breach about a slot.
    pub(crate) fn report_slot(&mut self, invariant: Invariant, about: &SlotRef) {
        self.0.get_or_insert_with(|| Breach::of_slot(invariant, about));
    }

    /// Notes that a slot about which something was decided is not in memory.
    pub(crate) fn no_slot(&mut self, id: &SlotRef) {
        self.report_slot(Invariant::SlotIsInMemory, id);
    }

    /// Notes a breach about a slot unless something holds.
    pub(crate) fn check_slot(&mut self, holds: bool, invariant: Invariant, about: &SlotRef) {
        if !holds {
            self.report_slot(invariant, about);
        }
    }

    /// Takes the breach out, if there is one.
    pub(crate) fn take(&mut self) -> Option<Breach> {
        self.0.take()
    }
}

/// The reason why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepError<E> {
    /// The past can't be read.
    Past(E),
    /// An invariant is broken.
    Broken(Breach),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_broke_first_counts_and_is_told_once() {
        let workflow: WorkflowId = "wf".parse().expect("an id");
        let slot = SlotRef::at(workflow.clone(), jiff::Timestamp::UNIX_EPOCH);
        let mut breaches = Breaches::default();
        breaches.check_slot(true, Invariant::EventFits, &slot);
        assert_eq!(breaches.take(), None);
        breaches.check_slot(false, Invariant::EventFits, &slot);
        breaches.report(Invariant::TimersAreSet, &workflow);
        assert_eq!(breaches.take(), Some(Breach::of_slot(Invariant::EventFits, &slot)));
        assert_eq!(breaches.take(), None);
    }
}
