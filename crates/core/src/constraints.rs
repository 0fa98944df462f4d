//! Constraints: whether a slot whose trigger is met may go, waits, or is ended. Runs of a program are counted whoever asked
//! for them, with those that are about to start, so that a limit holds whatever comes between.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::constraint::{Circumstances, Judgement, judge};
use kelos_model::trigger::Waker;
use kelos_model::{Answer, SlotEvent, SlotRef, SlotState, WorkflowId};

use crate::programs::Program;
use crate::timers::Timer;
use crate::{Core, Only};

/// A place in line: the largest priority goes first, then who is held longest.
pub(crate) type LinePlace = (Reverse<i32>, Timestamp, SlotRef);

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
        let place = (Reverse(live.slot.priority), live.slot.since, id.clone());
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
    /// program in one line, the largest priority first, then who is held longest. Of some workflows only, or only those that
    /// were held before a moment.
    pub(crate) fn judge_held(&mut self, only: &Only, before: Option<Timestamp>) {
        let which = Which { only, before };
        let mut woken = self.woken_of_programs(&which);
        let admitting = std::mem::take(&mut self.to_admit);
        for program in &admitting {
            woken.entry(program.clone()).or_default();
        }
        for (program, line) in woken {
            self.judge_line(&program, line, &which);
        }
        // Those that this is not about have their turn another time.
        self.to_admit = if only.is_some() || before.is_some() { admitting } else { BTreeSet::new() };
    }

    /// Looks at the held slots of a program that something woke, or the clock: first at those that were held before.
    pub(crate) fn judge_program(&mut self, program: &WorkflowId) {
        for before in [Some(self.now), None] {
            let which = Which { only: &None, before };
            let held = self.programs.get(program).map(|program| program.held.clone()).unwrap_or_default();
            let mut woken = BTreeSet::new();
            for id in held {
                let due = self.timers.get(&Timer::Slot(id.clone())).is_some_and(|at| at <= self.now);
                let Some(live) = self.live(&id).filter(|_| due || self.dirty.contains(&id)) else { continue };
                let place = (Reverse(live.slot.priority), live.slot.since, id);
                if which.allows(&place) {
                    self.dirty.remove(&place.2);
                    woken.insert(place);
                }
            }
            self.judge_line(program, woken, &which);
        }
    }

    /// Looks at those of a program that something woke, and at those for whom there is room meanwhile, in their order.
    fn judge_line(&mut self, program: &WorkflowId, mut woken: BTreeSet<LinePlace>, which: &Which<'_>) {
        while let Some(place) = self.next_held(program, &woken, which) {
            woken.remove(&place);
            self.look(&place.2);
            self.leave_line_unless_held_back(&place.2, program);
        }
    }

    /// Takes the held slots that something woke, by program.
    fn woken_of_programs(&mut self, which: &Which<'_>) -> BTreeMap<WorkflowId, BTreeSet<LinePlace>> {
        let mut woken: BTreeMap<WorkflowId, BTreeSet<LinePlace>> = BTreeMap::new();
        for id in self.take_dirty_held(which.only) {
            let Some(task) = self.tasks.get(&id.workflow) else { continue };
            let Some(live) = task.slots.get(&id.key) else { continue };
            let place = (Reverse(live.slot.priority), live.slot.since, id);
            if !which.allows(&place) {
                self.dirty.insert(place.2);
                continue;
            }
            woken.entry(task.program.clone()).or_default().insert(place);
        }
        woken
    }

    /// Who goes first of those that something woke and those for whom there is room.
    fn next_held(&self, program: &WorkflowId, woken: &BTreeSet<LinePlace>, which: &Which<'_>) -> Option<LinePlace> {
        let admitted = self.programs.get(program).and_then(|program| first_in_line(program, which));
        admitted.into_iter().chain(woken.first().cloned()).min()
    }

    /// Whether there is room for somebody in line.
    pub(crate) fn may_admit(&self, only: &Only) -> bool {
        let which = &Which { only, before: None };
        let programs = self.to_admit.iter().filter_map(|program| self.programs.get(program));
        programs.into_iter().any(|program| first_in_line(program, which).is_some())
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
