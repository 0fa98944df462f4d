//! Everything in the database, held against itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::{Slot, SlotRef, Workflow, WorkflowId};
use kelos_store::UnreadableRow;
use kelos_store::adapter::stored;
use rusqlite::{Connection, Transaction};

use super::blocks::{self, BLOCK};
use super::check;
use super::fault::Fault;
use super::followed::{FOLLOWED, REIGN};
use super::rows::{
    BACKFILL, COUNTED, DEFINED_FROM, DEFINITION, EVENT, FACT, NAMED, Names, REGISTER, RUN, RUN_COURSE, RUN_ORIGIN,
    SLOT, STEP_SLOT, WORKFLOW, column, fnv, read_defined, read_register, read_whole_slot, read_workflow,
};
use super::schema;
use super::trim::{self, TRIMMED};
use super::turns::{self, DELETED, TURN};
use super::unread::Unread;

/// Rows that have a check value, and what it is made of.
struct ChecksummedTable {
    table: &'static str,
    /// The name of a row in messages.
    what: &'static str,
    columns: &'static str,
    made_of: &'static [usize],
    /// The index of the column with the check value.
    check: usize,
    /// The columns that name a row.
    key: &'static [usize],
}

const UP_TO: [usize; 23] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22];

const fn rows(
    table: &'static str,
    what: &'static str,
    columns: &'static str,
    made_of: &'static [usize],
    key: &'static [usize],
) -> ChecksummedTable {
    ChecksummedTable { table, what, columns, made_of, check: made_of.len(), key }
}

/// All check values that there are.
fn all() -> [ChecksummedTable; 18] {
    let first = |count: usize| &UP_TO[..count];
    [
        rows("leadership", "the leadership", "one, epoch, node, taken_at, check_value", first(4), first(1)),
        rows("workflows", "a workflow", NAMED, first(8), first(1)),
        rows("workflows", "what is counted of a workflow", COUNTED, first(3), first(1)),
        rows("definitions", "a definition", DEFINITION, first(5), first(2)),
        rows("slots", "a slot", SLOT, first(23), first(3)),
        rows("slot_blocks", "a block of slots", BLOCK, first(8), first(1)),
        rows("steps", "a step", STEP_SLOT, first(23), &UP_TO[1..3]),
        ChecksummedTable { check: 14, ..rows("runs", "a run", RUN, &RUN_COURSE, first(1)) },
        ChecksummedTable { check: 15, ..rows("runs", "a run", RUN, &RUN_ORIGIN, first(1)) },
        rows("events", "an event", EVENT, first(8), first(1)),
        rows("turns", "a turn", TURN, first(7), first(1)),
        rows("deletions", "what a turn deletes", DELETED, first(2), first(1)),
        rows("backfills", "a backfill", BACKFILL, first(14), first(1)),
        rows("registers", "a register", REGISTER, first(3), first(2)),
        rows("followed", "its position in the log", FOLLOWED, first(3), first(1)),
        rows("reigns", "a time of leading", REIGN, first(5), first(1)),
        rows("trimmed", "what was removed of its history", TRIMMED, first(7), first(1)),
        rows("facts", "the name of a fact", FACT, first(4), first(3)),
    ]
}

