//! One relation, asked from both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cross::cross;
use super::flaw::Flaw;
use super::relatives::{Children, Job, Parents};
use super::template::LONGEST_JOB_ID;
use super::unwritable::note;
use super::{Direction, JobIdError, JobTemplate, Kind, NamedJobs, Relation, TwoWay, shown};
use crate::id::WorkflowId;
use crate::key::SlotRef;

/// The graph of jobs: workflows with their dependencies, put together and checked by [`JobGraph::new`].
#[derive(Debug, Clone, Default)]
pub struct JobGraph {
    pub(super) nodes: Vec<Node>,
    by_id: BTreeMap<WorkflowId, usize>,
}

/// A workflow.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) id: WorkflowId,
    pub(super) template: JobTemplate,
    pub(super) kinds: BTreeMap<Arc<str>, Kind>,
    pub(super) groups: Vec<GroupLink>,
    /// Groups that functions know.
    pub(super) asked: Vec<FunctionGroup>,
    pub(super) children: Vec<Edge>,
    /// The children of which it may be a parent by functions, each with the index into its `asked`.
    pub(super) asks: Vec<(usize, usize)>,
}

/// A group of a workflow that functions know.
#[derive(Debug, Clone)]
pub(super) struct FunctionGroup {
    pub(super) name: Arc<str>,
    pub(super) functions: TwoWay,
    pub(super) parents: Vec<usize>,
}

/// An edge to a child of a workflow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) child: usize,
    pub(super) group: usize,
    pub(super) member: usize,
}

/// A group of a workflow, as the child of its members.
#[derive(Debug, Clone)]
pub(super) struct GroupLink {
    pub(super) name: Arc<str>,
    /// The values of each of the child's identifiers that the group is about; none means all.
    pub(super) allowed: Vec<Option<Domain>>,
    pub(super) members: Vec<Ways>,
    /// Whether two members are about the same workflow, so that they may name the same job.
    overlaps: bool,
}

/// Both ways between a child and one of its parent workflows.
#[derive(Debug, Clone)]
pub(super) struct Ways {
    pub(super) parent: usize,
    /// The origin of each of the parent's identifiers.
    pub(super) from: Vec<From>,
    /// For each of the child's identifiers the index of the parent's that is the same; none means all that the group allows.
    pub(super) to: Vec<Option<usize>>,
    pub(super) literals: Option<Vec<Literal>>,
}

/// The origin of an identifier of a parent.
#[derive(Debug, Clone)]
pub(super) enum From {
    /// It is each of these, whatever the child is.
    Listed(Domain),
    /// It is the child's, at this position.
    Child(usize),
    /// A literal job id says it.
    Anything,
}

/// A job that is named outright.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    pub(super) id: Arc<str>,
    pub(super) values: Vec<Arc<str>>,
}

/// Values in the order in which they were written, found quickly.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    pub(super) values: Vec<Arc<str>>,
    sorted: Vec<Arc<str>>,
}

impl Domain {
    pub(super) fn new(values: Vec<Arc<str>>) -> Domain {
        let mut sorted = values.clone();
        sorted.sort();
        Domain { values, sorted }
    }

    pub(super) fn has(&self, value: &str) -> bool {
        self.sorted.binary_search_by(|one| (**one).cmp(value)).is_ok()
    }
}

/// The reason that a question about a job has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// No such workflow.
    #[error("no workflow with job ids is named \"{0}\"")]
    NoWorkflow(WorkflowId),
    /// Not one of its job ids.
    #[error("{workflow}: {error}")]
    Id {
        /// The workflow of which it was meant to be a job id.
        workflow: WorkflowId,
        /// The error in the job id.
        #[source]
        error: JobIdError,
    },
}

impl GroupLink {
    pub(super) fn new(name: &str, allowed: Vec<Option<Domain>>, members: Vec<Ways>) -> GroupLink {
        let mut seen = BTreeSet::new();
        let overlaps = !members.iter().all(|ways| seen.insert(ways.parent));
        GroupLink { name: name.into(), allowed, members, overlaps }
    }

