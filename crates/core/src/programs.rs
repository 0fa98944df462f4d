//! Programs: all workflows that run the same job, with the runs that constraints count, whoever asked for them.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::constraint::LastStart;
use kelos_model::workflow::LastRun;
use kelos_model::{Gate, Slot, SlotRef, SlotState, WorkflowId};

use crate::Core;
use crate::constraints::LinePlace;
use crate::memory::Task;

/// What is known of a program.
#[derive(Default)]
pub(crate) struct Program {
    /// The workflows: the program itself and the event schedules that run it.
    members: BTreeSet<WorkflowId>,
    /// Runs that go on, by the log position of their dispatch.
    going: BTreeSet<(u64, SlotRef)>,
    /// Slots that are queued for one.
    queued: u32,
    /// Held slots that wait for fewer runs, by the limit that has to be kept.
    pub(crate) lines: BTreeMap<u32, BTreeSet<LinePlace>>,
    /// Held slots that may go once a run ends, sooner than the clock says.
    pub(crate) awaiting_end: BTreeSet<SlotRef>,
}

impl Program {
    /// Runs that go on, and slots that are queued for one: no limit is passed by those that are about to start.
    pub(crate) fn runs(&self) -> u32 {
        u32::try_from(self.going.len()).unwrap_or(u32::MAX).saturating_add(self.queued)
    }

    fn count(&mut self, id: &SlotRef, slot: &Slot) {
        self.queued += u32::from(slot.state == SlotState::Queued);
        if slot.run_alive {
            self.going.insert((slot.last_run_seq, id.clone()));
        }
    }

    fn discount(&mut self, id: &SlotRef, slot: &Slot) {
        self.queued = self.queued.saturating_sub(u32::from(slot.state == SlotState::Queued));
        if slot.run_alive {
            self.going.remove(&(slot.last_run_seq, id.clone()));
        }
    }
}

/// What a slot is among the runs of its program.
fn counted(slot: &Slot) -> (bool, Option<u64>) {
    (slot.state == SlotState::Queued, slot.run_alive.then_some(slot.last_run_seq))
}

impl Core {
    /// Keeps the account of a program's runs.
    pub(crate) fn count_run(&mut self, id: &SlotRef, before: Option<&Slot>, after: &Slot) {
        if before.map(counted).unwrap_or_default() == counted(after) {
            return;
        }
        let Some(task) = self.tasks.get(&id.workflow) else { return };
        let program = self.programs.entry(task.program.clone()).or_default();
        let runs = program.runs();
        if let Some(before) = before {
            program.discount(id, before);
        }
        program.count(id, after);
        if program.runs() < runs {
            self.dirty.extend(std::mem::take(&mut program.awaiting_end));
            if !program.lines.is_empty() {
                self.to_admit.insert(task.program.clone());
            }
        }
    }

    /// Counts a workflow's runs among those of the program that its definition names.
    pub(crate) fn join_program(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let now = task.row.definition.program().clone();
        let before = std::mem::replace(&mut task.program, now.clone());
        let slots: Vec<_> =
            task.slots.iter().map(|(key, live)| (SlotRef::new(id.clone(), key.clone()), &live.slot)).collect();
        if let Some(program) = self.programs.get_mut(&before)
            && program.members.remove(id)
        {
            slots.iter().for_each(|(id, slot)| program.discount(id, slot));
            self.dirty.extend(std::mem::take(&mut program.awaiting_end));
            self.to_admit.insert(before.clone());
        }
        let program = self.programs.entry(now.clone()).or_default();
        if program.members.insert(id.clone()) {
            slots.iter().for_each(|(id, slot)| program.count(id, slot));
        }
        if before != now {
            self.hand_over_last_run(id, &before);
        }
    }

    /// What somebody ran of a program that is now about another stays with that program.
    fn hand_over_last_run(&mut self, id: &WorkflowId, program: &WorkflowId) {
        let Some(run) = self.tasks.get_mut(id).and_then(|task| task.row.moments.last_run.take()) else { return };
        self.turn.workflows.insert(id.clone());
        if let Some(task) = self.tasks.get_mut(program).filter(|_| program != id) {
            task.row.moments.last_run = task.row.moments.last_run.max(Some(run));
            self.turn.workflows.insert(program.clone());
        }
    }

    /// Notes a successful run, where constraints may ask for it.
    pub(crate) fn note_last_run(&mut self, id: &WorkflowId, run: LastRun) {
        let Some(program) = self.tasks.get(id).map(|task| task.program.clone()) else { return };
        let asks =
            |task: &Task| task.row.definition.constraints.iter().any(|one| matches!(one.gate, Gate::SinceLastRun(_)));
        let members = self.programs.get(&program).map(|program| &program.members);
        let asked_for = members.into_iter().flatten().any(|member| self.tasks.get(member).is_some_and(asks));
        let Some(task) = self.tasks.get_mut(id) else { return };
        if !asked_for && !task.row.definition.keys.are_moments() {
            return;
        }
        task.row.moments.last_run = task.row.moments.last_run.max(Some(run));
        self.turn.workflows.insert(id.clone());
    }

    /// The start of the program's last run that succeeded, or that may yet: it goes on, or is about to start.
    pub(crate) fn last_start(&self, program: &WorkflowId) -> Option<LastStart> {
        let program = self.programs.get(program)?;
        if program.queued > 0 {
            return Some(LastStart { at: self.now, over: false });
        }
        let runs = program.members.iter().filter_map(|member| self.tasks.get(member)?.row.moments.last_run);
        let over = runs.max();
        let going = program.going.last().filter(|(seq, _)| over.is_none_or(|over| over.seq < *seq));
        let going = going.and_then(|(_, slot)| self.live(slot)?.run.as_ref());
        let going = going.map(|run| LastStart { at: run.started_at.unwrap_or(run.dispatched_at), over: false });
        going.or(over.map(|run| LastStart { at: run.started, over: true }))
    }

    /// Runs of a workflow's program, as its constraints count them.
    pub(crate) fn program_runs(&self, id: &WorkflowId) -> u32 {
        let program = self.tasks.get(id).and_then(|task| self.programs.get(&task.program));
        program.map_or(0, Program::runs)
    }
}
