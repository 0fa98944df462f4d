//! The graph of a flow, and what may start when a step has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::flaw::{FlowFlaw, MOST_STEPS};
use super::progress::{FlowEnd, StepProgress};
use super::{Flow, Step};
use crate::key::StepKey;
use crate::similar::closest;
use crate::slot::Slot;
use crate::state::SlotState;
use crate::step_name::StepName;

/// A flow whose steps are known to fit together. Steps are named by their position.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGraph {
    flow: Arc<Flow>,
    positions: BTreeMap<StepName, usize>,
    nodes: Vec<StepNode>,
}

/// A step that was opened, in this run of its flow or in an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedStep {
    /// Its position in the graph.
    pub at: usize,
    /// The run that opened it last.
    pub run: u32,
    /// Its progress.
    pub state: StepProgress,
    /// Whether a person has said since the run began that it is done.
    pub is_marked: bool,
}

impl OpenedStep {
    /// A step as its slot says; none where it is an item of a list or no step of the graph. `begun` is the position of the log at which
    /// the run was dispatched.
    #[must_use]
    pub fn of(graph: &FlowGraph, key: &StepKey, slot: &Slot, begun: u64) -> Option<OpenedStep> {
        let at = graph.position(key.step()).filter(|_| key.item_number().is_none())?;
        let run = slot.step_of_run().map_or(0, |step| step.run);
        let is_marked = slot.state == SlotState::Succeeded && slot.last_event > begun;
        Some(OpenedStep { at, run, state: slot.state.into(), is_marked })
    }
}

/// The neighbours of a step.
#[derive(Debug, Clone, PartialEq, Default)]
struct StepNode {
    needs: Vec<usize>,
    /// The steps that need its success.
    feeds: Vec<usize>,
    handles: Vec<usize>,
    /// The steps that handle its failure.
    handlers: Vec<usize>,
}