impl ChecksummedTable {
    fn name(&self, column: usize) -> &'static str {
        self.columns.split(',').nth(column).map_or("", str::trim)
    }

    /// Calls back for each row that doesn't match its check value, with the right value.
    fn each(
        &self,
        conn: &Connection,
        mut each: impl FnMut(String, i64, &rusqlite::Row<'_>) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let mut statement = conn.prepare(&format!("SELECT {} FROM {} NOT INDEXED", self.columns, self.table))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let columns = || self.made_of.iter().copied();
            if !check::agrees(row, columns(), self.check)? {
                let told = check::disagreement(self.what, &check::first_values(row));
                if !each(told, check::made_of(row, columns())?, row)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Messages about damage, at most `limit`.
pub(super) fn damage(conn: &Connection, limit: usize) -> Result<Vec<String>, Fault> {
    let mut found = structure(conn, limit)?;
    match schema_changes(conn) {
        Ok(told) => found.extend(told),
        Err(fault) => found.extend(in_words(Err(fault))?),
    }
    for checked in all() {
        let outcome = checked.each(conn, |told, _, _| {
            found.push(told);
            Ok(found.len() < limit)
        });
        found.extend(in_words(outcome)?);
    }
    for test in [log_has_gaps, slots_are_miscounted, sources_changed, blocks::backfills_disagree] {
        let outcome = test(conn);
        match outcome {
            Ok(told) => found.extend(told),
            Err(fault) => found.extend(in_words(Err(fault))?),
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// A table that can't be read to its end is damaged; the others are checked nevertheless.
fn in_words(outcome: Result<(), Fault>) -> Result<Option<String>, Fault> {
    match outcome.map_err(|fault| fault.tell("read", "it")) {
        Ok(()) => Ok(None),
        Err(kelos_store::StoreError::Corrupt { what, .. }) => Ok(Some(what)),
        Err(other) => Err(other.into()),
    }
}

/// The findings of SQLite itself: pages, the order of rows, indexes that don't match their tables.
fn structure(conn: &Connection, limit: usize) -> Result<Vec<String>, Fault> {
    let mut statement = conn.prepare(&format!("PRAGMA integrity_check({})", limit.max(1)))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut found = Vec::new();
    for line in lines {
        let told = line.map_err(Fault::from).or_else(|fault| in_words(Err(fault)).map(Option::unwrap_or_default))?;
        found.extend((told != "ok" && !told.is_empty()).then_some(told));
    }
    Ok(found)
}

/// The tables and indexes that are missing, or whose text is not the one that the steps of the schema give: it says how values are stored.
fn schema_changes(conn: &Connection) -> Result<Vec<String>, Fault> {
    let mut made = Connection::open_in_memory()?;
    schema::migrate(&mut made, schema::STEPS, "a database in memory")?;
    let found = schema_texts(conn)?;
    let told = schema_texts(&made)?.into_iter().filter_map(|((kind, name), text)| {
        match found.get(&(kind.clone(), name.clone())) {
            None => Some(format!("its schema lacks the {kind} {name}")),
            Some(known) if *known != text => Some(format!("the {kind} {name} of its schema changed by itself")),
            Some(_) => None,
        }
    });
    Ok(told.collect())
}

/// The definitions of tables and indexes, by kind and name; each with the table that it belongs to.
type SchemaTexts = BTreeMap<(String, String), (String, Option<String>)>;

/// The definitions of a database, as far as they mean something.
fn schema_texts(conn: &Connection) -> Result<SchemaTexts, Fault> {
    let mut statement = conn.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema")?;
    let rows = statement.query_map([], |row| {
        let text = row.get::<_, Option<String>>(3)?;
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, text.as_deref().map(plain))))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A definition without what has no meaning there, and may be another from version to version: comments, white space and quotes of names.
fn plain(definition: &str) -> String {
    let lines = definition.lines().map(|line| line.split_once("--").map_or(line, |(before, _)| before));
    lines.flat_map(str::chars).filter(|one| !one.is_ascii_whitespace() && *one != '"').collect()
}

fn log_has_gaps(conn: &Connection) -> Result<Option<String>, Fault> {
    let sql = "SELECT count(*), coalesce(max(seq), 0) FROM events NOT INDEXED";
    let (events, last) = conn.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let removed = column(trim::read(conn)?.events);
    Ok((events + removed != last).then(|| match removed {
        0 => format!("the log ends with event {last} and has {events} events"),
        _ => format!("the log ends with event {last}, has {events} events, and {removed} were removed"),
    }))
}

fn slots_are_miscounted(conn: &Connection) -> Result<Option<String>, Fault> {
    let sql = "SELECT coalesce(sum(slots), 0), \
               (SELECT count(*) FROM slots NOT INDEXED) + (SELECT coalesce(sum(slots), 0) FROM slot_blocks) FROM workflows";
    let (counted, slots) = conn.query_row(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((counted != slots).then(|| format!("{counted} slots were counted, and there are {slots}")))
}

fn sources_changed(conn: &Connection) -> Result<Option<String>, Fault> {
    let mut statement = conn.prepare("SELECT id, digest, text FROM sources NOT INDEXED")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if fnv(row.get_ref(2)?.as_str()?) != row.get::<_, i64>(1)? {
            return Ok(Some(format!(
                "source {} does not agree with its digest: it changed by itself",
                row.get::<_, i64>(0)?
            )));
        }
    }
    Ok(None)
}

/// Accepts the rows as right: computes their check values and the indexes anew.
pub(super) fn accept(tx: &Transaction<'_>) -> Result<(), Fault> {
    tx.execute_batch(
        "REINDEX; UPDATE workflows SET slots = found.slots FROM \
         (SELECT id AS workflow, (SELECT count(*) FROM slots s WHERE s.workflow = w.id) + \
          (SELECT coalesce(sum(b.slots), 0) FROM slot_blocks b WHERE b.workflow = w.id) AS slots FROM workflows w) AS found \
         WHERE found.workflow = workflows.id AND found.slots <> workflows.slots",
    )?;
    for checked in all() {
        let mut mended = Vec::new();
        checked.each(tx, |_, value, row| {
            let key = checked.key.iter().map(|column| row.get(*column));
            let key = key.collect::<Result<Vec<rusqlite::types::Value>, _>>()?;
            mended.push((value, key));
            Ok(true)
        })?;
        let named = checked.key.iter().enumerate();
        let named = named.map(|(index, column)| format!("{} IS ?{}", checked.name(*column), index + 2));
        let (named, column) = (named.collect::<Vec<_>>().join(" AND "), checked.name(checked.check));
        let mut statement = tx.prepare(&format!("UPDATE {} SET {column} = ?1 WHERE {named}", checked.table))?;
        for (value, key) in mended {
            let values = std::iter::once(rusqlite::types::Value::Integer(value)).chain(key);
            statement.execute(rusqlite::params_from_iter(values))?;
        }
    }
    blocks::accept_backfills(tx)?;
    turns::accept(tx)
}

/// The rows that can't be read although they agree with their check values, at most `limit`. Of earlier definitions only those count that
/// a live run of a flow follows: nothing depends on the others.
pub(super) fn unreadable(conn: &Connection, names: &Names, limit: usize) -> Result<Vec<UnreadableRow>, Fault> {
    let found = Unread::default();
    let note = |workflow: &WorkflowId, slot: Option<&SlotRef>, what: String, why: String| {
        found.note(workflow, slot, what, why);
    };
    look(conn, WORKFLOW, |row| {
        read_workflow(row, Some(&found), |id, version, row| match read_defined(row, DEFINED_FROM) {
            Err(Fault::Unreadable(why)) => {
                note(id, None, format!("version {version} of its definition"), why);
                Ok(Arc::new(stored::salvage(id, row.get_ref(DEFINED_FROM + 3)?.as_str()?)))
            }
            read => read.map(Arc::new),
        })
        .map(drop)
    })?;
    let mut pinned: BTreeMap<(WorkflowId, u32), SlotRef> = BTreeMap::new();
    for (table, columns) in [("slots", SLOT), ("steps", STEP_SLOT)] {
        look(conn, &format!("SELECT {columns} FROM {table} NOT INDEXED"), |row| {
            let id = names.read_slot_name(row)?;
            let slot = read_whole_slot(row);
            let follows = slot.as_ref().ok().filter(|slot| slot.is_live()).and_then(Slot::run_of_flow);
            if let Some(definition) = follows.map(|run| run.definition).filter(|number| *number > 0) {
                pinned.entry((id.workflow.clone(), definition)).or_insert_with(|| id.clone());
            }
            told(slot, |why| note(&id.workflow, Some(&id), "the slot".to_owned(), why))
        })?;
    }
    for ((workflow, version), run) in &pinned {
        let Some(number) = names.number(workflow) else { continue };
        let sql = format!("SELECT {DEFINITION} FROM definitions WHERE workflow = {number} AND version = {version}");
        look(conn, &sql, |row| {
            told(read_defined::<Workflow>(row, 0), |why| {
                note(workflow, Some(run), format!("version {version} of the definition that it follows"), why);
            })
        })?;
    }
    look(conn, &format!("SELECT {RUN} FROM runs NOT INDEXED"), |row| {
        told(names.read_whole_run(row), |why| {
            let what = format!("run {} of the log", row.get::<_, u64>(0).unwrap_or_default());
            if let Ok(workflow) = row.get(1).map_err(Fault::from).and_then(|number| names.name(number)) {
                note(workflow, None, what, why);
            }
        })
    })?;
    let mut rows = found.all();
    let alone = |what: String, why: String| UnreadableRow { workflow: None, slot: None, what, why };
    look(conn, &format!("SELECT {EVENT} FROM events NOT INDEXED"), |row| {
        told(names.read_whole_event(row), |why| {
            let workflow = row.get::<_, Option<i64>>(3).ok().flatten().and_then(|number| names.name(number).ok());
            let what = format!("event {}", row.get::<_, u64>(0).unwrap_or_default());
            rows.push(UnreadableRow { workflow: workflow.cloned(), ..alone(what, why) });
        })
    })?;
    look(conn, &format!("SELECT {REGISTER} FROM registers"), |row| {
        told(read_register(row), |why| rows.push(alone("a register".to_owned(), why)))
    })?;
    rows.truncate(limit);
    Ok(rows)
}

/// Goes through the rows of a query. Rows that are damaged are told of by [`damage`], or contradict the log.
fn look(
    conn: &Connection,
    sql: &str,
    mut look: impl FnMut(&rusqlite::Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match look(row) {
            Ok(()) | Err(Fault::Damaged(_)) => {}
            Err(Fault::Sql(error)) if is_of_value(&error) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// Whether a column has a value of another type than it is written with.
fn is_of_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    matches!(error, InvalidColumnType(..) | FromSqlConversionFailure(..) | IntegralValueOutOfRange(..))
}

/// Tells of a row that can't be read.
fn told<T>(read: Result<T, Fault>, tell: impl FnOnce(String)) -> Result<(), Fault> {
    match read {
        Ok(_) => Ok(()),
        Err(Fault::Unreadable(why)) => {
            tell(why);
            Ok(())
        }
        Err(other) => Err(other),
    }
}
