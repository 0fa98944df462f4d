//! Programs: the workflows that run the same job, the runs that constraints count, whatever their origin, and the held
//! slots that wait for them.
//!
//! The scheduler reports changes of slots ([`Programs::follow`]) and what held slots wait for; [`Programs::next`]
//! returns the next slot to be evaluated. Absent: the answers of constraints.

mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::constraint::LastStart;
use kelos_model::{Breach, Invariant, Slot, SlotRef, SlotState, WorkflowId};

pub(crate) use line::{About, HeldPosition};

use crate::breaches::Breaches;
use crate::rota::Rota;

/// All programs.
#[derive(Default)]
pub(crate) struct Programs {
    by_id: BTreeMap<WorkflowId, Program>,
    /// The program that counts the runs of a workflow.
    of: BTreeMap<WorkflowId, WorkflowId>,
    /// The held slots that something woke, by program.
    woken: BTreeMap<WorkflowId, BTreeSet<HeldPosition>>,
    /// The programs that may have room for a slot that waits for it.
    to_admit: BTreeSet<WorkflowId>,
    /// The order of those with held slots to be evaluated when a tick can't serve them all.
    order: Rota<WorkflowId>,
    breaches: Breaches,
}

/// The members of a program, its runs, and the held slots that wait for them.
#[derive(Default)]
struct Program {
    /// The members: the program itself and the event schedules that run it.
    members: BTreeSet<WorkflowId>,
    /// The live runs, by the log position of their dispatch.
    going: BTreeSet<(u64, SlotRef)>,
    /// The number of its queued slots.
    queued: u32,
    /// The held slots that wait for fewer runs, by the limit.
    lines: BTreeMap<u32, BTreeSet<HeldPosition>>,
    /// The position of each of them.
    positions: BTreeMap<SlotRef, (u32, HeldPosition)>,
    /// The held slots that may run once a run ends, before the clock wakes them.
    awaiting_end: BTreeSet<SlotRef>,
    /// The moments of changes since the last tick, each with the runs before it.
    changes: Vec<(Timestamp, Runs)>,
}

/// The runs of a program as constraints see them: their number, and the start of the last.
pub(crate) type Runs = (u32, Option<LastStart>);

/// The result of joining a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The earlier program, if it was another one.
    pub(crate) left: Option<WorkflowId>,
    /// The held slots that may run now that the workflow's runs do not count there.
    pub(crate) woken: BTreeSet<SlotRef>,
}

impl Program {
    /// The number of live runs and of queued slots: runs that are about to start count towards limits.
    fn runs(&self) -> u32 {
        u32::try_from(self.going.len()).unwrap_or(u32::MAX).saturating_add(self.queued)
    }

    fn count(&mut self, id: &SlotRef, slot: &Slot) {
        self.queued += u32::from(slot.state == SlotState::Queued);
        if slot.run_alive {
            self.going.insert((slot.last_run_seq, id.clone()));
        }
    }

    /// Discounts a slot. Returns whether it was counted.
    fn discount(&mut self, id: &SlotRef, slot: &Slot) -> bool {
        let queued = self.queued.checked_sub(u32::from(slot.state == SlotState::Queued));
        self.queued = queued.unwrap_or_default();
        let was_going = !slot.run_alive || self.going.remove(&(slot.last_run_seq, id.clone()));
        queued.is_some() && was_going
    }
}

/// The part of a slot that counts among the runs of its program: whether it is queued, and its live run.
fn counted(slot: &Slot) -> (bool, Option<u64>) {
    (slot.state == SlotState::Queued, slot.run_alive.then_some(slot.last_run_seq))
}

impl Programs {
    /// Counts the slots of a workflow for a program.
    pub(crate) fn join<'a>(
        &mut self,
        id: &WorkflowId,
        program: &WorkflowId,
        slots: impl Iterator<Item = (SlotRef, &'a Slot)> + Clone,
    ) -> Transfer {
        let before = self.of.insert(id.clone(), program.clone());
        if before.as_ref() == Some(program) {
            return Transfer::default();
        }
        let mut joined = Transfer { left: before.clone(), woken: BTreeSet::new() };
        if let Some(before) = before {
            if let Some(left) = self.by_id.get_mut(&before) {
                left.members.remove(id);
                for (slot, row) in slots.clone() {
                    let was_counted = left.discount(&slot, row);
                    self.breaches.check_slot(was_counted, Invariant::RunsAreCounted, &slot);
                    left.leave_line(&slot);
                }
                joined.woken = std::mem::take(&mut left.awaiting_end);
                self.to_admit.insert(before.clone());
            } else {
                self.breaches.report(Invariant::RunsAreCounted, id);
            }
            self.move_woken(id, &before, program);
        }
        let now = self.by_id.entry(program.clone()).or_default();
        now.members.insert(id.clone());
        slots.for_each(|(slot, row)| now.count(&slot, row));
        joined
    }

