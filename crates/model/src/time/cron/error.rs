//! The fields of cron expressions, and refusals that are said to the person who wrote one.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The dialect of cron in which an expression is read. The number of its fields decides: five are Unix's, six and seven are Quartz's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CronDialect {
    /// Crontab's: minute, hour, day of month, month, day of week. 0 and 7 are Sunday.
    Unix,
    /// Quartz's: the second first, and the year last if it is there. 1 is Sunday.
    Quartz,
}

impl CronDialect {
    /// Its fields, in their order.
    pub(super) fn fields(self) -> &'static [CronField] {
        match self {
            CronDialect::Unix => CronField::ALL.get(1..6).unwrap_or_default(),
            CronDialect::Quartz => &CronField::ALL,
        }
    }
}

/// The seven fields of a cron expression, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CronField {
    /// 0-59.
    Second,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31, `L`, `W`, `?`.
    DayOfMonth,
    /// 1-12 or JAN-DEC.
    Month,
    /// 1-7 or SUN-SAT (1 = Sunday), `L`, `#`, `?`. In Unix 0-7 or SUN-SAT, where 0 and 7 are Sunday.
    DayOfWeek,
    /// The year, which may be left out.
    Year,
}

impl CronField {
    pub(super) const ALL: [CronField; 7] = [
        CronField::Second,
        CronField::Minute,
        CronField::Hour,
        CronField::DayOfMonth,
        CronField::Month,
        CronField::DayOfWeek,
        CronField::Year,
    ];

    /// The smallest and the largest value, in Quartz.
    pub(super) fn limits(self) -> (i64, i64) {
        match self {
            CronField::Second | CronField::Minute => (0, 59),
            CronField::Hour => (0, 23),
            CronField::DayOfMonth => (1, 31),
            CronField::Month => (1, 12),
            CronField::DayOfWeek => (1, 7),
            CronField::Year => (super::bits::FIRST_YEAR.into(), super::bits::LAST_YEAR.into()),
        }
    }

    /// The values it takes in Quartz, in words.
    pub(super) fn values(self) -> &'static str {
        match self {
            CronField::Second | CronField::Minute => "0-59",
            CronField::Hour => "0-23",
            CronField::DayOfMonth => "1-31",
            CronField::Month => "1-12 or JAN-DEC",
            CronField::DayOfWeek => "1-7 or SUN-SAT",
            CronField::Year => "a year of four digits",
        }
    }
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CronField::Second => "second",
            CronField::Minute => "minute",
            CronField::Hour => "hour",
            CronField::DayOfMonth => "day-of-month",
            CronField::Month => "month",
            CronField::DayOfWeek => "day-of-week",
            CronField::Year => "year",
        })
    }
}

/// A cron expression that was refused. Its `Display` names the field, its place, the text that is
/// wrong and what was expected instead:
/// `day-of-week field "8" is out of range: expected 1-7 or SUN-SAT (field 6 of "0 0 0 ? * 8")`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} field{} {problem}: expected {expected} (field {position} of {expression:?})", quoted(text))]
pub struct CronError {
    /// The field at fault. When fields are missing, the first one that is.
    pub field: CronField,
    /// The position of the field in the expression, counted from 1.
    pub position: usize,
    /// The part of the expression that is at fault; empty when a field is missing.
    pub text: String,
    /// The position of `text` in the expression, in bytes.
    pub span: Range<usize>,
    /// The problem; completes the sentence "the field ...".
    pub problem: Cow<'static, str>,
    /// The expected form.
    pub expected: Cow<'static, str>,
    /// The whole expression, as it was given.
    pub expression: String,
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text:?}") }
}

/// A fault of one item of a field, before its position in the expression is known.
pub(super) struct Fault {
    pub(super) problem: Cow<'static, str>,
    pub(super) expected: Cow<'static, str>,
}

/// A fault as an error, for `?` and tail position.
pub(super) fn fault<T>(
    problem: impl Into<Cow<'static, str>>,
    expected: impl Into<Cow<'static, str>>,
) -> Result<T, Fault> {
    Err(Fault { problem: problem.into(), expected: expected.into() })
}
