//! Rows to nouns and back.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::{Backfill, BackfillMode, Pause};
use kelos_model::ranges::Range;
use kelos_model::time::moment_of_millis;
use kelos_model::workflow::{PlanState, Workflow, WorkflowRow};
use kelos_model::{
    Actor, BackfillId, EventRecord, Run, RunId, RunState, Slot, SlotKey, SlotRef, SlotState, WorkflowId,
};
use kelos_store::adapter::cursor::whole_key;
use kelos_store::adapter::{EventSubject, SlotPlace, StoredForm, stored};
use kelos_store::{PastDefinition, SlotRow};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::Value;

use super::check;
use super::fault::Fault;
use super::unread::Unread;

pub(super) type RowResult<T> = Result<T, Fault>;

/// Numbers of workflows are given one after the other: none comes near this one.
const MOST_NAMES: usize = 1 << 24;

pub(super) const SLOT: &str = "scheduled_at, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, \
     external_id, priority, backfill, due, said, last_event, collected, held, requested, asked_at, kind, flow, late, again, check_value";
/// The same of a step, which has a table without the columns that say nothing of it: its key has no time, and its kind is that of all.
/// So it has the check value that it would have among the slots.
pub(super) const STEP_SLOT: &str = "0, workflow, key, state, since, retries, last_run, last_run_seq, run_alive, external_id, priority, \
     backfill, due, said, last_event, collected, held, requested, asked_at, 4, flow, late, again, check_value";
/// The columns of a slot's id and state.
pub(super) const STATE: &str = "scheduled_at, workflow, key, state, kind";
pub(super) const RUN: &str = "seq, workflow, scheduled_at, key, number, previous, state, executor, external_id, \
     dispatched_at, started_at, ended_at, outcome, earlier, check_value, origin_check, kind, arguments, outputs, batch";
/// The columns of [`RUN`] that are written once.
pub(super) const RUN_ORIGIN: [usize; 11] = [0, 1, 2, 3, 4, 5, 9, 13, 16, 17, 19];
/// The others, and which run they are of.
pub(super) const RUN_COURSE: [usize; 8] = [0, 6, 7, 8, 10, 11, 12, 18];
pub(super) const EVENT: &str = "seq, at, previous, workflow, scheduled_at, key, body, kind, check_value";
pub(super) const BACKFILL: &str = "name, workflow, range_start, range_end, mode, priority, asked_by, created_at, cancelled_at, slots, \
     reason, paused_at, paused_by, resumed_at, check_value";
pub(super) const REGISTER: &str = "bucket, key, value, check_value";
pub(super) const FACT: &str = "source, about, key, seq, check_value";
/// Columns of a workflow, but for its counts.
pub(super) const NAMED: &str = "id, name, version, present, paused, planned, moments, enabled, check_value";
/// The columns of a workflow's counts.
pub(super) const COUNTED: &str = "id, slots, last_run, counts_check";
pub(super) const DEFINITION: &str = "workflow, version, at, definition, source, check_value";
pub(super) const WORKFLOW: &str = "SELECT w.id, name, w.version, present, paused, planned, moments, enabled, w.check_value, \
     d.workflow, d.version, d.at, d.definition, d.source, d.check_value \
     FROM workflows AS w JOIN definitions AS d ON d.workflow = w.id AND d.version = w.version";
/// The index of the first column of [`DEFINITION`] in [`WORKFLOW`].
pub(super) const DEFINED_FROM: usize = 9;

/// The number of a slot's state in the tables. Never change a number: old databases hold it.
pub(super) fn slot_state(state: SlotState) -> i64 {
    match state {
        SlotState::Waiting => 0,
        SlotState::Held => 1,
        SlotState::Queued => 2,
        SlotState::Dispatched => 3,
        SlotState::Running => 4,
        SlotState::Backoff => 5,
        SlotState::Succeeded => 6,
        SlotState::Failed => 7,
        SlotState::Expired => 8,
        SlotState::Skipped => 9,
        SlotState::Killed => 10,
    }
}

