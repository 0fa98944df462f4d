//! All workflows: their definitions by provenance, and the effects of requests, breaches and deployments. This organ
//! owns their rows; the caller of a change records the event.
//!
//! Absent: slots, the log, and the consequences of a change.

mod cron_times;
mod definitions;
mod deployment;
mod event_schedules;
mod state;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::dormant::NoTimes;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::references::{MissingConsent, Ownership};
use kelos_model::time::CronSchedule;
use kelos_model::trigger::SlotTimes;
use kelos_model::workflow::{LastRun, Moments, PlanState, Provenance, WorkflowRow};
use kelos_model::{Breach, Freeze, Gate, Invariant, RunId, SlotRef, Workflow, WorkflowId};

pub(crate) use cron_times::{CronTimes, MOST_MISSED, Misfires};
pub(crate) use definitions::DefinitionSet;
pub use definitions::TakenName;
pub(crate) use state::WorkflowState;

use crate::Refusal;
use crate::breaches::Breaches;
use crate::slots::SlotTable;
use definitions::Definitions;
use deployment::{differ, keep_off, read_as_before};
use state::ScheduleState;

/// All workflows that ever existed, by name.
#[derive(Default)]
pub(crate) struct Workflows {
    all: BTreeMap<WorkflowId, WorkflowState>,
    definitions: Definitions,
    /// The things that definitions own, refer to and share.
    sharing: Ownership,
    /// The workflows whose references a change of definitions may have decided otherwise.
    concerned: BTreeSet<WorkflowId>,
    /// The references of all workflows that other projects don't share.
    unshared: BTreeSet<MissingConsent>,
    /// The workflows whose rows the turn has changed.
    changed: BTreeSet<WorkflowId>,
    /// Earlier rows of workflows with several definitions in the turn: the log names each version.
    superseded: Vec<WorkflowRow>,
    /// The runs whose reports were set aside, of all frozen workflows. A run may belong to another workflow than the
    /// frozen one.
    unheard: BTreeSet<RunId>,
    breaches: Breaches,
}

/// The effect of a changed definition on a workflow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Redefinition {
    /// The new version.
    pub(crate) version: u32,
    /// Whether it is an event schedule that starts anew, so that its pending slots are aborted.
    pub(crate) begins_anew: bool,
}

/// The effect of a new or changed schedule on a workflow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewSchedule {
    /// The range that the earlier schedule planned, from its first to its last time; it does not count for the new
    /// schedule.
    pub(crate) replanned: Option<Range>,
}

impl Workflows {
    /// Restores a row from the store.
    pub(crate) fn restore(&mut self, row: WorkflowRow) {
        self.unheard.extend(row.moments.frozen.iter().flat_map(|freeze| &freeze.set_aside).cloned());
        self.concerned.extend(self.sharing.put(&row.definition, row.present));
        self.all.insert(row.id.clone(), WorkflowState::new(row));
    }

    /// A workflow that exists or once existed.
    pub(crate) fn get(&self, id: &WorkflowId) -> Option<&WorkflowState> {
        self.all.get(id)
    }

    /// The times of the slots of a workflow that is defined now; none where it has no times.
    pub(crate) fn times(&self, id: &WorkflowId) -> Option<SlotTimes> {
        let one = self.present(id).ok()?;
        let schedule = one.schedule().ok()?;
        Some(SlotTimes::new(schedule, one.bounds(schedule)))
    }

    /// The present workflows that wait for periods of one of these.
    pub(crate) fn covering(&self, upstream: &BTreeSet<WorkflowId>) -> Vec<WorkflowId> {
        let covers = |one: &WorkflowState| {
            let covered = one.definition().trigger.covered();
            covered.iter().any(|covered| upstream.contains(covered.workflow))
        };
        let all = self.all.iter().filter(|(_, one)| one.is_present() && covers(one));
        all.map(|(id, _)| id.clone()).collect()
    }

    /// A workflow that must be known. If it is not, that is a breach.
    pub(crate) fn known(&mut self, id: &WorkflowId) -> Option<&WorkflowState> {
        let one = self.all.get(id);
        if one.is_none() {
            self.breaches.report(Invariant::WorkflowIsKnown, id);
        }
        one
    }

