//! Planning: which times of a schedule become slots.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::event::{Origin, WorkflowEvent};
use kelos_model::ranges::Range;
use kelos_model::{Recall, SlotEvent, SlotRef, WorkflowId};

use crate::timers::Timer;
use crate::{Command, Core, Input};

/// The shortest step of time keys.
pub(crate) const TICK: SignedDuration = SignedDuration::from_millis(1);

impl Core {
    /// Plans what the window holds and is not planned yet, though no more than so many times, and sets the timer for the next time.
    pub(crate) fn plan(&mut self, id: &WorkflowId, most: usize) {
        let Some(task) = self.tasks.get(id) else { return };
        let Some(schedule) = task.ticks().cloned() else { return };
        if !task.row.present || task.row.paused {
            return;
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
            if !times.is_empty() && !self.plan_gap(id, gap, &times) {
                return;
            }
            if rest.is_some() {
                self.to_plan.insert(id.clone());
                return;
            }
            left -= times.len();
        }
        // A slot exists once its time has passed: the window's end is exclusive.
        let after = (self.now - TICK).max(start_time.checked_sub(TICK).unwrap_or(Timestamp::MIN));
        match schedule.next_after(after) {
            Some(next) => self.timers.set(id, Timer::Plan(id.clone()), next + TICK),
            None => self.timers.clear(&Timer::Plan(id.clone())),
        }
    }

    /// Plans the times of one gap. Says no where the store must first be asked which slots exist.
    fn plan_gap(&mut self, id: &WorkflowId, gap: Range, times: &[Timestamp]) -> bool {
        if self.tasks.get(id).is_some_and(|task| task.feed.is_some()) {
            return self.feed_gap(id, gap, times);
        }
        if !self.have_range(id, gap) {
            return false;
        }
        let slots = self.plan_times(id, times, Origin::Schedule);
        self.cover(id, gap);
        self.record_workflow(id, WorkflowEvent::Planned { range: gap, slots });
        true
    }

    /// Opens the jobs that the times of a gap stand for. Says no where the store must first be asked which of them exist.
    fn feed_gap(&mut self, id: &WorkflowId, gap: Range, times: &[Timestamp]) -> bool {
        let jobs = self.fed_jobs(id, times);
        let unknown: Vec<SlotRef> = jobs.iter().filter(|job| !self.is_known(job)).cloned().collect();
        if !unknown.is_empty() {
            self.to_plan.insert(id.clone());
            self.command(Command::Recall(Recall::Slots(unknown)));
            return false;
        }
        let mut opened = 0;
        for job in jobs.iter().filter(|job| self.live(job).is_none()).cloned().collect::<Vec<_>>() {
            opened += 1;
            self.record(&job, SlotEvent::planned(Origin::Schedule, 0));
        }
        self.cover(id, gap);
        self.record_workflow(id, WorkflowEvent::Planned { range: gap, slots: opened });
        true
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
            if self.live(&slot).is_none() {
                planned += 1;
                self.record(&slot, SlotEvent::planned(origin.clone(), 0));
            }
        }
        planned
    }

    /// Notes that all slots of a range exist.
    pub(crate) fn cover(&mut self, id: &WorkflowId, range: Range) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let planned = &mut task.row.planned;
        planned.ranges.insert(range);
        planned.until = planned.until.max(Some(range.end));
        self.turn.workflows.insert(id.clone());
    }

    /// Notes that one slot exists, wherever it lies.
    pub(crate) fn cover_slot(&mut self, slot: &SlotRef) {
        let Some(at) = slot.key.time() else { return };
        self.cover(&slot.workflow, Range::new(at, at.checked_add(TICK).unwrap_or(Timestamp::MAX)));
    }

    /// Whether all slots of a range that exist are in memory; if not, the store is asked and the
    /// workflow is planned again once it has answered.
    fn have_range(&mut self, id: &WorkflowId, range: Range) -> bool {
        let Some(task) = self.tasks.get(id) else { return false };
        if task.row.planned.until.is_none_or(|until| until <= range.start) {
            return true;
        }
        let recall = range_recall(id, range);
        if self.turn.recalled.contains(&recall) {
            return true;
        }
        self.to_plan.insert(id.clone());
        self.command(Command::Recall(recall));
        false
    }

    /// Takes in what the store answered, and goes on with what waited for it.
    pub(crate) fn recalled(&mut self, recall: Recall, rows: Vec<(SlotRef, kelos_model::Slot)>) {
        if let Recall::Slots(slots) = &recall {
            self.turn.absent.extend(slots.iter().cloned());
        }
        for (id, slot) in rows {
            self.turn.absent.remove(&id);
            self.bring_back(id, slot);
        }
        if let Recall::Slots(slots) = &recall {
            for slot in slots {
                let state = self.live(slot).map(|live| live.slot.state);
                self.tell(slot, state);
            }
        }
        self.turn.recalled.push(recall.clone());
        let parked = std::mem::take(&mut self.turn.parked);
        let (ready, waiting): (Vec<_>, Vec<_>) = parked.into_iter().partition(|(wanted, _)| *wanted == recall);
        self.turn.parked = waiting;
        for (_, input) in ready {
            if let Input::Asked { token, by, ask } = input {
                self.asked(token, by, ask);
            }
        }
    }

    /// Puts a slot of the store into memory for this turn, unless it is there, and then newer.
    fn bring_back(&mut self, id: SlotRef, slot: kelos_model::Slot) {
        let Some(task) = self.tasks.get_mut(&id.workflow) else { return };
        task.slots.entry(id.key.clone()).or_insert_with(|| crate::memory::Live::new(slot));
        self.turn.cold.insert(id);
    }
}

pub(crate) fn range_recall(id: &WorkflowId, range: Range) -> Recall {
    Recall::Range { workflow: id.clone(), start: range.start, end: range.end }
}
