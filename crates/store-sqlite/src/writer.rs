//! One turn, one transaction.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::str::from_utf8;
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::{Event, EventRecord, FactKey, Run, RunState, SlotState, WorkflowId};
use kelos_store::adapter::cursor::{beyond_time, kind, order_time, time};
use kelos_store::adapter::{DefinedAt, DigestBuilder, add_event, named_before, stored};
use kelos_store::{Commit, Deletions, Lease, SlotRow, StoreError, TurnRecord};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::blocks::{self, Packer};
use super::check::{self, Binding, Sum};
use super::connection::BUSY;
use super::epochs;
use super::fault::Fault;
use super::file_identity::FilePlace;
use super::followed;
use super::lookups::last_seq;
use super::rows::{
    NAMED, WorkflowCounts, actor_text, column, counted_of, fnv, millis, mode_name, run_state, slot_state,
};
use super::trim;
use super::turns;
use super::wal::{Log, LogEnd};

/// The connection that writes, and what it need not ask again.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) conn: Connection,
    place: FilePlace,
    log_place: FilePlace,
    log: Log,
    known: DatabaseState,
    packer: Packer,
    /// The recency of the last write.
    activity: Activity,
}

/// The recency of the last write, in calls of [`Writer::rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Since the last call.
    Busy,
    /// Before the last call.
    Quiet,
    /// Long ago: memory has been given back since.
    Rested,
}

/// A cache of the database after the last commit.
#[derive(Debug, Default)]
struct DatabaseState {
    /// The numbers of the workflows' names.
    numbers: HashMap<WorkflowId, i64>,
    /// The version of the workflows' latest definitions, by number.
    versions: HashMap<i64, u32>,
    /// The counts of the workflows, by number.
    counted: HashMap<i64, WorkflowCounts>,
    /// The same, where the transaction that is under way changed it.
    recounted: BTreeMap<i64, WorkflowCounts>,
    /// Names met in the transaction that is under way.
    fresh: Vec<WorkflowId>,
    /// Definitions met in the transaction that is under way.
    defined: Vec<(i64, u32)>,
    /// Room to write JSON.
    text: Vec<u8>,
    /// Room to sum rows up.
    sum: Sum,
}

impl Writer {
    /// The connection is open, and so is its write-ahead log.
    pub(super) fn new(conn: Connection, path: &Path) -> Self {
        let log = Log::of(path);
        let (place, log_place) = (FilePlace::of(path, "the file"), FilePlace::of(log.path(), "its write-ahead log"));
        let (known, packer, activity) = (DatabaseState::default(), Packer::default(), Activity::Quiet);
        Self { conn, place, log_place, log, known, packer, activity }
    }

    /// The parts that a change of leaders needs.
    pub(super) fn parts(&mut self) -> (&mut Connection, &mut Log) {
        (&mut self.conn, &mut self.log)
    }

    /// The end of the committed part of the write-ahead log.
    pub(super) fn log_end(&self) -> LogEnd {
        self.log.end()
    }

    /// The same, after a commit.
    pub(super) fn follow_log(&mut self) -> Result<LogEnd, Fault> {
        self.log.follow()
    }

    /// Forgets what another leader may have changed.
    pub(super) fn forget(&mut self) {
        self.known = DatabaseState::default();
    }

    /// Fails when a file was deleted, replaced or cut: what is written now would be lost with the process.
    pub(super) fn still_there(&mut self) -> Result<(), Fault> {
        self.place.check()?;
        self.log_place.check()?;
        self.log.is_whole()
    }

    /// Moves the log into the main file, and truncates it. It does not wait for readers: a long log holds the same
    /// data.
    pub(super) fn tidy_up(&mut self) -> Result<LogEnd, Fault> {
        let outcome = self
            .conn
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        // An error costs nothing but room.
        let _ = outcome;
        let _ = self.conn.busy_timeout(BUSY);
        self.log.walk()
    }

    /// Gives memory and the log's room back, once, when nothing was written between two calls.
    pub(super) fn rest(&mut self) -> Result<(), Fault> {
        if self.activity == Activity::Quiet {
            self.tidy_up()?;
            // An error costs nothing but memory.
            let _ = self.conn.execute_batch("PRAGMA shrink_memory");
        }
        self.activity = match self.activity {
            Activity::Busy => Activity::Quiet,
            Activity::Quiet | Activity::Rested => Activity::Rested,
        };
        Ok(())
    }

