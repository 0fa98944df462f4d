//! History that turns remove, and the room in the file that it leaves.

use kelos_model::Event;
use kelos_model::history::{RemovedHistory, Trim};
use kelos_store::TurnRecord;
use rusqlite::Connection;

use super::check::{self, Binding, Sum};
use super::fault::Fault;
use super::lookups::last_seq;
use super::rows::{EVENT, Names, column, moment};

pub(super) const TRIMMED: &str = "one, turn, event, at, events, runs, is_new, check_value";

/// The file gives room back once so many of its pages are free, and a share of all.
pub(super) const FREE_PAGES: i64 = 256;
pub(super) const FREE_SHARE: i64 = 8;
/// The most pages that are given back at a time: a turn waits for them.
pub(super) const GIVEN_BACK: i64 = 200;

/// The largest file from before that is rebuilt when it is brought up to date, so that it can give room back. A larger one only uses its
/// room again: nobody wants to wait for it at a start.
const REBUILT: i64 = 256 << 20;

/// The step of the schema that brings it.
pub(super) fn step(conn: &Connection) -> Result<(), Fault> {
    conn.execute_batch(include_str!("0023.sql"))?;
    write(conn, &RemovedHistory { is_new: last_seq(conn)? == 0, ..RemovedHistory::default() })
}

/// The history that was removed so far.
pub(super) fn read(conn: &Connection) -> Result<RemovedHistory, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {TRIMMED} FROM trimmed"))?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(RemovedHistory::default()) };
    check::test(row, 0..7, 7, "what was removed of its history")?;
    Ok(RemovedHistory {
        turn: row.get(1)?,
        event: row.get(2)?,
        at: row.get::<_, Option<i64>>(3)?.map(moment).transpose()?,
        events: row.get(4)?,
        runs: row.get(5)?,
        is_new: row.get(6)?,
    })
}

pub(super) fn write(conn: &Connection, removed: &RemovedHistory) -> Result<(), Fault> {
    let RemovedHistory { turn, event, at, events, runs, is_new } = *removed;
    let sql = "INSERT INTO trimmed (one, turn, event, at, events, runs, is_new, check_value) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (one) DO UPDATE SET \
               turn = ?2, event = ?3, at = ?4, events = ?5, runs = ?6, is_new = ?7, check_value = ?8";
    let (mut statement, mut sum) = (conn.prepare_cached(sql)?, Sum::default());
    let mut row = Binding::new(&mut statement, &mut sum);
    row.number(1)?.number(column(turn))?.number(column(event))?.number(at.map(|at| at.as_millisecond()))?;
    row.number(column(events))?.number(column(runs))?.number(i64::from(is_new))?.check_value()?.execute()?;
    Ok(())
}

/// Removes history in the transaction of a turn, with the record of the turn up to which it may be incomplete then: nothing without it.
pub(super) fn apply(conn: &Connection, trim: &Trim, until: Option<TurnRecord>) -> Result<(), Fault> {
    let Some(until) = until else { return Ok(()) };
    let mut removed = read(conn)?;
    // The last event says where the log continues.
    let last = until.last_event().min(last_seq(conn)?.saturating_sub(1));
    for (first, end) in trim.within(last) {
        let stretch = (column(first), column(end));
        forget_facts(conn, stretch)?;
        let delete = |sql: &str| Ok::<_, Fault>(conn.prepare_cached(sql)?.execute(stretch)? as u64);
        removed.events += delete("DELETE FROM events WHERE seq >= ?1 AND seq <= ?2")?;
        // What depends on a slot may still be given its outputs.
        removed.runs += delete("DELETE FROM runs WHERE seq >= ?1 AND seq <= ?2 AND state > 1 AND outputs IS NULL")?;
    }
    if until.turn > removed.turn {
        for table in ["turns", "deletions"] {
            let sql = format!("DELETE FROM {table} WHERE turn > (SELECT min(turn) FROM turns) AND turn < ?1");
            conn.prepare_cached(&sql)?.execute([column(until.turn)])?;
        }
        (removed.turn, removed.event, removed.at) = (until.turn, until.last_event(), Some(until.at));
    }
    write(conn, &removed)
}

/// Removes the names of the facts that were published there.
fn forget_facts(conn: &Connection, stretch: (i64, i64)) -> Result<(), Fault> {
    let sql = format!(
        "SELECT {EVENT} FROM events INDEXED BY events_outside WHERE workflow IS NULL AND seq >= ?1 AND seq <= ?2"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(stretch)?;
    let mut delete =
        conn.prepare_cached("DELETE FROM facts WHERE source = ?1 AND key = ?2 AND about = ?3 AND seq = ?4")?;
    let names = Names::default();
    while let Some(row) = rows.next()? {
        let Ok(record) = names.read_event(row)? else { continue };
        let Event::Fact { fact, .. } = &record.event else { continue };
        if let Some(name) = fact.name() {
            delete.execute((&*name.source, &*name.key, &*name.about, column(record.seq)))?;
        }
    }
    Ok(())
}

/// Gives some of the file's free room back to the disk, if there is much of it. A file from before only uses it again.
pub(super) fn give_back(conn: &Connection) -> Result<(), Fault> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (free, pages) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
    if free >= FREE_PAGES && free * FREE_SHARE >= pages {
        // Each row of the answer is a page.
        let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({GIVEN_BACK})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}

/// Rebuilds a small file that was made before room could be given back.
pub(super) fn rebuild_for_room(conn: &Connection) -> Result<(), Fault> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let size = number("PRAGMA page_count")? * number("PRAGMA page_size")?;
    if number("PRAGMA auto_vacuum")? != 0 || size > REBUILT {
        return Ok(());
    }
    // It is copied beside the others of its kind, and not into memory.
    conn.pragma_update(None, "temp_store", "FILE")?;
    let outcome = conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(outcome?)
}