/// The number of a run's state in the tables. Never change a number: old databases hold it.
pub(super) fn run_state(state: RunState) -> i64 {
    match state {
        RunState::Dispatched => 0,
        RunState::Running => 1,
        RunState::Succeeded => 2,
        RunState::Failed => 3,
        RunState::Killed => 4,
        RunState::Unknown => 5,
    }
}

pub(super) fn read_slot_state(row: &Row<'_>, column: usize) -> RowResult<SlotState> {
    let number = row.get::<_, i64>(column)?;
    let state = usize::try_from(number).ok().and_then(|index| SlotState::ALL.get(index));
    state.copied().ok_or_else(|| Fault::Damaged(format!("{number} is not the state of a slot")))
}

pub(super) fn read_run_state(row: &Row<'_>, column: usize) -> RowResult<RunState> {
    let number = row.get::<_, i64>(column)?;
    let state = usize::try_from(number).ok().and_then(|index| RunState::ALL.get(index));
    state.copied().ok_or_else(|| Fault::Damaged(format!("{number} is not the state of a run")))
}

/// Positions in the log fit a column: there are no more than 2^63.
pub(super) fn column(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

pub(super) fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.as_millisecond())
}

pub(super) fn moment(millis: i64) -> RowResult<Timestamp> {
    moment_of_millis(millis).ok_or_else(|| Fault::Damaged(format!("{millis} ms is out of time")))
}

fn read_moment(row: &Row<'_>, column: usize) -> RowResult<Timestamp> {
    moment(row.get(column)?)
}

fn read_moment_if_any(row: &Row<'_>, column: usize) -> RowResult<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?.map(moment).transpose()
}

fn read_key(row: &Row<'_>, kind: usize, at: usize, beyond: usize) -> RowResult<SlotKey> {
    let (kind, beyond) = (row.get(kind)?, row.get_ref(beyond)?.as_str()?);
    whole_key(kind, read_moment_if_any(row, at)?, beyond)
        .ok_or_else(|| Fault::Damaged(format!("\"{beyond}\" is not the rest of a key of kind {kind}")))
}

fn read_text(row: &Row<'_>, column: usize) -> RowResult<Option<String>> {
    Ok(row.get_ref(column)?.as_str_or_null()?.map(str::to_owned))
}

fn read_workflow_name(row: &Row<'_>, column: usize) -> RowResult<WorkflowId> {
    WorkflowId::new(row.get_ref(column)?.as_str()?).map_err(|error| Fault::Damaged(error.to_string()))
}

fn read_backfill_name(row: &Row<'_>, column: usize) -> RowResult<Option<BackfillId>> {
    let name = row.get_ref(column)?.as_str_or_null()?;
    name.map(BackfillId::new).transpose().map_err(|error| Fault::Damaged(error.to_string()))
}

/// The way in which the parts of a row are read that are JSON.
enum Parts<'a> {
    /// All of them, or it fails.
    Whole,
    /// A part that can't be read is noted, and left out.
    Readable { unread: &'a Unread, workflow: &'a WorkflowId, slot: Option<&'a SlotRef> },
}

impl Parts<'_> {
    fn read<T: StoredForm>(&self, row: &Row<'_>, column: usize, what: &str) -> RowResult<Option<T>> {
        let Some(text) = row.get_ref(column)?.as_str_or_null()? else { return Ok(None) };
        match (stored::read(text), self) {
            (Ok(read), _) => Ok(Some(read)),
            (Err(error), Parts::Readable { unread, workflow, slot }) => {
                unread.note(workflow, *slot, what, error.to_string());
                Ok(None)
            }
            (Err(error), Parts::Whole) => Err(error.into()),
        }
    }
}

fn read_pause(row: &Row<'_>, at: usize, by: usize) -> RowResult<Option<Pause>> {
    let Some(at) = read_moment_if_any(row, at)? else { return Ok(None) };
    let by = row.get_ref(by)?.as_str_or_null()?.unwrap_or_default();
    Ok(Some(Pause { at, by: read_actor(by) }))
}

/// An actor as a column stores it: the name alone where nothing else is known, as in old databases, or else JSON.
pub(super) fn actor_text(actor: &Actor) -> RowResult<Cow<'_, str>> {
    actor.bare_name().map_or_else(|| Ok(Cow::Owned(stored::text(actor)?)), |name| Ok(Cow::Borrowed(name)))
}

