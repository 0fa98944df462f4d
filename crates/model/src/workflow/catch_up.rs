//! The times of a schedule that are planned now: those of the planning window that were not planned before, without the misfires that
//! are passed over.

use jiff::{SignedDuration, Timestamp};

use super::{CatchUp, PlanState, Workflow, WorkflowRow};
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

/// The number of past slots that a definition will open once it is in force, beside the row that is stored of its workflow. Slots of
/// its times that somebody requested count, too.
#[must_use]
pub fn past_slots(
    definition: &Workflow,
    row: Option<&WorkflowRow>,
    schedule: &CronSchedule,
    window: SignedDuration,
    now: Timestamp,
) -> u64 {
    if row.is_some_and(|row| row.paused || row.frozen().is_some()) {
        return 0;
    }
    let known = row.map(|row| &row.planned);
    let is_same = known.is_some_and(|known| serde_json::to_string(schedule).is_ok_and(|words| words == known.schedule));
    let planned = match known.filter(|_| is_same) {
        Some(known) => known.clone(),
        None => {
            PlanState { since: Some(schedule.due_in(Range::new(now, Timestamp::MAX)).start), ..PlanState::default() }
        }
    };
    let window_start = now.checked_sub(window).unwrap_or(Timestamp::MIN);
    let misfires = definition.misfires(&planned, schedule, window_start, now);
    let due = schedule.due_in(Range::new(window_start, now));
    let from = misfires.map_or(definition.opens_from(&planned), |misfires| misfires.since).max(due.start);
    let gaps = planned.ranges.gaps(Range::new(from, due.end.min(definition.bounds(schedule).end)));
    // Slots that an earlier schedule planned are there.
    let earlier = known.filter(|_| !is_same);
    let earlier = earlier.and_then(|known| Some((known, serde_json::from_str::<CronSchedule>(&known.schedule).ok()?)));
    match earlier {
        None => gaps.iter().map(|gap| schedule.count(*gap)).sum(),
        Some((known, before)) => {
            let is_new = |at: &Timestamp| {
                let at = Range::new(*at, *at + SignedDuration::from_millis(1));
                !known.ranges.gaps(at).is_empty() || !before.contains(at.start)
            };
            gaps.iter().flat_map(|gap| schedule.times(gap.start, gap.end)).filter(is_new).count() as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::WorkflowId;
    use crate::time::{Cron, Schedule};
    use crate::workflow::{Job, Moments};

    const WEEK: SignedDuration = SignedDuration::from_hours(168);

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 / 3600 * 3600 + hours * 3600).expect("a time")
    }

    fn hourly(catch_up: Option<CatchUp>) -> Workflow {
        let schedule = Schedule::Cron(CronSchedule::hourly());
        let id = WorkflowId::new("a").expect("an id");
        Workflow { catch_up, ..Workflow::new(id, schedule, Job::new("command", serde_json::Map::new())) }
    }

    /// Planned from hour 0 until an hour, and first seen at hour 0.
    fn row(definition: &Workflow, until: i64) -> WorkflowRow {
        let mut planned = PlanState { since: Some(at(0)), ..PlanState::default() };
        planned.schedule = serde_json::to_string(&CronSchedule::hourly()).expect("json");
        planned.ranges.insert(Range::new(at(0), at(until)));
        WorkflowRow {
            id: definition.id.clone(),
            definition: Arc::new(definition.clone()),
            version: 1,
            present: true,
            enabled: true,
            paused: false,
            planned,
            moments: Moments::default(),
        }
    }

    #[test]
    fn what_is_new_opens_the_window_or_nothing() {
        let count = |catch_up| past_slots(&hourly(catch_up), None, &CronSchedule::hourly(), WEEK, at(0));
        assert_eq!([None, Some(CatchUp::All), Some(CatchUp::Latest), Some(CatchUp::Skip)].map(count), [168, 168, 0, 0]);
    }

    #[test]
    fn an_outage_is_caught_up_with_as_the_policy_has_it() {
        let now = at(10) + SignedDuration::from_mins(5);
        let count = |catch_up| {
            let definition = hourly(catch_up);
            past_slots(&definition, Some(&row(&definition, 6)), &CronSchedule::hourly(), WEEK, now)
        };
        // The window reaches to before the schedule was first seen.
        assert_eq!([None, Some(CatchUp::All), Some(CatchUp::Latest), Some(CatchUp::Skip)].map(count), [162, 162, 1, 0]);
        let mut paused = row(&hourly(None), 6);
        paused.paused = true;
        assert_eq!(past_slots(&hourly(None), Some(&paused), &CronSchedule::hourly(), WEEK, now), 0);
    }

    #[test]
    fn a_time_that_is_only_slightly_late_is_the_latest() {
        let now = at(10) + SignedDuration::from_secs(30);
        let definition = hourly(Some(CatchUp::Latest));
        let planned = row(&definition, 6).planned;
        let misfires = definition.misfires(&planned, &CronSchedule::hourly(), at(-168), now).expect("misfires");
        assert_eq!((misfires.times, misfires.range.start, misfires.since), (4, at(6), now - LATE));
        let later = at(10) + SignedDuration::from_mins(5);
        let misfires = definition.misfires(&planned, &CronSchedule::hourly(), at(-168), later).expect("misfires");
        assert_eq!((misfires.times, misfires.range, misfires.since), (4, Range::new(at(6), at(10)), at(10)));
    }

    #[test]
    fn a_change_opens_what_it_adds() {
        let half = CronSchedule::utc(Cron::parse("0,30 * * * *").expect("an expression"));
        let now = at(6);
        let count = |catch_up| past_slots(&hourly(catch_up), Some(&row(&hourly(catch_up), 6)), &half, WEEK, now);
        assert_eq!(count(None), 168 + 162, "those of six hours are there");
        assert_eq!(count(Some(CatchUp::Latest)), 0, "a changed schedule counts from its change");
        let wider = |catch_up| {
            past_slots(
                &hourly(catch_up),
                Some(&row(&hourly(Some(CatchUp::Skip)), 6)),
                &CronSchedule::hourly(),
                WEEK,
                now,
            )
        };
        assert_eq!(wider(Some(CatchUp::All)), 162);
    }
}
