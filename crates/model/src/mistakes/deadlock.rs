//! Circles of workflows whose slots wait for each other, so that none of them can ever run.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::WorkflowId;
use crate::trigger::{Leaf, Node, Trigger};
use crate::workflow::{Keys, Workflow};

/// A circle of workflows, none of which can ever run: each waits for the success of the next, the last one for the first, and the
/// offsets lead back to the same time or to a later one. A circle that leads to an earlier time is no deadlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The workflows, from the one with the smallest id on, and how many seconds later than its own the slot of the next is.
    pub circle: Vec<(WorkflowId, i64)>,
}

/// The deadlocks among workflows with schedules, no two of which share a workflow. Only what a trigger certainly needs counts: not
/// what is below `not`, and of alternatives only what all of them need.
pub fn deadlocks<'w>(workflows: impl IntoIterator<Item = &'w Workflow>) -> Vec<Deadlock> {
    let mut waits = WaitGraph::new(workflows);
    let mut found = Vec::new();
    loop {
        waits.prune();
        let Some(circle) = waits.circle() else {
            found.sort_by(|a: &Deadlock, b| a.circle.cmp(&b.circle));
            return found;
        };
        for (id, _) in &circle {
            waits.0.remove(id);
        }
        found.push(Deadlock { circle: from_smallest(&circle) });
    }
}

/// For each workflow those that it waits for, with the latest slot of each: how many seconds later than its own.
struct WaitGraph<'w>(BTreeMap<&'w WorkflowId, BTreeMap<&'w WorkflowId, i64>>);

