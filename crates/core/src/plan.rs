//! Planning: which times of a schedule become slots.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::{SlotEvent, SlotRef, WorkflowId};

use crate::Core;
use crate::past::PastOf;

/// The shortest step of time keys.
pub(crate) const TICK: SignedDuration = SignedDuration::from_millis(1);

impl Core {
    /// Plans what the window holds and is not planned yet, though no more than so many times, and sets the timer for the next time.
    pub(crate) fn plan<E>(&mut self, id: &WorkflowId, most: usize, past: PastOf<'_, E>) -> Result<(), E> {
        let Some(task) = self.tasks.get(id) else {
            self.no_workflow(id);
            return Ok(());
        };
        // Event schedules and programs have no times, nor has what can't be resolved.
        let Some(schedule) = task.ticks().cloned() else { return Ok(()) };
        if !task.row.present || task.row.paused || task.is_frozen() {
            return Ok(());
        }
        let start_time = task.row.definition.start_time.unwrap_or(Timestamp::MIN);
        let window_start = self.now.checked_sub(self.config.planning_window).unwrap_or(Timestamp::MIN);
        let window = Range::new(window_start.max(start_time), self.now);
        let mut left = most;
        for gap in task.row.planned.ranges.gaps(window) {
            let mut coming = schedule.times(gap.start, gap.end);
            let times: Vec<_> = coming.by_ref().take(left).collect();
            let rest = coming.next();
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
        // A slot exists once its time has passed: the window's end is exclusive.
        let after = (self.now - TICK).max(start_time.checked_sub(TICK).unwrap_or(Timestamp::MIN));
        match schedule.next_after(after) {
            Some(next) => self.wakes.plan_at(id, Some(next + TICK)),
            None => self.wakes.plan_at(id, None),
        }
        Ok(())
    }

    /// Plans those times of one gap of which there are no slots yet.
    fn plan_gap<E>(&mut self, id: &WorkflowId, gap: Range, times: &[Timestamp], past: PastOf<'_, E>) -> Result<(), E> {
        let Some(task) = self.tasks.get(id) else {
            self.no_workflow(id);
            return Ok(());
        };
        if task.feed.is_some() {
            return self.feed_gap(id, gap, times, past);
        }
        // A range beyond all that was ever planned needs no look at the past.
        if task.row.planned.until.is_some_and(|until| until > gap.start) {
            self.slots.recall_range(id, gap, past)?;
        }
        let slots = self.plan_times(id, times, Origin::Schedule);
        self.cover(id, gap);
        self.record_workflow(id, WorkflowEvent::Planned { range: gap, slots });
        Ok(())
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
        self.cover(id, gap);
        self.record_workflow(id, WorkflowEvent::Planned { range: gap, slots: opened });
        Ok(())
    }

    fn fed_jobs(&self, id: &WorkflowId, times: &[Timestamp]) -> BTreeSet<SlotRef> {
        let jobs = self.tasks.get(id).and_then(|task| task.row.definition.keys.jobs());
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

    /// Notes that all slots of a range exist.
    pub(crate) fn cover(&mut self, id: &WorkflowId, range: Range) {
        let Some(task) = self.tasks.get_mut(id) else { return self.no_workflow(id) };
        let planned = &mut task.row.planned;
        planned.ranges.insert(range);
        planned.until = planned.until.max(Some(range.end));
        self.turn.workflows.insert(id.clone());
    }

    /// Notes that one slot exists, wherever it lies.
    pub(crate) fn cover_slot(&mut self, slot: &SlotRef) {
        // A job lies in no range.
        let Some(at) = slot.key.time() else { return };
        self.cover(&slot.workflow, Range::new(at, at.checked_add(TICK).unwrap_or(Timestamp::MAX)));
    }
}