    /// Whether the group is about this child.
    pub(super) fn suits(&self, child: &[&Arc<str>]) -> bool {
        let allowed =
            |(allowed, value): (&Option<Domain>, &&Arc<str>)| allowed.as_ref().is_none_or(|all| all.has(value));
        self.allowed.iter().zip(child).all(allowed) && self.has_literals(child)
    }

    fn has_literals(&self, child: &[&Arc<str>]) -> bool {
        self.members.iter().all(|ways| ways.has_literal(child))
    }
}

impl Ways {
    /// Whether one of the jobs that are named outright is a child's, where there are such.
    pub(super) fn has_literal(&self, child: &[&Arc<str>]) -> bool {
        self.literals.as_ref().is_none_or(|all| all.iter().any(|one| self.is_for(one, child)))
    }

    /// Whether a literal job agrees with a child in what both have.
    fn is_for(&self, literal: &Literal, child: &[&Arc<str>]) -> bool {
        let same = |(position, value): (&Option<usize>, &&Arc<str>)| {
            position.is_none_or(|position| literal.values.get(position) == Some(*value))
        };
        self.to.iter().zip(child).all(same)
    }

    /// Whether a job may be a parent at all.
    fn takes(&self, parent: &[Arc<str>]) -> bool {
        match &self.literals {
            Some(literals) => literals.iter().any(|one| one.values == parent),
            None => self.from.iter().zip(parent).all(|(from, value)| match from {
                From::Listed(listed) => listed.has(value),
                From::Child(_) | From::Anything => true,
            }),
        }
    }

    /// Visits the id of each parent of a child, or why that can't be written.
    fn each_parent(&self, template: &JobTemplate, child: &[&Arc<str>], mut visit: impl FnMut(Result<Arc<str>, &Flaw>)) {
        if let Some(literals) = &self.literals {
            literals.iter().filter(|one| self.is_for(one, child)).for_each(|one| visit(Ok(one.id.clone())));
            return;
        }
        let mut flaw = None;
        let mut lists: Vec<&[Arc<str>]> = Vec::with_capacity(self.from.len());
        for (position, from) in self.from.iter().enumerate() {
            match from {
                From::Listed(listed) => lists.push(&listed.values),
                From::Child(at) => {
                    flaw = flaw.or_else(|| template.flaw(position, child[*at]));
                    lists.push(std::slice::from_ref(child[*at]));
                }
                // Only literal job ids leave an identifier open.
                From::Anything => return,
            }
        }
        each_id(template, &lists, flaw, |_, id| visit(id));
    }
}

/// Visits the job id of each choice of values, or why it can't be written. A flaw of a value that all choices have is known beforehand.
fn each_id(
    template: &JobTemplate,
    lists: &[&[Arc<str>]],
    flaw: Option<Flaw>,
    mut visit: impl FnMut(&[&Arc<str>], Result<Arc<str>, &Flaw>),
) {
    let mut id = String::new();
    cross(lists, |choice| {
        id.clear();
        template.write(choice.iter().map(|value| &***value), &mut id);
        match &flaw {
            Some(flaw) => visit(choice, Err(flaw)),
            None if id.len() > LONGEST_JOB_ID => visit(choice, Err(&template.too_long())),
            None => visit(choice, Ok(id.as_str().into())),
        }
    });
}

impl JobGraph {
    pub(super) fn of(nodes: Vec<Node>, by_id: BTreeMap<WorkflowId, usize>) -> JobGraph {
        JobGraph { nodes, by_id }
    }

    pub(super) fn read(&self, workflow: &WorkflowId, id: &str) -> Result<(&Node, Vec<Arc<str>>), JobError> {
        let at = self.by_id.get(workflow).ok_or_else(|| JobError::NoWorkflow(workflow.clone()))?;
        let node = &self.nodes[*at];
        let values = node.template.read(&node.kinds, id);
        let values = values.map_err(|error| JobError::Id { workflow: workflow.clone(), error })?;
        Ok((node, values))
    }

