//! A run of a flow as it stands, or as it stood: its graph, and the slots of its steps.

mod never;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kelos_model::flow::{FlowEnd, FlowGraph, OpenedStep, StepProgress};
use kelos_model::repeated::RepeatedStep;
use kelos_model::{Slot, SlotKey, SlotRef, SlotState, StepKey, StepName};
use kelos_store::{PageRequest, Queries, StoreError};

use crate::history;
pub use never::Never;

/// Steps that are read at a time.
const READ_AT_ONCE: usize = 1_000;
/// The last number, as a text, that an item may have.
const LAST_ITEM: u32 = 999_999_999;

/// A run of a flow.
pub(crate) struct FlowRun {
    run: SlotRef,
    slot: Option<Slot>,
    definition: u32,
    graph: FlowGraph,
    /// The steps that the present run of the slot has opened, or goes on with.
    steps: BTreeMap<usize, Slot>,
    states: Vec<StepProgress>,
    never: Vec<Option<Never>>,
}

/// The state of a step within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// The run has not opened it.
    NotOpened,
    /// It will not be opened.
    NeverRuns,
    /// The run does another step again, and nothing else.
    NotInRun,
    /// It was opened, and waits.
    Waits(Wait),
    /// Any other state of its slot.
    In(SlotState),
}

/// The wait of an open step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A signal.
    Signal,
    /// The ends of steps that were running when the one failed whose failure it handles.
    Others,
}

impl StepState {
    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StepState::NotOpened => "not-opened",
            StepState::NeverRuns => "never-runs",
            StepState::NotInRun => "not-in-run",
            StepState::Waits(Wait::Signal) => "awaits-signal",
            StepState::Waits(Wait::Others) => "awaits-others",
            StepState::In(state) => state.as_str(),
        }
    }
}