    /// The same, to be changed. Marks its row as changed.
    fn change(&mut self, id: &WorkflowId) -> Option<&mut WorkflowState> {
        let one = self.all.get_mut(id);
        match one {
            Some(_) if self.changed.contains(id) => {}
            Some(_) => drop(self.changed.insert(id.clone())),
            None => self.breaches.report(Invariant::WorkflowIsKnown, id),
        }
        one
    }

    /// Marks the row of a workflow as changed, because of a part that another organ keeps.
    pub(crate) fn touch(&mut self, id: &WorkflowId) {
        self.change(id);
    }

    /// A workflow that is defined now.
    pub(crate) fn present(&self, id: &WorkflowId) -> Result<&WorkflowState, Refusal> {
        self.get(id).filter(|one| one.is_present()).ok_or_else(|| Refusal::NoWorkflow(id.clone()))
    }

    /// All workflows, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WorkflowId, &WorkflowState)> {
        self.all.iter()
    }

    /// The names of all workflows.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &WorkflowId> {
        self.all.keys()
    }

    /// Refuses a slot that its workflow can't have.
    pub(crate) fn check_slot(&self, slot: &SlotRef, exists: impl FnOnce() -> bool) -> Result<(), Refusal> {
        let one = self.get(&slot.workflow).ok_or_else(|| Refusal::NoWorkflow(slot.workflow.clone()))?;
        one.check_slot(slot, exists)
    }

    /// Whether a slot is left alone because it is before the start of its workflow or beyond the end.
    pub(crate) fn is_out_of_bounds(&self, slot: &SlotRef, slots: &SlotTable) -> bool {
        let live = slots.get(slot);
        let live = live.as_ref().map(|live| &live.slot);
        self.get(&slot.workflow).is_some_and(|one| one.out_of_bounds(&slot.key, live).is_some())
    }

    /// The rows that the turn has changed, in their current state.
    pub(crate) fn changed(&self) -> impl Iterator<Item = WorkflowRow> {
        self.changed.iter().filter_map(|id| Some(self.get(id)?.row.clone()))
    }

    /// The earlier rows of workflows with several definitions in the turn.
    pub(crate) fn superseded(&self) -> impl Iterator<Item = WorkflowRow> {
        self.superseded.iter().cloned()
    }

    /// Ends a turn.
    pub(crate) fn settle(&mut self) {
        self.changed.clear();
        self.superseded.clear();
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.breaches.take()
    }
}

/// Definitions of workflows.
impl Workflows {
    /// Takes all definitions of a provenance. Returns whether it is the first to give any since the start.
    pub(crate) fn hear(&mut self, provenance: Provenance, definitions: Vec<Arc<Workflow>>) -> bool {
        let is_first = self.definitions.is_empty();
        if is_first && provenance != Provenance::Code {
            // Programs that work for a server give theirs once, and may be away.
            self.definitions.take(Provenance::Code, self.of_programs());
        }
        self.definitions.take(provenance, definitions);
        is_first
    }

    /// The stored definitions of programs that are in force.
    pub(crate) fn of_programs(&self) -> Vec<Arc<Workflow>> {
        let of_program = |one: &&WorkflowState| {
            one.is_present() && !one.is_event_schedule() && one.definition().provenance() == Provenance::Code
        };
        self.all.values().filter(of_program).map(|one| one.definition().clone()).collect()
    }

    /// Refuses the definitions of a program's project where the project, or a name, belongs to others.
    pub(crate) fn check_deployed(&self, project: &str, definitions: &[Arc<Workflow>]) -> Result<(), Refusal> {
        let present = || self.all.values().filter(|one| one.is_present()).map(WorkflowState::definition);
        let mut own = present().filter(|one| one.project == project);
        if let Some(other) = own.find(|one| one.provenance() == Provenance::File) {
            let (project, file) = (project.to_owned(), other.source.file.clone());
            return Err(Refusal::ProjectOfFile { project, file });
        }
        for definition in definitions {
            let holder = self.get(&definition.id).filter(|one| one.is_present()).map(WorkflowState::definition);
            let is_own = |one: &&Arc<Workflow>| one.project == project && one.provenance() == Provenance::Code;
            if let Some(holder) = holder.filter(|one| !is_own(one)) {
                let (workflow, project) = (definition.id.clone(), holder.project.clone());
                return Err(Refusal::NameOfProject { workflow, project });
            }
        }
        Ok(())
    }

