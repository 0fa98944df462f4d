//! The part of a graph that is shown.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::WorkflowId;

use super::{Edge, Node};

/// The part of the graph that is requested; by default all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphQuery {
    /// Only what is so close to a workflow.
    pub focus: Option<Focus>,
    /// Only what this project owns.
    pub project: Option<String>,
    /// Only what has this tag.
    pub tag: Option<String>,
    /// Only what has all these words in its name, project or tags, in any case.
    pub words: Vec<String>,
    /// Further workflows, shown in any case.
    pub also: BTreeSet<WorkflowId>,
}

/// A workflow, and the number of levels around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// The workflow.
    pub on: WorkflowId,
    /// Levels of what it depends on.
    pub up: u32,
    /// Levels of what depends on it.
    pub down: u32,
}

impl GraphQuery {
    /// The names of what is shown. What is focused on is, if it is there at all.
    pub(super) fn shown(&self, nodes: &BTreeMap<WorkflowId, Node>, edges: &[Edge]) -> BTreeSet<WorkflowId> {
        let near = self.focus.as_ref().map(|focus| focus.near(edges));
        let is_focus = |id: &WorkflowId| self.focus.as_ref().is_some_and(|focus| focus.on == *id);
        let is_shown = |node: &&Node| {
            let is_near = near.as_ref().is_none_or(|near| near.contains(&node.id));
            is_near && self.lets_through(node) || is_focus(&node.id) || self.also.contains(&node.id)
        };
        nodes.values().filter(is_shown).map(|node| node.id.clone()).collect()
    }

    fn lets_through(&self, node: &Node) -> bool {
        let is_of = |project: &String| node.project.as_ref() == Some(project);
        let text = std::iter::once(node.id.as_str()).chain(node.project.as_deref());
        let text: Vec<&str> = text.chain(node.tags.iter().map(String::as_str)).collect();
        let text = text.join(" ").to_lowercase();
        self.project.as_ref().is_none_or(is_of)
            && self.tag.as_ref().is_none_or(|tag| node.tags.contains(tag))
            && self.words.iter().all(|word| text.contains(&word.to_lowercase()))
    }
}

impl Focus {
    /// The workflows within the levels.
    fn near(&self, edges: &[Edge]) -> BTreeSet<WorkflowId> {
        let mut near = BTreeSet::from([self.on.clone()]);
        let (mut up, mut down): (BTreeMap<_, Vec<_>>, BTreeMap<_, Vec<_>>) = Default::default();
        for edge in edges {
            up.entry(&edge.to).or_default().push(&edge.from);
            down.entry(&edge.from).or_default().push(&edge.to);
        }
        for (beside, levels) in [(up, self.up), (down, self.down)] {
            let mut seen = BTreeSet::from([&self.on]);
            let mut level = vec![&self.on];
            for _ in 0..levels {
                let next = level.iter().filter_map(|id| beside.get(*id)).flatten();
                level = next.copied().filter(|id| seen.insert(*id)).collect();
                if level.is_empty() {
                    break;
                }
            }
            near.extend(seen.into_iter().cloned());
        }
        near
    }
}
