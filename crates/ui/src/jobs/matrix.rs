//! The jobs of a workflow as a table: a row for each value of one identifier, a column for each of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_explain::jobs::{self, Cell, Matrix, MatrixQuery};
use kelos_front::fault::{Fault, plain};
use kelos_model::jobs::JobKeys;
use kelos_model::workflow::Workflow;
use kelos_model::{SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};

use crate::page::{segment, slot_href, workflow_href};
use crate::state::{BY_WEIGHT, look};
use crate::{strip, words};

/// Rows and columns of a page.
const ROWS: usize = 40;
const COLUMNS: usize = 30;
/// Values of an identifier among which one chooses from a list; of more one is typed.
const CHOSEN_FROM: usize = 300;

/// The query of a matrix: `rows`, `columns`, `is.NAME`, `state`, `row` and `column`.
#[derive(Debug, Clone)]
pub(crate) struct MatrixView {
    wanted: MatrixQuery,
    /// The first row and the first column of the page.
    row: usize,
    column: usize,
}

impl MatrixView {
    /// Reads a query. By default the first identifier is for the rows, the next for the columns.
    pub(crate) fn read(keys: &JobKeys, mut given: BTreeMap<String, String>) -> Result<MatrixView, Fault> {
        let names: Vec<Arc<str>> = keys.template.identifiers().cloned().collect();
        let known = |name: &str| {
            let found = names.iter().find(|known| ***known == *name).cloned();
            let expected = || names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| {
                plain::bad_request(format!("There is no identifier \"{name}\", expected {}.", expected()))
            })
        };
        given.retain(|_, value| !value.is_empty());
        let mut only = BTreeMap::new();
        for (name, value) in given.iter().filter_map(|(name, value)| Some((name.strip_prefix("is.")?, value))) {
            only.insert(known(name)?, Arc::from(value.as_str()));
        }
        let free =
            |but: Option<&Arc<str>>| names.iter().find(|name| Some(*name) != but && !only.contains_key(*name)).cloned();
        let rows = given.get("rows").map(|name| known(name)).transpose()?;
        let rows = rows.or_else(|| free(None)).or_else(|| names.first().cloned()).unwrap_or_default();
        let columns = match given.get("columns").map(String::as_str) {
            Some("-") => None,
            Some(name) => Some(known(name)?).filter(|name| *name != rows),
            None => free(Some(&rows)),
        };
        let number = |name: &str| match given.get(name).map(|text| text.parse()) {
            Some(Err(_)) => Err(plain::bad_request(format!("\"{name}\" is no number."))),
            Some(Ok(number)) => Ok(number),
            None => Ok(0),
        };
        let states = given.get("state").map(|name| state(name)).transpose()?.into_iter().collect();
        let allowed = |name: &String| name.starts_with("is.") || PARAMETERS.contains(&name.as_str());
        if let Some(unknown) = given.keys().find(|name| !allowed(name)) {
            return Err(plain::bad_request(format!("There is no parameter \"{unknown}\".")));
        }
        Ok(MatrixView {
            wanted: MatrixQuery { rows, columns, only, states },
            row: number("row")?,
            column: number("column")?,
        })
    }

    fn href(&self, id: &WorkflowId) -> String {
        let wanted = &self.wanted;
        let columns = wanted.columns.as_deref().unwrap_or("-");
        let mut pairs = vec![format!("rows={}", segment(&wanted.rows)), format!("columns={}", segment(columns))];
        pairs.extend(wanted.only.iter().map(|(name, value)| format!("is.{}={}", segment(name), segment(value))));
        pairs.extend(wanted.states.first().map(|state| format!("state={state}")));
        pairs.extend((self.row > 0).then(|| format!("row={}", self.row)));
        pairs.extend((self.column > 0).then(|| format!("column={}", self.column)));
        format!("{}?{}", workflow_href(id), pairs.join("&"))
    }

    /// The jobs of one cell, by their other identifiers.
    fn within(&self, keys: &JobKeys, row: &Arc<str>, column: &Arc<str>) -> MatrixView {
        let mut only = self.wanted.only.clone();
        only.insert(self.wanted.rows.clone(), row.clone());
        only.extend(self.wanted.columns.clone().map(|name| (name, column.clone())));
        let mut rest = keys.template.identifiers().filter(|name| !only.contains_key(*name)).cloned();
        let rows = rest.next().unwrap_or_else(|| self.wanted.rows.clone());
        let columns = rest.next();
        MatrixView {
            wanted: MatrixQuery { rows, columns, only, states: self.wanted.states.clone() },
            row: 0,
            column: 0,
        }
    }
}

const PARAMETERS: [&str; 5] = ["rows", "columns", "state", "row", "column"];

fn state(name: &str) -> Result<SlotState, Fault> {
    let found = SlotState::ALL.into_iter().find(|state| state.as_str() == name);
    found.ok_or_else(|| plain::bad_request(format!("There is no state \"{name}\".")))
}

/// A matrix, ready to be shown.
pub(crate) struct MatrixPage {
    asked: MatrixView,
    matrix: Matrix,
}

/// Reads the jobs of the query.
pub(crate) fn read(reader: &dyn Queries, workflow: &Workflow, asked: MatrixView) -> Result<MatrixPage, StoreError> {
    Ok(MatrixPage { matrix: jobs::matrix(reader, workflow, &asked.wanted)?, asked })
}

impl MatrixPage {
    /// The form of the query, and the jobs.
    pub(crate) fn show(&self, workflow: &Workflow, keys: &JobKeys) -> Markup {
        html! {
            h2 { "Jobs" }
            (self.choices(&workflow.id, keys))
            div #matrix data-live { (self.table(workflow, keys)) }
        }
    }