    /// Whether any definitions have been given.
    pub(crate) fn are_given(&self) -> bool {
        !self.definitions.is_empty()
    }

    /// Whether there is a given definition of this name that is not an event schedule.
    pub(crate) fn are_given_as(&self, id: &WorkflowId) -> bool {
        self.definitions.names(id)
    }

    /// The given definitions that are not in force.
    pub(crate) fn taken_names(&self) -> &BTreeSet<TakenName> {
        self.definitions.taken()
    }

    /// The workflows that are about to be removed, with their projects.
    pub(crate) fn gone_with(&self, all: &DefinitionSet) -> Vec<(WorkflowId, String)> {
        let gone = self.all.iter().filter(|(id, one)| one.is_present() && !all.contains_key(*id) && !self.stands(one));
        gone.map(|(id, one)| (id.clone(), one.row.definition.project.clone())).collect()
    }

    /// Whether the stored definition of a workflow is still in force, because its provenance has given nothing yet.
    fn stands(&self, one: &WorkflowState) -> bool {
        !one.is_event_schedule() && !self.definitions.has_said(one.row.definition.provenance())
    }

    /// Sets the definition of a workflow. None if nothing has changed.
    pub(crate) fn define(
        &mut self,
        id: &WorkflowId,
        definition: &Arc<Workflow>,
        now: Timestamp,
    ) -> Option<Redefinition> {
        let Some(one) = self.all.get_mut(id) else { return Some(self.add(id, definition, now)) };
        let row = &mut one.row;
        let definition = &read_as_before(definition, &row.definition);
        if row.present && Arc::ptr_eq(&row.definition, definition) {
            return None;
        }
        let same = row.definition == *definition;
        let is_new = !row.present;
        let differs = is_new || differ(&row.definition, definition);
        if !same {
            if self.changed.contains(id) {
                self.superseded.push(row.clone());
            }
            row.version += 1;
        }
        row.definition = definition.clone();
        if same && row.present {
            return None;
        }
        row.present = true;
        self.concerned.extend(self.sharing.put(definition, true));
        keep_off(row);
        let begins_anew = differs && one.begin_anew(is_new, now);
        let version = one.row.version;
        self.changed.insert(id.clone());
        Some(Redefinition { version, begins_anew })
    }

    fn add(&mut self, id: &WorkflowId, definition: &Arc<Workflow>, now: Timestamp) -> Redefinition {
        let row = WorkflowRow {
            id: id.clone(),
            definition: definition.clone(),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned: PlanState::default(),
            moments: Moments::default(),
        };
        self.concerned.extend(self.sharing.put(definition, true));
        let mut one = WorkflowState::new(row);
        let begins_anew = one.begin_anew(true, now);
        self.all.insert(id.clone(), one);
        self.changed.insert(id.clone());
        Redefinition { version: 1, begins_anew }
    }

    /// Removes the definition of a workflow.
    pub(crate) fn remove(&mut self, id: &WorkflowId) {
        if let Some(one) = self.change(id) {
            one.row.present = false;
            one.jobs = None;
            let definition = one.row.definition.clone();
            self.concerned.extend(self.sharing.put(&definition, false));
        }
    }

    /// Whether the definitions of job ids have changed.
    pub(crate) fn are_keyed_otherwise(&self, all: &DefinitionSet) -> bool {
        let differs = |(id, new): (&WorkflowId, &Arc<Workflow>)| {
            let one = self.get(id).filter(|one| one.is_present());
            let known = one.and_then(|one| one.jobs.as_ref().and(one.row.definition.keys.jobs()));
            new.keys.jobs() != known
        };
        all.iter().any(differs) || self.all.iter().any(|(id, one)| one.jobs.is_some() && !all.contains_key(id))
    }

    /// Notes whether the jobs of a workflow are sound. Returns whether that has changed.
    pub(crate) fn rekey(&mut self, id: &WorkflowId, fault: Option<String>) -> bool {
        let Some(one) = self.all.get_mut(id) else {
            self.breaches.report(Invariant::WorkflowIsKnown, id);
            return false;
        };
        let jobs = one.row.definition.keys.jobs().map(|_| fault.map_or(Ok(()), Err));
        let changed = one.jobs != jobs;
        one.jobs = jobs;
        changed
    }

