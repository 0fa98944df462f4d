//! The records of turns: a row for each, in the transaction of the turn.

use std::cmp::Reverse;

use jiff::Timestamp;
use kelos_model::history::RemovedHistory;
use kelos_store::adapter::{BODY, DigestBuilder, Span, stored};
use kelos_store::{Deletions, Digest, Order, Page, PageRequest, TurnColumns, TurnContent, TurnRecord};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::check::{self, Binding, Sum};
use super::fault::Fault;
use super::listing::PageBuilder;
use super::lookups::last_seq;
use super::rows::{column, moment};
use super::trim;

pub(super) const TURN: &str = "turn, epoch, at, first_event, events, body, digest, check_value";

pub(super) const DELETED: &str = "turn, deleted, check_value";

/// Events with their columns as they go into a digest, and the number of the workflow, which has none.
const STORED: &str = "SELECT seq, at, previous, name, kind, scheduled_at, key, events.body, workflow \
     FROM events LEFT JOIN workflows ON workflows.id = workflow WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq";

/// The same as version 1 of the body has them: a job had the time 0, and a moment was written as a time is.
const STORED_WITHOUT_KINDS: &str = "SELECT seq, at, previous, name, \
     CASE WHEN kind = 1 THEN 0 ELSE scheduled_at END, CASE WHEN kind = 2 THEN '' ELSE key END, events.body, workflow \
     FROM events LEFT JOIN workflows ON workflows.id = workflow WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq";

/// The same in a database of a schema before the eleventh.
const STORED_BEFORE_KINDS: &str = "SELECT seq, at, previous, name, scheduled_at, key, events.body, workflow \
     FROM events LEFT JOIN workflows ON workflows.id = workflow WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq";

/// The step of the schema that brings the records. What was written before has one record for all of it.
pub(super) fn begin(conn: &Connection) -> Result<(), Fault> {
    conn.execute_batch(include_str!("0010.sql"))?;
    if last_seq(conn)? > 0 { open_with(conn, 1, 1, STORED_BEFORE_KINDS) } else { Ok(()) }
}

/// Writes the one record that covers all existing events.
fn open_with(conn: &Connection, turn: u64, body: u32, stored: &str) -> Result<(), Fault> {
    let last = last_seq(conn)?;
    let sql = "SELECT at FROM events WHERE seq = ?1";
    let at = conn.query_row(sql, [column(last)], |row| row.get::<_, i64>(0)).optional()?.unwrap_or(0);
    let at = Timestamp::from_millisecond(at).unwrap_or_default();
    let header = TurnRecord { turn, epoch: 0, at, first_event: 1, events: last, body, digest: Digest::default() };
    let mut digesting = DigestBuilder::begin(&Digest::default(), header);
    body_as(conn, &header, &mut digesting, stored)?;
    write(conn, &digesting.end(), &mut Sum::default())
}

/// Takes all turns so far for one, if they do not agree with what is there.
pub(super) fn accept(conn: &Connection) -> Result<(), Fault> {
    if agree(conn)? {
        return Ok(());
    }
    let last = conn.query_row("SELECT coalesce(max(turn), 1) FROM turns", [], |row| row.get::<_, u64>(0))?;
    conn.execute_batch("DELETE FROM turns; DELETE FROM deletions")?;
    open_with(conn, last, BODY, STORED)?;
    let trimmed = trim::read(conn)?;
    if trimmed.turn == 0 {
        return Ok(());
    }
    // The one turn has all that was left.
    trim::write(conn, &RemovedHistory { turn: last, event: last_seq(conn)?, ..trimmed })
}

/// Whether the turns hang together, and agree with their events.
fn agree(conn: &Connection) -> Result<bool, Fault> {
    let mut statement = conn.prepare(&format!("SELECT {TURN} FROM turns ORDER BY turn"))?;
    let mut rows = statement.query([])?;
    let removed = trim::read(conn)?.turn;
    let mut before: Option<TurnRecord> = None;
    while let Some(row) = rows.next()? {
        let Ok(turn) = read(row) else { return Ok(false) };
        if turn.turn <= removed {
            before = Some(turn);
            continue;
        }
        let digest = before.map_or_else(Digest::default, |before| before.digest);
        let mut digesting = DigestBuilder::begin(&digest, turn);
        body(conn, &turn, &mut digesting)?;
        if !turn.follows(before.as_ref()) || digesting.end().digest != turn.digest {
            return Ok(false);
        }
        before = Some(turn);
    }
    Ok(before.map_or(0, |before| before.last_event()) == last_seq(conn)?)
}

/// The body of a turn, as its events are now.
pub(super) fn body(conn: &Connection, turn: &TurnRecord, columns: &mut dyn TurnColumns) -> Result<TurnContent, Fault> {
    body_as(conn, turn, columns, if turn.body < BODY { STORED_WITHOUT_KINDS } else { STORED })
}

