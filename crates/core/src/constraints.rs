//! Constraints: whether a slot whose trigger is met may go, waits, or is ended. Runs of a program are counted whoever asked
//! for them, with those that are about to start, so that a limit holds whatever comes between.

use jiff::Timestamp;
use kelos_model::constraint::Judgement;
use kelos_model::trigger::{Evaluation, Waker};
use kelos_model::{Answer, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::budget::Budget;
use crate::programs::{About, HeldPosition, Transfer};
use crate::slots::SlotTable;
use crate::{Core, WorkflowFilter};

impl Core {
    /// Looks at the constraints of a slot whose trigger is met.
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
                // It may have waited too long, and is held no more.
                match (held_position(&self.slots, id), room_below) {
                    (Some(position), Some(limit)) => self.programs.await_room(position, limit),
                    (Some(_), None) if until_end => self.programs.await_end(id),
                    _ => {}
                }
            }
        }
    }

    /// Looks at those that are held and that something woke, and at those for whom there are few enough runs now: of each
    /// program its share, in one line, the largest priority first, then who is held longest. Of some workflows only, or only
    /// those that were held before a moment.
    pub(crate) fn judge_held(&mut self, only: &WorkflowFilter, before: Option<Timestamp>, looks: &mut Budget) {
        let about = About { only, before };
        for program in self.programs.to_judge() {
            let done = self.judge_line(&program, &about, looks.of(&program));
            looks.use_up(program, done);
        }
        self.programs.admitted(&about, |program| looks.of(program) == 0);
    }

    /// Looks at the held slots of a program that something woke, or the clock: first at those that were held before. Where they
    /// are more than a turn may look at, the one that this is about is looked at all the same.
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

    /// Looks at those of a program that something woke, and at those for whom there is room meanwhile, in their order and no
    /// more than so many. Gives at how many it did.
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

/// The position of a slot in the lines of its program; none unless it is held.
pub(crate) fn held_position(slots: &SlotTable, id: &SlotRef) -> Option<HeldPosition> {
    let live = slots.get(id).filter(|live| live.slot.state == SlotState::Held)?;
    Some(HeldPosition::of(&live.slot, id))
}
