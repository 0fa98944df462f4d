//! The twelfth step of the schema: disabled workflows are distinguished from paused ones, and outputs are stored with
//! their runs. Before it, a disabled event schedule was a paused one, and a slot kept the outputs of its run while that
//! was live.
//!
//! A row that didn't match its check value before does not match it after.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::check::checked;
use super::fault::Fault;
use super::kinds;

pub(super) fn step(conn: &Connection) -> Result<(), Fault> {
    conn.execute_batch(include_str!("0012.sql"))?;
    tell_disabled(conn)?;
    hand_outputs_over(conn)
}

fn tell_disabled(conn: &Connection) -> Result<(), Fault> {
    let schedules = kinds::defined_by(conn, &["events"])?;
    let mut changes: Vec<[Value; 4]> = Vec::new();
    let mut statement =
        conn.prepare("SELECT id, name, version, present, paused, planned, moments, check_value FROM workflows")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, off) = (row.get::<_, i64>(0)?, row.get::<_, i64>(4)? != 0);
        let is_schedule = schedules.contains(&id);
        let (enabled, paused) = (i64::from(!(off && is_schedule)), i64::from(off && !is_schedule));
        let new = |column| (column == 4).then_some(ValueRef::Integer(paused));
        let check = checked(row, 7, new, Some(ValueRef::Integer(enabled)))?;
        changes.push([id.into(), enabled.into(), paused.into(), check.into()]);
    }
    let mut change = conn.prepare("UPDATE workflows SET enabled = ?2, paused = ?3, check_value = ?4 WHERE id = ?1")?;
    for row in changes {
        change.execute(params_from_iter(row))?;
    }
    Ok(())
}

/// Moves the outputs of live runs from their slots to them.
fn hand_outputs_over(conn: &Connection) -> Result<(), Fault> {
    let mut slots: Vec<[Value; 4]> = Vec::new();
    let mut runs: Vec<(i64, String)> = Vec::new();
    let sql = "SELECT scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, external_id, \
        priority, backfill, due, said, last_event, collected, outputs, requested, asked_at, kind, check_value \
        FROM slots NOT INDEXED WHERE outputs IS NOT NULL";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let check = checked(row, 20, |column| (column == 16).then_some(ValueRef::Null), None)?;
        slots.push([row.get(0)?, row.get(1)?, row.get(2)?, check.into()]);
        runs.push((row.get(7)?, row.get(16)?));
    }
    let mut change = conn.prepare(
        "UPDATE slots SET outputs = NULL, check_value = ?4 WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3",
    )?;
    for row in slots {
        change.execute(params_from_iter(row))?;
    }
    let mut change = conn.prepare("UPDATE runs SET outputs = ?2, check_value = ?3 WHERE seq = ?1")?;
    for (seq, outputs) in runs {
        let sql = "SELECT seq, state, executor, external_id, started_at, ended_at, outcome, check_value FROM runs WHERE seq = ?1";
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([seq])?;
        let Some(row) = rows.next()? else { continue };
        let check = checked(row, 7, |_| None, Some(ValueRef::Text(outputs.as_bytes())))?;
        drop(rows);
        change.execute((seq, &outputs, check))?;
    }
    Ok(())
}
