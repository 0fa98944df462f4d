//! Everything that is read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use kelos_model::workflow::{Backfill, WorkflowRow};
use kelos_model::{BackfillId, EventRecord, FactKey, Run, Slot, SlotRef, SlotState, WorkflowId};
use rusqlite::{CachedStatement, Connection, Params, Row, params};
use serde_json::Value;

use super::check;
use super::counts;
use super::definitions::Definitions;
use super::fault::Fault;
use super::pages;
use super::pool::Pool;
use super::rows::{
    BACKFILL, DEFINITION, EVENT, FACT, Names, REGISTER, RUN, SLOT, WORKFLOW, column, read_definition, read_register,
    read_slot, slot_state,
};
use super::run_pages;
use super::turns;
use super::verify;
use crate::contract::{
    PENDING, Page, PastDefinition, Queries, RunFilter, SlotFilter, SlotRow, Snapshot, StoreError, facts_of,
    newest_first,
};
use crate::cursor::{beyond_time, parse_seq};
use crate::record::{Digest, Recount, TurnRecord};
use crate::tally::{Columns, Tally};
use kelos_model::Recall;

/// Reads a database file, for any number of threads.
#[derive(Debug)]
pub(super) struct SqliteReader {
    pool: Pool,
    place: Arc<str>,
    definitions: Definitions,
    /// What was found to be damaged first.
    damage: OnceLock<String>,
}

impl SqliteReader {
    pub(super) fn new(path: PathBuf, place: Arc<str>) -> Self {
        Self { pool: Pool::new(path), place, definitions: Definitions::default(), damage: OnceLock::new() }
    }

    fn read<T>(&self, what: &str, read: impl FnOnce(&Connection, &Names) -> Result<T, Fault>) -> Result<T, StoreError> {
        let outcome = self.pool.read(read).map_err(|fault| fault.tell(&format!("read {what} of"), &self.place));
        if let Err(StoreError::Corrupt { what, .. }) = &outcome {
            let _ = self.damage.set(what.clone());
        }
        outcome
    }

