//! The queued slots that would run together: adjacent times of a schedule, of the same backfill, priority and number of retries.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::time::CronSchedule;
use kelos_model::{BatchRule, Slot, SlotKey, SlotRef, SlotState, WorkflowId};

use crate::permits::{Lot, LotWait, Position, Queue, Readiness};
use crate::planner::Planner;
use crate::slots::SlotTable;
use crate::wakes::Wakes;
use crate::workflows::{WorkflowState, Workflows};

/// The view of the organs that decide which queued slots may run, and which of them together.
pub(crate) struct Candidates<'a> {
    pub(crate) now: Timestamp,
    pub(crate) workflows: &'a Workflows,
    pub(crate) slots: &'a SlotTable,
    pub(crate) wakes: &'a Wakes,
    pub(crate) planner: &'a Planner,
}

/// A row of adjacent slots that are queued and ready.
struct Row<'a> {
    id: &'a WorkflowId,
    workflow: &'a WorkflowState,
    schedule: &'a CronSchedule,
    first: &'a Position,
    /// The first slot, which the others are like.
    like: Slot,
    /// Their times, ascending.
    times: Vec<Timestamp>,
    /// The moment since which the longest-waiting of them is queued.
    since: Timestamp,
}

impl Readiness for Candidates<'_> {
    fn is_ready(&self, id: &WorkflowId, key: &SlotKey) -> bool {
        // A killed run that has not ended yet blocks its slot; so does a time that is no longer in the schedule.
        let live = self.slots.get(&SlotRef::new(id.clone(), key.clone()));
        let Some((live, workflow)) = live.filter(|live| !live.slot.run_alive).zip(self.workflows.get(id)) else {
            return false;
        };
        workflow.dormant(key, Some(&live.slot)).is_none() && workflow.comes_at(key, &live.slot, self.now).is_none()
    }

    fn lot(&self, id: &WorkflowId, queue: &Queue, first: &Position) -> Lot {
        let Some((row, batching)) = self.row(id, queue, first).zip(queue.batching()) else { return Lot::alone() };
        let wait = self.wait(&row, batching);
        let others = row.times.into_iter().skip(1).collect();
        match wait {
            Some(wait) => Lot::Waits { others, wait },
            None => Lot::Goes(others),
        }
    }
}

