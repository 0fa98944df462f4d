//! Backfills: opening the slots of a range, and what people ask for afterwards: pause, resume, another priority,
//! opening the failures again, cancelling.

mod rows;

use jiff::Timestamp;
use kelos_model::event::{BackfillEvent, Origin};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::{Backfill, BackfillMode, Pause};
use kelos_model::{Actor, BackfillId, Kill, SlotEvent, SlotRef, SlotState, Stretch, WorkflowId};

pub(crate) use rows::Backfills;

use crate::past::PastOf;
use crate::permits::Position;
use crate::planner::free_of_slots;
use crate::requests::LISTED;
use crate::slots::Live;
use crate::{BackfillOutcome, BackfillRequest, Core, Refusal, SlotList};

/// Slots that one backfill may touch one by one, in one turn. What is left in a backlog is not counted.
pub const LARGEST_BACKFILL: usize = 1_000_000;

impl Core {
    pub(crate) fn backfill(&mut self, request: &BackfillRequest, by: Actor) -> Result<BackfillOutcome, Refusal> {
        let workflow = self.workflows.present(&request.workflow)?;
        if self.backfills.contains_key(&request.id) {
            return Err(Refusal::NameTaken(request.id.clone()));
        }
        let schedule = workflow.schedule();
        let schedule = schedule.map_err(|why| Refusal::NoSchedule(request.workflow.clone(), why.to_string()))?.clone();
        self.settle_backlog(request);
        let scope = self.scope_of(&request.workflow, request.range, &schedule);
        let backlog = self.planner.backlog(&request.workflow, &self.workflows, &self.slots, &self.permits);
        let keeps_backlog = backlog.is_some_and(|backlog| backlog.is_kept());
        let listed = if keeps_backlog { scope.existing() } else { scope.times };
        if listed > LARGEST_BACKFILL as u64 {
            return Err(Refusal::TooMany {
                slots: usize::try_from(listed).unwrap_or(usize::MAX),
                limit: LARGEST_BACKFILL,
            });
        }
        let sorted = self.sort_for(request, scope, &schedule);
        if !request.dry_run {
            self.open(request, &sorted, &schedule, by);
        }
        Ok(sorted.outcome(&request.workflow, &schedule))
    }

    /// Brings the slots of a backfill into memory, unless there are so many that it will be refused.
    pub(crate) fn recall_backfill<E>(&mut self, request: &BackfillRequest, past: PastOf<'_, E>) -> Result<(), E> {
        let schedule = self.workflows.get(&request.workflow).and_then(|workflow| workflow.schedule().ok()).cloned();
        let Some(schedule) = schedule else { return Ok(()) };
        let existing = self.scope_of(&request.workflow, request.range, &schedule).existing();
        if existing > LARGEST_BACKFILL as u64 {
            return Ok(());
        }
        self.slots.recall_range(&request.workflow, request.range, past)
    }

    /// Makes slots of what was planned by an earlier schedule, so that each can be told by itself.
    fn settle_backlog(&mut self, request: &BackfillRequest) {
        let backlog = self.planner.backlog(&request.workflow, &self.workflows, &self.slots, &self.permits);
        if backlog.and_then(|backlog| backlog.earlier_schedule()).is_none() {
            return;
        }
        let Some(earlier) = self.slots.schedule_of_backlog(&request.workflow).cloned() else { return };
        let parts: Vec<Stretch> = self.slots.backlog(&request.workflow).within(request.range).collect();
        let times = parts.iter().flat_map(|part| earlier.times(part.range.start, part.range.end));
        times.for_each(|time| self.make_slot(&SlotRef::at(request.workflow.clone(), time)));
        // What is left of these stretches holds no time.
        self.slots.backlog_mut(&request.workflow).take(request.range);
        self.workflows.touch(&request.workflow);
    }

    /// What a range holds of a workflow's times.
    fn scope_of(&self, id: &WorkflowId, range: Range, schedule: &CronSchedule) -> Scope {
        let mut free = RangeSet::default();
        free.insert(range);
        if let Some(workflow) = self.workflows.get(id) {
            workflow.planned().ranges.within(range).for_each(|part| free.remove(part));
        }
        let planned: Vec<Stretch> = self.slots.backlog(id).within(range).collect();
        let count = |parts: &mut dyn Iterator<Item = Range>| parts.map(|part| schedule.count(part)).sum();
        Scope {
            range,
            times: schedule.count(range),
            uncovered: count(&mut free.ranges().iter().copied()),
            in_backlog: count(&mut planned.iter().map(|stretch| stretch.range)),
            planned,
        }
    }

