//! Backfills: opening the slots of a range, and the requests that follow: pause, resume, priority, rerun, cancel.

mod rows;
mod scope;

use kelos_model::backfill::{Backfill, BackfillMode, Pause};
use kelos_model::event::{BackfillEvent, Origin};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::VersionChoice;
use kelos_model::{Actor, Arguments, BackfillId, Invariant, Kill, SlotEvent, SlotRef, SlotState, Stretch, WorkflowId};

pub(crate) use rows::Backfills;
use scope::{Maker, Scope, ScopePlan};

use crate::mandate::Mandate;
use crate::past::PastOf;
use crate::permits::Position;
use crate::{BackfillOutcome, BackfillRequest, Core, Refusal};

/// The most slots that one backfill may touch one by one in a turn. Slots that stay in a backlog do not count.
pub const LARGEST_BACKFILL: usize = 1_000_000;

impl Core {
    pub(crate) fn backfill(&mut self, request: &BackfillRequest, by: Actor) -> Result<BackfillOutcome, Refusal> {
        let schedule = self.workflows.present(&request.workflow)?.schedule();
        if self.backfills.contains_key(&request.id) {
            return Err(Refusal::NameTaken(request.id.clone()));
        }
        let schedule = schedule.map_err(|why| Refusal::NoSchedule(request.workflow.clone(), why.to_string()))?.clone();
        self.settle_backlog(request);
        let workflow = self.workflows.present(&request.workflow)?;
        let scope = Scope::of(workflow, &self.slots, request.range, &schedule);
        let backlog = self.planner.backlog(&request.workflow, &self.workflows, &self.slots, &self.permits);
        // What a version made exists.
        // Slots that are given arguments are opened one by one.
        let keeps_backlog = request.arguments.is_empty()
            && (request.made_by.is_some() || backlog.is_some_and(|backlog| backlog.is_kept()));
        let listed = if keeps_backlog { scope.existing() } else { scope.times() };
        if listed > LARGEST_BACKFILL as u64 {
            return Err(Refusal::TooMany {
                slots: usize::try_from(listed).unwrap_or(usize::MAX),
                limit: LARGEST_BACKFILL,
            });
        }
        let sorted = match &request.made_by {
            None => ScopePlan::of(request, scope, workflow, &self.slots, &schedule),
            Some(version) => {
                let maker = self.maker(&request.workflow, version)?;
                ScopePlan::made_by(&maker, scope, workflow.id(), &self.slots, &schedule)
            }
        };
        let arguments = self.accepted_by_all(&request.workflow, &request.arguments)?;
        if !request.dry_run {
            self.open(request, &sorted, &schedule, by, &arguments);
        }
        Ok(sorted.outcome(&request.workflow, &schedule))
    }

    /// Brings the slots of a backfill into memory, unless there are so many that it will be refused.
    pub(crate) fn recall_backfill<E>(&mut self, request: &BackfillRequest, past: PastOf<'_, E>) -> Result<(), E> {
        // It will be refused.
        let Some(workflow) = self.workflows.get(&request.workflow) else { return Ok(()) };
        let Ok(schedule) = workflow.schedule() else { return Ok(()) };
        let existing = Scope::of(workflow, &self.slots, request.range, schedule).existing();
        if existing > LARGEST_BACKFILL as u64 {
            return Ok(());
        }
        if request.made_by.is_some() {
            self.turn.defined.look_up(&request.workflow, past)?;
        }
        self.slots.recall_range(&request.workflow, request.range, past)
    }

