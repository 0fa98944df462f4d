//! Planning: which times of a schedule become slots now, which are left in the backlog, and which of those go next.
//!
//! It decides, and the core makes the slots and records what was planned. What it has to know of workflows, slots and queues it
//! reads of the organs that have them. Absent: the log, and how a slot is made.

mod backlog;
mod frontier;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::{Breach, SlotRef, WorkflowId};

pub(crate) use backlog::{BacklogOf, Draw, Next, UpstreamPage, free_of_slots};

use crate::Config;
use crate::filter::{WorkflowFilter, take_allowed};
use crate::moments::TICK;
use crate::permits::{Permits, Position};
use crate::slots::SlotTable;
use crate::workflows::{WorkflowState, Workflows};
use frontier::Frontier;

/// The workflows that are to be planned, and the parts of backlogs that may go.
pub(crate) struct Planner {
    /// Workflows whose schedule may have new times, or whose backlog more slots.
    due: BTreeSet<WorkflowId>,
    frontier: Frontier,
    /// How far back from now slots are planned.
    window: SignedDuration,
    /// So many slots of a workflow are queued before the next are left in its backlog.
    size: usize,
}

/// The part of a schedule that is to be planned now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Ranges, ascending, none of which was planned before.
    pub(crate) parts: Vec<PlanPart>,
    /// Whether that is all that its window holds.
    pub(crate) is_whole: bool,
}

/// A range that is planned at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlanPart {
    /// These times of it become slots; it has no others.
    Slots { range: Range, times: Vec<Timestamp> },
    /// All of it is left in the backlog.
    Backlog { range: Range },
}

impl PlanPart {
    /// The range.
    pub(crate) fn range(&self) -> Range {
        match self {
            PlanPart::Slots { range, .. } | PlanPart::Backlog { range } => *range,
        }
    }
}

impl Planner {
    pub(crate) fn new(config: &Config) -> Planner {
        Planner {
            due: BTreeSet::new(),
            frontier: Frontier::default(),
            window: config.planning_window,
            size: config.frontier.max(1),
        }
    }

    /// Has a workflow be planned with the next tick.
    pub(crate) fn plan_soon(&mut self, id: &WorkflowId) {
        self.due.insert(id.clone());
    }

    /// Takes out what broke.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.frontier.take_breach()
    }

    /// Takes the workflows that are to be planned, of those that a tick is about.
    pub(crate) fn take_due(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        take_allowed(&mut self.due, only)
    }

    /// Whether a tick would find something to plan or to make of a backlog.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty() || self.frontier.is_due()
    }

    /// Takes what the slots of a workflow wait for: whether any of its times may be left in a backlog.
    pub(crate) fn agree(&mut self, id: &WorkflowId, workflow: &WorkflowState) {
        let definition = workflow.definition();
        // A timeout ends slots while they wait, and constraints count from when a slot was looked at.
        let is_plain = definition.wait_timeout_seconds.is_none() && definition.constraints.is_empty();
        let may_be_left = is_plain && definition.keys.jobs().is_none();
        self.frontier.agree(id, definition.trigger.prerequisites().filter(|_| may_be_left));
        self.due.insert(id.clone());
    }

    /// The times in the window of a workflow that are not planned yet: no more than so many slots, or a backlog.
    pub(crate) fn plan(
        &self,
        id: &WorkflowId,
        workflow: &WorkflowState,
        schedule: &CronSchedule,
        now: Timestamp,
        most: usize,
    ) -> Plan {
        let window_start = now.checked_sub(self.window).unwrap_or(Timestamp::MIN);
        let window = Range::new(window_start.max(start_of(workflow)), now);
        let room = self.frontier.prerequisites(id).map(|_| self.size);
        let mut left = most;
        let mut parts = Vec::new();
        for gap in workflow.planned().ranges.gaps(window) {
            let mut coming = schedule.times(gap.start, gap.end);
            let times: Vec<_> = coming.by_ref().take(left.min(room.unwrap_or(left))).collect();
            let rest = coming.next();
            if rest.is_some() && room.is_some() {
                parts.push(PlanPart::Backlog { range: gap });
                continue;
            }
            left -= times.len();
            if !times.is_empty() {
                parts.push(PlanPart::Slots { range: Range::new(gap.start, rest.unwrap_or(gap.end)), times });
            }
            if rest.is_some() {
                return Plan { parts, is_whole: false };
            }
        }
        Plan { parts, is_whole: true }
    }

    /// The backlog of a workflow beside its queue; none where there is no such workflow.
    pub(crate) fn backlog<'a>(
        &'a self,
        id: &'a WorkflowId,
        workflows: &'a Workflows,
        slots: &'a SlotTable,
        permits: &'a Permits,
    ) -> Option<BacklogOf<'a>> {
        let workflow = workflows.get(id)?;
        Some(BacklogOf { id, workflow, slots, permits, frontier: &self.frontier, size: self.size })
    }

    /// Notes that ranges are in the backlog of a workflow from now on.
    pub(crate) fn follow_backlog(&mut self, id: &WorkflowId, ranges: &RangeSet) {
        ranges.ranges().iter().for_each(|range| self.frontier.forget(id, *range));
        self.due.insert(id.clone());
    }

    /// Has slots made of a workflow's backlog, where any may go.
    pub(crate) fn draw_soon(&mut self, id: &WorkflowId) {
        self.frontier.wake(id);
    }

    /// How many workflows there are of whose backlogs slots may be made.
    pub(crate) fn count_to_draw(&self) -> usize {
        self.frontier.count_woken()
    }

    /// Takes the workflows of whose backlogs slots may be made, of those that a tick is about.
    pub(crate) fn take_to_draw(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        self.frontier.take_woken(only)
    }

    /// Notes the first time of a backlog that may go and is not queued, and how many slots go before it; none where there is none.
    pub(crate) fn cut_off(&mut self, id: &WorkflowId, first: Option<(Position, usize)>) {
        self.frontier.cut_off(id, first);
    }

    /// Takes what the past says of slots that a backlog waits for.
    pub(crate) fn answered(&mut self, id: &WorkflowId, page: &UpstreamPage, succeeded: &[Range]) {
        self.frontier.answered(id, page.check(), succeeded);
    }

    /// Notes that a slot has left the queue: more may be made of the backlog.
    pub(crate) fn dequeued(&mut self, id: &WorkflowId, position: &Position) {
        self.frontier.dequeued(id, position, self.size.div_ceil(2));
    }

    /// Notes that a slot has succeeded, where times of backlogs wait for it.
    pub(crate) fn succeeded(&mut self, slot: &SlotRef, slots: &SlotTable) {
        for dependent in self.frontier.dependents(slot) {
            let planned = slots.get(&dependent).filter(|_| slots.is_planned(&dependent));
            // Most have slots of their own, which hear of it themselves.
            let Some(position) = planned.map(|live| Position::of(&live.slot, &dependent.key)) else { continue };
            self.frontier.succeeded(slot, &dependent, &position);
        }
    }
}

/// When the next slot of a schedule is to be planned. It exists once its time has passed: the window's end is exclusive.
pub(crate) fn next_planning(workflow: &WorkflowState, schedule: &CronSchedule, now: Timestamp) -> Option<Timestamp> {
    let after = (now - TICK).max(start_of(workflow).checked_sub(TICK).unwrap_or(Timestamp::MIN));
    schedule.next_after(after).map(|next| next + TICK)
}

/// The moment before which a workflow has no slots that nobody asks for.
fn start_of(workflow: &WorkflowState) -> Timestamp {
    workflow.definition().start_time.unwrap_or(Timestamp::MIN)
}
