//! What is certain of a trigger before anything happens: that it can never be met, or that it is met for ever.

use super::{Leaf, Node, Trigger};
use crate::facts::Subject;

/// The message about a trigger that waits for no fact, where only facts can begin anything.
const NOTHING_BEGINS: &str = "nothing in its trigger can begin it: expected times, partitions, ends of programs or signals \
                              among what it waits for";
/// The message about a trigger that only waits for facts not to come.
const NEVER_MET: &str = "its trigger can never be met: the facts that begin it are those that `not` forbids; expected others \
                         besides, such as times, partitions, ends of programs or signals outside of `not`";

impl Trigger {
    /// Checks that an event schedule with this trigger can ever start.
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

    /// The possible answers once a fact about a subject has come.
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

/// The possible answers of a trigger, now or later.
#[derive(Debug, Clone, Copy)]
struct May {
    met: bool,
    unmet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
