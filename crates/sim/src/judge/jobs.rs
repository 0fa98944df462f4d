//! Judges of jobs: run after every turn, on its events and the definitions that were in force then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::Input;
use kelos_model::event::{Event, WorkflowEvent};
use kelos_model::time::Schedule;
use kelos_model::trigger::{Evaluation, Waker};
use kelos_model::{Answer, EventRecord, Slot, SlotEvent, SlotKey, SlotRef, SlotState, Trigger, WorkflowId};
use kelos_store::{EventFilter, MemoryDisk, MemoryStore, PageRequest, Queries, StoredState};

use crate::apps::{Apps, Validity, is_due, is_met, slots_of, validity};
use crate::workload::{GroupMeanings, Workload};
use crate::world::World;

/// The answer for a waiting job that is known before its trigger is evaluated: met if it is not valid, not yet if it waits for its
/// parents, or for a function that decides whether it is valid.
#[must_use]
pub fn has_answer(
    apps: &Apps,
    id: &SlotRef,
    world: &World,
    moments: [Timestamp; 2],
    state: &dyn Fn(&SlotRef) -> Option<SlotState>,
) -> Option<bool> {
    match moments.map(|at| validity(apps, id, world, at)) {
        [Validity::Yes, Validity::Yes] => (!is_met(&apps.parents(id)?, state)).then_some(false),
        [Validity::No, Validity::No] => Some(true),
        _ => Some(false),
    }
}

/// Checks that a waiting slot has opened the jobs that its trigger depends on.
///
/// # Errors
/// The job that is not open.
pub fn has_opened(
    apps: &Apps,
    id: &SlotRef,
    looked: &Evaluation,
    state: &dyn Fn(&SlotRef) -> Option<SlotState>,
) -> Result<(), String> {
    if looked.explanation.answer != Answer::NotYet {
        return Ok(());
    }
    for waker in &looked.wakers {
        if let Waker::Slot(job) = waker
            && state(job).is_none()
            && apps.parents(job).is_some()
        {
            return Err(format!("{id} waits for {job}, which was not opened"));
        }
    }
    Ok(())
}

/// Checks that every job of a feed's times exists, within the covered times.
///
/// # Errors
/// The job that does not exist.
pub fn is_fed(apps: &Apps, reader: &dyn Queries, slots: &BTreeMap<SlotRef, Slot>) -> Result<(), String> {
    for (id, workflow) in &apps.sound {
        let Some(jobs) = workflow.keys.jobs() else { continue };
        let Some(Schedule::Cron(cron)) = jobs.feed.as_ref().map(|feed| &feed.schedule) else { continue };
        let Some(row) = reader.workflow(id).map_err(|error| error.to_string())? else { continue };
        for range in row.planned.ranges.ranges() {
            let fed = cron.times(range.start, range.end).flat_map(|at| jobs.fed_at(at));
            let lost = fed.map(|job| SlotRef::job(id.clone(), job)).find(|job| !slots.contains_key(job));
            if let Some(job) = lost {
                return Err(format!("{job} is fed in {range:?} and does not exist"));
            }
        }
    }
    Ok(())
}

/// A judge that follows the log, turn by turn.
#[derive(Default)]
pub struct Watch {
    /// The log; none if a seed has no jobs.
    reader: Option<Arc<dyn Queries>>,
    seq: u64,
    meant: GroupMeanings,
    /// The current apps.
    pub apps: Apps,
    /// The log position of the last change of definitions, pauses or freezes.
    changed: u64,
    paused: BTreeSet<WorkflowId>,
    frozen: BTreeSet<WorkflowId>,
    slots: BTreeMap<SlotRef, SlotRecord>,
    /// Whether the turn concerned jobs.
    news: bool,
    /// Whether the judgement of waiting jobs was postponed since something happened.
    put_off: bool,
    succeeded: BTreeSet<SlotRef>,
}

/// The state of a slot.
struct SlotRecord {
    state: SlotState,
    /// The log position of its latest event.
    last: u64,
    /// Whether that event was an evaluation that left it waiting.
    looked: bool,
}