fn body_as(
    conn: &Connection,
    turn: &TurnRecord,
    columns: &mut dyn TurnColumns,
    stored: &str,
) -> Result<TurnContent, Fault> {
    let (mut expected, mut missing) = (turn.first_event, None);
    if turn.events > 0 {
        let mut statement = conn.prepare_cached(stored)?;
        let mut rows = statement.query([column(turn.first_event), column(turn.last_event())])?;
        while let Some(row) = rows.next()? {
            let seq = row.get::<_, u64>(0)?;
            if seq != expected {
                missing.get_or_insert(expected);
            }
            expected = seq + 1;
            add(columns, row)?;
        }
    }
    if missing.is_none() && expected <= turn.last_event() {
        missing = Some(expected);
    }
    let deletions = if turn.deletes() { add_deletions(conn, turn.turn, columns)? } else { Deletions::default() };
    Ok(TurnContent { missing, deletions })
}

/// Adds the deletions of a turn as they are stored in their table.
fn add_deletions(conn: &Connection, turn: u64, columns: &mut dyn TurnColumns) -> Result<Deletions, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {DELETED} FROM deletions WHERE turn = ?1"))?;
    let mut rows = statement.query([column(turn)])?;
    let Some(row) = rows.next()? else { return Ok(Deletions::default()) };
    check::test(row, 0..2, 2, "what a turn deletes")?;
    let text = row.get_ref(1)?.as_str()?;
    columns.text(text.as_bytes());
    Ok(stored::read(text)?)
}

/// Writes what a turn deletes, if anything, and adds it to the digest.
pub(super) fn write_deletions(
    conn: &Connection,
    deletions: &Deletions,
    digesting: &mut DigestBuilder,
    sum: &mut Sum,
) -> Result<(), Fault> {
    if deletions.is_empty() {
        return Ok(());
    }
    let text = stored::text(deletions)?;
    digesting.text(text.as_bytes());
    let mut statement =
        conn.prepare_cached("INSERT INTO deletions (turn, deleted, check_value) VALUES (?1, ?2, ?3)")?;
    let mut row = Binding::new(&mut statement, sum);
    row.number(column(digesting.turn()))?.text(&*text)?.check_value()?.execute()?;
    Ok(())
}

/// Adds an event as it is stored in its table.
fn add(columns: &mut dyn TurnColumns, row: &Row<'_>) -> Result<(), Fault> {
    // The last one is the number of the workflow.
    let number = row.as_ref().column_count() - 1;
    for column in 0..number {
        // A number without a name is used itself.
        let nameless = column == 3 && row.get_ref(3)? == ValueRef::Null;
        match row.get_ref(if nameless { number } else { column })? {
            ValueRef::Null => columns.nothing(),
            ValueRef::Integer(value) => columns.number(value),
            ValueRef::Text(bytes) => columns.text(bytes),
            ValueRef::Real(_) | ValueRef::Blob(_) => {
                return Err(Fault::Damaged("an event holds what no event holds".to_owned()));
            }
        }
    }
    Ok(())
}

/// The last one; none before the first.
pub(super) fn last(conn: &Connection) -> Result<Option<TurnRecord>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {TURN} FROM turns ORDER BY turn DESC LIMIT 1"))?;
    let mut rows = statement.query([])?;
    rows.next()?.map(read).transpose()
}

/// The one with a number.
pub(super) fn at(conn: &Connection, turn: u64) -> Result<Option<TurnRecord>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {TURN} FROM turns WHERE turn = ?1"))?;
    let mut rows = statement.query([column(turn)])?;
    rows.next()?.map(read).transpose()
}

/// A page of them.
pub(super) fn page(conn: &Connection, paging: &PageRequest<'_>) -> Result<Page<TurnRecord>, Fault> {
    let Span { first, end } = Span::WHOLE.of(paging)?;
    let backwards = if paging.order == Order::Newest { " DESC" } else { "" };
    let sql = format!("SELECT {TURN} FROM turns WHERE turn >= ?1 AND turn < ?2 ORDER BY turn{backwards}");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([first, end])?;
    let mut found = PageBuilder::new(paging);
    while !found.is_full() {
        let Some(row) = rows.next()? else { break };
        let turn = read(row)?;
        found.rows.push((Reverse(turn.turn), turn));
    }
    Ok(PageBuilder::page(vec![found], paging, |Reverse(turn)| turn.to_string()))
}

fn read(row: &Row<'_>) -> Result<TurnRecord, Fault> {
    check::test(row, 0..7, 7, "a turn")?;
    let digest = Digest::from_bytes(row.get_ref(6)?.as_blob()?);
    Ok(TurnRecord {
        turn: row.get(0)?,
        epoch: row.get(1)?,
        at: moment(row.get(2)?)?,
        first_event: row.get(3)?,
        events: row.get(4)?,
        body: row.get(5)?,
        digest: digest.ok_or_else(|| Fault::Damaged("the digest of a turn has not 32 bytes".to_owned()))?,
    })
}

/// Writes a record.
pub(super) fn write(conn: &Connection, turn: &TurnRecord, sum: &mut Sum) -> Result<(), Fault> {
    let sql = "INSERT INTO turns (turn, epoch, at, first_event, events, body, digest, check_value) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut statement = conn.prepare_cached(sql)?;
    let mut row = Binding::new(&mut statement, sum);
    row.number(column(turn.turn))?.number(column(turn.epoch))?.number(turn.at.as_millisecond())?;
    row.number(column(turn.first_event))?.number(column(turn.events))?.number(i64::from(turn.body))?;
    row.bytes(turn.digest.as_bytes())?.check_value()?.execute()?;
    Ok(())
}
