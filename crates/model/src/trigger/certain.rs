//! What is certain of a trigger before anything happens: that it can never be met, or that it is met for ever.

use jiff::Timestamp;

use super::{Leaf, Node, Trigger};
use crate::constraint::Gate;
use crate::facts::{Collection, ENDS, Occurrence, Subject};
use crate::slot::SlotState;
use crate::workflow::Workflow;

/// What can be said to who has an event schedule go round for ever.
pub const SLOWED: &str = "a delay, or a duration since the last run, slows it";

/// What is wrong with a trigger that waits for no fact, where only facts can begin anything.
const NOTHING_BEGINS: &str = "nothing in its trigger can begin it: expected times, partitions, ends of programs or signals \
                              among what it waits for";
/// What is wrong with a trigger that only waits for facts not to come.
const NEVER_MET: &str = "its trigger can never be met: the facts that begin it are those that `not` forbids; expected others \
                         besides, such as times, partitions, ends of programs or signals outside of `not`";

impl Trigger {
    /// Says why an event schedule with this trigger would never go, in words.
    ///
    /// # Errors
    /// When that is certain.
    pub fn check_begin(&self) -> Result<(), &'static str> {
        match (self.subjects().is_empty(), self.can_begin()) {
            (true, _) => Err(NOTHING_BEGINS),
            (false, false) => Err(NEVER_MET),
            (false, true) => Ok(()),
        }
    }

    /// Whether any fact that opens a slot of an event schedule leaves its trigger a way to be met. None does where all of them
    /// are such that the trigger waits for them not to come.
    fn can_begin(&self) -> bool {
        self.subjects().iter().any(|subject| self.after(subject).met)
    }

    /// What it may come to once a fact about a subject has come.
    fn after(&self, begun: &Subject) -> May {
        // Each once: what is nested deeply would take for ever otherwise.
        let nested = |triggers: &[Trigger]| triggers.iter().map(|one| one.after(begun)).collect::<Vec<_>>();
        match self.node() {
            Node::Not(trigger) => {
                let inner = trigger.after(begun);
                May { met: inner.unmet, unmet: inner.met }
            }
            Node::All(triggers) => {
                let all = nested(triggers);
                May { met: all.iter().all(|one| one.met), unmet: all.iter().any(|one| one.unmet) }
            }
            Node::Any(triggers) => {
                let all = nested(triggers);
                May { met: all.iter().any(|one| one.met), unmet: all.iter().all(|one| one.unmet) }
            }
            Node::Later(_, trigger) => trigger.after(begun),
            Node::Leaf(Leaf::Nothing) => May { met: true, unmet: false },
            // A first partition is not yet all of them.
            Node::Leaf(Leaf::Facts(awaited)) => {
                May { met: true, unmet: awaited.count > 1 || !awaited.subjects.contains(begun) }
            }
            Node::Leaf(_) => May { met: true, unmet: true },
        }
    }
}

/// What the answer of a trigger may be, now or later.
#[derive(Debug, Clone, Copy)]
struct May {
    met: bool,
    unmet: bool,
}

impl Workflow {
    /// Why an event schedule goes round for ever, as fast as its program runs: the end of a run of that is all that its trigger
    /// needs, and nothing slows it. None where it does not.
    #[must_use]
    pub fn goes_round(&self) -> Option<String> {
        let program = &self.keys.events()?.program;
        let slows = |gate: &Gate| matches!(gate, Gate::Delay(_) | Gate::SinceLastRun(_));
        if self.constraints.iter().any(|constraint| slows(&constraint.gate)) {
            return None;
        }
        let is_met_by = |state: &SlotState| {
            let mut collected = Collection::new(Timestamp::UNIX_EPOCH);
            let (arguments, outputs) = Default::default();
            collected.add(&Occurrence::Ended {
                program: program.clone(),
                state: *state,
                run: None,
                arguments,
                outputs,
            });
            self.trigger.is_met_by(&collected)
        };
        let ends: Vec<&str> = ENDS.iter().filter(|state| is_met_by(state)).map(|state| state.as_str()).collect();
        let told = format!(
            "it waits for the end of its own program, which is an endless loop: each run of {program} that ended as {} \
              triggers the next at once",
            ends.join(" or ")
        );
        (!ends.is_empty()).then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::constraint::Constraint;
    use crate::id::WorkflowId;
    use crate::workflow::{EventKeys, Job, Keys};

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn signal(name: &str) -> Trigger {
        Trigger::Signal { name: name.into() }
    }

    fn not(trigger: Trigger) -> Trigger {
        Trigger::Not { trigger: Box::new(trigger) }
    }

    fn partitions(count: u32) -> Trigger {
        Trigger::Partitions { dataset: "ds".into(), count }
    }

    fn and(triggers: Vec<Trigger>) -> Trigger {
        Trigger::And { triggers }
    }

    fn or(triggers: Vec<Trigger>) -> Trigger {
        Trigger::Or { triggers }
    }

    #[test]
    fn what_only_a_fact_begins_that_must_not_come_can_never_begin() {
        let never = [
            not(signal("a")),
            and(vec![not(signal("a")), not(signal("b"))]),
            not(or(vec![signal("a"), signal("b")])),
            and(vec![not(signal("a")), Trigger::Delay { seconds: 60 }]),
            not(partitions(1)),
            and(vec![signal("a"), not(signal("a"))]),
            Trigger::Always,
        ];
        for trigger in never {
            assert!(!trigger.can_begin(), "{trigger:?}");
        }
        let may = [
            signal("a"),
            not(not(signal("a"))),
            and(vec![partitions(4), not(signal("a"))]),
            or(vec![not(signal("a")), not(signal("b"))]),
            or(vec![not(signal("a")), Trigger::Delay { seconds: 60 }]),
            not(and(vec![signal("a"), signal("b")])),
            not(partitions(2)),
        ];
        for trigger in may {
            assert!(trigger.can_begin(), "{trigger:?}");
        }
        let deep = (0..60).fold(signal("a"), |one, _| or(vec![and(vec![one])]));
        assert!(deep.can_begin() && !not(deep).can_begin());
    }

    #[test]
    fn a_schedule_that_the_end_of_its_own_program_has_go_goes_round() {
        let ended = |program, states: &[SlotState]| Trigger::Ended { program: id(program), states: states.to_vec() };
        let schedule = |trigger: Trigger| {
            let keys = Keys::Events(Box::new(EventKeys::new("s", id("p"))));
            Workflow { trigger, ..Workflow::keyed(id("a.s"), keys, Job::new("command", Map::new())) }
        };
        let own = ended("p", &[SlotState::Succeeded, SlotState::Failed]);
        let told = "it waits for the end of its own program, which is an endless loop: each run of p that ended as succeeded \
                    or failed triggers the next at once";
        assert_eq!(schedule(own.clone()).goes_round().as_deref(), Some(told));
        assert!(schedule(or(vec![signal("a"), own.clone()])).goes_round().is_some());
        assert_eq!(schedule(and(vec![signal("a"), own.clone()])).goes_round(), None);
        assert_eq!(schedule(ended("q", &[SlotState::Succeeded])).goes_round(), None);
        let mut slow = schedule(own);
        slow.constraints = vec![Constraint::new(Gate::Concurrency(1))];
        assert!(slow.goes_round().is_some());
        slow.constraints.push(Constraint::new(Gate::Delay(1000)));
        assert_eq!(slow.goes_round(), None);
    }
}
