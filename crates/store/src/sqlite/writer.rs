//! One turn, one transaction.

use std::collections::{BTreeMap, HashMap};
use std::str::from_utf8;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::workflow::{Backfill, WorkflowRow};
use kelos_model::{Event, EventRecord, FactKey, Run, RunState, SlotState, WorkflowId};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;

use super::fault::Fault;
use super::open::{BUSY, FilePlace};
use super::rows::{column, millis, mode_name, run_state, slot_state};
use crate::contract::{Commit, DefinedAt, Lease, SlotRow, StoreError, named_before};
use crate::cursor::beyond_time;

/// The connection that writes, and what it need not ask again.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) conn: Connection,
    place: FilePlace,
    known: Known,
    /// What was written lately.
    activity: Activity,
}

/// How long ago something was written, in calls of [`Writer::rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Since the last call.
    Busy,
    /// Before it.
    Quiet,
    /// Long ago: memory has been given back since.
    Rested,
}

/// What is known of the database as it was after the last commit.
#[derive(Debug, Default)]
struct Known {
    /// The numbers of the workflows' names.
    numbers: HashMap<WorkflowId, i64>,
    /// The version of the workflows' latest definitions, by number.
    versions: HashMap<i64, u32>,
    /// The workflows' latest runs, by number.
    last_runs: HashMap<i64, u64>,
    /// Runs that came later in the transaction that is under way.
    later_runs: HashMap<i64, u64>,
    /// Names met in the transaction that is under way.
    fresh: Vec<WorkflowId>,
    /// Definitions met in the transaction that is under way.
    defined: Vec<(i64, u32)>,
    /// Room to write JSON.
    text: Vec<u8>,
}

impl Writer {
    pub(super) fn new(conn: Connection, place: FilePlace) -> Self {
        Self { conn, place, known: Known::default(), activity: Activity::Quiet }
    }

    /// Forgets what another leader may have changed.
    pub(super) fn forget(&mut self) {
        self.known = Known::default();
    }

    /// Fails when the file was deleted or replaced: what is written now would be lost with the process.
    pub(super) fn still_there(&self) -> Result<(), Fault> {
        self.place.check()
    }

    /// Moves the log into the main file, and leaves it empty. A reader that is in the way is not waited for:
    /// the log is as good as the file, only longer.
    pub(super) fn tidy_up(&mut self) {
        let outcome = self
            .conn
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        // An error costs nothing but room.
        let _ = outcome;
        let _ = self.conn.busy_timeout(BUSY);
    }

    /// Gives memory and the log's room back, once, when nothing was written between two calls.
    pub(super) fn rest(&mut self) {
        if self.activity == Activity::Quiet {
            self.tidy_up();
            // An error costs nothing but memory.
            let _ = self.conn.execute_batch("PRAGMA shrink_memory");
        }
        self.activity = match self.activity {
            Activity::Busy => Activity::Quiet,
            Activity::Quiet | Activity::Rested => Activity::Rested,
        };
    }

    pub(super) fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), Fault> {
        self.activity = Activity::Busy;
        let Self { conn, known, .. } = self;
        let outcome = commit_turn(conn, known, lease, commit);
        known.settle(outcome.is_ok());
        outcome
    }
}

fn commit_turn(conn: &mut Connection, known: &mut Known, lease: Lease, commit: &Commit) -> Result<(), Fault> {
    // Dropped on the way out of an error, the transaction is rolled back.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    check(&tx, lease, &commit.events)?;
    let mut turn = Turn { tx: &tx, known };
    turn.write_workflows(commit)?;
    turn.write_slots(&commit.slots)?;
    turn.write_runs(&commit.runs)?;
    turn.write_events(&commit.events)?;
    turn.write_backfills(&commit.backfills)?;
    turn.write_registers(commit)?;
    turn.write_facts(&commit.facts)?;
    tx.commit()?;
    Ok(())
}

