//! The backlog of a workflow beside its queue: which of its times are among the first that may run. It reads organs,
//! and changes none.

use std::cmp::Reverse;

use jiff::Timestamp;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::{SlotKey, SlotRef, Stretch, WorkflowId};

use crate::moments::TICK;
use crate::permits::{Permits, Position, Queue};
use crate::slots::SlotTable;
use crate::workflows::WorkflowState;

use super::frontier::{Cutoff, Frontier, UpstreamCheck, free_until};

/// The backlog of a workflow, with the organs that its next times depend on.
pub(crate) struct BacklogOf<'a> {
    pub(super) id: &'a WorkflowId,
    pub(super) workflow: &'a WorkflowState,
    pub(super) slots: &'a SlotTable,
    pub(super) permits: &'a Permits,
    pub(super) frontier: &'a Frontier,
    /// The most times that become slots when they are planned together.
    pub(super) most_planned: usize,
    /// The most queued slots before the next ones stay in the backlog.
    pub(super) most_queued: usize,
}

/// The next step of a backlog.
pub(crate) enum Draw {
    /// Nothing: it is empty, or its workflow is paused or frozen or has no times.
    Nothing,
    /// Something in the next tick: the limit of this one is reached, or slots that may come first are about to be
    /// queued.
    Later,
    /// An earlier schedule planned it. All of these times become slots, even killed or paused ones: each by itself is
    /// in the present schedule or not.
    ByEarlier {
        times: Vec<Timestamp>,
        /// Whether these are the last ones.
        are_last: bool,
    },
    /// These times become slots.
    Next(Next),
}

/// The next times of a backlog.
#[derive(Default)]
pub(crate) struct Next {
    /// The times that are among the first, in order.
    pub(crate) times: Vec<Position>,
    /// The first time that is not; none if all times that may run are among the first.
    pub(crate) cutoff: Option<Cutoff>,
    /// The question that has to be answered first, if there is room for more.
    pub(crate) check: Option<UpstreamCheck>,
}