impl FlowGraph {
    /// Reads the graph of a flow.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(flow: &Arc<Flow>) -> Result<FlowGraph, Vec<FlowFlaw>> {
        if flow.steps.len() > MOST_STEPS {
            return Err(vec![FlowFlaw::TooMany { steps: flow.steps.len() }]);
        }
        let mut flaws = Vec::new();
        let mut positions = BTreeMap::new();
        for (at, step) in flow.steps.iter().enumerate() {
            if positions.insert(step.name.clone(), at).is_some() {
                flaws.push(FlowFlaw::Doubled { step: step.name.clone() });
            }
        }
        let mut nodes = vec![StepNode::default(); flow.steps.len()];
        for (at, step) in flow.steps.iter().enumerate() {
            let (needs, handles) = (find(&positions, step, &step.needs), find(&positions, step, &step.handles));
            let (needs, handles) = match (needs, handles) {
                (Ok(needs), Ok(handles)) => (needs, handles),
                (needs, handles) => {
                    flaws.extend([needs.err(), handles.err()].into_iter().flatten().flatten());
                    continue;
                }
            };
            if let (Some(needs), Some(handles)) = (step.needs.first(), step.handles.first()) {
                let (step, needs, handles) = (step.name.clone(), needs.clone(), handles.clone());
                flaws.push(FlowFlaw::BothWays { step, needs, handles });
            }
            for other in &needs {
                nodes.get_mut(*other).into_iter().for_each(|node| node.feeds.push(at));
            }
            for other in &handles {
                nodes.get_mut(*other).into_iter().for_each(|node| node.handlers.push(at));
            }
            if let Some(node) = nodes.get_mut(at) {
                (node.needs, node.handles) = (needs, handles);
            }
        }
        let graph = FlowGraph { flow: flow.clone(), positions, nodes };
        flaws.extend(graph.circle());
        if flaws.is_empty() { Ok(graph) } else { Err(flaws) }
    }

    /// The flow.
    #[must_use]
    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The position of a step.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(&StepName::new(name).ok()?).copied()
    }

    /// The step at a position.
    #[must_use]
    pub fn step(&self, at: usize) -> Option<&Step> {
        self.flow.steps.get(at)
    }

    /// The steps whose success a step needs, in the order in which they were named.
    #[must_use]
    pub fn needs(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.needs)
    }

    /// The steps that need the success of a step.
    #[must_use]
    pub fn feeds(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.feeds)
    }

    /// The steps whose failure a step handles.
    #[must_use]
    pub fn handles(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.handles)
    }

    /// The steps that handle the failure of a step.
    #[must_use]
    pub fn handlers(&self, at: usize) -> &[usize] {
        self.nodes.get(at).map_or(&[], |node| &node.handlers)
    }

    /// The steps that start with the run: they need nothing and handle nothing.
    pub fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        let is_root = |node: &StepNode| node.needs.is_empty() && node.handles.is_empty();
        self.nodes.iter().enumerate().filter(move |(_, node)| is_root(node)).map(|(at, _)| at)
    }

    /// The steps whose outputs are those of the flow: nothing needs them, and they handle no failure.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        let is_leaf = |node: &StepNode| node.feeds.is_empty() && node.handles.is_empty();
        self.nodes.iter().enumerate().filter(move |(_, node)| is_leaf(node)).map(|(at, _)| at)
    }

    /// Whether a step that was not opened yet is to be opened, as the others stand.
    #[must_use]
    pub fn is_ready(&self, at: usize, states: &[StepProgress]) -> bool {
        let state = |other: &usize| states.get(*other).copied().unwrap_or_default();
        let Some(node) = self.nodes.get(at).filter(|_| state(&at) == StepProgress::Unopened) else { return false };
        match node.handles.is_empty() {
            true => node.needs.iter().all(|other| state(other) == StepProgress::Succeeded),
            false => node.handles.iter().any(|other| state(other) == StepProgress::Failed),
        }
    }

    /// The steps that are to be opened after a step has ended, ascending. Costs as much as it has neighbours and these need.
    #[must_use]
    pub fn ready_after(&self, at: usize, states: &[StepProgress]) -> Vec<usize> {
        let next = match states.get(at) {
            Some(StepProgress::Succeeded) => self.feeds(at),
            Some(StepProgress::Failed) => self.handlers(at),
            _ => &[],
        };
        let mut next: Vec<usize> = next.iter().copied().filter(|next| self.is_ready(*next, states)).collect();
        next.sort_unstable();
        next.dedup();
        next
    }

    /// The end of a run in which no step is live or to be opened.
    #[must_use]
    pub fn end(&self, states: &[StepProgress]) -> FlowEnd {
        let failed: Vec<usize> = self.failed(states).collect();
        let unhandled: Vec<usize> = failed.iter().copied().filter(|at| !self.is_handled(*at, states)).collect();
        let names = |all: &[usize]| all.iter().filter_map(|at| Some(self.step(*at)?.name.clone())).collect();
        match (failed.as_slice(), unhandled.as_slice()) {
            ([], _) => FlowEnd::Succeeded,
            (failed, []) => FlowEnd::Recovered { failed: names(failed) },
            (_, unhandled) => FlowEnd::Failed { failed: names(unhandled) },
        }
    }

    fn failed<'s>(&'s self, states: &'s [StepProgress]) -> impl Iterator<Item = usize> + 's {
        let is_failed = |(_, state): &(usize, &StepProgress)| **state == StepProgress::Failed;
        states.iter().enumerate().filter(is_failed).map(|(at, _)| at)
    }

    /// Whether an error step of a failed step succeeded, or failed and was handled itself.
    fn is_handled(&self, at: usize, states: &[StepProgress]) -> bool {
        self.handlers(at).iter().any(|handler| match states.get(*handler) {
            Some(StepProgress::Succeeded) => true,
            // There are no circles.
            Some(StepProgress::Failed) => self.is_handled(*handler, states),
            _ => false,
        })
    }

    /// The steps that are done again with a step: itself and all that start after it, by success or failure.
    #[must_use]
    pub fn with_all_after(&self, at: usize) -> Vec<usize> {
        let mut seen = vec![false; self.len()];
        let mut next = vec![at];
        while let Some(at) = next.pop() {
            let Some(is_seen) = seen.get_mut(at) else { continue };
            if !std::mem::replace(is_seen, true) {
                next.extend(self.feeds(at).iter().chain(self.handlers(at)));
            }
        }
        seen.iter().enumerate().filter(|(_, is_seen)| **is_seen).map(|(at, _)| at).collect()
    }

    /// The steps that a run is to do, although an earlier run of the slot may have done them: those of another definition, those that
    /// failed before this run, those from which a person had all done again, and all that start after any of these or after a step that
    /// was done again since. What a person has said to be done in this run is done. The steps count that were opened by `since_run` or
    /// later, and those of `again` by the run beside them or later; `known` has the steps that were ever opened.
    #[must_use]
    pub fn undone(
        &self,
        (run, since_run): (u32, u32),
        again: &BTreeMap<StepName, u32>,
        known: &[OpenedStep],
    ) -> BTreeSet<usize> {
        let mut since: Vec<(u32, usize)> =
            again.iter().filter_map(|(step, since)| Some((*since, self.position(step.as_str())?))).collect();
        for step in known {
            let failed_before = step.run < run && step.state == StepProgress::Failed;
            since.push((if failed_before { run } else { step.run }, step.at));
        }
        let first = self.first_runs(since_run, since);
        let done_by = |step: &OpenedStep| if step.is_marked { run } else { step.run };
        let is_undone = |step: &&OpenedStep| first.get(step.at).is_some_and(|first| done_by(step) < *first);
        known.iter().filter(is_undone).map(|step| step.at).collect()
    }

    /// The first run whose work counts, for each step, where that of some steps and all after them counts since some run only.
    #[must_use]
    pub fn first_runs(&self, of_all: u32, mut since: Vec<(u32, usize)>) -> Vec<u32> {
        let mut first: Vec<Option<u32>> = vec![None; self.len()];
        // Whatever is reached once was reached by the largest.
        since.sort_unstable();
        while let Some((number, at)) = since.pop() {
            let mut next = vec![at];
            while let Some(at) = next.pop() {
                if let Some(unknown @ None) = first.get_mut(at) {
                    *unknown = Some(number);
                    next.extend(self.feeds(at).iter().chain(self.handlers(at)));
                }
            }
        }
        first.into_iter().map(|first| first.unwrap_or_default().max(of_all)).collect()
    }

    /// A circle of steps that wait for each other, by success or failure.
    fn circle(&self) -> Option<FlowFlaw> {
        let before = |at: usize| self.needs(at).iter().chain(self.handles(at));
        let mut open: Vec<usize> = (0..self.len()).map(|at| before(at).count()).collect();
        let mut free: Vec<usize> = (0..self.len()).filter(|at| open.get(*at) == Some(&0)).collect();
        while let Some(at) = free.pop() {
            for next in self.feeds(at).iter().chain(self.handlers(at)) {
                if let Some(open) = open.get_mut(*next) {
                    *open -= 1;
                    if *open == 0 {
                        free.push(*next);
                    }
                }
            }
        }
        // Each step that is left waits for another one that is left: following these leads into a circle.
        let is_left = |at: &usize| open.get(*at).is_some_and(|open| *open > 0);
        let mut at = (0..self.len()).find(is_left)?;
        let mut way: Vec<usize> = Vec::new();
        let from = loop {
            if let Some(from) = way.iter().position(|other| *other == at) {
                break from;
            }
            way.push(at);
            at = before(at).copied().find(|other| is_left(other))?;
        };
        let steps = way.get(from..)?.iter().filter_map(|at| Some(self.step(*at)?.name.clone())).collect();
        Some(FlowFlaw::Circle { steps })
    }
}