    /// Sorts the slots of a backfill by what it does with them.
    fn sort_for(&self, request: &BackfillRequest, scope: Scope, schedule: &CronSchedule) -> Sorted {
        let mut sorted =
            Sorted { missing: free_of_slots(&self.slots, &request.workflow, scope.range), ..Sorted::default() };
        for time in self.slots.times_of(&request.workflow, scope.range) {
            if !schedule.contains(time) {
                continue;
            }
            let slot = SlotRef::at(request.workflow.clone(), time);
            let Some(live) = self.slots.get(&slot) else { continue };
            let before_start = self.before_start(&slot).is_some();
            let (state, priority) = (live.slot.state, live.slot.priority);
            match treatment(request, state, priority, before_start) {
                Treatment::Reopen => sorted.reopened.push(slot),
                Treatment::Adopt => sorted.adopted.push(slot),
                Treatment::None => sorted.untouched += 1,
            }
        }
        for stretch in self.cut_at_start(&request.workflow, scope.planned) {
            sorted.missing.remove(stretch.range);
            let time = SlotRef::at(request.workflow.clone(), stretch.range.start);
            let before_start = self.before_start(&time).is_some() && stretch.backfill.is_none();
            match treatment(request, stretch.state(), stretch.priority, before_start) {
                Treatment::Reopen => sorted.reopened_later.push(stretch),
                Treatment::Adopt => sorted.adopted_later.push(stretch),
                Treatment::None => sorted.untouched += schedule.count(stretch.range),
            }
        }
        sorted
    }

    /// Stretches, cut in two where their workflow begins.
    fn cut_at_start(&self, id: &WorkflowId, stretches: Vec<Stretch>) -> Vec<Stretch> {
        let start = self.workflows.get(id).and_then(|workflow| workflow.definition().start_time);
        let Some(start) = start else { return stretches };
        let cut = |stretch: Stretch| {
            let Range { start: first, end } = stretch.range;
            let halves = [Range::new(first, end.min(start)), Range::new(first.max(start), end)];
            halves.map(|range| Stretch { range, ..stretch.clone() })
        };
        stretches.into_iter().flat_map(cut).filter(|stretch| !stretch.range.is_empty()).collect()
    }

    fn open(&mut self, request: &BackfillRequest, sorted: &Sorted, schedule: &CronSchedule, by: Actor) {
        let BackfillRequest { id, workflow, range, mode, priority, reason, .. } = request.clone();
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
        self.open_slots(&row, sorted, schedule);
        let what = BackfillEvent::Created { workflow, range, mode, priority, by, slots, reason };
        self.change_backfill(row, what);
    }

    fn open_slots(&mut self, row: &Backfill, sorted: &Sorted, schedule: &CronSchedule) {
        let (id, priority) = (&row.id, row.priority);
        let stretch = Stretch { range: row.range, since: self.now, backfill: Some(id.clone()), priority, killed: None };
        let missing = sorted.missing_count(schedule);
        let backlog = self.planner.backlog(&row.workflow, &self.workflows, &self.slots, &self.permits);
        if backlog.is_some_and(|backlog| backlog.takes(missing)) {
            self.put_in_backlog(&row.workflow, &stretch, &sorted.missing);
        } else {
            self.create_slots(row, sorted.missing_times(schedule));
        }
        self.workflows.cover(&row.workflow, row.range);
        for taken in sorted.reopened_later.iter().chain(&sorted.adopted_later) {
            self.slots.backlog_mut(&row.workflow).put(Stretch { range: taken.range, ..stretch.clone() });
            self.planner.draw_soon(&row.workflow);
        }
        for slot in &sorted.reopened {
            self.reopen_for(row, slot, row.by.clone(), Some(format!("backfill {id}")));
        }
        for slot in &sorted.adopted {
            self.record(slot, SlotEvent::Prioritised { priority, backfill: id.clone(), by: None, reason: None });
        }
    }

    fn create_slots(&mut self, row: &Backfill, times: impl Iterator<Item = Timestamp>) {
        for time in times {
            let what = SlotEvent::Planned {
                origin: Origin::Backfill,
                priority: row.priority,
                backfill: Some(row.id.clone()),
                by: None,
                reason: None,
            };
            self.record(&SlotRef::at(row.workflow.clone(), time), what);
        }
    }