    /// A job id in its normal form.
    ///
    /// # Errors
    /// When there is no such workflow, or it is none of its job ids.
    pub fn job(&self, workflow: &WorkflowId, id: &str) -> Result<Job, JobError> {
        let (node, values) = self.read(workflow, id)?;
        Ok(Job { workflow: workflow.clone(), id: node.template.fill(&values) })
    }

    /// The parents of a job: one entry for each group that is about it, in their order. All jobs of any one of them are
    /// enough; none at all means that it waits for nothing.
    ///
    /// # Errors
    /// When there is no such workflow, or it is none of its job ids.
    pub fn parents(&self, workflow: &WorkflowId, id: &str) -> Result<Vec<Parents>, JobError> {
        let (node, values) = self.read(workflow, id)?;
        let values: Vec<&Arc<str>> = values.iter().collect();
        let suiting = node.groups.iter().filter(|group| group.suits(&values));
        Ok(suiting.map(|group| self.of_group(group, &values)).collect())
    }

    fn of_group(&self, group: &GroupLink, child: &[&Arc<str>]) -> Parents {
        let mut found = Parents { group: group.name.clone(), jobs: Vec::new(), unwritable: Vec::new() };
        let mut seen = BTreeSet::new();
        for ways in &group.members {
            let parent = &self.nodes[ways.parent];
            ways.each_parent(&parent.template, child, |id| match id {
                Ok(id) if !group.overlaps || seen.insert((ways.parent, id.clone())) => {
                    found.jobs.push(Job { workflow: parent.id.clone(), id });
                }
                Ok(_) => {}
                Err(why) => note(&mut found.unwritable, &parent.id, &group.name, why),
            });
        }
        found
    }

    /// The children of a job.
    ///
    /// # Errors
    /// When there is no such workflow, or it is none of its job ids.
    pub fn children(&self, workflow: &WorkflowId, id: &str) -> Result<Children, JobError> {
        let (node, values) = self.read(workflow, id)?;
        let mut found = Children::default();
        let mut seen = BTreeSet::new();
        for edge in &node.children {
            let child = &self.nodes[edge.child];
            let group = &child.groups[edge.group];
            each_child(child, group, &group.members[edge.member], &values, |id| match id {
                Ok(id) if !group.overlaps || seen.insert((edge.child, edge.group, id.clone())) => {
                    found.jobs.push((Job { workflow: child.id.clone(), id }, group.name.clone()));
                }
                Ok(_) => {}
                Err(why) => note(&mut found.unwritable, &child.id, &group.name, why),
            });
        }
        Ok(found)
    }

    /// The questions to functions that give all parents of a job; a text that is no job has none.
    #[must_use]
    pub fn asks_parents(&self, workflow: &WorkflowId, id: &str) -> Vec<Relation> {
        let Some(node) = self.node(workflow).filter(|node| !node.asked.is_empty()) else { return Vec::new() };
        let Ok((_, values)) = self.read(workflow, id) else { return Vec::new() };
        let question = |group: &FunctionGroup| self.question(node, &values, id, node, group, Direction::Parents);
        node.asked.iter().map(question).collect()
    }

    /// The questions to functions that give all children of a job.
    #[must_use]
    pub fn asks_children(&self, workflow: &WorkflowId, id: &str) -> Vec<Relation> {
        let Some(node) = self.node(workflow).filter(|node| !node.asks.is_empty()) else { return Vec::new() };
        let Ok((_, values)) = self.read(workflow, id) else { return Vec::new() };
        let question = |(child, group): &(usize, usize)| {
            let child = &self.nodes[*child];
            self.question(node, &values, id, child, &child.asked[*group], Direction::Children)
        };
        node.asks.iter().map(question).collect()
    }

