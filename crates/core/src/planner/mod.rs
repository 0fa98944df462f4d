//! Planning: which times of a schedule become slots now, which stay in the backlog, and which of those are next.
//!
//! It decides, and the core makes the slots and records what was planned. It reads workflows, slots and queues from the
//! organs that own them. Absent: the log, and the creation of slots.

mod backlog;
mod frontier;
mod upstream_page;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_model::ranges::{Range, RangeSet};
use kelos_model::time::CronSchedule;
use kelos_model::workflow::PlanMisfires;
use kelos_model::{Breach, SlotRef, WorkflowId};

pub(crate) use backlog::{BacklogOf, Draw, Next, free_of_slots};
pub(crate) use upstream_page::UpstreamPage;

use crate::Config;
use crate::due_set::DueSet;
use crate::filter::WorkflowFilter;
use crate::moments::TICK;
use crate::permits::{Permits, Position};
use crate::slots::SlotTable;
use crate::workflows::{WorkflowState, Workflows};
use frontier::{Cutoff, Frontier};

/// The workflows to be planned, and the readiness of backlogs.
pub(crate) struct Planner {
    /// The workflows whose schedule may have new times, or whose backlog more slots.
    due: DueSet,
    frontier: Frontier,
    /// The settings, of which the planning window and the frontier count here.
    config: Config,
}

/// The part of a schedule to be planned now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The ranges to plan, ascending; none of them was planned before.
    pub(crate) parts: Vec<PlanPart>,
    /// Whether they are all that the window holds.
    pub(crate) is_whole: bool,
}

/// A range that is planned at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlanPart {
    /// These are all its times, and become slots.
    Slots { range: Range, times: Vec<Timestamp> },
    /// All its times stay in the backlog.
    Backlog { range: Range },
}

impl PlanPart {
    /// The range of the part.
    pub(crate) fn range(&self) -> Range {
        match self {
            PlanPart::Slots { range, .. } | PlanPart::Backlog { range } => *range,
        }
    }
}

impl Planner {
    pub(crate) fn new(config: &Config) -> Planner {
        Planner { due: DueSet::default(), frontier: Frontier::default(), config: config.clone() }
    }

    /// Marks a workflow for planning with the next tick.
    pub(crate) fn plan_soon(&mut self, id: &WorkflowId) {
        self.due.insert(id);
    }

    /// Takes the first breach out, if there is one.
    pub(crate) fn take_breach(&mut self) -> Option<Breach> {
        self.frontier.take_breach()
    }

    /// The number of workflows to be planned.
    pub(crate) fn count_due(&self) -> usize {
        self.due.len()
    }

    /// Takes the workflows to be planned that a tick includes.
    pub(crate) fn take_due(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        self.due.take_all(only)
    }

    /// Puts the workflows to be planned in order, each with the first time that is not planned.
    pub(crate) fn line_up_due(&mut self, workflows: &Workflows, now: Timestamp) {
        let config = &self.config;
        self.due.line_up(|id| Some(first_unplanned(workflows.get(id)?, config, now)));
    }

    /// Takes the next workflow to be planned, of those that a tick includes.
    pub(crate) fn take_next_due(&mut self, only: &WorkflowFilter) -> Option<WorkflowId> {
        self.due.take_next(only)
    }

    /// Notes how many slots were planned of the workflow that was taken last.
    pub(crate) fn charge_due(&mut self, slots: usize) {
        self.due.charge(slots);
    }

