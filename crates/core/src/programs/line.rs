//! The queues of held slots, by priority and then by age.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::{Invariant, Slot, SlotRef, WorkflowId};

use super::{Program, Programs};
use crate::filter::{WorkflowFilter, allows};

/// A position in the queues of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldPosition {
    priority: Reverse<i32>,
    /// The moment since which the slot is held.
    since: Timestamp,
    pub(crate) slot: SlotRef,
}

impl HeldPosition {
    /// The position of a slot once it is held.
    pub(crate) fn of(slot: &Slot, id: &SlotRef) -> HeldPosition {
        HeldPosition { priority: Reverse(slot.priority), since: slot.since, slot: id.clone() }
    }
}

/// The held slots that an evaluation is limited to.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    /// The workflows of the slots.
    pub(crate) only: &'a WorkflowFilter,
    /// The moment before which the slots were held; none means any.
    pub(crate) before: Option<Timestamp>,
}

impl About<'_> {
    fn includes(&self, position: &HeldPosition) -> bool {
        allows(self.only, &position.slot.workflow) && self.before.is_none_or(|before| position.since < before)
    }

    /// Whether it includes all held slots.
    fn is_all(&self) -> bool {
        self.only.is_none() && self.before.is_none()
    }
}

impl Program {
    /// The first held slot whose limit leaves room.
    fn first_with_room(&self, about: &About<'_>) -> Option<&HeldPosition> {
        let lines = self.lines.range(self.runs().saturating_add(1)..);
        lines.filter_map(|(_, line)| line.iter().find(|position| about.includes(position))).min()
    }
}

impl Programs {
    /// Marks a held slot for evaluation.
    pub(crate) fn wake(&mut self, position: HeldPosition) {
        let program = self.of(&position.slot.workflow).clone();
        self.woken.entry(program).or_default().insert(position);
    }

    /// Takes a held slot out of those to be evaluated. Returns whether it was one of them.
    pub(crate) fn take(&mut self, position: &HeldPosition) -> bool {
        let program = self.of(&position.slot.workflow).clone();
        // It may not have been woken.
        let Some(line) = self.woken.get_mut(&program) else { return false };
        let was_there = line.remove(position);
        if line.is_empty() {
            self.woken.remove(&program);
        }
        was_there
    }

    /// Queues a held slot until there are fewer runs than a limit.
    pub(crate) fn await_room(&mut self, position: HeldPosition, limit: u32) {
        let program = self.program_mut(&position.slot.workflow);
        program.positions.insert(position.slot.clone(), (limit, position.clone()));
        program.lines.entry(limit).or_default().insert(position);
    }

    /// Evaluates a held slot again when a run of its program ends, if the clock does not wake it before.
    pub(crate) fn await_end(&mut self, id: &SlotRef) {
        let program = self.program_mut(&id.workflow);
        let waits_for_room = program.positions.contains_key(id);
        program.awaiting_end.insert(id.clone());
        self.breaches.check_slot(!waits_for_room, Invariant::HeldStandInLine, id);
    }

    /// Takes a slot out of all queues for runs.
    pub(crate) fn leave(&mut self, id: &SlotRef) {
        let name = self.of.get(&id.workflow).unwrap_or(&id.workflow);
        if let Some(program) = self.by_id.get_mut(name) {
            program.awaiting_end.remove(id);
            program.leave_line(id);
        }
    }

    /// Moves a slot to the position of its new priority.
    pub(crate) fn move_in_line(&mut self, position: HeldPosition) {
        let limit = self.program_mut(&position.slot.workflow).leave_line(&position.slot);
        if let Some(limit) = limit {
            self.await_room(position, limit);
        }
    }

    /// Takes a slot out of its queue if there is room for it, so that one that can't run does not stay first forever.
    pub(crate) fn leave_unless_held_back(&mut self, id: &SlotRef) {
        let program = self.program_mut(&id.workflow);
        if program.positions.get(id).is_some_and(|(limit, _)| program.runs() < *limit) {
            program.leave_line(id);
        }
    }

    /// The programs with held slots that something woke, or that there may be room for, whatever their order was.
    pub(crate) fn take_judged(&mut self) -> BTreeSet<WorkflowId> {
        self.order.clear();
        self.woken.keys().chain(&self.to_admit).cloned().collect()
    }

    /// Puts these programs in order, each with the moment since which its first slot is held.
    pub(crate) fn line_up(&mut self) {
        let since = |program: &WorkflowId| self.woken.get(program)?.first().map(|position| position.since);
        self.order.line_up(self.woken.keys().chain(&self.to_admit), since);
    }

    /// Takes the next of these programs.
    pub(crate) fn take_next(&mut self) -> Option<WorkflowId> {
        self.order.take_next(|_| true)
    }

    /// Notes how many held slots of the program were evaluated that was taken last.
    pub(crate) fn charge(&mut self, slots: usize) {
        self.order.charge(slots);
    }

    /// The number of programs with held slots that something woke.
    pub(crate) fn woken(&self) -> usize {
        self.woken.len()
    }

    /// Whether no held slot is to be evaluated.
    pub(crate) fn is_idle(&self) -> bool {
        self.woken.is_empty() && self.to_admit.is_empty()
    }

    /// Notes that all held slots with room were evaluated, except for those of some programs.
    pub(crate) fn admitted(&mut self, about: &About<'_>, is_put_off: impl Fn(&WorkflowId) -> bool) {
        if about.is_all() {
            self.to_admit.retain(is_put_off);
        }
    }

    /// The first held slot of a program that something woke, or that there is room for.
    pub(crate) fn next(&self, program: &WorkflowId, about: &About<'_>) -> Option<HeldPosition> {
        let admitted = self.by_id.get(program).and_then(|program| program.first_with_room(about));
        let mut woken = self.woken.get(program).into_iter().flatten();
        let woken = woken.find(|position| about.includes(position));
        admitted.into_iter().chain(woken).min().cloned()
    }

    /// Whether any held slot may be evaluated: something woke it, or there is room for it.
    pub(crate) fn has_next(&self, about: &About<'_>, may_look: impl Fn(&WorkflowId) -> bool) -> bool {
        let mut woken = self.woken.iter().filter(|(program, _)| may_look(program));
        let mut admitted = self.to_admit.iter().filter(|program| may_look(program));
        woken.any(|(_, line)| line.iter().any(|position| about.includes(position)))
            || admitted.any(|program| self.by_id.get(program).is_some_and(|one| one.first_with_room(about).is_some()))
    }

    /// The number of slots ahead of one that waits for room; none if it does not.
    pub(crate) fn ahead(&self, id: &SlotRef) -> Option<usize> {
        let program = self.program(&id.workflow)?;
        let (_, position) = program.positions.get(id)?;
        Some(program.lines.values().map(|line| line.range(..position).count()).sum())
    }
}

impl Program {
    /// Takes a slot out of its queue. Returns the limit that it waited for.
    pub(super) fn leave_line(&mut self, id: &SlotRef) -> Option<u32> {
        let (limit, position) = self.positions.remove(id)?;
        let line: &mut BTreeSet<HeldPosition> = self.lines.get_mut(&limit)?;
        line.remove(&position);
        if line.is_empty() {
            self.lines.remove(&limit);
        }
        Some(limit)
    }
}
