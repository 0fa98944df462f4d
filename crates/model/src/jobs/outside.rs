//! Jobs that no group is about. They wait for nothing, as their workflow says; but where an identifier was mistyped, that is
//! not what was meant, so the reason is given.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::relation::{GroupLink, JobGraph, Node};
use super::shown;
use super::unwritable::told;
use crate::id::WorkflowId;

/// Values that are named in full; of more the first half, and a number.
const NAMED: usize = 6;
/// The most groups whose reasons are listed.
const GROUPS: usize = 3;

impl JobGraph {
    /// The reason that a job can never run, in words: each group that is about it wants a parent whose id can't be written. None where a
    /// group can be met, where none is about it, where functions have a say, and where the text is no job id.
    #[must_use]
    pub fn no_way(&self, workflow: &WorkflowId, id: &str) -> Option<String> {
        if self.node(workflow).is_none_or(|node| !node.asked.is_empty()) {
            return None;
        }
        let groups = self.parents(workflow, id).ok()?;
        let is_hopeless = !groups.is_empty() && groups.iter().all(|group| !group.unwritable.is_empty());
        is_hopeless.then(|| format!("it waits for {}", told(groups.iter().flat_map(|group| &group.unwritable))))
    }

    /// The reason that a job waits for nothing though its workflow depends on others: `no group of model is about it: client 9 is none
    /// of 1, 2, 3`. None where a group is about it, where there are none, and where functions have a say.
    #[must_use]
    pub fn no_group(&self, workflow: &WorkflowId, id: &str) -> Option<String> {
        let (node, values) = self.read(workflow, id).ok()?;
        let values: Vec<&Arc<str>> = values.iter().collect();
        let is_outside = node.asked.is_empty() && !node.groups.iter().any(|group| group.suits(&values));
        if !is_outside || node.groups.is_empty() {
            return None;
        }
        Some(format!("no group of {workflow} is about it: {}", self.reasons(node, &values)))
    }

    /// Each reason once, with the name of its group where they differ.
    fn reasons(&self, node: &Node, values: &[&Arc<str>]) -> String {
        let told: Vec<String> = node.groups.iter().map(|group| self.excluded(node, group, values)).collect();
        let differ = told.iter().collect::<BTreeSet<_>>().len() > 1;
        let all = node.groups.iter().zip(&told);
        let mut told: Vec<String> = if differ {
            all.take(GROUPS).map(|(group, what)| format!("{what} (group {})", group.name)).collect()
        } else {
            told.first().cloned().into_iter().collect()
        };
        if let Some(more) = node.groups.len().checked_sub(GROUPS).filter(|more| differ && *more > 0) {
            told.push(format!("and {more} more groups"));
        }
        told.join("; ")
    }

    /// The reason that a job is not in a group: `client 9 is none of 1, 2, 3`.
    fn excluded(&self, node: &Node, group: &GroupLink, child: &[&Arc<str>]) -> String {
        let named: Vec<(&Arc<str>, &&Arc<str>)> = node.template.identifiers().zip(child).collect();
        for ((name, value), allowed) in named.iter().zip(&group.allowed) {
            if let Some(all) = allowed.as_ref().filter(|all| !all.has(value)) {
                return none_of(name, value, &all.values);
            }
        }
        let Some(ways) = group.members.iter().find(|ways| !ways.has_literal(child)) else {
            return "it is about other jobs".to_owned();
        };
        for ((name, value), position) in named.iter().zip(&ways.to) {
            let literals = ways.literals.iter().flatten();
            let theirs = position.map(|at| literals.filter_map(|one| one.values.get(at).cloned()).collect());
            if let Some(theirs) = theirs.filter(|theirs: &BTreeSet<Arc<str>>| !theirs.contains(**value)) {
                return none_of(name, value, &Vec::from_iter(theirs));
            }
        }
        format!("it agrees with none of the jobs of {} that are listed", self.nodes[ways.parent].id)
    }
}

fn none_of(name: &str, value: &str, all: &[Arc<str>]) -> String {
    let value = if value.is_empty() { "\"\"".to_owned() } else { shown(value) };
    let shown = if all.len() > NAMED { NAMED / 2 } else { all.len() };
    let mut listed: Vec<&str> = all.iter().take(shown).map(|one| &**one).collect();
    let more = format!("{} more", all.len() - shown);
    if all.len() > shown {
        listed.push(&more);
    }
    match listed.as_slice() {
        [one] => format!("{name} {value} is not {one}"),
        listed => format!("{name} {value} is none of {}", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::jobs::{Group, JobKeys, JobTemplate, Member, ValueFilter};

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).unwrap()
    }

    fn texts(list: &[&str]) -> Vec<Arc<str>> {
        list.iter().map(|text| Arc::from(*text)).collect()
    }

    /// A group of the jobs of `a`, about these values of `client`.
    fn group(name: &str, clients: &[&str], job_ids: Option<&[&str]>) -> Group {
        let values = BTreeMap::from([("client".into(), ValueFilter::Of(texts(clients)))]);
        let member = Member { workflows: vec![id("a")], values, job_ids: job_ids.map(texts) };
        Group { name: name.to_owned(), members: vec![member], functions: None }
    }

    fn told(groups: Vec<Group>, job: &str) -> Option<String> {
        let parent = JobKeys::new(JobTemplate::new("{date}").unwrap());
        let child = JobKeys { depends_on: groups, ..JobKeys::new(JobTemplate::new("{date}_{client}").unwrap()) };
        JobGraph::new(vec![(id("a"), parent), (id("c"), child)]).unwrap().no_group(&id("c"), job)
    }

    #[test]
    fn a_job_that_no_group_is_about_is_told_which_identifier_excludes_it() {
        let one = || group("g", &["1", "2", "3"], None);
        assert_eq!(told(vec![one()], "d_2"), None);
        assert_eq!(told(vec![], "d_9"), None, "it depends on nobody");
        assert_eq!(told(vec![one()], "nonsense"), None, "that is told otherwise");
        let none = "no group of c is about it: client 9 is none of 1, 2, 3";
        assert_eq!(told(vec![one()], "d_9").as_deref(), Some(none));
        assert_eq!(told(vec![one(), group("h", &["1", "2", "3"], None)], "d_9").as_deref(), Some(none));
        let two = vec![one(), group("h", &["4"], None)];
        let each = "no group of c is about it: client 9 is none of 1, 2, 3 (group g); client 9 is not 4 (group h)";
        assert_eq!(told(two, "d_9").as_deref(), Some(each));
        let many = vec![group("g", &["1", "2", "3", "4", "5", "6", "7"], None)];
        let cut = "no group of c is about it: client \"\" is none of 1, 2, 3, 4 more";
        assert_eq!(told(many, "d_").as_deref(), Some(cut));
        let listed = vec![group("g", &["1"], Some(&["d", "e"]))];
        let date = "no group of c is about it: date x is none of d, e";
        assert_eq!(told(listed, "x_1").as_deref(), Some(date));
    }
}
