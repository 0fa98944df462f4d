//! Compiles definitions of jobs into a graph that answers questions. All mistakes are found here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::relation::{Domain, Edge, From, FunctionGroup, GroupLink, JobGraph, Literal, Node, Ways};
use super::{Group, JobKeys, Kind, Member, ValueFilter};
use crate::id::{WorkflowId, is_invisible};

/// Of which kind a fault of a graph is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The definition of a workflow has a mistake of its own.
    Mistake,
    /// A group contradicts the other workflows.
    Relation,
    /// A workflow waits for itself.
    Circle,
    /// It depends on one that is left out.
    Dormant,
}

/// A fault of a graph, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Of which kind it is.
    pub kind: FaultKind,
    /// The workflow with the fault.
    pub workflow: WorkflowId,
    /// In which of its groups.
    pub group: Option<String>,
    /// In which member of the group, counted from 1.
    pub member: Option<usize>,
    /// The problem, in words.
    pub what: String,
}

impl Fault {
    fn of(kind: FaultKind, workflow: &WorkflowId, what: String) -> Fault {
        Fault { kind, workflow: workflow.clone(), group: None, member: None, what }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.workflow)?;
        if let Some(group) = &self.group {
            write!(f, ", group {group}")?;
        }
        if let Some(member) = self.member {
            write!(f, ", member {member}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl JobGraph {
    /// Puts together those of the workflows that make sense together; of the others, why they don't, in words.
    #[must_use]
    pub fn sound<'a>(
        workflows: impl Iterator<Item = (&'a WorkflowId, &'a JobKeys)> + Clone,
    ) -> (JobGraph, BTreeMap<WorkflowId, String>) {
        let (graph, faults) = JobGraph::fitting(workflows);
        let mut faulty: BTreeMap<WorkflowId, String> = BTreeMap::new();
        for fault in faults {
            let text = fault.to_string();
            faulty.entry(fault.workflow).and_modify(|known| *known = format!("{known}; {text}")).or_insert(text);
        }
        (graph, faulty)
    }

    /// Puts together those of the workflows that make sense together. What depends on one that is left out is left out, too, and
    /// has a fault that names the first cause.
    #[must_use]
    pub fn fitting<'a>(
        workflows: impl Iterator<Item = (&'a WorkflowId, &'a JobKeys)> + Clone,
    ) -> (JobGraph, Vec<Fault>) {
        let mistake = |(id, keys): (&WorkflowId, &JobKeys)| {
            Some(Fault::of(FaultKind::Mistake, id, keys.mistake.as_ref()?.to_string()))
        };
        let mut found: Vec<Fault> = workflows.clone().filter_map(mistake).collect();
        let mut faults = Vec::new();
        let mut left_out: BTreeSet<WorkflowId> = BTreeSet::new();
        loop {
            let before = left_out.len();
            left_out.extend(found.iter().map(|fault| fault.workflow.clone()));
            let depending = depending(workflows.clone(), &found, &left_out);
            left_out.extend(depending.iter().map(|fault| fault.workflow.clone()));
            faults.append(&mut found);
            faults.extend(depending);
            let kept = workflows.clone().filter(|(id, _)| !left_out.contains(*id));
            found = match JobGraph::new(kept.map(|(id, keys)| (id.clone(), keys.clone())).collect()) {
                Ok(graph) => return (graph, faults),
                // A fault of no workflow would be found again for ever.
                Err(_) if before > 0 && before == left_out.len() => return (JobGraph::default(), faults),
                Err(found) => found,
            };
        }
    }

    /// Puts workflows together.
    ///
    /// # Errors
    /// Everything that is wrong with them, each with its place.
    pub fn new(workflows: Vec<(WorkflowId, JobKeys)>) -> Result<JobGraph, Vec<Fault>> {
        let by_id = workflows.iter().enumerate().map(|(at, (id, _))| (id.clone(), at)).collect();
        let mut compiler = Compiler { workflows: &workflows, by_id, asked: Vec::new(), faults: Vec::new() };
        let linked: Vec<Vec<GroupLink>> = (0..workflows.len()).map(|at| compiler.workflow(at)).collect();
        let Compiler { by_id, mut faults, asked, .. } = compiler;
        let mut nodes: Vec<Node> = workflows
            .into_iter()
            .zip(linked)
            .map(|((id, keys), groups)| Node {
                id,
                template: keys.template,
                kinds: keys.identifiers,
                groups,
                asked: Vec::new(),
                children: Vec::new(),
                asks: Vec::new(),
            })
            .collect();
        for (child, group) in asked {
            let number = nodes[child].asked.len();
            for parent in &group.parents {
                nodes[*parent].asks.push((child, number));
            }
            nodes[child].asked.push(group);
        }
        for edge in edges(&nodes) {
            nodes[edge.0].children.push(edge.1);
        }
        faults.extend(cycle(&nodes));
        if faults.is_empty() { Ok(JobGraph::of(nodes, by_id)) } else { Err(faults) }
    }
}

