//! Planning, carried out: the decisions of the [`Planner`](crate::planner::Planner) become slots and backlogs, and are
//! recorded.

use jiff::Timestamp;
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::PlanMisfires;
use kelos_model::{Invariant, SlotEvent, SlotRef, Stretch, WorkflowId};

use crate::budget::Budget;
use crate::moments::TICK;
use crate::past::PastOf;
use crate::planner::{Draw, Next, Plan, PlanPart, UpstreamPage, free_of_slots, next_planning};
use crate::{Core, WorkflowFilter};

/// The least that is planned of a workflow when a tick can't plan all: a part of the most slots of a tick. Each workflow that is planned
/// costs a row and an event besides its slots.
const LEAST_PLANNED: usize = 64;

impl Core {
    /// Plans the workflows that are due, a share of each. When they are too many, those with the latest times and those that have waited
    /// longest go first, until the tick has planned enough.
    pub(crate) fn plan_due<E>(&mut self, only: &WorkflowFilter, most: usize, past: PastOf<'_, E>) -> Result<(), E> {
        let mut budget = Budget::in_shares_of(most, self.planner.count_due(), most / LEAST_PLANNED);
        if budget.is_for_all() {
            let due = self.planner.take_due(only);
            due.iter().for_each(|id| self.arm_firing(id));
            self.fire_due();
            return due.iter().try_for_each(|id| self.plan(id, budget.of(id), past).map(drop));
        }
        self.planner.line_up_due(&self.workflows, self.now);
        while budget.is_left()
            && let Some(id) = self.planner.take_next_due(only)
        {
            self.arm_firing(&id);
            let slots = self.plan(&id, budget.of(&id), past)?;
            self.planner.charge_due(slots);
            budget.use_up(id, slots);
        }
        self.fire_due();
        Ok(())
    }

    /// Plans the times of the window that are not planned yet, as a limited number of slots or as a backlog. Draws from
    /// the backlog, and sets the timer for the next time. Returns the number of slots, at least one for each part.
    fn plan<E>(&mut self, id: &WorkflowId, most: usize, past: PastOf<'_, E>) -> Result<usize, E> {
        let Some(workflow) = self.workflows.known(id).filter(|workflow| workflow.is_open()) else { return Ok(0) };
        // Event schedules, programs and unresolved schedules have no times.
        let Some(schedule) = workflow.ticks().cloned() else { return Ok(0) };
        if self.slots.earlier_schedule(id, &workflow.planned().schedule).is_some() {
            // The times of the earlier schedule become slots first, so that planning by the present one knows them.
            self.planner.draw_soon(id);
            return Ok(0);
        }
        if let Some(misfires) = self.planner.misfires(workflow, &schedule, self.now) {
            self.pass_over(id, misfires);
        }
        let Some(workflow) = self.workflows.known(id) else { return Ok(0) };
        let next = next_planning(workflow, &schedule, self.now);
        let Plan { parts, is_whole } = self.planner.plan(id, workflow, &schedule, self.now, most);
        let mut planned = 0;
        for part in parts {
            planned += self.plan_part(id, part, past)?.max(1);
        }
        if !is_whole {
            self.planner.plan_soon(id);
            return Ok(planned);
        }
        self.cover_ahead(id, &schedule, next, past)?;
        self.planner.draw_soon(id);
        let backlog = self.planner.backlog(id, &self.workflows, &self.slots, &self.permits);
        let free_at = backlog.and_then(|backlog| backlog.free_at(&schedule, self.now));
        self.wakes.plan_at(id, next.into_iter().chain(free_at).min());
        Ok(planned)
    }

