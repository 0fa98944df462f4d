//! The state of one workflow in memory, without its slots. Only [`Workflows`](super::Workflows) changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::dormant::{Dormant, NoTimes};
use kelos_model::ranges::Range;
use kelos_model::references::MissingConsent;
use kelos_model::time::schedule::CronSchedule;
use kelos_model::workflow::{EventKeys, LastRun, PlanState, WorkflowRow};
use kelos_model::{Actor, BackfillId, Slot, SlotKey, SlotRef, SlotState, Workflow, WorkflowId};

use crate::Refusal;

/// A workflow: its row, and the state derived from it.
pub(crate) struct WorkflowState {
    pub(super) row: WorkflowRow,
    /// Its schedule, resolved through the workflows that it depends on.
    pub(super) schedule: ScheduleState,
    /// Whether its jobs are sound together with those of other workflows, or the error; none if its slots are not jobs.
    pub(super) jobs: Option<Result<(), String>>,
    /// The schedule that opens its jobs.
    pub(super) feed: Option<CronSchedule>,
    /// Its paused backfills, and the actors of the pauses.
    pauses: BTreeMap<BackfillId, Actor>,
    /// When those of its backfills that were paused before were resumed.
    resumed: BTreeMap<BackfillId, Timestamp>,
    /// The key of the collecting slot of an event schedule, if there is one.
    pub(super) collecting: Option<SlotKey>,
    /// The references of its definition that other projects don't share: it lies dormant. None where projects are not kept apart.
    pub(super) unshared: Vec<MissingConsent>,
}

/// The schedule of a workflow, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScheduleState {
    /// No definitions have been given since the start.
    Unloaded,
    /// It has no times, for this reason.
    Faulty(NoTimes),
    /// It has the times of this schedule.
    Ready(CronSchedule),
}

impl ScheduleState {
    /// The schedule of its slots, or the reason why slots of times are dormant.
    fn ready(&self) -> Result<&CronSchedule, Dormant> {
        match self {
            ScheduleState::Unloaded => Err(Dormant::Unloaded),
            ScheduleState::Faulty(why) => Err(Dormant::NoTimes(why.clone())),
            ScheduleState::Ready(schedule) => Ok(schedule),
        }
    }
}

impl WorkflowState {
    pub(super) fn new(row: WorkflowRow) -> WorkflowState {
        WorkflowState {
            collecting: None,
            unshared: Vec::new(),
            row,
            schedule: ScheduleState::Unloaded,
            jobs: None,
            feed: None,
            pauses: BTreeMap::new(),
            resumed: BTreeMap::new(),
        }
    }

    /// Its name.
    pub(crate) fn id(&self) -> &WorkflowId {
        &self.row.id
    }

    /// Its latest definition, even if it was removed.
    pub(crate) fn definition(&self) -> &Arc<Workflow> {
        &self.row.definition
    }

    /// The number of its latest definition.
    pub(crate) fn version(&self) -> u32 {
        self.row.version
    }

    /// Its settings as an event schedule; none if it is another kind of workflow.
    pub(crate) fn events(&self) -> Option<&EventKeys> {
        self.row.definition.keys.events()
    }

    /// Whether it is an event schedule.
    pub(crate) fn is_event_schedule(&self) -> bool {
        self.events().is_some()
    }

    /// Whether it is defined now.
    pub(crate) fn is_present(&self) -> bool {
        self.row.present
    }

    /// Whether it is enabled. Only an event schedule can be disabled.
    pub(crate) fn is_enabled(&self) -> bool {
        self.row.enabled
    }

    /// Whether it is paused, frozen or behind a fence.
    pub(crate) fn rests(&self) -> bool {
        self.row.paused || self.is_shut()
    }

