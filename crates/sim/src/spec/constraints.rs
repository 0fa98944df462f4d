//! The rules of constraints, as a scan over all held slots.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::workflow::WaitStart;
use kelos_model::{Gate, Otherwise, SlotKey, SlotRef, SlotState, WorkflowId};

use super::{Past, Place, Spec, SpecSlot, millis};

impl Spec {
    /// Handles a slot whose trigger is met: it is queued, or its constraints decide.
    pub(super) fn met(&mut self, slot: &SlotRef, now: Timestamp) {
        let workflow = &self.workflows[&slot.workflow];
        let constrained = !workflow.constraints.is_empty();
        let counts = workflow.wait_timeout_seconds.is_some() && workflow.wait_from == WaitStart::Opening;
        let is_time = matches!(slot.key, SlotKey::Time(_));
        let Some(state) = self.slots.get_mut(slot) else { return };
        let passes =
            state.collected.as_ref().and_then(|one| one.asked.as_ref()).is_some_and(|asked| asked.unconstrained);
        let held = constrained && !passes;
        if held {
            state.collected(now).met = true;
            let opened = state.asked.map_or(state.planned, |asked| asked.max(state.planned));
            if counts && is_time && state.retries == 0 {
                state.collected(now).since = opened;
            }
        } else if let Some(collected) = &mut state.collected {
            collected.met = true;
        }
        self.enter(slot, if held { SlotState::Held } else { SlotState::Queued }, now);
    }

    /// Evaluates the constraints of all held slots, or of those held for one program: the largest priority first, then the longest
    /// hold. With `before`, only of slots that were held before that moment.
    pub(super) fn judge_held(&mut self, program: Option<&WorkflowId>, now: Timestamp, before: Option<Timestamp>) {
        let schedules = self.schedules();
        let held = self.slots.iter().filter(|(slot, state)| {
            let here = self.is_here(slot, &schedules) && !self.is_off(&slot.workflow) && !self.is_left_alone(state);
            let of_program = || program.is_none_or(|program| self.workflows[&slot.workflow].program() == program);
            state.state == SlotState::Held && here && of_program() && before.is_none_or(|before| state.since < before)
        });
        let place = |(slot, state): (&SlotRef, &SpecSlot)| Place {
            priority: std::cmp::Reverse(state.priority),
            at: state.since,
            slot: slot.clone(),
        };
        let line: BTreeSet<Place> = held.map(place).collect();
        for place in line {
            self.judge(&place.slot, now);
        }
    }

    /// The constraints of a slot that are not met at a moment.
    pub(super) fn unmet(&self, slot: &SlotRef, at: Timestamp) -> Vec<Otherwise> {
        let ran = self.slots[slot].last_run > 0;
        let constraints = self.workflows[&slot.workflow].constraints.iter();
        let unmet = constraints.filter(|one| !self.lets_pass(&one.gate, slot, at));
        unmet.map(|one| if ran { Otherwise::Wait } else { one.otherwise }).collect()
    }

    fn judge(&mut self, slot: &SlotRef, now: Timestamp) {
        let too_late = |last| self.unmet(slot, last).contains(&Otherwise::Wait);
        let over = self.last_in_time(slot, now).is_some_and(too_late);
        let unmet = self.unmet(slot, now);
        if over || unmet.contains(&Otherwise::Wait) {
            if over || self.is_late(slot, now) {
                self.enter(slot, SlotState::Expired, now);
            }
        } else if unmet.is_empty() {
            self.enter(slot, SlotState::Queued, now);
        } else {
            self.enter(slot, SlotState::Skipped, now);
        }
    }

    fn lets_pass(&self, gate: &Gate, slot: &SlotRef, now: Timestamp) -> bool {
        let program = self.workflows[&slot.workflow].program();
        match gate {
            Gate::Concurrency(limit) => self.runs_of(program, now) < *limit as usize,
            Gate::Window(window) => window.is_open(now),
            Gate::SinceLastRun(span) => self.last_start_of(program, now).is_none_or(|last| now >= last + millis(*span)),
            Gate::Delay(span) => {
                let state = &self.slots[slot];
                let collected = state.collected.as_ref().map_or(state.since, |one| one.since);
                let from = if self.is_moment(slot) { collected } else { self.due(slot).unwrap_or(collected) };
                now >= from + millis(*span)
            }
        }
    }

    /// The number of live runs of a program, and of slots that are queued for one.
    fn runs_of(&self, program: &WorkflowId, at: Timestamp) -> usize {
        let mine = self.slots_of_program(program, at);
        mine.map(|state| usize::from(state.alive) + usize::from(state.state == SlotState::Queued)).sum()
    }

    fn slots_of_program(&self, program: &WorkflowId, at: Timestamp) -> impl Iterator<Item = &SpecSlot> {
        let past = self.at(at);
        let slots = past.map_or(&self.slots, |past| &past.slots);
        slots
            .iter()
            .filter(move |(slot, _)| self.program_of(&slot.workflow, past) == Some(program))
            .map(|(_, state)| state)
    }

    /// The program of a workflow, now or in the past.
    fn program_of<'a>(&'a self, id: &WorkflowId, past: Option<&'a Past>) -> Option<&'a WorkflowId> {
        match past {
            Some(past) => past.programs.get(id),
            None => self.known.get(id).map(|one| one.program()),
        }
    }

    /// When the last run of a program started that succeeded or may yet; one that is about to start counts as now.
    fn last_start_of(&self, program: &WorkflowId, now: Timestamp) -> Option<Timestamp> {
        if self.slots_of_program(program, now).any(|state| state.state == SlotState::Queued) {
            return Some(now);
        }
        let past = self.at(now);
        let last_runs = past.map_or(&self.last_runs, |past| &past.last_runs);
        let over = last_runs.iter().filter(|(id, _)| self.program_of(id, past) == Some(program)).map(|(_, run)| *run);
        let going = self.slots_of_program(program, now).filter(|state| state.alive).map(|state| state.started);
        over.chain(going).max().map(|(_, at)| at)
    }

    /// Notes a successful run of a workflow, if a constraint may depend on it.
    pub(super) fn note_success(&mut self, slot: &SlotRef) {
        let Some(workflow) = self.known.get(&slot.workflow) else { return };
        let members = self.known.values().filter(|one| one.program() == workflow.program());
        let mut gates = members.flat_map(|one| &one.constraints).map(|one| &one.gate);
        let asked_for = gates.any(|gate| matches!(gate, Gate::SinceLastRun(_)));
        if asked_for || workflow.keys.are_moments() {
            let started = self.slots[slot].started;
            let last = self.last_runs.entry(slot.workflow.clone()).or_insert(started);
            *last = started.max(*last);
        }
    }

    /// Keeps the last run of a program for that program, if the workflow now runs another one.
    pub(super) fn hand_over_last_run(&mut self, id: &WorkflowId, before: &WorkflowId) {
        if let Some(run) = self.last_runs.remove(id).filter(|_| before != id) {
            let last = self.last_runs.entry(before.clone()).or_insert(run);
            *last = run.max(*last);
        }
    }
}
