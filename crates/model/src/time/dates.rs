//! Sets of dates, as calendars of their own need them: holidays, the first days of accounting periods.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of dates. Cheap to clone.
///
/// It is read from a text with a date such as `2026-12-25` on each line. What follows a date on its line is for people; so are empty lines
/// and those that begin with `#`.
///
/// ```
/// use kelos_model::time::Dates;
///
/// let closed: Dates = "# the bank is closed\n2026-12-25 Christmas Day\n2026-12-26\n".parse()?;
/// assert_eq!(closed.len(), 2);
/// # Ok::<(), kelos_model::time::DatesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dates(Arc<[Date]>);

/// A text that is no set of dates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is \"{text}\": expected a date such as 2026-12-25")]
pub struct DatesError {
    /// The line, counted from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
}

impl Dates {
    /// The number of dates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no date.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a date is one of them.
    #[must_use]
    pub fn contains(&self, date: Date) -> bool {
        self.0.binary_search(&date).is_ok()
    }

    /// The dates in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Date> + '_ {
        self.0.iter().copied()
    }

    /// Those of the month that begins on a date, bit `n` for day `n`.
    pub(super) fn in_month(&self, first: Date) -> u64 {
        let from = self.0.partition_point(|date| *date < first);
        let month = self.0.get(from..).unwrap_or_default().iter().take_while(|date| date.first_of_month() == first);
        month.fold(0, |mask, date| mask | 1 << date.day())
    }
}

impl FromIterator<Date> for Dates {
    fn from_iter<T: IntoIterator<Item = Date>>(dates: T) -> Dates {
        let mut dates: Vec<Date> = dates.into_iter().collect();
        dates.sort_unstable();
        dates.dedup();
        Dates(dates.into())
    }
}

impl FromStr for Dates {
    type Err = DatesError;

    fn from_str(text: &str) -> Result<Dates, DatesError> {
        let says = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
        let read = |(index, line): (usize, &str)| {
            let date = line.split([' ', '\t', ',', ';', '#']).next().unwrap_or_default();
            let wrong = || DatesError { line: index + 1, text: line.chars().take(80).collect() };
            // Only the form with dashes: jiff would take 20261225, too, where a person may have meant something else.
            date.parse().ok().filter(|_| date.len() == 10).ok_or_else(wrong)
        };
        lines.filter(|(_, line)| says(line)).map(read).collect()
    }
}

/// Writes the dates as their text, with a line for each.
impl fmt::Display for Dates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|date| writeln!(f, "{date}"))
    }
}

impl Serialize for Dates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|date| date.to_string()))
    }
}

impl<'de> Deserialize<'de> for Dates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dates, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.join("\n").parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_date_and_words() {
        let dates: Dates =
            "\u{feff}2026-12-25\tChristmas\r\n\n  # a comment\n2026-05-01,Labour Day\n2026-05-01\n".parse().unwrap();
        assert_eq!(dates.to_string(), "2026-05-01\n2026-12-25\n");
        assert_eq!(dates.in_month(Date::constant(2026, 5, 1)), 1 << 1);
        assert_eq!(dates.in_month(Date::constant(2026, 6, 1)), 0);
    }

    #[test]
    fn what_is_no_date_is_refused_with_its_line() {
        let refused = |text: &str| text.parse::<Dates>().unwrap_err().to_string();
        assert_eq!(refused("2026-01-01\n25.12.2026"), "line 2 is \"25.12.2026\": expected a date such as 2026-12-25");
        assert_eq!(refused("2026-02-30"), "line 1 is \"2026-02-30\": expected a date such as 2026-12-25");
        assert_eq!(refused("20261225"), "line 1 is \"20261225\": expected a date such as 2026-12-25");
    }
}
