//! The line of instants cut into stretches of constant offset, and what of a cron expression fires in
//! each. Forward and backward search both read this one description, so they agree.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cron::FiringDay;
use super::schedule::{CronSchedule, Fold, Gap};

/// A stretch of time in which the zone's offset doesn't change. All in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The instant at which it begins: the transition to this offset.
    pub(super) begin: i64,
    /// The instant at which it ends: the next transition.
    pub(super) end: i64,
    /// Civil times fire from here on; later than `begin` if the second pass of a fold is left out.
    fires_from: i64,
    /// Civil times fire until here; earlier than `end` if the first pass of a fold is left out.
    fires_until: i64,
    /// Local time minus UTC.
    offset: i64,
    /// Whether times lost in the gap before this stretch fire together at its beginning.
    stand_in: bool,
}

/// An end of time that is far from every year that is searched and from overflow.
const NEVER: i64 = i64::MAX / 4;

impl Stretch {
    /// The stretch that holds the instant `at`.
    pub(super) fn around(schedule: &CronSchedule, at: i64) -> Stretch {
        let rules = schedule.zone().rules();
        let (begin, end) = (transition_upto(rules, at), transition_after(rules, at));
        let offset = offset(rules, at);
        let before = if begin == -NEVER { offset } else { self::offset(rules, begin - 1) };
        let after = if end == NEVER { offset } else { self::offset(rules, end) };
        let fold = schedule.effective_fold();
        let second_pass = if fold == Fold::First { (before - offset).max(0) } else { 0 };
        let first_pass = if fold == Fold::Second { (offset - after).max(0) } else { 0 };
        Stretch {
            begin,
            end,
            fires_from: begin + second_pass,
            fires_until: end - first_pass,
            offset,
            stand_in: needs_stand_in(schedule, begin + before, begin + offset),
        }
    }

    /// The first time in this stretch that is at least `from`.
    pub(super) fn first(&self, schedule: &CronSchedule, from: i64, known: &mut FiringDay) -> Option<i64> {
        if self.stand_in && from <= self.begin {
            return Some(self.begin);
        }
        let from = from.max(self.fires_from) + self.offset;
        let until = self.fires_until + self.offset;
        Some(schedule.cron().first_in(from, until, known)? - self.offset)
    }

    /// How many times of this stretch are at least `from` and before `until`.
    pub(super) fn count(&self, schedule: &CronSchedule, from: i64, until: i64) -> u64 {
        let stands_in = self.stand_in && from <= self.begin && self.begin < until;
        let from = if stands_in { self.begin + 1 } else { from.max(self.begin) };
        let (first, end) = (from.max(self.fires_from) + self.offset, until.min(self.fires_until) + self.offset);
        u64::from(stands_in) + schedule.cron().count_in(first, end)
    }

    /// The last time in this stretch that is at most `upto`.
    pub(super) fn last(&self, schedule: &CronSchedule, upto: i64) -> Option<i64> {
        let from = self.fires_from + self.offset;
        let last = upto.min(self.fires_until - 1) + self.offset;
        let found = schedule.cron().last_in(from, last).map(|local| local - self.offset);
        found.or((self.stand_in && self.begin <= upto).then_some(self.begin))
    }
}

/// Whether civil times in the gap from local `lost` until local `resumed` fire at its end.
fn needs_stand_in(schedule: &CronSchedule, lost: i64, resumed: i64) -> bool {
    if lost >= resumed || schedule.gap() == Gap::Skip {
        return false;
    }
    let cron = schedule.cron();
    let times = |from, until| cron.first_in(from, until, &mut FiringDay::unknown()).is_some();
    let goes_on = || cron.has_stepped_hours() && times(resumed, resumed + 3600);
    times(lost, resumed) && !goes_on()
}

fn offset(rules: &TimeZone, at: i64) -> i64 {
    instant(at).map_or(0, |at| rules.to_offset(at).seconds().into())
}

/// The last transition at or before `at`.
fn transition_upto(rules: &TimeZone, at: i64) -> i64 {
    let found = instant(at + 1).and_then(|at| rules.preceding(at).next());
    found.map_or(-NEVER, |transition| transition.timestamp().as_second())
}

/// The first transition after `at`.
fn transition_after(rules: &TimeZone, at: i64) -> i64 {
    let found = instant(at).and_then(|at| rules.following(at).next());
    found.map_or(NEVER, |transition| transition.timestamp().as_second())
}

fn instant(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok()
}
