//! Event schedules that fire themselves for ever.

use jiff::Timestamp;

use super::Workflow;
use crate::constraint::Gate;
use crate::facts::{Collection, ENDS, Occurrence};
use crate::state::SlotState;

/// The hint about an event schedule that triggers itself for ever.
pub const SLOWED: &str = "a delay, or a duration since the last run, slows it";

impl Workflow {
    /// The reason that an event schedule triggers itself for ever, as fast as its program runs: the end of a run is all that its trigger
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
    use crate::trigger::Trigger;
    use crate::workflow::{EventKeys, Job, Keys};

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn signal(name: &str) -> Trigger {
        Trigger::Signal { name: name.into() }
    }

    fn and(triggers: Vec<Trigger>) -> Trigger {
        Trigger::And { triggers }
    }

    fn or(triggers: Vec<Trigger>) -> Trigger {
        Trigger::Or { triggers }
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
