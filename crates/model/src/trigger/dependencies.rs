//! The slots that a slot depends on by its trigger: those whose success it waits for, and whose outputs it is given.

use std::collections::BTreeSet;

use super::evaluate::{own_period, slot_of_success};
use super::{Coverage, Facts, Leaf, Node, Trigger};
use crate::id::WorkflowId;
use crate::key::SlotRef;
use crate::template::KeyValues;

/// The slots that a slot depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dependencies {
    /// The slots that must all have succeeded before it may start.
    pub required: BTreeSet<SlotRef>,
    /// Groups of slots of which others may stand in for one another. A group counts where all of its slots have succeeded.
    pub alternatives: Vec<BTreeSet<SlotRef>>,
    /// The workflows of which there may be several slots, whatever their number is.
    pub several: BTreeSet<WorkflowId>,
}

impl Dependencies {
    /// The dependencies of a slot by its trigger. What lies beneath a negation is none.
    #[must_use]
    pub fn of(trigger: &Trigger, workflow: &WorkflowId, key: &KeyValues, facts: &dyn Facts) -> Dependencies {
        let mut walk = DependencyWalk { workflow, facts, found: Dependencies::default() };
        walk.visit(trigger, key, None);
        walk.found
    }

    /// Adds groups of slots, one of which must have succeeded as a whole.
    pub fn add_groups(&mut self, groups: Vec<BTreeSet<SlotRef>>) {
        match <[BTreeSet<SlotRef>; 1]>::try_from(groups) {
            Ok([only]) => self.required.extend(only),
            Err(groups) => self.alternatives.extend(groups),
        }
    }

    /// Adds the dependencies of another slot that the same run serves.
    pub fn add(&mut self, other: Dependencies) {
        self.required.extend(other.required);
        self.alternatives.extend(other.alternatives);
        self.several.extend(other.several);
    }

    /// Notes that there may be several slots of each workflow, as where a run may serve several slots itself.
    pub fn may_be_several(&mut self) {
        let workflows: BTreeSet<WorkflowId> = self.slots().map(|slot| slot.workflow.clone()).collect();
        self.several.extend(workflows);
    }

    /// All slots, some of them perhaps more than once.
    pub fn slots(&self) -> impl Iterator<Item = &SlotRef> {
        self.required.iter().chain(self.alternatives.iter().flatten())
    }

    /// The workflows whose outputs are a list, because there are several slots of them, or may be.
    #[must_use]
    pub fn lists(&self) -> BTreeSet<&WorkflowId> {
        let (mut once, mut several) = (BTreeSet::new(), self.several.iter().collect::<BTreeSet<_>>());
        for slot in self.slots().collect::<BTreeSet<_>>() {
            if !once.insert(&slot.workflow) {
                several.insert(&slot.workflow);
            }
        }
        several
    }
}

impl Trigger {
    /// Whether it waits for the success of a slot of one of some workflows.
    pub fn depends_on(&self, is_one: impl Fn(&WorkflowId) -> bool) -> bool {
        self.has_leaf(|leaf| match leaf {
            Leaf::Slot(workflow) | Leaf::Job(workflow, _) | Leaf::Periods(Coverage { workflow, .. }) => {
                is_one(workflow)
            }
            Leaf::Nothing | Leaf::Clock(_) | Leaf::Outside | Leaf::Facts(_) => false,
        })
    }
}

struct DependencyWalk<'a> {
    workflow: &'a WorkflowId,
    facts: &'a dyn Facts,
    found: Dependencies,
}

impl DependencyWalk<'_> {
    /// Visits a trigger: at the top, or within a group of alternatives.
    fn visit(&mut self, trigger: &Trigger, key: &KeyValues, group: Option<usize>) {
        match trigger.node() {
            Node::All(triggers) => triggers.iter().for_each(|one| self.visit(one, key, group)),
            Node::Any([only]) => self.visit(only, key, group),
            Node::Any(triggers) => {
                for one in triggers {
                    self.found.alternatives.push(BTreeSet::new());
                    let own = self.found.alternatives.len() - 1;
                    self.visit(one, key, Some(own));
                }
            }
            Node::Not(_) => {}
            Node::Later(seconds, trigger) => {
                if let Some(shifted) = key.offset(seconds) {
                    self.visit(trigger, &shifted, group);
                }
            }
            Node::Leaf(leaf) => self.leaf(&leaf, key, group),
        }
    }

    fn leaf(&mut self, leaf: &Leaf<'_>, key: &KeyValues, group: Option<usize>) {
        match leaf {
            Leaf::Slot(workflow) => self.add(group, [slot_of_success(workflow, key)]),
            Leaf::Job(workflow, job) => {
                let id = key.fill(job);
                if !id.is_empty() {
                    self.add(group, [SlotRef::job((*workflow).clone(), (*id).into())]);
                }
            }
            Leaf::Periods(coverage) => {
                self.found.several.insert(coverage.workflow.clone());
                let Some(period) = own_period(self.workflow, key, self.facts) else { return };
                let times = self.facts.slots_in(coverage.workflow, coverage.interval(self.workflow, period));
                let slots = times.into_iter().flatten().map(|time| SlotRef::at(coverage.workflow.clone(), time));
                self.add(group, slots);
            }
            Leaf::Nothing | Leaf::Clock(_) | Leaf::Outside | Leaf::Facts(_) => {}
        }
    }

    fn add(&mut self, group: Option<usize>, slots: impl IntoIterator<Item = SlotRef>) {
        let group = group.and_then(|group| self.found.alternatives.get_mut(group));
        group.unwrap_or(&mut self.found.required).extend(slots);
    }
}
