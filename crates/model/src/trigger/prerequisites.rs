//! Triggers that wait for nothing but time and the success of other slots, all of which must come. When such a slot may start is
//! known of whole ranges of times, without evaluating each.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{Leaf, Node, PeriodsOf, Trigger};
use crate::id::WorkflowId;

/// The conditions that each slot of a workflow waits for, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prerequisites {
    /// More than so many seconds must have passed since its time.
    pub delay: Option<i64>,
    /// The slots that must have succeeded.
    pub upstream: BTreeSet<Prerequisite>,
}

/// Slots of a workflow that must have succeeded before a slot may start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prerequisite {
    /// One slot.
    Slot {
        /// Its workflow.
        workflow: WorkflowId,
        /// The seconds from the time of the slot that waits to its own.
        offset: i64,
    },
    /// All slots whose periods intersect the one of the slot that waits.
    Periods(PeriodsOf),
}

impl Prerequisite {
    /// The workflow of the slots.
    #[must_use]
    pub fn workflow(&self) -> &WorkflowId {
        match self {
            Prerequisite::Slot { workflow, .. } => workflow,
            Prerequisite::Periods(periods) => &periods.workflow,
        }
    }

    fn later(self, seconds: i64) -> Option<Prerequisite> {
        Some(match self {
            Prerequisite::Slot { workflow, offset } => {
                Prerequisite::Slot { workflow, offset: offset.checked_add(seconds)? }
            }
            Prerequisite::Periods(periods) => Prerequisite::Periods(periods.delayed(seconds)?),
        })
    }
}

impl Prerequisites {
    /// The first moment from which on time keeps a slot from nothing any more.
    #[must_use]
    pub fn free_at(&self, time: Timestamp) -> Option<Timestamp> {
        match self.delay {
            // Time passes in milliseconds.
            Some(seconds) => {
                let span = SignedDuration::from_secs(seconds).saturating_add(SignedDuration::from_millis(1));
                time.checked_add(span).ok()
            }
            None => Some(time),
        }
    }

    /// Slots with times before this wait for time no more, at a moment.
    #[must_use]
    pub fn free_until(&self, now: Timestamp) -> Timestamp {
        match self.delay {
            Some(seconds) => now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN),
            None => Timestamp::MAX,
        }
    }

    fn both(mut self, other: Prerequisites) -> Prerequisites {
        self.delay = self.delay.max(other.delay);
        self.upstream.extend(other.upstream);
        self
    }

    fn later(self, seconds: i64) -> Option<Prerequisites> {
        let delay = match self.delay {
            Some(delay) => Some(delay.checked_add(seconds)?),
            None => None,
        };
        let upstream = self.upstream.into_iter().map(|one| one.later(seconds)).collect::<Option<_>>()?;
        Some(Prerequisites { delay, upstream })
    }

    fn of(one: Prerequisite) -> Prerequisites {
        Prerequisites { delay: None, upstream: BTreeSet::from([one]) }
    }
}

impl Trigger {
    /// The conditions that a slot with this trigger waits for, where that is only time and the success of other slots; none where anything else
    /// may decide.
    #[must_use]
    pub fn prerequisites(&self) -> Option<Prerequisites> {
        match self.node() {
            Node::Leaf(Leaf::Nothing) => Some(Prerequisites::default()),
            Node::Leaf(Leaf::Clock(seconds)) => {
                Some(Prerequisites { delay: Some(seconds), ..Prerequisites::default() })
            }
            Node::Leaf(Leaf::Slot(workflow)) => {
                Some(Prerequisites::of(Prerequisite::Slot { workflow: workflow.clone(), offset: 0 }))
            }
            Node::Leaf(Leaf::Periods(covered)) => Some(Prerequisites::of(Prerequisite::Periods(covered.to_owned()))),
            Node::Later(seconds, trigger) => trigger.prerequisites()?.later(seconds),
            Node::All(triggers) => {
                triggers.iter().try_fold(Prerequisites::default(), |all, one| Some(all.both(one.prerequisites()?)))
            }
            Node::Any(_) | Node::Not(_) | Node::Leaf(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a moment")
    }

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    #[test]
    fn time_and_success_are_told_of_ranges() {
        let success = |name: &str| Trigger::Success { workflow: id(name) };
        let offset = |seconds, trigger| Trigger::Offset { seconds, trigger: Box::new(trigger) };
        let delay = |seconds| Trigger::Delay { seconds };
        let and = |triggers| Trigger::And { triggers };
        let of = and(vec![success("a"), offset(-60, and(vec![success("a"), delay(90)])), delay(10), Trigger::Always]);
        let found = of.prerequisites().expect("nothing else decides");
        assert_eq!(found.delay, Some(30));
        let slot = |offset| Prerequisite::Slot { workflow: id("a"), offset };
        assert_eq!(found.upstream, BTreeSet::from([slot(0), slot(-60)]));
        assert!(Trigger::Or { triggers: vec![success("a")] }.prerequisites().is_none());
        assert!(and(vec![Trigger::Not { trigger: Box::new(delay(1)) }]).prerequisites().is_none());
        assert_eq!(Trigger::Always.prerequisites(), Some(Prerequisites::default()));
    }

    #[test]
    fn periods_that_are_waited_for_are_told_of_ranges_too() {
        let covers = Trigger::Covers { workflow: id("hours"), from: -3600, to: 0 };
        let of = Trigger::Offset { seconds: -60, trigger: Box::new(covers) };
        let found = of.prerequisites().expect("nothing else decides").upstream;
        let Some(Prerequisite::Periods(periods)) = found.first() else { panic!("{found:?}") };
        let covered = periods.coverage();
        assert_eq!((covered.later, covered.from, covered.to), (-60, -3600, 0));
    }

    #[test]
    fn a_delay_frees_times_when_more_than_it_has_passed() {
        let waits = Trigger::Delay { seconds: 5 }.prerequisites().expect("only time decides");
        assert_eq!(waits.free_at(at(1000)), Some(at(6001)));
        assert!(at(1000) < waits.free_until(at(6001)) && at(1000) >= waits.free_until(at(6000)));
        assert_eq!(Prerequisites::default().free_at(at(7)), Some(at(7)));
    }
}
