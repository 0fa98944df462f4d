//! A workflow's backlog beside its queue: which of its times are among the first of all that may run. Reads organs, and changes none.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::{SlotKey, SlotRef, Stretch, WorkflowId};

use crate::frontier::{Frontier, UpstreamCheck};
use crate::permits::{Permits, Position, Queue};
use crate::plan::TICK;
use crate::slots::SlotTable;
use crate::workflows::{WorkflowState, Workflows};

/// Slots that are asked about at once whether they have succeeded.
const ASKED_AT_ONCE: usize = 256;

/// The backlog of a workflow, and what stands beside it.
pub(crate) struct BacklogOf<'a> {
    pub(crate) id: &'a WorkflowId,
    pub(crate) workflow: &'a WorkflowState,
    pub(crate) slots: &'a SlotTable,
    pub(crate) permits: &'a Permits,
    pub(crate) frontier: &'a Frontier,
    /// So many slots are queued before the next are left in the backlog.
    pub(crate) size: usize,
}

/// The times of a backlog that go next.
#[derive(Default)]
pub(crate) struct Next {
    /// The times that are among the first, in the order in which they go.
    pub(crate) times: Vec<Position>,
    /// The first that is not, and how many slots go before it; none where all that may go are among the first.
    pub(crate) cutoff: Option<(Position, usize)>,
    /// The question that comes before more can be said, where there is room for more.
    pub(crate) check: Option<UpstreamCheck>,
}

impl BacklogOf<'_> {
    /// Whether times may be left in it: what they wait for lets ranges be passed over.
    pub(crate) fn is_kept(&self) -> bool {
        self.frontier.prerequisites(self.id).is_some()
    }

    /// The times that go next, no more than so many.
    pub(crate) fn next(&self, schedule: &CronSchedule, now: Timestamp, most: usize) -> Next {
        // There is never room for more.
        let most = if self.is_kept() { most.min(self.size) } else { most };
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
            let cutoff = found.get(room).map(|position| (position.clone(), ahead + room));
            found.truncate(room);
            return Next { times: found, cutoff, check: None };
        }
        let Some((position, check)) = check else { return Next { times: found, ..Next::default() } };
        found.push(position);
        let has_room = self.room_for(&found).0 == found.len();
        let position = found.pop();
        match has_room {
            true => Next { times: found, cutoff: None, check: Some(check) },
            false => Next { times: found, cutoff: position.map(|position| (position, ahead + room)), check: None },
        }
    }

    /// The stretches that may go, in the order in which their times go.
    fn stretches(&self) -> Vec<Stretch> {
        let start_time = self.workflow.definition().start_time.unwrap_or(Timestamp::MIN);
        let is_paused = |stretch: &Stretch| stretch.backfill.as_ref().is_some_and(|id| self.workflow.has_paused(id));
        let may_go = |stretch: &&Stretch| stretch.killed.is_none() && !is_paused(stretch);
        let from_start = |stretch: &Stretch| {
            let mut stretch = stretch.clone();
            if stretch.backfill.is_none() {
                stretch.range.start = stretch.range.start.max(start_time);
            }
            stretch
        };
        let all = self.slots.backlog(self.id).stretches().iter().filter(may_go).map(from_start);
        let mut open: Vec<Stretch> = all.filter(|stretch| !stretch.range.is_empty()).collect();
        open.sort_by_key(|stretch| (Reverse(stretch.priority), stretch.range.start));
        open
    }

    /// How many of these, in the order in which they go, are among the first of all that are queued or may be; and how many queued
    /// ones go before the last of them, or before the first that is not.
    fn room_for(&self, found: &[Position]) -> (usize, usize) {
        if !self.is_kept() {
            return (found.len(), 0);
        }
        let all = self.room_beside(found, &|_| true);
        if all.0 == found.len() {
            return all;
        }
        // What lies dormant in the queue is in nobody's way.
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
            if ahead + index >= self.size {
                return (index, ahead);
            }
        }
        (found.len(), ahead)
    }

    /// How many slots go before one of its times, as far as triggers let them; none where it is none of them.
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

    /// The moment at which time alone lets more of it go.
    pub(crate) fn free_at(&self, schedule: &CronSchedule, now: Timestamp) -> Option<Timestamp> {
        let prerequisites = self.frontier.prerequisites(self.id)?;
        let bound = prerequisites.free_until(now);
        let stretches = self.stretches();
        let late = stretches.iter().filter(|stretch| stretch.range.end > bound);
        let first = |stretch: &Stretch| schedule.times(stretch.range.start.max(bound), stretch.range.end).next();
        late.filter_map(|stretch| prerequisites.free_at(first(stretch)?)).min()
    }
}

/// As much of a range as is asked at once, and the times in it whose slot may have succeeded: it was planned, and is not in a backlog
/// itself.
pub(crate) fn page_of(
    check: &UpstreamCheck,
    schedule: &CronSchedule,
    workflows: &Workflows,
    slots: &SlotTable,
) -> (UpstreamCheck, Vec<Timestamp>) {
    let (upstream, offset) = &check.upstream;
    let range = check.range;
    let mut page = UpstreamCheck { upstream: check.upstream.clone(), range };
    let span = SignedDuration::from_secs(*offset);
    let later = |at: Timestamp| at.checked_add(span).unwrap_or(Timestamp::MAX);
    let earlier = |at: Timestamp| at.checked_sub(span).unwrap_or(Timestamp::MIN);
    let mut times = Vec::new();
    // A workflow that never was has no slots.
    let Some(workflow) = workflows.get(upstream) else { return (page, times) };
    for part in workflow.planned().ranges.within(Range::new(later(range.start), later(range.end))) {
        let mut planned = RangeSet::default();
        slots.backlog(upstream).within(part).for_each(|stretch| planned.insert(stretch.range));
        for part in planned.gaps(part) {
            for time in schedule.times(earlier(part.start), earlier(part.end)) {
                if times.len() == ASKED_AT_ONCE {
                    page.range.end = time;
                    return (page, times);
                }
                times.push(time);
            }
        }
    }
    (page, times)
}

/// A range without the times of which a workflow has slots of their own in memory.
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