    /// Writes a turn, and gives how far the log is committed then.
    pub(super) fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<LogEnd, Fault> {
        self.activity = Activity::Busy;
        self.still_there()?;
        let Self { conn, known, .. } = self;
        let outcome = commit_turn(conn, known, lease, commit, |_, _| Ok(()));
        known.settle(outcome.is_ok());
        outcome?;
        if commit.trim.is_some() {
            self.save_room(lease);
        }
        // An acknowledged commit must be found in the file.
        self.place.check()?;
        self.log_place.check()?;
        self.log.follow()
    }

    /// Writes the turn of an entry of a log, which `confirm` may still refuse when all is written.
    pub(super) fn follow(
        &mut self,
        entry: u64,
        lease: Lease,
        commit: &Commit,
        confirm: &mut dyn FnMut(&TurnRecord) -> Result<(), StoreError>,
    ) -> Result<(), Fault> {
        self.activity = Activity::Busy;
        self.place.check()?;
        let Self { conn, known, .. } = self;
        let outcome = commit_turn(conn, known, lease, commit, |tx, record| {
            followed::advance(tx, entry)?;
            Ok(confirm(record)?)
        });
        known.settle(outcome.is_ok());
        if outcome.is_ok() && commit.trim.is_some() {
            self.save_room(lease);
        }
        outcome
    }

    /// Puts old slots into a block, and gives free room back. An error costs nothing but room.
    fn save_room(&mut self, lease: Lease) {
        if let Ok(Some(until)) = trim::read(&self.conn).map(|trimmed| trimmed.at) {
            let _ = self.packer.step(&mut self.conn, lease.epoch, until);
        }
        let _ = trim::give_back(&self.conn);
    }
}

/// Writes a turn; `confirm` is called with its record before it is permanent, if it is not empty.
fn commit_turn(
    conn: &mut Connection,
    known: &mut DatabaseState,
    lease: Lease,
    commit: &Commit,
    confirm: impl FnOnce(&Transaction<'_>, &TurnRecord) -> Result<(), Fault>,
) -> Result<(), Fault> {
    // Dropped on the way out of an error, the transaction is rolled back.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (before, last_event) = check(&tx, lease, &commit.events)?;
    let mut turn = Turn { tx: &tx, known };
    turn.write_workflows(commit)?;
    turn.write_slots(&commit.slots)?;
    turn.write_runs(&commit.runs)?;
    let mut digesting = DigestBuilder::of_commit(before.as_ref(), last_event, lease.epoch, commit);
    turn.write_events(&commit.events, &mut digesting)?;
    turns::write_deletions(&tx, &Deletions::of(commit), &mut digesting, &mut turn.known.sum)?;
    turn.write_backfills(&commit.backfills)?;
    turn.write_registers(commit)?;
    turn.write_facts(&commit.facts)?;
    turn.write_counts()?;
    if let Some(trim) = &commit.trim {
        trim::apply(&tx, trim, turns::at(&tx, trim.until)?)?;
    }
    if !commit.is_empty() {
        let record = digesting.end();
        turns::write(&tx, &record, &mut turn.known.sum)?;
        confirm(&tx, &record)?;
    }
    tx.commit()?;
    Ok(())
}

/// The epoch must be in force and the events must follow the log. Gives the turn and the event before.
fn check(tx: &Transaction<'_>, lease: Lease, events: &[EventRecord]) -> Result<(Option<TurnRecord>, u64), Fault> {
    let current = epochs::current(tx)?;
    if current != lease.epoch {
        return Err(StoreError::Deposed { held: lease.epoch, current }.into());
    }
    let (last, before) = (last_seq(tx)?, turns::last(tx)?);
    let recorded = before.map_or(0, |before| before.last_event());
    if recorded != last {
        return Err(Fault::Damaged(format!("its log ends with event {last}, and its last turn with event {recorded}")));
    }
    kelos_store::adapter::follows(last, events).map_err(Fault::Nonsense)?;
    Ok((before, last))
}

impl DatabaseState {
    fn settle(&mut self, committed: bool) {
        if committed {
            self.versions.extend(self.defined.drain(..));
            self.counted.extend(std::mem::take(&mut self.recounted));
            self.fresh.clear();
        } else {
            self.defined.clear();
            self.recounted.clear();
            for name in self.fresh.drain(..) {
                self.numbers.remove(&name);
            }
        }
    }
}

/// A transaction under way.
struct Turn<'a> {
    tx: &'a Transaction<'a>,
    known: &'a mut DatabaseState,
}

