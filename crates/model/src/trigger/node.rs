//! The nodes of a trigger. Leaves are distinguished here, once: everything that is asked of triggers, but their answers,
//! their words and their written forms, is asked of a [`Node`], and knows a [`Leaf`] only by what it looks at.

use std::ops::ControlFlow;

use super::{Coverage, Trigger};
use crate::facts::{Collection, Subject};
use crate::id::WorkflowId;
use crate::time::Firing;

/// A node of a trigger.
#[derive(Debug, Clone)]
pub enum Node<'a> {
    /// Met when all are.
    All(&'a [Trigger]),
    /// Met when one is.
    Any(&'a [Trigger]),
    /// Met when the nested one isn't.
    Not(&'a Trigger),
    /// Asks about the slot that lies so many seconds later.
    Later(i64, &'a Trigger),
    /// Asks something itself.
    Leaf(Leaf<'a>),
}

/// The dependency of a leaf of a trigger.
#[derive(Debug, Clone)]
pub enum Leaf<'a> {
    /// Nothing: it is met.
    Nothing,
    /// The clock: more than so many seconds must have passed since the slot's time.
    Clock(i64),
    /// The slot of another workflow with the same key.
    Slot(&'a WorkflowId),
    /// The slots of another workflow whose periods intersect its own.
    Periods(Coverage<'a>),
    /// The job of another workflow, by a template of its job id.
    Job(&'a WorkflowId, &'a str),
    /// The outside world, by a probe.
    Outside,
    /// Facts that came.
    Facts(FactLeaf<'a>),
}

/// The facts that a leaf waits for.
#[derive(Debug, Clone)]
pub struct FactLeaf<'a> {
    /// The subjects, one of which each fact is about.
    pub subjects: Vec<Subject>,
    /// How much they must count together.
    pub count: u64,
    /// The program whose runs they are about.
    pub program: Option<&'a WorkflowId>,
    /// The cron expression whose times they are about.
    pub firing: Option<&'a Firing>,
}

impl FactLeaf<'_> {
    /// One fact about one of some subjects.
    fn one_of(subjects: Vec<Subject>) -> Self {
        FactLeaf { subjects, count: 1, program: None, firing: None }
    }

    /// Whether what was collected is enough.
    #[must_use]
    pub fn is_met_by(&self, collected: &Collection) -> bool {
        self.tallies(collected).any(|count| count >= self.count)
    }

    /// How much of what it waits for was collected, from 0 to 1.
    #[must_use]
    pub fn share(&self, collected: &Collection) -> f64 {
        let share = |count: u64| (count as f64 / self.count.max(1) as f64).min(1.0);
        self.tallies(collected).map(share).fold(0.0, f64::max)
    }

    fn tallies<'a>(&'a self, collected: &'a Collection) -> impl Iterator<Item = u64> + 'a {
        self.subjects.iter().filter_map(|subject| collected.of(subject)).map(|tally| tally.count)
    }
}

impl Trigger {
    /// Its node in the tree. This is where a new leaf declares its dependency.
    #[must_use]
    pub fn node(&self) -> Node<'_> {
        let leaf = match self {
            Trigger::And { triggers } => return Node::All(triggers),
            Trigger::Or { triggers } => return Node::Any(triggers),
            Trigger::Not { trigger } => return Node::Not(trigger),
            Trigger::Offset { seconds, trigger } => return Node::Later(*seconds, trigger),
            Trigger::Always => Leaf::Nothing,
            Trigger::Delay { seconds } => Leaf::Clock(*seconds),
            Trigger::Success { workflow } => Leaf::Slot(workflow),
            Trigger::Covers { workflow, from, to } => {
                Leaf::Periods(Coverage { workflow, later: 0, from: *from, to: *to })
            }
            Trigger::Job { workflow, job } => Leaf::Job(workflow, job),
            Trigger::Path(_) | Trigger::Function { .. } => Leaf::Outside,
            Trigger::Partitions { dataset, count } => {
                let one = FactLeaf::one_of(vec![Subject::Partitions(dataset.clone())]);
                Leaf::Facts(FactLeaf { count: u64::from(*count), ..one })
            }
            Trigger::Ended { program, states } => {
                let ends = states.iter().map(|state| Subject::Ended(program.clone(), *state)).collect();
                Leaf::Facts(FactLeaf { program: Some(program), ..FactLeaf::one_of(ends) })
            }
            Trigger::Fired { firing } => {
                let one = FactLeaf::one_of(vec![Subject::Fired(firing.name())]);
                Leaf::Facts(FactLeaf { firing: Some(firing), ..one })
            }
            Trigger::Signal { name } => Leaf::Facts(FactLeaf::one_of(vec![Subject::Signal(name.clone())])),
        };
        Node::Leaf(leaf)
    }

    /// The nested triggers, in order.
    #[must_use]
    pub fn nested(&self) -> &[Trigger] {
        match self {
            Trigger::And { triggers } | Trigger::Or { triggers } => triggers,
            Trigger::Not { trigger } | Trigger::Offset { trigger, .. } => std::slice::from_ref(trigger),
            _ => &[],
        }
    }

    /// Visits the leaves, in order of appearance.
    pub fn visit_leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        let mut go_on = |leaf| {
            visit(leaf);
            ControlFlow::<()>::Continue(())
        };
        let _ = self.try_visit(&mut go_on);
    }

    /// Whether something holds of one of the leaves.
    pub fn has_leaf(&self, mut holds: impl FnMut(Leaf<'_>) -> bool) -> bool {
        let mut stop = |leaf: Leaf<'_>| if holds(leaf) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        self.try_visit(&mut stop).is_break()
    }

    fn try_visit<'a, B>(&'a self, visit: &mut dyn FnMut(Leaf<'a>) -> ControlFlow<B>) -> ControlFlow<B> {
        match self.node() {
            Node::Leaf(leaf) => visit(leaf),
            _ => self.nested().iter().try_for_each(|one| one.try_visit(visit)),
        }
    }

    /// The items found at its leaves, in order of appearance.
    pub(super) fn of_leaves<'a, T, I: IntoIterator<Item = T>>(&'a self, find: impl Fn(Leaf<'a>) -> I) -> Vec<T> {
        let mut found = Vec::new();
        self.visit_leaves(&mut |leaf| found.extend(find(leaf)));
        found
    }

    /// Changes the leaves in place, in order of appearance.
    pub fn change_leaves(&mut self, change: &mut dyn FnMut(&mut Trigger)) {
        match self {
            Trigger::And { triggers } | Trigger::Or { triggers } => {
                triggers.iter_mut().for_each(|one| one.change_leaves(change));
            }
            Trigger::Not { trigger } | Trigger::Offset { trigger, .. } => trigger.change_leaves(change),
            leaf => change(leaf),
        }
    }
}
