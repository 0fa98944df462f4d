//! The projects of definitions, the things that belong to them, and whether a reference has consent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::declaration::Shares;
use super::reference::{Consent, Reference, Referent};
use crate::facts::Subject;
use crate::id::WorkflowId;
use crate::workflow::Workflow;

/// Definitions by project, with what they own and refer to. It is changed as definitions change, at a cost that follows the change.
#[derive(Debug, Default, Clone)]
pub struct Sharing {
    workflows: BTreeMap<WorkflowId, Member>,
    /// The workflows that a project has or had.
    members: BTreeMap<Arc<str>, BTreeSet<WorkflowId>>,
    /// The present workflows that refer to a thing.
    referring: BTreeMap<Referent, BTreeSet<WorkflowId>>,
    /// The present workflows whose declarations name a dataset or a signal.
    claiming: BTreeMap<Referent, BTreeSet<WorkflowId>>,
}

/// A workflow, as far as it matters to others.
#[derive(Debug, Clone)]
struct Member {
    project: Arc<str>,
    /// Empty once the workflow is removed: then it refers to nothing and shares nothing.
    references: Vec<Reference>,
    shares: Shares,
}

/// A reference to another project that does not allow it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unshared {
    /// The workflow whose definition refers; none for a request.
    pub workflow: Option<WorkflowId>,
    /// Its project.
    pub project: Arc<str>,
    /// The reference.
    pub reference: Reference,
}

impl Unshared {
    /// The line of the other project's script that allows it. It does not name the other project, of which the reader may know nothing.
    #[must_use]
    pub fn line(&self) -> String {
        self.reference.allowing_line(&self.project).unwrap_or_default()
    }
}

/// Completes "the definition of …".
impl fmt::Display for Unshared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unshared { workflow, project, reference } = self;
        if let Some(workflow) = workflow {
            write!(f, "{workflow} ")?;
        }
        write!(f, "refers to another project that does not share this with {project}: {reference}")
    }
}