    /// Sets the schedule of a workflow. None if nothing has changed.
    pub(crate) fn reschedule(
        &mut self,
        id: &WorkflowId,
        schedule: Result<CronSchedule, NoTimes>,
        now: Timestamp,
    ) -> Option<NewSchedule> {
        let Some(one) = self.all.get_mut(id) else {
            self.breaches.report(Invariant::WorkflowIsKnown, id);
            return None;
        };
        // A schedule that opens jobs is not a schedule of slots.
        let (schedule, feed) = match one.jobs {
            Some(_) => (Err(NoTimes::Jobs), schedule.ok()),
            None => (schedule, None),
        };
        let schedule = schedule.map_or_else(ScheduleState::Faulty, ScheduleState::Ready);
        if one.schedule == schedule && one.feed == feed {
            return None;
        }
        one.schedule = schedule;
        one.feed = feed;
        // Without times nothing is planned.
        let Some(schedule) = one.ticks() else { return Some(NewSchedule { replanned: None }) };
        // The first slot that is due from now on counts.
        let since = schedule.due_in(Range::new(now, Timestamp::MAX)).start;
        let words = serde_json::to_string(schedule).unwrap_or_default();
        if one.row.planned.schedule == words {
            return Some(NewSchedule { replanned: None });
        }
        let covered = std::mem::take(&mut one.row.planned.ranges);
        one.row.planned.schedule = words;
        if one.row.definition.passes_over_misfires() {
            one.row.planned.since = Some(since);
        }
        self.changed.insert(id.clone());
        Some(NewSchedule { replanned: hull(&covered) })
    }
}

/// References between projects.
impl Workflows {
    /// The things that definitions own, refer to and share.
    pub(crate) fn sharing(&self) -> &Ownership {
        &self.sharing
    }

    /// Takes out the workflows whose references have to be judged again.
    pub(crate) fn take_concerned(&mut self) -> BTreeSet<WorkflowId> {
        std::mem::take(&mut self.concerned)
    }

    /// Judges the references of a workflow. Returns whether a fence went up, moved or went down.
    pub(crate) fn judge_references(&mut self, id: &WorkflowId) -> bool {
        let Some(one) = self.all.get_mut(id) else { return false };
        let unshared = self.sharing.unshared(id);
        if one.unshared == unshared {
            return false;
        }
        self.unshared.retain(|known| known.workflow.as_ref() != Some(id));
        self.unshared.extend(unshared.iter().cloned());
        one.unshared = unshared;
        true
    }

    /// The references that other projects don't share.
    pub(crate) fn unshared(&self) -> &BTreeSet<MissingConsent> {
        &self.unshared
    }
}

/// Planning, as far as it changes rows.
impl Workflows {
    /// Has the schedule of a workflow open no slots before a moment.
    pub(crate) fn open_from(&mut self, id: &WorkflowId, since: Timestamp) {
        if let Some(one) = self.change(id) {
            one.row.planned.since = Some(since);
        }
    }
}

/// Requests of people and breaches, and their effect on workflows.
impl Workflows {
    /// Pauses or resumes a workflow. Returns whether that changed anything.
    pub(crate) fn set_paused(&mut self, id: &WorkflowId, paused: bool, now: Timestamp) -> Result<bool, Refusal> {
        let one = self.present(id)?;
        if one.is_event_schedule() {
            return Err(Refusal::NotPausable(id.clone()));
        }
        let changed = one.row.paused != paused;
        if let Some(one) = self.change(id).filter(|_| changed) {
            one.row.paused = paused;
            if !paused {
                one.row.moments.resumed = Some(now);
            }
        }
        Ok(changed)
    }

    /// Freezes a workflow. Returns whether it was not frozen before.
    pub(crate) fn freeze(&mut self, breach: &Breach, now: Timestamp) -> bool {
        if self.known(&breach.workflow).is_none_or(WorkflowState::is_frozen) {
            return false;
        }
        let freeze = Freeze { at: now, breach: breach.clone(), set_aside: BTreeSet::new() };
        self.change(&breach.workflow).is_some_and(|one| one.row.moments.frozen.replace(freeze).is_none())
    }

