//! Flows that are unfolded on the board: below their row one for each step, with its state in each column.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_explain::flow::{self, Beside, StepState};
use kelos_model::ranges::Range;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotRef, SlotState, StepName, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};

use super::row::weight;
use super::view::BoardView;
use crate::columns::TimeColumns;

/// Flows that are unfolded at the same time.
const UNFOLDED: usize = 10;
/// Runs of each flow that are read: the newest.
const RUNS: usize = 200;
/// Steps of each.
const STEPS: usize = 100;

/// The rows of the steps of each flow that is unfolded.
pub(super) type StepRows = BTreeMap<WorkflowId, Vec<StepRow>>;

/// A row for a step.
pub(super) struct StepRow {
    pub(super) name: StepName,
    /// Its cells by column; none where no run opened it.
    cells: BTreeMap<u32, StepCell>,
}

/// A step in the runs of one column.
pub(super) struct StepCell {
    /// The worst state of it.
    pub(super) state: StepState,
    /// The newest run's step in that state.
    pub(super) id: SlotRef,
    /// The number of runs that opened it.
    pub(super) count: u32,
}

/// Whether the row of a workflow unfolds: that of a flow whose runs have a place in time.
pub(super) fn unfolds(row: &WorkflowRow) -> bool {
    row.definition.flow.is_some() && row.definition.keys.schedule().is_some()
}

/// Reads the steps of the flows that the view unfolds.
pub(super) fn unfolded(
    reader: &dyn Queries,
    view: &BoardView,
    workflows: &[WorkflowRow],
) -> Result<StepRows, StoreError> {
    let flows = workflows.iter().filter(|row| row.present && unfolds(row) && view.is_unfolded(&row.id));
    flows.take(UNFOLDED).map(|row| Ok((row.id.clone(), rows(reader, &view.columns(), row)?))).collect()
}

fn rows(reader: &dyn Queries, columns: &TimeColumns, row: &WorkflowRow) -> Result<Vec<StepRow>, StoreError> {
    let (start, end) = columns.bounds();
    let at = |millis| Timestamp::from_millisecond(millis).unwrap_or_default();
    let range = Some(Range::new(at(start), at(end)));
    let filter = SlotFilter { workflow: Some(row.id.clone()), range, ..SlotFilter::default() };
    let steps = row.definition.flow.iter().flat_map(|flow| &flow.steps).take(STEPS);
    let mut rows: Vec<StepRow> =
        steps.map(|step| StepRow { name: step.name.clone(), cells: BTreeMap::new() }).collect();
    for run in reader.slots(&filter, PageRequest::newest(RUNS))?.rows {
        let column = run.id.key.time().and_then(|at| columns.column(at.as_millisecond()));
        let Some(column) = column.filter(|_| run.slot.last_run > 0) else { continue };
        for step in flow::states(reader, &run.id, STEPS)?.into_iter().flatten() {
            note(&mut rows, column, step);
        }
    }
    Ok(rows)
}

/// Notes the state of a step in a run of a column. Steps of earlier definitions come last.
fn note(rows: &mut Vec<StepRow>, column: u32, step: Beside) {
    let Beside { name, id, state } = step;
    let Some(weight) = weight_of(state) else { return };
    let place = rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
        rows.push(StepRow { name, cells: BTreeMap::new() });
        rows.len() - 1
    });
    let Some(row) = rows.get_mut(place) else { return };
    let cell = row.cells.entry(column).or_insert_with(|| StepCell { state, id: id.clone(), count: 0 });
    cell.count += 1;
    if Some(weight) > weight_of(cell.state) {
        (cell.state, cell.id) = (state, id);
    }
}

/// The weight of the state of a step, the worst the largest; none where it was not opened.
fn weight_of(state: StepState) -> Option<usize> {
    match state {
        StepState::NotOpened | StepState::NeverRuns | StepState::NotInRun => None,
        StepState::Waits(_) => Some(weight(SlotState::Waiting)),
        StepState::In(state) => Some(weight(state)),
    }
}

impl StepRow {
    pub(super) fn cell(&self, column: u32) -> Option<&StepCell> {
        self.cells.get(&column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, run: &str, state: StepState) -> Beside {
        let key = format!(".{run}.{name}");
        let id = SlotRef::new("etl".parse().unwrap(), kelos_model::SlotKey::parse(&key).unwrap());
        Beside { name: StepName::new(name).unwrap(), id, state }
    }

    #[test]
    fn a_cell_shows_the_worst_of_its_runs_and_leads_to_it() {
        use SlotState::{Failed, Running, Succeeded};
        let mut rows = Vec::new();
        note(&mut rows, 3, step("load", "c", StepState::In(Running)));
        note(&mut rows, 3, step("load", "b", StepState::In(Failed)));
        note(&mut rows, 3, step("load", "a", StepState::In(Failed)));
        note(&mut rows, 2, step("load", "a", StepState::In(Succeeded)));
        note(&mut rows, 2, step("tell", "a", StepState::NeverRuns));
        assert_eq!(rows.len(), 1, "a step that no run opened has no row of its own");
        let cell = rows[0].cell(3).unwrap();
        assert_eq!((cell.state, cell.count, cell.id.key.to_string()), (StepState::In(Failed), 3, ".b.load".to_owned()));
        assert!(rows[0].cell(1).is_none());
    }
}