    fn reopen_for(&mut self, row: &Backfill, slot: &SlotRef, by: Actor, reason: Option<String>) {
        let (priority, backfill) = (row.priority, Some(row.id.clone()));
        self.record(slot, SlotEvent::Reopened { by, reason, priority, backfill });
    }

    /// The one door through which the row of a backfill changes.
    fn change_backfill(&mut self, row: Backfill, what: BackfillEvent) {
        let id = row.id.clone();
        self.workflows.follow_pause(&row);
        self.backfills.change(row);
        self.turn.log_backfill(self.now, &id, what);
    }

    /// The same, with slots that are live.
    fn going_on(&self, id: &BackfillId) -> Result<Backfill, Refusal> {
        let row = self.backfills.standing(id)?;
        let waits = self.slots.backlog(&row.workflow).of(id).next().is_some();
        if !waits && self.slots_of(&row, |live| !live.slot.state.is_final()).is_empty() {
            return Err(Refusal::BackfillOver(id.clone()));
        }
        Ok(row)
    }

    /// Plans those of its slots otherwise that are in the backlog.
    fn replan(&mut self, row: &Backfill, change: impl Fn(&mut Stretch)) {
        let mut waiting: Vec<Stretch> = self.slots.backlog(&row.workflow).of(&row.id).cloned().collect();
        for stretch in &mut waiting {
            change(stretch);
            self.slots.backlog_mut(&row.workflow).put(stretch.clone());
            self.workflows.touch(&row.workflow);
        }
        self.planner.draw_soon(&row.workflow);
    }

    /// Its slots in memory that a predicate lets through, but for those in the backlog.
    fn slots_of(&self, row: &Backfill, wanted: impl Fn(&Live) -> bool) -> Vec<SlotRef> {
        let is_its = |live: &Live| live.slot.backfill.as_ref() == Some(&row.id);
        let mine = self.slots.of(&row.workflow).filter(|(_, live)| is_its(live) && wanted(live));
        mine.map(|(slot, _)| slot).collect()
    }

    pub(crate) fn pause_backfill(&mut self, id: &BackfillId, by: Actor, reason: Option<String>) -> Result<(), Refusal> {
        let mut row = self.backfills.standing(id)?;
        if row.paused.is_none() {
            self.going_on(id)?;
            row.paused = Some(Pause { at: self.now, by: by.clone() });
            self.change_backfill(row, BackfillEvent::Paused { by, reason });
            self.wake_backfill(id);
        }
        Ok(())
    }

    pub(crate) fn resume_backfill(
        &mut self,
        id: &BackfillId,
        by: Actor,
        reason: Option<String>,
    ) -> Result<(), Refusal> {
        let mut row = self.backfills.standing(id)?;
        if row.paused.is_some() {
            row.paused = None;
            row.resumed_at = Some(self.now);
            self.change_backfill(row, BackfillEvent::Resumed { by, reason });
            self.wake_backfill(id);
        }
        Ok(())
    }

