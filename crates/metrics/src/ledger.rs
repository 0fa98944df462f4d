//! The counts of all workflows, kept up to date by events.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::event::BackfillEvent;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Event, EventRecord, SlotEvent, SlotRef, SlotState, WorkflowId};
use kelos_store::StoreError;

use crate::families;
use crate::reasons::Reasons;
use crate::text::{Family, Text};
use crate::workflow::{Counts, LiveSlot, OUTCOMES, RUN_BOUNDS, WorkflowCounts};

/// States that always have a number, so that their first change is seen.
const ALWAYS: [SlotState; 6] = [
    SlotState::Waiting,
    SlotState::Queued,
    SlotState::Running,
    SlotState::Succeeded,
    SlotState::Failed,
    SlotState::Expired,
];
/// The label of the workflows that are added up. A workflow of this name has a project beside it.
const OTHER: &str = "workflow=\"other\"";
/// About the length of the lines of one workflow.
const ROOM: usize = 3500;

/// The counts of all workflows.
#[derive(Default)]
pub(crate) struct Ledger {
    workflows: BTreeMap<WorkflowId, WorkflowCounts>,
    /// The number of workflows with numbers of their own.
    named: usize,
    /// The most workflows that may have them.
    most: usize,
    pub(crate) reasons: Reasons,
    /// The position of the last event that is counted.
    position: u64,
    /// Whether what was stored at the start is counted.
    is_complete: bool,
    /// The workflows whose ended slots have to be counted anew.
    unsure: BTreeSet<WorkflowId>,
}

impl Ledger {
    /// An empty ledger, in which so many workflows have numbers of their own.
    pub(crate) fn new(most: usize) -> Ledger {
        Ledger { most, ..Ledger::default() }
    }

    /// A ledger without slots, in which what only grows goes on, and who has numbers of their own keeps them.
    pub(crate) fn emptied(&self) -> Ledger {
        let workflows = self.workflows.iter().map(|(id, workflow)| (id.clone(), workflow.emptied())).collect();
        Ledger { workflows, named: self.named, most: self.most, ..Ledger::default() }
    }

    /// The position of the last event that is counted.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Whether what was stored at the start is counted.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Declares that all up to a position of the log is counted.
    pub(crate) fn complete(&mut self, position: u64) {
        (self.position, self.is_complete) = (position, true);
    }