/// Reads what [`actor_text`] writes. What is no JSON of an actor is a name.
fn read_actor(text: &str) -> Actor {
    let whole = text.starts_with('{').then(|| stored::read(text).ok()).flatten();
    whole.unwrap_or_else(|| Actor::unknown(text))
}

/// The numbers of the workflows' names, as of one transaction.
#[derive(Debug, Default, Clone)]
pub(super) struct Names {
    /// The rows that were met with these names, and can't be read.
    pub(super) unread: Unread,
    by_number: Vec<Option<WorkflowId>>,
    by_name: HashMap<WorkflowId, i64>,
}

impl Names {
    /// Reads what came since `known`: names never change and never go.
    pub(super) fn read(known: &Arc<Names>, conn: &Connection) -> RowResult<Arc<Names>> {
        let last =
            conn.prepare_cached("SELECT max(id) FROM workflows")?.query_row([], |row| row.get::<_, Option<i64>>(0))?;
        let unread = known.by_number.len();
        if last.is_none_or(|last| last < column(unread as u64)) {
            return Ok(Arc::clone(known));
        }
        let mut names = Names::clone(known);
        let sql = format!("SELECT {NAMED} FROM workflows WHERE id >= ?1 ORDER BY id");
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query([column(unread as u64)])?;
        while let Some(row) = rows.next()? {
            check::test(row, 0..8, 8, "a workflow")?;
            let number = row.get::<_, i64>(0)?;
            let index = usize::try_from(number).map_err(|_| Fault::Damaged(format!("workflow number {number}")))?;
            let name = read_workflow_name(row, 1)?;
            if index >= MOST_NAMES {
                return Err(Fault::Damaged(format!("workflow number {number} is beyond all numbers that are given")));
            }
            names.by_number.resize(index, None);
            names.by_number.push(Some(name.clone()));
            names.by_name.insert(name, number);
        }
        Ok(Arc::new(names))
    }

    pub(super) fn number(&self, name: &WorkflowId) -> Option<i64> {
        self.by_name.get(name).copied()
    }

    pub(super) fn name(&self, number: i64) -> RowResult<&WorkflowId> {
        let name = usize::try_from(number).ok().and_then(|index| self.by_number.get(index));
        name.and_then(Option::as_ref).ok_or_else(|| Fault::Damaged(format!("workflow number {number} has no name")))
    }

    /// Reads the position in the listing of a slot with the columns [`SLOT`].
    pub(super) fn read_place(&self, row: &Row<'_>) -> RowResult<SlotPlace> {
        Ok(SlotPlace { at: Reverse(row.get(0)?), workflow: self.name(row.get(1)?)?.clone(), key: row.get(2)? })
    }

    /// Reads a workflow's number, and the kind, the time and the rest of a slot's key.
    fn read_ref(&self, row: &Row<'_>, workflow: usize, [kind, at, beyond]: [usize; 3]) -> RowResult<SlotRef> {
        let name = self.name(row.get(workflow)?)?.clone();
        Ok(SlotRef::new(name, read_key(row, kind, at, beyond)?))
    }

    /// Reads the columns [`SLOT`] or [`STEP_SLOT`].
    pub(super) fn read_slot_row(&self, row: &Row<'_>) -> RowResult<SlotRow> {
        let id = self.read_ref(row, 1, [19, 0, 2])?;
        let slot = self.read_slot(row, &id)?;
        Ok(SlotRow { id, slot })
    }

    /// Reads the columns [`SLOT`] or [`STEP_SLOT`] of a slot.
    pub(super) fn read_slot(&self, row: &Row<'_>, id: &SlotRef) -> RowResult<Slot> {
        test_slot(row)?;
        slot_of(row, &Parts::Readable { unread: &self.unread, workflow: &id.workflow, slot: Some(id) })
    }

    /// Reads the name of a slot with the columns [`SLOT`] or [`STEP_SLOT`].
    pub(super) fn read_slot_name(&self, row: &Row<'_>) -> RowResult<SlotRef> {
        self.read_ref(row, 1, [19, 0, 2])
    }

