//! The times that a definition turns into slots by itself, from now on.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{CatchUp, PlanState, Workflow, WorkflowRow};
use crate::ranges::{Range, RangeSet};
use crate::time::CronSchedule;
use crate::trigger::SlotTimes;

/// The reason for which times since the start of a workflow are left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldBack {
    /// They passed before the schedule was first seen, and only later ones are caught up with.
    Latest,
    /// They passed, and none are caught up with.
    Skip,
    /// They lie before the planning window.
    Window,
}

impl HoldBack {
    pub(super) fn of(policy: Option<CatchUp>) -> HoldBack {
        match policy {
            Some(CatchUp::Latest) => HoldBack::Latest,
            Some(CatchUp::Skip) => HoldBack::Skip,
            Some(CatchUp::All) | None => HoldBack::Window,
        }
    }

    /// The reason in words, of several times.
    pub(super) fn words(self) -> &'static str {
        match self {
            HoldBack::Latest => "catchUp is \"latest\"",
            HoldBack::Skip => "catchUp is \"skip\"",
            HoldBack::Window => "they lie before the planning window",
        }
    }
}

/// The times that are planned already.
pub(super) struct PlannedTimes<'a> {
    /// The state of planning by the schedule, anew where it is another one.
    pub(super) planned: PlanState,
    pub(super) is_same: bool,
    /// The parts that an earlier schedule planned, whose slots are there.
    pub(super) earlier: Option<(&'a RangeSet, CronSchedule)>,
}

impl PlannedTimes<'_> {
    fn of<'a>(known: Option<&'a PlanState>, schedule: &CronSchedule, now: Timestamp) -> PlannedTimes<'a> {
        let words = serde_json::to_string(schedule).unwrap_or_default();
        if let Some(same) = known.filter(|known| known.schedule == words) {
            return PlannedTimes { planned: same.clone(), is_same: true, earlier: None };
        }
        let since = Some(schedule.due_in(Range::new(now, Timestamp::MAX)).start);
        let earlier = known.and_then(|known| Some((&known.ranges, serde_json::from_str(&known.schedule).ok()?)));
        PlannedTimes { planned: PlanState { since, ..PlanState::default() }, is_same: false, earlier }
    }
}

/// The planning of a definition beside the row that is stored of its workflow.
pub(super) struct Opening<'a> {
    pub(super) definition: &'a Workflow,
    pub(super) schedule: &'a CronSchedule,
    /// Its start and its end.
    pub(super) bounds: Range,
    pub(super) known: PlannedTimes<'a>,
    /// It opens no slots of before this by itself.
    pub(super) from: Timestamp,
    /// Slots of before this are due.
    pub(super) due: Timestamp,
    /// Whether nothing is stored of the workflow.
    is_new: bool,
}

impl<'a> Opening<'a> {
    /// The planning of a definition, with a planning window that ends now; none where its workflow is left alone.
    pub(super) fn of(
        definition: &'a Workflow,
        row: Option<&'a WorkflowRow>,
        schedule: &'a CronSchedule,
        window: SignedDuration,
        now: Timestamp,
    ) -> Option<Opening<'a>> {
        if row.is_some_and(|row| row.paused || row.frozen().is_some()) {
            return None;
        }
        let known = PlannedTimes::of(row.map(|row| &row.planned), schedule, now);
        let window_start = now.checked_sub(window).unwrap_or(Timestamp::MIN);
        let misfires = definition.misfires(&known.planned, schedule, window_start, now);
        let due = schedule.due_in(Range::new(window_start, now));
        let from = misfires.map_or_else(|| definition.opens_from(&known.planned), |misfires| misfires.since);
        let from = from.max(due.start);
        let bounds = definition.bounds(schedule);
        Some(Opening { definition, schedule, bounds, known, from, due: due.end, is_new: row.is_none() })
    }

    /// The range of the times that are due and that it opens, unless they are planned.
    pub(super) fn past(&self) -> Range {
        Range::new(self.from, self.due.min(self.bounds.end))
    }

    /// The times of all slots that its workflow may have.
    pub(super) fn slot_times(&self) -> SlotTimes {
        SlotTimes::new(self.schedule, self.bounds)
    }

    /// Whether there may be a slot at a time, now or once it is due. The slots that a workflow has had are not known here.
    pub(super) fn may_have(&self, time: Timestamp) -> bool {
        if time < self.from { !self.is_new } else { self.bounds.contains(time) && self.schedule.contains(time) }
    }
}
