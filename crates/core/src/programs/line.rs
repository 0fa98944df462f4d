//! The lines of held slots: the largest priority goes first, then who is held longest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::{Invariant, Slot, SlotRef, WorkflowId};

use super::{Program, Programs};
use crate::filter::{WorkflowFilter, allows};

/// A position in the lines of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldPosition {
    priority: Reverse<i32>,
    /// Since when the slot is held.
    since: Timestamp,
    pub(crate) slot: SlotRef,
}

impl HeldPosition {
    /// The position of a slot once it is held.
    pub(crate) fn of(slot: &Slot, id: &SlotRef) -> HeldPosition {
        HeldPosition { priority: Reverse(slot.priority), since: slot.since, slot: id.clone() }
    }
}

/// The held slots that a look is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    /// Of these workflows.
    pub(crate) only: &'a WorkflowFilter,
    /// Held before this moment.
    pub(crate) before: Option<Timestamp>,
}

impl About<'_> {
    fn includes(&self, position: &HeldPosition) -> bool {
        allows(self.only, &position.slot.workflow) && self.before.is_none_or(|before| position.since < before)
    }

    /// Whether it is about all held slots.
    fn is_all(&self) -> bool {
        self.only.is_none() && self.before.is_none()
    }
}

impl Program {
    /// The first of those whose limit leaves room.
    fn first_with_room(&self, about: &About<'_>) -> Option<&HeldPosition> {
        let lines = self.lines.range(self.runs().saturating_add(1)..);
        lines.filter_map(|(_, line)| line.iter().find(|position| about.includes(position))).min()
    }
}

impl Programs {
    /// Has a held slot looked at.
    pub(crate) fn wake(&mut self, position: HeldPosition) {
        let program = self.of(&position.slot.workflow).clone();
        self.woken.entry(program).or_default().insert(position);
    }

    /// Takes a held slot out of those that are to be looked at. Says whether it was one of them.
    pub(crate) fn take(&mut self, position: &HeldPosition) -> bool {
        let program = self.of(&position.slot.workflow).clone();
        // Whether it was woken is the question.
        let Some(line) = self.woken.get_mut(&program) else { return false };
        let was_there = line.remove(position);
        if line.is_empty() {
            self.woken.remove(&program);
        }
        was_there
    }

    /// Has a held slot wait for fewer runs than a limit.
    pub(crate) fn await_room(&mut self, position: HeldPosition, limit: u32) {
        let program = self.program_mut(&position.slot.workflow);
        program.positions.insert(position.slot.clone(), (limit, position.clone()));
        program.lines.entry(limit).or_default().insert(position);
    }

    /// Has a held slot looked at again when a run of its program ends, if the clock doesn't wake it before.
    pub(crate) fn await_end(&mut self, id: &SlotRef) {
        let program = self.program_mut(&id.workflow);
        let waits_for_room = program.positions.contains_key(id);
        program.awaiting_end.insert(id.clone());
        self.breaches.check_slot(!waits_for_room, Invariant::HeldStandInLine, id);
    }

    /// Has a slot wait for runs no more.
    pub(crate) fn leave(&mut self, id: &SlotRef) {
        let name = self.of(&id.workflow).clone();
        if let Some(program) = self.by_id.get_mut(&name) {
            program.awaiting_end.remove(id);
            program.leave_line(id);
        }
    }

    /// Moves a slot whose priority changed to where it belongs in its line.
    pub(crate) fn move_in_line(&mut self, position: HeldPosition) {
        let limit = self.program_mut(&position.slot.workflow).leave_line(&position.slot);
        if let Some(limit) = limit {
            self.await_room(position, limit);
        }
    }

    /// Has a slot leave its line although there is room for it: lest one that can't go stays first for ever.
    pub(crate) fn leave_unless_held_back(&mut self, id: &SlotRef) {
        let program = self.program_mut(&id.workflow);
        if program.positions.get(id).is_some_and(|(limit, _)| program.runs() < *limit) {
            program.leave_line(id);
        }
    }

    /// The programs with held slots that something woke, or that there may be room for.
    pub(crate) fn to_judge(&self) -> BTreeSet<WorkflowId> {
        self.woken.keys().chain(&self.to_admit).cloned().collect()
    }

    /// How many programs have held slots that something woke.
    pub(crate) fn woken(&self) -> usize {
        self.woken.len()
    }

    /// Whether no held slot is to be looked at.
    pub(crate) fn is_idle(&self) -> bool {
        self.woken.is_empty() && self.to_admit.is_empty()
    }

    /// Notes that all held slots were looked at that there is room for, but for those of some programs.
    pub(crate) fn admitted(&mut self, about: &About<'_>, is_put_off: impl Fn(&WorkflowId) -> bool) {
        if about.is_all() {
            self.to_admit.retain(is_put_off);
        }
    }

    /// The first of the held slots of a program that something woke, or that there is room for.
    pub(crate) fn next(&self, program: &WorkflowId, about: &About<'_>) -> Option<HeldPosition> {
        let admitted = self.by_id.get(program).and_then(|program| program.first_with_room(about));
        let mut woken = self.woken.get(program).into_iter().flatten();
        let woken = woken.find(|position| about.includes(position));
        admitted.into_iter().chain(woken).min().cloned()
    }

    /// Whether any held slot may be looked at: something woke it, or there is room for it.
    pub(crate) fn has_next(&self, about: &About<'_>, may_look: impl Fn(&WorkflowId) -> bool) -> bool {
        let mut woken = self.woken.iter().filter(|(program, _)| may_look(program));
        let mut admitted = self.to_admit.iter().filter(|program| may_look(program));
        woken.any(|(_, line)| line.iter().any(|position| about.includes(position)))
            || admitted.any(|program| self.by_id.get(program).is_some_and(|one| one.first_with_room(about).is_some()))
    }

    /// How many slots wait for room in front of one; none where it waits for none.
    pub(crate) fn ahead(&self, id: &SlotRef) -> Option<usize> {
        let program = self.program(&id.workflow)?;
        let (_, position) = program.positions.get(id)?;
        Some(program.lines.values().map(|line| line.range(..position).count()).sum())
    }
}

impl Program {
    /// Takes a slot out of its line. Gives the limit that it waited for.
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
