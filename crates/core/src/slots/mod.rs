//! The slot table, the only owner of slots. It holds the live ones, and for the length of a turn those that a step read
//! from the past or that ended in the turn; changes of the turn are newer than the store. Times in a backlog are slots
//! for all readers; one becomes a slot of its own when something happens to it.
//!
//! Absent: the effect of an event on anything but its slot. The owners of indices over slots follow the changes that
//! this table reports.

mod planned;
mod recalled;
mod resting;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::arguments::kept_arguments;
use kelos_model::backfill::Backfill;
use kelos_model::facts::Collection;
use kelos_model::ranges::Range;
use kelos_model::time::CronSchedule;
use kelos_model::workflow::{LastRun, PlanState};
use kelos_model::{
    Backlog, Breach, Invariant, Outcome, Run, RunId, RunState, Slot, SlotEvent, SlotKey, SlotRef, SlotState, StepKey,
    Stretch, Workflow, WorkflowId, slot,
};

use crate::breaches::Breaches;
use crate::keyed::KeyMap;
use crate::past::PastOf;
use crate::workers::WORKER;
use planned::PlannedTimes;
use recalled::RecalledSlots;
use resting::{Names, TableEntry};

/// A slot in memory.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) slot: Slot,
    /// Whether its job is known to be valid.
    pub(crate) valid: bool,
    /// Its latest run, while that is alive. It is boxed because most slots in memory wait.
    pub(crate) run: Option<Box<LiveRun>>,
}

/// A live run, with details that only memory has.
#[derive(Clone)]
pub(crate) struct LiveRun {
    pub(crate) run: Run,
    /// The worker that runs it; none if there is none, or if it is not known since a restart.
    pub(crate) worker: Option<Arc<str>>,
    /// The total number of attempts, if the worker set one.
    pub(crate) attempts: Option<u32>,
    /// The reason why the executor deferred the start, and the number of deferrals.
    pub(crate) deferred: Option<(String, u32)>,
    /// The failure of a run whose outputs are not kept, if that is so. It can't succeed then.
    pub(crate) gave_wrong: Option<Outcome>,
}

impl LiveRun {
    /// Whether a worker runs it.
    pub(crate) fn is_by_worker(&self) -> bool {
        self.run.executor == WORKER
    }
}

impl Live {
    fn new(slot: Slot) -> Live {
        Live { slot, valid: false, run: None }
    }

    /// The live run.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref().map(|live| &live.run)
    }

    /// Whether the executor deferred the start of its run.
    pub(crate) fn is_deferred(&self) -> bool {
        self.run.as_ref().is_some_and(|live| live.deferred.is_some())
    }
}

/// A slot before an event and after it.
pub(crate) struct Change {
    pub(crate) before: Option<Slot>,
    pub(crate) after: Slot,
}

/// All slots in memory.
#[derive(Default)]
pub(crate) struct SlotTable {
    /// The slots of each workflow that ever existed, even if it has none here.
    workflows: BTreeMap<WorkflowId, KeyMap<TableEntry>>,
    /// The steps of runs of flows. They are slots, too, and are listed among those of no workflow.
    steps: BTreeMap<SlotRef, TableEntry>,
    /// The names of their backfills.
    names: Names,
    /// The planned times without slots.
    planned: PlannedTimes,
    recalled: RecalledSlots,
    /// The slots of the past that are to be read.
    wanted: BTreeSet<SlotRef>,
    /// The slots that this turn changed.
    changed: BTreeSet<SlotRef>,
    /// The runs that this turn changed, by the log position of their dispatch.
    runs: BTreeMap<u64, Run>,
    breaches: Breaches,
}

impl SlotTable {
    /// Adds a workflow. Slots of others don't exist.
    pub(crate) fn add_workflow(&mut self, id: &WorkflowId) {
        self.workflows.entry(id.clone()).or_default();
    }

    /// Restores a live slot from the store.
    pub(crate) fn restore(&mut self, id: &SlotRef, slot: Slot) {
        self.put(id, Live::new(slot));
    }

