//! The turn that is going on: the events that it has led to, what is to be done after it, and where the log ends.
//!
//! Absent: rows. Each organ says which of its own a turn has changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::event::{BackfillEvent, Event, WorkflowEvent};
use kelos_model::{BackfillId, EventRecord, FactKey, WorkflowId};
use serde_json::Value;

use crate::mandate::Mandate;
use crate::past::KnownFacts;
use crate::{Command, Step};

/// The turn that is going on.
#[derive(Default)]
pub(crate) struct Turn {
    /// The position of the last event, of this turn or of one before.
    seq: u64,
    step: Step,
    registers: Vec<(String, String, Option<Value>)>,
    /// Facts with names that were told in this turn, with their log positions.
    facts: Vec<(FactKey, u64)>,
    /// The facts that it has looked up.
    pub(crate) known: KnownFacts,
    /// At how many held slots of each program was looked because of facts.
    judged: BTreeMap<WorkflowId, usize>,
}

impl Turn {
    /// A turn that goes on where a log ends.
    pub(crate) fn after(seq: u64) -> Turn {
        Turn { seq, ..Turn::default() }
    }

    /// The position that the next event will have.
    pub(crate) fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Logs an event, with the position of the one before about the same slot; 0 where there is none. Gives its position.
    pub(crate) fn log(&mut self, at: Timestamp, previous: u64, event: Event) -> u64 {
        self.seq = self.next_seq();
        self.step.events.push(EventRecord { seq: self.seq, at, previous, event });
        self.seq
    }

    /// Logs what happened to a workflow, whose row says so already.
    pub(crate) fn log_workflow(&mut self, at: Timestamp, id: &WorkflowId, what: WorkflowEvent) {
        self.log(at, 0, Event::Workflow { workflow: id.clone(), what });
    }

    /// Logs what happened to a backfill, whose row says so already.
    pub(crate) fn log_backfill(&mut self, at: Timestamp, id: &BackfillId, what: BackfillEvent) {
        self.log(at, 0, Event::Backfill { backfill: id.clone(), what });
    }

    /// Sets a register, or deletes it with none.
    pub(crate) fn set_register(
        &mut self,
        at: Timestamp,
        (bucket, key): (String, String),
        value: Option<Value>,
        mandate: Mandate,
    ) {
        let Mandate { by, reason } = mandate;
        self.registers.push((bucket.clone(), key.clone(), value.clone()));
        self.log(at, 0, Event::Register { bucket, key, value, by: Some(by), reason });
    }

    /// Notes that a fact is stored at a position of the log.
    pub(crate) fn note_fact(&mut self, name: FactKey, seq: u64) {
        self.facts.push((name, seq));
    }

    /// Has something be done after the commit.
    pub(crate) fn command(&mut self, command: Command) {
        self.step.commands.push(command);
    }

    /// How many held slots of a program may still be looked at because of facts, of so many in a turn.
    pub(crate) fn left_to_judge(&self, program: &WorkflowId, most: usize) -> usize {
        most.saturating_sub(self.judged.get(program).copied().unwrap_or(0))
    }

    /// Notes at how many more held slots of a program was looked because of facts.
    pub(crate) fn note_judged(&mut self, program: &WorkflowId, slots: usize) {
        *self.judged.entry(program.clone()).or_default() += slots;
    }

    /// The registers and the facts with names that it has set.
    pub(crate) fn registers(&self) -> &[(String, String, Option<Value>)] {
        &self.registers
    }

    /// The facts with names that were told, with their log positions.
    pub(crate) fn facts(&self) -> &[(FactKey, u64)] {
        &self.facts
    }

    /// Takes out what a step has led to.
    pub(crate) fn take_step(&mut self) -> Step {
        std::mem::take(&mut self.step)
    }

    /// Ends it: the next one begins.
    pub(crate) fn settle(&mut self) {
        *self = Turn::after(self.seq);
    }
}

#[cfg(test)]
mod tests {
    use kelos_model::Actor;

    use super::*;

    #[test]
    fn events_have_positions_that_go_on_from_turn_to_turn() {
        let id: WorkflowId = "wf".parse().expect("an id");
        let mut turn = Turn::after(7);
        turn.log_workflow(Timestamp::UNIX_EPOCH, &id, WorkflowEvent::Removed { by: None, reason: None });
        let mandate = Mandate { by: Actor::system("test"), reason: None };
        turn.set_register(Timestamp::UNIX_EPOCH, ("bucket".to_owned(), "key".to_owned()), None, mandate);
        assert_eq!(turn.take_step().events.iter().map(|one| one.seq).collect::<Vec<_>>(), [8, 9]);
        assert_eq!((turn.registers().len(), turn.take_step().events.len()), (1, 0));
        turn.settle();
        assert_eq!((turn.registers().len(), turn.next_seq()), (0, 10));
    }

    #[test]
    fn what_was_looked_at_because_of_facts_is_counted_by_program() {
        let [p, q]: [WorkflowId; 2] = ["p", "q"].map(|id| id.parse().expect("an id"));
        let mut turn = Turn::default();
        turn.note_judged(&p, 2);
        turn.note_judged(&p, 1);
        assert_eq!((turn.left_to_judge(&p, 4), turn.left_to_judge(&p, 2), turn.left_to_judge(&q, 4)), (1, 0, 4));
    }
}
