//! Programs: all workflows that run the same job, with the runs that constraints count, whoever asked for them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
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
    pub(crate) members: BTreeSet<WorkflowId>,
    /// Runs that go on, by the log position of their dispatch.
    going: BTreeSet<(u64, SlotRef)>,
    /// Slots that are queued for one.
    queued: u32,
    /// Held slots that wait for fewer runs, by the limit that has to be kept.
    pub(crate) lines: BTreeMap<u32, BTreeSet<LinePlace>>,
    /// Held slots that may go once a run ends, sooner than the clock says.
    pub(crate) awaiting_end: BTreeSet<SlotRef>,
    /// When its runs changed since the last tick, and how they stood before that.
    changes: Vec<(Timestamp, Runs)>,
}

/// What constraints ask of the runs of a program: how many there are, and the start of the last.
type Runs = (u32, Option<LastStart>);

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
    /// Counts the run of a slot that the store gave: it went on before.
    pub(crate) fn count_restored(&mut self, id: &SlotRef, slot: &Slot) {
        if let Some(task) = self.tasks.get(&id.workflow) {
            self.programs.entry(task.program.clone()).or_default().count(id, slot);
        }
    }

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
            let awaiting_end = std::mem::take(&mut program.awaiting_end);
            if !program.lines.is_empty() {
                self.to_admit.insert(task.program.clone());
            }
            awaiting_end.into_iter().for_each(|slot| self.wake(slot));
        }
    }

    /// Counts a workflow's runs among those of the program that its definition names.
    pub(crate) fn join_program(&mut self, id: &WorkflowId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let now = task.row.definition.program().clone();
        let before = std::mem::replace(&mut task.program, now.clone());
        let slots: Vec<_> =
            task.slots.iter().map(|(key, live)| (SlotRef::new(id.clone(), key.clone()), &live.slot)).collect();
        let mut woken = BTreeSet::new();
        if let Some(program) = self.programs.get_mut(&before)
            && program.members.remove(id)
        {
            slots.iter().for_each(|(id, slot)| program.discount(id, slot));
            woken = std::mem::take(&mut program.awaiting_end);
            self.to_admit.insert(before.clone());
        }
        let program = self.programs.entry(now.clone()).or_default();
        if program.members.insert(id.clone()) {
            slots.iter().for_each(|(id, slot)| program.count(id, slot));
        }
        self.dirty.move_held(id, &before, &now);
        woken.into_iter().for_each(|slot| self.wake(slot));
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

    /// Notes how the runs of a program stood before this moment, where what happens to a slot is about to change that.
    pub(crate) fn keep_before(&mut self, id: &SlotRef, before: Option<&Slot>, after: &Slot) {
        if before.map(counted).unwrap_or_default() == counted(after) {
            return;
        }
        let Some(program) = self.tasks.get(&id.workflow).map(|task| task.program.clone()) else { return };
        let (now, ticked, runs) = (self.now, self.ticked, self.runs_at(&program, None));
        let Some(program) = self.programs.get_mut(&program) else { return };
        // Whose time was over by the last tick was ended by it.
        program.changes.retain(|(changed, _)| *changed > ticked);
        if program.changes.last().is_none_or(|(changed, _)| *changed != now) {
            program.changes.push((now, runs));
        }
    }

    /// How the runs of a program stand now, or stood at a moment of the past: before the first change that came later.
    pub(crate) fn runs_at(&self, id: &WorkflowId, past: Option<Timestamp>) -> Runs {
        let Some(program) = self.programs.get(id) else { return (0, None) };
        let before = past.and_then(|past| program.changes.iter().find(|(changed, _)| *changed > past.max(self.ticked)));
        before.map_or_else(|| (program.runs(), self.last_start(id)), |(_, runs)| *runs)
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