    /// Restores the run of a live slot from the store, if it is the slot's latest.
    pub(crate) fn restore_run(&mut self, run: Run) {
        let Some(live) = self.whole_mut(&run.id.slot).filter(|live| live.slot.last_run == run.id.number) else {
            return;
        };
        live.run = Some(Box::new(LiveRun { run, worker: None, attempts: None, deferred: None, gave_wrong: None }));
    }

    /// A slot; none if it is not in memory.
    pub(crate) fn get(&self, id: &SlotRef) -> Option<Cow<'_, Live>> {
        match self.stored(id) {
            Some(stored) => Some(stored.live(&self.names)),
            None => self.planned.of(id).map(|stretch| Cow::Owned(Live::new(stretch.slot()))),
        }
    }

    /// The facts that a slot has collected.
    pub(crate) fn collected(&self, id: &SlotRef) -> Option<&Collection> {
        self.whole(id)?.slot.collected.as_deref()
    }

    /// The live run of a slot.
    pub(crate) fn run(&self, id: &SlotRef) -> Option<&Run> {
        self.whole(id)?.run()
    }

    /// The state of a slot; none if it is not in memory.
    pub(crate) fn state(&self, id: &SlotRef) -> Option<SlotState> {
        self.stored(id).map(TableEntry::state).or_else(|| self.planned.of(id).map(Stretch::state))
    }

    /// Whether a slot is in memory.
    pub(crate) fn has(&self, id: &SlotRef) -> bool {
        self.stored(id).is_some() || self.planned.of(id).is_some()
    }

    /// The live run of a slot, to change its worker and deferral. The slot itself changes only by [`SlotTable::enter`].
    pub(crate) fn run_mut(&mut self, id: &SlotRef) -> Option<&mut LiveRun> {
        self.whole_mut(id)?.run.as_deref_mut()
    }

    /// Notes that the job of a slot is valid.
    pub(crate) fn set_valid(&mut self, id: &SlotRef) {
        match self.stored_mut(id) {
            Some(stored) => stored.set_valid(true),
            None => self.breaches.no_slot(id),
        }
    }

    fn stored(&self, id: &SlotRef) -> Option<&TableEntry> {
        match &id.key {
            SlotKey::Step(_) => self.steps.get(id),
            key => self.workflows.get(&id.workflow)?.get(key),
        }
    }

    fn stored_mut(&mut self, id: &SlotRef) -> Option<&mut TableEntry> {
        match &id.key {
            SlotKey::Step(_) => self.steps.get_mut(id),
            key => self.workflows.get_mut(&id.workflow)?.get_mut(key),
        }
    }

    /// A slot that is not at rest.
    fn whole(&self, id: &SlotRef) -> Option<&Live> {
        match self.stored(id)? {
            TableEntry::Whole(live) => Some(live),
            TableEntry::Resting(_) => None,
        }
    }

    /// The same, to be changed.
    fn whole_mut(&mut self, id: &SlotRef) -> Option<&mut Live> {
        match self.stored_mut(id)? {
            TableEntry::Whole(live) => Some(live),
            TableEntry::Resting(_) => None,
        }
    }

    fn put(&mut self, id: &SlotRef, live: Live) {
        let backfill = live.slot.backfill.clone();
        let stored = TableEntry::new(live, &mut self.names);
        let is_whole = stored.backfill(&self.names) == backfill.as_ref();
        self.breaches.check_slot(is_whole, Invariant::SlotsAreStoredWhole, id);
        if id.key.step().is_some() {
            self.steps.insert(id.clone(), stored);
            return;
        }
        match self.workflows.get_mut(&id.workflow) {
            Some(slots) => drop(slots.insert(&id.key, stored)),
            None => drop(self.workflows.entry(id.workflow.clone()).or_default().insert(&id.key, stored)),
        }
    }

    fn take(&mut self, id: &SlotRef) -> Option<Live> {
        let stored = match &id.key {
            SlotKey::Step(_) => self.steps.remove(id),
            key => self.workflows.get_mut(&id.workflow)?.remove(key),
        };
        match stored? {
            TableEntry::Whole(live) => Some(*live),
            resting @ TableEntry::Resting(_) => Some(resting.live(&self.names).into_owned()),
        }
    }

    /// The slots of a workflow in memory, in the order of their keys, without those in its backlog.
    pub(crate) fn of<'a>(&'a self, id: &'a WorkflowId) -> impl Iterator<Item = (SlotRef, Cow<'a, Live>)> + Clone {
        let slots = self.workflows.get(id).into_iter().flat_map(KeyMap::iter);
        slots.map(|(key, stored)| (SlotRef::new(id.clone(), key), stored.live(&self.names)))
    }

    /// The slots of a workflow in memory that are not at rest: all but those that wait and have never run.
    pub(crate) fn moving<'a>(&'a self, id: &'a WorkflowId) -> impl Iterator<Item = (SlotRef, &'a Live)> + Clone {
        let slots = self.workflows.get(id).into_iter().flat_map(KeyMap::iter);
        slots.filter_map(|(key, stored)| match stored {
            TableEntry::Whole(live) => Some((SlotRef::new(id.clone(), key), &**live)),
            TableEntry::Resting(_) => None,
        })
    }

    /// The ids of a workflow's slots in memory, in the order of their keys.
    pub(crate) fn names_of(&self, id: &WorkflowId) -> Vec<SlotRef> {
        let slots = self.workflows.get(id).into_iter().flat_map(KeyMap::iter);
        slots.map(|(key, _)| SlotRef::new(id.clone(), key)).collect()
    }

    /// The slots of a backfill in memory, without those in the backlog.
    pub(crate) fn of_backfill<'a>(&'a self, row: &'a Backfill) -> impl Iterator<Item = (SlotRef, Cow<'a, Live>)> {
        self.of(&row.workflow).filter(|(_, live)| live.slot.backfill.as_ref() == Some(&row.id))
    }

    /// The ids of a backfill's slots in memory whose state passes a filter.
    pub(crate) fn names_of_backfill(&self, row: &Backfill, lets: impl Fn(SlotState) -> bool) -> Vec<SlotRef> {
        self.of_backfill(row).filter(|(_, live)| lets(live.slot.state)).map(|(slot, _)| slot).collect()
    }

    /// The number of slots in memory, without those in backlogs.
    pub(crate) fn len(&self) -> usize {
        self.workflows.values().map(KeyMap::len).sum::<usize>() + self.steps.len()
    }

    /// The steps of all runs of a workflow in memory.
    pub(crate) fn steps_of_workflow<'a>(
        &'a self,
        id: &'a WorkflowId,
    ) -> impl Iterator<Item = (&'a SlotRef, Cow<'a, Live>)> {
        let first = SlotRef::new(id.clone(), SlotKey::Time(Timestamp::MIN));
        let of_workflow = self.steps.range(first..).take_while(move |(slot, _)| slot.workflow == *id);
        of_workflow.map(|(slot, stored)| (slot, stored.live(&self.names)))
    }

    /// The steps of a run of a flow in memory, in the order of their keys.
    pub(crate) fn steps_of<'a>(&'a self, run: &'a SlotRef) -> impl Iterator<Item = (&'a SlotRef, Cow<'a, Live>)> {
        let prefix = StepKey::prefix(&run.key);
        let first = StepKey::first_of(&run.key).map(|key| SlotRef::new(run.workflow.clone(), SlotKey::Step(key)));
        let from = first.map(|first| self.steps.range(first..)).into_iter().flatten();
        let of_run = from.take_while(move |(id, _)| {
            id.workflow == run.workflow && id.key.step().is_some_and(|step| step.is_within(&prefix))
        });
        of_run.map(|(id, stored)| (id, stored.live(&self.names)))
    }

    /// Forgets which jobs of a workflow are valid, because the condition has changed.
    pub(crate) fn doubt(&mut self, id: &WorkflowId) {
        let slots = self.workflows.get_mut(id).into_iter().flat_map(KeyMap::values_mut);
        slots.for_each(|stored| stored.set_valid(false));
    }

    /// The backlog of a workflow.
    pub(crate) fn backlog(&self, id: &WorkflowId) -> &Backlog {
        self.planned.backlog(id)
    }

    /// The backlog of a workflow, to be changed. A range that is put in must not contain slots: see
    /// [`SlotTable::times_of`].
    pub(crate) fn backlog_mut(&mut self, id: &WorkflowId) -> &mut Backlog {
        self.planned.backlog_mut(id)
    }

    /// Changes the stretches of a backfill in the backlog. Returns whether there were any.
    pub(crate) fn replan(&mut self, row: &Backfill, change: impl Fn(&mut Stretch)) -> bool {
        let mut waiting: Vec<Stretch> = self.backlog(&row.workflow).of(&row.id).cloned().collect();
        for stretch in &mut waiting {
            change(stretch);
            self.backlog_mut(&row.workflow).put(stretch.clone());
        }
        !waiting.is_empty()
    }

    /// Whether any slot of a backfill is live or in the backlog.
    pub(crate) fn is_going_on(&self, row: &Backfill) -> bool {
        let waits = self.backlog(&row.workflow).of(&row.id).next().is_some();
        waits || self.of_backfill(row).any(|(_, live)| !live.slot.state.is_final())
    }

    /// The schedule of the times in a workflow's backlog, even if that is empty.
    pub(crate) fn schedule_of_backlog(&self, id: &WorkflowId) -> Option<&CronSchedule> {
        self.planned.schedule(id)
    }

    /// The text of the schedule that planned a workflow's backlog, if it differs from this one.
    pub(crate) fn earlier_schedule(&self, id: &WorkflowId, words: &str) -> Option<String> {
        self.planned.earlier_schedule(id, words)
    }

    /// Sets the schedule of a workflow's backlog, unless that is not empty and another schedule planned it.
    pub(crate) fn reschedule(&mut self, id: &WorkflowId, schedule: &CronSchedule) {
        self.planned.reschedule(id, schedule);
    }

    /// Takes the backlog of a workflow and its schedule out of a stored row.
    pub(crate) fn restore_backlog(&mut self, id: &WorkflowId, planned: &mut PlanState) {
        if let Some(schedule) = planned.schedule_of_backlog() {
            self.planned.restore(id, std::mem::take(&mut planned.backlog), schedule);
        }
        planned.backlog_schedule = None;
    }

    /// Whether a slot is a time in a backlog.
    pub(crate) fn is_planned(&self, id: &SlotRef) -> bool {
        self.planned.of(id).is_some()
    }

    /// The events that make a time in a backlog a slot of its own; none for any other slot.
    pub(crate) fn events_of_planned(&self, id: &SlotRef) -> Vec<SlotEvent> {
        self.planned.of(id).map(Stretch::events).unwrap_or_default()
    }

    /// The slots of a workflow in memory whose times are within a range, in order and without those in its backlog.
    pub(crate) fn within<'a>(
        &'a self,
        id: &'a WorkflowId,
        range: Range,
    ) -> impl Iterator<Item = (Timestamp, Cow<'a, Live>)> {
        let slots = self.workflows.get(id).into_iter().flat_map(KeyMap::iter);
        let timed = slots.filter_map(|(key, stored)| Some((key.scheduled()?, stored)));
        timed.filter(move |(at, _)| range.contains(*at)).map(|(at, stored)| (at, stored.live(&self.names)))
    }

    /// The times within a range that have slots in memory.
    pub(crate) fn times_of(&self, id: &WorkflowId, range: Range) -> Vec<Timestamp> {
        let slots = self.workflows.get(id).into_iter().flat_map(KeyMap::iter);
        slots.filter_map(|(key, _)| key.scheduled()).filter(|at| range.contains(*at)).collect()
    }

    /// A slot before and after an event; none if the event is not possible.
    pub(crate) fn change(&self, id: &SlotRef, what: &SlotEvent, at: Timestamp, seq: u64) -> Option<Change> {
        if !self.workflows.contains_key(&id.workflow) {
            return None;
        }
        let before = self.stored(id).map(|stored| stored.slot(&self.names));
        let after = slot::apply(before.clone(), what, at, seq)?;
        Some(Change { before, after })
    }

    /// Applies a change to a slot and its run. Returns the run if it succeeded by that.
    pub(crate) fn enter(
        &mut self,
        id: &SlotRef,
        after: &Slot,
        what: &SlotEvent,
        definition: &Workflow,
        (at, seq): (Timestamp, u64),
    ) -> Option<LastRun> {
        let follow = |live: &mut Live| {
            let run = follow_run(live, id, what, definition, (at, seq));
            live.slot.clone_from(after);
            if after.state != SlotState::Dispatched
                && let Some(run) = &mut live.run
            {
                run.deferred = None;
            }
            run
        };
        let run = if let Some(live) = self.whole_mut(id) {
            follow(live)
        } else {
            let mut live = self.take(id).unwrap_or_else(|| Live::new(after.clone()));
            let run = follow(&mut live);
            self.put(id, live);
            run
        };
        self.recalled.exists(id);
        let is_readable = self.planned.take(id);
        self.breaches.check_slot(is_readable, Invariant::BacklogsHaveSchedules, id);
        self.changed.insert(id.clone());
        let run = run?;
        let succeeded = (run.state == RunState::Succeeded)
            .then(|| LastRun { seq: run.seq, started: run.started_at.unwrap_or(run.dispatched_at) });
        self.runs.insert(run.seq, run);
        succeeded
    }

    /// Notes the executor's id of a run that is to be ended.
    pub(crate) fn name_run(&mut self, slot: &SlotRef, external_id: String) {
        // A run that another scheduler started and this one adopted has no record here.
        if let Some(known) = self.run_mut(slot) {
            known.run.external_id = Some(external_id);
            let run = known.run.clone();
            self.runs.insert(run.seq, run);
        }
    }

    /// A run that the turn changed, by the position of its dispatch.
    pub(crate) fn changed_run(&self, seq: u64) -> Option<&Run> {
        self.runs.get(&seq)
    }

    /// The slots that the turn changed, in their current state.
    pub(crate) fn changed(&self) -> Vec<(SlotRef, Slot)> {
        let rows = self.changed.iter().filter_map(|id| Some((id.clone(), self.stored(id)?.slot(&self.names))));
        rows.collect()
    }

    /// The runs that the turn changed, in their current state.
    pub(crate) fn changed_runs(&self) -> Vec<Run> {
        self.runs.values().cloned().collect()
    }

    /// Ends a turn: slots that are not live leave memory.
    pub(crate) fn settle(&mut self) {
        self.runs.clear();
        let changed = std::mem::take(&mut self.changed);
        let recalled = std::mem::take(&mut self.recalled).into_slots();
        for id in changed.union(&recalled) {
            if id.key.step().is_some() {
                if self.steps.get(id).is_some_and(|stored| !stored.is_live()) {
                    self.steps.remove(id);
                }
                continue;
            }
            let Some(slots) = self.workflows.get_mut(&id.workflow) else {
                self.breaches.report(Invariant::WorkflowIsKnown, &id.workflow);
                continue;
            };
            if slots.get(&id.key).is_some_and(|stored| !stored.is_live()) {
                slots.remove(&id.key);
            }
        }
    }

    /// Whether a slot is in memory, or certain not to exist.
    pub(crate) fn is_known(&self, id: &SlotRef) -> bool {
        // Slots of workflows that were not added don't exist.
        let Some(slots) = self.workflows.get(&id.workflow) else { return true };
        let is_here = slots.get(&id.key).is_some() || self.steps.contains_key(id);
        is_here || self.recalled.is_absent(id) || self.planned.of(id).is_some()
    }

    /// Reads slots from the past, unless they are in memory. Those that are not in memory after this don't exist.
    pub(crate) fn recall<E>(&mut self, ids: impl IntoIterator<Item = SlotRef>, past: PastOf<'_, E>) -> Result<(), E> {
        let unknown = ids.into_iter().filter(|slot| !self.is_known(slot)).collect();
        let rows = self.recalled.read(unknown, past)?;
        self.bring_back(rows);
        Ok(())
    }

    /// Reads all slots of a range from the past.
    pub(crate) fn recall_range<E>(&mut self, id: &WorkflowId, range: Range, past: PastOf<'_, E>) -> Result<(), E> {
        if !self.workflows.contains_key(id) {
            return Ok(());
        }
        let rows = self.recalled.read_range(id, range, past)?;
        self.bring_back(rows);
        Ok(())
    }

    /// Reads all steps of a run of a flow from the past.
    pub(crate) fn recall_steps<E>(&mut self, run: &SlotRef, past: PastOf<'_, E>) -> Result<(), E> {
        let rows = self.recalled.read_steps(run, past)?;
        self.bring_back(rows);
        Ok(())
    }

    /// Keeps slots of the past in memory for this turn. Those already in memory are newer.
    fn bring_back(&mut self, rows: Vec<(SlotRef, Slot)>) {
        for (id, slot) in rows {
            if self.stored(&id).is_none() {
                self.put(&id, Live::new(slot));
            }
        }
    }

    /// Requests a slot from the past, to be read together with others.
    pub(crate) fn want(&mut self, slot: SlotRef) {
        self.wanted.insert(slot);
    }

    /// Whether slots are requested from the past.
    pub(crate) fn is_any_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take().or_else(|| self.recalled.take_breach())
    }

    /// Reads all requested slots with one question. Returns their ids.
    pub(crate) fn recall_wanted<E>(&mut self, past: PastOf<'_, E>) -> Result<BTreeSet<SlotRef>, E> {
        let wanted = std::mem::take(&mut self.wanted);
        self.recall(wanted.iter().cloned(), past)?;
        Ok(wanted)
    }
}