impl FlowRun {
    /// Reads a run as it stands, or as it stood at a moment. None where the workflow has no flow, or has one with a mistake.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) fn read(
        reader: &dyn Queries,
        run: &SlotRef,
        then: Option<Timestamp>,
    ) -> Result<Option<FlowRun>, StoreError> {
        let slot = slot_at(reader, run, then)?;
        let pinned = slot.as_ref().and_then(Slot::run_of_flow).map_or(0, |part| part.definition);
        let (definition, flow) = match pinned {
            0 => match reader.workflow(&run.workflow)? {
                Some(row) => (row.version, row.definition.flow.clone()),
                None => return Ok(None),
            },
            number => {
                (number, reader.definitions(&run.workflow, Some(number))?.pop().and_then(|past| past.definition.flow))
            }
        };
        let Some(graph) = flow.and_then(|flow| FlowGraph::new(&flow).ok()) else { return Ok(None) };
        let mut found = FlowRun {
            run: run.clone(),
            slot,
            definition,
            steps: BTreeMap::new(),
            states: vec![StepProgress::Unopened; graph.len()],
            never: Vec::new(),
            graph,
        };
        // Before it begins, all that earlier runs did is to be done again.
        if pinned > 0 {
            found.steps = match then {
                None => found.present_steps(reader)?,
                Some(_) => found.past_steps(reader, then)?,
            };
            found.forget_undone();
        }
        for (at, slot) in &found.steps {
            found.states.get_mut(*at).into_iter().for_each(|state| *state = slot.state.into());
        }
        found.never = never::of(&found.graph, &found.states);
        Ok(Some(found))
    }

    /// Reads all steps without the items of their lists.
    fn present_steps(&self, reader: &dyn Queries) -> Result<BTreeMap<usize, Slot>, StoreError> {
        let (mut found, mut from) = (BTreeMap::new(), None);
        loop {
            let page = reader.steps(&self.run, PageRequest::newest(READ_AT_ONCE).after(from.as_deref()))?;
            let last = page.rows.last().map(|row| row.id.key.clone());
            for row in page.rows {
                let Some(key) = row.id.key.step().filter(|key| key.item_number().is_none()) else { continue };
                found.extend(self.graph.position(key.step()).map(|at| (at, row.slot)));
            }
            from = page.next;
            if from.is_none() {
                return Ok(found);
            }
            if let Some(beyond) = last.and_then(beyond_items) {
                from = from.max(Some(beyond));
            }
        }
    }

    fn past_steps(&self, reader: &dyn Queries, then: Option<Timestamp>) -> Result<BTreeMap<usize, Slot>, StoreError> {
        let mut found = BTreeMap::new();
        for at in 0..self.graph.len() {
            let Some(id) = self.step(at) else { continue };
            found.extend(slot_at(reader, &id, then)?.map(|slot| (at, slot)));
        }
        Ok(found)
    }

    /// Leaves out what the present run does again.
    fn forget_undone(&mut self) {
        let Some(slot) = &self.slot else { return };
        let Some(part) = slot.run_of_flow() else { return };
        let is_to_begin = !slot.state.is_final() && !slot.run_alive;
        let number = slot.last_run + u32::from(is_to_begin);
        let begun = if is_to_begin { u64::MAX } else { slot.last_run_seq };
        let opened = |(at, slot): (&usize, &Slot)| OpenedStep {
            at: *at,
            run: slot.step_of_run().map_or(0, |step| step.run),
            state: slot.state.into(),
            is_marked: slot.state == SlotState::Succeeded && slot.last_event > begun,
        };
        let known: Vec<OpenedStep> = self.steps.iter().map(opened).collect();
        let undone = self.graph.undone((number, part.since_run), &part.again, &known);
        self.steps.retain(|at, _| !undone.contains(at));
    }

    /// The slot of the run; none where it does not exist.
    pub(crate) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// The step of another run that it does again, and nothing else; none where it is an ordinary run.
    pub(crate) fn repeats(&self) -> Option<&RepeatedStep> {
        self.slot.as_ref()?.run_of_flow()?.repeats.as_deref()
    }

    /// The slot of that step.
    pub(crate) fn repeated(&self) -> Option<SlotRef> {
        Some(SlotRef::new(self.run.workflow.clone(), SlotKey::Step(self.repeats()?.key()?)))
    }

    /// Whether a step is a part of it.
    fn is_part(&self, at: usize) -> bool {
        self.repeats().is_none_or(|repeats| self.graph.position(repeats.step.as_str()) == Some(at))
    }

    /// The number of the definition that it follows, or would follow if it began now.
    pub(crate) fn definition(&self) -> u32 {
        self.definition
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &FlowGraph {
        &self.graph
    }

    /// The slot of a step as it stands; none where the run has not opened it.
    pub(crate) fn slot_of(&self, at: usize) -> Option<&Slot> {
        self.steps.get(&at)
    }

    /// The name of a step's slot.
    pub(crate) fn step(&self, at: usize) -> Option<SlotRef> {
        step_key(&self.run, &self.graph.step(at)?.name)
    }

    /// The name of a step.
    pub(crate) fn name(&self, at: usize) -> &str {
        self.graph.step(at).map_or("", |step| step.name.as_str())
    }

    /// The position of a step by its key.
    pub(crate) fn position(&self, key: &StepKey) -> Option<usize> {
        self.graph.position(key.step())
    }

    /// The progress of a step, as other steps see it.
    pub(crate) fn progress(&self, at: usize) -> StepProgress {
        self.states.get(at).copied().unwrap_or_default()
    }

    /// The end of the run as the steps stand.
    pub(crate) fn end(&self) -> FlowEnd {
        self.graph.end(&self.states)
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.state.is_final())
    }

    /// The state of a step.
    pub(crate) fn state(&self, at: usize) -> StepState {
        match self.slot_of(at) {
            None if !self.is_part(at) => StepState::NotInRun,
            None if self.never(at).is_some() => StepState::NeverRuns,
            None => StepState::NotOpened,
            Some(slot) if slot.state == SlotState::Waiting && !self.awaited(at).is_empty() => {
                StepState::Waits(Wait::Others)
            }
            Some(slot) if slot.state == SlotState::Waiting && self.signal(at).is_some() => {
                StepState::Waits(Wait::Signal)
            }
            Some(slot) => StepState::In(slot.state),
        }
    }

    /// The reason for which a step that was not opened never runs; none where it may.
    pub(crate) fn never(&self, at: usize) -> Option<Never> {
        if !self.is_part(at) {
            return Some(Never::NotInRun);
        }
        let known = self.never.get(at).copied().flatten();
        known.or_else(|| self.is_over().then_some(Never::Over)).filter(|_| self.slot_of(at).is_none())
    }

    /// The steps that an error step waits for before it handles a failure.
    pub(crate) fn awaited(&self, at: usize) -> Vec<&StepName> {
        let awaits = self.slot_of(at).and_then(|slot| Some(&slot.step_of_run()?.awaits));
        let is_live = |name: &&StepName| {
            let at = self.graph.position(name.as_str());
            at.is_some_and(|at| self.progress(at) == StepProgress::Live)
        };
        awaits.into_iter().flatten().filter(is_live).collect()
    }

    /// The signal that a step waits for, and until when.
    pub(crate) fn signal(&self, at: usize) -> Option<(&str, Option<Timestamp>)> {
        let signal = self.graph.step(at)?.signal.as_ref()?;
        let until = signal.within_seconds.and_then(|seconds| {
            let since = self.slot_of(at)?.since;
            since.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()
        });
        Some((&signal.name, until))
    }

    /// The live steps.
    pub(crate) fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.graph.len()).filter(|at| self.progress(*at) == StepProgress::Live)
    }
}

/// A cursor behind the items of the list that a key belongs to; none where it is no item.
fn beyond_items(key: SlotKey) -> Option<String> {
    let key = key.step()?;
    key.item_number()?;
    let name = StepName::new(key.step()).ok()?;
    let last = StepKey::new(&key.run(), &name)?.item(LAST_ITEM);
    Some(SlotKey::Step(last).to_string())
}

/// A slot as it stands, or as it stood at a moment.
fn slot_at(reader: &dyn Queries, slot: &SlotRef, then: Option<Timestamp>) -> Result<Option<Slot>, StoreError> {
    match then {
        None => reader.slot(slot),
        Some(then) => history::slot_at(reader, slot, then),
    }
}

/// The key of a step of a run.
fn step_key(run: &SlotRef, step: &StepName) -> Option<SlotRef> {
    let key = StepKey::new(&run.key, step)?;
    Some(SlotRef::new(run.workflow.clone(), SlotKey::Step(key)))
}