impl Watch {
    /// A judge of a disk, from the beginning of its log.
    #[must_use]
    pub fn new(workload: &Workload, disk: &MemoryDisk) -> Watch {
        let reader = (!workload.apps.is_empty()).then(|| MemoryStore::on(disk).reader());
        Watch { reader, meant: workload.meant.clone(), ..Watch::default() }
    }

    /// Notes the inputs of the scheduler.
    pub fn hear(&mut self, inputs: &[Input]) {
        if self.reader.is_none() {
            return;
        }
        for input in inputs {
            if let Input::Definitions { all, .. } = input {
                self.apps = Apps::of(all, &self.meant);
                self.changed = self.seq;
                self.news = true;
            }
        }
    }

    /// Checks the results of a turn. Waiting jobs are judged once the scheduler has nothing more to do at the moment.
    ///
    /// # Errors
    /// The violation.
    pub fn after_turn(&mut self, has_more: bool) -> Result<(), String> {
        let Some(reader) = &self.reader else { return Ok(()) };
        let log = reader
            .events(&EventFilter::after(self.seq), PageRequest::oldest(crate::ALL))
            .map_err(|error| error.to_string())?
            .rows;
        for record in &log {
            self.follow(record)?;
        }
        if std::mem::take(&mut self.news) && !log.is_empty() {
            self.all_pushed()?;
            self.put_off = true;
        }
        if self.put_off && !has_more {
            self.all_pulled(false)?;
            self.put_off = false;
        }
        self.succeeded.clear();
        Ok(())
    }

    fn state(&self, slot: &SlotRef) -> Option<SlotState> {
        self.slots.get(slot).map(|known| known.state)
    }