    /// Takes a workflow as it is now.
    pub(crate) fn set(&mut self, row: WorkflowRow) {
        let (id, is_defined) = (row.id.clone(), row.present);
        let workflow = match self.workflows.entry(id) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                known.set_row(row);
                known
            }
            Entry::Vacant(free) => free.insert(WorkflowCounts::new(row)),
        };
        // One that has numbers of its own keeps them, whatever comes later.
        if is_defined && !workflow.is_named && self.named < self.most {
            workflow.name();
            self.named += 1;
        }
    }

    /// Adds slots of a workflow that have ended.
    pub(crate) fn add_ended(&mut self, id: &WorkflowId, state: SlotState, count: u64) {
        if let Some(workflow) = self.workflows.get_mut(id) {
            workflow.add_ended(state, count);
        }
    }

    /// Adds a live slot.
    pub(crate) fn add_live(&mut self, slot: SlotRef, live: LiveSlot) {
        if let Some(workflow) = self.workflows.get_mut(&slot.workflow) {
            workflow.add_live(slot.key, live);
        }
    }

    /// Notes when the live run of a slot began.
    pub(crate) fn began(&mut self, slot: &SlotRef, at: Timestamp) {
        if let Some(workflow) = self.workflows.get_mut(&slot.workflow) {
            workflow.began(&slot.key, at);
        }
    }

    /// The number of times of the backlog of a workflow that were killed.
    pub(crate) fn killed_of_backlog(&self, id: &WorkflowId) -> u64 {
        self.workflows.get(id).map_or(0, WorkflowCounts::killed_of_backlog)
    }

    /// The workflows that have to be read before events are counted: new and changed ones, and those whose backlogs may have changed.
    pub(crate) fn to_read(&self, events: &[EventRecord]) -> BTreeSet<WorkflowId> {
        let mut ids = BTreeSet::new();
        let has_backlog = |id: &WorkflowId| self.workflows.get(id).is_none_or(WorkflowCounts::has_backlog);
        for record in events {
            match &record.event {
                Event::Workflow { workflow, .. } => drop(ids.insert(workflow.clone())),
                Event::Slot { slot, .. } if has_backlog(&slot.workflow) => drop(ids.insert(slot.workflow.clone())),
                Event::Backfill { what, .. } => {
                    if let BackfillEvent::Created { workflow, .. } = what {
                        ids.insert(workflow.clone());
                    }
                    let with_backlogs = self.workflows.iter().filter(|(_, one)| one.has_backlog());
                    ids.extend(with_backlogs.map(|(id, _)| id.clone()));
                }
                _ => {}
            }
        }
        ids
    }

    /// Counts an event. The state of a slot that had ended is not kept, and asked for; it is none if the history that says it was removed.
    ///
    /// # Errors
    /// When it could not be asked for: then the event is not counted.
    pub(crate) fn count(
        &mut self,
        record: &EventRecord,
        ended: impl FnOnce(&SlotRef) -> Result<Option<SlotState>, StoreError>,
    ) -> Result<(), StoreError> {
        if let Event::Slot { slot, what } = &record.event {
            self.count_slot(record, (slot, what), ended)?;
        }
        self.position = record.seq;
        Ok(())
    }

    fn count_slot(
        &mut self,
        record: &EventRecord,
        (slot, what): (&SlotRef, &SlotEvent),
        ended: impl FnOnce(&SlotRef) -> Result<Option<SlotState>, StoreError>,
    ) -> Result<(), StoreError> {
        let Some(workflow) = self.workflows.get_mut(&slot.workflow) else { return Ok(()) };
        // Steps are no slots of their own: their run counts as one.
        if slot.key.step().is_some() {
            workflow.count_step(what);
            return Ok(());
        }
        let begins = matches!(what, SlotEvent::Planned { .. } | SlotEvent::Imported { .. });
        let before = match workflow.live(&slot.key) {
            Some(live) => Some(live.state),
            None if record.previous > 0 => ended(slot)?,
            None if begins => None,
            None => return Ok(()),
        };
        if before.is_none() && record.previous > 0 {
            self.unsure.insert(slot.workflow.clone());
        }
        workflow.change(&slot.key, before, (what, record.at), &mut self.reasons);
        Ok(())
    }

    /// The workflows whose ended slots have to be counted anew: one of them was changed that had ended in a state which nothing says any
    /// more.
    pub(crate) fn unsure(&self) -> &BTreeSet<WorkflowId> {
        &self.unsure
    }

    /// Forgets the ended slots of a workflow, which are added anew.
    pub(crate) fn forget_ended(&mut self, id: &WorkflowId) {
        self.unsure.remove(id);
        if let Some(workflow) = self.workflows.get_mut(id) {
            workflow.forget_ended();
        }
    }

    /// Writes the numbers of workflows that a caller may see.
    pub(crate) fn write(&mut self, text: &mut Text, now: Timestamp, sees: &dyn Fn(&WorkflowId) -> bool) {
        let (mut named, mut other, mut others) = (Vec::new(), Counts::default(), 0_u64);
        let (mut backfills, mut backfill_slots) = (0, 0);
        for (_, workflow) in self.workflows.iter().filter(|(id, _)| sees(id)) {
            if !workflow.is_shown() {
                // Numbers that only grow stay when their workflow is gone.
                other.counters.add(workflow.among_others());
                continue;
            }
            let counts = workflow.now(&mut self.reasons);
            let (active, slots) = workflow.backfills();
            backfills += active;
            backfill_slots += slots;
            if workflow.is_named {
                other.counters.add(workflow.among_others());
                named.push((workflow.labels.as_str(), counts));
            } else {
                others += 1;
                other.add(&counts);
            }
        }
        if others > 0 || other.counters.has_any() {
            named.push((OTHER, other));
        }
        text.one(&families::BACKFILLS, backfills);
        text.one(&families::BACKFILL_SLOTS, backfill_slots);
        text.one(&families::OTHER_WORKFLOWS, others);
        text.reserve(named.len() * ROOM);
        LedgerText { text, reasons: &self.reasons, workflows: &named, now }.write();
    }
}

