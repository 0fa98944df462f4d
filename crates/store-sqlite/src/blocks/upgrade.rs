//! The step of the schema from which blocks have slots of all kinds of keys, and of backfills.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::super::check::checked;
use super::super::fault::Fault;

/// The blocks that are there keep their bodies: their slots have times alone. A block that didn't match its check value before does not match
/// it after.
pub(in super::super) fn step(conn: &Connection) -> Result<(), Fault> {
    conn.execute_batch(include_str!("../0025.sql"))?;
    let mut statement = conn.prepare("SELECT id, workflow, first, last, slots, body, check_value FROM slot_blocks")?;
    let mut rows = statement.query([])?;
    let mut checks: Vec<(i64, Option<i64>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let no_keys = [ValueRef::Text(b""), ValueRef::Text(b"")];
        checks.push((row.get(0)?, checked(row, 6, |_| None, no_keys)?));
    }
    let mut change = conn.prepare("UPDATE slot_blocks SET check_value = ?2 WHERE id = ?1")?;
    for check in checks {
        change.execute(check)?;
    }
    Ok(())
}
