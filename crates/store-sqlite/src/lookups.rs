//! One row by its name or its number.

use jiff::Timestamp;
use kelos_model::{EventRecord, Run, Slot, SlotRef};
use kelos_store::adapter::cursor::{beyond_time, kind, order_time};
use rusqlite::Connection;

use super::blocks;
use super::fault::Fault;
use super::rows::{EVENT, Names, RUN, SLOT, STEP_SLOT, column, read_event_time};

/// A slot by its name.
pub(super) fn slot(conn: &Connection, names: &Names, id: &SlotRef) -> Result<Option<Slot>, Fault> {
    if id.key.step().is_some() {
        let sql = format!("SELECT {STEP_SLOT} FROM steps WHERE workflow = ?1 AND key = ?2");
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query((names.number(&id.workflow), beyond_time(&id.key)))?;
        return rows.next()?.map(|row| names.read_slot(row, id)).transpose();
    }
    let sql = format!("SELECT {SLOT} FROM slots WHERE workflow = ?1 AND scheduled_at = ?2 AND key = ?3 AND kind = ?4");
    let mut statement = conn.prepare_cached(&sql)?;
    let (at, beyond) = (order_time(&id.key), beyond_time(&id.key));
    let (number, kind) = (names.number(&id.workflow), kind(&id.key));
    let mut rows = statement.query((number, at, beyond, kind))?;
    match (rows.next()?, number) {
        (Some(row), _) => names.read_slot(row, id).map(Some),
        (None, Some(number)) => blocks::slot(conn, number, &id.key),
        (None, None) => Ok(None),
    }
}

/// A run by its number in the log.
pub(super) fn run(conn: &Connection, names: &Names, seq: u64) -> Result<Option<Run>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {RUN} FROM runs WHERE seq = ?1"))?;
    let mut rows = statement.query([column(seq)])?;
    rows.next()?.map(|row| names.read_run(row)).transpose()
}

/// When an event happened.
pub(super) fn event_time(conn: &Connection, seq: u64) -> Result<Option<Timestamp>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {EVENT} FROM events WHERE seq = ?1"))?;
    let mut rows = statement.query([column(seq)])?;
    rows.next()?.map(read_event_time).transpose()
}

/// An event by its number in the log; one that can't be read, by the one of its slot before it.
pub(super) fn event(conn: &Connection, names: &Names, seq: u64) -> Result<Option<EventRecord>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {EVENT} FROM events WHERE seq = ?1"))?;
    let mut seq = seq;
    loop {
        let mut rows = statement.query([column(seq)])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        match names.read_event(row)? {
            Ok(record) => return Ok(Some(record)),
            Err(previous) => seq = previous,
        }
    }
}

/// The number of the last event in the log; 0 if there is none.
pub(super) fn last_seq(conn: &Connection) -> Result<u64, Fault> {
    Ok(conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?.query_row([], |row| row.get(0))?)
}
