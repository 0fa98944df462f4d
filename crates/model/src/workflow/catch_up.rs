//! The times of a schedule that are planned now: those of the planning window that were not planned before, without the misfires that
//! are passed over.

use jiff::{SignedDuration, Timestamp};

use super::{CatchUp, PlanState, Workflow};
use crate::ranges::Range;
use crate::time::CronSchedule;

/// The delay from which on a time of a schedule is a misfire. Less is due to a change of leader or a busy machine.
pub const LATE: SignedDuration = SignedDuration::from_secs(60);

/// Times of a schedule that passed unplanned and are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanMisfires {
    /// The range from the first of them until those that count.
    pub range: Range,
    /// Their number.
    pub times: u32,
    /// The moment from which on times count.
    pub since: Timestamp,
}

impl Workflow {
    /// Whether times of its schedule that passed unplanned are not all caught up with.
    #[must_use]
    pub fn passes_over_misfires(&self) -> bool {
        self.catch_up.is_some_and(|policy| policy != CatchUp::All)
    }

    /// The moment before which its schedule opens no slots: its start, or, where not all of the past is caught up with, the moment
    /// at which its schedule was first seen or up to which misfires were passed over. Of slots about periods these are starts.
    #[must_use]
    pub fn opens_from(&self, planned: &PlanState) -> Timestamp {
        let start = self.start_time.unwrap_or(Timestamp::MIN);
        planned.since.filter(|_| self.passes_over_misfires()).map_or(start, |since| start.max(since))
    }

    /// The misfires of its schedule that are not caught up with; none if there are none.
    #[must_use]
    pub fn misfires(
        &self,
        planned: &PlanState,
        schedule: &CronSchedule,
        window_start: Timestamp,
        now: Timestamp,
    ) -> Option<PlanMisfires> {
        let policy = self.catch_up.filter(|policy| *policy != CatchUp::All)?;
        let late = schedule.due_in(Range::new(window_start, now.checked_sub(LATE).ok()?));
        let late = Range::new(late.start.max(self.opens_from(planned)), late.end);
        let bounds = self.bounds(schedule);
        let gaps: Vec<Range> = planned.ranges.gaps(Range::new(late.start, late.end.min(bounds.end)));
        let times: u64 = gaps.iter().map(|gap| schedule.count(*gap)).sum();
        let first = gaps.iter().find_map(|gap| schedule.times(gap.start, gap.end).next())?;
        let last = gaps.iter().rev().find_map(|gap| schedule.previous_before(gap.end).filter(|at| *at >= gap.start))?;
        // A time that is only slightly late is then the latest.
        let next = schedule.next_after(last).filter(|next| *next < bounds.end);
        let is_latest = next.is_none_or(|next| schedule.due(next) >= now);
        let kept = policy == CatchUp::Latest && is_latest;
        let since = if kept { last } else { late.end };
        let times = u32::try_from(times.saturating_sub(u64::from(kept))).unwrap_or(u32::MAX);
        (times > 0).then(|| PlanMisfires { range: Range::new(first, since), times, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WorkflowId;
    use crate::time::Schedule;
    use crate::workflow::Job;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 / 3600 * 3600 + hours * 3600).expect("a time")
    }

    #[test]
    fn a_time_that_is_only_slightly_late_is_the_latest() {
        let schedule = Schedule::Cron(CronSchedule::hourly());
        let id = WorkflowId::new("a").expect("an id");
        let hourly = Workflow::new(id, schedule, Job::new("command", serde_json::Map::new()));
        let definition = Workflow { catch_up: Some(CatchUp::Latest), ..hourly };
        let mut planned = PlanState { since: Some(at(0)), ..PlanState::default() };
        planned.ranges.insert(Range::new(at(0), at(6)));
        let misfires = |now| definition.misfires(&planned, &CronSchedule::hourly(), at(-168), now).expect("misfires");
        let slightly = at(10) + SignedDuration::from_secs(30);
        let found = misfires(slightly);
        assert_eq!((found.times, found.range.start, found.since), (4, at(6), slightly - LATE));
        let found = misfires(at(10) + SignedDuration::from_mins(5));
        assert_eq!((found.times, found.range, found.since), (4, Range::new(at(6), at(10)), at(10)));
    }
}
