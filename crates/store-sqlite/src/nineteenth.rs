//! The nineteenth step of the schema: workflows say when their slots first gave outputs, because outputs are looked for only where there
//! may be any. A program of before could not read the event that says what a run is given, so it is to refuse the database.
//!
//! A row that didn't match its check value before does not match it after.

use kelos_model::workflow::Moments;
use kelos_store::adapter::stored;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::check::checked;
use super::fault::Fault;
use super::rows::moment;

pub(super) fn step(conn: &Connection) -> Result<(), Fault> {
    // Steps give to the steps after them; what a whole flow gives is an output of its run.
    let sql = "SELECT workflow, min(coalesce(ended_at, dispatched_at)) FROM runs \
               WHERE outputs IS NOT NULL AND kind <> 4 GROUP BY workflow";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut change = conn.prepare("UPDATE workflows SET moments = ?2, check_value = ?3 WHERE id = ?1")?;
    let mut read = conn.prepare(
        "SELECT id, name, version, present, paused, planned, moments, enabled, check_value FROM workflows WHERE id = ?1",
    )?;
    let mut changes: Vec<(i64, String, Option<i64>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, gave) = (row.get::<_, i64>(0)?, moment(row.get(1)?)?);
        let mut rows = read.query([id])?;
        let Some(row) = rows.next()? else { continue };
        let moments: Moments = stored::read(row.get_ref(6)?.as_str()?)?;
        let text = stored::text(&Moments { gave: Some(gave), ..moments })?;
        let check = checked(row, 8, |column| (column == 6).then_some(ValueRef::Text(text.as_bytes())), None)?;
        changes.push((id, text, check));
    }
    for (id, text, check) in changes {
        change.execute((id, text, check))?;
    }
    Ok(())
}