/// The text of the counts of workflows.
struct LedgerText<'a> {
    text: &'a mut Text,
    reasons: &'a Reasons,
    workflows: &'a [(&'a str, Counts)],
    now: Timestamp,
}

impl LedgerText<'_> {
    fn write(mut self) {
        self.states(&families::SLOTS, |counts| &counts.slots);
        self.states(&families::TRANSITIONS, |counts| &counts.counters.transitions);
        let mut family = self.text.family(&families::WAITING);
        for (labels, counts) in self.workflows {
            for (reason, count) in &counts.waiting {
                family.add_with(labels, "reason", self.reasons.code(*reason), count);
            }
        }
        self.outcomes(&families::RUNS, |counts| Some(counts.counters.runs.outcomes));
        let mut family = self.text.family(&families::RUN_SECONDS);
        for (labels, counts) in self.workflows {
            let runs = &counts.counters.runs;
            if runs.lengths.iter().any(|count| *count > 0) {
                family.histogram(labels, &RUN_BOUNDS, &runs.lengths, runs.seconds);
            }
        }
        self.outcomes(&families::STEPS, |counts| {
            let steps = counts.counters.steps;
            steps.iter().any(|count| *count > 0).then_some(steps)
        });
        let mut family = self.text.family(&families::DEADLINES_MISSED);
        self.workflows.iter().for_each(|(labels, counts)| family.add(labels, counts.counters.missed));
        self.lateness(&families::START_LATENESS, |counts| counts.unstarted);
        self.lateness(&families::FINISH_LATENESS, |counts| counts.unfinished);
        let mut family = self.text.family(&families::PAUSED);
        self.workflows.iter().for_each(|(labels, counts)| family.add(labels, counts.paused));
    }

    /// Writes the outcomes of workflows; the first two always, so that their first change is seen.
    fn outcomes(&mut self, family: &'static Family, of: impl Fn(&Counts) -> Option<[u64; OUTCOMES.len()]>) {
        let mut family = self.text.family(family);
        for (labels, counts) in self.workflows {
            for (place, (outcome, count)) in OUTCOMES.iter().zip(of(counts).into_iter().flatten()).enumerate() {
                if place < 2 || count > 0 {
                    family.add_with(labels, "outcome", outcome, count);
                }
            }
        }
    }

    fn states<const N: usize>(&mut self, family: &'static Family, of: impl Fn(&Counts) -> &[u64; N]) {
        let mut family = self.text.family(family);
        for (labels, counts) in self.workflows {
            for (state, count) in SlotState::ALL.iter().zip(of(counts)) {
                // A state that was reached once has a number for good.
                if ALWAYS.contains(state) || *count > 0 || counts.counters.transitions[*state as usize] > 0 {
                    family.add_with(labels, "state", state.as_str(), count);
                }
            }
        }
    }

    fn lateness(&mut self, family: &'static Family, of: impl Fn(&Counts) -> Option<Timestamp>) {
        let mut family = self.text.family(family);
        for (labels, counts) in self.workflows {
            let late = of(counts).map_or(0, |due| self.now.duration_since(due).as_secs().max(0));
            family.add(labels, late);
        }
    }
}