    /// Covers the times to come that have slots already, which another scheduler or an earlier schedule left: what has ended is not
    /// planned again, so that no batch waits for it.
    fn cover_ahead<E>(
        &mut self,
        id: &WorkflowId,
        schedule: &CronSchedule,
        next: Option<Timestamp>,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let Some(workflow) = self.workflows.known(id) else { return Ok(()) };
        let Some(batching) = workflow.definition().batch else { return Ok(()) };
        // Slots that are queued before the next ones are planned wait no longer than this.
        let last = next.unwrap_or(self.now).checked_add(batching.delay()).unwrap_or(Timestamp::MAX);
        let ahead = schedule.due_in(Range::new(self.now, last.checked_add(TICK).unwrap_or(Timestamp::MAX)));
        let mut gaps = workflow.planned().ranges.gaps(ahead);
        gaps.retain(|gap| workflow.may_have_slots_from(gap.start));
        for gap in gaps {
            self.slots.recall_range(id, gap, past)?;
            for time in self.slots.times_of(id, gap).into_iter().filter(|time| schedule.contains(*time)) {
                self.workflows.cover(id, Range::new(time, time.checked_add(TICK).unwrap_or(Timestamp::MAX)));
            }
        }
        Ok(())
    }

    /// Leaves misfires out, which are recorded.
    fn pass_over(&mut self, id: &WorkflowId, misfires: PlanMisfires) {
        let PlanMisfires { range, times, since } = misfires;
        self.workflows.open_from(id, since);
        self.permits.wake_lots(id);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Missed { range, times });
    }

    /// Plans the times of a range that have no slots yet. Returns the number of slots.
    fn plan_part<E>(&mut self, id: &WorkflowId, part: PlanPart, past: PastOf<'_, E>) -> Result<usize, E> {
        let Some(workflow) = self.workflows.known(id) else { return Ok(0) };
        let range = part.range();
        let is_fed = workflow.is_fed();
        if !is_fed && workflow.may_have_slots_from(range.start) {
            self.slots.recall_range(id, range, past)?;
        }
        let (mut slots, mut backlog) = (0, 0);
        match part {
            PlanPart::Slots { times, .. } => {
                // A deadline counts from the opening of a job.
                let is_timed = is_fed && workflow.definition().deadline.is_some();
                let origin = if is_timed { Origin::Feed } else { Origin::Schedule };
                let named = workflow.slots_at(&times);
                if is_fed {
                    self.slots.recall(named.iter().cloned(), past)?;
                }
                for slot in named {
                    if !self.slots.has(&slot) {
                        slots += 1;
                        self.record(&slot, SlotEvent::planned(origin.clone(), 0));
                    }
                }
            }
            PlanPart::Backlog { .. } => {
                let stretch = Stretch { range, since: self.now, backfill: None, priority: 0, killed: None };
                let free = free_of_slots(&self.slots, id, range);
                backlog = self.put_in_backlog(id, &stretch, &free);
            }
        }
        self.workflows.cover(id, range);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Planned { range, slots, backlog });
        Ok(usize::try_from(slots).unwrap_or(usize::MAX))
    }

    /// Puts those parts of a stretch that contain times into the backlog; none of the times has a slot. Returns the
    /// number of times.
    pub(crate) fn put_in_backlog(&mut self, id: &WorkflowId, stretch: &Stretch, parts: &RangeSet) -> u64 {
        let Some(Ok(schedule)) = self.workflows.known(id).map(|workflow| workflow.schedule()) else {
            self.breaches.report(Invariant::BacklogsHaveSchedules, id);
            return 0;
        };
        // The earlier schedule is no longer needed once its backlog is empty.
        self.slots.reschedule(id, schedule);
        let mut held = RangeSet::default();
        let mut times = 0;
        for part in parts.ranges() {
            let count = schedule.count(*part);
            if count > 0 {
                self.slots.backlog_mut(id).put(Stretch { range: *part, ..stretch.clone() });
                held.insert(*part);
                times += count;
            }
        }
        self.planner.follow_backlog(id, &held);
        self.permits.wake_lots(id);
        self.workflows.touch(id);
        times
    }

    /// Makes slots of the next times of backlogs. Returns whether there were any, or whether more is known now.
    pub(crate) fn draw_backlogs<E>(
        &mut self,
        only: &WorkflowFilter,
        drawn: &mut Budget,
        past: PastOf<'_, E>,
    ) -> Result<bool, E> {
        let mut any = false;
        if drawn.is_for_all() {
            for id in self.planner.take_to_draw(only) {
                any |= self.draw_share(id, drawn, past)?;
            }
            return Ok(any);
        }
        self.planner.line_up_to_draw();
        for _ in 0..self.planner.count_to_draw() {
            let next = if drawn.is_left() { self.planner.take_next_to_draw(only) } else { None };
            let Some(id) = next else { break };
            any |= self.draw_share(id, drawn, past)?;
        }
        Ok(any)
    }

    /// Makes slots of the next times of a backlog, up to its share. Returns whether there were any, or whether more is known now.
    fn draw_share<E>(&mut self, id: WorkflowId, drawn: &mut Budget, past: PastOf<'_, E>) -> Result<bool, E> {
        let done = self.draw(&id, drawn.of(&id), past)?;
        drawn.use_up(id, done);
        Ok(done > 0)
    }

    /// Makes slots of the next times of a backlog, up to a limit. Returns the number of times that it handled.
    fn draw<E>(&mut self, id: &WorkflowId, most: usize, past: PastOf<'_, E>) -> Result<usize, E> {
        let are_settled = self.wakes.dirty.count(id) == 0;
        let Some(backlog) = self.planner.backlog(id, &self.workflows, &self.slots, &self.permits) else {
            self.breaches.report(Invariant::WorkflowIsKnown, id);
            return Ok(0);
        };
        match backlog.draw(self.now, most, are_settled) {
            Draw::Nothing => Ok(0),
            Draw::Later => {
                self.planner.draw_soon(id);
                Ok(0)
            }
            Draw::ByEarlier { times, are_last } => Ok(self.draw_by_earlier(id, &times, are_last)),
            Draw::Next(next) => self.draw_next(id, next, past),
        }
    }

    /// Makes slots of times that an earlier schedule planned. Returns the number of slots.
    fn draw_by_earlier(&mut self, id: &WorkflowId, times: &[Timestamp], are_last: bool) -> usize {
        times.iter().for_each(|time| self.make_slot(&SlotRef::at(id.clone(), *time)));
        if !are_last {
            self.planner.draw_soon(id);
            return times.len();
        }
        // The remaining ends of stretches may have no times.
        self.slots.backlog_mut(id).take(Range::new(Timestamp::MIN, Timestamp::MAX));
        self.workflows.touch(id);
        match self.workflows.known(id).map(|workflow| workflow.schedule()) {
            Some(Ok(schedule)) => self.slots.reschedule(id, schedule),
            _ => self.breaches.report(Invariant::BacklogsHaveSchedules, id),
        }
        self.planner.plan_soon(id);
        times.len()
    }

    /// Makes slots of the next times, and reads the states of the slots that further ones wait for. Returns the number
    /// of times handled.
    fn draw_next<E>(&mut self, id: &WorkflowId, next: Next, past: PastOf<'_, E>) -> Result<usize, E> {
        let Next { times, cutoff, check } = next;
        self.planner.cut_off(id, cutoff);
        self.permits.wake_lots(id);
        let mut done = times.len();
        let schedule = self.workflows.get(id).and_then(|workflow| workflow.schedule().ok());
        if let Some((check, schedule)) = check.zip(schedule) {
            let page = UpstreamPage::of(id, &check, schedule, &self.workflows, &self.slots);
            self.slots.recall(page.slots(), past)?;
            self.planner.answered(id, &page, &page.succeeded(schedule, &self.slots));
            done += page.len().max(1);
        }
        times.into_iter().for_each(|position| self.make_slot(&SlotRef::new(id.clone(), position.key)));
        if done > 0 {
            self.planner.draw_soon(id);
        }
        Ok(done)
    }
}
