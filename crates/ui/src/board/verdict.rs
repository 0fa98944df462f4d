//! The verdict: one line on whether everything is fine, above the rows.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::RawQuery;
use jiff::Timestamp;
use kelos_explain::failures::{self, Failures};
use kelos_explain::stuck::{self, Kind};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::workflow::WorkflowRow;
use kelos_model::{SlotState, WorkflowId};
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::BoardData;
use super::view::BoardView;
use crate::failures::HREF;
use crate::page::workflow_href;
use crate::state::{is_trouble, look};
use crate::words::count;

/// Workflows that are named.
const NAMED: usize = 3;

/// The failures of workflows that have a row on the board.
struct BoardFailures<'a> {
    /// Those workflows, ascending.
    workflows: BTreeSet<&'a WorkflowId>,
    /// The number of failures at times that are not shown.
    outside: usize,
}

impl<'a> BoardFailures<'a> {
    fn of(view: &BoardView, all: &Failures, workflows: &'a [WorkflowRow]) -> BoardFailures<'a> {
        let rows = workflows.iter().filter(|row| row.present && row.definition.keys.jobs().is_none());
        let rows: BTreeSet<&WorkflowId> = rows.map(|row| &row.id).collect();
        let (start, end) = view.columns().bounds();
        let is_shown = |at: jiff::Timestamp| (start..end).contains(&at.as_millisecond());
        let of_rows = all.rows.iter().filter(|one| rows.contains(&one.slot.workflow));
        let outside = of_rows.filter(|one| !one.slot.key.time().is_some_and(is_shown)).count();
        let counts = all.by_workflow();
        BoardFailures { workflows: rows.into_iter().filter(|id| counts.contains_key(id)).collect(), outside }
    }
}

/// The number of failing workflows on the board, with the first of them. The script updates it as rows change.
pub(super) fn verdict(view: &BoardView, shown: &BoardData) -> Markup {
    let failing = BoardFailures::of(view, &shown.failures, &shown.workflows);
    let BoardFailures { workflows, outside } = &failing;
    let present = || shown.workflows.iter().filter(|row| row.present && !shown.jobs.contains_key(&row.id));
    let (all, paused) = (present().count() as u64, present().filter(|row| row.paused).count());
    let in_rows = workflows.iter().any(|id| in_trouble(&shown.rows.of(id).letters));
    let href = if in_rows { view.of_trouble().href() } else { HREF.to_owned() };
    html! {
        p #verdict.verdict.(if workflows.is_empty() { "good" } else { "bad" }) role="status" data-named=(NAMED)
            data-failing=(json!(workflows)) data-outside=(outside)
        {
            @if workflows.is_empty() {
                strong { "All fine" } span { (count(all, "workflow")) }
            } @else {
                a.go[in_rows] href=(href) { strong { (workflows.len()) " of " (count(all, "workflow")) " failing" } }
                @for id in workflows.iter().take(NAMED) { a href=(workflow_href(id)) { (id) } }
                @if workflows.len() > NAMED { span { "and " (workflows.len() - NAMED) " more" } }
                @if *outside > 0 { a href=(HREF) { (count(*outside as u64, "failure")) " outside of what is shown" } }
            }
            @if paused > 0 { span { (paused) " paused" } }
        }
    }
}

/// The failing workflows, and how many failures the board does not show: `{"failing": ["etl"], "outside": 2}`. The script requests
/// it after failures came or went.
pub(super) async fn failing(RawQuery(query): RawQuery, app: App) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    let view = BoardView::read(query.as_deref().unwrap_or_default(), now).map_err(plain::bad_request)?;
    let read = move |reader: &dyn Queries| -> Result<Value, StoreError> {
        let workflows = reader.workflows(None)?;
        let BoardFailures { workflows, outside } = BoardFailures::of(&view, &failures::find(reader, now)?, &workflows);
        Ok(json!({ "failing": workflows, "outside": outside }))
    };
    Ok(Json(app.read(read).await?))
}

/// How many workflows have slots that are late or run for long, which no letter shows, and how many slots of each workflow missed their
/// deadlines, with their times in milliseconds: `{"late": 2, "overdue": {"etl": 3}, "overdueAt": {"etl": [1767582000000]}}`. The script
/// requests it once the board is painted.
pub(super) async fn late(app: App) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    let found = app.read(move |reader| stuck::read(reader, now)).await?;
    let late =
        found.rows.iter().filter(|row| matches!(row.kind, Kind::Overdue | Kind::Late | Kind::Expiring | Kind::Long));
    let workflows: BTreeSet<&WorkflowId> = late.map(|row| &row.slot.workflow).collect();
    let overdue = found.rows.iter().filter(|row| row.kind == Kind::Overdue);
    let overdue: BTreeMap<&str, usize> = overdue.map(|row| (row.slot.workflow.as_str(), row.others + 1)).collect();
    let millis = |times: &Vec<Timestamp>| times.iter().map(|at| at.as_millisecond()).collect();
    let at: BTreeMap<&str, Vec<i64>> = found.overdue.iter().map(|(id, times)| (id.as_str(), millis(times))).collect();
    Ok(Json(json!({ "late": workflows.len(), "overdue": overdue, "overdueAt": at })))
}

/// A cell shows its worst state, and nothing is worse than trouble.
fn in_trouble(letters: &str) -> bool {
    let troubles = SlotState::ALL.into_iter().filter(|state| is_trouble(*state)).map(|state| look(state).letter);
    troubles.into_iter().any(|letter| letters.contains(letter))
}