impl<'w> WaitGraph<'w> {
    fn new(workflows: impl IntoIterator<Item = &'w Workflow>) -> WaitGraph<'w> {
        let timed = workflows.into_iter().filter(|one| matches!(one.keys, Keys::Schedule(_)));
        WaitGraph(timed.map(|one| (&one.id, latest(required(&one.trigger, &one.id)))).collect())
    }

    /// Leaves out what is in no circle of workflows, and waits for a workflow's own past.
    fn prune(&mut self) {
        let known: BTreeSet<&WorkflowId> = self.0.keys().copied().collect();
        for (id, on) in &mut self.0 {
            on.retain(|other, later| known.contains(other) && (other != id || *later >= 0));
        }
        self.prune_ends();
        self.prune_beginnings();
    }

    /// Leaves out those that wait for nobody, until there is none.
    fn prune_ends(&mut self) {
        let mut waiters: BTreeMap<&WorkflowId, Vec<&'w WorkflowId>> = BTreeMap::new();
        for (id, on) in &self.0 {
            on.keys().for_each(|other| waiters.entry(*other).or_default().push(*id));
        }
        let mut ends: Vec<&WorkflowId> = self.0.iter().filter(|(_, on)| on.is_empty()).map(|(id, _)| *id).collect();
        while let Some(end) = ends.pop() {
            self.0.remove(end);
            for waiter in waiters.remove(end).into_iter().flatten() {
                let Some(on) = self.0.get_mut(waiter) else { continue };
                on.remove(end);
                if on.is_empty() {
                    ends.push(waiter);
                }
            }
        }
    }

    /// Leaves out those for whom nobody waits, until there is none.
    fn prune_beginnings(&mut self) {
        let mut waiters: BTreeMap<&'w WorkflowId, usize> = self.0.keys().map(|id| (*id, 0)).collect();
        for other in self.0.values().flat_map(BTreeMap::keys) {
            *waiters.entry(*other).or_default() += 1;
        }
        let mut begins: Vec<&WorkflowId> =
            waiters.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
        while let Some(begin) = begins.pop() {
            for (other, _) in self.0.remove(begin).into_iter().flatten() {
                let Some(count) = waiters.get_mut(other) else { continue };
                *count = count.saturating_sub(1);
                if *count == 0 {
                    begins.push(other);
                }
            }
        }
    }

    /// A circle whose offsets sum to nothing or more: the method of Bellman and Ford, with a weight for each wait that is above
    /// zero on such a circle, and below it on any other.
    fn circle(&self) -> Option<Vec<(&'w WorkflowId, i64)>> {
        let scale = self.0.len() as i128 + 1;
        let mut distance: BTreeMap<&WorkflowId, i128> = BTreeMap::new();
        let mut before: BTreeMap<&'w WorkflowId, &'w WorkflowId> = BTreeMap::new();
        let mut last = None;
        for _ in 0..=self.0.len() {
            last = None;
            for (id, on) in &self.0 {
                for (other, later) in on {
                    let through = distance.get(id).copied().unwrap_or(0) + i128::from(*later) * scale + 1;
                    if through > distance.get(other).copied().unwrap_or(0) {
                        distance.insert(*other, through);
                        before.insert(*other, *id);
                        last = Some(*other);
                    }
                }
            }
            last?;
        }
        let step = |id: &'w WorkflowId| before.get(id).copied();
        let inside = (0..self.0.len()).try_fold(last?, |id, _| step(id))?;
        let mut circle = vec![inside];
        let mut at = step(inside)?;
        while at != inside {
            circle.push(at);
            at = step(at)?;
        }
        circle.reverse();
        let next = circle.iter().cycle().skip(1);
        circle.iter().zip(next).map(|(id, next)| Some((*id, *self.0.get(id)?.get(next)?))).collect()
    }
}

/// The slots that must have succeeded before a slot with this trigger may go, by how many seconds they are later.
fn required<'t>(trigger: &'t Trigger, own: &WorkflowId) -> BTreeSet<(&'t WorkflowId, i64)> {
    match trigger.node() {
        Node::Leaf(Leaf::Slot(workflow)) => BTreeSet::from([(workflow, 0)]),
        // Of itself only earlier periods count, of which there is none where they begin no earlier. The last period of another workflow
        // ends so much later at least, and along a circle ends may be added up as starts are.
        Node::Leaf(Leaf::Periods(covered)) if covered.workflow == own && covered.from < 0 => BTreeSet::new(),
        Node::Leaf(Leaf::Periods(covered)) if covered.workflow == own => BTreeSet::from([(covered.workflow, 0)]),
        Node::Leaf(Leaf::Periods(covered)) => BTreeSet::from([(covered.workflow, covered.to)]),
        Node::Leaf(_) | Node::Not(_) => BTreeSet::new(),
        Node::Later(seconds, nested) => {
            let nested = required(nested, own).into_iter();
            nested.filter_map(|(workflow, later)| Some((workflow, later.checked_add(seconds)?))).collect()
        }
        Node::All(nested) => nested.iter().flat_map(|one| required(one, own)).collect(),
        Node::Any(nested) => {
            let all = nested.iter().map(|one| required(one, own));
            all.reduce(|some, others| some.intersection(&others).copied().collect()).unwrap_or_default()
        }
    }
}

fn latest(slots: BTreeSet<(&WorkflowId, i64)>) -> BTreeMap<&WorkflowId, i64> {
    // Of the slots of one workflow the latest comes last, and stays.
    slots.into_iter().collect()
}