/// The epoch must be in force and the events must follow the log.
fn check(tx: &Transaction<'_>, lease: Lease, events: &[EventRecord]) -> Result<(), Fault> {
    let sql = "SELECT epoch, coalesce((SELECT max(seq) FROM events), 0) FROM leadership";
    let (current, last) = tx.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if current != lease.epoch {
        return Err(StoreError::Deposed { held: lease.epoch, current }.into());
    }
    crate::contract::follows(last, events).map_err(Fault::Nonsense)
}

impl Known {
    fn settle(&mut self, committed: bool) {
        if committed {
            self.versions.extend(self.defined.drain(..));
            self.last_runs.extend(self.later_runs.drain());
            self.fresh.clear();
        } else {
            self.defined.clear();
            self.later_runs.clear();
            for name in self.fresh.drain(..) {
                self.numbers.remove(&name);
            }
        }
    }

    fn json(&mut self, value: &impl Serialize) -> Result<&str, Fault> {
        self.text.clear();
        serde_json::to_writer(&mut self.text, value)?;
        from_utf8(&self.text).map_err(|error| Fault::Nonsense(error.to_string()))
    }
}

/// A transaction under way.
struct Turn<'a> {
    tx: &'a Transaction<'a>,
    known: &'a mut Known,
}

impl Turn<'_> {
    /// The number of a workflow's name, which may be new.
    fn number(&mut self, name: &WorkflowId) -> Result<i64, Fault> {
        if let Some(number) = self.known.numbers.get(name) {
            return Ok(*number);
        }
        let mut known = self.tx.prepare_cached("SELECT id, last_run FROM workflows WHERE name = ?1")?;
        let found = known.query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
        let (number, last_run) = match found.optional()? {
            Some(found) => found,
            None => {
                let mut insert = self.tx.prepare_cached("INSERT INTO workflows (name) VALUES (?1)")?;
                (insert.insert([name.as_str()])?, 0)
            }
        };
        self.known.last_runs.insert(number, last_run);
        self.known.numbers.insert(name.clone(), number);
        self.known.fresh.push(name.clone());
        Ok(number)
    }

    fn write_workflows(&mut self, commit: &Commit) -> Result<(), Fault> {
        if commit.workflows.is_empty() {
            return Ok(());
        }
        let defined_at = DefinedAt::of(&commit.events);
        // A file may define thousands of them.
        let mut sources = BTreeMap::new();
        for row in &commit.workflows {
            let number = self.number(&row.id)?;
            if self.known.versions.get(&number) != Some(&row.version) {
                let file = row.definition.source.file.as_str();
                let source = match (sources.get(file), commit.sources.get(file)) {
                    (Some(known), _) => Some(*known),
                    (None, Some(text)) => Some(*sources.entry(file).or_insert(self.source(text)?)),
                    (None, None) => None,
                };
                self.write_definition(number, row, defined_at.at(&row.id), source)?;
                self.known.defined.push((number, row.version));
            }
            let sql = "UPDATE workflows SET present = ?2, paused = ?3, planned = ?4, moments = ?5 WHERE id = ?1";
            let mut statement = self.tx.prepare_cached(sql)?;
            let moments = serde_json::to_string(&row.moments)?;
            let planned = self.known.json(&row.planned)?;
            statement.execute(params![number, row.present, row.paused, planned, moments])?;
        }
        Ok(())
    }

    fn write_definition(
        &mut self,
        number: i64,
        row: &WorkflowRow,
        at: Timestamp,
        source: Option<i64>,
    ) -> Result<(), Fault> {
        self.tx.prepare_cached("UPDATE workflows SET version = ?2 WHERE id = ?1")?.execute((number, row.version))?;
        let sql = "INSERT INTO definitions (workflow, version, at, definition, source) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT DO NOTHING";
        let mut statement = self.tx.prepare_cached(sql)?;
        let definition = self.known.json(&*row.definition)?;
        statement.execute(params![number, row.version, at.as_millisecond(), definition, source])?;
        Ok(())
    }

    /// The number of a source text, which is kept once.
    fn source(&mut self, text: &str) -> Result<i64, Fault> {
        let digest = fnv(text);
        let mut known = self.tx.prepare_cached("SELECT id FROM sources WHERE digest = ?1 AND text = ?2")?;
        if let Some(id) = known.query_row((digest, text), |row| row.get(0)).optional()? {
            return Ok(id);
        }
        Ok(self.tx.prepare_cached("INSERT INTO sources (digest, text) VALUES (?1, ?2)")?.insert((digest, text))?)
    }

    fn write_slots(&mut self, slots: &[SlotRow]) -> Result<(), Fault> {
        if slots.is_empty() {
            return Ok(());
        }
        let tx = self.tx;
        let mut insert = tx.prepare_cached(
            "INSERT INTO slots (scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, \
             external_id, priority, backfill, due, said, last_event, collected, outputs, \
             requested) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) \
             ON CONFLICT DO NOTHING",
        )?;
        let mut update = tx.prepare_cached(
            "UPDATE slots SET state = ?4, since = ?5, retries = ?6, last_run = ?7, last_run_seq = ?8, run_alive = ?9, \
             external_id = ?10, priority = ?11, backfill = ?12, due = ?13, said = ?14, last_event = ?15, \
             collected = ?16, outputs = ?17, requested = ?18 \
             WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3",
        )?;
        let mut planned = HashMap::<i64, i64>::new();
        for row in slots {
            let number = self.number(&row.id.workflow)?;
            if write_slot(&mut insert, &mut update, number, row, self.known)? {
                *planned.entry(number).or_default() += 1;
            }
        }
        let mut count = tx.prepare_cached("UPDATE workflows SET slots = slots + ?2 WHERE id = ?1")?;
        for (number, slots) in planned {
            count.execute((number, slots))?;
        }
        Ok(())
    }

    fn write_runs(&mut self, runs: &[Run]) -> Result<(), Fault> {
        if runs.is_empty() {
            return Ok(());
        }
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO runs (seq, workflow, scheduled_at, key, number, previous, earlier, state, executor, \
             external_id, dispatched_at, started_at, ended_at, outcome) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO NOTHING",
        )?;
        let mut update = self.tx.prepare_cached(
            "UPDATE runs SET state = ?2, executor = ?3, external_id = ?4, started_at = ?5, ended_at = ?6, \
             outcome = ?7 WHERE seq = ?1",
        )?;
        // The chain of a workflow's runs is made in their order.
        let mut runs = runs.iter().collect::<Vec<_>>();
        runs.sort_by_key(|run| run.seq);
        for run in runs {
            let number = self.number(&run.id.slot.workflow)?;
            let fresh = run.state == RunState::Dispatched;
            let written = (fresh && self.insert_run(&mut insert, number, run)?)
                || self.update_run(&mut update, run)?
                || self.insert_run(&mut insert, number, run)?;
            debug_assert!(written, "a run is there or can be put there");
        }
        let mut last = self.tx.prepare_cached("UPDATE workflows SET last_run = ?2 WHERE id = ?1")?;
        for (number, seq) in &self.known.later_runs {
            last.execute((number, column(*seq)))?;
        }
        Ok(())
    }

    fn last_run(&self, number: i64) -> u64 {
        let Known { last_runs, later_runs, .. } = &*self.known;
        later_runs.get(&number).or(last_runs.get(&number)).copied().unwrap_or(0)
    }

    fn outcome(&mut self, run: &Run) -> Result<Option<&str>, Fault> {
        run.outcome.as_ref().map(|outcome| self.known.json(outcome)).transpose()
    }

    fn insert_run(&mut self, insert: &mut CachedStatement<'_>, number: i64, run: &Run) -> Result<bool, Fault> {
        let key = &run.id.slot.key;
        let earlier = self.last_run(number);
        insert.raw_bind_parameter(1, column(run.seq))?;
        insert.raw_bind_parameter(2, number)?;
        insert.raw_bind_parameter(3, key.scheduled_at().as_millisecond())?;
        insert.raw_bind_parameter(4, beyond_time(key))?;
        insert.raw_bind_parameter(5, run.id.number)?;
        insert.raw_bind_parameter(6, column(run.previous))?;
        insert.raw_bind_parameter(7, column(earlier))?;
        insert.raw_bind_parameter(8, run_state(run.state))?;
        insert.raw_bind_parameter(9, run.executor.as_str())?;
        insert.raw_bind_parameter(10, run.external_id.as_deref())?;
        insert.raw_bind_parameter(11, run.dispatched_at.as_millisecond())?;
        insert.raw_bind_parameter(12, millis(run.started_at))?;
        insert.raw_bind_parameter(13, millis(run.ended_at))?;
        insert.raw_bind_parameter(14, self.outcome(run)?)?;
        let inserted = insert.raw_execute()? > 0;
        if inserted && earlier > run.seq {
            let what = format!("run number {} was to be written after number {earlier} of its workflow", run.seq);
            return Err(Fault::Nonsense(what));
        }
        if inserted {
            self.known.later_runs.insert(number, run.seq);
        }
        Ok(inserted)
    }

    fn update_run(&mut self, update: &mut CachedStatement<'_>, run: &Run) -> Result<bool, Fault> {
        update.raw_bind_parameter(1, column(run.seq))?;
        update.raw_bind_parameter(2, run_state(run.state))?;
        update.raw_bind_parameter(3, run.executor.as_str())?;
        update.raw_bind_parameter(4, run.external_id.as_deref())?;
        update.raw_bind_parameter(5, millis(run.started_at))?;
        update.raw_bind_parameter(6, millis(run.ended_at))?;
        update.raw_bind_parameter(7, self.outcome(run)?)?;
        Ok(update.raw_execute()? > 0)
    }

    fn write_events(&mut self, events: &[EventRecord]) -> Result<(), Fault> {
        if events.is_empty() {
            return Ok(());
        }
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO events (seq, at, previous, workflow, scheduled_at, key, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for record in events {
            insert.raw_bind_parameter(1, column(record.seq))?;
            insert.raw_bind_parameter(2, record.at.as_millisecond())?;
            insert.raw_bind_parameter(3, column(record.previous))?;
            self.bind_event(&mut insert, &record.event)?;
            insert.raw_execute()?;
        }
        Ok(())
    }

    fn bind_event(&mut self, insert: &mut CachedStatement<'_>, event: &Event) -> Result<(), Fault> {
        let (workflow, key, body) = match event {
            Event::Slot { slot, what } => (Some(self.number(&slot.workflow)?), Some(&slot.key), self.known.json(what)?),
            Event::Workflow { workflow, what } => (Some(self.number(workflow)?), None, self.known.json(what)?),
            other => (None, None, self.known.json(other)?),
        };
        insert.raw_bind_parameter(4, workflow)?;
        insert.raw_bind_parameter(5, key.map(|key| key.scheduled_at().as_millisecond()))?;
        insert.raw_bind_parameter(6, key.map(beyond_time))?;
        insert.raw_bind_parameter(7, body)?;
        Ok(())
    }

    fn write_backfills(&mut self, backfills: &[Backfill]) -> Result<(), Fault> {
        for backfill in backfills {
            let number = self.number(&backfill.workflow)?;
            let mut upsert = self.tx.prepare_cached(
                "INSERT INTO backfills (name, workflow, range_start, range_end, mode, priority, asked_by, created_at, \
                 cancelled_at, slots, reason, paused_at, paused_by, resumed_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
                 ON CONFLICT (name) DO UPDATE SET workflow = ?2, range_start = ?3, range_end = ?4, mode = ?5, \
                 priority = ?6, asked_by = ?7, created_at = ?8, cancelled_at = ?9, slots = ?10, reason = ?11, \
                 paused_at = ?12, paused_by = ?13, resumed_at = ?14",
            )?;
            upsert.execute(params![
                backfill.id.as_str(),
                number,
                backfill.range.start.as_millisecond(),
                backfill.range.end.as_millisecond(),
                mode_name(backfill.mode),
                backfill.priority,
                backfill.by,
                backfill.created_at.as_millisecond(),
                millis(backfill.cancelled_at),
                backfill.slots,
                backfill.reason,
                backfill.paused.as_ref().map(|pause| pause.at.as_millisecond()),
                backfill.paused.as_ref().map(|pause| pause.by.as_str()),
                millis(backfill.resumed_at),
            ])?;
        }
        Ok(())
    }

    fn write_facts(&mut self, facts: &[(FactKey, u64)]) -> Result<(), Fault> {
        if facts.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO facts (source, about, key, seq) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        let mut insert = self.tx.prepare_cached(sql)?;
        // In order they find their places sooner.
        let mut facts: Vec<_> = facts.iter().collect();
        facts.sort_unstable();
        for (name, seq) in facts {
            insert.raw_bind_parameter(1, &*name.source)?;
            insert.raw_bind_parameter(2, &*name.about)?;
            insert.raw_bind_parameter(3, &*name.key)?;
            insert.raw_bind_parameter(4, column(*seq))?;
            if insert.raw_execute()? == 0 {
                return Err(Fault::Nonsense(named_before(name)));
            }
        }
        Ok(())
    }

    fn write_registers(&mut self, commit: &Commit) -> Result<(), Fault> {
        for (bucket, key, value) in &commit.registers {
            let Some(value) = value else {
                let mut delete = self.tx.prepare_cached("DELETE FROM registers WHERE bucket = ?1 AND key = ?2")?;
                delete.execute((bucket, key))?;
                continue;
            };
            let mut upsert = self.tx.prepare_cached(
                "INSERT INTO registers (bucket, key, value) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (bucket, key) DO UPDATE SET value = ?3",
            )?;
            upsert.execute(params![bucket, key, self.known.json(value)?])?;
        }
        Ok(())
    }
}