    /// Reads the columns [`STATE`].
    pub(super) fn read_slot_name_and_state(&self, row: &Row<'_>) -> RowResult<(SlotRef, SlotState)> {
        Ok((self.read_ref(row, 1, [4, 0, 2])?, read_slot_state(row, 3)?))
    }

    /// Reads the columns [`RUN`].
    pub(super) fn read_run(&self, row: &Row<'_>) -> RowResult<Run> {
        let id = RunId { slot: self.read_ref(row, 1, [16, 2, 3])?, number: row.get(4)? };
        let slot = id.slot.clone();
        run_of(row, id, &Parts::Readable { unread: &self.unread, workflow: &slot.workflow, slot: Some(&slot) })
    }

    /// The same, but for one that can't be read as a whole.
    pub(super) fn read_whole_run(&self, row: &Row<'_>) -> RowResult<Run> {
        let id = RunId { slot: self.read_ref(row, 1, [16, 2, 3])?, number: row.get(4)? };
        run_of(row, id, &Parts::Whole)
    }
    /// Reads the columns [`EVENT`]. Of an event that can't be read it is the position of the one of its slot before it; 0 if there is none.
    pub(super) fn read_event(&self, row: &Row<'_>) -> RowResult<Result<EventRecord, u64>> {
        match self.read_whole_event(row) {
            Ok(record) => Ok(Ok(record)),
            Err(Fault::Unreadable(why)) => {
                if let Some(number) = row.get::<_, Option<i64>>(3)? {
                    let what = format!("event {}", row.get::<_, u64>(0)?);
                    self.unread.note(self.name(number)?, None, what, why);
                }
                Ok(Err(row.get(2)?))
            }
            Err(other) => Err(other),
        }
    }

    /// The same, but for one that can't be read.
    pub(super) fn read_whole_event(&self, row: &Row<'_>) -> RowResult<EventRecord> {
        check::test(row, 0..8, 8, "an event")?;
        let body = row.get_ref(6)?.as_str()?;
        let subject = match (row.get_ref(3)?, row.get_ref(7)?) {
            (ValueRef::Null, _) => EventSubject::InBody,
            (number, ValueRef::Null) => EventSubject::Workflow(self.name(number.as_i64()?)?.clone()),
            _ => EventSubject::Slot(self.read_ref(row, 3, [7, 4, 5])?),
        };
        let event = stored::read_body(subject, body)?;
        Ok(EventRecord { seq: row.get(0)?, at: read_moment(row, 1)?, previous: row.get(2)?, event })
    }

    /// Reads the columns [`BACKFILL`].
    pub(super) fn read_backfill(&self, row: &Row<'_>) -> RowResult<Backfill> {
        check::test(row, 0..14, 14, "a backfill")?;
        let mode = row.get_ref(4)?.as_str()?;
        let id = read_backfill_name(row, 0)?.ok_or_else(|| Fault::Damaged("a backfill has no name".to_owned()))?;
        Ok(Backfill {
            id,
            workflow: self.name(row.get(1)?)?.clone(),
            range: Range::new(read_moment(row, 2)?, read_moment(row, 3)?),
            mode: read_mode(mode).ok_or_else(|| Fault::Damaged(format!("\"{mode}\" is not the mode of a backfill")))?,
            priority: row.get(5)?,
            by: read_actor(row.get_ref(6)?.as_str()?),
            created_at: read_moment(row, 7)?,
            cancelled_at: read_moment_if_any(row, 8)?,
            slots: row.get(9)?,
            reason: read_text(row, 10)?,
            paused: read_pause(row, 11, 12)?,
            resumed_at: read_moment_if_any(row, 13)?,
        })
    }
}

/// Reads when an event happened, of the columns [`EVENT`].
pub(super) fn read_event_time(row: &Row<'_>) -> RowResult<Timestamp> {
    check::test(row, 0..8, 8, "an event")?;
    read_moment(row, 1)
}

