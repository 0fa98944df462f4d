//! Planning: which times of a schedule become slots, and which are left in the backlog until it is their turn.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::trigger::Prerequisites;
use kelos_model::{Invariant, SlotEvent, SlotRef, SlotState, Stretch, WorkflowId};

use crate::backlog::{BacklogOf, Next, free_of_slots, page_of};
use crate::frontier::UpstreamCheck;
use crate::past::PastOf;
use crate::permits::Position;
use crate::tick::Looks;
use crate::{Core, Only};

/// The shortest step of time keys.
pub(crate) const TICK: SignedDuration = SignedDuration::from_millis(1);

impl Core {
    /// Plans what the window holds and is not planned yet: no more than so many slots, or a backlog. Has slots made of the backlog,
    /// and sets the timer for the next time.
    pub(crate) fn plan<E>(&mut self, id: &WorkflowId, most: usize, past: PastOf<'_, E>) -> Result<(), E> {
        self.workflows.known(id);
        let Some(workflow) = self.workflows.get(id) else { return Ok(()) };
        // Event schedules and programs have no times, nor has what can't be resolved.
        let Some(schedule) = workflow.ticks().cloned() else { return Ok(()) };
        if !workflow.is_open() {
            return Ok(());
        }
        if self.earlier_schedule(id).is_some() {
            // What was planned by that becomes slots first, of which planning by this one then knows.
            self.frontier.wake(id);
            return Ok(());
        }
        let start_time = workflow.definition().start_time.unwrap_or(Timestamp::MIN);
        let window_start = self.now.checked_sub(self.config.planning_window).unwrap_or(Timestamp::MIN);
        let window = Range::new(window_start.max(start_time), self.now);
        let room = self.backlog_of(id).filter(BacklogOf::is_kept).map(|backlog| backlog.size);
        let mut left = most;
        for gap in workflow.planned().ranges.gaps(window) {
            let mut coming = schedule.times(gap.start, gap.end);
            let times: Vec<_> = coming.by_ref().take(left.min(room.unwrap_or(left))).collect();
            let rest = coming.next();
            if rest.is_some() && room.is_some() {
                let stretch = Stretch { range: gap, since: self.now, backfill: None, priority: 0, killed: None };
                self.plan_later(id, &stretch, &schedule, past)?;
                continue;
            }
            let gap = Range::new(gap.start, rest.unwrap_or(gap.end));
            if !times.is_empty() {
                self.plan_gap(id, gap, &times, past)?;
            }
            if rest.is_some() {
                self.to_plan.insert(id.clone());
                return Ok(());
            }
            left -= times.len();
        }
        self.frontier.wake(id);
        let free_at = self.backlog_of(id).and_then(|backlog| backlog.free_at(&schedule, self.now));
        // A slot exists once its time has passed: the window's end is exclusive.
        let after = (self.now - TICK).max(start_time.checked_sub(TICK).unwrap_or(Timestamp::MIN));
        let next = schedule.next_after(after).map(|next| next + TICK);
        self.wakes.plan_at(id, next.into_iter().chain(free_at).min());
        Ok(())
    }

    /// A workflow's backlog beside its queue.
    pub(crate) fn backlog_of<'a>(&'a self, id: &'a WorkflowId) -> Option<BacklogOf<'a>> {
        Some(BacklogOf {
            id,
            workflow: self.workflows.get(id)?,
            slots: &self.slots,
            permits: &self.permits,
            frontier: &self.frontier,
            size: self.config.frontier,
        })
    }

    /// Notes what the slots of a workflow wait for, by its definition.
    pub(crate) fn agree_on_backlog(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let definition = workflow.definition();
        // A timeout ends slots while they wait, and constraints count from when a slot was looked at.
        let is_plain = definition.wait_timeout_seconds.is_none() && definition.constraints.is_empty();
        let prerequisites: Option<Prerequisites> =
            definition.trigger.prerequisites().filter(|_| is_plain && definition.keys.jobs().is_none());
        self.frontier.agree(id, prerequisites);
        self.to_plan.insert(id.clone());
    }