impl Candidates<'_> {
    /// The number of slots with which a queued slot waits for more, and the end of the wait; none if it does not wait for others.
    pub(crate) fn wait_of(&self, id: &WorkflowId, queue: &Queue, position: &Position) -> Option<(usize, LotWait)> {
        let ready = queue.waiting().map(|(one, _)| one).filter(|one| self.is_ready(id, &one.key));
        let mut taken: BTreeSet<Position> = BTreeSet::new();
        for first in ready.take_while(|first| *first <= position) {
            if taken.remove(first) {
                continue;
            }
            let lot = self.lot(id, queue, first);
            let others: Vec<Position> = lot.others().iter().map(|time| first.beside(*time)).collect();
            if first == position || others.contains(position) {
                return match lot {
                    Lot::Waits { others, wait } => Some((others.len(), wait)),
                    Lot::Goes(_) => None,
                };
            }
            taken.extend(others);
        }
        None
    }

    /// The row of slots that begins with one.
    fn row<'a>(&'a self, id: &'a WorkflowId, queue: &Queue, first: &'a Position) -> Option<Row<'a>> {
        let size = queue.batching()?.size as usize;
        let workflow = self.workflows.get(id)?;
        let schedule = workflow.schedule().ok()?;
        let like = self.slots.get(&SlotRef::new(id.clone(), first.key.clone()))?.slot.clone();
        let (time, since) = (first.key.scheduled()?, queue.since(first)?);
        let mut row = Row { id, workflow, schedule, first, like, times: vec![time], since };
        while row.times.len() < size {
            let Some(next) = row.next() else { break };
            let Some(since) = queue.since(&first.beside(next)).filter(|_| self.is_alike(&row, next)) else { break };
            if !self.is_ready(id, &SlotKey::Time(next)) {
                break;
            }
            row.times.push(next);
            row.since = row.since.min(since);
        }
        Some(row)
    }

    /// Whether the slot of a time may run together with those of a row.
    fn is_alike(&self, row: &Row<'_>, time: Timestamp) -> bool {
        let slot = SlotRef::at(row.id.clone(), time);
        self.slots.get(&slot).is_some_and(|live| are_alike(&live.slot, &row.like))
    }

    /// The reason to wait for further slots; none if the row is full, has waited for long enough, or nothing can join it.
    fn wait(&self, row: &Row<'_>, batching: BatchRule) -> Option<LotWait> {
        if row.times.len() >= batching.size as usize {
            return None;
        }
        let beside: Vec<Timestamp> = row.next().into_iter().chain(row.previous()).collect();
        if row.next().is_some_and(|next| self.planner.is_cut_off(row.id, &row.first.beside(next))) {
            return Some(LotWait::Room);
        }
        if self.is_busy(row.id) && beside.iter().any(|time| self.may_come(row, *time, self.now)) {
            return Some(LotWait::Tick);
        }
        // Where the clock was put back, they would wait until it is where it was.
        let until = row.since.checked_add(batching.delay()).ok().filter(|_| row.since <= self.now)?;
        let waits = until > self.now && beside.iter().any(|time| self.may_come(row, *time, until));
        waits.then_some(LotWait::Until(until))
    }

    /// Whether slots of a workflow are about to be planned, evaluated or drawn from its backlog.
    fn is_busy(&self, id: &WorkflowId) -> bool {
        self.planner.is_busy(id) || self.wakes.dirty.count(id) > 0 || self.wakes.has_due_look(id, self.now)
    }

    /// Whether the slot of a time beside a row may be queued until a moment, as far as time decides it.
    fn may_come(&self, row: &Row<'_>, time: Timestamp, until: Timestamp) -> bool {
        let slot = SlotRef::at(row.id.clone(), time);
        let Some(live) = self.slots.get(&slot) else { return self.may_be_planned(row, time, until) };
        let is_coming = match live.slot.state {
            SlotState::Waiting | SlotState::Held => true,
            SlotState::Backoff => live.slot.due.is_none_or(|due| due <= until),
            _ => false,
        };
        let is_free = !live.slot.run_alive && row.workflow.dormant(&slot.key, Some(&live.slot)).is_none();
        is_coming && is_free && are_alike(&live.slot, &row.like)
    }

    /// Whether the schedule plans a slot of a time until a moment. A time that was planned and has no slot in memory is done.
    fn may_be_planned(&self, row: &Row<'_>, time: Timestamp, until: Timestamp) -> bool {
        let like = &row.like;
        let is_plain = like.backfill.is_none() && like.priority == 0 && like.retries == 0 && like.arguments().is_none();
        let is_in_bounds = row.workflow.bounds(row.schedule).contains(time) && time >= row.workflow.opens_from();
        let due = row.schedule.due(time);
        let is_to_come = !row.workflow.planned().ranges.contains(time) && self.now <= due && due <= until;
        is_plain && is_in_bounds && is_to_come
    }
}

impl Row<'_> {
    /// The time after its last.
    fn next(&self) -> Option<Timestamp> {
        self.schedule.next_after(*self.times.last()?)
    }

    /// The time before its first.
    fn previous(&self) -> Option<Timestamp> {
        self.schedule.previous_before(*self.times.first()?)
    }
}

/// Whether one run may serve both slots: they came to be in the same way, were given the same, and have failed as often.
fn are_alike(one: &Slot, other: &Slot) -> bool {
    (&one.backfill, one.priority, one.retries, one.again, one.arguments())
        == (&other.backfill, other.priority, other.retries, other.again, other.arguments())
}