    /// Fails when something was read that is damaged: nobody may go on from it.
    pub(super) fn is_sound(&self) -> Result<(), StoreError> {
        match self.damage.get() {
            Some(what) => Err(StoreError::Corrupt { place: self.place.to_string(), what: what.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn restore(&self) -> Result<Snapshot, StoreError> {
        self.read("the state", |tx, names| {
            let last =
                tx.query_row("SELECT max(seq) FROM events", [], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(0);
            Ok(Snapshot {
                last_seq: last,
                last_at: event(tx, names, last)?.map(|record| record.at),
                last_turn: turns::last(tx)?,
                backfills: backfills(tx, names)?,
                workflows: workflows(tx, &self.definitions)?,
                slots: counts::live_slots(tx, names)?,
                runs: collect(
                    tx.prepare_cached(&format!("SELECT {RUN} FROM runs INDEXED BY runs_open WHERE state < 2"))?,
                    [],
                    |row| names.read_run(row),
                )?,
            })
        })
    }

    pub(super) fn recall(&self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        let mut slots = self.read("slots", |tx, names| match recall {
            Recall::Slots(refs) => recall_slots(tx, names, refs),
            Recall::Range { workflow, start, end } => {
                let sql = format!(
                    "SELECT {SLOT} FROM slots WHERE workflow = ?1 AND scheduled_at >= ?2 AND scheduled_at < ?3"
                );
                let (start, end) = (start.as_millisecond(), end.as_millisecond());
                let number = names.number(workflow);
                collect(tx.prepare_cached(&sql)?, params![number, start, end], |row| names.read_slot_row(row))
            }
        })?;
        slots.sort_by(|a, b| a.id.cmp(&b.id));
        slots.dedup_by(|a, b| a.id == b.id);
        Ok(slots)
    }

    pub(super) fn known_facts(&self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        self.read("facts", |tx, _| {
            let mut known = Vec::new();
            let sql = format!("SELECT {FACT} FROM facts WHERE source = ?1 AND about = ?2 AND key = ?3");
            let mut statement = tx.prepare_cached(&sql)?;
            for name in names {
                let mut rows = statement.query(params![&*name.source, &*name.about, &*name.key])?;
                if let Some(row) = rows.next()? {
                    check::test(row, 0..4, 4, "the name of a fact")?;
                    known.push(name.clone());
                }
            }
            Ok(known)
        })
    }

    pub(super) fn recall_runs(&self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        self.read("runs", |tx, names| seqs.iter().map(|seq| run(tx, names, *seq)).collect())
    }
}

/// The rows of a query.
fn collect<T>(
    mut statement: CachedStatement<'_>,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut rows = statement.query(params)?;
    let mut read_rows = Vec::new();
    while let Some(row) = rows.next()? {
        read_rows.push(read(row)?);
    }
    Ok(read_rows)
}

fn backfills(tx: &Connection, names: &Names) -> Result<Vec<Backfill>, Fault> {
    let sql = format!("SELECT {BACKFILL} FROM backfills ORDER BY created_at DESC, id DESC");
    collect(tx.prepare_cached(&sql)?, [], |row| names.read_backfill(row))
}

fn workflows(conn: &Connection, definitions: &Definitions) -> Result<Vec<WorkflowRow>, Fault> {
    let mut workflows = collect(conn.prepare_cached(WORKFLOW)?, [], |row| definitions.read_workflow(row))?;
    workflows.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(workflows)
}

fn recall_slots(conn: &Connection, names: &Names, refs: &[SlotRef]) -> Result<Vec<SlotRow>, Fault> {
    let mut slots = Vec::new();
    for id in refs {
        if let Some(slot) = slot(conn, names, id)? {
            slots.push(SlotRow { id: id.clone(), slot });
        }
    }
    Ok(slots)
}

fn slot(conn: &Connection, names: &Names, id: &SlotRef) -> Result<Option<Slot>, Fault> {
    let sql = format!("SELECT {SLOT} FROM slots WHERE workflow = ?1 AND scheduled_at = ?2 AND key = ?3");
    let mut statement = conn.prepare_cached(&sql)?;
    let key = (names.number(&id.workflow), id.key.scheduled_at().as_millisecond(), beyond_time(&id.key));
    let mut rows = statement.query(key)?;
    rows.next()?.map(read_slot).transpose()
}

fn run(conn: &Connection, names: &Names, seq: u64) -> Result<Run, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {RUN} FROM runs WHERE seq = ?1"))?;
    let mut rows = statement.query([column(seq)])?;
    let run = rows.next()?.map(|row| names.read_run(row)).transpose()?;
    run.ok_or_else(|| Fault::Damaged(format!("there is no run number {seq}")))
}

fn event(conn: &Connection, names: &Names, seq: u64) -> Result<Option<EventRecord>, Fault> {
    let mut statement = conn.prepare_cached(&format!("SELECT {EVENT} FROM events WHERE seq = ?1"))?;
    let mut rows = statement.query([column(seq)])?;
    rows.next()?.map(|row| names.read_event(row)).transpose()
}

fn last_seq(conn: &Connection) -> Result<u64, Fault> {
    let mut last = conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?;
    Ok(last.query_row([], |row| row.get(0))?)
}

/// Follows a chain from its newest link back; each link lies before the one that names it.
fn chain<T>(
    head: u64,
    link: impl FnMut(u64) -> Result<T, Fault>,
    previous: impl Fn(&T) -> u64,
) -> Result<Vec<T>, Fault> {
    let mut links = chain_back(head, usize::MAX, link, previous)?;
    links.reverse();
    Ok(links)
}

/// The same with the newest link first, and so many at the most.
fn chain_back<T>(
    head: u64,
    limit: usize,
    mut link: impl FnMut(u64) -> Result<T, Fault>,
    previous: impl Fn(&T) -> u64,
) -> Result<Vec<T>, Fault> {
    let mut links = Vec::new();
    let mut seq = head;
    while seq > 0 && links.len() < limit {
        let found = link(seq)?;
        let before = previous(&found);
        if before >= seq {
            return Err(Fault::Damaged(format!("number {seq} of the log names number {before} as the one before it")));
        }
        links.push(found);
        seq = before;
    }
    Ok(links)
}

impl Queries for SqliteReader {
    fn workflows(&self) -> Result<Vec<WorkflowRow>, StoreError> {
        self.read("the workflows", |tx, _| workflows(tx, &self.definitions))
    }

    fn workflow(&self, id: &WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
        self.read("a workflow", |tx, _| {
            let mut statement = tx.prepare_cached(&format!("{WORKFLOW} WHERE name = ?1"))?;
            let mut rows = statement.query([id.as_str()])?;
            rows.next()?.map(|row| self.definitions.read_workflow(row)).transpose()
        })
    }

    fn definitions(&self, id: &WorkflowId) -> Result<Vec<PastDefinition>, StoreError> {
        self.read("definitions", |tx, names| {
            let sql = format!(
                "SELECT {DEFINITION}, digest, text FROM definitions LEFT JOIN sources ON sources.id = source \
                 WHERE workflow = ?1 ORDER BY version DESC"
            );
            collect(tx.prepare_cached(&sql)?, [names.number(id)], read_definition)
        })
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        self.read("a slot", |tx, names| slot(tx, names, id))
    }

    fn slots(&self, filter: &SlotFilter, from: Option<&str>, limit: usize) -> Result<Page<SlotRow>, StoreError> {
        self.read("slots", |tx, names| pages::slots(tx, names, &pages::WHOLE, filter, (from, limit)))
    }

    fn slot_states(
        &self,
        filter: &SlotFilter,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        self.read("the states of slots", |tx, names| {
            pages::slots(tx, names, &pages::NAME_AND_STATE, filter, (from, limit))
        })
    }

    fn oldest_slots(&self, state: SlotState, limit: usize) -> Result<Vec<SlotRow>, StoreError> {
        self.read("the oldest slots", |tx, names| pages::oldest_slots(tx, names, state, limit))
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        self.read("the counts of slots", |tx, names| counts::slot_counts(tx, names, filter))
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        self.read("the tallies of slots", |tx, names| counts::slot_tallies(tx, names, columns, workflow))
    }

    fn history(&self, id: &SlotRef) -> Result<Vec<EventRecord>, StoreError> {
        let mut records = self.latest(id, usize::MAX)?;
        records.reverse();
        Ok(records)
    }

    fn pending(&self, workflow: &WorkflowId, limit: usize) -> Result<Vec<SlotRow>, StoreError> {
        self.read("a workflow's pending slots", |tx, names| {
            let states = PENDING.map(|state| slot_state(state).to_string()).join(", ");
            let sql = format!(
                "SELECT {SLOT} FROM slots INDEXED BY slots_collecting WHERE collected IS NOT NULL AND state < 6 \
                 AND workflow = ?1 AND state IN ({states}) ORDER BY scheduled_at DESC, key LIMIT ?2"
            );
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            collect(tx.prepare_cached(&sql)?, params![names.number(workflow), limit], |row| names.read_slot_row(row))
        })
    }

    fn latest(&self, id: &SlotRef, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
        self.read("a slot's history", |tx, names| {
            let head = slot(tx, names, id)?.map_or(0, |slot| slot.last_event);
            let link = |seq| {
                let record = event(tx, names, seq)?;
                record.ok_or_else(|| Fault::Damaged(format!("event {seq} of {id} is missing")))
            };
            chain_back(head, limit, link, |record| record.previous)
        })
    }

    fn slot_runs(&self, id: &SlotRef) -> Result<Vec<Run>, StoreError> {
        self.read("a slot's runs", |tx, names| {
            let head = slot(tx, names, id)?.map_or(0, |slot| slot.last_run_seq);
            chain(head, |seq| run(tx, names, seq), |run| run.previous)
        })
    }

    fn runs(&self, filter: &RunFilter, from: Option<&str>, limit: usize) -> Result<Page<Run>, StoreError> {
        self.read("runs", |tx, names| run_pages::runs(tx, names, filter, from, limit))
    }

    fn events(&self, after: u64, workflow: Option<&WorkflowId>, limit: usize) -> Result<Page<EventRecord>, StoreError> {
        self.read("the log", |tx, names| {
            let to = after.saturating_add(limit.max(1) as u64);
            let condition = if workflow.is_some() { " AND workflow = ?3" } else { " AND ?3 IS NULL" };
            let sql = format!("SELECT {EVENT} FROM events WHERE seq > ?1 AND seq <= ?2{condition} ORDER BY seq");
            let number = workflow.and_then(|name| names.number(name));
            let values = params![column(after), column(to), number];
            let rows = collect(tx.prepare_cached(&sql)?, values, |row| names.read_event(row))?;
            let next = (to < last_seq(tx)?).then(|| to.to_string());
            Ok(Page { rows, next })
        })
    }

    fn facts(&self, from: Option<&str>, limit: usize) -> Result<Page<EventRecord>, StoreError> {
        let before = from.map(parse_seq).transpose()?;
        self.read("facts", |tx, names| {
            let sql = format!(
                "SELECT {EVENT} FROM events INDEXED BY events_outside WHERE workflow IS NULL AND seq < ?1 \
                 ORDER BY seq DESC LIMIT ?2"
            );
            let limit = limit.max(1);
            let values = params![before.map_or(i64::MAX, column), column(limit as u64)];
            let rows = collect(tx.prepare_cached(&sql)?, values, |row| names.read_event(row))?;
            Ok(facts_of(rows, limit))
        })
    }

    fn workflow_events(
        &self,
        id: &WorkflowId,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<EventRecord>, StoreError> {
        let before = from.map(parse_seq).transpose()?;
        self.read("what happened to a workflow", |tx, names| {
            let sql = format!(
                "SELECT {EVENT} FROM events INDEXED BY events_of_workflows WHERE workflow = ?1 AND scheduled_at IS NULL \
                 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
            );
            let limit = limit.max(1);
            let values = params![names.number(id), before.map_or(i64::MAX, column), column(limit as u64)];
            let rows = collect(tx.prepare_cached(&sql)?, values, |row| names.read_event(row))?;
            Ok(newest_first(rows, limit))
        })
    }

    fn last_seq(&self) -> Result<u64, StoreError> {
        self.read("the log", |tx, _| last_seq(tx))
    }

    fn turns(&self, after: u64, limit: usize) -> Result<Page<TurnRecord>, StoreError> {
        self.read("the turns", |tx, _| turns::page(tx, after, limit))
    }

    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError> {
        self.read("the events of a turn", |tx, _| turns::recount(tx, turn, before))
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        let pool = self.pool.frozen().map_err(|fault| fault.tell("read", &self.place))?;
        let (place, definitions, damage) = (Arc::clone(&self.place), Definitions::default(), OnceLock::new());
        Ok(Arc::new(SqliteReader { pool, place, definitions, damage }))
    }

    fn backfills(&self) -> Result<Vec<Backfill>, StoreError> {
        self.read("the backfills", backfills)
    }

    fn backfill(&self, id: &BackfillId) -> Result<Option<Backfill>, StoreError> {
        self.read("a backfill", |tx, names| {
            let mut statement = tx.prepare_cached(&format!("SELECT {BACKFILL} FROM backfills WHERE name = ?1"))?;
            let mut rows = statement.query([id.as_str()])?;
            rows.next()?.map(|row| names.read_backfill(row)).transpose()
        })
    }

    fn register(&self, bucket: &str, key: &str) -> Result<Option<Value>, StoreError> {
        self.read("a register", |tx, _| {
            let sql = format!("SELECT {REGISTER} FROM registers WHERE bucket = ?1 AND key = ?2");
            let mut statement = tx.prepare_cached(&sql)?;
            let mut rows = statement.query((bucket, key))?;
            rows.next()?.map(read_register).transpose()
        })
    }

    fn registers(&self, bucket: &str, prefix: &str) -> Result<Vec<(String, Value)>, StoreError> {
        self.read("registers", |tx, _| {
            let sql = format!("SELECT {REGISTER} FROM registers WHERE bucket = ?1 AND key >= ?2 ORDER BY key");
            let mut statement = tx.prepare_cached(&sql)?;
            let mut rows = statement.query((bucket, prefix))?;
            let mut registers = Vec::new();
            while let Some(row) = rows.next()? {
                let key = row.get::<_, String>(1)?;
                if !key.starts_with(prefix) {
                    break;
                }
                registers.push((key, read_register(row)?));
            }
            Ok(registers)
        })
    }

    fn damage(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let found = self.pool.read_alone(|tx| verify::damage(tx, limit));
        let found = found.map_err(|fault| fault.tell("read everything in", &self.place))?;
        if let Some(first) = found.first() {
            let _ = self.damage.set(first.clone());
        }
        Ok(found)
    }

    fn buckets(&self) -> Result<Vec<String>, StoreError> {
        self.read("the buckets of registers", |tx, _| {
            let mut statement = tx.prepare_cached("SELECT DISTINCT bucket FROM registers ORDER BY bucket")?;
            let buckets = statement.query_map([], |row| row.get(0))?;
            Ok(buckets.collect::<Result<Vec<String>, _>>()?)
        })
    }
}