impl Turn<'_> {
    /// The number of a workflow's name, which may be new.
    fn number(&mut self, name: &WorkflowId) -> Result<i64, Fault> {
        if let Some(number) = self.known.numbers.get(name) {
            return Ok(*number);
        }
        let number = match self.number_of(name)? {
            Some(number) => number,
            None => self.give_number(name)?,
        };
        self.known.counted.insert(number, counted_of(self.tx, number)?.unwrap_or_default());
        self.known.numbers.insert(name.clone(), number);
        self.known.fresh.push(name.clone());
        Ok(number)
    }

    fn number_of(&self, name: &WorkflowId) -> Result<Option<i64>, Fault> {
        let mut known = self.tx.prepare_cached(&format!("SELECT {NAMED} FROM workflows WHERE name = ?1"))?;
        let mut rows = known.query([name.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        check::test(row, 0..8, 8, "a workflow")?;
        Ok(Some(row.get(0)?))
    }

    fn give_number(&mut self, name: &WorkflowId) -> Result<i64, Fault> {
        let mut last = self.tx.prepare_cached("SELECT coalesce(max(id), 0) FROM workflows")?;
        let number = last.query_row([], |row| row.get::<_, i64>(0))? + 1;
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO workflows (id, name, version, present, paused, planned, moments, enabled, check_value, \
             slots, last_run, counts_check) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let mut row = Binding::new(&mut insert, &mut self.known.sum);
        row.number(number)?.text(name.as_str())?.number(None)?.number(0)?.number(0)?.text("{}")?.text("{}")?;
        row.number(1)?.check_value()?.again(number).number(0)?.number(0)?.check_value()?.execute()?;
        Ok(number)
    }

    /// The current counts of a workflow, to be changed.
    fn counts(&mut self, number: i64) -> &mut WorkflowCounts {
        let DatabaseState { counted, recounted, .. } = &mut *self.known;
        recounted.entry(number).or_insert_with(|| counted.get(&number).copied().unwrap_or_default())
    }

    fn write_counts(&mut self) -> Result<(), Fault> {
        let DatabaseState { recounted, sum, .. } = &mut *self.known;
        let sql = "UPDATE workflows SET slots = ?2, last_run = ?3, counts_check = ?4 WHERE id = ?1";
        let mut update = self.tx.prepare_cached(sql)?;
        for (number, WorkflowCounts { slots, last_run }) in recounted {
            let mut row = Binding::new(&mut update, sum);
            row.number(*number)?.number(column(*slots))?.number(column(*last_run))?.check_value()?.execute()?;
        }
        Ok(())
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
            // A definition keeps the source with which it was first stored.
            if !self.is_defined(number, row.version)? {
                let file = row.definition.source.file.as_str();
                let source = match (sources.get(file), commit.sources.get(file)) {
                    (Some(known), _) => Some(*known),
                    (None, Some(text)) => Some(*sources.entry(file).or_insert(self.source(text)?)),
                    (None, None) => None,
                };
                let text = match commit.unread.get(&(row.id.clone(), row.version)) {
                    Some(unread) => unread.to_string(),
                    None => stored::text(&*row.definition)?,
                };
                self.write_definition((number, row.version), &text, defined_at.at(&row.id), source)?;
                self.known.defined.push((number, row.version));
            }
            let sql = "UPDATE workflows SET name = ?2, version = ?3, present = ?4, paused = ?5, planned = ?6, \
                       moments = ?7, enabled = ?8, check_value = ?9 WHERE id = ?1";
            let mut statement = self.tx.prepare_cached(sql)?;
            let (planned, moments) = (stored::text(&row.planned)?, stored::text(&row.moments)?);
            let mut bound = Binding::new(&mut statement, &mut self.known.sum);
            bound.number(number)?.text(row.id.as_str())?.number(i64::from(row.version))?;
            bound.number(i64::from(row.present))?.number(i64::from(row.paused))?;
            bound.text(&*planned)?.text(&*moments)?.number(i64::from(row.enabled))?.check_value()?.execute()?;
        }
        Ok(())
    }

    /// Whether a definition is kept already.
    fn is_defined(&self, number: i64, version: u32) -> Result<bool, Fault> {
        if self.known.versions.get(&number) == Some(&version) {
            return Ok(true);
        }
        let sql = "SELECT 1 FROM definitions WHERE workflow = ?1 AND version = ?2";
        Ok(self.tx.prepare_cached(sql)?.exists((number, version))?)
    }

    fn write_definition(
        &mut self,
        (number, version): (i64, u32),
        definition: &str,
        at: Timestamp,
        source: Option<i64>,
    ) -> Result<(), Fault> {
        let sql = "INSERT INTO definitions (workflow, version, at, definition, source, check_value) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut bound = Binding::new(&mut statement, &mut self.known.sum);
        bound.number(number)?.number(i64::from(version))?.number(at.as_millisecond())?;
        bound.text(definition)?.number(source)?.check_value()?.execute()?;
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
             external_id, priority, backfill, due, said, last_event, collected, held, requested, asked_at, kind, flow, \
             late, again, check_value) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, \
             ?24) \
             ON CONFLICT DO NOTHING",
        )?;
        let mut update = tx.prepare_cached(
            "UPDATE slots SET state = ?4, since = ?5, retries = ?6, last_run = ?7, last_run_seq = ?8, run_alive = ?9, \
             external_id = ?10, priority = ?11, backfill = ?12, due = ?13, said = ?14, last_event = ?15, \
             collected = ?16, held = ?17, requested = ?18, asked_at = ?19, flow = ?21, late = ?22, again = ?23, \
             check_value = ?24 \
             WHERE scheduled_at = ?1 AND workflow = ?2 AND key = ?3 AND kind = ?20",
        )?;
        for row in slots.iter().filter(|row| row.id.key.step().is_none()) {
            let number = self.number(&row.id.workflow)?;
            if write_slot(tx, [&mut insert, &mut update], number, row, &mut self.known.sum)? {
                self.counts(number).slots += 1;
            }
        }
        self.write_steps(slots)
    }

    /// Writes the slots that are steps, which are neither counted nor listed.
    fn write_steps(&mut self, slots: &[SlotRow]) -> Result<(), Fault> {
        let mut steps: Vec<_> = slots.iter().filter(|row| row.id.key.step().is_some()).collect();
        if steps.is_empty() {
            return Ok(());
        }
        // In order they find their places sooner.
        steps.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let mut upsert = self.tx.prepare_cached(
            "INSERT INTO steps (workflow, key, state, since, retries, last_run, last_run_seq, run_alive, external_id, \
             priority, backfill, due, said, last_event, collected, held, requested, asked_at, flow, late, again, \
             check_value) \
             VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?21, ?22, ?23, ?24) \
             ON CONFLICT (workflow, key) DO UPDATE SET state = ?4, since = ?5, retries = ?6, last_run = ?7, \
             last_run_seq = ?8, run_alive = ?9, external_id = ?10, priority = ?11, backfill = ?12, due = ?13, said = ?14, \
             last_event = ?15, collected = ?16, held = ?17, requested = ?18, asked_at = ?19, flow = ?21, late = ?22, \
             again = ?23, check_value = ?24",
        )?;
        for row in steps {
            let number = self.number(&row.id.workflow)?;
            bind_and_execute_slot(&mut upsert, number, row, &mut self.known.sum)?;
        }
        Ok(())
    }

    fn write_runs(&mut self, runs: &[Run]) -> Result<(), Fault> {
        if runs.is_empty() {
            return Ok(());
        }
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO runs (seq, workflow, scheduled_at, key, number, previous, dispatched_at, earlier, kind, arguments, \
             batch, origin_check, state, executor, external_id, started_at, ended_at, outcome, outputs, check_value) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20) \
             ON CONFLICT DO NOTHING",
        )?;
        let mut update = self.tx.prepare_cached(
            "UPDATE runs SET state = ?2, executor = ?3, external_id = ?4, started_at = ?5, ended_at = ?6, \
             outcome = ?7, outputs = ?8, check_value = ?9 WHERE seq = ?1",
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
        Ok(())
    }

    fn last_run(&self, number: i64) -> u64 {
        let DatabaseState { counted, recounted, .. } = &*self.known;
        recounted.get(&number).or(counted.get(&number)).map_or(0, |counted| counted.last_run)
    }

    fn insert_run(&mut self, insert: &mut CachedStatement<'_>, number: i64, run: &Run) -> Result<bool, Fault> {
        let key = &run.id.slot.key;
        let earlier = self.last_run(number);
        let given = Some(&run.arguments).filter(|arguments| !arguments.is_empty());
        let arguments = given.map(stored::text).transpose()?;
        let batch = run.batch.as_ref().map(stored::text).transpose()?;
        let mut row = Binding::new(insert, &mut self.known.sum);
        row.number(column(run.seq))?.number(number)?.number(time(key))?;
        row.text(&*beyond_time(key))?.number(i64::from(run.id.number))?.number(column(run.previous))?;
        row.number(run.dispatched_at.as_millisecond())?.number(column(earlier))?.number(kind(key))?;
        row.text(arguments.as_deref())?.text(batch.as_deref())?.check_value()?;
        row.again(column(run.seq));
        let inserted = bind_course(&mut row, run)?.execute()? > 0;
        if inserted && earlier > run.seq {
            let what = format!("run number {} was to be written after number {earlier} of its workflow", run.seq);
            return Err(Fault::Nonsense(what));
        }
        // The chain passes over the runs of steps; each of them leads to it.
        if inserted && key.step().is_none() {
            self.counts(number).last_run = run.seq;
        }
        Ok(inserted)
    }

    fn update_run(&mut self, update: &mut CachedStatement<'_>, run: &Run) -> Result<bool, Fault> {
        let mut row = Binding::new(update, &mut self.known.sum);
        Ok(bind_course(row.number(column(run.seq))?, run)?.execute()? > 0)
    }

    fn write_events(&mut self, events: &[EventRecord], digesting: &mut DigestBuilder) -> Result<(), Fault> {
        if events.is_empty() {
            return Ok(());
        }
        let mut insert = self.tx.prepare_cached(
            "INSERT INTO events (seq, at, previous, workflow, scheduled_at, key, body, kind, check_value) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        for record in events {
            let (workflow, key) = match &record.event {
                Event::Slot { slot, .. } => (Some(self.number(&slot.workflow)?), Some(&slot.key)),
                Event::Workflow { workflow, .. } => (Some(self.number(workflow)?), None),
                _ => (None, None),
            };
            let DatabaseState { text, sum, .. } = &mut *self.known;
            stored::write_body(text, &record.event)?;
            let body = utf8(text)?;
            add_event(digesting, record, body);
            let mut row = Binding::new(&mut insert, sum);
            row.number(column(record.seq))?.number(record.at.as_millisecond())?.number(column(record.previous))?;
            row.number(workflow)?.number(key.and_then(time))?;
            row.text(key.map(beyond_time).as_deref())?.text(body)?.number(key.map(kind))?.check_value()?.execute()?;
        }
        Ok(())
    }

    fn write_backfills(&mut self, backfills: &[Backfill]) -> Result<(), Fault> {
        for backfill in backfills {
            let number = self.number(&backfill.workflow)?;
            let mut upsert = self.tx.prepare_cached(
                "INSERT INTO backfills (name, workflow, range_start, range_end, mode, priority, asked_by, created_at, \
                 cancelled_at, slots, reason, paused_at, paused_by, resumed_at, check_value) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
                 ON CONFLICT (name) DO UPDATE SET workflow = ?2, range_start = ?3, range_end = ?4, mode = ?5, \
                 priority = ?6, asked_by = ?7, created_at = ?8, cancelled_at = ?9, slots = ?10, reason = ?11, \
                 paused_at = ?12, paused_by = ?13, resumed_at = ?14, check_value = ?15",
            )?;
            let paused = backfill.paused.as_ref();
            let paused_by = paused.map(|pause| actor_text(&pause.by)).transpose()?;
            let mut row = Binding::new(&mut upsert, &mut self.known.sum);
            row.text(backfill.id.as_str())?.number(number)?;
            row.number(backfill.range.start.as_millisecond())?.number(backfill.range.end.as_millisecond())?;
            row.text(mode_name(backfill.mode))?
                .number(i64::from(backfill.priority))?
                .text(&*actor_text(&backfill.by)?)?;
            row.number(backfill.created_at.as_millisecond())?.number(millis(backfill.cancelled_at))?;
            row.number(i64::from(backfill.slots))?.text(backfill.reason.as_deref())?;
            row.number(paused.map(|pause| pause.at.as_millisecond()))?.text(paused_by.as_deref())?;
            row.number(millis(backfill.resumed_at))?.check_value()?.execute()?;
        }
        Ok(())
    }

    fn write_facts(&mut self, facts: &[(FactKey, u64)]) -> Result<(), Fault> {
        if facts.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO facts (source, about, key, seq, check_value) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT DO NOTHING";
        let mut insert = self.tx.prepare_cached(sql)?;
        // In order they find their places sooner.
        let mut facts: Vec<_> = facts.iter().collect();
        facts.sort_unstable();
        for (name, seq) in facts {
            let mut row = Binding::new(&mut insert, &mut self.known.sum);
            row.text(&*name.source)?.text(&*name.about)?.text(&*name.key)?.number(column(*seq))?;
            if row.check_value()?.execute()? == 0 {
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
                "INSERT INTO registers (bucket, key, value, check_value) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (bucket, key) DO UPDATE SET value = ?3, check_value = ?4",
            )?;
            let DatabaseState { text, sum, .. } = &mut *self.known;
            stored::write(text, value)?;
            let mut row = Binding::new(&mut upsert, sum);
            row.text(&**bucket)?.text(&**key)?.text(utf8(text)?)?.check_value()?.execute()?;
        }
        Ok(())
    }
}