    fn question(
        &self,
        of: &Node,
        values: &[Arc<str>],
        id: &str,
        child: &Node,
        group: &FunctionGroup,
        direction: Direction,
    ) -> Relation {
        let function = match direction {
            Direction::Parents => &group.functions.parents,
            Direction::Children => &group.functions.children,
        };
        Relation {
            of: SlotRef::job(of.id.clone(), id.into()),
            child: child.id.clone(),
            group: group.name.clone(),
            direction,
            function: function.clone(),
            identifiers: of.template.identifiers().cloned().zip(values.iter().cloned()).collect(),
        }
    }

    /// The jobs that a function named, each once.
    ///
    /// # Errors
    /// In words, when it names a workflow that its group does not, or none of that workflow's jobs.
    pub fn answered(&self, relation: &Relation, named: &NamedJobs) -> Result<Vec<Job>, String> {
        let child = self.node(&relation.child).ok_or_else(|| format!("no workflow is named \"{}\"", relation.child))?;
        let group = child.asked.iter().find(|group| group.name == relation.group);
        let group = group.ok_or_else(|| format!("{} has no group {} any more", relation.child, relation.group))?;
        let mut jobs: Vec<Job> = Vec::with_capacity(named.len());
        let mut seen = BTreeSet::new();
        for (workflow, values) in named {
            let expected = match relation.direction {
                Direction::Parents => group.functions.workflows.contains(workflow),
                Direction::Children => *workflow == relation.child,
            };
            if !expected {
                return Err(format!("a function of {} names {workflow}, which its group does not", relation.child));
            }
            let job = self.named(workflow, values)?;
            if seen.insert(job.clone()) {
                jobs.push(job);
            }
        }
        Ok(jobs)
    }

    /// The job of a workflow with these values.
    fn named(&self, workflow: &WorkflowId, values: &BTreeMap<Arc<str>, Arc<str>>) -> Result<Job, String> {
        let node = self.node(workflow).ok_or_else(|| format!("no workflow is named \"{workflow}\""))?;
        let value = |name: &Arc<str>| {
            let value = values.get(name).ok_or_else(|| format!("a job of {workflow} is named without {name}"))?;
            let kind = node.kinds.get(name).cloned().unwrap_or_default();
            kind.normal(value)
                .map_err(|expected| format!("{name} of {workflow} is \"{}\", expected {expected}", shown(value)))
        };
        let values = node.template.identifiers().map(value).collect::<Result<Vec<_>, _>>()?;
        let id = node.template.id_of(&values).map_err(|why| format!("a job of {workflow} can't be named: {why}"))?;
        Ok(Job { workflow: workflow.clone(), id })
    }

    /// Whether there are groups that functions know.
    #[must_use]
    pub fn asks_functions(&self) -> bool {
        self.nodes.iter().any(|node| !node.asked.is_empty())
    }

    pub(super) fn node(&self, workflow: &WorkflowId) -> Option<&Node> {
        self.by_id.get(workflow).map(|at| &self.nodes[*at])
    }
}

/// Visits the id of each child that a job has by one way, or why that can't be written.
fn each_child(
    child: &Node,
    group: &GroupLink,
    ways: &Ways,
    parent: &[Arc<str>],
    mut visit: impl FnMut(Result<Arc<str>, &Flaw>),
) {
    if !ways.takes(parent) {
        return;
    }
    let mut flaw = None;
    let mut lists: Vec<&[Arc<str>]> = Vec::with_capacity(ways.to.len());
    for (position, (same, allowed)) in ways.to.iter().zip(&group.allowed).enumerate() {
        match (same, allowed) {
            (None, Some(allowed)) => lists.push(&allowed.values),
            (None, None) => return,
            (Some(at), allowed) => {
                let value = &parent[*at];
                if !allowed.as_ref().is_none_or(|all| all.has(value)) {
                    return;
                }
                flaw = flaw.or_else(|| child.template.flaw(position, value));
                lists.push(std::slice::from_ref(value));
            }
        }
    }
    each_id(&child.template, &lists, flaw, |values, id| {
        if group.has_literals(values) {
            visit(id);
        }
    });
}
