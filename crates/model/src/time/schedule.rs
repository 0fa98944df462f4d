//! Schedules: from an interval to its times.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cron::{Cron, FiringDay};
use super::transitions::Stretch;
use super::zone::Zone;
use crate::id::WorkflowId;
use crate::ranges::Range;

/// When the slots of a workflow are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// At the times of a cron expression in a time zone.
    Cron(CronSchedule),
    /// At the times of another workflow; see [`resolve`](super::resolve).
    Dependent(WorkflowId),
}

/// What happens to a time that a zone leaves out, when clocks are put forward over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It fires at the first instant after the gap; several times lost in one gap fire there once.
    ///
    /// An expression whose hours are a wildcard or a step (`*`, `0/2`) and that has a time within the
    /// hour after the gap has no such stand-in: it just goes on, and an hourly job doesn't run twice.
    #[default]
    Shift,
    /// It doesn't fire.
    Skip,
}

/// What happens to a time that a zone has twice, when clocks are put back over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// `Both` if hours or minutes are a wildcard or a step (`*`, `0/15`), so that "every 15 minutes"
    /// stays every 15 minutes; `First` for fixed times, so that "daily at 02:30" stays daily.
    #[default]
    Auto,
    /// It fires at the first pass only.
    First,
    /// It fires at the second pass only.
    Second,
    /// It fires at both passes.
    Both,
}

/// A cron expression in a time zone, with its daylight-saving policy. Cheap to clone.
///
/// All its times are whole seconds, from 1970 to 2199 in civil time of the zone. In UTC they are
/// Quartz's; in a zone with daylight saving [`Gap`] and [`Fold`] say what happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CronSchedule(Arc<Parts>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    cron: Cron,
    #[serde(default)]
    zone: Zone,
    #[serde(default)]
    gap: Gap,
    #[serde(default)]
    fold: Fold,
}

static HOURLY: LazyLock<CronSchedule> = LazyLock::new(|| CronSchedule::constant("0 0 * * * ?"));
static MINUTELY: LazyLock<CronSchedule> = LazyLock::new(|| CronSchedule::constant("0 * * * * ?"));

impl CronSchedule {
    /// A schedule from its parts.
    pub fn new(cron: Cron, zone: Zone, gap: Gap, fold: Fold) -> CronSchedule {
        CronSchedule(Arc::new(Parts { cron, zone, gap, fold }))
    }

    /// The schedule of an expression in UTC, where gaps and folds don't exist.
    pub fn utc(cron: Cron) -> CronSchedule {
        CronSchedule::new(cron, Zone::utc(), Gap::default(), Fold::default())
    }

    /// Every hour on the hour, in UTC: `0 0 * * * ?`.
    pub fn hourly() -> CronSchedule {
        HOURLY.clone()
    }

    /// Every minute on the minute, in UTC: `0 * * * * ?`.
    pub fn minutely() -> CronSchedule {
        MINUTELY.clone()
    }

    fn constant(expression: &str) -> CronSchedule {
        CronSchedule::utc(Cron::parse(expression).expect("a valid constant"))
    }

    /// The expression.
    pub fn cron(&self) -> &Cron {
        &self.0.cron
    }

    /// The zone in which the expression is read.
    pub fn zone(&self) -> &Zone {
        &self.0.zone
    }

    /// The policy for times that a zone leaves out.
    pub fn gap(&self) -> Gap {
        self.0.gap
    }

    /// The policy for times that a zone has twice, as it was given.
    pub fn fold(&self) -> Fold {
        self.0.fold
    }

    /// The policy for times that a zone has twice, with `Auto` decided: never `Auto`.
    pub fn effective_fold(&self) -> Fold {
        match self.0.fold {
            Fold::Auto if self.cron().is_interval() => Fold::Both,
            Fold::Auto => Fold::First,
            fold => fold,
        }
    }

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
        self.first_from(floor(after) + 1)
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
        self.first_from(ceil(at)) == Some(at)
    }

    fn first_from(&self, from: i64) -> Option<Timestamp> {
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