/// The workflows that depend on those at fault, directly or not, and are not left out yet.
fn depending<'a>(
    workflows: impl Iterator<Item = (&'a WorkflowId, &'a JobKeys)>,
    found: &[Fault],
    left_out: &BTreeSet<WorkflowId>,
) -> Vec<Fault> {
    if found.is_empty() {
        return Vec::new();
    }
    let mut children: BTreeMap<&WorkflowId, Vec<&WorkflowId>> = BTreeMap::new();
    for (id, keys) in workflows.filter(|(id, _)| !left_out.contains(*id)) {
        keys.parents().for_each(|parent| children.entry(parent).or_default().push(id));
    }
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    let mut next: Vec<(&WorkflowId, &Fault)> = found.iter().map(|fault| (&fault.workflow, fault)).collect();
    while let Some((parent, cause)) = next.pop() {
        for child in children.get(parent).into_iter().flatten().filter(|child| seen.insert((**child).clone())) {
            let what = format!("it depends on {}, which lies dormant: {}", cause.workflow, cause.what);
            faults.push(Fault::of(FaultKind::Dormant, child, what));
            next.push((child, cause));
        }
    }
    faults.sort_by(|a, b| a.workflow.cmp(&b.workflow));
    faults
}

fn edges(nodes: &[Node]) -> Vec<(usize, Edge)> {
    let mut found = Vec::new();
    for (child, node) in nodes.iter().enumerate() {
        for (group, linked) in node.groups.iter().enumerate() {
            for (member, ways) in linked.members.iter().enumerate() {
                found.push((ways.parent, Edge { child, group, member }));
            }
        }
    }
    found
}

/// A workflow that waits for itself, by whatever way round.
fn cycle(nodes: &[Node]) -> Option<Fault> {
    let mut missing: Vec<usize> = nodes.iter().map(|node| parents(node).len()).collect();
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|at| missing[*at] == 0).collect();
    while let Some(done) = ready.pop() {
        let asking = nodes[done].asks.iter().map(|(child, _)| *child);
        let children: BTreeSet<usize> = nodes[done].children.iter().map(|edge| edge.child).chain(asking).collect();
        for child in children {
            missing[child] -= 1;
            if missing[child] == 0 {
                ready.push(child);
            }
        }
    }
    // Who follows parents that are left from one that is left comes round.
    let first = missing.iter().position(|missing| *missing > 0)?;
    let mut way = vec![first];
    let back = loop {
        let next = parents(&nodes[*way.last()?]).into_iter().find(|parent| missing[*parent] > 0)?;
        if let Some(at) = way.iter().position(|seen| *seen == next) {
            break at;
        }
        way.push(next);
    };
    let mut round: Vec<&str> = way[back..].iter().map(|at| nodes[*at].id.as_str()).collect();
    round.push(nodes[way[back]].id.as_str());
    let what = format!("it waits for itself: {}", round.join(" waits for "));
    Some(Fault::of(FaultKind::Circle, &nodes[way[back]].id, what))
}

fn parents(node: &Node) -> BTreeSet<usize> {
    let asked = node.asked.iter().flat_map(|group| group.parents.iter().copied());
    node.groups.iter().flat_map(|group| &group.members).map(|ways| ways.parent).chain(asked).collect()
}

struct Compiler<'a> {
    workflows: &'a [(WorkflowId, JobKeys)],
    by_id: BTreeMap<WorkflowId, usize>,
    /// Groups that functions know, each with its workflow.
    asked: Vec<(usize, FunctionGroup)>,
    faults: Vec<Fault>,
}

/// A member for one of its workflows, with the lists that hold for it.
struct Single<'a> {
    /// The number of the member in its group, from 1.
    number: usize,
    parent: usize,
    lists: BTreeMap<&'a str, Vec<Arc<str>>>,
    job_ids: Option<&'a [Arc<str>]>,
}

