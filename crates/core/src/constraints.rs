//! Constraints: whether a slot whose trigger is met may go, waits, or is ended. Runs of a program are counted whoever asked
//! for them, with those that are about to start, so that a limit holds whatever comes between.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::constraint::{Circumstances, Judgement, judge};
use kelos_model::trigger::Waker;
use kelos_model::{Answer, Slot, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::programs::Program;
use crate::tick::Looks;
use crate::{Core, Only};

/// A place in line: the largest priority goes first, then who is held longest.
pub(crate) type LinePlace = (Reverse<i32>, Timestamp, SlotRef);

/// The place in line of a held slot.
pub(crate) fn line_place(slot: &Slot, id: SlotRef) -> LinePlace {
    (Reverse(slot.priority), slot.since, id)
}

/// Which held slots somebody is about.
struct Which<'a> {
    only: &'a Only,
    before: Option<Timestamp>,
}

impl Which<'_> {
    fn allows(&self, (_, since, slot): &LinePlace) -> bool {
        let named = self.only.as_ref().is_none_or(|only| only.contains(&slot.workflow));
        named && self.before.is_none_or(|before| *since < before)
    }
}

impl Core {
    /// What the constraints of a slot say now, or said at a moment of the past.
    fn judgement(&self, id: &SlotRef, past: Option<Timestamp>) -> Option<Judgement> {
        let task = self.tasks.get(&id.workflow)?;
        let slot = &task.slots.get(&id.key)?.slot;
        let collected = slot.collected.as_deref();
        let (active, last_start) = self.runs_at(&task.program, past);
        let world = Circumstances {
            now: past.unwrap_or(self.now),
            created: id
                .key
                .time()
                .filter(|_| !self.is_moment(id))
                .or(collected.map(|one| one.since))
                .unwrap_or(slot.since),
            program: &task.program,
            active,
            last_start,
            again: slot.last_run > 0,
        };
        Some(judge(&task.row.definition.constraints, &world))
    }

    /// Whether constraints let a slot go or end it, or did at a moment of the past.
    pub(crate) fn is_judged(&self, id: &SlotRef, past: Option<Timestamp>) -> bool {
        self.judgement(id, past).is_some_and(|judgement| judgement.explanation.answer != Answer::NotYet)
    }

    /// Looks at the constraints of a slot whose trigger is met.
    pub(crate) fn look_at_constraints(&mut self, id: &SlotRef) {
        self.leave_line(id);
        if let Some(Judgement { explanation, .. }) =
            self.last_in_time(id).and_then(|last| self.judgement(id, Some(last)))
            && explanation.answer == Answer::NotYet
        {
            return self.keep_waiting(id, explanation, Vec::new());
        }
        let Some(Judgement { explanation, wake, room_below, until_end }) = self.judgement(id, None) else { return };
        match explanation.answer {
            Answer::Met => {
                self.record(id, SlotEvent::ConstraintsMet { explanation });
            }
            Answer::Never => {
                self.record(id, SlotEvent::Skipped { explanation });
            }
            Answer::NotYet => {
                self.keep_waiting(id, explanation, wake.map(Waker::At).into_iter().collect());
                if let Some(limit) = room_below {
                    self.stand_in_line(id, limit);
                } else if until_end {
                    self.await_an_end(id);
                }
            }
        }
    }

    fn stand_in_line(&mut self, id: &SlotRef, limit: u32) {
        let Some(task) = self.tasks.get_mut(&id.workflow) else { return };
        let Some(live) = task.slots.get_mut(&id.key).filter(|live| live.slot.state == SlotState::Held) else { return };
        let place = line_place(&live.slot, id.clone());
        live.line = Some((task.program.clone(), limit, place.clone()));
        self.programs.entry(task.program.clone()).or_default().lines.entry(limit).or_default().insert(place);
    }

    /// Has a slot looked at again when a run of its program ends, if the clock doesn't wake it before.
    fn await_an_end(&mut self, id: &SlotRef) {
        let Some(live) = self.live(id).filter(|live| live.slot.state == SlotState::Held) else { return };
        debug_assert!(live.line.is_none(), "who waits for an end is in no line");
        let Some(task) = self.tasks.get(&id.workflow) else { return };
        self.programs.entry(task.program.clone()).or_default().awaiting_end.insert(id.clone());
    }

    /// Moves a slot whose priority changed to where it belongs in its line.
    pub(crate) fn move_in_line(&mut self, id: &SlotRef) {
        let line = self.live(id).and_then(|live| live.line.as_ref());
        if let Some(limit) = line.map(|(_, limit, _)| *limit) {
            self.leave_line(id);
            self.stand_in_line(id, limit);
        }
    }

