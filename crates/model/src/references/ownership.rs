//! The projects of definitions, the things that belong to them, and whether a reference has consent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::id::WorkflowId;
use crate::sharing::{Consent, Reference, Referent, Shares};
use crate::workflow::Workflow;

/// Definitions by project, with what they own and refer to. It is changed as definitions change, at a cost that follows the change.
#[derive(Debug, Default, Clone)]
pub struct Ownership {
    workflows: BTreeMap<WorkflowId, OwnedWorkflow>,
    /// The workflows that a project has or had.
    members: BTreeMap<Arc<str>, BTreeSet<WorkflowId>>,
    /// The present workflows that refer to a thing.
    referring: BTreeMap<Referent, BTreeSet<WorkflowId>>,
    /// The declarations of projects, and how many of their present workflows carry each.
    declared: BTreeMap<Arc<str>, BTreeMap<Shares, usize>>,
}

/// A workflow, as far as it matters to others.
#[derive(Debug, Clone)]
struct OwnedWorkflow {
    project: Arc<str>,
    /// Empty once the workflow is removed: then it refers to nothing and shares nothing.
    references: Vec<Reference>,
    shares: Shares,
}

/// A reference to another project that does not allow it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingConsent {
    /// The workflow whose definition refers; none for a script that reads registers.
    pub workflow: Option<WorkflowId>,
    /// Its project.
    pub project: Arc<str>,
    /// The reference.
    pub reference: Reference,
}

impl MissingConsent {
    /// The line of the other project's script that allows it. It does not name the other project, of which the reader may know nothing.
    #[must_use]
    pub fn line(&self) -> String {
        self.reference.allowing_line(&self.project).unwrap_or_default()
    }
}

/// `alpha-report refers to another project that does not share this with alpha: the signal "beta.go"`.
impl fmt::Display for MissingConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingConsent { workflow, project, reference } = self;
        match workflow {
            Some(workflow) => write!(f, "{workflow} ")?,
            None => f.write_str("the script ")?,
        }
        write!(f, "refers to another project that does not share this with {project}: {reference}")
    }
}