    /// Has its slots looked at that have no run, as a pause or its end has it, and puts those that may run in their
    /// place in the queue.
    fn wake_backfill(&mut self, id: &BackfillId) {
        // The caller has just changed it.
        let Some(row) = self.backfills.get(id).cloned() else { return };
        let idle = self.slots_of(&row, |live| live.slot.state.is_idle());
        let Some(workflow) = self.workflows.known(&row.workflow) else { return };
        for slot in &idle {
            let Some(live) = self.slots.get(slot) else { continue };
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
        let mut row = self.going_on(id)?;
        if row.priority == priority {
            return Ok(());
        }
        row.priority = priority;
        for slot in self.slots_of(&row, |live| !live.slot.state.is_final()) {
            let (backfill, by, reason) = (id.clone(), Some(by.clone()), reason.clone());
            self.record(&slot, SlotEvent::Prioritised { priority, backfill, by, reason });
        }
        self.replan(&row, |stretch| stretch.priority = priority);
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
        let failed = |live: &Live| matches!(live.slot.state, SlotState::Failed | SlotState::Expired);
        let mut reopened = self.slots_of(&row, failed);
        reopened.retain(|slot| self.check_slot(slot).is_ok());
        let why = reason.clone().or_else(|| Some(format!("what failed of backfill {id}")));
        reopened.iter().for_each(|slot| self.reopen_for(&row, slot, by.clone(), why.clone()));
        if let Some(slots) = u32::try_from(reopened.len()).ok().filter(|slots| *slots > 0) {
            self.change_backfill(row, BackfillEvent::Reopened { slots, by, reason });
        }
        Ok(reopened)
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
        for slot in self.slots_of(&row, |live| live.slot.state.is_idle()) {
            let reason = Some(format!("backfill {id} was cancelled"));
            self.record(&slot, SlotEvent::Killed { by: by.clone(), reason });
        }
        let kill = Kill { at: self.now, by: by.clone(), reason: Some(format!("backfill {id} was cancelled")) };
        self.replan(&row, |stretch| stretch.killed = Some(kill.clone()));
        row.cancelled_at = Some(self.now);
        row.paused = None;
        self.change_backfill(row, BackfillEvent::Cancelled { by, reason });
        Ok(())
    }
}

/// What a range holds of a workflow's times.
struct Scope {
    range: Range,
    /// How many there are.
    times: u64,
    /// How many were never planned.
    uncovered: u64,
    /// How many are in the backlog.
    in_backlog: u64,
    planned: Vec<Stretch>,
}

impl Scope {
    /// How many slots of their own there may be.
    fn existing(&self) -> u64 {
        self.times.saturating_sub(self.uncovered).saturating_sub(self.in_backlog)
    }
}

/// The slots of a backfill, by what it does with them.
#[derive(Default)]
struct Sorted {
    /// Where there are no slots at all.
    missing: RangeSet,
    reopened: Vec<SlotRef>,
    adopted: Vec<SlotRef>,
    /// The same, of the backlog.
    reopened_later: Vec<Stretch>,
    adopted_later: Vec<Stretch>,
    untouched: u64,
}

impl Sorted {
    fn missing_times<'a>(&self, schedule: &'a CronSchedule) -> impl Iterator<Item = Timestamp> + use<'a> {
        let parts = self.missing.ranges().to_vec();
        parts.into_iter().flat_map(|part| schedule.times(part.start, part.end))
    }

    fn missing_count(&self, schedule: &CronSchedule) -> u64 {
        self.missing.ranges().iter().map(|part| schedule.count(*part)).sum()
    }

    fn touched(&self, schedule: &CronSchedule) -> u64 {
        let later = self.reopened_later.iter().chain(&self.adopted_later).map(|stretch| schedule.count(stretch.range));
        let listed = self.reopened.len() + self.adopted.len();
        self.missing_count(schedule) + later.sum::<u64>() + listed as u64
    }

    fn outcome(self, id: &WorkflowId, schedule: &CronSchedule) -> BackfillOutcome {
        let slot = |time| SlotRef::at(id.clone(), time);
        let created: Vec<SlotRef> = self.missing_times(schedule).take(LISTED).map(slot).collect();
        let created = SlotList { count: self.missing_count(schedule), first: created };
        let list = |slots: Vec<SlotRef>, later: &[Stretch]| {
            let count = slots.len() as u64 + later.iter().map(|stretch| schedule.count(stretch.range)).sum::<u64>();
            let times = later.iter().flat_map(|stretch| schedule.times(stretch.range.start, stretch.range.end));
            let mut first: Vec<SlotRef> = times.take(LISTED).map(slot).chain(slots).collect();
            first.sort();
            first.truncate(LISTED);
            SlotList { count, first }
        };
        BackfillOutcome {
            created,
            reopened: list(self.reopened, &self.reopened_later),
            adopted: list(self.adopted, &self.adopted_later),
            untouched: self.untouched,
        }
    }
}

/// What a backfill does with a slot that exists.
enum Treatment {
    Reopen,
    Adopt,
    None,
}

fn treatment(request: &BackfillRequest, state: SlotState, priority: i32, before_start: bool) -> Treatment {
    match state.is_final() {
        true if reopens(request.mode, state) => Treatment::Reopen,
        // What goes anyway is taken over only to go sooner.
        false if request.priority > priority || before_start => Treatment::Adopt,
        _ => Treatment::None,
    }
}

fn reopens(mode: BackfillMode, state: SlotState) -> bool {
    match mode {
        BackfillMode::Missing => false,
        BackfillMode::Unsuccessful => state != SlotState::Succeeded,
        BackfillMode::All => true,
    }
}