fn run_of(row: &Row<'_>, id: RunId, parts: &Parts<'_>) -> RowResult<Run> {
    test_run(row)?;
    Ok(Run {
        id,
        seq: row.get(0)?,
        previous: row.get(5)?,
        state: read_run_state(row, 6)?,
        executor: row.get(7)?,
        external_id: read_text(row, 8)?,
        dispatched_at: read_moment(row, 9)?,
        started_at: read_moment_if_any(row, 10)?,
        ended_at: read_moment_if_any(row, 11)?,
        outcome: parts.read(row, 12, "the outcome of a run")?,
        arguments: parts.read(row, 17, "the arguments of a run")?.unwrap_or_default(),
        outputs: parts.read(row, 18, "the outputs of a run")?.map(Box::new),
        batch: parts.read(row, 19, "the batch of a run")?,
    })
}

fn test_slot(row: &Row<'_>) -> RowResult<()> {
    check::test(row, 0..23, 23, "a slot")
}

/// Reads the columns [`SLOT`], but for the name of the workflow. A slot that can't be read as a whole is none.
pub(super) fn read_slot_of(row: &Row<'_>) -> RowResult<(SlotKey, Option<Slot>)> {
    let slot = match read_whole_slot(row) {
        Err(Fault::Unreadable(_)) => None,
        read => Some(read?),
    };
    Ok((read_key(row, 19, 0, 2)?, slot))
}

/// Reads the columns [`SLOT`] or [`STEP_SLOT`], but for the name, of a slot that can be read as a whole.
pub(super) fn read_whole_slot(row: &Row<'_>) -> RowResult<Slot> {
    test_slot(row)?;
    slot_of(row, &Parts::Whole)
}

/// Tests the columns [`RUN`].
pub(super) fn test_run(row: &Row<'_>) -> RowResult<()> {
    check::test(row, RUN_ORIGIN, 15, "a run")?;
    check::test(row, RUN_COURSE, 14, "a run")
}

fn slot_of(row: &Row<'_>, parts: &Parts<'_>) -> RowResult<Slot> {
    Ok(Slot {
        state: read_slot_state(row, 3)?,
        since: read_moment(row, 4)?,
        retries: row.get(5)?,
        last_run: row.get(6)?,
        last_run_seq: row.get(7)?,
        run_alive: row.get(8)?,
        external_id: read_text(row, 9)?,
        priority: row.get(10)?,
        backfill: read_backfill_name(row, 11)?,
        due: read_moment_if_any(row, 12)?,
        said: row.get(13)?,
        last_event: row.get(14)?,
        collected: parts.read(row, 15, "what it collected")?.map(Box::new),
        held: parts.read(row, 16, "its permits")?.unwrap_or_default(),
        requested: row.get(17)?,
        asked_at: read_moment_if_any(row, 18)?,
        flow: parts.read(row, 20, "its part in a flow")?.map(Box::new),
        late: read_moment_if_any(row, 21)?,
        again: row.get::<_, Option<u32>>(22)?.unwrap_or(0),
    })
}

