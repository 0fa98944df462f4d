//! Everything that is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kelos_model::backfill::Backfill;
use kelos_model::history::RemovedHistory;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{BackfillId, EventRecord, FactKey, Recall, Run, Slot, SlotRef, SlotState, Stretch, WorkflowId};
use kelos_store::adapter::Backlogs;
use kelos_store::{
    BackfillFilter, Columns, EventFilter, Page, PageRequest, PastDefinition, Queries, Register, RegisterKeys,
    RunFilter, SlotFilter, SlotRow, Snapshot, Space, StoreError, Tally, TurnColumns, TurnContent, TurnRecord,
    UnreadableRow,
};
use rusqlite::{CachedStatement, Connection, Params, Row, params};

use super::blocks::BlockFilter;
use super::definitions::Definitions;
use super::fault::Fault;
use super::pool::Pool;
use super::rows::{
    BACKFILL, DEFINITION, FACT, Names, REGISTER, RUN, SLOT, WORKFLOW, read_definition, read_planned, read_register,
};
use super::{check, counts, event_pages, lookups, pages, run_pages, steps, trim, turns, verify};

/// Reads a database file, for any number of threads.
#[derive(Debug)]
pub(super) struct SqliteReader {
    pool: Pool,
    place: Arc<str>,
    definitions: Definitions,
    /// The first damage that was found.
    damage: OnceLock<String>,
}

