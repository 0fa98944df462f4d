//! The current turn: its events, its commands, and the end of the log.
//!
//! Absent: rows. Each organ knows which of its own rows a turn has changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::event::{BackfillEvent, Event, WorkflowEvent};
use kelos_model::history::Trim;
use kelos_model::{AccessEvent, Actor, BackfillId, EventRecord, FactKey, WorkflowId};
use serde_json::Value;

use crate::mandate::Mandate;
use crate::past::{KnownDefinitions, KnownFacts};
use crate::{Command, Step};

/// The current turn.
#[derive(Default)]
pub(crate) struct Turn {
    /// The position of the last event, of this turn or an earlier one.
    seq: u64,
    step: Step,
    registers: Vec<(String, String, Option<Value>)>,
    /// The facts with idempotency keys that this turn stored, and their positions in the log.
    facts: Vec<(FactKey, u64)>,
    /// The history that this turn removes.
    trim: Option<Trim>,
    /// The facts that the turn has looked up.
    pub(crate) known: KnownFacts,
    /// The definitions of workflows that the turn has looked up.
    pub(crate) defined: KnownDefinitions,
    /// The number of held slots of each program that were evaluated because of facts.
    judged: BTreeMap<WorkflowId, usize>,
}

impl Turn {
    /// A turn that continues a log.
    pub(crate) fn after(seq: u64) -> Turn {
        Turn { seq, ..Turn::default() }
    }

    /// The position of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.seq + 1
    }

    /// Logs an event, with the position of the previous event of the same slot; 0 if there is none. Returns its
    /// position.
    pub(crate) fn log(&mut self, at: Timestamp, previous: u64, event: Event) -> u64 {
        self.seq = self.next_seq();
        self.step.events.push(EventRecord { seq: self.seq, at, previous, event });
        self.seq
    }

    /// Logs an event of a workflow, whose row already reflects it.
    pub(crate) fn log_workflow(&mut self, at: Timestamp, id: &WorkflowId, what: WorkflowEvent) {
        self.log(at, 0, Event::Workflow { workflow: id.clone(), what });
    }

    /// Logs an event of a backfill, whose row already reflects it.
    pub(crate) fn log_backfill(&mut self, at: Timestamp, id: &BackfillId, what: BackfillEvent) {
        self.log(at, 0, Event::Backfill { backfill: id.clone(), what });
    }

    /// Sets a register; none deletes it.
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

    /// Logs that somebody came in, went, or was refused.
    pub(crate) fn log_access(&mut self, at: Timestamp, what: AccessEvent, by: Actor) {
        self.log(at, 0, Event::Access { what, by });
    }

    /// Notes the position of a stored fact in the log.
    pub(crate) fn note_fact(&mut self, name: FactKey, seq: u64) {
        self.facts.push((name, seq));
    }

    /// Adds a command, to be performed after the commit.
    pub(crate) fn command(&mut self, command: Command) {
        self.step.commands.push(command);
    }

    /// The number of held slots of a program that may still be evaluated because of facts, out of a limit for the turn.
    pub(crate) fn left_to_judge(&self, program: &WorkflowId, most: usize) -> usize {
        most.saturating_sub(self.judged.get(program).copied().unwrap_or(0))
    }

    /// Counts held slots of a program that were evaluated because of facts.
    pub(crate) fn note_judged(&mut self, program: &WorkflowId, slots: usize) {
        *self.judged.entry(program.clone()).or_default() += slots;
    }

    /// Has the turn remove history.
    pub(crate) fn trim(&mut self, trim: Trim) {
        self.trim = Some(match self.trim.take() {
            Some(before) => before.and(&trim),
            None => trim,
        });
    }

    /// The history that it removes.
    pub(crate) fn trimmed(&self) -> Option<&Trim> {
        self.trim.as_ref()
    }

    /// The registers that it has set.
    pub(crate) fn registers(&self) -> &[(String, String, Option<Value>)] {
        &self.registers
    }

    /// The facts with idempotency keys that it has stored, and their positions in the log.
    pub(crate) fn facts(&self) -> &[(FactKey, u64)] {
        &self.facts
    }

    /// Takes the result of a step out.
    pub(crate) fn take_step(&mut self) -> Step {
        std::mem::take(&mut self.step)
    }

    /// Ends the turn and begins the next one.
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
