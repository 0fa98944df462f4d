//! Quartz cron expressions.
//!
//! Six or seven fields, separated by blanks: second, minute, hour, day of month, month, day of week
//! and, if you like, year. A [`Cron`] knows no time zone: it is a set of civil times, from 1970 to
//! 2199, to the second. [`CronSchedule`](super::CronSchedule) places it in a zone.
//!
//! | field | values | signs |
//! |---|---|---|
//! | second, minute | 0-59 | `*` `,` `-` `/` |
//! | hour | 0-23 | `*` `,` `-` `/` |
//! | day of month | 1-31 | `*` `,` `-` `/` `?` `L` `L-3` `LW` `L-3W` `15W` |
//! | month | 1-12, JAN-DEC | `*` `,` `-` `/` |
//! | day of week | 1-7, SUN-SAT | `*` `,` `-` `/` `?` `L` `6L` `6#3` |
//! | year | four digits | `*` `,` `-` `/` |
//!
//! Exactly one of the two day fields is `?`. Ranges may run over the end: `22-2`, `FRI-MON`. Names may
//! be in any case. What is accepted and what it means is held against real Quartz, line by line, by
//! `tests/cron_quartz.rs`.

mod bits;
mod days;
mod error;
mod item;
mod parse;
mod search;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::DateTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use error::{CronError, CronField};
pub(super) use search::FiringDay;

/// A Quartz cron expression: a set of civil times. Equal if the text is equal. Cheap to clone.
#[derive(Clone)]
pub struct Cron {
    text: Arc<str>,
    times: DayTimes,
    days: days::DayRule,
    months: u64,
    years: bits::Years,
    hours_stepped: bool,
    minutes_stepped: bool,
}

/// The times of a day that fire, the same on every day; bit `n` is the value `n`.
#[derive(Clone, Copy, Debug)]
struct DayTimes {
    hours: u64,
    minutes: u64,
    seconds: u64,
}

impl Cron {
    /// Reads an expression as Quartz does.
    ///
    /// # Errors
    ///
    /// Refuses what Quartz refuses; the error names the field, its place, and what was expected.
    pub fn parse(expression: &str) -> Result<Cron, CronError> {
        parse::parse(expression)
    }

    /// The expression as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first civil time strictly after `after`, in whole seconds; `None` if there is none up to the end
    /// of 2199.
    pub fn next_after(&self, after: DateTime) -> Option<DateTime> {
        let from = search::local_seconds(after) + 1;
        search::civil(self.first_in(from, i64::MAX, &mut FiringDay::unknown())?)
    }

    /// The last civil time strictly before `before`, in whole seconds; `None` if there is none since the
    /// beginning of 1970.
    pub fn previous_before(&self, before: DateTime) -> Option<DateTime> {
        let fraction = i64::from(before.subsec_nanosecond() > 0);
        let upto = search::local_seconds(before) - 1 + fraction;
        search::civil(self.last_in(i64::MIN, upto)?)
    }

    /// Whether the hours are given by a wildcard or a step, as in `*`, `0/6` or `8-18/2`.
    pub fn has_stepped_hours(&self) -> bool {
        self.hours_stepped
    }

    /// Whether the hours or the minutes are given by a wildcard or a step: such an expression means
    /// "every so often" rather than "at that time of the day".
    pub fn is_interval(&self) -> bool {
        self.hours_stepped || self.minutes_stepped
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({:?})", self.text)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Cron) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(expression: &str) -> Result<Cron, CronError> {
        Cron::parse(expression)
    }
}

impl Serialize for Cron {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Cron {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cron, D::Error> {
        let text = String::deserialize(deserializer)?;
        Cron::parse(&text).map_err(serde::de::Error::custom)
    }
}