impl SqliteReader {
    pub(super) fn new(path: PathBuf, place: Arc<str>) -> Self {
        Self { pool: Pool::new(path), place, definitions: Definitions::default(), damage: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        self.pool.path()
    }

    fn read<T>(&self, what: &str, read: impl FnOnce(&Connection, &Names) -> Result<T, Fault>) -> Result<T, StoreError> {
        let outcome = self.pool.read(read).map_err(|fault| fault.tell(&format!("read {what} of"), &self.place));
        if let Err(StoreError::Corrupt { what, .. }) = &outcome {
            let _ = self.damage.set(what.clone());
        }
        outcome
    }

    /// Fails if damaged data were read: the process must not continue with them.
    pub(super) fn is_sound(&self) -> Result<(), StoreError> {
        match self.damage.get() {
            Some(what) => Err(StoreError::Corrupt { place: self.place.to_string(), what: what.clone() }),
            None => Ok(()),
        }
    }

    /// The rows that were met so far, and can't be read.
    pub(super) fn met_unreadable(&self) -> Vec<UnreadableRow> {
        self.pool.unread.all()
    }

    pub(super) fn restore(&self) -> Result<Snapshot, StoreError> {
        self.read("the state", |tx, names| {
            let last =
                tx.query_row("SELECT max(seq) FROM events", [], |row| row.get::<_, Option<u64>>(0))?.unwrap_or(0);
            Ok(Snapshot {
                last_seq: last,
                last_at: lookups::event_time(tx, last)?,
                last_turn: turns::last(tx)?,
                backfills: backfills(tx, names, &BackfillFilter::default())?,
                workflows: workflows(tx, names, &self.definitions, None)?,
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
                let mut slots =
                    collect(tx.prepare_cached(&sql)?, params![number, start, end], |row| names.read_slot_row(row))?;
                if number.is_some() {
                    slots.extend(BlockFilter::new(number, (start, end)).rows(tx, names)?);
                }
                Ok(slots)
            }
            Recall::Steps(run) => Ok(steps::page(tx, names, run, &PageRequest::newest(usize::MAX))?.rows),
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
        self.read("runs", |tx, names| seqs.iter().filter_map(|seq| lookups::run(tx, names, *seq).transpose()).collect())
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

fn backfills(tx: &Connection, names: &Names, filter: &BackfillFilter) -> Result<Vec<Backfill>, Fault> {
    let sql = format!(
        "SELECT {BACKFILL} FROM backfills WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR workflow = ?2) \
         ORDER BY created_at DESC, id DESC"
    );
    // A workflow that doesn't exist has no number, and no backfill.
    let workflow = filter.workflow.as_ref().map(|name| names.number(name).unwrap_or(i64::MIN));
    let values = params![filter.id.as_ref().map(BackfillId::as_str), workflow];
    collect(tx.prepare_cached(&sql)?, values, |row| names.read_backfill(row))
}

fn workflows(
    conn: &Connection,
    names: &Names,
    definitions: &Definitions,
    only: Option<&WorkflowId>,
) -> Result<Vec<WorkflowRow>, Fault> {
    let read = |row: &Row<'_>| definitions.read_workflow(row, &names.unread);
    let mut workflows = match only {
        None => collect(conn.prepare_cached(WORKFLOW)?, [], read)?,
        Some(id) => collect(conn.prepare_cached(&format!("{WORKFLOW} WHERE name = ?1"))?, [id.as_str()], read)?,
    };
    workflows.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(workflows)
}

fn registers(conn: &Connection, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, Fault> {
    let in_bucket = if bucket.is_some() { "bucket = ?1" } else { "?1 IS NULL" };
    let (key, compare) = match keys {
        RegisterKeys::One(key) => (key, "="),
        RegisterKeys::Prefix(prefix) => (prefix, ">="),
    };
    let sql = format!("SELECT {REGISTER} FROM registers WHERE {in_bucket} AND key {compare} ?2 ORDER BY bucket, key");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![bucket, key])?;
    let mut registers = Vec::new();
    while let Some(row) = rows.next()? {
        let value = match (read_register(row), &keys) {
            // A list goes on without it.
            (Err(Fault::Unreadable(_)), RegisterKeys::Prefix(_)) => continue,
            (read, _) => read?,
        };
        let register = Register { bucket: row.get(0)?, key: row.get(1)?, value };
        match register.key.starts_with(key) {
            true => registers.push(register),
            // The prefix is passed, and with it the bucket.
            false if bucket.is_some() => break,
            false => {}
        }
    }
    Ok(registers)
}

/// The backlogs of all workflows, or of one.
fn backlogs(conn: &Connection, only: Option<&WorkflowId>) -> Result<Backlogs, Fault> {
    let sql = "SELECT id, name, version, present, paused, planned, moments, enabled, check_value \
               FROM workflows INDEXED BY workflows_backlog \
               WHERE instr(planned, '\"backlog\":') > 0 AND (?1 IS NULL OR name = ?1)";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([only.map(WorkflowId::as_str)])?;
    let mut backlogs = Backlogs::default();
    while let Some(row) = rows.next()? {
        let (id, planned) = read_planned(row)?;
        backlogs.add(id, &planned);
    }
    Ok(backlogs)
}

fn recall_slots(conn: &Connection, names: &Names, refs: &[SlotRef]) -> Result<Vec<SlotRow>, Fault> {
    let mut slots = Vec::new();
    for id in refs {
        if let Some(slot) = lookups::slot(conn, names, id)? {
            slots.push(SlotRow { id: id.clone(), slot });
        }
    }
    Ok(slots)
}

impl Queries for SqliteReader {
    fn workflows(&self, only: Option<&WorkflowId>) -> Result<Vec<WorkflowRow>, StoreError> {
        self.read("the workflows", |tx, names| workflows(tx, names, &self.definitions, only))
    }

    fn definitions(&self, id: &WorkflowId, version: Option<u32>) -> Result<Vec<PastDefinition>, StoreError> {
        self.read("definitions", |tx, names| {
            let sql = format!(
                "SELECT {DEFINITION}, digest, text FROM definitions LEFT JOIN sources ON sources.id = source \
                 WHERE workflow = ?1 AND version BETWEEN ?2 AND ?3 ORDER BY version DESC"
            );
            let (first, last) = version.map_or((0, u32::MAX), |version| (version, version));
            let mut statement = tx.prepare_cached(&sql)?;
            let mut rows = statement.query(params![names.number(id), first, last])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                match read_definition(row) {
                    Ok(definition) => found.push(definition),
                    // The present one has its workflow frozen; an earlier one is history.
                    Err(Fault::Unreadable(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            Ok(found)
        })
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        self.read("a slot", |tx, names| match lookups::slot(tx, names, id)? {
            Some(slot) => Ok(Some(slot)),
            None => Ok(backlogs(tx, Some(&id.workflow))?.slot(id)),
        })
    }

    fn slots(&self, filter: &SlotFilter, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        self.read("slots", |tx, names| {
            let page = pages::slots(tx, names, &pages::WHOLE, filter, &paging)?;
            let planned = |id, stretch: &Stretch| SlotRow { id, slot: stretch.slot() };
            let backlogs = backlogs(tx, filter.workflow.as_ref())?;
            Ok(backlogs.merge(page, filter, &paging, |row| &row.id, planned)?)
        })
    }

    fn slot_states(
        &self,
        filter: &SlotFilter,
        paging: PageRequest<'_>,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        self.read("the states of slots", |tx, names| {
            let page = pages::slots(tx, names, &pages::NAME_AND_STATE, filter, &paging)?;
            let planned = |id, stretch: &Stretch| (id, stretch.state());
            let backlogs = backlogs(tx, filter.workflow.as_ref())?;
            Ok(backlogs.merge(page, filter, &paging, |row| &row.0, planned)?)
        })
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        self.read("the counts of slots", |tx, names| {
            let mut counts = counts::slot_counts(tx, names, filter)?;
            backlogs(tx, filter.workflow.as_ref())?.add_counts(filter, &mut counts);
            Ok(counts)
        })
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        self.read("the tallies of slots", |tx, names| {
            let mut tallies = counts::slot_tallies(tx, names, columns, workflow)?;
            backlogs(tx, workflow)?.add_tallies(columns, workflow, &mut tallies);
            Ok(tallies)
        })
    }

    fn live_slots(&self) -> Result<Vec<SlotRow>, StoreError> {
        self.read("the live slots", counts::live_slots)
    }

    fn space(&self) -> Result<Option<Space>, StoreError> {
        let pages = "SELECT page_count * page_size, freelist_count * page_size \
                     FROM pragma_page_count, pragma_page_size, pragma_freelist_count";
        self.read("the size of the data", |tx, _| {
            let log = tx.path().and_then(|path| std::fs::metadata(format!("{path}-wal")).ok());
            let log = log.map_or(0, |found| found.len());
            Ok(Some(tx.query_row(pages, [], |row| Ok(Space { file: row.get(0)?, free: row.get(1)?, log }))?))
        })
    }

    fn steps(&self, run: &SlotRef, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        self.read("the steps of a run", |tx, names| steps::page(tx, names, run, &paging))
    }

    fn runs(&self, filter: &RunFilter, paging: PageRequest<'_>) -> Result<Page<Run>, StoreError> {
        self.read("runs", |tx, names| run_pages::runs(tx, names, filter, &paging))
    }

    fn events(&self, filter: &EventFilter, paging: PageRequest<'_>) -> Result<Page<EventRecord>, StoreError> {
        self.read("the log", |tx, names| event_pages::events(tx, names, filter, &paging))
    }

    fn turns(&self, paging: PageRequest<'_>) -> Result<Page<TurnRecord>, StoreError> {
        self.read("the turns", |tx, _| turns::page(tx, &paging))
    }

    fn turn_body(&self, turn: &TurnRecord, columns: &mut dyn TurnColumns) -> Result<TurnContent, StoreError> {
        self.read("the events of a turn", |tx, _| turns::body(tx, turn, columns))
    }

    fn removed_history(&self) -> Result<RemovedHistory, StoreError> {
        self.read("what was removed", |tx, _| trim::read(tx))
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        let pool = self.pool.frozen().map_err(|fault| fault.tell("read", &self.place))?;
        let (place, definitions, damage) = (Arc::clone(&self.place), Definitions::default(), OnceLock::new());
        Ok(Arc::new(SqliteReader { pool, place, definitions, damage }))
    }

    fn backfills(&self, filter: &BackfillFilter) -> Result<Vec<Backfill>, StoreError> {
        self.read("the backfills", |tx, names| backfills(tx, names, filter))
    }

    fn registers(&self, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, StoreError> {
        self.read("registers", |tx, _| registers(tx, bucket, keys))
    }

    fn unreadable(&self, limit: usize) -> Result<Vec<UnreadableRow>, StoreError> {
        self.read("everything in", |tx, names| verify::unreadable(tx, names, limit))
    }

    fn damage(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        let found = self.pool.read_alone(|tx| verify::damage(tx, limit));
        let found = found.map_err(|fault| fault.tell("read everything in", &self.place))?;
        if let Some(first) = found.first() {
            let _ = self.damage.set(first.clone());
        }
        Ok(found)
    }
}