impl<'a> Compiler<'a> {
    fn keys(&self, at: usize) -> &'a JobKeys {
        &self.workflows[at].1
    }

    fn fault(&mut self, at: usize, group: Option<&str>, member: Option<usize>, what: String) {
        let workflow = self.workflows[at].0.clone();
        let kind = FaultKind::Relation;
        self.faults.push(Fault { kind, workflow, group: group.map(str::to_owned), member, what });
    }

    fn workflow(&mut self, at: usize) -> Vec<GroupLink> {
        let keys = self.keys(at);
        if let Some(mistake) = &keys.mistake {
            self.faults.push(Fault::of(FaultKind::Mistake, &self.workflows[at].0, mistake.to_string()));
            return Vec::new();
        }
        for (name, _) in keys.domains.iter().filter(|(name, _)| keys.template.position(name).is_none()) {
            self.fault(
                at,
                None,
                None,
                format!("it lists values of {name}, which is no part of {}", keys.template.as_str()),
            );
        }
        for (name, values) in &keys.domains {
            match normal(name, values, keys.identifiers.get(name)) {
                Ok(values) => self.told_apart(at, at, None, None, name, &values),
                Err(what) => self.fault(at, None, None, what),
            }
        }
        if let Some(odd) = keys.template.odd_letter() {
            let what = format!("its job ids can't contain {odd:?}, expected other texts in {}", keys.template.as_str());
            self.fault(at, None, None, what);
        }
        let mut names = BTreeSet::new();
        for group in &keys.depends_on {
            if !names.insert(&group.name) {
                self.fault(at, Some(&group.name), None, "there is another group of this name".to_owned());
            }
        }
        keys.depends_on.iter().filter_map(|group| self.group(at, group)).collect()
    }

    fn group(&mut self, at: usize, group: &'a Group) -> Option<GroupLink> {
        let before = self.faults.len();
        if group.functions.is_some() {
            self.functions(at, group);
            return None;
        }
        if group.members.is_empty() {
            self.fault(at, Some(&group.name), None, "it has no members".to_owned());
        }
        let mut singles = Vec::new();
        for (number, member) in group.members.iter().enumerate() {
            singles.extend(self.member(at, group, number + 1, member));
        }
        let allowed = self.allowed(at, group, &singles);
        let members: Vec<Ways> = singles.iter().map(|single| self.ways(at, group, single, &allowed)).collect();
        (self.faults.len() == before).then(|| GroupLink::new(&group.name, allowed, members))
    }

    /// A group that functions know.
    fn functions(&mut self, at: usize, group: &'a Group) {
        let Some(functions) = &group.functions else { return };
        if !group.members.is_empty() {
            let what = "it has members and functions, expected one of them".to_owned();
            self.fault(at, Some(&group.name), None, what);
        }
        if functions.workflows.is_empty() {
            self.fault(at, Some(&group.name), None, "it names no workflow".to_owned());
        }
        let mut asked =
            FunctionGroup { name: group.name.as_str().into(), functions: functions.clone(), parents: Vec::new() };
        for id in &functions.workflows {
            match self.by_id.get(id) {
                Some(parent) => asked.parents.push(*parent),
                None => self.fault(at, Some(&group.name), None, format!("no workflow is named \"{id}\"")),
            }
        }
        self.asked.push((at, asked));
    }

    /// A member for each of its workflows.
    fn member(&mut self, at: usize, group: &Group, number: usize, member: &'a Member) -> Vec<Single<'a>> {
        let mut found = Vec::new();
        let fault = |compiler: &mut Self, what| compiler.fault(at, Some(&group.name), Some(number), what);
        if member.workflows.is_empty() {
            fault(self, "it names no workflow".to_owned());
        }
        if member.job_ids.as_ref().is_some_and(Vec::is_empty) {
            fault(self, "its list of job_id is empty".to_owned());
        }
        for id in &member.workflows {
            match self.by_id.get(id) {
                Some(parent) => found.push(*parent),
                None => fault(self, format!("no workflow is named \"{id}\"")),
            }
        }
        for (name, wanted) in &member.values {
            let has = |at: &usize| self.keys(*at).template.position(name).is_some();
            let has_parent = found.iter().any(has);
            if !has_parent && (*wanted == ValueFilter::All || !has(&at)) {
                fault(self, format!("no workflow here has an identifier {name}"));
            }
        }
        found.into_iter().map(|parent| self.single(at, group, number, member, parent)).collect()
    }

    fn single(&mut self, at: usize, group: &Group, number: usize, member: &'a Member, parent: usize) -> Single<'a> {
        let mut lists = BTreeMap::new();
        for (name, wanted) in &member.values {
            let theirs = self.keys(parent);
            let has = theirs.template.position(name).is_some();
            let values = match wanted {
                ValueFilter::All if !has => continue,
                ValueFilter::All => theirs.domains.get(name).cloned().ok_or_else(|| {
                    format!("all {name} of {}: that workflow does not say which there are", self.workflows[parent].0)
                }),
                ValueFilter::Of(values) => {
                    let kind = if has { theirs } else { self.keys(at) }.identifiers.get(name);
                    normal(name, values, kind)
                }
            };
            match values {
                Ok(values) if values.is_empty() => {
                    self.fault(at, Some(&group.name), Some(number), format!("its list of {name} is empty"));
                }
                Ok(values) => {
                    lists.insert(&**name, values);
                }
                Err(what) => self.fault(at, Some(&group.name), Some(number), what),
            }
        }
        Single { number, parent, lists, job_ids: member.job_ids.as_deref() }
    }

    /// The values that each identifier of the child may have, where they are bounded.
    fn allowed(&mut self, at: usize, group: &Group, singles: &[Single<'a>]) -> Vec<Option<Domain>> {
        let keys = self.keys(at);
        let mut allowed = Vec::new();
        for name in keys.template.identifiers() {
            let mut bounds = singles.iter().filter_map(|single| single.lists.get(&**name).or(keys.domains.get(name)));
            let Some(first) = bounds.next() else {
                allowed.push(None);
                continue;
            };
            let mut common = first.clone();
            let all_have = !first.is_empty() && bounds.clone().all(|values| !values.is_empty());
            bounds.for_each(|values| common.retain(|value| values.contains(value)));
            if common.is_empty() && all_have {
                let what = format!("no {name} belongs to all its members, so it is about no job");
                self.fault(at, Some(&group.name), None, what);
            }
            self.told_apart(at, at, Some(group), None, name, &common);
            allowed.push(Some(Domain::new(common)));
        }
        allowed
    }

    fn ways(&mut self, at: usize, group: &Group, single: &Single<'a>, allowed: &[Option<Domain>]) -> Ways {
        let (ours, theirs) = (self.keys(at), self.keys(single.parent));
        let mut from = Vec::new();
        for name in theirs.template.identifiers() {
            let what = match (single.lists.get(&**name), ours.template.position(name)) {
                (Some(list), _) => {
                    self.told_apart(at, single.parent, Some(group), Some(single.number), name, list);
                    from.push(From::Listed(Domain::new(list.clone())));
                    continue;
                }
                (None, Some(position)) if ours.identifiers.get(name) == theirs.identifiers.get(name) => {
                    from.push(From::Child(position));
                    continue;
                }
                (None, Some(_)) => {
                    format!("{name} is of another kind in {}", self.workflows[single.parent].0)
                }
                // Literal job ids say everything themselves.
                (None, None) if single.job_ids.is_some() => {
                    from.push(From::Anything);
                    continue;
                }
                (None, None) => format!(
                    "nothing says which {name} of {} it waits for: list them, or say \"all\"",
                    self.workflows[single.parent].0
                ),
            };
            self.fault(at, Some(&group.name), Some(single.number), what);
        }
        let mut to = Vec::new();
        for (position, name) in ours.template.identifiers().enumerate() {
            let same = theirs.template.position(name).filter(|_| !single.lists.contains_key(&**name));
            if same.is_none() && allowed.get(position).is_none_or(Option::is_none) {
                let what = format!(
                    "nothing says which {name} a job of {} leads to: list values of {name}",
                    self.workflows[single.parent].0
                );
                self.fault(at, Some(&group.name), Some(single.number), what);
            }
            to.push(same);
        }
        let literals = single.job_ids.map(|ids| self.literals(at, group, single, ids));
        Ways { parent: single.parent, from, to, literals }
    }

    /// Faults values that could not be told from what follows them in the job ids of a workflow.
    fn told_apart(
        &mut self,
        at: usize,
        of: usize,
        group: Option<&Group>,
        member: Option<usize>,
        name: &str,
        values: &[Arc<str>],
    ) {
        let template = &self.keys(of).template;
        let Some(position) = template.position(name) else { return };
        for flaw in values.iter().filter_map(|value| template.flaw(position, value)) {
            self.fault(at, group.map(|group| &*group.name), member, flaw.to_string());
        }
    }

    fn literals(&mut self, at: usize, group: &Group, single: &Single<'a>, ids: &[Arc<str>]) -> Vec<Literal> {
        let theirs = self.keys(single.parent);
        let mut found: Vec<Literal> = Vec::new();
        for id in ids {
            match theirs.template.read(&theirs.identifiers, id) {
                Ok(values) if found.iter().all(|one| one.values != values) => {
                    found.push(Literal { id: theirs.template.fill(&values), values });
                }
                Ok(_) => {
                    self.fault(at, Some(&group.name), Some(single.number), format!("it lists the job \"{id}\" twice"))
                }
                Err(error) => self.fault(at, Some(&group.name), Some(single.number), error.to_string()),
            }
        }
        found
    }
}

/// A list of values in their normal form, each once.
fn normal(name: &str, values: &[Arc<str>], kind: Option<&Kind>) -> Result<Vec<Arc<str>>, String> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        if value.contains('/') || value.contains(is_invisible) {
            return Err(format!("{name} lists {value:?}, expected no slash and no invisible character"));
        }
        let value = match kind {
            None => value.clone(),
            Some(kind) => {
                kind.normal(value).map_err(|expected| format!("{name} lists \"{value}\", expected {expected}"))?
            }
        };
        if !seen.insert(value.clone()) {
            return Err(format!("{name} lists \"{value}\" twice"));
        }
        found.push(value);
    }
    Ok(found)
}