    fn move_woken(&mut self, id: &WorkflowId, from: &WorkflowId, to: &WorkflowId) {
        // If none of its slots was woken there is nothing to move.
        let Some(line) = self.woken.get_mut(from) else { return };
        let moved: Vec<HeldPosition> = line.extract_if(.., |position| position.slot.workflow == *id).collect();
        if line.is_empty() {
            self.woken.remove(from);
        }
        if !moved.is_empty() {
            self.woken.entry(to.clone()).or_default().extend(moved);
        }
    }

    /// The program of a workflow: another one, or itself.
    pub(crate) fn of<'a>(&'a self, id: &'a WorkflowId) -> &'a WorkflowId {
        self.of.get(id).unwrap_or(id)
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }

    fn program(&self, of: &WorkflowId) -> Option<&Program> {
        self.by_id.get(self.of(of))
    }

    fn program_mut(&mut self, of: &WorkflowId) -> &mut Program {
        let program = self.of(of).clone();
        self.by_id.entry(program).or_default()
    }

    /// The workflows that run a program.
    pub(crate) fn members(&self, program: &WorkflowId) -> impl Iterator<Item = &WorkflowId> {
        self.by_id.get(program).into_iter().flat_map(|program| &program.members)
    }

    /// The number of runs of a workflow's program, as its constraints count them.
    pub(crate) fn runs(&self, of: &WorkflowId) -> u32 {
        self.program(of).map_or(0, Program::runs)
    }

    /// Whether any slot is queued for a run of a program.
    pub(crate) fn is_about_to_run(&self, program: &WorkflowId) -> bool {
        self.by_id.get(program).is_some_and(|program| program.queued > 0)
    }

    /// The latest live run of a program: the log position of its dispatch, and its slot.
    pub(crate) fn latest_going(&self, program: &WorkflowId) -> Option<&(u64, SlotRef)> {
        self.by_id.get(program)?.going.last()
    }

    /// Whether a change of a slot changes the runs of its program.
    pub(crate) fn are_changed_by(before: Option<&Slot>, after: &Slot) -> bool {
        before.map(counted).unwrap_or_default() != counted(after)
    }

    /// Whether the runs of a workflow's program before the first change at a moment since the last tick are kept.
    pub(crate) fn has_kept(&self, of: &WorkflowId, now: Timestamp, ticked: Timestamp) -> bool {
        let last = self.program(of).and_then(|program| program.changes.last());
        now > ticked && last.is_some_and(|(changed, _)| *changed == now)
    }

    /// Keeps the runs of a workflow's program as they were before a change. Those from before the last tick are
    /// forgotten: slots that had timed out by then were ended by it.
    pub(crate) fn keep_before(&mut self, of: &WorkflowId, now: Timestamp, ticked: Timestamp, runs: Runs) {
        let program = self.program_mut(of);
        program.changes.retain(|(changed, _)| *changed > ticked);
        if program.changes.last().is_none_or(|(changed, _)| *changed != now) {
            program.changes.push((now, runs));
        }
    }

    /// The runs of a program at a moment since the last tick, if they changed after it.
    pub(crate) fn runs_before(&self, program: &WorkflowId, moment: Timestamp) -> Option<Runs> {
        let changes = &self.by_id.get(program)?.changes;
        changes.iter().find(|(changed, _)| *changed > moment).map(|(_, runs)| *runs)
    }

    /// Follows a change of a slot. Returns the held slots that may run because a run has ended.
    pub(crate) fn follow(&mut self, id: &SlotRef, before: Option<&Slot>, after: &Slot) -> BTreeSet<SlotRef> {
        if let Some(before) = before.filter(|slot| slot.state == SlotState::Held) {
            let was_woken = self.take(&HeldPosition::of(before, id));
            if was_woken && after.state == SlotState::Held {
                self.wake(HeldPosition::of(after, id));
            }
        }
        if !Programs::are_changed_by(before, after) {
            return BTreeSet::new();
        }
        let name = self.of(&id.workflow).clone();
        let program = self.by_id.entry(name.clone()).or_default();
        let runs = program.runs();
        if let Some(before) = before {
            let was_counted = program.discount(id, before);
            self.breaches.check_slot(was_counted, Invariant::RunsAreCounted, id);
        }
        program.count(id, after);
        if program.runs() >= runs {
            return BTreeSet::new();
        }
        if !program.lines.is_empty() {
            self.to_admit.insert(name);
        }
        std::mem::take(&mut program.awaiting_end)
    }
}
