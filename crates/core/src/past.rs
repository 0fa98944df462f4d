//! The past: what memory no longer holds. A step reads it on demand, with few questions, and keeps the answers until
//! the turn settles. Changes of the turn itself are in memory, and newer than what is stored.
//!
//! Absent: the meaning of slots, facts and runs. A failed read ends the step; it is never taken for "there is none".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::ranges::Range;
use kelos_model::workflow::DefinedVersion;
use kelos_model::{FactKey, Run, Slot, SlotRef, Workflow, WorkflowId};

/// Answers at once what memory no longer holds, as of the last committed turn.
pub trait Past {
    /// The error of a failed read.
    type Error;

    /// Reads those of these slots that exist. The ids are unique and in ascending order.
    ///
    /// # Errors
    /// If the past can't be read.
    fn slots(&mut self, ids: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Self::Error>;

    /// Reads all slots of a workflow whose times are within a range.
    ///
    /// # Errors
    /// If the past can't be read.
    fn range(&mut self, workflow: &WorkflowId, range: Range) -> Result<Vec<(SlotRef, Slot)>, Self::Error>;

    /// Returns those of these facts that were published before. The names are unique and in ascending order.
    ///
    /// # Errors
    /// If the past can't be read.
    fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Self::Error>;

    /// Reads the definitions of a workflow as they came into force, ascending.
    ///
    /// # Errors
    /// If the past can't be read.
    fn definitions(&mut self, workflow: &WorkflowId) -> Result<Vec<DefinedVersion>, Self::Error>;

    /// Reads a definition of a workflow by its number; none if there never was one.
    ///
    /// # Errors
    /// If the past can't be read.
    fn definition(&mut self, workflow: &WorkflowId, number: u32) -> Result<Option<Arc<Workflow>>, Self::Error>;

    /// Reads all steps of a run of a flow, with the items of its lists.
    ///
    /// # Errors
    /// If the past can't be read.
    fn steps(&mut self, run: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Self::Error>;

    /// Reads runs by the log positions of their dispatch, in the order of the question. One that another scheduler made before its slot was
    /// taken over has no record, and is left out.
    ///
    /// # Errors
    /// If the past can't be read.
    fn runs(&mut self, dispatched: &[u64]) -> Result<Vec<Run>, Self::Error>;
}

/// The past as a parameter of a step.
pub(crate) type PastOf<'a, E> = &'a mut dyn Past<Error = E>;

/// The facts that a turn has looked up in the past.
#[derive(Default)]
pub(crate) struct KnownFacts {
    /// Whether each fact was published before, in this turn or earlier.
    told: BTreeMap<FactKey, bool>,
}

impl KnownFacts {
    /// Looks up which of these facts were published before.
    pub(crate) fn look_up<'a, E>(
        &mut self,
        names: impl Iterator<Item = &'a FactKey>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let unknown: BTreeSet<FactKey> = names.filter(|name| !self.told.contains_key(name)).cloned().collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let names: Vec<FactKey> = unknown.into_iter().collect();
        let known = past.facts(&names)?;
        self.told.extend(names.into_iter().map(|name| (name, false)));
        self.told.extend(known.into_iter().map(|name| (name, true)));
        Ok(())
    }

    /// Notes that a looked-up fact is published. Returns whether it was published before.
    pub(crate) fn tell(&mut self, name: &FactKey) -> bool {
        self.told.get_mut(name).is_some_and(|told| std::mem::replace(told, true))
    }
}

/// The definitions of workflows that a turn has looked up in the past. A run that has ended was dispatched in an earlier turn, so that
/// those of the turn itself made nothing yet.
#[derive(Default)]
pub(crate) struct KnownDefinitions(BTreeMap<WorkflowId, Vec<DefinedVersion>>);

impl KnownDefinitions {
    /// Looks up the definitions of a workflow.
    pub(crate) fn look_up<E>(&mut self, workflow: &WorkflowId, past: PastOf<'_, E>) -> Result<(), E> {
        if !self.0.contains_key(workflow) {
            let found = past.definitions(workflow)?;
            self.0.insert(workflow.clone(), found);
        }
        Ok(())
    }

    /// The definitions of a workflow, ascending; none that were not looked up.
    pub(crate) fn of(&self, workflow: &WorkflowId) -> &[DefinedVersion] {
        self.0.get(workflow).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A past that consists of facts, and counts how often it is read.
    struct FactsAlone {
        facts: BTreeSet<FactKey>,
        reads: usize,
    }

    impl Past for FactsAlone {
        type Error = Infallible;

        fn slots(&mut self, _: &[SlotRef]) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
            Ok(Vec::new())
        }

        fn range(&mut self, _: &WorkflowId, _: Range) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
            Ok(Vec::new())
        }

        fn facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, Infallible> {
            self.reads += 1;
            Ok(names.iter().filter(|name| self.facts.contains(name)).cloned().collect())
        }

        fn definitions(&mut self, _: &WorkflowId) -> Result<Vec<DefinedVersion>, Infallible> {
            Ok(Vec::new())
        }

        fn definition(&mut self, _: &WorkflowId, _: u32) -> Result<Option<Arc<Workflow>>, Infallible> {
            Ok(None)
        }

        fn steps(&mut self, _: &SlotRef) -> Result<Vec<(SlotRef, Slot)>, Infallible> {
            Ok(Vec::new())
        }

        fn runs(&mut self, _: &[u64]) -> Result<Vec<Run>, Infallible> {
            Ok(Vec::new())
        }
    }

    fn fact(key: &str) -> FactKey {
        FactKey { source: "s".into(), about: "a".into(), key: key.into() }
    }

    #[test]
    fn a_fact_is_told_once_in_a_turn_too() {
        let mut past = FactsAlone { facts: BTreeSet::from([fact("old")]), reads: 0 };
        let mut cache = KnownFacts::default();
        let Ok(()) = cache.look_up([&fact("new"), &fact("old"), &fact("new")].into_iter(), &mut past);
        assert!(cache.tell(&fact("old")));
        assert!(!cache.tell(&fact("new")));
        assert!(cache.tell(&fact("new")));
        let Ok(()) = cache.look_up([&fact("new")].into_iter(), &mut past);
        assert!(cache.tell(&fact("new")), "the turn told it");
        assert_eq!(past.reads, 1, "many are one read, and what was read is known");
    }
}
