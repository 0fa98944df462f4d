//! Who gives which definitions: files, requests and the program each have their own, and a name is of one of them at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::workflow::{Provenance, Source};
use kelos_model::{Workflow, WorkflowId};

/// Definitions, by name.
pub(crate) type DefinitionSet = BTreeMap<WorkflowId, Arc<Workflow>>;

/// A definition that is not in force, since its name is another's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenName {
    /// The name.
    pub workflow: WorkflowId,
    /// Where the definition comes from that is left out.
    pub source: Source,
    /// Whose the name is.
    pub holder: Provenance,
}

/// The latest definitions by files and by the program since the start.
#[derive(Default)]
pub(super) struct Definitions {
    /// In the order in which they were first heard.
    all: Vec<(Provenance, DefinitionSet)>,
    /// Definitions that are not in force.
    taken: BTreeSet<TakenName>,
}

impl Definitions {
    /// Whether nobody has said anything yet.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes all that one of them defines; what it said before is forgotten.
    pub(super) fn take(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>) {
        let own = definitions.into_iter().map(|one| (one.id.clone(), one.given_by(provenance))).collect();
        match self.all.iter_mut().find(|(known, _)| *known == provenance) {
            Some((_, before)) => *before = own,
            None => self.all.push((provenance, own)),
        }
    }

    /// Whether one of them has said what it defines. Before that, what is stored of it stands.
    pub(super) fn has_said(&self, provenance: Provenance) -> bool {
        self.all.iter().any(|(known, _)| *known == provenance)
    }

    /// The event schedules that one of them names.
    pub(super) fn schedules(&self, provenance: Provenance) -> Vec<Arc<Workflow>> {
        let own = self.all.iter().find(|(known, _)| *known == provenance).map(|(_, own)| own.values());
        own.into_iter().flatten().filter(|one| one.keys.events().is_some()).cloned().collect()
    }

    /// Whether somebody gives a definition of this name that is no event schedule.
    pub(super) fn names(&self, id: &WorkflowId) -> bool {
        self.all.iter().any(|(_, own)| own.get(id).is_some_and(|one| one.keys.events().is_none()))
    }

    /// All that is defined but event schedules. A name that several give is its holder's; where that is none of them, the first's.
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

    /// Notes what is not in force.
    pub(super) fn note_taken(&mut self, in_force: &DefinitionSet) {
        let mut taken = BTreeSet::new();
        for (provenance, own) in &self.all {
            for (id, one) in own {
                // A name that nobody has is not another's.
                let Some(holder) = in_force.get(id).map(|one| one.provenance()) else { continue };
                // People change the event schedules of files: that is no other one of the name.
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