impl Sharing {
    /// The sharing of definitions, of which those that are not present only say to which project they belonged.
    pub fn of<'w>(all: impl IntoIterator<Item = (&'w Workflow, bool)>) -> Sharing {
        let mut sharing = Sharing::default();
        for (definition, is_present) in all {
            sharing.put(definition, is_present);
        }
        sharing
    }

    /// Takes the definition of a workflow. Returns the workflows whose references may be judged otherwise by that, including its own.
    pub fn put(&mut self, definition: &Workflow, is_present: bool) -> BTreeSet<WorkflowId> {
        let project: Arc<str> = definition.project.as_str().into();
        let (references, shares) = match is_present {
            true => (definition.references(), definition.shares.clone()),
            false => (Vec::new(), Shares::default()),
        };
        let id = &definition.id;
        let mut touched = self.take_out(id);
        let is_new = !self.members.contains_key(&project);
        self.members.entry(project.clone()).or_default().insert(id.clone());
        if is_new {
            touched.extend(self.named_after(&project));
        }
        for reference in &references {
            self.referring.entry(reference.referent()).or_default().insert(id.clone());
        }
        for claimed in shares.subjects().filter_map(|subject| Referent::of_subject(&subject)) {
            self.claiming.entry(claimed).or_default().insert(id.clone());
        }
        self.workflows.insert(id.clone(), Member { project, references, shares });
        touched.extend(self.concerned_by(id));
        touched
    }

    /// Takes a workflow out. Returns the workflows that its definition concerned.
    fn take_out(&mut self, id: &WorkflowId) -> BTreeSet<WorkflowId> {
        let mut concerned = self.concerned_by(id);
        let Some(Member { project, references, shares }) = self.workflows.remove(id) else { return concerned };
        let drop_from = |index: &mut BTreeMap<Referent, BTreeSet<WorkflowId>>, referent: &Referent| {
            let ids = index.get_mut(referent);
            if ids.is_some_and(|ids| ids.remove(id) && ids.is_empty()) {
                index.remove(referent);
            }
        };
        references.iter().for_each(|reference| drop_from(&mut self.referring, &reference.referent()));
        for claimed in shares.subjects().filter_map(|subject| Referent::of_subject(&subject)) {
            drop_from(&mut self.claiming, &claimed);
        }
        if let Some(members) = self.members.get_mut(&project) {
            members.remove(id);
            if members.is_empty() {
                self.members.remove(&project);
                concerned.extend(self.named_after(&project));
            }
        }
        concerned
    }

    /// The workflows that refer to a thing whose name begins with that of a project.
    fn named_after(&self, project: &str) -> BTreeSet<WorkflowId> {
        let named = self.referring.iter().filter(|(referent, _)| referent.name().starts_with(project));
        named.flat_map(|(_, ids)| ids).cloned().collect()
    }

    /// The workflows whose references the definition of a workflow may decide about.
    fn concerned_by(&self, id: &WorkflowId) -> BTreeSet<WorkflowId> {
        let mut concerned = BTreeSet::from([id.clone()]);
        let Some(member) = self.workflows.get(id) else {
            concerned.extend(self.referring(&Referent::Workflow(id.clone())).cloned());
            return concerned;
        };
        let claimed = member.shares.subjects().filter_map(|subject| Referent::of_subject(&subject));
        let mut named: BTreeSet<Referent> = member.references.iter().map(Reference::referent).chain(claimed).collect();
        named.insert(Referent::Workflow(id.clone()));
        if !member.shares.is_empty() {
            let own = self.members.get(&member.project).into_iter().flatten();
            named.extend(own.cloned().map(Referent::Workflow));
        }
        concerned.extend(named.iter().flat_map(|one| self.referring(one)).cloned());
        concerned
    }

    /// The present workflows that refer to a thing.
    pub fn referring(&self, referent: &Referent) -> impl Iterator<Item = &WorkflowId> {
        self.referring.get(referent).into_iter().flatten()
    }

    /// The project of a workflow that is or was defined.
    #[must_use]
    pub fn project_of(&self, id: &WorkflowId) -> Option<&Arc<str>> {
        self.workflows.get(id).map(|member| &member.project)
    }

    /// The project that a name begins with: the longest that has or had workflows, alone or before a dot or a slash.
    #[must_use]
    pub fn project_named(&self, name: &str) -> Option<&Arc<str>> {
        let ends = name.match_indices(['.', '/']).map(|(end, _)| end).chain([name.len()]);
        let projects = ends.filter_map(|end| self.members.get_key_value(name.get(..end)?));
        projects.last().map(|(project, _)| project)
    }

    /// The projects that a thing belongs to: of a workflow its own; else the one whose name it begins with; else those whose declarations
    /// name it; else those whose definitions wait for it. None where nobody knows it.
    #[must_use]
    pub fn owners(&self, referent: &Referent) -> BTreeSet<Arc<str>> {
        let project = match referent {
            Referent::Workflow(id) => self.project_of(id).or_else(|| self.project_named(id.as_str())),
            Referent::Dataset(name) | Referent::Signal(name) => self.project_named(name),
        };
        if let Some(project) = project {
            return BTreeSet::from([project.clone()]);
        }
        let known = self.claiming.get(referent).or_else(|| self.referring.get(referent));
        known.into_iter().flatten().filter_map(|id| self.project_of(id)).cloned().collect()
    }

    /// Whether a project allows another one a reference.
    #[must_use]
    pub fn consents(&self, owner: &str, project: &str, reference: &Reference) -> bool {
        let own = self.members.get(owner).into_iter().flatten().filter_map(|id| self.workflows.get(id));
        owner == project
            || reference.consent() == Consent::None
            || own.into_iter().any(|member| member.shares.allow(project, reference))
    }

    /// Whether a reference of a project is allowed: it is to the project itself, to nobody's, or one of its owners consents.
    #[must_use]
    pub fn allows(&self, project: &str, reference: &Reference) -> bool {
        let owners = self.owners(&reference.referent());
        owners.is_empty()
            || owners.contains(project)
            || owners.iter().any(|owner| self.consents(owner, project, reference))
    }

    /// The references of a workflow's present definition that are not allowed.
    #[must_use]
    pub fn unshared(&self, id: &WorkflowId) -> Vec<Unshared> {
        let Some(member) = self.workflows.get(id) else { return Vec::new() };
        self.refused(id, &member.project, &member.references)
    }

    /// The references that stand in the way of a definition which is about to be deployed: those that are not allowed, and datasets and
    /// signals of others that it declares as its own.
    #[must_use]
    pub fn unshared_by(&self, definition: &Workflow) -> Vec<Unshared> {
        let project: Arc<str> = definition.project.as_str().into();
        let claims = definition.shares.subjects().filter_map(|subject| match subject {
            Subject::Partitions(dataset) => Some(Reference::Partitions(dataset)),
            Subject::Signal(name) => Some(Reference::Signal(name)),
            Subject::Ended(..) | Subject::Fired(_) => None,
        });
        let all: Vec<Reference> = definition.references().into_iter().chain(claims).collect();
        self.refused(&definition.id, &project, &all)
    }

    fn refused(&self, id: &WorkflowId, project: &Arc<str>, references: &[Reference]) -> Vec<Unshared> {
        let refused = references.iter().filter(|one| one.consent() != Consent::None && !self.allows(project, one));
        let unshared = |reference: &Reference| Unshared {
            workflow: Some(id.clone()),
            project: project.clone(),
            reference: reference.clone(),
        };
        refused.map(unshared).collect()
    }

    /// All references that are not allowed.
    #[must_use]
    pub fn all_unshared(&self) -> Vec<Unshared> {
        self.workflows.keys().flat_map(|id| self.unshared(id)).collect()
    }

    /// The datasets and signals that definitions of several projects wait for and none declares, with these projects: facts about them need
    /// the right for all of these.
    #[must_use]
    pub fn undeclared(&self) -> Vec<(Referent, BTreeSet<Arc<str>>)> {
        let of_names = self.referring.keys().filter(|one| !matches!(one, Referent::Workflow(_)));
        let owned = of_names.map(|referent| (referent.clone(), self.owners(referent)));
        owned.filter(|(referent, owners)| owners.len() > 1 && !self.claiming.contains_key(referent)).collect()
    }
}

#[cfg(test)]
mod tests;
