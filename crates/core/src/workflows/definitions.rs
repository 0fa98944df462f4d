//! Definitions by provenance: files, requests and the program have their own, and each name belongs to one provenance
//! at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::workflow::{Provenance, Source};
use kelos_model::{Workflow, WorkflowId};

/// Definitions, by name.
pub(crate) type DefinitionSet = BTreeMap<WorkflowId, Arc<Workflow>>;

/// A definition that is not in force because its name belongs to another provenance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenName {
    /// The name.
    pub workflow: WorkflowId,
    /// The source of the definition.
    pub source: Source,
    /// The provenance that the name belongs to.
    pub holder: Provenance,
}

/// The latest definitions of files and of the program since the start.
#[derive(Default)]
pub(super) struct Definitions {
    /// The definitions of each provenance, in the order in which they were first given.
    all: Vec<(Provenance, DefinitionSet)>,
    /// Definitions that are not in force.
    taken: BTreeSet<TakenName>,
}

impl Definitions {
    /// Whether no provenance has given definitions yet.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Replaces the definitions of a provenance.
    pub(super) fn take(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>) {
        let own = definitions.into_iter().map(|one| (one.id.clone(), one.given_by(provenance))).collect();
        match self.all.iter_mut().find(|(known, _)| *known == provenance) {
            Some((_, before)) => *before = own,
            None => self.all.push((provenance, own)),
        }
    }

    /// Whether a provenance has given its definitions. Until then, its stored ones stay in force.
    pub(super) fn has_said(&self, provenance: Provenance) -> bool {
        self.all.iter().any(|(known, _)| *known == provenance)
    }

    /// The event schedules of a provenance.
    pub(super) fn schedules(&self, provenance: Provenance) -> Vec<Arc<Workflow>> {
        let own = self.all.iter().find(|(known, _)| *known == provenance).map(|(_, own)| own.values());
        own.into_iter().flatten().filter(|one| one.keys.events().is_some()).cloned().collect()
    }

    /// Whether there is a definition of this name that is not an event schedule.
    pub(super) fn names(&self, id: &WorkflowId) -> bool {
        self.all.iter().any(|(_, own)| own.get(id).is_some_and(|one| one.keys.events().is_none()))
    }

    /// All definitions except for event schedules. A name with several definitions belongs to its holder; if none of
    /// them is the holder's, to the first.
    pub(super) fn without_schedules(&self, holder: impl Fn(&WorkflowId) -> Option<Provenance>) -> DefinitionSet {
        let mut all = DefinitionSet::new();
        for (provenance, own) in &self.all {
            for (id, one) in own.iter().filter(|(_, one)| one.keys.events().is_none()) {
                if !all.contains_key(id) || holder(id) == Some(*provenance) {
                    all.insert(id.clone(), one.clone());
                }
            }
        }
        all
    }

    /// Notes the definitions that are not in force.
    pub(super) fn note_taken(&mut self, in_force: &DefinitionSet) {
        let mut taken = BTreeSet::new();
        for (provenance, own) in &self.all {
            for (id, one) in own {
                // A name that is not in force is free.
                let Some(holder) = in_force.get(id).map(|one| one.provenance()) else { continue };
                // A request may change an event schedule of a file: that does not take its name.
                let was_changed = one.keys.events().is_some() && holder == Provenance::Api;
                if holder != *provenance && !was_changed {
                    taken.insert(TakenName { workflow: id.clone(), source: one.source.clone(), holder });
                }
            }
        }
        self.taken = taken;
    }

    /// Definitions that are not in force.
    pub(super) fn taken(&self) -> &BTreeSet<TakenName> {
        &self.taken
    }
}
