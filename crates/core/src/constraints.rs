//! Constraints: whether a slot whose trigger is met runs, waits, or is ended. All runs of a program count, whatever
//! their origin, including those about to start, so that a limit holds in any order of events.

use jiff::Timestamp;
use kelos_model::constraint::Judgement;
use kelos_model::trigger::{Evaluation, Waker};
use kelos_model::{Answer, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::budget::Budget;
use crate::programs::{About, HeldPosition, Transfer};
use crate::slots::SlotTable;
use crate::{Core, WorkflowFilter};

impl Core {
    /// Evaluates the constraints of a slot whose trigger is met.
    pub(crate) fn look_at_constraints(&mut self, id: &SlotRef) {
        self.programs.leave(id);
        let Some(Judgement { explanation, wake, room_below, until_end }) = self.evaluator().constraints(id) else {
            return self.breaches.no_slot(id);
        };
        match explanation.answer {
            Answer::Met => {
                self.record(id, SlotEvent::ConstraintsMet { explanation });
            }
            Answer::Never => {
                self.record(id, SlotEvent::Skipped { explanation });
            }
            Answer::NotYet => {
                let wakers = wake.map(Waker::At).into_iter().collect();
                self.keep_waiting(id, Evaluation { explanation, wakers });
                // It may have expired meanwhile, and then is no longer held.
                match (held_position(&self.slots, id), room_below) {
                    (Some(position), Some(limit)) => self.programs.await_room(position, limit),
                    (Some(_), None) if until_end => self.programs.await_end(id),
                    _ => {}
                }
            }
        }
    }

    /// Evaluates held slots that something woke, and those for which there are few enough runs now: of each program its
    /// share, in one order, by priority and then by age. Optionally limited to some workflows, or to slots that were
    /// held before a moment.
    pub(crate) fn judge_held(&mut self, only: &WorkflowFilter, before: Option<Timestamp>, looks: &mut Budget) {
        let about = About { only, before };
        if looks.is_for_all() {
            for program in self.programs.take_judged() {
                self.judge_share(program, &about, looks);
            }
        } else {
            self.programs.line_up();
            while looks.is_left()
                && let Some(program) = self.programs.take_next()
            {
                let done = self.judge_share(program, &about, looks);
                self.programs.charge(done);
            }
        }
        self.programs.admitted(&about, |program| looks.of(program) == 0);
    }

    /// Evaluates the share of a program. Returns how many slots that were.
    fn judge_share(&mut self, program: WorkflowId, about: &About<'_>, looks: &mut Budget) -> usize {
        let done = self.judge_line(&program, about, looks.of(&program));
        looks.use_up(program, done);
        done
    }

    /// Evaluates the held slots of a program that something woke, or the clock, beginning with those that were held
    /// before. If there are more than the budget of a turn, the slot that this is about is evaluated all the same.
    pub(crate) fn judge_program(&mut self, program: &WorkflowId, about: &SlotRef) {
        let most = self.config.at_once.max(1);
        let share = self.turn.left_to_judge(program, most);
        let mut left = share;
        let members: Vec<WorkflowId> = self.programs.members(program).cloned().collect();
        members.iter().for_each(|id| self.fire_timers_of(id, left));
        for before in [Some(self.now), None] {
            left -= self.judge_line(program, &About { only: &None, before }, left);
        }
        self.turn.note_judged(program, share - left);
        if held_position(&self.slots, about).is_some_and(|position| self.programs.take(&position)) {
            self.look(about);
        }
    }

    /// Evaluates held slots of a program in their order: those that something woke, and those for which there is room
    /// meanwhile. Returns how many it evaluated.
    fn judge_line(&mut self, program: &WorkflowId, about: &About<'_>, most: usize) -> usize {
        for done in 0..most {
            let Some(position) = self.programs.next(program, about) else { return done };
            self.programs.take(&position);
            self.look(&position.slot);
            self.programs.leave_unless_held_back(&position.slot);
        }
        most
    }

    /// Counts a workflow's runs among those of the program that its definition names.
    pub(crate) fn join_program(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let slots = self.slots.moving(id).map(|(slot, live)| (slot, &live.slot));
        let Transfer { left, woken } = self.programs.join(id, workflow.definition().program(), slots);
        woken.into_iter().for_each(|slot| self.wake(slot));
        if let Some(left) = left {
            self.workflows.hand_over_last_run(id, &left);
        }
    }
}

/// The position of a held slot in the queues of its program; none for any other slot.
pub(crate) fn held_position(slots: &SlotTable, id: &SlotRef) -> Option<HeldPosition> {
    let live = slots.get(id).filter(|live| live.slot.state == SlotState::Held)?;
    Some(HeldPosition::of(&live.slot, id))
}
