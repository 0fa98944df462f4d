//! The graph of a part: steps by position, and what each of them needs and handles.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::step::StepDraft;

/// The longest id that is made of the ids of leaves.
const LONGEST: usize = 120;

/// Steps and the edges between them. A step that is there already is not added again.
#[derive(Clone, Default)]
pub(super) struct StepGraph {
    nodes: Vec<StepNode>,
    /// The first step of each id.
    positions: BTreeMap<String, usize>,
}

/// A step and its edges, by position.
#[derive(Clone)]
pub(super) struct StepNode {
    pub(super) step: Arc<StepDraft>,
    /// The steps whose success it needs.
    pub(super) needs: Vec<usize>,
    /// The steps whose failure it handles.
    pub(super) handles: Vec<usize>,
    /// Whether it runs only after a failure.
    is_after_failure: bool,
}

impl StepGraph {
    /// A graph of one step.
    pub(super) fn of(step: Arc<StepDraft>) -> StepGraph {
        let positions = [(step.id.clone(), 0)].into();
        StepGraph { nodes: vec![StepNode::new(step)], positions }
    }

    /// The steps in the order in which they were written.
    pub(super) fn nodes(&self) -> &[StepNode] {
        &self.nodes
    }

    /// Adds the steps and edges of another graph, and returns where its steps are now.
    fn absorb(&mut self, other: StepGraph) -> Vec<usize> {
        let mut places = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            let known = self.positions.get(&node.step.id).copied();
            let same = known.filter(|at| self.nodes.get(*at).is_some_and(|known| known.step.is_same_as(&node.step)));
            let at = same.unwrap_or(self.nodes.len());
            if same.is_none() {
                self.positions.entry(node.step.id.clone()).or_insert(at);
                self.nodes.push(StepNode::new(node.step.clone()));
            }
            places.push(at);
        }
        let place = |at: &usize| places.get(*at).copied();
        for (node, at) in other.nodes.iter().zip(&places) {
            let Some(own) = self.nodes.get_mut(*at) else { continue };
            own.is_after_failure |= node.is_after_failure;
            add(&mut own.needs, node.needs.iter().filter_map(place));
            add(&mut own.handles, node.handles.iter().filter_map(place));
        }
        places
    }

    /// Both graphs.
    pub(super) fn and(mut self, other: StepGraph) -> StepGraph {
        self.absorb(other);
        self
    }

    /// Both graphs, where each root of the other one needs each leaf of this one.
    pub(super) fn then(mut self, next: StepGraph) -> StepGraph {
        let (leaves, roots) = (self.leaves(), next.roots());
        let places = self.absorb(next);
        for root in roots.iter().filter_map(|root| places.get(*root)) {
            if let Some(root) = self.nodes.get_mut(*root) {
                add(&mut root.needs, leaves.iter().copied());
            }
        }
        self
    }

    /// Both graphs, where each root of the other one handles the failures of this one that nothing handles. Its steps get other ids, so
    /// that it may stand in many places.
    pub(super) fn or_else(mut self, mut error: StepGraph) -> StepGraph {
        let open = self.unhandled();
        if open.is_empty() {
            // A graph without steps can't fail.
            return self;
        }
        let origin = self.origin();
        error.rename(|id| format!("{id}-from-{origin}"));
        error.nodes.iter_mut().for_each(|node| node.is_after_failure = true);
        let roots = error.roots();
        let places = self.absorb(error);
        for root in roots.iter().filter_map(|root| places.get(*root)) {
            if let Some(root) = self.nodes.get_mut(*root) {
                add(&mut root.handles, open.iter().copied());
            }
        }
        self
    }

    /// Gives all steps other ids.
    pub(super) fn rename(&mut self, change: impl Fn(&str) -> String) {
        self.positions.clear();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let step = Arc::make_mut(&mut node.step);
            step.id = change(&step.id);
            self.positions.entry(step.id.clone()).or_insert(at);
        }
    }

    /// Changes all steps.
    pub(super) fn change(&mut self, change: impl Fn(&mut StepDraft)) {
        self.nodes.iter_mut().for_each(|node| change(Arc::make_mut(&mut node.step)));
    }

    /// The steps that need nothing and handle nothing.
    fn roots(&self) -> Vec<usize> {
        let is_root = |node: &StepNode| node.needs.is_empty() && node.handles.is_empty();
        self.nodes.iter().enumerate().filter(|(_, node)| is_root(node)).map(|(at, _)| at).collect()
    }

    /// The steps that nothing needs, except for those that run after a failure.
    fn leaves(&self) -> Vec<usize> {
        let mut is_leaf: Vec<bool> = self.nodes.iter().map(|node| !node.is_after_failure).collect();
        for node in self.nodes.iter().filter(|node| !node.is_after_failure) {
            node.needs.iter().for_each(|need| is_leaf.get_mut(*need).into_iter().for_each(|leaf| *leaf = false));
        }
        is_leaf.into_iter().enumerate().filter(|(_, leaf)| *leaf).map(|(at, _)| at).collect()
    }

    /// The steps whose failure nothing handles.
    fn unhandled(&self) -> Vec<usize> {
        let mut is_open = vec![true; self.nodes.len()];
        for at in self.nodes.iter().flat_map(|node| &node.handles) {
            is_open.get_mut(*at).into_iter().for_each(|open| *open = false);
        }
        is_open.into_iter().enumerate().filter(|(_, open)| *open).map(|(at, _)| at).collect()
    }

    /// The ids of the leaves in one word; of very many the first, and their number.
    fn origin(&self) -> String {
        let leaves = self.leaves();
        let ids: Vec<&str> = leaves.iter().filter_map(|at| Some(self.nodes.get(*at)?.step.id.as_str())).collect();
        let all = ids.join("-");
        match ids.first() {
            Some(first) if all.len() > LONGEST => format!("{first}-and-{}-more", ids.len() - 1),
            _ => all,
        }
    }
}

impl StepNode {
    fn new(step: Arc<StepDraft>) -> StepNode {
        StepNode { step, needs: Vec::new(), handles: Vec::new(), is_after_failure: false }
    }
}

/// Adds positions that are not there.
fn add(all: &mut Vec<usize>, more: impl IntoIterator<Item = usize>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
