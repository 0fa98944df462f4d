//! Who gives which definitions: files, requests and the program each have their own, and a name is of one of them at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::workflow::{Provenance, Source};
use kelos_model::{Workflow, WorkflowId};

use crate::Core;

/// Definitions, by name.
pub(crate) type Definitions = BTreeMap<WorkflowId, Arc<Workflow>>;

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

/// What files and the program define, as they said last.
#[derive(Default)]
pub(crate) struct Given {
    /// In the order in which they were first heard since the start.
    all: Vec<(Provenance, Definitions)>,
    /// What is not in force.
    pub(crate) taken: BTreeSet<TakenName>,
}

impl Given {
    /// Whether nobody has said anything yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes all that one of them defines; what it said before is forgotten.
    pub(crate) fn take(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>) {
        let own = definitions.into_iter().map(|one| (one.id.clone(), one.given_by(provenance))).collect();
        match self.all.iter_mut().find(|(known, _)| *known == provenance) {
            Some((_, before)) => *before = own,
            None => self.all.push((provenance, own)),
        }
    }

    /// Whether one of them has said what it defines. Before that, what is stored of it stands.
    pub(crate) fn has_said(&self, provenance: Provenance) -> bool {
        self.all.iter().any(|(known, _)| *known == provenance)
    }

    /// The event schedules that one of them names.
    pub(crate) fn schedules(&self, provenance: Provenance) -> Vec<Arc<Workflow>> {
        let own = self.all.iter().find(|(known, _)| *known == provenance).map(|(_, own)| own.values());
        own.into_iter().flatten().filter(|one| one.keys.events().is_some()).cloned().collect()
    }

    /// Whether somebody gives a definition of this name that is no event schedule.
    pub(crate) fn names(&self, id: &WorkflowId) -> bool {
        self.all.iter().any(|(_, own)| own.get(id).is_some_and(|one| one.keys.events().is_none()))
    }
}

impl Core {
    /// The definitions that were given and are not in force, since their names are others'.
    #[must_use]
    pub fn taken_names(&self) -> &BTreeSet<TakenName> {
        &self.given.taken
    }

    /// Whose a name is, by what is stored.
    pub(crate) fn holder(&self, id: &WorkflowId) -> Option<Provenance> {
        self.tasks.get(id).filter(|task| task.row.present).map(|task| task.row.definition.provenance())
    }

    /// All that is defined but event schedules. A name that several give is whose it was; where it was nobody's of them, the first's.
    pub(crate) fn given_workflows(&self) -> Definitions {
        let mut all = Definitions::new();
        for (provenance, own) in &self.given.all {
            for (id, one) in own.iter().filter(|(_, one)| one.keys.events().is_none()) {
                if !all.contains_key(id) || self.holder(id) == Some(*provenance) {
                    all.insert(id.clone(), one.clone());
                }
            }
        }
        all
    }

    /// Notes what is not in force.
    pub(crate) fn note_taken(&mut self, in_force: &Definitions) {
        let mut taken = BTreeSet::new();
        for (provenance, own) in &self.given.all {
            for (id, one) in own {
                let Some(holder) = in_force.get(id).map(|one| one.provenance()) else { continue };
                // People change the event schedules of files: that is no other one of the name.
                let was_changed = one.keys.events().is_some() && holder == Provenance::Api;
                if holder != *provenance && !was_changed {
                    taken.insert(TakenName { workflow: id.clone(), source: one.source.clone(), holder });
                }
            }
        }
        self.given.taken = taken;
    }
}