    /// A version of a workflow with the definitions that carry it.
    fn maker(&self, workflow: &WorkflowId, version: &VersionChoice) -> Result<Maker<'_>, Refusal> {
        let definitions = self.turn.defined.of(workflow);
        if definitions.iter().any(|one| version.is_of(&one.version)) {
            return Ok(Maker { definitions, version: version.clone() });
        }
        let (workflow, version) = (workflow.clone(), version.clone());
        let known = definitions.iter().map(|one| one.version.clone()).collect();
        Err(Refusal::NoVersion { workflow, version, known })
    }

    /// Makes slots of the times that an earlier schedule planned, so that the backfill treats each by itself.
    fn settle_backlog(&mut self, request: &BackfillRequest) {
        let backlog = self.planner.backlog(&request.workflow, &self.workflows, &self.slots, &self.permits);
        if backlog.and_then(|backlog| backlog.earlier_schedule()).is_none() {
            return;
        }
        let Some(earlier) = self.slots.schedule_of_backlog(&request.workflow).cloned() else {
            return self.breaches.report(Invariant::BacklogsHaveSchedules, &request.workflow);
        };
        let parts: Vec<Stretch> = self.slots.backlog(&request.workflow).within(request.range).collect();
        let times = parts.iter().flat_map(|part| earlier.times(part.range.start, part.range.end));
        times.for_each(|time| self.make_slot(&SlotRef::at(request.workflow.clone(), time)));
        // The remains of these stretches have no times.
        self.slots.backlog_mut(&request.workflow).take(request.range);
        self.workflows.touch(&request.workflow);
    }

    fn open(
        &mut self,
        request: &BackfillRequest,
        sorted: &ScopePlan,
        schedule: &CronSchedule,
        by: Actor,
        arguments: &Arguments,
    ) {
        let BackfillRequest { id, workflow, range, mode, priority, made_by, reason, .. } = request.clone();
        let mode = if made_by.is_some() { BackfillMode::All } else { mode };
        let slots = u32::try_from(sorted.touched(schedule)).unwrap_or(u32::MAX);
        let row = Backfill {
            id: id.clone(),
            workflow: workflow.clone(),
            range,
            mode,
            priority,
            by: by.clone(),
            created_at: self.now,
            cancelled_at: None,
            slots,
            reason: reason.clone(),
            paused: None,
            resumed_at: None,
        };
        match arguments.is_empty() {
            true => self.open_slots(&row, sorted, schedule),
            false => self.open_with(&row, sorted, schedule, arguments),
        }
        let what = BackfillEvent::Created { workflow, range, mode, priority, by, slots, reason, made_by };
        self.change_backfill(row, what);
    }

    fn open_slots(&mut self, row: &Backfill, sorted: &ScopePlan, schedule: &CronSchedule) {
        let (id, priority) = (&row.id, row.priority);
        let stretch = Stretch { range: row.range, since: self.now, backfill: Some(id.clone()), priority, killed: None };
        let missing = sorted.missing_count(schedule);
        let backlog = self.planner.backlog(&row.workflow, &self.workflows, &self.slots, &self.permits);
        if backlog.is_some_and(|backlog| backlog.takes(missing)) {
            self.put_in_backlog(&row.workflow, &stretch, &sorted.missing);
        } else {
            let backfill = Some(id.clone());
            let what = SlotEvent::Planned { origin: Origin::Backfill, priority, backfill, by: None, reason: None };
            for time in sorted.missing_times(schedule) {
                self.record(&SlotRef::at(row.workflow.clone(), time), what.clone());
            }
        }
        if sorted.is_whole {
            self.workflows.cover(&row.workflow, row.range);
        }
        for taken in sorted.reopened_later.iter().chain(&sorted.adopted_later) {
            self.slots.backlog_mut(&row.workflow).put(Stretch { range: taken.range, ..stretch.clone() });
            self.planner.draw_soon(&row.workflow);
        }
        for slot in &sorted.reopened {
            self.record(slot, reopened(row, row.by.clone(), Some(format!("backfill {id}"))));
        }
        for slot in &sorted.adopted {
            self.record(slot, SlotEvent::Prioritised { priority, backfill: id.clone(), by: None, reason: None });
        }
    }

    /// Opens slots one by one, and gives each the arguments: a backlog has room for none.
    fn open_with(&mut self, row: &Backfill, sorted: &ScopePlan, schedule: &CronSchedule, arguments: &Arguments) {
        let (priority, backfill) = (row.priority, row.id.clone());
        let at = |time| SlotRef::at(row.workflow.clone(), time);
        let times = |later: &[Stretch]| -> Vec<SlotRef> {
            later.iter().flat_map(|part| schedule.times(part.range.start, part.range.end)).map(at).collect()
        };
        let missing: Vec<SlotRef> = sorted.missing_times(schedule).map(at).collect();
        let reopened = [times(&sorted.reopened_later), sorted.reopened.clone()].concat();
        let adopted = [times(&sorted.adopted_later), sorted.adopted.clone()].concat();
        let planned = SlotEvent::Planned {
            origin: Origin::Backfill,
            priority,
            backfill: Some(backfill.clone()),
            by: None,
            reason: None,
        };
        let reopen = self::reopened(row, row.by.clone(), Some(format!("backfill {backfill}")));
        let adopt = SlotEvent::Prioritised { priority, backfill, by: None, reason: None };
        let missing = missing.into_iter().map(|slot| (planned.clone(), slot));
        let reopened = reopened.into_iter().map(|slot| (reopen.clone(), slot));
        let adopted = adopted.into_iter().map(|slot| (adopt.clone(), slot));
        for (what, slot) in missing.chain(reopened).chain(adopted) {
            self.record(&slot, what);
            self.set_arguments(&slot, &row.by, arguments);
        }
        if sorted.is_whole {
            self.workflows.cover(&row.workflow, row.range);
        }
    }

    /// The only place where the row of a backfill changes.
    fn change_backfill(&mut self, row: Backfill, what: BackfillEvent) {
        let id = row.id.clone();
        self.workflows.follow_pause(&row);
        self.backfills.change(row);
        self.turn.log_backfill(self.now, &id, what);
    }

    /// Pauses or resumes a backfill.
    pub(crate) fn set_backfill_paused(
        &mut self,
        id: &BackfillId,
        paused: bool,
        mandate: Mandate,
    ) -> Result<(), Refusal> {
        let mut row = self.backfills.standing(id)?;
        if row.paused.is_some() == paused {
            return Ok(());
        }
        let Mandate { by, reason } = mandate;
        let what = if paused {
            self.backfills.going_on(id, &self.slots)?;
            row.paused = Some(Pause { at: self.now, by: by.clone() });
            BackfillEvent::Paused { by, reason }
        } else {
            row.paused = None;
            row.resumed_at = Some(self.now);
            BackfillEvent::Resumed { by, reason }
        };
        self.change_backfill(row.clone(), what);
        self.wake_backfill(&row);
        Ok(())
    }

    /// Evaluates the slots of a backfill that have no run, after a pause or its end, and queues those that may run.
    fn wake_backfill(&mut self, row: &Backfill) {
        let idle = self.slots.names_of_backfill(row, SlotState::is_idle);
        let Some(workflow) = self.workflows.known(&row.workflow) else { return };
        for slot in &idle {
            let Some(live) = self.slots.get(slot) else {
                self.breaches.no_slot(slot);
                continue;
            };
            match workflow.is_in_line(&live.slot) {
                true => self.permits.enqueue(slot, &live.slot),
                false => self.permits.withdraw(slot, &Position::of(&live.slot, &slot.key)),
            }
        }
        idle.into_iter().for_each(|slot| self.wake(slot));
        self.permits.wake(&row.workflow);
        self.planner.draw_soon(&row.workflow);
    }

    pub(crate) fn prioritise_backfill(
        &mut self,
        id: &BackfillId,
        priority: i32,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = self.backfills.going_on(id, &self.slots)?;
        if row.priority == priority {
            return Ok(());
        }
        row.priority = priority;
        for slot in self.slots.names_of_backfill(&row, |state| !state.is_final()) {
            let (backfill, by, reason) = (id.clone(), Some(by.clone()), reason.clone());
            self.record(&slot, SlotEvent::Prioritised { priority, backfill, by, reason });
        }
        if self.slots.replan(&row, |stretch| stretch.priority = priority) {
            self.workflows.touch(&row.workflow);
        }
        self.planner.draw_soon(&row.workflow);
        self.change_backfill(row, BackfillEvent::Prioritised { priority, by, reason });
        Ok(())
    }

    /// All slots of its range are in memory for this turn.
    pub(crate) fn rerun_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<Vec<SlotRef>, Refusal> {
        let row = self.backfills.standing(id)?;
        let failed = |state| matches!(state, SlotState::Failed | SlotState::Expired);
        let mut failures = self.slots.names_of_backfill(&row, failed);
        failures.retain(|slot| self.workflows.check_slot(slot, || self.slots.has(slot)).is_ok());
        let why = reason.clone().or_else(|| Some(format!("what failed of backfill {id}")));
        failures.iter().for_each(|slot| self.record(slot, reopened(&row, by.clone(), why.clone())));
        if let Some(slots) = u32::try_from(failures.len()).ok().filter(|slots| *slots > 0) {
            self.change_backfill(row, BackfillEvent::Reopened { slots, by, reason });
        }
        Ok(failures)
    }

    pub(crate) fn cancel_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = match self.backfills.standing(id) {
            Err(Refusal::BackfillCancelled(_)) => return Ok(()),
            other => other?,
        };
        for slot in self.slots.names_of_backfill(&row, SlotState::is_idle) {
            let reason = Some(format!("backfill {id} was cancelled"));
            self.record(&slot, SlotEvent::Killed { by: by.clone(), reason });
        }
        let kill = Kill { at: self.now, by: by.clone(), reason: Some(format!("backfill {id} was cancelled")) };
        if self.slots.replan(&row, |stretch| stretch.killed = Some(kill.clone())) {
            self.workflows.touch(&row.workflow);
        }
        self.planner.draw_soon(&row.workflow);
        row.cancelled_at = Some(self.now);
        row.paused = None;
        self.change_backfill(row, BackfillEvent::Cancelled { by, reason });
        Ok(())
    }
}

/// The event that opens a slot again for a backfill.
fn reopened(row: &Backfill, by: Actor, reason: Option<String>) -> SlotEvent {
    SlotEvent::Reopened { by, reason, priority: row.priority, backfill: Some(row.id.clone()) }
}
