//! Waiting for periods: of another workflow's slots, those whose periods intersect a slot's own.
//!
//! The period of a slot reaches from its time to the next time of its schedule, whether the schedule is a calendar or a cron
//! expression. All are half-open intervals, so that a day of 23 hours intersects 23 hours.

use jiff::{SignedDuration, Timestamp};

use crate::id::WorkflowId;
use crate::ranges::Range;
use crate::time::CronSchedule;

/// The times of a workflow's slots: those of its schedule between its start and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotTimes {
    schedule: CronSchedule,
    bounds: Range,
}

impl SlotTimes {
    /// The times of a schedule within bounds.
    #[must_use]
    pub fn new(schedule: &CronSchedule, bounds: Range) -> SlotTimes {
        SlotTimes { schedule: schedule.clone(), bounds }
    }

    /// The period from a time to the next of the schedule; none where a calendar has no further boundary.
    #[must_use]
    pub fn period(&self, start: Timestamp) -> Option<Range> {
        let end = self.schedule.next_after(start);
        let end = if self.schedule.is_of_periods() { end? } else { end.unwrap_or(Timestamp::MAX) };
        Some(Range::new(start, end))
    }

    /// The slots whose periods intersect an interval, ascending.
    #[must_use]
    pub fn slots_in(&self, interval: Range) -> Vec<Timestamp> {
        if interval.is_empty() {
            return Vec::new();
        }
        let first = self.schedule.last_until(interval.start).unwrap_or(interval.start);
        let times = self.schedule.times(first.max(self.bounds.start), interval.end.min(self.bounds.end));
        times.filter(|start| self.period(*start).is_some()).collect()
    }
}

/// Periods that a trigger waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coverage<'a> {
    /// The workflow of the periods.
    pub workflow: &'a WorkflowId,
    /// The slot that is asked about lies so many seconds later.
    pub later: i64,
    /// So many seconds after the start of that slot's period the interval begins.
    pub from: i64,
    /// So many seconds after its end the interval ends.
    pub to: i64,
}

/// Periods that a trigger waits for, for those who keep them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeriodsOf {
    /// The workflow of the periods.
    pub workflow: WorkflowId,
    later: i64,
    from: i64,
    to: i64,
}

impl PeriodsOf {
    /// The same asked so many seconds later; none beyond all times.
    pub(super) fn delayed(self, seconds: i64) -> Option<PeriodsOf> {
        Some(PeriodsOf { later: self.later.checked_add(seconds)?, ..self })
    }

    /// The periods, by reference.
    #[must_use]
    pub fn coverage(&self) -> Coverage<'_> {
        Coverage { workflow: &self.workflow, later: self.later, from: self.from, to: self.to }
    }

    /// The slots that a slot of `dependent` waits for, ascending; none where its period can't be told.
    #[must_use]
    pub fn slots_of(
        &self,
        dependent: &WorkflowId,
        time: Timestamp,
        own: &SlotTimes,
        upstream: &SlotTimes,
    ) -> Option<Vec<Timestamp>> {
        let period = own.period(later(time, self.later))?;
        Some(upstream.slots_in(self.coverage().interval(dependent, period)))
    }
}

impl Coverage<'_> {
    /// The same, with a workflow of its own.
    #[must_use]
    pub fn to_owned(self) -> PeriodsOf {
        let Coverage { workflow, later, from, to } = self;
        PeriodsOf { workflow: workflow.clone(), later, from, to }
    }

    /// The interval in which a slot of `dependent` waits for periods, where the period of the slot that is asked about is this. Of its own
    /// workflow it waits for earlier ones only.
    #[must_use]
    pub fn interval(&self, dependent: &WorkflowId, period: Range) -> Range {
        let end = later(period.end, self.to);
        let end = if self.workflow == dependent { end.min(period.start) } else { end };
        Range::new(later(period.start, self.from), end)
    }

    /// The slots of `dependent` that wait for a slot, if they exist: the same algebra the other way round.
    #[must_use]
    pub fn waiting_for(
        &self,
        slot: Timestamp,
        upstream: &SlotTimes,
        dependent: &WorkflowId,
        times: &SlotTimes,
    ) -> Vec<Timestamp> {
        let Some(period) = upstream.period(slot).filter(|_| upstream.bounds.contains(slot)) else { return Vec::new() };
        let (from, to) = (self.from.saturating_neg(), self.to.saturating_neg());
        let reaches = later(period.start, to);
        let first = times.schedule.last_until(reaches).unwrap_or(reaches);
        let back = self.later.saturating_neg();
        let candidates = times.schedule.times(later(first, back), later(later(period.end, from), back));
        let waits = |candidate: &Timestamp| {
            let asked = times.period(later(*candidate, self.later));
            asked.is_some_and(|asked| self.interval(dependent, asked).intersects(&period))
        };
        candidates.filter(waits).collect()
    }
}