    /// Whether a tick has something to plan or to draw from a backlog.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty() || self.frontier.is_due()
    }

    /// Whether slots of a workflow are about to be planned, or drawn from its backlog.
    pub(crate) fn is_busy(&self, id: &WorkflowId) -> bool {
        self.due.contains(id) || self.frontier.is_woken(id)
    }

    /// Whether this is the first of a workflow's backlog that may run, and is not queued because enough is.
    pub(crate) fn is_cut_off(&self, id: &WorkflowId, position: &Position) -> bool {
        self.frontier.cutoff(id) == Some(position)
    }

    /// Takes the prerequisites of a workflow's slots, which decide whether its times may stay in a backlog.
    pub(crate) fn agree(&mut self, id: &WorkflowId, workflow: &WorkflowState) {
        let definition = workflow.definition();
        // A timeout ends slots while they wait, and constraints count from the moment of an evaluation.
        let is_plain = definition.wait_timeout_seconds.is_none() && definition.constraints.is_empty();
        let may_be_left = is_plain && definition.keys.jobs().is_none();
        self.frontier.agree(id, definition.trigger.prerequisites().filter(|_| may_be_left));
        self.due.insert(id);
    }

    /// The unplanned times in the window of a workflow: up to `most` slots, or a backlog.
    pub(crate) fn plan(
        &self,
        id: &WorkflowId,
        workflow: &WorkflowState,
        schedule: &CronSchedule,
        now: Timestamp,
        most: usize,
    ) -> Plan {
        let window = window(workflow, schedule, &self.config, now);
        let room = self.frontier.prerequisites(id).map(|_| self.config.most_planned(workflow.definition()));
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

    /// The misfires of a schedule that are not caught up with; none if there are none.
    pub(crate) fn misfires(
        &self,
        workflow: &WorkflowState,
        schedule: &CronSchedule,
        now: Timestamp,
    ) -> Option<PlanMisfires> {
        workflow.definition().misfires(workflow.planned(), schedule, window_start(&self.config, now), now)
    }

    /// The backlog of a workflow beside its queue; none if there is no such workflow.
    pub(crate) fn backlog<'a>(
        &'a self,
        id: &'a WorkflowId,
        workflows: &'a Workflows,
        slots: &'a SlotTable,
        permits: &'a Permits,
    ) -> Option<BacklogOf<'a>> {
        let workflow = workflows.get(id)?;
        let definition = workflow.definition();
        let (most_planned, most_queued) = (self.config.most_planned(definition), self.config.most_queued(definition));
        Some(BacklogOf { id, workflow, slots, permits, frontier: &self.frontier, most_planned, most_queued })
    }

    /// Notes that ranges are newly in the backlog of a workflow.
    pub(crate) fn follow_backlog(&mut self, id: &WorkflowId, ranges: &RangeSet) {
        ranges.ranges().iter().for_each(|range| self.frontier.forget(id, *range));
        self.due.insert(id);
    }

    /// Has slots made of a workflow's backlog, if any may run.
    pub(crate) fn draw_soon(&mut self, id: &WorkflowId) {
        self.frontier.wake(id);
    }

    /// The number of workflows whose backlogs may have times that become slots.
    pub(crate) fn count_to_draw(&self) -> usize {
        self.frontier.count_woken()
    }

    /// Puts these workflows in order.
    pub(crate) fn line_up_to_draw(&mut self) {
        self.frontier.line_up_woken();
    }

    /// Takes the workflows whose backlogs may have times that become slots and that a tick includes.
    pub(crate) fn take_to_draw(&mut self, only: &WorkflowFilter) -> BTreeSet<WorkflowId> {
        self.frontier.take_woken(only)
    }

    /// Takes the one of these workflows that has waited longest, of those that wait since [`Planner::line_up_to_draw`].
    pub(crate) fn take_next_to_draw(&mut self, only: &WorkflowFilter) -> Option<WorkflowId> {
        self.frontier.take_next_woken(only)
    }

    /// Notes the first time of a backlog that may run and is not queued; none if there is no such time.
    pub(crate) fn cut_off(&mut self, id: &WorkflowId, first: Option<Cutoff>) {
        self.frontier.cut_off(id, first);
    }

    /// Takes the answer of the past about the upstream slots of a backlog.
    pub(crate) fn answered(&mut self, id: &WorkflowId, page: &UpstreamPage, succeeded: &[Range]) {
        self.frontier.answered(id, page.check(), succeeded);
    }

    /// Notes that a slot has left the queue, so that more may be drawn from the backlog.
    pub(crate) fn dequeued(&mut self, id: &WorkflowId, position: &Position) {
        self.frontier.dequeued(id, position);
    }

    /// Notes the success of a slot that times in backlogs may depend on.
    pub(crate) fn succeeded(&mut self, slot: &SlotRef, slots: &SlotTable, workflows: &Workflows) {
        for (dependent, upstream) in self.frontier.dependents(slot, workflows) {
            let planned = slots.get(&dependent).filter(|_| slots.is_planned(&dependent));
            // Most dependents are slots of their own, to which the success is announced otherwise.
            let Some(position) = planned.map(|live| Position::of(&live.slot, &dependent.key)) else { continue };
            self.frontier.succeeded(&dependent, &upstream, &position);
        }
    }

    /// Notes that the periods that a workflow waits for may be others now.
    pub(crate) fn forget_periods(&mut self, id: &WorkflowId) {
        self.frontier.forget_periods(id);
    }
}

/// The range of times that are planned.
fn window(workflow: &WorkflowState, schedule: &CronSchedule, config: &Config, now: Timestamp) -> Range {
    let (due, bounds) = (schedule.due_in(Range::new(window_start(config, now), now)), workflow.bounds(schedule));
    Range::new(due.start.max(workflow.opens_from()), due.end.min(bounds.end))
}

fn window_start(config: &Config, now: Timestamp) -> Timestamp {
    now.checked_sub(config.planning_window).unwrap_or(Timestamp::MIN)
}

/// The first time of a workflow that is to be planned. One with nothing to plan comes before all others, because it takes no time.
fn first_unplanned(workflow: &WorkflowState, config: &Config, now: Timestamp) -> Timestamp {
    let first = workflow.ticks().and_then(|schedule| {
        let gaps = workflow.planned().ranges.gaps(window(workflow, schedule, config, now));
        gaps.into_iter().find_map(|gap| schedule.times(gap.start, gap.end).next())
    });
    first.unwrap_or(Timestamp::MAX)
}

/// The moment at which the next slot of a schedule is planned. A slot exists once it is due: the end of the window is
/// exclusive.
pub(crate) fn next_planning(workflow: &WorkflowState, schedule: &CronSchedule, now: Timestamp) -> Option<Timestamp> {
    let not_yet = schedule.due_in(Range::new(now, Timestamp::MAX)).start;
    let next =
        schedule.first_from(not_yet.max(workflow.opens_from())).filter(|next| *next < workflow.bounds(schedule).end)?;
    schedule.due(next).checked_add(TICK).ok()
}
