//! Slots that are to be looked at, by workflow: so that one that has many does not keep the others waiting. Those that constraints
//! hold back are in one line for each program.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::{SlotKey, SlotRef, SlotState, WorkflowId};

use crate::Core;
use crate::constraints::{LinePlace, line_place};

/// Slots that something woke.
#[derive(Default)]
pub(crate) struct Dirty {
    by_workflow: BTreeMap<WorkflowId, BTreeSet<SlotKey>>,
    /// Held slots, by program.
    held: BTreeMap<WorkflowId, BTreeSet<LinePlace>>,
}

impl Dirty {
    /// Notes a slot that is not held.
    pub(crate) fn insert(&mut self, slot: SlotRef) {
        self.by_workflow.entry(slot.workflow).or_default().insert(slot.key);
    }

    /// Notes a slot that is held.
    pub(crate) fn insert_held(&mut self, program: WorkflowId, place: LinePlace) {
        self.held.entry(program).or_default().insert(place);
    }

    pub(crate) fn remove(&mut self, slot: &SlotRef) {
        if let Some(keys) = self.by_workflow.get_mut(&slot.workflow) {
            keys.remove(&slot.key);
            self.tidy(&slot.workflow);
        }
    }

    /// Forgets a slot that is held. Says whether it was to be looked at.
    pub(crate) fn remove_held(&mut self, program: &WorkflowId, place: &LinePlace) -> bool {
        let Some(line) = self.held.get_mut(program) else { return false };
        let was_there = line.remove(place);
        if line.is_empty() {
            self.held.remove(program);
        }
        was_there
    }

    /// Moves the held slots of a workflow to the line of another program.
    pub(crate) fn move_held(&mut self, id: &WorkflowId, from: &WorkflowId, to: &WorkflowId) {
        let Some(line) = self.held.get_mut(from) else { return };
        let moved: Vec<LinePlace> = line.extract_if(.., |(_, _, slot)| slot.workflow == *id).collect();
        if line.is_empty() {
            self.held.remove(from);
        }
        if !moved.is_empty() {
            self.held.entry(to.clone()).or_default().extend(moved);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_workflow.is_empty() && self.held.is_empty()
    }

    /// The workflows that have any that are not held.
    pub(crate) fn workflows(&self) -> impl Iterator<Item = &WorkflowId> {
        self.by_workflow.keys()
    }

    /// The programs that have held ones, and their lines.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&WorkflowId, &BTreeSet<LinePlace>)> {
        self.held.iter()
    }

    /// The line of a program.
    pub(crate) fn line(&self, program: &WorkflowId) -> impl Iterator<Item = &LinePlace> {
        self.held.get(program).into_iter().flatten()
    }

    /// Takes the first slots of a workflow, and no more than so many.
    pub(crate) fn take(&mut self, id: &WorkflowId, most: usize) -> Vec<SlotRef> {
        let Some(keys) = self.by_workflow.get_mut(id) else { return Vec::new() };
        let taken: Vec<SlotKey> = std::iter::from_fn(|| keys.pop_first()).take(most).collect();
        self.tidy(id);
        taken.into_iter().map(|key| SlotRef::new(id.clone(), key)).collect()
    }

    fn tidy(&mut self, id: &WorkflowId) {
        if self.by_workflow.get(id).is_some_and(BTreeSet::is_empty) {
            self.by_workflow.remove(id);
        }
    }
}

impl Core {
    /// Has a slot looked at.
    pub(crate) fn wake(&mut self, id: SlotRef) {
        let Some(task) = self.tasks.get(&id.workflow) else { return };
        match task.slots.get(&id.key).filter(|live| live.slot.state == SlotState::Held) {
            Some(live) => self.dirty.insert_held(task.program.clone(), line_place(&live.slot, id)),
            None => self.dirty.insert(id),
        }
    }
}