fn from_smallest(circle: &[(&WorkflowId, i64)]) -> Vec<(WorkflowId, i64)> {
    let smallest = (0..circle.len()).min_by_key(|n| circle.get(*n).map(|(id, _)| id)).unwrap_or(0);
    let (tail, head) = circle.split_at(smallest);
    head.iter().chain(tail).map(|(id, later)| ((*id).clone(), *later)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::time::{CronSchedule, Schedule};
    use crate::workflow::Job;

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn success(name: &str) -> Trigger {
        Trigger::Success { workflow: id(name) }
    }

    fn later(seconds: i64, name: &str) -> Trigger {
        Trigger::Offset { seconds, trigger: Box::new(success(name)) }
    }

    fn and(triggers: Vec<Trigger>) -> Trigger {
        Trigger::And { triggers }
    }

    fn or(triggers: Vec<Trigger>) -> Trigger {
        Trigger::Or { triggers }
    }

    fn circles(triggers: &[(&str, Trigger)]) -> Vec<Vec<(String, i64)>> {
        let schedule = || Schedule::Cron(CronSchedule::hourly());
        let workflow = |(name, trigger): &(&str, Trigger)| Workflow {
            trigger: trigger.clone(),
            ..Workflow::new(id(name), schedule(), Job::new("command", Map::new()))
        };
        let workflows: Vec<Workflow> = triggers.iter().map(workflow).collect();
        let circle = |one: Deadlock| one.circle.into_iter().map(|(id, later)| (id.to_string(), later)).collect();
        deadlocks(&workflows).into_iter().map(circle).collect()
    }

    fn circle(names: &[(&str, i64)]) -> Vec<(String, i64)> {
        names.iter().map(|(name, later)| ((*name).to_owned(), *later)).collect()
    }

    #[test]
    fn a_circle_at_the_same_time_is_a_deadlock() {
        let all = [("c", success("b")), ("b", success("a")), ("a", success("c")), ("d", success("a"))];
        assert_eq!(circles(&all), [circle(&[("a", 0), ("c", 0), ("b", 0)])]);
        assert_eq!(circles(&[("a", success("a"))]), [circle(&[("a", 0)])]);
    }

    #[test]
    fn a_circle_into_the_past_is_none() {
        assert!(circles(&[("a", later(-3600, "a"))]).is_empty());
        assert!(circles(&[("a", success("b")), ("b", later(-3600, "a"))]).is_empty());
        assert!(circles(&[("a", later(3600, "b")), ("b", later(-7200, "a"))]).is_empty());
    }

    #[test]
    fn periods_that_cover_each_other_are_a_deadlock() {
        let covers = |name: &str, from, to| Trigger::Covers { workflow: id(name), from, to };
        let both = [("a", covers("b", 0, 0)), ("b", success("a"))];
        assert_eq!(circles(&both), [circle(&[("a", 0), ("b", 0)])]);
        assert!(circles(&[("a", covers("b", -3600, -3600)), ("b", covers("a", 0, 0))]).is_empty());
        assert_eq!(circles(&[("a", covers("a", 0, 0))]), [circle(&[("a", 0)])]);
        assert!(circles(&[("a", covers("a", -3600, 0))]).is_empty());
    }

    #[test]
    fn offsets_are_added_up_along_the_circle() {
        let shifted = [("a", later(3600, "b")), ("b", later(-3600, "a"))];
        assert_eq!(circles(&shifted), [circle(&[("a", 3600), ("b", -3600)])]);
        let future = [("a", later(3600, "b")), ("b", success("a"))];
        assert_eq!(circles(&future), [circle(&[("a", 3600), ("b", 0)])]);
        // A harmless wait beside it hides nothing.
        let both = [("a", and(vec![later(-60, "b"), success("b"), later(-60, "a")])), ("b", success("a"))];
        assert_eq!(circles(&both), [circle(&[("a", 0), ("b", 0)])]);
    }

    #[test]
    fn only_what_is_needed_in_any_case_counts() {
        let not = Trigger::Not { trigger: Box::new(success("a")) };
        assert!(circles(&[("a", not)]).is_empty());
        assert!(circles(&[("a", or(vec![success("a"), Trigger::Always]))]).is_empty());
        let in_both = or(vec![and(vec![success("a"), success("b")]), success("a")]);
        assert_eq!(circles(&[("a", in_both)]), [circle(&[("a", 0)])]);
        assert!(circles(&[("a", success("gone"))]).is_empty());
    }

    #[test]
    fn each_circle_is_named_once() {
        let all = [
            ("a", success("b")),
            ("b", success("a")),
            ("c", and(vec![success("a"), success("d")])),
            ("d", success("c")),
        ];
        assert_eq!(circles(&all), [circle(&[("a", 0), ("b", 0)]), circle(&[("c", 0), ("d", 0)])]);
    }

    #[test]
    fn long_chains_that_wait_for_their_own_past_are_fine() {
        let name = |n: usize| format!("w{n:05}");
        let names: Vec<String> = (0..3000).map(name).collect();
        let chain: Vec<(&str, Trigger)> = (0..3000)
            .map(|n| {
                let before = names.get(n + 1).map_or(Trigger::Always, |next| success(next));
                (names[n].as_str(), and(vec![before, later(-60, &names[n])]))
            })
            .collect();
        assert!(circles(&chain).is_empty());
    }
}