    /// Notes that an input was set aside because of a frozen workflow. If it is a report of a run, further reports of
    /// the run are ignored. Returns whether the workflow is frozen.
    pub(crate) fn set_aside(&mut self, id: &WorkflowId, run: Option<&RunId>) -> bool {
        if !self.get(id).is_some_and(WorkflowState::is_frozen) {
            return false;
        }
        if let Some(freeze) = self.change(id).and_then(|one| one.row.moments.frozen.as_mut()) {
            freeze.set_aside.extend(run.cloned());
        }
        self.unheard.extend(run.cloned());
        true
    }

    /// Ends a freeze, and returns it; none if there was none.
    pub(crate) fn thaw(&mut self, id: &WorkflowId, now: Timestamp) -> Option<Freeze> {
        self.get(id).filter(|one| one.is_frozen())?;
        let moments = &mut self.change(id)?.row.moments;
        moments.resumed = Some(now);
        let freeze = moments.frozen.take();
        let frozen = self.all.values().filter_map(|one| one.row.moments.frozen.as_ref());
        self.unheard = frozen.flat_map(|freeze| &freeze.set_aside).cloned().collect();
        freeze
    }

    /// Whether reports of a run are set aside.
    pub(crate) fn is_unheard(&self, run: &RunId) -> bool {
        self.unheard.contains(run)
    }

    /// Follows the pauses of a backfill.
    pub(crate) fn follow_pause(&mut self, backfill: &Backfill) {
        match self.all.get_mut(&backfill.workflow) {
            Some(one) => one.follow_pause(backfill),
            None => self.breaches.report(Invariant::WorkflowIsKnown, &backfill.workflow),
        }
    }

    /// Notes that all slots of a range exist or are in the backlog.
    pub(crate) fn cover(&mut self, id: &WorkflowId, range: Range) {
        if let Some(one) = self.change(id) {
            let planned = &mut one.row.planned;
            planned.ranges.insert(range);
            planned.until = planned.until.max(Some(range.end));
        }
    }

    /// Notes a successful run, if constraints of these members of its program may depend on it.
    pub(crate) fn note_last_run<'a>(
        &mut self,
        id: &WorkflowId,
        run: LastRun,
        mut members: impl Iterator<Item = &'a WorkflowId>,
    ) {
        let constraints = |one: &WorkflowState| one.row.definition.constraints.iter().any(|it| asks_for_runs(&it.gate));
        let is_asked_for = members.any(|member| self.get(member).is_some_and(constraints));
        let Some(one) = self.known(id) else { return };
        if is_asked_for || one.row.definition.keys.are_moments() {
            self.put_last_run(id, run);
        }
    }

    /// Notes that a slot gave outputs: from then on they are looked for.
    pub(crate) fn note_gave(&mut self, id: &WorkflowId, now: Timestamp) {
        if self.get(id).is_some_and(|one| !one.has_given())
            && let Some(one) = self.change(id)
        {
            one.row.moments.gave = Some(now);
        }
    }

    /// Leaves the last run of a workflow that changes its program with the earlier program.
    pub(crate) fn hand_over_last_run(&mut self, id: &WorkflowId, program: &WorkflowId) {
        // There may have been no success.
        if self.get(id).is_none_or(|one| one.last_run().is_none()) {
            return;
        }
        let Some(run) = self.change(id).and_then(|one| one.row.moments.last_run.take()) else { return };
        // The program may never have existed.
        if program != id && self.all.contains_key(program) {
            self.put_last_run(program, run);
        }
    }

    fn put_last_run(&mut self, id: &WorkflowId, run: LastRun) {
        if let Some(one) = self.change(id) {
            one.row.moments.last_run = one.row.moments.last_run.max(Some(run));
        }
    }
}

fn asks_for_runs(gate: &Gate) -> bool {
    matches!(gate, Gate::SinceLastRun(_))
}

/// The reason why a workflow has no times.
pub(crate) fn no_times(workflow: &Workflow) -> NoTimes {
    if workflow.keys.are_moments() { NoTimes::Moments } else { NoTimes::NoSchedule }
}

/// The range from the first to the last of some ranges; none if there are none.
fn hull(ranges: &RangeSet) -> Option<Range> {
    let first = ranges.ranges().first()?;
    Some(Range::new(first.start, ranges.end()?))
}