    fn follow(&mut self, record: &EventRecord) -> Result<(), String> {
        self.seq = record.seq;
        match &record.event {
            Event::Slot { slot, what } => self.follow_slot(slot, what),
            Event::Workflow { workflow, what } => {
                match what {
                    WorkflowEvent::Paused { .. } => drop(self.paused.insert(workflow.clone())),
                    WorkflowEvent::Resumed { .. } => drop(self.paused.remove(workflow)),
                    WorkflowEvent::Frozen { .. } => drop(self.frozen.insert(workflow.clone())),
                    WorkflowEvent::Thawed { .. } => drop(self.frozen.remove(workflow)),
                    WorkflowEvent::Defined { .. } | WorkflowEvent::Removed { .. } => {}
                    _ => return Ok(()),
                }
                self.changed = record.seq;
                self.news = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn follow_slot(&mut self, slot: &SlotRef, what: &SlotEvent) -> Result<(), String> {
        if slot.key.step().is_some() {
            return Ok(());
        }
        let is_job = slot.key.job().is_some();
        self.news |= is_job;
        match what {
            SlotEvent::TriggerMet { .. } if is_job => self.judge_met(slot)?,
            SlotEvent::Looked { .. } if is_job => self.judge_look(slot)?,
            _ => {}
        }
        let state = match (what, self.state(slot)) {
            (SlotEvent::Imported { state, .. }, _) => *state,
            (SlotEvent::Planned { .. }, None) => SlotState::Waiting,
            (_, Some(before)) => before.after(what).ok_or_else(|| format!("{what:?} of {slot}, which is {before}"))?,
            (_, None) => return Err(format!("{what:?} of {slot}, which is not there")),
        };
        // If a person decides it, functions are called only then.
        let is_told =
            matches!(what, SlotEvent::MarkedSucceeded { .. }) && self.apps.sound.keys().any(|id| self.apps.asks(id));
        if is_job && state == SlotState::Succeeded && !is_told {
            self.succeeded.insert(slot.clone());
        }
        let looked = matches!(what, SlotEvent::Looked { .. });
        self.slots.insert(slot.clone(), SlotRecord { state, last: self.seq, looked });
        Ok(())
    }

    /// Checks that a job starts only if the parents of one of its groups have succeeded by now.
    fn judge_met(&self, slot: &SlotRef) -> Result<(), String> {
        let groups = self.apps.parents(slot).ok_or_else(|| format!("{slot} goes, and is no job of any app"))?;
        if is_met(&groups, |parent| self.state(parent)) {
            Ok(())
        } else {
            Err(format!("{slot} goes before {groups:?}"))
        }
    }

    /// Checks that a waiting job is evaluated again only if one of its dependencies changed.
    fn judge_look(&self, slot: &SlotRef) -> Result<(), String> {
        let Some(known) = self.slots.get(slot).filter(|known| known.looked && known.last > self.changed) else {
            return Ok(());
        };
        let Some(workflow) = self.apps.sound.get(&slot.workflow) else { return Ok(()) };
        let asks = workflow.keys.jobs().is_some_and(|jobs| jobs.valid.is_some()) || self.apps.asks(&slot.workflow);
        if workflow.trigger != Trigger::Always || asks {
            return Ok(());
        }
        let groups = self.apps.parents(slot).unwrap_or_default();
        let moved = |parent: SlotRef| self.slots.get(&parent).is_some_and(|parent| parent.last > known.last);
        if groups.iter().flat_map(slots_of).any(moved) {
            return Ok(());
        }
        Err(format!("{slot} says once more that it waits, and nothing happened since event {}", known.last))
    }

    /// Checks that every job that became possible is open.
    fn all_pushed(&self) -> Result<(), String> {
        let mut succeeded = self.succeeded.iter().filter(|slot| self.state(slot) == Some(SlotState::Succeeded));
        succeeded.try_for_each(|parent| self.is_pushed(parent))
    }

    /// Checks that waiting jobs have opened their dependencies, and none waits for jobs that are done.
    fn all_pulled(&self, at_rest: bool) -> Result<(), String> {
        let rests = |id: &WorkflowId| self.paused.contains(id) || self.frozen.contains(id);
        let waiting = self.slots.iter().filter(|(slot, known)| {
            known.state == SlotState::Waiting && slot.key.job().is_some() && !rests(&slot.workflow)
        });
        let knows = |slot: &&SlotRef| at_rest || !self.apps.asks(&slot.workflow);
        waiting.map(|(slot, _)| slot).filter(knows).try_for_each(|slot| self.is_pulled(slot))
    }

    /// The same once no question is open any more.
    ///
    /// # Errors
    /// The violation.
    pub fn at_rest(&self) -> Result<(), String> {
        self.all_pushed()?;
        self.all_pulled(true)
    }

    fn is_pushed(&self, parent: &SlotRef) -> Result<(), String> {
        let SlotKey::Job(id) = &parent.key else { return Ok(()) };
        for (job, _) in self.apps.graph.children(&parent.workflow, id).unwrap_or_default().jobs {
            let child = SlotRef::job(job.workflow, job.id);
            let groups = self.apps.parents(&child).unwrap_or_default();
            if self.state(&child).is_none() && is_due(&groups, |slot| self.state(slot)) {
                return Err(format!("{parent} succeeded, and {child} was not opened"));
            }
        }
        Ok(())
    }

    fn is_pulled(&self, slot: &SlotRef) -> Result<(), String> {
        let Some(workflow) = self.apps.sound.get(&slot.workflow) else { return Ok(()) };
        let Some(groups) = self.apps.parents(slot) else { return Ok(()) };
        if workflow.keys.jobs().is_some_and(|jobs| jobs.valid.is_some()) {
            return Ok(());
        }
        if is_met(&groups, |parent| self.state(parent)) {
            let free = workflow.trigger == Trigger::Always;
            return if free { Err(format!("{slot} waits, and its parents have succeeded")) } else { Ok(()) };
        }
        let is_dead = |parent: SlotRef| {
            self.state(&parent).is_some_and(|state| state.is_final() && state != SlotState::Succeeded)
        };
        let way = groups.iter().find(|group| group.unwritable.is_empty() && !slots_of(group).any(is_dead));
        match way.and_then(|way| slots_of(way).find(|parent| self.state(parent).is_none())) {
            Some(parent) => Err(format!("{slot} waits for {parent}, which was not opened")),
            None => Ok(()),
        }
    }
}