/// Applies an event to the record of the slot's run. Returns the record if it changed.
fn follow_run(
    live: &mut Live,
    id: &SlotRef,
    what: &SlotEvent,
    definition: &Workflow,
    (at, seq): (Timestamp, u64),
) -> Option<Run> {
    if let SlotEvent::Dispatched { run: number, worker, batch } = what {
        let executor = if worker.is_some() { WORKER } else { &definition.job.executor };
        let run = Run {
            id: RunId { slot: id.clone(), number: *number },
            seq,
            previous: live.slot.last_run_seq,
            state: RunState::Dispatched,
            executor: executor.to_owned(),
            external_id: None,
            dispatched_at: at,
            started_at: None,
            ended_at: None,
            outcome: None,
            arguments: match (live.slot.step_of_run(), live.slot.given_to_repeat()) {
                (Some(step), _) => step.inputs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                (None, Some(given)) => given,
                // A run that can't be started with its arguments ends before it starts.
                (None, None) => kept_arguments(definition, live.slot.collected.as_deref(), &id.key).unwrap_or_default(),
            },
            outputs: None,
            batch: *batch,
        };
        let worker = worker.as_deref().map(Arc::from);
        live.run =
            Some(Box::new(LiveRun { run: run.clone(), worker, attempts: None, deferred: None, gave_wrong: None }));
        return Some(run);
    }
    let outcome = match what {
        SlotEvent::Given { inputs, .. } => {
            let run = &mut live.run.as_mut()?.run;
            run.arguments.clone_from(inputs);
            return Some(run.clone());
        }
        SlotEvent::Gave { outputs, .. } => {
            let run = &mut live.run.as_mut()?.run;
            run.outputs = Some(Box::new(outputs.clone()));
            return Some(run.clone());
        }
        SlotEvent::Started { external_id, .. } => {
            let run = &mut live.run.as_mut()?.run;
            run.state = RunState::Running;
            run.started_at = Some(at);
            run.external_id = Some(external_id.clone());
            return Some(run.clone());
        }
        SlotEvent::Succeeded { .. } | SlotEvent::Recovered { .. } => Outcome::Succeeded,
        SlotEvent::Withdrawn { .. } if live.run().is_some_and(|run| run.started_at.is_some()) => Outcome::Killed,
        SlotEvent::Withdrawn { .. } => Outcome::refused("no worker fetched it".to_owned()),
        SlotEvent::BackedOff { outcome, .. }
        | SlotEvent::Failed { outcome, .. }
        | SlotEvent::RunEnded { outcome, .. } => outcome.clone(),
        _ => return None,
    };
    let LiveRun { mut run, .. } = *live.run.take()?;
    run.state = outcome.state();
    run.ended_at = Some(at);
    run.outcome = Some(outcome);
    Some(run)
}
