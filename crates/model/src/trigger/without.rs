//! What is left of a trigger when a program is gone.

use super::{Leaf, Node, Trigger};
use crate::id::WorkflowId;

impl Trigger {
    /// The trigger without waiting for runs of a program that is gone: of an `or` its other branches are left, an `and` that
    /// needs it can never be met again, and what is left with a single branch is that branch. None where nothing is left.
    #[must_use]
    pub fn without(&self, program: &WorkflowId) -> Option<Trigger> {
        if self.waits_for(program) { self.stripped(program) } else { Some(self.clone()) }
    }

    fn stripped(&self, program: &WorkflowId) -> Option<Trigger> {
        match self.node() {
            Node::All(triggers) => {
                let left: Option<Vec<_>> = triggers.iter().map(|one| one.stripped(program)).collect();
                left.map(|triggers| alone(triggers).unwrap_or_else(|triggers| Trigger::And { triggers }))
            }
            Node::Any(triggers) => {
                let left: Vec<_> = triggers.iter().filter_map(|one| one.stripped(program)).collect();
                let any = !left.is_empty();
                any.then(|| alone(left).unwrap_or_else(|triggers| Trigger::Or { triggers }))
            }
            Node::Not(trigger) => trigger.stripped(program).map(|trigger| Trigger::Not { trigger: Box::new(trigger) }),
            Node::Later(seconds, trigger) => {
                let trigger = Box::new(trigger.stripped(program)?);
                Some(Trigger::Offset { seconds, trigger })
            }
            Node::Leaf(Leaf::Facts(awaited)) if awaited.program == Some(program) => None,
            Node::Leaf(_) => Some(self.clone()),
        }
    }
}

/// The single one, or all of them.
fn alone(mut triggers: Vec<Trigger>) -> Result<Trigger, Vec<Trigger>> {
    match (triggers.len(), triggers.pop()) {
        (1, Some(single)) => Ok(single),
        (_, last) => {
            triggers.extend(last);
            Err(triggers)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::SlotState;

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn program(name: &str) -> Trigger {
        Trigger::Ended { program: id(name), states: vec![SlotState::Succeeded] }
    }

    fn partition(dataset: &str) -> Trigger {
        Trigger::Partitions { dataset: dataset.into(), count: 1 }
    }

    fn or(triggers: &[Trigger]) -> Trigger {
        Trigger::Or { triggers: triggers.to_vec() }
    }

    fn and(triggers: &[Trigger]) -> Trigger {
        Trigger::And { triggers: triggers.to_vec() }
    }

    #[test]
    fn the_worked_example_of_the_reference() {
        let (p1, p2) = (program("P1"), program("P2"));
        let whole = or(&[
            partition("ds1"),
            p1.clone(),
            and(&[or(&[p1, p2.clone()]), partition("ds2")]),
            or(std::slice::from_ref(&p2)),
        ]);
        let without_p1 = whole.without(&id("P1")).expect("something is left");
        let expected = or(&[partition("ds1"), and(&[p2.clone(), partition("ds2")]), p2]);
        assert_eq!(without_p1, expected);
        assert_eq!(without_p1.without(&id("P2")), Some(partition("ds1")));
    }

    #[test]
    fn what_needs_it_goes_and_what_does_not_stays() {
        assert_eq!(program("P1").without(&id("P1")), None);
        assert_eq!(and(&[program("P1"), partition("ds")]).without(&id("P1")), None);
        assert_eq!(or(&[program("P1")]).without(&id("P1")), None);
        assert_eq!(program("P2").without(&id("P1")), Some(program("P2")));
    }
}