    /// Whether it is frozen, or behind a fence: facts don't reach it.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_frozen() || !self.unshared.is_empty()
    }

    /// Whether its slots are planned and run: it is defined, and neither paused nor frozen.
    pub(crate) fn is_open(&self) -> bool {
        self.row.present && !self.rests()
    }

    /// The schedule of its slots, or the reason why slots of times are dormant.
    pub(crate) fn schedule(&self) -> Result<&CronSchedule, Dormant> {
        self.schedule.ready()
    }

    /// Whether a schedule opens its jobs.
    pub(crate) fn is_fed(&self) -> bool {
        self.feed.is_some()
    }

    /// Its planned ranges and backlog.
    pub(crate) fn planned(&self) -> &PlanState {
        &self.row.planned
    }

    /// The moment before which its schedule opens no slots, whatever the planning window.
    pub(crate) fn opens_from(&self) -> Timestamp {
        self.row.opens_from()
    }

    /// Whether it may have slots at or after a moment that is not covered, because some were planned there.
    pub(crate) fn may_have_slots_from(&self, at: Timestamp) -> bool {
        self.row.planned.until.is_some_and(|until| until > at)
    }

    /// The slots of some times, or the jobs that are opened at them.
    pub(crate) fn slots_at(&self, times: &[Timestamp]) -> BTreeSet<SlotRef> {
        match self.row.definition.keys.jobs() {
            Some(jobs) => {
                let ids = times.iter().flat_map(|time| jobs.fed_at(*time));
                ids.map(|job| SlotRef::job(self.row.id.clone(), job)).collect()
            }
            None => times.iter().map(|time| SlotRef::at(self.row.id.clone(), *time)).collect(),
        }
    }

    /// Its latest successful run by dispatch, if constraints may depend on it.
    pub(crate) fn last_run(&self) -> Option<LastRun> {
        self.row.moments.last_run
    }

    /// Whether any slot of it ever gave outputs.
    pub(crate) fn has_given(&self) -> bool {
        self.row.moments.gave.is_some()
    }

    /// Follows the pauses of one of its backfills.
    pub(super) fn follow_pause(&mut self, row: &Backfill) {
        match &row.paused {
            Some(pause) => drop(self.pauses.insert(row.id.clone(), pause.by.clone())),
            None => drop(self.pauses.remove(&row.id)),
        }
        match row.resumed_at.filter(|_| row.cancelled_at.is_none()) {
            Some(at) => drop(self.resumed.insert(row.id.clone(), at)),
            None => drop(self.resumed.remove(&row.id)),
        }
    }

    /// When it, or the backfill of a slot, was last resumed.
    pub(crate) fn resumed(&self, slot: &Slot) -> Option<Timestamp> {
        let backfill = slot.backfill.as_ref().and_then(|backfill| self.resumed.get(backfill));
        self.row.moments.resumed.max(backfill.copied())
    }

    /// Whether it, or the backfill of a slot without a run, is paused.
    pub(crate) fn is_paused(&self, slot: &Slot) -> bool {
        self.rests() || self.pause_of(slot).is_some()
    }

    /// The moment for which a slot waits because its time has not come: it was planned while the clock was ahead. One that was asked for
    /// does not wait.
    pub(crate) fn comes_at(&self, key: &SlotKey, slot: &Slot, now: Timestamp) -> Option<Timestamp> {
        let SlotKey::Time(at) = key else { return None };
        if slot.requested {
            return None;
        }
        self.definition().keys.due(key).or(Some(*at)).filter(|due| *due > now)
    }

    /// The reason why a slot is dormant; none if it is not.
    pub(crate) fn dormant(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<Dormant> {
        if self.is_frozen() {
            return Some(Dormant::Frozen);
        }
        if self.row.paused {
            return Some(Dormant::Paused);
        }
        if key.step().is_some() {
            // It follows the definition with which its run began, whatever becomes of the workflow.
            return None;
        }
        if !self.row.present {
            return Some(Dormant::Gone);
        }
        if let Some(unshared) = self.unshared.first() {
            return Some(Dormant::MissingConsent { what: unshared.to_string(), line: unshared.line() });
        }
        if let Some((backfill, by)) = slot.and_then(|slot| self.pause_of(slot)) {
            return Some(Dormant::BackfillPaused { backfill: backfill.clone(), by: by.clone() });
        }
        match key {
            SlotKey::Time(at) => match self.schedule.ready() {
                Err(why) => Some(why),
                Ok(schedule) if schedule.contains(*at) => self.out_of_bounds(key, slot),
                Ok(_) => Some(Dormant::NotInSchedule),
            },
            SlotKey::Job(id) => self.no_job(id),
            SlotKey::Moment(_) => self.no_moment(slot),
            SlotKey::Named(_) => self.not_started(slot),
            SlotKey::Step(_) => None,
        }
    }

    /// The reason why a slot named by a moment is dormant: beside a schedule only those that a person started go on.
    fn no_moment(&self, slot: Option<&Slot>) -> Option<Dormant> {
        let keys = &self.row.definition.keys;
        let collected = slot.and_then(|slot| slot.collected.as_ref());
        let was_started = keys.schedule().is_some() && collected.is_some_and(|collected| collected.asked.is_some());
        (!keys.are_moments() && !was_started).then_some(Dormant::NoMoments)
    }

    /// The reason why a slot named by a person is dormant: a signal may come for it before somebody starts it.
    fn not_started(&self, slot: Option<&Slot>) -> Option<Dormant> {
        let collected = slot.and_then(|slot| slot.collected.as_ref());
        let was_started = collected.is_some_and(|collected| collected.asked.is_some());
        (!was_started).then_some(Dormant::NotStarted)
    }

    /// The reason why a slot is left alone that is before its start or beyond its end and was not requested.
    pub(crate) fn out_of_bounds(&self, key: &SlotKey, slot: Option<&Slot>) -> Option<Dormant> {
        self.row.definition.out_of_bounds(key, slot)
    }

    /// The range of the times of its schedule between its start and its end.
    pub(crate) fn bounds(&self, schedule: &CronSchedule) -> Range {
        self.row.definition.bounds(schedule)
    }

    /// Whether one of its invariants broke, and it was not resumed since.
    pub(crate) fn is_frozen(&self) -> bool {
        self.row.moments.frozen.is_some()
    }

    /// The schedule that is planned: that of its slots, or the one that opens its jobs.
    pub(crate) fn ticks(&self) -> Option<&CronSchedule> {
        self.feed.as_ref().or(self.schedule.ready().ok())
    }

    /// The reason why a text is not a job id of this workflow; none if it is one.
    pub(crate) fn no_job(&self, id: &str) -> Option<Dormant> {
        match (&self.jobs, self.row.definition.keys.jobs()) {
            (Some(Ok(())), Some(jobs)) => match jobs.normal(id) {
                Ok(normal) if *normal == *id => None,
                Ok(now) => Some(Dormant::Renamed { now }),
                Err(error) => Some(Dormant::NoJobId(error)),
            },
            (Some(Err(why)), _) => Some(Dormant::FaultyJobs { why: why.clone() }),
            (None, Some(_)) => Some(Dormant::Unloaded),
            (_, None) => Some(Dormant::NotKeyed),
        }
    }

    /// Refuses a slot that it can't have, because it was removed or has no such time or job id. Slots named by a moment
    /// have to exist.
    pub(crate) fn check_slot(&self, slot: &SlotRef, exists: impl FnOnce() -> bool) -> Result<(), Refusal> {
        if !self.row.present {
            return Err(Refusal::NoWorkflow(slot.workflow.clone()));
        }
        let keys = &self.row.definition.keys;
        if keys.are_moments() || slot.key.is_of_request() && keys.schedule().is_some() || slot.key.step().is_some() {
            return if exists() { Ok(()) } else { Err(Refusal::NeverCameToBe(slot.clone())) };
        }
        match (self.schedule.ready(), &slot.key) {
            (_, SlotKey::Job(id)) => match self.no_job(id) {
                None => Ok(()),
                Some(why) => Err(Refusal::NoJobId(slot.clone(), why.to_string())),
            },
            (Ok(schedule), SlotKey::Time(at)) if schedule.contains(*at) => Ok(()),
            (Ok(_), _) => Err(Refusal::NotInSchedule(slot.clone())),
            (Err(why), _) => Err(Refusal::NoSchedule(slot.workflow.clone(), why.to_string())),
        }
    }

    /// The paused backfill of a slot without a run, and the actor of the pause.
    fn pause_of(&self, slot: &Slot) -> Option<(&BackfillId, &Actor)> {
        let backfill = slot.backfill.as_ref().filter(|_| slot.state.is_idle())?;
        self.pauses.get_key_value(backfill)
    }

    /// Whether a backfill is paused.
    pub(crate) fn has_paused(&self, backfill: &BackfillId) -> bool {
        self.pauses.contains_key(backfill)
    }

    /// Whether a slot is in the queue. Slots of a paused backfill are not, so that skipping them costs nothing.
    pub(crate) fn is_in_line(&self, slot: &Slot) -> bool {
        slot.state == SlotState::Queued && self.pause_of(slot).is_none()
    }
}