/// Writes a slot, and returns whether it is new. Tries the more likely statement first.
fn write_slot(
    conn: &Connection,
    [insert, update]: [&mut CachedStatement<'_>; 2],
    number: i64,
    row: &SlotRow,
    sum: &mut Sum,
) -> Result<bool, Fault> {
    let slot = &row.slot;
    let fresh = slot.state == SlotState::Waiting && slot.last_run == 0 && slot.said == 0;
    if fresh && bind_and_execute_slot(insert, number, row, sum)? {
        return Ok(true);
    }
    if bind_and_execute_slot(update, number, row, sum)? {
        return Ok(false);
    }
    // A slot in a block has run, so one that is fresh is in none.
    let was_packed = !fresh && blocks::take(conn, number, &row.id.key, sum)?;
    Ok(bind_and_execute_slot(insert, number, row, sum)? && !was_packed)
}

fn bind_and_execute_slot(
    statement: &mut CachedStatement<'_>,
    number: i64,
    row: &SlotRow,
    sum: &mut Sum,
) -> Result<bool, Fault> {
    let (key, slot) = (&row.id.key, &row.slot);
    let collected = slot.collected.as_deref().map(stored::text).transpose()?;
    let held = Some(&slot.held).filter(|held| !held.is_empty()).map(stored::text).transpose()?;
    let flow = slot.flow.as_deref().map(stored::text).transpose()?;
    let mut row = Binding::new(statement, sum);
    row.number(order_time(key))?.number(number)?.text(&*beyond_time(key))?;
    row.number(slot_state(slot.state))?.number(slot.since.as_millisecond())?.number(i64::from(slot.retries))?;
    row.number(i64::from(slot.last_run))?.number(column(slot.last_run_seq))?.number(i64::from(slot.run_alive))?;
    row.text(slot.external_id.as_deref())?.number(i64::from(slot.priority))?;
    row.text(slot.backfill.as_ref().map(|backfill| backfill.as_str()))?.number(millis(slot.due))?;
    row.number(i64::from(slot.said))?.number(column(slot.last_event))?.text(collected.as_deref())?;
    row.text(held.as_deref())?.number(i64::from(slot.requested))?.number(millis(slot.asked_at))?;
    row.number(kind(key))?.text(flow.as_deref())?.number(millis(slot.late))?;
    let again = Some(slot.again).filter(|again| *again > 0).map(i64::from);
    Ok(row.number(again)?.check_value()?.execute()? > 0)
}

/// Binds the columns of a run that change while it is live.
fn bind_course<'b, 'a, 'c>(row: &'b mut Binding<'a, 'c>, run: &Run) -> Result<&'b mut Binding<'a, 'c>, Fault> {
    let outcome = run.outcome.as_ref().map(stored::text).transpose()?;
    let outputs = run.outputs.as_deref().map(stored::text).transpose()?;
    row.number(run_state(run.state))?.text(run.executor.as_str())?.text(run.external_id.as_deref())?;
    row.number(millis(run.started_at))?.number(millis(run.ended_at))?.text(outcome.as_deref())?;
    row.text(outputs.as_deref())?.check_value()
}

fn utf8(text: &[u8]) -> Result<&str, Fault> {
    from_utf8(text).map_err(|error| Fault::Nonsense(error.to_string()))
}
