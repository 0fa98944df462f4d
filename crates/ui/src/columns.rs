//! Columns of time side by side, of which some may be wider than others: those of days in a zone whose clocks change.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan};
use kelos_model::WorkflowId;
use kelos_store::{Columns, Queries, StoreError, Tally};

/// Columns of time, side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeColumns {
    /// The times at which they begin, in milliseconds, ascending, and last the end of the last one. There are at least two.
    edges: Vec<i64>,
}

impl TimeColumns {
    /// Columns of one width, in milliseconds.
    pub(super) fn of_width(start: i64, width: i64, count: u32) -> TimeColumns {
        let edge = |column: i64| start.saturating_add(width.saturating_mul(column));
        TimeColumns { edges: (0..=i64::from(count)).map(edge).collect() }
    }

    /// Columns between these edges, in milliseconds and ascending; none if there are fewer than two.
    pub(super) fn between(edges: Vec<i64>) -> Option<TimeColumns> {
        (edges.len() > 1).then_some(TimeColumns { edges })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.edges.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Milliseconds `[start, end)` of all of them.
    pub(super) fn bounds(&self) -> (i64, i64) {
        let ends = self.edges.first().zip(self.edges.last());
        ends.map_or((0, 0), |(start, end)| (*start, *end))
    }

    /// The beginning of a column, in milliseconds; beyond the last one its end.
    pub(super) fn edge(&self, column: u32) -> i64 {
        let edge = usize::try_from(column).ok().and_then(|column| self.edges.get(column));
        edge.copied().unwrap_or(self.bounds().1)
    }

    /// The beginning of each, and the end of the last one, in milliseconds.
    pub(super) fn edges(&self) -> &[i64] {
        &self.edges
    }

    /// The column that a moment, in milliseconds, lies in.
    pub(super) fn column(&self, at: i64) -> Option<u32> {
        let (start, end) = self.bounds();
        let before = self.edges.partition_point(|edge| *edge <= at);
        (start..end).contains(&at).then(|| u32::try_from(before.saturating_sub(1)).ok()).flatten()
    }

    /// Whether all have one width.
    pub(super) fn are_even(&self) -> bool {
        self.stretches().len() == 1
    }

    /// Those of one width that follow each other, as a store counts in them, with the place of the first one.
    fn stretches(&self) -> Vec<(u32, Columns)> {
        let mut found: Vec<(u32, Columns)> = Vec::new();
        for (place, edges) in (0_u32..).zip(self.edges.windows(2)) {
            let &[start, end] = edges else { continue };
            let width = end.saturating_sub(start);
            match found.last_mut() {
                Some((_, columns)) if columns.width == width => columns.count += 1,
                _ => found.push((place, Columns { start: moment(start), width, count: 1 })),
            }
        }
        found
    }

    /// The slots in each column by workflow, of one workflow or of all.
    pub(super) fn tallies(
        &self,
        reader: &dyn Queries,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        let mut all: BTreeMap<WorkflowId, Vec<Tally>> = BTreeMap::new();
        for (place, columns) in self.stretches() {
            for (id, tallies) in reader.slot_tallies(&columns, workflow)? {
                let moved = tallies.into_iter().map(|tally| Tally { column: tally.column + place, ..tally });
                all.entry(id).or_default().extend(moved);
            }
        }
        Ok(all)
    }
}

/// A moment, as near to it as there is one.
pub(super) fn moment(millis: i64) -> Timestamp {
    let (least, most) = (Timestamp::MIN.as_millisecond(), (Timestamp::MAX - 1.second()).as_millisecond());
    Timestamp::from_millisecond(millis.clamp(least, most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_other_widths_are_counted_by_themselves() {
        let columns = TimeColumns::between(vec![0, 24, 48, 73, 97]).unwrap();
        let told: Vec<_> =
            columns.stretches().into_iter().map(|(at, columns)| (at, columns.width, columns.count)).collect();
        assert_eq!(told, [(0, 24, 2), (2, 25, 1), (3, 24, 1)]);
        assert_eq!((columns.count(), columns.bounds(), columns.are_even()), (4, (0, 97), false));
        let places = [-1, 0, 47, 48, 72, 73, 96, 97].map(|at| columns.column(at));
        assert_eq!(places, [None, Some(0), Some(1), Some(2), Some(2), Some(3), Some(3), None]);
        let even = TimeColumns::of_width(10, 5, 3);
        assert_eq!((even.edges(), even.are_even(), even.edge(1), even.edge(9)), (&[10, 15, 20, 25][..], true, 15, 25));
        assert!(TimeColumns::between(vec![1]).is_none());
    }
}
