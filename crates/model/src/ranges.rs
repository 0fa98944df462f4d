//! Sets of half-open ranges of time: which parts of a schedule have been planned.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A range of time, start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The start, inclusive.
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
}

impl Range {
    /// The range from `start` to before `end`; empty when `end` is not later.
    #[must_use]
    pub fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { start, end }
    }

    /// Whether nothing lies in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether some moment lies in both.
    #[must_use]
    pub fn intersects(&self, other: &Range) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// Whether a moment lies in it.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

/// A set of moments as sorted, disjoint, non-touching ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    /// The ranges, ascending.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Whether a moment is in the set.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= at);
        self.ranges.get(next).is_some_and(|range| range.contains(at))
    }

    /// Adds a range, joining those that it touches.
    pub fn insert(&mut self, range: Range) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|known| known.end < range.start);
        let last = self.ranges.partition_point(|known| known.start <= range.end);
        let joined = self.ranges[first..last]
            .iter()
            .fold(range, |a, b| Range { start: a.start.min(b.start), end: a.end.max(b.end) });
        self.ranges.splice(first..last, [joined]);
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range) {
        if range.is_empty() {
            return;
        }
        let cut = |known: &Range| {
            [Range::new(known.start, known.end.min(range.start)), Range::new(known.start.max(range.end), known.end)]
        };
        self.ranges = self.ranges.iter().flat_map(cut).filter(|part| !part.is_empty()).collect();
    }

    /// The parts of `range` that are not in the set, ascending.
    #[must_use]
    pub fn gaps(&self, range: Range) -> Vec<Range> {
        let mut gaps = Vec::new();
        let mut from = range.start;
        let first = self.ranges.partition_point(|known| known.end <= range.start);
        for known in self.ranges[first..].iter().take_while(|known| known.start < range.end) {
            gaps.push(Range::new(from, known.start));
            from = from.max(known.end);
        }
        gaps.push(Range::new(from, range.end));
        gaps.retain(|gap| !gap.is_empty());
        gaps
    }

    /// The parts of `range` that are in the set, ascending.
    pub fn within(&self, range: Range) -> impl Iterator<Item = Range> + '_ {
        let first = self.ranges.partition_point(|known| known.end <= range.start);
        let inside = self.ranges[first..].iter().take_while(move |known| known.start < range.end);
        inside.map(move |known| Range::new(known.start.max(range.start), known.end.min(range.end)))
    }

    /// The end of the last range.
    #[must_use]
    pub fn end(&self) -> Option<Timestamp> {
        self.ranges.last().map(|range| range.end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(start: i64, end: i64) -> Range {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        Range::new(at(start), at(end))
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_points(steps in prop::collection::vec((any::<bool>(), 0_i64..60, 0_i64..60), 1..30), a in 0_i64..60, b in 0_i64..60) {
            let mut set = RangeSet::default();
            let mut points = BTreeSet::new();
            for (add, start, end) in steps {
                if add { set.insert(range(start, end)) } else { set.remove(range(start, end)) }
                for point in start..end {
                    if add { points.insert(point); } else { points.remove(&point); }
                }
            }
            for point in 0..60 {
                prop_assert_eq!(set.contains(Timestamp::from_millisecond(point).unwrap()), points.contains(&point));
            }
            let gaps: BTreeSet<i64> = set.gaps(range(a, b)).iter()
                .flat_map(|gap| gap.start.as_millisecond()..gap.end.as_millisecond()).collect();
            prop_assert_eq!(gaps, (a..b).filter(|point| !points.contains(point)).collect());
            let inside: BTreeSet<i64> = set.within(range(a, b))
                .flat_map(|part| part.start.as_millisecond()..part.end.as_millisecond()).collect();
            prop_assert_eq!(inside, (a..b).filter(|point| points.contains(point)).collect());
            prop_assert!(set.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
