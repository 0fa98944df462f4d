//! The verdict: one line on whether everything is fine, above the rows.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use kelos_explain::stuck::{self, Kind};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::{SlotState, WorkflowId};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::BoardData;
use super::view::BoardView;
use crate::page::workflow_href;
use crate::state::{is_trouble, look};
use crate::words::count;

/// Workflows that are named.
const NAMED: usize = 3;

/// The number of workflows in trouble on the board, with the first of them. The script updates it as rows change.
pub(super) fn verdict(view: &BoardView, shown: &BoardData) -> Markup {
    let present = || shown.workflows.iter().filter(|row| row.present && !shown.jobs.contains_key(&row.id));
    let ids = present().map(|row| &row.id);
    let troubled: Vec<&WorkflowId> = ids.filter(|id| in_trouble(&shown.rows.of(id).letters)).collect();
    let (all, paused) = (present().count() as u64, present().filter(|row| row.paused).count());
    html! {
        p #verdict.verdict.(if troubled.is_empty() { "good" } else { "bad" }) role="status" data-named=(NAMED) {
            @if troubled.is_empty() {
                strong { "All fine" } span { (count(all, "workflow")) }
            } @else {
                a.go href=(view.of_trouble().href()) { strong { (troubled.len()) " of " (count(all, "workflow")) " failing" } }
                @for id in troubled.iter().take(NAMED) { a href=(workflow_href(id)) { (id) } }
                @if troubled.len() > NAMED { span { "and " (troubled.len() - NAMED) " more" } }
            }
            @if paused > 0 { span { (paused) " paused" } }
        }
    }
}

/// How many workflows have slots that are late or run for long, which no letter shows: `{"late": 2}`. The script requests it
/// once the board is painted.
pub(super) async fn late(State(app): State<App>) -> Result<Json<Value>, Fault> {
    let now = app.handle().now();
    let found = app.read(move |reader| stuck::read(reader, now)).await?;
    let late = found.rows.iter().filter(|row| matches!(row.kind, Kind::Late | Kind::Expiring | Kind::Long));
    let workflows: BTreeSet<&WorkflowId> = late.map(|row| &row.slot.workflow).collect();
    Ok(Json(json!({ "late": workflows.len() })))
}

/// A cell shows its worst state, and nothing is worse than trouble.
fn in_trouble(letters: &str) -> bool {
    let troubles = SlotState::ALL.into_iter().filter(|state| is_trouble(*state)).map(|state| look(state).letter);
    troubles.into_iter().any(|letter| letters.contains(letter))
}
