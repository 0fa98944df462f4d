//! The jobs of a workflow by two of their identifiers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::jobs::{JobKeys, Kind};
use kelos_model::template::KeyValues;
use kelos_model::workflow::Workflow;
use kelos_model::{SlotRef, SlotState};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};

/// Jobs that are read for one matrix.
pub const MOST_READ: usize = 100_000;
/// Rows that are read at a time.
const PAGE: usize = 1000;

/// The jobs of a matrix, and its axes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatrixQuery {
    /// The identifier whose values are the rows.
    pub rows: Arc<str>,
    /// The identifier whose values are the columns; none where there is only one.
    pub columns: Option<Arc<str>>,
    /// Only jobs with these values of identifiers.
    pub only: BTreeMap<Arc<str>, Arc<str>>,
    /// Only jobs in one of these states; empty means any.
    pub states: Vec<SlotState>,
}

/// Values of an identifier: numbers by size, others by name; dates newest first.
pub type Axis = Vec<Arc<str>>;

/// The jobs with one value of each of two identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The number of jobs in each state.
    pub counts: BTreeMap<SlotState, u64>,
    /// One of them; the only one where there is only one.
    pub job: Option<SlotRef>,
}

impl Cell {
    /// The number of jobs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// The jobs of a workflow by two of their identifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The values of the one.
    pub rows: Axis,
    /// The values of the other; one empty text where there is none.
    pub columns: Axis,
    /// By row and column; those without jobs are left out.
    pub cells: BTreeMap<(Arc<str>, Arc<str>), Cell>,
    /// The values that jobs have of each identifier, whatever is asked for.
    pub values: BTreeMap<Arc<str>, Axis>,
    /// Whether there are more than [`MOST_READ`].
    pub is_cut: bool,
}

/// Reads the matrix of a keyed workflow's jobs.
///
/// # Errors
/// When the store can't be read.
pub fn matrix(reader: &dyn Queries, workflow: &Workflow, wanted: &MatrixQuery) -> Result<Matrix, StoreError> {
    let filter = SlotFilter { workflow: Some(workflow.id.clone()), ..SlotFilter::default() };
    let (mut read, mut from) = (MatrixReader::default(), None);
    let is_cut = loop {
        let page = reader.slot_states(&filter, PageRequest::newest(PAGE).after(from.as_deref()))?;
        read.total += page.rows.len();
        page.rows.into_iter().for_each(|(job, state)| read.add(workflow, wanted, job, state));
        from = page.next;
        if from.is_none() || read.total >= MOST_READ {
            break from.is_some();
        }
    };
    Ok(read.close(workflow.keys.jobs(), wanted, is_cut))
}

#[derive(Default)]
struct MatrixReader {
    total: usize,
    cells: BTreeMap<(Arc<str>, Arc<str>), Cell>,
    values: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl MatrixReader {
    fn add(&mut self, workflow: &Workflow, wanted: &MatrixQuery, job: SlotRef, state: SlotState) {
        let values = KeyValues::of(&workflow.keys, &job.key);
        let of = |name: &str| values.identifiers().iter().find(|(known, _)| **known == *name).map(|(_, value)| value);
        for (name, value) in values.identifiers() {
            self.values.entry(name.clone()).or_default().insert(value.clone());
        }
        let fits = wanted.only.iter().all(|(name, value)| of(name) == Some(value));
        let has_state = wanted.states.is_empty() || wanted.states.contains(&state);
        let Some(row) = of(&wanted.rows).filter(|_| fits && has_state) else { return };
        let column = wanted.columns.as_ref().map_or_else(|| Some("".into()), |name| of(name).cloned());
        let Some(column) = column else { return };
        let cell = self.cells.entry((row.clone(), column)).or_default();
        *cell.counts.entry(state).or_default() += 1;
        cell.job = Some(job);
    }

    fn close(self, keys: Option<&JobKeys>, wanted: &MatrixQuery, is_cut: bool) -> Matrix {
        let order = |name: Option<&Arc<str>>, values: BTreeSet<Arc<str>>| {
            ordered(name.and_then(|name| keys?.identifiers.get(name)), values)
        };
        let rows = self.cells.keys().map(|(row, _)| row.clone()).collect();
        let columns = self.cells.keys().map(|(_, column)| column.clone()).collect();
        Matrix {
            rows: order(Some(&wanted.rows), rows),
            columns: order(wanted.columns.as_ref(), columns),
            cells: self.cells,
            values: self.values.into_iter().map(|(name, all)| (name.clone(), order(Some(&name), all))).collect(),
            is_cut,
        }
    }
}

fn ordered(kind: Option<&Kind>, values: BTreeSet<Arc<str>>) -> Axis {
    let mut values: Axis = values.into_iter().collect();
    match kind {
        Some(Kind::Date { .. }) => values.reverse(),
        Some(Kind::Choice { of }) => values.sort_by_key(|value| of.iter().position(|one| one == value)),
        // Values that are numbers are sorted as such, even if their kind is text.
        _ => values.sort_by(|one, other| match (one.parse::<i64>(), other.parse::<i64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => std::cmp::Ordering::Less,
            (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
            _ => one.cmp(other),
        }),
    }
    values
}