/// Reads the columns of [`WORKFLOW`]; `definition` gives what those of the definition say.
pub(super) fn read_workflow(
    row: &Row<'_>,
    unread: Option<&Unread>,
    definition: impl FnOnce(&WorkflowId, u32, &Row<'_>) -> RowResult<Arc<Workflow>>,
) -> RowResult<WorkflowRow> {
    check::test(row, 0..8, 8, "a workflow")?;
    let (id, version) = (read_workflow_name(row, 1)?, row.get(2)?);
    let parts = unread.map_or(Parts::Whole, |unread| Parts::Readable { unread, workflow: &id, slot: None });
    let planned = parts.read(row, 5, "the state of its planning")?.unwrap_or_default();
    let moments = parts.read(row, 6, "its moments")?.unwrap_or_default();
    Ok(WorkflowRow {
        definition: definition(&id, version, row)?,
        id,
        version,
        present: row.get(3)?,
        enabled: row.get(7)?,
        paused: row.get(4)?,
        planned,
        moments,
    })
}

/// Reads the name of a workflow and what is planned of it, from its own columns of [`WORKFLOW`]. Nothing is where that can't be read.
pub(super) fn read_planned(row: &Row<'_>) -> RowResult<(WorkflowId, PlanState)> {
    check::test(row, 0..8, 8, "a workflow")?;
    Ok((read_workflow_name(row, 1)?, stored::read(row.get_ref(5)?.as_str()?).unwrap_or_default()))
}

/// Reads the value of the columns [`REGISTER`].
pub(super) fn read_register(row: &Row<'_>) -> RowResult<Value> {
    check::test(row, 0..3, 3, "a register")?;
    stored::read(row.get_ref(2)?.as_str()?).map_err(|error| {
        let (bucket, key) =
            (row.get_ref(0).and_then(|it| Ok(it.as_str()?)), row.get_ref(1).and_then(|it| Ok(it.as_str()?)));
        let name = format!("{}/{}", bucket.unwrap_or_default(), key.unwrap_or_default());
        Fault::Unreadable(format!("the value of register {name} can't be read: {error}; set it anew, or delete it"))
    })
}

/// Reads what the columns [`DEFINITION`] say that begin at one.
pub(super) fn read_defined<T: StoredForm>(row: &Row<'_>, from: usize) -> RowResult<T> {
    check::test(row, from..from + 5, from + 5, "a definition")?;
    Ok(stored::read(row.get_ref(from + 3)?.as_str()?)?)
}

/// Reads the columns [`DEFINITION`], and the digest and text of the source.
///
/// # Errors
/// [`Fault::Unreadable`] where the definition can't be read.
pub(super) fn read_definition(row: &Row<'_>) -> RowResult<PastDefinition> {
    let source = read_text(row, 7)?;
    if let Some(text) = &source
        && row.get::<_, i64>(6)? != fnv(text)
    {
        return Err(Fault::Damaged("a source does not agree with its digest: it changed by itself".to_owned()));
    }
    if source.is_none() && row.get::<_, Option<i64>>(4)?.is_some() {
        return Err(Fault::Damaged("the source of a definition is missing".to_owned()));
    }
    Ok(PastDefinition { version: row.get(1)?, at: read_moment(row, 2)?, definition: read_defined(row, 0)?, source })
}

/// A digest of a text that no version of anything changes (FNV-1a); texts are compared besides.
pub(super) fn fnv(text: &str) -> i64 {
    let digest = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    digest.cast_signed()
}

/// The counts of a workflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WorkflowCounts {
    /// The number of its slots.
    pub(super) slots: u64,
    /// Its latest run; 0 before the first.
    pub(super) last_run: u64,
}

/// Reads the columns [`COUNTED`].
pub(super) fn read_counted(row: &Row<'_>) -> RowResult<WorkflowCounts> {
    check::test(row, 0..3, 3, "what is counted of a workflow")?;
    Ok(WorkflowCounts { slots: row.get(1)?, last_run: row.get(2)? })
}

/// The counts of one workflow; none if it doesn't exist.
pub(super) fn counted_of(conn: &Connection, number: i64) -> RowResult<Option<WorkflowCounts>> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COUNTED} FROM workflows WHERE id = ?1"))?;
    let mut rows = statement.query([number])?;
    rows.next()?.map(read_counted).transpose()
}

const MODES: [(BackfillMode, &str); 3] =
    [(BackfillMode::Missing, "missing"), (BackfillMode::Unsuccessful, "unsuccessful"), (BackfillMode::All, "all")];

/// The name of a backfill's mode in the tables.
pub(super) fn mode_name(mode: BackfillMode) -> &'static str {
    match mode {
        BackfillMode::Missing => MODES[0].1,
        BackfillMode::Unsuccessful => MODES[1].1,
        BackfillMode::All => MODES[2].1,
    }
}

fn read_mode(name: &str) -> Option<BackfillMode> {
    MODES.iter().find(|(_, known)| *known == name).map(|(mode, _)| *mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_in_the_order_in_which_they_are_read_back() {
        for (number, state) in SlotState::ALL.into_iter().enumerate() {
            assert_eq!(slot_state(state), number as i64);
        }
        for (number, state) in RunState::ALL.into_iter().enumerate() {
            assert_eq!(run_state(state), number as i64);
        }
    }

    #[test]
    fn modes_read_back() {
        for mode in [BackfillMode::Missing, BackfillMode::Unsuccessful, BackfillMode::All] {
            assert_eq!(read_mode(mode_name(mode)), Some(mode));
        }
    }
}
