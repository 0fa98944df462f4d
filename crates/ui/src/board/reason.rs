//! Why a cell is as it is, in one line: what people read who point at it or move to it.

use axum::Json;
use axum::extract::RawQuery;
use kelos_explain::why::{self, Account};
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_store::{PageRequest, Queries, SlotFilter, SlotRow, StoreError};
use serde_json::{Value, json};

use super::cell::wanted;
use super::row::weight;
use crate::{time, words};

/// Slots of a cell among which the worst is found, the newest.
const LOOKED_AT: usize = 200;
/// Characters of the line.
const LONGEST: usize = 300;

/// The reason for the worst state of a cell: `{"why": "it failed (exited with status 3)"}`.
pub(super) async fn show(RawQuery(query): RawQuery, app: App) -> Result<Json<Value>, Fault> {
    let (workflow, range) = wanted(query.as_deref().unwrap_or_default()).map_err(plain::bad_request)?;
    let now = app.handle().now();
    let read = move |reader: &dyn Queries| -> Result<Option<(SlotRow, bool, Account)>, StoreError> {
        let filter = SlotFilter { workflow: Some(workflow), range: Some(range), ..SlotFilter::default() };
        let rows = reader.slots(&filter, PageRequest::newest(LOOKED_AT))?.rows;
        let is_shared = rows.len() > 1;
        // The newest of the worst: of equals the last is the greatest.
        let Some(worst) = rows.into_iter().rev().max_by_key(|row| weight(row.slot.state)) else { return Ok(None) };
        let why = why::read(reader, &worst.id, now, true, None)?;
        Ok(Some((worst, is_shared, why)))
    };
    let told = app.read(read).await?.map(|(worst, is_shared, why)| {
        let line = line(&why);
        if is_shared { format!("{}: {line}", words::key(&worst.id.key)) } else { line }
    });
    Ok(Json(json!({ "why": told.unwrap_or_default() })))
}

/// The sentence, and what blocks the slot if the sentence does not say it.
fn line(why: &Account) -> String {
    let blockers = why.blockers.iter().filter(|one| !why.headline.contains(one.as_str()));
    let parts: Vec<&str> = std::iter::once(why.headline.as_str()).chain(blockers.map(String::as_str)).collect();
    let line = time::in_words(&parts.join("; "));
    if line.chars().count() <= LONGEST { line } else { line.chars().take(LONGEST - 1).chain(['…']).collect() }
}