impl BacklogOf<'_> {
    /// Whether times may stay in it, because their prerequisites allow whole ranges to be passed over.
    pub(crate) fn is_kept(&self) -> bool {
        self.frontier.prerequisites(self.id).is_some()
    }

    /// Whether more than this number of slots should stay in it, and may.
    pub(crate) fn takes(&self, slots: u64) -> bool {
        self.is_kept() && slots > self.most_planned as u64 && self.earlier_schedule().is_none()
    }

    /// The text of the schedule that planned it, if that is not the present one.
    pub(crate) fn earlier_schedule(&self) -> Option<String> {
        self.slots.earlier_schedule(self.id, &self.workflow.planned().schedule)
    }

    /// Its next step: up to `most` times become slots. If its slots in memory are not settled, some of them are about
    /// to be evaluated.
    pub(crate) fn draw(&self, now: Timestamp, most: usize, are_settled: bool) -> Draw {
        let Some(schedule) = self.workflow.schedule().ok().filter(|_| self.workflow.is_open()) else {
            return Draw::Nothing;
        };
        if self.slots.backlog(self.id).is_empty() {
            return Draw::Nothing;
        }
        if most == 0 {
            return Draw::Later;
        }
        if let Some(earlier) = self.slots.schedule_of_backlog(self.id).filter(|earlier| *earlier != schedule) {
            let stretches = self.slots.backlog(self.id).stretches();
            let times = stretches.iter().flat_map(|stretch| earlier.times(stretch.range.start, stretch.range.end));
            let times: Vec<Timestamp> = times.take(most).collect();
            return Draw::ByEarlier { are_last: times.len() < most, times };
        }
        if self.is_kept() && !are_settled {
            return Draw::Later;
        }
        Draw::Next(self.next(schedule, now, most))
    }

    /// The next times, up to `most`.
    fn next(&self, schedule: &CronSchedule, now: Timestamp, most: usize) -> Next {
        // There is never room for more.
        let most = if self.is_kept() { most.min(self.most_queued) } else { most };
        let mut found = Vec::new();
        let mut check = None;
        for stretch in self.stretches() {
            let left = most - found.len();
            let ready = self.frontier.ready(self.id, &stretch, schedule, now, left);
            let is_enough = ready.times.len() == left;
            let position = |time| Position::of(&stretch.slot(), &SlotKey::Time(time));
            found.extend(ready.times.into_iter().map(position));
            check = ready.check.map(|check| (position(check.range.start), check));
            if is_enough || check.is_some() {
                break;
            }
        }
        let (room, ahead) = self.room_for(&found);
        if room < found.len() {
            let cutoff = found.get(room).map(|position| self.cutoff(position.clone(), ahead + room));
            found.truncate(room);
            return Next { times: found, cutoff, check: None };
        }
        let Some((position, check)) = check else { return Next { times: found, ..Next::default() } };
        found.push(position);
        let has_room = self.room_for(&found).0 == found.len();
        let position = found.pop();
        match has_room {
            true => Next { times: found, cutoff: None, check: Some(check) },
            false => {
                Next { times: found, cutoff: position.map(|position| self.cutoff(position, ahead + room)), check: None }
            }
        }
    }

    fn cutoff(&self, position: Position, ahead: usize) -> Cutoff {
        Cutoff { position, ahead, fewest: self.most_queued.div_ceil(2) }
    }

    /// The stretches that may run, in the order of their times.
    fn stretches(&self) -> Vec<Stretch> {
        let bounds = self.workflow.schedule().map(|schedule| self.workflow.bounds(schedule));
        let bounds = bounds.unwrap_or(Range::new(Timestamp::MIN, Timestamp::MAX));
        let is_paused = |stretch: &Stretch| stretch.backfill.as_ref().is_some_and(|id| self.workflow.has_paused(id));
        let may_go = |stretch: &&Stretch| stretch.killed.is_none() && !is_paused(stretch);
        let in_bounds = |stretch: &Stretch| {
            let mut stretch = stretch.clone();
            if stretch.backfill.is_none() {
                stretch.range.start = stretch.range.start.max(bounds.start);
                stretch.range.end = stretch.range.end.min(bounds.end);
            }
            stretch
        };
        let all = self.slots.backlog(self.id).stretches().iter().filter(may_go).map(in_bounds);
        let mut open: Vec<Stretch> = all.filter(|stretch| !stretch.range.is_empty()).collect();
        open.sort_by_key(|stretch| (Reverse(stretch.priority), stretch.range.start));
        open
    }

    /// The number of these positions that are among the first of all that are queued or may be, and the number of
    /// queued slots ahead of the last of them, or of the first that is not.
    fn room_for(&self, found: &[Position]) -> (usize, usize) {
        if !self.is_kept() {
            return (found.len(), 0);
        }
        let all = self.room_beside(found, &|_| true);
        if all.0 == found.len() {
            return all;
        }
        // Dormant slots in the queue don't hold up others.
        self.room_beside(found, &|position| {
            let live = self.slots.get(&SlotRef::new(self.id.clone(), position.key.clone()));
            self.workflow.dormant(&position.key, live.as_ref().map(|live| &live.slot)).is_none()
        })
    }

    fn room_beside(&self, found: &[Position], counts: &dyn Fn(&Position) -> bool) -> (usize, usize) {
        let waiting = self.permits.queue(self.id).into_iter().flat_map(Queue::waiting);
        let mut queued = waiting.map(|(position, _)| position).filter(|position| counts(position)).peekable();
        let mut ahead = 0;
        for (index, position) in found.iter().enumerate() {
            while queued.next_if(|other| *other < position).is_some() {
                ahead += 1;
            }
            if ahead + index >= self.most_queued {
                return (index, ahead);
            }
        }
        (found.len(), ahead)
    }

    /// The number of slots ahead of one of its times, apart from triggers; none if the slot is not in it.
    pub(crate) fn ahead_of(&self, slot: &SlotRef) -> Option<usize> {
        let at = slot.key.time().filter(|_| self.slots.is_planned(slot))?;
        let live = self.slots.get(slot)?;
        let schedule = self.workflow.schedule().ok()?;
        let position = Position::of(&live.slot, &slot.key);
        let queued = self.permits.queue(self.id).map_or(0, |queue| queue.ahead(&position));
        let priority = live.slot.priority;
        let goes_first = self.stretches().into_iter().filter(|stretch| stretch.priority >= priority);
        let count = |stretch: Stretch| {
            let end = if stretch.priority == priority { stretch.range.end.min(at) } else { stretch.range.end };
            schedule.count(Range::new(stretch.range.start, end))
        };
        let planned: u64 = goes_first.map(count).sum();
        Some(queued.saturating_add(usize::try_from(planned).unwrap_or(usize::MAX)))
    }

    /// The next moment at which more of it may run by time alone.
    pub(crate) fn free_at(&self, schedule: &CronSchedule, now: Timestamp) -> Option<Timestamp> {
        let prerequisites = self.frontier.prerequisites(self.id)?;
        let bound = free_until(prerequisites, schedule, now);
        let stretches = self.stretches();
        let late = stretches.iter().filter(|stretch| stretch.range.end > bound);
        let first = |stretch: &Stretch| schedule.times(stretch.range.start.max(bound), stretch.range.end).next();
        late.filter_map(|stretch| prerequisites.free_at(schedule.due(first(stretch)?))).min()
    }
}

/// A range without the times that have slots of their own in memory.
pub(crate) fn free_of_slots(slots: &SlotTable, id: &WorkflowId, range: Range) -> RangeSet {
    let mut free = RangeSet::default();
    let mut start = range.start;
    for time in slots.times_of(id, range) {
        free.insert(Range::new(start, time));
        start = time + TICK;
    }
    free.insert(Range::new(start, range.end));
    free
}