    fn choices(&self, id: &WorkflowId, keys: &JobKeys) -> Markup {
        let wanted = &self.asked.wanted;
        let names: Vec<&Arc<str>> = keys.template.identifiers().collect();
        html! {
            form.bar method="get" action=(workflow_href(id)) {
                label { "Rows " select name="rows" { @for name in &names { option value=(name) selected[**name == wanted.rows] { (name) } } } }
                @if names.len() > 1 {
                    label { "Columns " select name="columns" {
                        option value="-" selected[wanted.columns.is_none()] { "none" }
                        @for name in &names { option value=(name) selected[Some(*name) == wanted.columns.as_ref()] { (name) } }
                    } }
                }
                @for name in &names { (self.choice(name)) }
                label { "State " select name="state" {
                    option value="" { "any" }
                    @for state in SlotState::ALL { option value=(state.as_str()) selected[wanted.states.contains(&state)] { (state.as_str()) } }
                } }
                button { "Show" }
            }
        }
    }

    fn choice(&self, name: &Arc<str>) -> Markup {
        let chosen = self.asked.wanted.only.get(name);
        let values = self.matrix.values.get(name).map_or(&[][..], Vec::as_slice);
        html! {
            @if values.len() > CHOSEN_FROM {
                label { (name) " " input name=(format!("is.{name}")) value=[chosen] size="10" autocomplete="off"; }
            } @else if values.len() > 1 || chosen.is_some() {
                label { (name) " " select name=(format!("is.{name}")) {
                    option value="" { "any" }
                    @for value in values { option value=(value) selected[Some(value) == chosen] { (value) } }
                    @if let Some(chosen) = chosen.filter(|chosen| !values.contains(chosen)) { option value=(chosen) selected { (chosen) } }
                } }
            }
        }
    }

    fn table(&self, workflow: &Workflow, keys: &JobKeys) -> Markup {
        let (matrix, asked) = (&self.matrix, &self.asked);
        let rows: Vec<&Arc<str>> = matrix.rows.iter().skip(asked.row).take(ROWS).collect();
        let columns: Vec<&Arc<str>> = matrix.columns.iter().skip(asked.column).take(COLUMNS).collect();
        html! {
            @if matrix.cells.is_empty() { (self.nothing(workflow)) } @else {
                div.wide { table.matrix {
                    thead { tr {
                        th { (asked.wanted.rows) @if let Some(name) = &asked.wanted.columns { span.soft { " \\ " (name) } } }
                        @for column in &columns { th scope="col" { @if asked.wanted.columns.is_some() { (column) } @else { "jobs" } } }
                    } }
                    tbody { @for row in &rows { tr {
                        th scope="row" { (row) }
                        @for column in &columns {
                            td { @if let Some(cell) = matrix.cells.get(&((*row).clone(), (*column).clone())) { (self.cell(workflow, keys, cell, row, column)) } }
                        }
                    } } }
                } }
                (self.pages(&workflow.id))
            }
            @if matrix.is_cut { p.note { "There are more jobs than are read: the first " (jobs::MOST_READ) " by their ids." } }
        }
    }

    fn nothing(&self, workflow: &Workflow) -> Markup {
        html! {
            @if self.matrix.values.is_empty() {
                p.soft { "No job was ever opened. Submit one here, or with " code { "kelos submit -a " (workflow.id) " -j JOB_ID" } "." }
            } @else { p.soft { "No job is like that." } }
        }
    }

    fn cell(&self, workflow: &Workflow, keys: &JobKeys, cell: &Cell, row: &Arc<str>, column: &Arc<str>) -> Markup {
        let worst = BY_WEIGHT.iter().rev().find(|state| cell.counts.contains_key(state));
        let (Some(worst), Some(job)) = (worst, &cell.job) else { return html! {} };
        if cell.total() == 1 {
            return strip::square(job, *worst);
        }
        let told: Vec<String> =
            cell.counts.iter().map(|(state, count)| format!("{count} {}", state.as_str())).collect();
        let (told, look) = (told.join(", "), look(*worst));
        let href = if keys.template.identifiers().len() > 2 || self.asked.wanted.columns.is_none() {
            self.asked.within(keys, row, column).href(&workflow.id)
        } else {
            slot_href(job)
        };
        html! { a.square.many .(look.class) href=(href) title=(told) aria-label=(told) { (look.letter) small { (cell.total()) } } }
    }

    fn pages(&self, id: &WorkflowId) -> Markup {
        let (matrix, asked) = (&self.matrix, &self.asked);
        let to = |row: usize, column: usize| MatrixView { row, column, ..asked.clone() }.href(id);
        let last_row = (asked.row + ROWS).min(matrix.rows.len());
        html! {
            nav.bar aria-label="Pages of the matrix" {
                span.soft { (words::count(matrix.cells.values().map(Cell::total).sum(), "job")) "; rows " (asked.row + 1) " to " (last_row) " of " (matrix.rows.len()) }
                @if asked.row > 0 { a.button rel="prev" href=(to(asked.row.saturating_sub(ROWS), asked.column)) { "↑ Rows before" } }
                @if last_row < matrix.rows.len() { a.button rel="next" href=(to(last_row, asked.column)) { "Rows after ↓" } }
                @if asked.column > 0 { a.button href=(to(asked.row, asked.column.saturating_sub(COLUMNS))) { "← Columns before" } }
                @if asked.column + COLUMNS < matrix.columns.len() { a.button href=(to(asked.row, asked.column + COLUMNS)) { "Columns after →" } }
            }
        }
    }
}