    pub(crate) fn leave_line(&mut self, id: &SlotRef) {
        let Some(task) = self.tasks.get_mut(&id.workflow) else { return };
        if let Some(program) = self.programs.get_mut(&task.program) {
            program.awaiting_end.remove(id);
        }
        let line = task.slots.get_mut(&id.key).and_then(|live| live.line.take());
        let Some((program, limit, place)) = line else { return };
        let Some(program) = self.programs.get_mut(&program) else { return };
        if let Some(line) = program.lines.get_mut(&limit) {
            line.remove(&place);
            if line.is_empty() {
                program.lines.remove(&limit);
            }
        }
    }

    /// Looks at those that are held and that something woke, and at those for whom there are few enough runs now: of each
    /// program its share, in one line, the largest priority first, then who is held longest. Of some workflows only, or only
    /// those that were held before a moment.
    pub(crate) fn judge_held(&mut self, only: &Only, before: Option<Timestamp>, looks: &mut Looks) {
        let which = Which { only, before };
        let woken = self.dirty.held().map(|(program, _)| program);
        for program in woken.chain(&self.to_admit).cloned().collect::<BTreeSet<_>>() {
            let done = self.judge_line(&program, &which, looks.of(&program));
            looks.use_up(program, done);
        }
        // Those that this is not about have their turn another time.
        if only.is_none() && before.is_none() {
            self.to_admit.retain(|program| looks.of(program) == 0);
        }
    }

    /// Looks at the held slots of a program that something woke, or the clock: first at those that were held before. Where they
    /// are more than a turn may look at, the one that this is about is looked at all the same.
    pub(crate) fn judge_program(&mut self, program: &WorkflowId, about: &SlotRef) {
        let most = self.config.at_once.max(1);
        let mut left = most.saturating_sub(self.turn.judged.get(program).copied().unwrap_or(0));
        let members = self.programs.get(program).map(|program| program.members.clone()).unwrap_or_default();
        members.iter().for_each(|id| self.fire_timers_of(id, left));
        for before in [Some(self.now), None] {
            left -= self.judge_line(program, &Which { only: &None, before }, left);
        }
        self.turn.judged.insert(program.clone(), most - left);
        let left_out = self.live(about).map(|live| line_place(&live.slot, about.clone()));
        if left_out.is_some_and(|place| self.dirty.remove_held(program, &place)) {
            self.look(about);
        }
    }

    /// Looks at those of a program that something woke, and at those for whom there is room meanwhile, in their order and no
    /// more than so many. Gives at how many it did.
    fn judge_line(&mut self, program: &WorkflowId, which: &Which<'_>, most: usize) -> usize {
        for done in 0..most {
            let Some(place) = self.next_held(program, which) else { return done };
            self.dirty.remove_held(program, &place);
            self.look(&place.2);
            self.leave_line_unless_held_back(&place.2, program);
        }
        most
    }

    /// Who goes first of those that something woke and those for whom there is room.
    fn next_held(&self, program: &WorkflowId, which: &Which<'_>) -> Option<LinePlace> {
        let admitted = self.programs.get(program).and_then(|program| first_in_line(program, which));
        let woken = self.dirty.line(program).find(|place| which.allows(place)).cloned();
        admitted.into_iter().chain(woken).min()
    }

    /// Whether anybody in line may be looked at in this tick: something woke them, or there is room for them.
    pub(crate) fn may_judge(&self, only: &Only, looks: &Looks) -> bool {
        let which = &Which { only, before: None };
        let left = |program: &WorkflowId| looks.of(program) > 0;
        let mut woken = self.dirty.held().filter(|(program, _)| left(program));
        let mut admitted =
            self.to_admit.iter().filter(|program| left(program)).filter_map(|program| self.programs.get(program));
        woken.any(|(_, line)| line.iter().any(|place| which.allows(place)))
            || admitted.any(|program| first_in_line(program, which).is_some())
    }

    /// Lest a slot that can't go stays first in line for ever.
    fn leave_line_unless_held_back(&mut self, slot: &SlotRef, program: &WorkflowId) {
        let room = self.programs.get(program).is_some_and(|program| {
            let limit = self.live(slot).and_then(|live| live.line.as_ref()).map(|(_, limit, _)| *limit);
            limit.is_some_and(|limit| program.runs() < limit)
        });
        if room {
            self.leave_line(slot);
        }
    }

    /// How many go before a place in the lines of a program.
    pub(crate) fn ahead_in_line(&self, program: &WorkflowId, place: &LinePlace) -> usize {
        let lines = self.programs.get(program).into_iter().flat_map(|program| program.lines.values());
        lines.map(|line| line.range(..place.clone()).count()).sum()
    }
}

/// Who goes first of those whose limit leaves room.
fn first_in_line(program: &Program, which: &Which<'_>) -> Option<LinePlace> {
    let allowed = |place: &&LinePlace| which.allows(place);
    let lines = program.lines.range(program.runs().saturating_add(1)..);
    lines.filter_map(|(_, line)| line.iter().find(allowed)).min().cloned()
}
