//! The progress of a live run of a flow: the states of its steps, and what they gave.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::flow::{FlowGraph, StepProgress, listed_outputs};
use kelos_model::{Run, Slot, SlotState, StepKey, StepName};
use serde_json::{Map, Value};

/// The progress of a live run.
#[derive(Default)]
pub(crate) struct FlowProgress {
    /// The number of the run.
    number: u32,
    states: Vec<StepProgress>,
    /// The steps that earlier runs have done, and that are to be done again if a step before them is opened in this run.
    loose: BTreeSet<usize>,
    /// The steps and items that a person has ended, and whose runs are still alive.
    ending: BTreeSet<StepKey>,
    /// The outputs and the errors of the steps that have ended.
    ends: BTreeMap<usize, StepEnd>,
    /// The number of live steps, without the items of lists.
    live: usize,
    lists: BTreeMap<usize, ListProgress>,
    /// The steps that have ended since the run was last advanced.
    ended: BTreeSet<usize>,
    /// The steps that handle a failure once others have ended.
    awaiting: BTreeMap<usize, Vec<usize>>,
}

/// The end of a step.
#[derive(Default, Clone)]
pub(crate) struct StepEnd {
    pub(crate) outputs: Map<String, Value>,
    /// The error in words; empty where there was none.
    pub(crate) error: String,
}

impl StepEnd {
    /// The end of a step in a state, with its latest run if it ever ran.
    pub(crate) fn of(state: SlotState, run: Option<&Run>) -> StepEnd {
        let outputs = run.and_then(|run| run.outputs.as_deref()).cloned().unwrap_or_default();
        let outcome = run.and_then(|run| run.outcome.as_ref());
        let error = match state {
            SlotState::Succeeded | SlotState::Skipped => String::new(),
            SlotState::Expired => "what it waited for did not come in time".to_owned(),
            SlotState::Killed => "it was killed".to_owned(),
            _ => outcome.map(ToString::to_string).unwrap_or_default(),
        };
        StepEnd { outputs, error }
    }
}

/// The progress of the items of a list.
#[derive(Default)]
pub(crate) struct ListProgress {
    /// Those that are not ended.
    open: BTreeSet<u32>,
    ends: BTreeMap<u32, (StepProgress, StepEnd)>,
}

impl ListProgress {
    /// Whether no item is live.
    pub(crate) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// The outputs of all items in order, or the numbers of those that did not succeed. An item that gave one value under the name of the
    /// step gave that value.
    pub(crate) fn end(&self, name: &str) -> Result<Value, Vec<u32>> {
        let failed = self.ends.iter().filter(|(_, (state, _))| *state != StepProgress::Succeeded);
        let failed: Vec<u32> = failed.map(|(number, _)| *number).collect();
        if failed.is_empty() {
            return Ok(self.ends.values().map(|(_, end)| listed_outputs(name, &end.outputs)).collect());
        }
        Err(failed)
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.ends.len()
    }
}

impl FlowProgress {
    /// The progress of a run of which nothing was opened.
    pub(crate) fn new(graph: &FlowGraph, number: u32) -> FlowProgress {
        let mut progress =
            FlowProgress { number, states: vec![StepProgress::Unopened; graph.len()], ..FlowProgress::default() };
        progress.look_at_all();
        progress
    }

    /// Follows a step or an item from one state to another. `end` tells of its latest run.
    pub(crate) fn follow(
        &mut self,
        graph: &FlowGraph,
        key: &StepKey,
        before: StepProgress,
        slot: &Slot,
        end: impl FnOnce() -> StepEnd,
    ) {
        self.follow_ending(key, slot);
        let Some(at) = graph.position(key.step()) else { return };
        let after = StepProgress::from(slot.state);
        if let Some(number) = key.item_number() {
            return self.follow_item(at, number, after, end);
        }
        let Some(state) = self.states.get_mut(at) else { return };
        let opened = slot.step_of_run().map_or(0, |step| step.run);
        if opened < self.number && *state == StepProgress::Unopened && after != StepProgress::Succeeded {
            // The work of an earlier run doesn't count, unless a person says now that it is done.
            return;
        }
        let (was_live, is_live) = (*state == StepProgress::Live, after == StepProgress::Live);
        *state = after;
        match (was_live, is_live) {
            (false, true) => self.live += 1,
            (true, false) => self.live = self.live.saturating_sub(1),
            _ => {}
        }
        if is_live {
            self.ended.remove(&at);
            self.ends.remove(&at);
            if !was_live && !self.loose.is_empty() {
                self.undo_after(at, graph);
            }
        } else if before != after || was_live {
            self.ends.insert(at, end());
            self.awaiting.remove(&at);
            self.ended.insert(at);
        }
    }

    /// Follows the runs of what a person has ended: the run of the flow is not over before they are.
    pub(crate) fn follow_ending(&mut self, key: &StepKey, slot: &Slot) {
        if slot.state.is_final() && slot.run_alive {
            self.ending.insert(key.clone());
        } else if !self.ending.is_empty() {
            self.ending.remove(key);
        }
    }

