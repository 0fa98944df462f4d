//! The times of a cron schedule: in an interval, before and after a moment, and how many.

use jiff::Timestamp;

use super::cron::FiringDay;
use super::schedule::CronSchedule;
use super::transitions::Stretch;
use crate::ranges::Range;

impl CronSchedule {
    /// The times from `start` until just before `end`, ascending. Lazy; empty if `end` isn't after `start`.
    pub fn times(&self, start: Timestamp, end: Timestamp) -> Times {
        self.times_from(ceil(start), ceil(end))
    }

    /// How many times lie in a range. Costs a look at each day of it, however many times a day has.
    pub fn count(&self, range: Range) -> u64 {
        let (mut from, until) = (ceil(range.start).max(EARLIEST), ceil(range.end).min(LATEST));
        let mut count = 0;
        while from < until {
            let stretch = Stretch::around(self, from);
            count += stretch.count(self, from, until);
            from = stretch.end;
        }
        count
    }

    fn times_from(&self, from: i64, until: i64) -> Times {
        let from = from.max(EARLIEST);
        Times { schedule: self.clone(), stretch: Stretch::around(self, from), known: FiringDay::unknown(), from, until }
    }

    /// The first time strictly after `after`; `None` if there is none up to the end of 2199.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.first_from_second(floor(after) + 1)
    }

    /// The last time strictly before `before`; `None` if there is none since the beginning of 1970.
    pub fn previous_before(&self, before: Timestamp) -> Option<Timestamp> {
        let mut upto = (ceil(before) - 1).min(LATEST);
        loop {
            let stretch = Stretch::around(self, upto);
            if let Some(found) = stretch.last(self, upto) {
                return instant(found);
            }
            if stretch.begin <= EARLIEST {
                return None;
            }
            upto = stretch.begin - 1;
        }
    }

    /// Whether `at` is one of the times, to the nanosecond.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.first_from_second(ceil(at)) == Some(at)
    }

    /// The first time from `from` on, which may be `from` itself.
    pub fn first_from(&self, from: Timestamp) -> Option<Timestamp> {
        self.first_from_second(ceil(from))
    }

    /// The last time until `until`, which may be `until` itself.
    pub fn last_until(&self, until: Timestamp) -> Option<Timestamp> {
        if self.contains(until) { Some(until) } else { self.previous_before(until) }
    }

    /// When the slot of a time is due: at the time or, where slots are about periods, at the end of its own.
    pub fn due(&self, time: Timestamp) -> Timestamp {
        match self.is_of_periods() {
            true => self.next_after(time).unwrap_or(Timestamp::MAX),
            false => time,
        }
    }

    /// The range of the times whose slots are due in a range of moments.
    pub fn due_in(&self, moments: Range) -> Range {
        if !self.is_of_periods() {
            return moments;
        }
        let began = |end| self.previous_before(end).unwrap_or(Timestamp::MIN);
        Range::new(began(moments.start), began(moments.end))
    }

    fn first_from_second(&self, from: i64) -> Option<Timestamp> {
        self.times_from(from, i64::MAX).next()
    }
}

/// No time is before this instant or after the other, in any zone; seconds since the epoch.
const EARLIEST: i64 = -2 * 86_400;
const LATEST: i64 = 7_258_118_400 + 2 * 86_400;

/// The times of a schedule in an interval, ascending. From [`CronSchedule::times`].
#[derive(Clone, Debug)]
pub struct Times {
    schedule: CronSchedule,
    stretch: Stretch,
    known: FiringDay,
    /// Times before this are done; seconds since the epoch.
    from: i64,
    until: i64,
}

impl Iterator for Times {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        while self.from < self.until {
            if let Some(found) = self.stretch.first(&self.schedule, self.from, &mut self.known) {
                self.from = found + 1;
                return instant(found).filter(|_| found < self.until);
            }
            self.from = self.stretch.end;
            if self.from > LATEST {
                self.until = self.from;
            } else {
                self.stretch = Stretch::around(&self.schedule, self.from);
            }
        }
        None
    }
}

impl std::iter::FusedIterator for Times {}

fn instant(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok()
}

fn floor(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

fn ceil(at: Timestamp) -> i64 {
    at.as_second() + i64::from(at.subsec_nanosecond() > 0)
}