fn later(at: Timestamp, seconds: i64) -> Timestamp {
    let end = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use jiff::civil::Weekday;

    use super::*;
    use crate::time::{Calendar, Cron, Schedule, Zone};
    use crate::workflow::{Job, Workflow};

    const HOUR: i64 = 3600;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    fn id(name: &str) -> WorkflowId {
        WorkflowId::new(name).expect("an id")
    }

    fn paris() -> Zone {
        Zone::parse("Europe/Paris").expect("a zone")
    }

    fn times(calendar: &Calendar) -> SlotTimes {
        let schedule = Schedule::Calendar(calendar.clone());
        let workflow = Workflow::new(id("any"), schedule, Job::new("command", serde_json::Map::new()));
        SlotTimes::new(calendar.schedule(), workflow.bounds(calendar.schedule()))
    }

    /// How many periods of one calendar a slot of another waits for, and the first and the last of them.
    fn span(own: &Calendar, start: &str, upstream: &Calendar, from: i64, to: i64) -> (usize, String, String) {
        let up = id("up");
        let period = times(own).period(at(start)).expect("a period");
        let covered = Coverage { workflow: &up, later: 0, from, to };
        let slots = times(upstream).slots_in(covered.interval(&id("down"), period));
        for slot in &slots {
            let back = covered.waiting_for(*slot, &times(upstream), &id("down"), &times(own));
            assert!(back.contains(&at(start)), "{slot} doesn't lead back to {start}");
        }
        let text = |at: Option<&Timestamp>| at.map(ToString::to_string).unwrap_or_default();
        (slots.len(), text(slots.first()), text(slots.last()))
    }

    #[test]
    fn a_day_covers_the_hours_that_it_has() {
        let (days, hours) = (Calendar::daily(paris()), Calendar::hourly());
        let of = |start: &str| span(&days, start, &hours, 0, 0);
        assert_eq!(of("2026-03-27T23:00:00Z"), (24, "2026-03-27T23:00:00Z".into(), "2026-03-28T22:00:00Z".into()));
        assert_eq!(of("2026-03-28T23:00:00Z"), (23, "2026-03-28T23:00:00Z".into(), "2026-03-29T21:00:00Z".into()));
        assert_eq!(of("2026-10-24T22:00:00Z"), (25, "2026-10-24T22:00:00Z".into(), "2026-10-25T22:00:00Z".into()));
    }

    #[test]
    fn an_hour_lies_in_a_day_and_in_a_week() {
        let (days, weeks) = (Calendar::daily(paris()), Calendar::weekly(paris(), Weekday::Monday));
        let hour = "2026-03-29T01:00:00Z";
        assert_eq!(span(&Calendar::hourly(), hour, &days, 0, 0).1, "2026-03-28T23:00:00Z");
        assert_eq!(span(&Calendar::hourly(), hour, &weeks, 0, 0).1, "2026-03-22T23:00:00Z");
    }

    #[test]
    fn offsets_shift_and_widen() {
        let (days, hours) = (Calendar::daily(Zone::utc()), Calendar::hourly());
        let day = "2026-05-05T00:00:00Z";
        assert_eq!(
            span(&days, day, &hours, -HOUR, 0),
            (25, "2026-05-04T23:00:00Z".into(), "2026-05-05T23:00:00Z".into())
        );
        assert_eq!(span(&days, day, &hours, -24 * HOUR, -24 * HOUR).1, "2026-05-04T00:00:00Z");
        // A part of an hour is the whole hour.
        assert_eq!(span(&days, day, &hours, -60, 60).0, 26);
        assert_eq!(span(&days, day, &hours, 24 * HOUR, 0).0, 0, "nothing lies in an empty interval");
    }

    #[test]
    fn months_cover_business_days_that_reach_into_them() {
        let (months, days) =
            (Calendar::monthly(Zone::utc()), Calendar::business_days(Zone::utc(), &"".parse().unwrap()));
        // 1 August 2026 is a Saturday, which belongs to Friday, 31 July.
        let (count, first, _) = span(&months, "2026-08-01T00:00:00Z", &days, 0, 0);
        assert_eq!((count, first.as_str()), (22, "2026-07-31T00:00:00Z"));
    }

    #[test]
    fn the_last_of_some_dates_begins_no_period() {
        let dates = Calendar::of_dates(Zone::utc(), &"2026-01-05\n2026-02-02".parse().unwrap()).unwrap();
        let of = |start: &str| span(&Calendar::daily(Zone::utc()), start, &dates, 0, 0).0;
        assert_eq!((of("2026-01-04T00:00:00Z"), of("2026-02-01T00:00:00Z"), of("2026-02-02T00:00:00Z")), (0, 1, 0));
    }

    #[test]
    fn times_of_cron_reach_to_the_next() {
        let cron = CronSchedule::utc(Cron::parse("0 0 6 * * ?").unwrap());
        let workflow = Workflow {
            start_time: Some(at("2026-05-05T00:00:00Z")),
            ..Workflow::new(id("cron"), Schedule::Cron(cron.clone()), Job::new("command", serde_json::Map::new()))
        };
        let times = SlotTimes::new(&cron, workflow.bounds(&cron));
        let day = |text: &str| times.slots_in(Range::new(at(text), at(text) + SignedDuration::from_hours(24)));
        assert_eq!(day("2026-05-06T00:00:00Z"), [at("2026-05-05T06:00:00Z"), at("2026-05-06T06:00:00Z")]);
        assert_eq!(day("2026-05-05T00:00:00Z"), [at("2026-05-05T06:00:00Z")], "before its start there is none");
    }

    #[test]
    fn a_workflow_waits_for_its_own_past_only() {
        let (up, days) = (id("up"), Calendar::daily(Zone::utc()));
        let covered = Coverage { workflow: &up, later: 0, from: -48 * HOUR, to: 0 };
        let period = times(&days).period(at("2026-05-05T00:00:00Z")).unwrap();
        let slots = times(&days).slots_in(covered.interval(&up, period));
        assert_eq!(slots, [at("2026-05-03T00:00:00Z"), at("2026-05-04T00:00:00Z")]);
        let back = covered.waiting_for(at("2026-05-04T00:00:00Z"), &times(&days), &up, &times(&days));
        assert_eq!(back, [at("2026-05-05T00:00:00Z"), at("2026-05-06T00:00:00Z")]);
    }
}