impl Ownership {
    /// The sharing of definitions, of which those that are not present only say to which project they belonged.
    pub fn of<'w>(all: impl IntoIterator<Item = (&'w Workflow, bool)>) -> Ownership {
        let mut sharing = Ownership::default();
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
        // What was declared before, and is still, decides nothing otherwise.
        let is_same = self.workflows.get(id).is_some_and(|one| one.project == project && one.shares == shares);
        let mut concerned = self.take_out(id, !is_same);
        if !self.members.contains_key(&project) {
            concerned.extend(self.named_after(&project));
        }
        self.members.entry(project.clone()).or_default().insert(id.clone());
        for reference in &references {
            self.referring.entry(reference.referent()).or_default().insert(id.clone());
        }
        if !shares.is_empty() {
            let times = self.declared.entry(project.clone()).or_default().entry(shares.clone()).or_default();
            *times += 1;
            if *times == 1 && !is_same {
                concerned.extend(self.concerned_by_shares(&project));
            }
        }
        self.workflows.insert(id.clone(), OwnedWorkflow { project, references, shares });
        concerned.extend(self.concerned_by(id));
        concerned
    }

    /// Takes a workflow out. Returns the workflows that its definition concerned.
    fn take_out(&mut self, id: &WorkflowId, shares_go: bool) -> BTreeSet<WorkflowId> {
        let mut concerned = self.concerned_by(id);
        let Some(OwnedWorkflow { project, references, shares }) = self.workflows.remove(id) else { return concerned };
        for referent in references.iter().map(Reference::referent) {
            let ids = self.referring.get_mut(&referent);
            if ids.is_some_and(|ids| ids.remove(id) && ids.is_empty()) {
                self.referring.remove(&referent);
            }
        }
        if let Some(times) = self.declared.get_mut(&project).and_then(|all| all.get_mut(&shares)) {
            *times -= 1;
            if *times == 0 {
                self.declared.entry(project.clone()).or_default().remove(&shares);
                if shares_go {
                    concerned.extend(self.concerned_by_shares(&project));
                }
            }
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

    /// The workflows whose references the definition of a workflow may decide about, but for what it shares.
    fn concerned_by(&self, id: &WorkflowId) -> BTreeSet<WorkflowId> {
        self.referring(&Referent::Workflow(id.clone())).chain([id]).cloned().collect()
    }

    /// The workflows whose references a declaration of a project may decide about.
    fn concerned_by_shares(&self, project: &str) -> BTreeSet<WorkflowId> {
        let own = self.members.get(project).into_iter().flatten().cloned().map(Referent::Workflow);
        let mut concerned: BTreeSet<WorkflowId> =
            own.flat_map(|one| self.referring(&one).cloned().collect::<Vec<_>>()).collect();
        concerned.extend(self.named_after(project));
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
        let mut projects = ends.filter_map(|end| self.members.get_key_value(name.get(..end)?));
        projects.next_back().map(|(project, _)| project)
    }

    /// The project that a thing belongs to: of a workflow its own, else the one whose name it begins with. None for a plain name, which
    /// is common to all projects: no project can take it by being the first to use or to declare it.
    #[must_use]
    pub fn owner(&self, referent: &Referent) -> Option<&Arc<str>> {
        match referent {
            Referent::Workflow(id) => self.project_of(id).or_else(|| self.project_named(id.as_str())),
            Referent::Dataset(name) | Referent::Signal(name) | Referent::Bucket(name) => self.project_named(name),
        }
    }

    /// Whether a project allows another one a reference.
    #[must_use]
    pub fn consents(&self, owner: &str, project: &str, reference: &Reference) -> bool {
        let mut declared = self.declared.get(owner).into_iter().flat_map(BTreeMap::keys);
        owner == project
            || reference.consent() == Consent::None
            || declared.any(|shares| shares.allow(owner, project, reference))
    }

    /// Whether a reference of a project is allowed: it is to the project itself, to what is common, or its owner consents.
    #[must_use]
    pub fn allows(&self, project: &str, reference: &Reference) -> bool {
        self.owner(&reference.referent()).is_none_or(|owner| self.consents(owner, project, reference))
    }

    /// The references of a workflow's present definition that are not allowed.
    #[must_use]
    pub fn unshared(&self, id: &WorkflowId) -> Vec<MissingConsent> {
        let Some(member) = self.workflows.get(id) else { return Vec::new() };
        self.refused(id, &member.project, &member.references)
    }

    /// The references that stand in the way of a definition which is about to be deployed.
    #[must_use]
    pub fn unshared_by(&self, definition: &Workflow) -> Vec<MissingConsent> {
        let project: Arc<str> = definition.project.as_str().into();
        self.refused(&definition.id, &project, &definition.references())
    }

    /// The consent that a script of a project lacks to read a bucket of registers; none where it may.
    #[must_use]
    pub fn unshared_read(&self, project: &Arc<str>, bucket: &Arc<str>) -> Option<MissingConsent> {
        let reference = Reference::Registers(bucket.clone());
        let is_allowed = self.allows(project, &reference);
        (!is_allowed).then(|| MissingConsent { workflow: None, project: project.clone(), reference })
    }

    fn refused(&self, id: &WorkflowId, project: &Arc<str>, references: &[Reference]) -> Vec<MissingConsent> {
        let refused = references.iter().filter(|one| one.consent() != Consent::None && !self.allows(project, one));
        let unshared = |reference: &Reference| MissingConsent {
            workflow: Some(id.clone()),
            project: project.clone(),
            reference: reference.clone(),
        };
        refused.map(unshared).collect()
    }

    /// All references that are not allowed.
    #[must_use]
    pub fn all_unshared(&self) -> Vec<MissingConsent> {
        self.workflows.keys().flat_map(|id| self.unshared(id)).collect()
    }

    /// The datasets and signals with plain names that definitions of several projects wait for, with these projects: facts about them need
    /// the right for all projects.
    #[must_use]
    pub fn common(&self) -> Vec<(Referent, BTreeSet<Arc<str>>)> {
        let of_names = self.referring.iter().filter(|(one, _)| !matches!(one, Referent::Workflow(_)));
        let plain = of_names.filter(|(referent, _)| self.owner(referent).is_none());
        let waiting = plain.map(|(referent, ids)| {
            let projects = ids.iter().filter_map(|id| self.project_of(id)).cloned().collect::<BTreeSet<_>>();
            (referent.clone(), projects)
        });
        waiting.filter(|(_, projects)| projects.len() > 1).collect()
    }
}

#[cfg(test)]
mod tests;
