//! A row: the states of a workflow's slots in each column, in as few bytes as possible.

use std::collections::BTreeMap;

use kelos_model::{SlotState, WorkflowId};
use kelos_store::Tally;

use super::view::BoardView;
use crate::state::{BY_WEIGHT, look};

/// The sign of a column that has no slot.
const NOTHING: char = '.';

/// A row, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// A letter for each column, in the order in which they are shown: the worst state of its slots.
    pub(super) letters: String,
    /// `column:count` for each column that more than one slot shares, with commas between.
    pub(super) counts: String,
}

/// All rows of a view.
pub(super) struct Rows {
    order: Vec<u32>,
    tallies: BTreeMap<WorkflowId, Vec<Tally>>,
}

impl Rows {
    pub(super) fn new(view: &BoardView, tallies: BTreeMap<WorkflowId, Vec<Tally>>) -> Rows {
        Rows { order: view.order(), tallies }
    }

    /// The row of a group: the worst state of each column, and how many slots there are.
    pub(super) fn of_all<'a>(&self, workflows: impl Iterator<Item = &'a WorkflowId>) -> Row {
        let tallies: Vec<Tally> = workflows.filter_map(|id| self.tallies.get(id)).flatten().copied().collect();
        row(&self.order, &tallies)
    }

    /// A workflow's row; one without slots has a row without letters.
    pub(super) fn of(&self, workflow: &WorkflowId) -> Row {
        row(&self.order, self.tallies.get(workflow).map_or(&[], Vec::as_slice))
    }
}

/// How bad a state is; the worst is the largest.
pub(super) fn weight(state: SlotState) -> usize {
    BY_WEIGHT.iter().position(|other| *other == state).unwrap_or(BY_WEIGHT.len())
}

fn row(order: &[u32], tallies: &[Tally]) -> Row {
    let mut cells: BTreeMap<u32, (usize, SlotState, u32)> = BTreeMap::new();
    for tally in tallies {
        let weight = weight(tally.state);
        let cell = cells.entry(tally.column).or_insert((weight, tally.state, 0));
        cell.2 += tally.count;
        if weight > cell.0 {
            (cell.0, cell.1) = (weight, tally.state);
        }
    }
    let shown = order.iter().map(|column| cells.get(column));
    let letters = shown.clone().map(|cell| cell.map_or(NOTHING, |(_, state, _)| look(*state).letter)).collect();
    let counts = shown.enumerate().filter_map(|(place, cell)| match cell {
        Some((_, _, count)) if *count > 1 => Some(format!("{place}:{count}")),
        _ => None,
    });
    Row { letters, counts: counts.collect::<Vec<_>>().join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(column: u32, state: SlotState, count: u32) -> Tally {
        Tally { column, state, count }
    }

    #[test]
    fn the_worst_state_wins() {
        let shared = |states: &[SlotState]| {
            let tallies: Vec<_> = states.iter().map(|state| tally(0, *state, 1)).collect();
            row(&[0], &tallies).letters
        };
        use SlotState::{Backoff, Expired, Failed, Killed, Running, Succeeded, Waiting};
        assert_eq!(shared(&[Succeeded, Waiting]), "W");
        assert_eq!(shared(&[Succeeded, Waiting, Killed]), "K");
        assert_eq!(shared(&[Running, Backoff]), "B");
        assert_eq!(shared(&[Failed, Expired, Running]), "F");
    }

    #[test]
    fn a_row_is_a_letter_for_each_column_and_what_is_shared() {
        let tallies =
            [tally(0, SlotState::Succeeded, 1), tally(2, SlotState::Succeeded, 11), tally(2, SlotState::Failed, 1)];
        let expect = |letters: &str, counts: &str| Row { letters: letters.to_owned(), counts: counts.to_owned() };
        assert_eq!(row(&[3, 2, 1, 0], &tallies), expect(".F.S", "1:12"));
        assert_eq!(row(&[0, 1, 2, 3], &tallies), expect("S.F.", "2:12"));
    }
}
