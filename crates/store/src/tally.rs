//! Tallies: how many slots there are in each column of time, for overviews.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::SlotState;

/// Columns of time, side by side, all of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// The start of the first one.
    pub start: Timestamp,
    /// How wide each is, in milliseconds; 0 selects nothing.
    pub width: i64,
    /// How many there are.
    pub count: u32,
}

impl Columns {
    /// Milliseconds `[start, end)` of all of them.
    #[must_use]
    pub fn bounds(&self) -> (i64, i64) {
        let start = self.start.as_millisecond();
        (start, start.saturating_add(self.width.max(0).saturating_mul(self.count.into())))
    }

    /// Each column with its milliseconds `[start, end)`.
    pub fn each(&self) -> impl Iterator<Item = (u32, i64, i64)> + use<> {
        let (start, width) = (self.start.as_millisecond(), self.width.max(0));
        let edge = move |column: u32| start.saturating_add(width.saturating_mul(i64::from(column)));
        (0..self.count).map(move |column| (column, edge(column), edge(column + 1)))
    }

    /// The column that a moment, in milliseconds, lies in.
    pub fn column(&self, at: i64) -> Option<u32> {
        let (start, end) = self.bounds();
        if !(start..end).contains(&at) {
            return None;
        }
        u32::try_from((at - start) / self.width).ok()
    }
}

/// How many slots of a workflow are in one state in one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// The column, counted from 0.
    pub column: u32,
    /// The state.
    pub state: SlotState,
    /// How many slots, never 0.
    pub count: u32,
}

/// A counter of slots, in any order, of workflows that are named by number.
pub struct Tallies {
    columns: Columns,
    counts: BTreeMap<(i64, u32, SlotState), u32>,
}

impl Tallies {
    /// No slots yet.
    #[must_use]
    pub fn new(columns: Columns) -> Self {
        Self { columns, counts: BTreeMap::new() }
    }

    /// Adds a slot by its time in milliseconds.
    pub fn add(&mut self, workflow: i64, at: i64, state: SlotState) {
        if let Some(column) = self.columns.column(at) {
            *self.counts.entry((workflow, column, state)).or_default() += 1;
        }
    }

    /// Counts those of the `total` slots in a cell that were not added as succeeded.
    pub fn rest_succeeded(&mut self, workflow: i64, column: u32, total: u32) {
        let cell = (workflow, column, SlotState::Waiting)..=(workflow, column, SlotState::Killed);
        let others: u32 = self.counts.range(cell).map(|(_, count)| *count).sum();
        if total > others {
            self.counts.insert((workflow, column, SlotState::Succeeded), total - others);
        }
    }

    /// Each workflow's number and tallies, ascending by column and state.
    pub fn by_workflow(self) -> BTreeMap<i64, Vec<Tally>> {
        let mut found: BTreeMap<i64, Vec<Tally>> = BTreeMap::new();
        for ((workflow, column, state), count) in self.counts {
            found.entry(workflow).or_default().push(Tally { column, state, count });
        }
        found
    }
}