    /// Has what comes after a step, and was done by earlier runs, done again.
    fn undo_after(&mut self, at: usize, graph: &FlowGraph) {
        for later in graph.with_all_after(at).into_iter().filter(|later| *later != at) {
            if self.loose.remove(&later)
                && let Some(state) = self.states.get_mut(later)
            {
                *state = StepProgress::Unopened;
                self.ends.remove(&later);
            }
        }
    }

    /// Notes which of the steps that earlier runs have done come after one that this run may still open.
    pub(crate) fn note_loose(&mut self, graph: &FlowGraph, done_before: &BTreeSet<usize>) {
        let is_open = |at: &usize| !done_before.contains(at);
        let mut next: Vec<usize> = (0..graph.len()).filter(is_open).collect();
        let mut seen = vec![false; graph.len()];
        while let Some(at) = next.pop() {
            let Some(is_seen) = seen.get_mut(at) else { continue };
            if !std::mem::replace(is_seen, true) {
                next.extend(graph.feeds(at).iter().chain(graph.handlers(at)));
                if done_before.contains(&at) {
                    self.loose.insert(at);
                }
            }
        }
    }

    fn follow_item(&mut self, at: usize, number: u32, after: StepProgress, end: impl FnOnce() -> StepEnd) {
        let list = self.lists.entry(at).or_default();
        if after == StepProgress::Live {
            list.open.insert(number);
            list.ends.remove(&number);
        } else if list.open.remove(&number) || list.ends.contains_key(&number) {
            list.ends.insert(number, (after, end()));
            self.ended.insert(at);
        }
    }

    /// Takes in a step or an item as it stands.
    pub(crate) fn load(&mut self, graph: &FlowGraph, key: &StepKey, slot: &Slot, end: impl FnOnce() -> StepEnd) {
        let Some(at) = graph.position(key.step()) else { return };
        let state = StepProgress::from(slot.state);
        match (key.item_number(), state) {
            (Some(number), StepProgress::Live) => drop(self.lists.entry(at).or_default().open.insert(number)),
            (Some(number), state) => self.note_item(at, number, state, end()),
            (None, state) => {
                self.states.get_mut(at).into_iter().for_each(|known| *known = state);
                if state == StepProgress::Live {
                    self.live += 1;
                } else {
                    self.ends.insert(at, end());
                }
                let step = slot.step_of_run().filter(|_| slot.state == SlotState::Waiting && slot.retries == 0);
                if let Some(step) = step.filter(|step| !step.awaits.is_empty()) {
                    self.await_others(at, graph, &step.awaits);
                }
            }
        }
    }

    /// Whether a step waits until others have ended.
    pub(crate) fn is_awaiting(&self, at: usize) -> bool {
        self.awaiting.contains_key(&at)
    }

    /// Has a step looked at in the next advance.
    pub(crate) fn look_at(&mut self, at: usize) {
        self.ended.insert(at);
    }

    /// Forgets the items of a list, whose step starts them.
    pub(crate) fn begin_list(&mut self, at: usize) {
        self.lists.insert(at, ListProgress::default());
    }

    /// Notes an item that had ended before this scheduler began.
    pub(crate) fn note_item(&mut self, at: usize, number: u32, state: StepProgress, end: StepEnd) {
        self.lists.entry(at).or_default().ends.insert(number, (state, end));
    }

    /// The items of a step.
    pub(crate) fn list(&self, at: usize) -> Option<&ListProgress> {
        self.lists.get(&at)
    }

    /// The states of all steps.
    pub(crate) fn states(&self) -> &[StepProgress] {
        &self.states
    }

    /// The end of a step.
    pub(crate) fn end_of(&self, at: usize) -> StepEnd {
        self.ends.get(&at).cloned().unwrap_or_default()
    }

    /// Takes the steps that have ended since the run was last advanced, and those whose items have.
    pub(crate) fn take_ended(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.ended)
    }

    /// Has all steps count as ended, so that the next advance finds whatever is ready.
    pub(crate) fn look_at_all(&mut self) {
        self.ended = (0..self.states.len()).collect();
    }

    /// The live steps.
    pub(crate) fn live_steps(&self) -> impl Iterator<Item = usize> + '_ {
        let live = |(_, state): &(usize, &StepProgress)| **state == StepProgress::Live;
        self.states.iter().enumerate().filter(live).map(|(at, _)| at)
    }

    /// Whether no step is live, and no run of one is.
    pub(crate) fn is_still(&self) -> bool {
        self.live == 0 && self.ending.is_empty()
    }

    /// Has a step wait until others have ended.
    pub(crate) fn await_others(&mut self, at: usize, graph: &FlowGraph, others: &[StepName]) {
        let others = others.iter().filter_map(|name| graph.position(name.as_str())).collect();
        self.awaiting.insert(at, others);
    }

    /// Takes the steps whose wait for others is over.
    pub(crate) fn take_released(&mut self) -> Vec<usize> {
        if self.awaiting.is_empty() {
            return Vec::new();
        }
        let states = &self.states;
        let is_over = |_: &usize, others: &mut Vec<usize>| {
            others.retain(|other| states.get(*other) == Some(&StepProgress::Live));
            others.is_empty()
        };
        self.awaiting.extract_if(.., is_over).map(|(at, _)| at).collect()
    }
}