    /// Plans those times of one gap of which there are no slots yet.
    fn plan_gap<E>(&mut self, id: &WorkflowId, gap: Range, times: &[Timestamp], past: PastOf<'_, E>) -> Result<(), E> {
        let Some(workflow) = self.workflows.known(id) else { return Ok(()) };
        if workflow.is_fed() {
            return self.feed_gap(id, gap, times, past);
        }
        self.recall_gap(id, gap, past)?;
        let slots = self.plan_times(id, times, Origin::Schedule);
        self.workflows.cover(id, gap);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Planned { range: gap, slots, backlog: 0 });
        Ok(())
    }

    /// Reads the slots of a range that is not covered. One beyond all that was ever planned needs no look at the past.
    fn recall_gap<E>(&mut self, id: &WorkflowId, gap: Range, past: PastOf<'_, E>) -> Result<(), E> {
        let until = self.workflows.get(id).and_then(|workflow| workflow.planned().until);
        if until.is_some_and(|until| until > gap.start) {
            self.slots.recall_range(id, gap, past)?;
        }
        Ok(())
    }

    /// Leaves the times of a gap in the backlog of which there are no slots yet.
    fn plan_later<E>(
        &mut self,
        id: &WorkflowId,
        stretch: &Stretch,
        schedule: &CronSchedule,
        past: PastOf<'_, E>,
    ) -> Result<(), E> {
        let range = stretch.range;
        self.recall_gap(id, range, past)?;
        let free = free_of_slots(&self.slots, id, range);
        let backlog = free.ranges().iter().map(|part| schedule.count(*part)).sum();
        self.put_in_backlog(id, stretch, &free);
        self.workflows.cover(id, range);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Planned { range, slots: 0, backlog });
        Ok(())
    }

    /// Puts parts of a stretch into the backlog that hold times, none of which has a slot.
    pub(crate) fn put_in_backlog(&mut self, id: &WorkflowId, stretch: &Stretch, parts: &RangeSet) {
        let Some(schedule) = self.workflows.get(id).and_then(|workflow| workflow.schedule().ok()).cloned() else {
            return self.breaches.report(Invariant::WorkflowIsKnown, id);
        };
        // An earlier schedule says nothing any more once its backlog has gone, however it went.
        self.slots.reschedule(id, &schedule);
        for part in parts.ranges().iter().filter(|part| schedule.times(part.start, part.end).next().is_some()) {
            self.slots.backlog_mut(id).put(Stretch { range: *part, ..stretch.clone() });
            self.frontier.forget(id, *part);
        }
        self.workflows.touch(id);
        self.to_plan.insert(id.clone());
    }

    /// Makes slots of what goes next of backlogs. Says whether any were made, or more came to be known.
    pub(crate) fn draw_backlogs<E>(&mut self, only: &Only, drawn: &mut Looks, past: PastOf<'_, E>) -> Result<bool, E> {
        let mut any = false;
        for id in self.frontier.take_woken(only) {
            let left = drawn.of(&id);
            let done = self.draw(&id, left, past)?;
            drawn.use_up(id, done);
            any |= done > 0;
        }
        Ok(any)
    }

    /// Makes slots of those times of a backlog that go next, and of no more than so many. Says how many times it looked at.
    fn draw<E>(&mut self, id: &WorkflowId, most: usize, past: PastOf<'_, E>) -> Result<usize, E> {
        let Some(workflow) = self.workflows.known(id) else { return Ok(0) };
        let is_open = workflow.is_open();
        let Some(schedule) = workflow.schedule().ok().filter(|_| is_open).cloned() else { return Ok(0) };
        if self.slots.backlog(id).is_empty() {
            return Ok(0);
        }
        if most == 0 {
            self.frontier.wake(id);
            return Ok(0);
        }
        if let Some(earlier) = self.slots.schedule_of_backlog(id).filter(|earlier| **earlier != schedule).cloned() {
            return Ok(self.draw_by_earlier(id, most, &earlier, &schedule));
        }
        let Some(backlog) = self.backlog_of(id) else { return Ok(0) };
        if backlog.is_kept() && self.wakes.dirty.count(id) > 0 {
            // Those may be about to be queued.
            self.frontier.wake(id);
            return Ok(0);
        }
        let Next { times, cutoff, check } = backlog.next(&schedule, self.now, most);
        self.frontier.cut_off(id, cutoff);
        let mut done = times.len();
        if let Some(check) = check {
            done += self.ask_upstream(id, &check, &schedule, past)?.max(1);
        }
        times.into_iter().for_each(|position| self.make_slot(&SlotRef::new(id.clone(), position.key)));
        if done > 0 {
            self.frontier.wake(id);
        }
        Ok(done)
    }

    /// Makes slots of what was planned by a schedule that holds no more, be it killed or paused: each for itself is in the schedule
    /// of now or not. Says how many.
    fn draw_by_earlier(
        &mut self,
        id: &WorkflowId,
        most: usize,
        earlier: &CronSchedule,
        schedule: &CronSchedule,
    ) -> usize {
        let stretches = self.slots.backlog(id).stretches();
        let times = stretches.iter().flat_map(|stretch| earlier.times(stretch.range.start, stretch.range.end));
        let times: Vec<Timestamp> = times.take(most).collect();
        times.iter().for_each(|time| self.make_slot(&SlotRef::at(id.clone(), *time)));
        if times.len() < most {
            // Ends of stretches may be left that hold no time.
            self.slots.backlog_mut(id).take(Range::new(Timestamp::MIN, Timestamp::MAX));
            self.workflows.touch(id);
            self.slots.reschedule(id, schedule);
            self.to_plan.insert(id.clone());
        } else {
            self.frontier.wake(id);
        }
        times.len()
    }

    /// The schedule that a workflow's backlog was planned by, in words, where it is not that of now.
    pub(crate) fn earlier_schedule(&self, id: &WorkflowId) -> Option<String> {
        let words = &self.workflows.get(id)?.planned().schedule;
        let earlier = self.slots.schedule_of_backlog(id).filter(|_| !self.slots.backlog(id).is_empty())?;
        serde_json::to_string(earlier).ok().filter(|earlier| earlier != words)
    }

    /// Asks whether slots have succeeded that some of a backlog wait for. Says of how many it asked.
    fn ask_upstream<E>(
        &mut self,
        id: &WorkflowId,
        check: &UpstreamCheck,
        schedule: &CronSchedule,
        past: PastOf<'_, E>,
    ) -> Result<usize, E> {
        let (page, times) = page_of(check, schedule, &self.workflows, &self.slots);
        let (upstream, offset) = &page.upstream;
        let span = SignedDuration::from_secs(*offset);
        let of = |time: &Timestamp| Some(SlotRef::at(upstream.clone(), time.checked_add(span).ok()?));
        self.slots.recall(times.iter().filter_map(of), past)?;
        let has_succeeded =
            |time: &&Timestamp| of(time).is_some_and(|slot| self.slots.state(&slot) == Some(SlotState::Succeeded));
        // What lies up to the next time is alike, so that neighbours become one range.
        let alike = |time: &Timestamp| Range::new(*time, schedule.next_after(*time).unwrap_or(*time + TICK));
        let succeeded: Vec<Range> = times.iter().filter(has_succeeded).map(alike).collect();
        self.frontier.answered(id, &page, &succeeded);
        Ok(times.len())
    }

    /// Has those of a backlog looked at that wait for a slot which has succeeded.
    pub(crate) fn tell_backlogs(&mut self, slot: &SlotRef) {
        for dependent in self.frontier.dependents(slot) {
            let planned = self.slots.get(&dependent).filter(|_| self.slots.is_planned(&dependent));
            let Some(position) = planned.map(|live| Position::of(&live.slot, &dependent.key)) else { continue };
            self.frontier.succeeded(slot, &dependent, &position);
        }
    }

    /// Opens those jobs that the times of a gap stand for and that do not exist yet.
    fn feed_gap<E>(&mut self, id: &WorkflowId, gap: Range, times: &[Timestamp], past: PastOf<'_, E>) -> Result<(), E> {
        let jobs = self.fed_jobs(id, times);
        self.slots.recall(jobs.iter().cloned(), past)?;
        let mut opened = 0;
        for job in jobs.iter().filter(|job| !self.slots.has(job)).cloned().collect::<Vec<_>>() {
            opened += 1;
            self.record(&job, SlotEvent::planned(Origin::Schedule, 0));
        }
        self.workflows.cover(id, gap);
        self.turn.log_workflow(self.now, id, WorkflowEvent::Planned { range: gap, slots: opened, backlog: 0 });
        Ok(())
    }

    fn fed_jobs(&self, id: &WorkflowId, times: &[Timestamp]) -> BTreeSet<SlotRef> {
        let jobs = self.workflows.get(id).and_then(|workflow| workflow.definition().keys.jobs());
        let ids = times.iter().flat_map(|time| jobs.map(|jobs| jobs.fed_at(*time)).unwrap_or_default());
        ids.map(|job| SlotRef::job(id.clone(), job)).collect()
    }

    fn plan_times(&mut self, id: &WorkflowId, times: &[Timestamp], origin: Origin) -> u32 {
        let mut planned = 0;
        for time in times {
            let slot = SlotRef::at(id.clone(), *time);
            if !self.slots.has(&slot) {
                planned += 1;
                self.record(&slot, SlotEvent::planned(origin.clone(), 0));
            }
        }
        planned
    }

    /// Notes that one slot exists, wherever it lies.
    pub(crate) fn cover_slot(&mut self, slot: &SlotRef) {
        // A job lies in no range.
        let Some(at) = slot.key.time() else { return };
        self.workflows.cover(&slot.workflow, Range::new(at, at.checked_add(TICK).unwrap_or(Timestamp::MAX)));
    }
}
