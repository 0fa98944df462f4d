//! The step of the schema that stores the kinds of keys. Before it, a time was also the moment at which a slot was
//! opened, and only the definition decided which it was; a job had the time 0.

use std::collections::BTreeSet;

use kelos_store::adapter::cursor::{JOB, MOMENT, OF_MOMENT, TIME};
use kelos_store::adapter::stored;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::Value as Json;

use super::check::{self, Sum};
use super::fault::Fault;

/// Events that are changed at a time.
const AT_ONCE: usize = 10_000;

/// Sets the kind of each key. Events are not changed: the digests of their turns stay the same, because version 1 of
/// the body is read back from the columns.
pub(super) fn tell_apart(conn: &Connection) -> Result<(), Fault> {
    let moments = defined_by(conn, &["events", "requests"])?;
    let (slots, runs) = (slots(conn, &moments)?, runs(conn, &moments)?);
    conn.execute_batch(include_str!("0011.sql"))?;
    let mut change = conn.prepare(
        "UPDATE slots SET kind = ?4, key = ?5, check_value = ?6 WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3",
    )?;
    for row in slots {
        change.execute(params_from_iter(row))?;
    }
    let mut change = conn.prepare("UPDATE runs SET kind = ?2, key = ?3, origin_check = ?4 WHERE seq = ?1")?;
    for row in runs {
        change.execute(params_from_iter(row))?;
    }
    events(conn, &moments)
}

/// The workflows that have one of these kinds of keys, by their latest definitions.
pub(super) fn defined_by(conn: &Connection, kinds: &[&str]) -> Result<BTreeSet<i64>, Fault> {
    let sql =
        "SELECT w.id, d.definition FROM workflows w JOIN definitions d ON d.workflow = w.id AND d.version = w.version";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found = BTreeSet::new();
    while let Some(row) = rows.next()? {
        // Damage is reported when the row is read.
        let Ok(definition) = stored::read::<Json>(row.get_ref(1)?.as_str()?) else { continue };
        let keys = definition.get("keys");
        if keys.is_some_and(|keys| kinds.iter().any(|kind| keys.get(kind).is_some())) {
            found.insert(row.get(0)?);
        }
    }
    Ok(found)
}

/// The columns of a key after the step.
struct NewKey<'a> {
    kind: i64,
    /// In `slots` what has none stays at 0.
    time: Option<i64>,
    beyond: &'a str,
}

fn kept<'a>(moments: &BTreeSet<i64>, workflow: i64, at: i64, beyond: &'a str) -> NewKey<'a> {
    match beyond {
        "" if moments.contains(&workflow) => NewKey { kind: MOMENT, time: Some(at), beyond: OF_MOMENT },
        "" => NewKey { kind: TIME, time: Some(at), beyond },
        id => NewKey { kind: JOB, time: None, beyond: id },
    }
}

/// The check value of a row by its new columns. One that did not agree before is kept, so that it does not agree after.
fn checked<'a>(
    row: &Row<'_>,
    columns: impl IntoIterator<Item = usize> + Clone,
    check: usize,
    new: impl Fn(usize) -> Option<ValueRef<'a>>,
    kind: i64,
) -> Result<Option<i64>, Fault> {
    if row.get_ref(check)? == ValueRef::Null || !check::agrees(row, columns.clone(), check)? {
        return Ok(row.get(check)?);
    }
    let mut sum = Sum::default();
    for column in columns {
        match new(column) {
            Some(value) => sum.value(value),
            None => sum.value(row.get_ref(column)?),
        }
    }
    sum.number(Some(kind));
    Ok(Some(sum.check_value()))
}

/// The names of the slots as they are, with their kinds, the rests of their keys and their check values as they are to be.
fn slots(conn: &Connection, moments: &BTreeSet<i64>) -> Result<Vec<[Value; 6]>, Fault> {
    let sql = "SELECT scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, external_id, \
        priority, backfill, due, said, last_event, collected, outputs, requested, asked_at, check_value FROM slots NOT INDEXED";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let (at, workflow, beyond) = (row.get::<_, i64>(0)?, row.get(1)?, row.get_ref(2)?.as_str()?);
        let NewKey { kind, beyond: new, .. } = kept(moments, workflow, at, beyond);
        let key = |column| (column == 2).then_some(ValueRef::Text(new.as_bytes()));
        let check = checked(row, 0..19, 19, key, kind)?;
        changes.push([at.into(), workflow.into(), text(beyond), kind.into(), text(new), check.into()]);
    }
    Ok(changes)
}

/// The positions of the runs, with their kinds, the rests of their keys and their check values as they are to be.
fn runs(conn: &Connection, moments: &BTreeSet<i64>) -> Result<Vec<[Value; 4]>, Fault> {
    let sql =
        "SELECT seq, workflow, scheduled_at, key, number, previous, dispatched_at, earlier, origin_check FROM runs";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let NewKey { kind, time, beyond } = kept(moments, row.get(1)?, row.get(2)?, row.get_ref(3)?.as_str()?);
        let key = |column| match column {
            2 => Some(time.map_or(ValueRef::Null, ValueRef::Integer)),
            3 => Some(ValueRef::Text(beyond.as_bytes())),
            _ => None,
        };
        let check = checked(row, 0..8, 8, key, kind)?;
        changes.push([row.get(0)?, kind.into(), text(beyond), check.into()]);
    }
    Ok(changes)
}

fn events(conn: &Connection, moments: &BTreeSet<i64>) -> Result<(), Fault> {
    let sql = "SELECT seq, at, previous, workflow, scheduled_at, key, body, check_value FROM events \
        WHERE seq > ?1 AND workflow IS NOT NULL AND scheduled_at IS NOT NULL AND key IS NOT NULL ORDER BY seq LIMIT ?2";
    let mut statement = conn.prepare(sql)?;
    let mut change =
        conn.prepare("UPDATE events SET kind = ?2, scheduled_at = ?3, key = ?4, check_value = ?5 WHERE seq = ?1")?;
    let mut after = 0_i64;
    loop {
        let mut changes: Vec<[Value; 5]> = Vec::new();
        let mut rows = statement.query(params![after, AT_ONCE])?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            let NewKey { kind, time, beyond } = kept(moments, row.get(3)?, row.get(4)?, row.get_ref(5)?.as_str()?);
            let key = |column| match column {
                4 => Some(time.map_or(ValueRef::Null, ValueRef::Integer)),
                5 => Some(ValueRef::Text(beyond.as_bytes())),
                _ => None,
            };
            let check = checked(row, 0..7, 7, key, kind)?;
            changes.push([after.into(), kind.into(), time.into(), text(beyond), check.into()]);
        }
        if changes.is_empty() {
            return Ok(());
        }
        for row in changes {
            change.execute(params_from_iter(row))?;
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}