fn find(positions: &BTreeMap<StepName, usize>, step: &Step, names: &[StepName]) -> Result<Vec<usize>, Vec<FlowFlaw>> {
    let (mut found, mut flaws) = (Vec::new(), Vec::new());
    for name in names {
        match positions.get(name) {
            Some(at) if !found.contains(at) => found.push(*at),
            Some(_) => {}
            None => {
                let names = positions.keys().map(StepName::as_str);
                let similar = closest(name.as_str(), names).and_then(|name| StepName::new(name).ok());
                flaws.push(FlowFlaw::Unknown { step: step.name.clone(), other: name.clone(), similar });
            }
        }
    }
    if flaws.is_empty() { Ok(found) } else { Err(flaws) }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::StepProgress::{Failed, Live, Succeeded, Unopened};
    use super::*;
    use crate::workflow::Job;

    fn name(text: &str) -> StepName {
        text.parse().unwrap()
    }

    /// A flow of lines such as `c: a b` and `e! a`, for a step that needs others and one that handles others.
    fn flow(lines: &[&str]) -> Arc<Flow> {
        let step = |line: &&str| {
            let (step, others) = line.split_once([':', '!']).unwrap_or((line, ""));
            let others: Vec<StepName> = others.split_whitespace().map(name).collect();
            let mut one = Step::new(name(step), Job::new("x", Map::new()));
            if line.contains('!') {
                one.handles = others
            } else {
                one.needs = others
            }
            one
        };
        Arc::new(Flow { steps: lines.iter().map(step).collect() })
    }

    fn graph(lines: &[&str]) -> FlowGraph {
        FlowGraph::new(&flow(lines)).unwrap()
    }

    fn told(lines: &[&str]) -> Vec<String> {
        FlowGraph::new(&flow(lines)).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn flaws_name_the_steps() {
        assert_eq!(
            told(&["a: c", "b: a", "c: b", "d"]),
            ["these steps wait for each other in a circle: a -> c -> b -> a"]
        );
        assert_eq!(told(&["a: a"]), ["step a waits for itself"]);
        assert_eq!(
            told(&["load", "b: laod"]),
            ["step b refers to laod, and the flow has no such step: did you mean load?"]
        );
        assert!(told(&["a", "a"])[0].starts_with("two steps are named a"));
        let mut both = flow(&["a", "b", "c: a"]);
        Arc::make_mut(&mut both).steps[2].handles = vec![name("b")];
        let flaws = FlowGraph::new(&both).unwrap_err();
        assert!(flaws[0].to_string().starts_with("step c needs the success of a and handles the failure of b"));
    }

    #[test]
    fn an_empty_flow_a_step_and_a_chain_are_sound() {
        assert!(graph(&[]).is_empty());
        assert_eq!(graph(&[]).end(&[]), FlowEnd::Succeeded);
        let chain = graph(&["a", "b: a", "c: b"]);
        assert_eq!((chain.roots().collect::<Vec<_>>(), chain.leaves().collect::<Vec<_>>()), (vec![0], vec![2]));
        assert_eq!(chain.with_all_after(1), [1, 2]);
    }

    #[test]
    fn a_join_starts_with_the_last_and_never_after_a_failure() {
        let join = graph(&["a", "b", "c: a b", "d: c"]);
        assert_eq!(join.ready_after(0, &[Succeeded, Live, Unopened, Unopened]), [0_usize; 0]);
        assert_eq!(join.ready_after(1, &[Succeeded, Succeeded, Unopened, Unopened]), [2]);
        let states = [Succeeded, Failed, Unopened, Unopened];
        assert!(join.ready_after(1, &states).is_empty());
        assert_eq!(join.end(&states), FlowEnd::Failed { failed: vec![name("b")] });
    }

    #[test]
    fn a_handled_failure_is_a_recovery_unless_the_handler_fails_too() {
        let flow = graph(&["a", "b: a", "e! a", "f! e"]);
        assert_eq!(flow.roots().collect::<Vec<_>>(), [0]);
        assert_eq!(flow.ready_after(0, &[Failed, Unopened, Unopened, Unopened]), [2]);
        let end = |states: [StepProgress; 4]| flow.end(&states);
        assert_eq!(end([Failed, Unopened, Succeeded, Unopened]), FlowEnd::Recovered { failed: vec![name("a")] });
        assert_eq!(
            end([Failed, Unopened, Failed, Succeeded]),
            FlowEnd::Recovered { failed: vec![name("a"), name("e")] }
        );
        assert_eq!(
            end([Failed, Unopened, Failed, Failed]),
            FlowEnd::Failed { failed: vec![name("a"), name("e"), name("f")] }
        );
    }
}
