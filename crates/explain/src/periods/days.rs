//! The days of a zone, which are not all of one length, as columns that a store can count in.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};
use kelos_model::ranges::Range;
use kelos_model::time::Zone;
use kelos_store::Columns;

/// Days of a zone, side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    /// Each with the moments in it; a date that the zone leaves out is not among them.
    days: Vec<(Date, Range)>,
}

impl Days {
    /// The days from one date to another, both included.
    #[must_use]
    pub fn of(zone: &Zone, first: Date, last: Date) -> Days {
        let begins = |date: Date| date.to_zoned(zone.rules().clone()).map(|start| start.timestamp()).ok();
        let mut days = Vec::new();
        let mut date = first;
        while date <= last {
            let Ok(next) = date.checked_add(1.day()) else { break };
            if let (Some(start), Some(end)) = (begins(date), begins(next))
                && start < end
            {
                days.push((date, Range::new(start, end)));
            }
            date = next;
        }
        Days { days }
    }

    /// Each date with its moments, ascending.
    pub fn each(&self) -> impl Iterator<Item = (Date, Range)> + '_ {
        self.days.iter().copied()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.days.len()
    }

    /// The moments from the first day to the last; empty if there is none.
    pub(super) fn hull(&self) -> Range {
        let (first, last) = (self.days.first(), self.days.last());
        let ends = first.zip(last).map(|((_, first), (_, last))| (first.start, last.end));
        ends.map_or(Range::new(Timestamp::MIN, Timestamp::MIN), |(start, end)| Range::new(start, end))
    }

    /// The moments of each.
    pub(super) fn ranges(&self) -> Vec<Range> {
        self.days.iter().map(|(_, range)| *range).collect()
    }

    /// Longer parts of time that begin with the days that `begins` selects, from the last such day up to the first one to the last day.
    pub(super) fn parts(zone: &Zone, first: Date, last: Date, begins: impl Fn(Date) -> bool) -> Vec<Range> {
        let mut from = first;
        while !begins(from) {
            let Ok(before) = from.yesterday() else { break };
            from = before;
        }
        let mut parts: Vec<Range> = Vec::new();
        for (date, range) in Days::of(zone, from, last).each() {
            match parts.last_mut() {
                Some(part) if !begins(date) => part.end = range.end,
                _ => parts.push(range),
            }
        }
        parts
    }

    /// All but the first so many.
    pub(super) fn without_first(mut self, number: usize) -> Days {
        self.days.drain(..number.min(self.days.len()));
        self
    }

    /// The date of a moment in a zone.
    #[must_use]
    pub fn date(zone: &Zone, at: Timestamp) -> Date {
        at.to_zoned(zone.rules().clone()).date()
    }
}

/// Columns that are these ranges, each with the place of its first one: those of one length that follow each other are side by side
/// in one.
pub(super) fn columns_of(ranges: &[Range]) -> Vec<(usize, Columns)> {
    let mut found: Vec<(usize, Columns)> = Vec::new();
    for (place, range) in ranges.iter().enumerate() {
        let (start, width) = (range.start, range.end.as_millisecond() - range.start.as_millisecond());
        match found.last_mut() {
            Some((_, columns)) if columns.width == width && columns.bounds().1 == start.as_millisecond() => {
                columns.count += 1;
            }
            _ => found.push((place, Columns { start, width, count: 1 })),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn told(zone: &str, first: Date, last: Date) -> Vec<(usize, i64, u32)> {
        let days = Days::of(&Zone::parse(zone).unwrap(), first, last);
        columns_of(&days.ranges())
            .into_iter()
            .map(|(place, columns)| (place, columns.width / 3_600_000, columns.count))
            .collect()
    }

    #[test]
    fn days_of_other_lengths_stand_by_themselves() {
        assert_eq!(told("UTC", date(2026, 1, 1), date(2026, 12, 31)), [(0, 24, 365)]);
        let year = told("Europe/Paris", date(2026, 1, 1), date(2026, 12, 31));
        assert_eq!(year, [(0, 24, 87), (87, 23, 1), (88, 24, 209), (297, 25, 1), (298, 24, 67)]);
        // Samoa had no 30 December 2011.
        let samoa = Days::of(&Zone::parse("Pacific/Apia").unwrap(), date(2011, 12, 28), date(2012, 1, 1));
        let dates: Vec<String> = samoa.each().map(|(date, _)| date.to_string()).collect();
        assert_eq!(dates, ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]);
        assert_eq!(told("UTC", date(2026, 1, 2), date(2026, 1, 1)), []);
        assert_eq!(told("UTC", Date::MAX, Date::MAX), []);
    }
}