/// Writes a slot, and tells whether it is new. Tries first what is the more likely.
fn write_slot(
    insert: &mut CachedStatement<'_>,
    update: &mut CachedStatement<'_>,
    number: i64,
    row: &SlotRow,
    known: &mut Known,
) -> Result<bool, Fault> {
    let slot = &row.slot;
    let fresh = slot.state == SlotState::Waiting && slot.last_run == 0 && slot.said == 0;
    if fresh && bind_and_execute_slot(insert, number, row, known)? {
        return Ok(true);
    }
    if bind_and_execute_slot(update, number, row, known)? {
        return Ok(false);
    }
    bind_and_execute_slot(insert, number, row, known)
}

fn bind_and_execute_slot(
    statement: &mut CachedStatement<'_>,
    number: i64,
    row: &SlotRow,
    known: &mut Known,
) -> Result<bool, Fault> {
    let (key, slot) = (&row.id.key, &row.slot);
    statement.raw_bind_parameter(1, key.scheduled_at().as_millisecond())?;
    statement.raw_bind_parameter(2, number)?;
    statement.raw_bind_parameter(3, beyond_time(key))?;
    statement.raw_bind_parameter(4, slot_state(slot.state))?;
    statement.raw_bind_parameter(5, slot.since.as_millisecond())?;
    statement.raw_bind_parameter(6, slot.retries)?;
    statement.raw_bind_parameter(7, slot.last_run)?;
    statement.raw_bind_parameter(8, column(slot.last_run_seq))?;
    statement.raw_bind_parameter(9, slot.run_alive)?;
    statement.raw_bind_parameter(10, slot.external_id.as_deref())?;
    statement.raw_bind_parameter(11, slot.priority)?;
    statement.raw_bind_parameter(12, slot.backfill.as_ref().map(|backfill| backfill.as_str()))?;
    statement.raw_bind_parameter(13, millis(slot.due))?;
    statement.raw_bind_parameter(14, slot.said)?;
    statement.raw_bind_parameter(15, column(slot.last_event))?;
    let collected = slot.collected.as_deref().map(|collected| known.json(collected)).transpose()?;
    statement.raw_bind_parameter(16, collected)?;
    let outputs = slot.outputs.as_deref().map(|outputs| known.json(outputs)).transpose()?;
    statement.raw_bind_parameter(17, outputs)?;
    statement.raw_bind_parameter(18, slot.requested)?;
    Ok(statement.raw_execute()? > 0)
}

/// A digest of a text that no version of anything changes (FNV-1a); texts are compared besides.
fn fnv(text: &str) -> i64 {
    let digest = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    digest.cast_signed()
}
