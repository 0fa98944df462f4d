//! Finding times: year, month, day, hour, minute, second; forwards, and the mirror backwards.
//!
//! Inside, a civil time is a count of seconds since 1970-01-01T00:00:00 of that civil calendar
//! ("local seconds"), so that stepping within a day is arithmetic on small numbers.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

use super::bits::{self, FIRST_YEAR, LAST_YEAR};
use super::{Cron, DayTimes};

const DAY: i64 = 86_400;

/// The local seconds of a civil time, its fraction of a second cut off. Times far outside the years
/// that are searched are moved to just outside of them.
pub(super) fn local_seconds(at: DateTime) -> i64 {
    let earliest = DateTime::constant(FIRST_YEAR - 1, 1, 1, 0, 0, 0, 0);
    let latest = DateTime::constant(LAST_YEAR + 2, 1, 1, 0, 0, 0, 0);
    let time = Offset::UTC.to_timestamp(at.clamp(earliest, latest));
    let nanos = time.expect("within the years of a timestamp").as_nanosecond();
    nanos.div_euclid(1_000_000_000) as i64
}

/// The civil time of local seconds.
pub(super) fn civil(local: i64) -> Option<DateTime> {
    Some(Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?))
}

/// The first of a month, and the local seconds at which it begins.
fn month(year: i16, month: u32) -> (Date, i64) {
    let first = Date::constant(year, month as i8, 1);
    (first, local_seconds(first.at(0, 0, 0, 0)))
}

/// A day that is known to fire, so that a walk within it need not ask the calendar again.
#[derive(Clone, Copy, Debug)]
pub(in crate::time) struct FiringDay(i64);

impl FiringDay {
    pub(in crate::time) fn unknown() -> FiringDay {
        FiringDay(i64::MIN)
    }
}

impl Cron {
    /// The first time that is at least `from` and less than `until`, in local seconds.
    pub(in crate::time) fn first_in(&self, from: i64, until: i64, known: &mut FiringDay) -> Option<i64> {
        let day = from - from.rem_euclid(DAY);
        if day == known.0 || self.has_day(day) {
            known.0 = day;
            if let Some(time) = self.times.first((from - day) as u32) {
                return Some(day + i64::from(time)).filter(|time| *time < until);
            }
        }
        let day = self.first_day(day + DAY, until)?;
        known.0 = day;
        Some(day + i64::from(self.times.first(0)?)).filter(|time| *time < until)
    }

    /// The last time that is at least `from` and at most `upto`, in local seconds.
    pub(in crate::time) fn last_in(&self, from: i64, upto: i64) -> Option<i64> {
        let day = upto - upto.rem_euclid(DAY);
        let today = self.has_day(day).then(|| self.times.last((upto - day) as u32));
        let found = match today.flatten() {
            Some(time) => day + i64::from(time),
            None => self.last_day(day - DAY, from)? + i64::from(self.times.last(DAY as u32 - 1)?),
        };
        Some(found).filter(|time| *time >= from)
    }

    /// How many times there are from `from` until just before `until`, in local seconds. Costs a look at each day.
    pub(in crate::time) fn count_in(&self, from: i64, until: i64) -> u64 {
        // Where the clock is put back, a range may begin later than it ends by the clock on the wall.
        if until <= from {
            return 0;
        }
        let mut day = from - from.rem_euclid(DAY);
        let mut count = 0;
        while day < until {
            if self.has_day(day) {
                let (first, end) = ((from - day).clamp(0, DAY), (until - day).clamp(0, DAY));
                count += self.times.count_before(end as u32) - self.times.count_before(first as u32);
            }
            match self.first_day(day + DAY, until) {
                Some(next) => day = next,
                None => break,
            }
        }
        count
    }

    /// Whether the day that begins at `day` fires.
    fn has_day(&self, day: i64) -> bool {
        let Some(date) = civil(day).map(DateTime::date) else {
            return false;
        };
        self.years.contains(date.year())
            && self.months >> date.month() & 1 == 1
            && self.days_of(date.first_of_month()) >> date.day() & 1 == 1
    }

    /// The first day that fires from the day `from` on, if its month begins before `until`.
    fn first_day(&self, from: i64, until: i64) -> Option<i64> {
        let start = civil(from)?.date().max(Date::constant(FIRST_YEAR, 1, 1));
        let (mut next_month, mut next_day) = (start.month() as u32, start.day() as u32);
        for year in start.year()..=LAST_YEAR {
            while let Some(found) = self.month_from(year, next_month) {
                let (first, begin) = month(year, found);
                if begin >= until {
                    return None;
                }
                let day = if found == next_month { next_day } else { 1 };
                if let Some(day) = bits::next(self.days_of(first), day) {
                    return Some(begin + i64::from(day - 1) * DAY);
                }
                (next_month, next_day) = (found + 1, 1);
            }
            (next_month, next_day) = (1, 1);
        }
        None
    }

    /// The last day that fires up to the day `upto`, if its month ends after `from`.
    fn last_day(&self, upto: i64, from: i64) -> Option<i64> {
        let start = civil(upto)?.date().min(Date::constant(LAST_YEAR, 12, 31));
        let (mut next_month, mut next_day) = (start.month() as u32, start.day() as u32);
        for year in (FIRST_YEAR..=start.year()).rev() {
            while let Some(found) = self.month_upto(year, next_month) {
                let (first, begin) = month(year, found);
                if begin + 31 * DAY <= from {
                    return None;
                }
                let day = if found == next_month { next_day } else { 31 };
                if let Some(day) = bits::last(self.days_of(first), day) {
                    return Some(begin + i64::from(day - 1) * DAY);
                }
                (next_month, next_day) = (found - 1, 31);
            }
            (next_month, next_day) = (12, 31);
        }
        None
    }

    fn month_from(&self, year: i16, month: u32) -> Option<u32> {
        bits::next(self.months, month).filter(|_| self.years.contains(year))
    }

    fn month_upto(&self, year: i16, month: u32) -> Option<u32> {
        bits::last(self.months, month).filter(|_| self.years.contains(year))
    }
}

impl DayTimes {
    /// The first second of the day that is at least `from`.
    fn first(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let begin = |hour, minute| Some(hour * 3600 + bits::next(self.minutes, minute)? * 60 + bits::min(self.seconds));
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bits::next(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(time) = begin(hour, minute + 1) {
                return Some(time);
            }
        }
        begin(bits::next(self.hours, hour + 1)?, 0)
    }

    /// How many seconds of the day that fire come before one.
    fn count_before(&self, until: u32) -> u64 {
        let (hour, minute, second) = (until / 3600, until / 60 % 60, until % 60);
        let (minutes, seconds) = (u64::from(self.minutes.count_ones()), u64::from(self.seconds.count_ones()));
        let mut count = bits::count_below(self.hours, hour) * minutes * seconds;
        if self.hours >> hour & 1 == 1 {
            count += bits::count_below(self.minutes, minute) * seconds;
            if self.minutes >> minute & 1 == 1 {
                count += bits::count_below(self.seconds, second);
            }
        }
        count
    }

    /// The last second of the day that is at most `upto`.
    fn last(&self, upto: u32) -> Option<u32> {
        let (hour, minute, second) = (upto / 3600, upto / 60 % 60, upto % 60);
        let end = |hour, minute| Some(hour * 3600 + bits::last(self.minutes, minute)? * 60 + bits::max(self.seconds));
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bits::last(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(time) = minute.checked_sub(1).and_then(|minute| end(hour, minute)) {
                return Some(time);
            }
        }
        end(bits::last(self.hours, hour.checked_sub(1)?)?, 59)
    }
}
