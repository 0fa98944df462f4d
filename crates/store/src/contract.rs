//! What every store does, whatever it is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::ranges::Range;
use kelos_model::workflow::{Backfill, Workflow, WorkflowRow};
use kelos_model::{
    BackfillId, Event, EventRecord, FactKey, Recall, Run, RunState, Slot, SlotRef, SlotState, WorkflowEvent, WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Digest, Recount, TurnRecord};
use crate::tally::{Columns, Tally};

/// Why a store could not do what was asked. Messages complete "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else leads: the epoch of the commit is stale. Nothing was written.
    #[error("write as leader of epoch {held}: epoch {current} has taken over")]
    Deposed {
        /// The epoch that was held.
        held: u64,
        /// The epoch in force.
        current: u64,
    },
    /// The data was written by a newer version of the program. Nothing was touched.
    #[error(
        "open {place}: its schema is version {found}, this program knows up to {known}; use the newer program, or another folder"
    )]
    TooNew {
        /// Where the data is.
        place: String,
        /// The version found there.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// The data was written by an older version of the program, and is only to be read. Nothing was touched.
    #[error(
        "read {place}: its schema is version {found}, this program reads version {known}; a server brings it up to date at its start"
    )]
    TooOld {
        /// Where the data is.
        place: String,
        /// The version found there.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// The data contradicts itself.
    #[error("read {place}: {what}")]
    Corrupt {
        /// Where.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// A cursor that no page gave.
    #[error("read on from \"{cursor}\": expected the `next` of an earlier page")]
    Cursor {
        /// The cursor as given.
        cursor: Cursor,
    },
    /// The medium failed: disk full, no permission, server gone.
    #[error("{doing}: {cause}")]
    Medium {
        /// What was being done, completing "failed to …".
        doing: String,
        /// What the medium said.
        cause: String,
    },
}

/// The right to write, until somebody else takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Grows with each change of leader; every commit carries it.
    pub epoch: u64,
}

/// A slot with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlotRow {
    /// Its name.
    #[serde(flatten)]
    pub id: SlotRef,
    /// What is known of it.
    #[serde(flatten)]
    pub slot: Slot,
}

/// All that the engine needs to go on where another left off.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Position of the last event in the log; 0 when it is empty.
    pub last_seq: u64,
    /// When that event happened.
    pub last_at: Option<Timestamp>,
    /// The last turn; none before the first.
    pub last_turn: Option<TurnRecord>,
    /// Every workflow that ever was.
    pub workflows: Vec<WorkflowRow>,
    /// The live slots ([`Slot::is_live`]), in no particular order.
    pub slots: Vec<SlotRow>,
    /// All backfills that ever were, in no particular order.
    pub backfills: Vec<Backfill>,
    /// The runs that have not ended, in no particular order.
    pub runs: Vec<Run>,
}

/// One turn: what happened, and the rows as they are after it. Times are kept in whole milliseconds;
/// what is finer is cut off. A commit in which there is anything leaves a [`TurnRecord`] in the same transaction.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// The moment of the turn.
    pub at: Timestamp,
    /// The events, in order; the first follows the last of the commit before.
    pub events: Vec<EventRecord>,
    /// The slots that changed, as they are now.
    pub slots: Vec<SlotRow>,
    /// The runs that changed, as they are now.
    pub runs: Vec<Run>,
    /// The workflows that changed, as they are now. A new version also goes into the history of definitions, so that one that
    /// got several in the turn comes several times, the last as it is now.
    pub workflows: Vec<WorkflowRow>,
    /// The sources (file name to text) that belong to new definitions in `workflows`.
    pub sources: BTreeMap<String, Arc<str>>,
    /// The backfills that changed, as they are now.
    pub backfills: Vec<Backfill>,
    /// Registers by bucket and key; none deletes.
    pub registers: Vec<(String, String, Option<Value>)>,
    /// The names of new facts, with the log positions of their events. A name is written once, ever.
    pub facts: Vec<(FactKey, u64)>,
}

impl Commit {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.slots.is_empty()
            && self.runs.is_empty()
            && self.workflows.is_empty()
            && self.backfills.is_empty()
            && self.registers.is_empty()
            && self.facts.is_empty()
    }
}

/// The leader's side. Synchronous, owned by one thread.
pub trait Journal: Send {
    /// Takes or renews the right to write. None while somebody else holds it. Taking it anew gives a
    /// larger epoch; renewing keeps it. `now` and `ttl_millis` bound the lease where nothing better
    /// (a lock that dies with its process) proves the holder gone.
    ///
    /// # Errors
    /// When the medium fails.
    fn lease(&mut self, node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError>;

    /// Gives the right to write back, so that a standby need not wait for it to run out.
    ///
    /// # Errors
    /// When the medium fails.
    fn release(&mut self, lease: Lease) -> Result<(), StoreError>;

    /// Reads what the engine needs to go on.
    ///
    /// # Errors
    /// When the medium fails or the data contradicts itself.
    fn restore(&mut self) -> Result<Snapshot, StoreError>;

    /// Reads slots that are not in the engine's memory, ascending by name.
    ///
    /// # Errors
    /// When the medium fails.
    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError>;

    /// Reads runs by the log position of their dispatch, in the order of the question.
    ///
    /// # Errors
    /// When the medium fails or one does not exist.
    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError>;

    /// Says which of these facts were written before, in the order of the question.
    ///
    /// # Errors
    /// When the medium fails.
    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError>;

    /// Writes a turn, all of it or nothing, durably.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when the lease is stale, [`StoreError::Corrupt`] when the events do not
    /// follow the log; otherwise when the medium fails. In each case nothing was written.
    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError>;

    /// A reader of the same data, for any number of threads.
    fn reader(&self) -> Arc<dyn Queries>;
}

/// Where a page starts: opaque to callers, who hand back what [`Page::next`] gave them.
pub type Cursor = String;

/// A page of rows. A filter may let few rows through: a page may then hold fewer rows than asked for, even
/// none, although the list goes on. Only `next` tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page starts; none at the end.
    pub next: Option<Cursor>,
}

impl Page<TurnRecord> {
    /// The page of these turns, of which one more was read than it may have.
    pub(crate) fn of_turns(mut rows: Vec<TurnRecord>, limit: usize) -> Self {
        let full = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| full).map(|turn| turn.turn.to_string());
        Page { rows, next }
    }
}

/// The states of what is pending: it neither runs nor has ended.
pub const PENDING: [SlotState; 4] = [SlotState::Waiting, SlotState::Held, SlotState::Queued, SlotState::Backoff];

/// Which slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotFilter {
    /// Only of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Only in one of these states; empty means any.
    pub states: Vec<SlotState>,
    /// Only with a time in this range.
    pub range: Option<Range>,
    /// Only of this backfill.
    pub backfill: Option<BackfillId>,
}

/// Which runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Only in one of these states; empty means any.
    pub states: Vec<RunState>,
    /// Only those that were under way within this range of wall-clock time: dispatched before its end, and not over
    /// before its start. Those that are over are looked for no further back than [`RUN_LOOK_BACK_MILLIS`] before its
    /// start; those that go on are found however long ago they began.
    pub range: Option<Range>,
}

/// How long before a range a run may have been dispatched that is over, and is to be found in the range.
pub const RUN_LOOK_BACK_MILLIS: i64 = 48 * 3_600_000;

/// By how much the clock may have been put back without a store leaving out runs of a range. Runs are kept in the order
/// of their dispatch, which is the order of their moments but where the clock jumped.
pub const CLOCK_SLACK_MILLIS: i64 = 3_600_000;

impl RunFilter {
    /// Whether a run with these moments is one of the range's.
    pub(crate) fn has_time(&self, state: RunState, dispatched_at: i64, ended_at: Option<i64>) -> bool {
        let Some(range) = &self.range else { return true };
        let (start, end) = (range.start.as_millisecond(), range.end.as_millisecond());
        // A clock that was put back may have a run end before it was dispatched.
        let over_at = ended_at.unwrap_or(dispatched_at).max(dispatched_at);
        let reaches_it = over_at >= start && dispatched_at >= start.saturating_sub(RUN_LOOK_BACK_MILLIS);
        start < end && dispatched_at < end && (reaches_it || !state.is_final())
    }
}

/// A definition as it once was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastDefinition {
    /// Counts the definitions of a workflow, from 1.
    pub version: u32,
    /// When it came into force.
    pub at: Timestamp,
    /// The definition.
    pub definition: Workflow,
    /// The text of the file it came from, where known.
    pub source: Option<String>,
}

/// Anybody's side: never waits for the writer, may lag behind it by the turn that is being written.
/// Every list is paged by key, so that a deep page costs what the first one costs, and rows that come
/// while somebody pages neither shift nor double the others.
pub trait Queries: Send + Sync {
    /// Every workflow that ever was, ascending by id.
    ///
    /// # Errors
    /// When the medium fails.
    fn workflows(&self) -> Result<Vec<WorkflowRow>, StoreError>;

    /// One workflow.
    ///
    /// # Errors
    /// When the medium fails.
    fn workflow(&self, id: &WorkflowId) -> Result<Option<WorkflowRow>, StoreError>;

    /// A workflow's definitions, newest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn definitions(&self, id: &WorkflowId) -> Result<Vec<PastDefinition>, StoreError>;

    /// One slot.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError>;

    /// Slots, newest time first; those of one time in the order in which the store first met their
    /// workflows, then ascending by key.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not one of ours.
    fn slots(&self, filter: &SlotFilter, from: Option<&str>, limit: usize) -> Result<Page<SlotRow>, StoreError>;

    /// The states of slots and nothing else, in the order of [`Queries::slots`]: what an overview draws. Costs
    /// a third of it.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not one of ours.
    fn slot_states(
        &self,
        filter: &SlotFilter,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        let Page { rows, next } = self.slots(filter, from, limit)?;
        Ok(Page { rows: rows.into_iter().map(|row| (row.id, row.slot.state)).collect(), next })
    }

    /// Slots in one state, oldest time first; those of one time in any order. Costs what is given back, however many
    /// slots there are besides, but for those that succeeded.
    ///
    /// # Errors
    /// When the medium fails.
    fn oldest_slots(&self, state: SlotState, limit: usize) -> Result<Vec<SlotRow>, StoreError>;

    /// How many slots of a filter are in each state.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError>;

    /// How many slots of each workflow, or of one, are in each state in each column of time, ascending by column
    /// and state. Workflows without any are left out. Costs what the slots between the first column and the
    /// last cost, however many there are besides.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError>;

    /// A slot's events, oldest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn history(&self, id: &SlotRef) -> Result<Vec<EventRecord>, StoreError>;

    /// Slots of a workflow that have collected facts and neither run nor have ended, newest first, so many at the most. Costs
    /// what is given back, however many ended.
    ///
    /// # Errors
    /// When the medium fails.
    fn pending(&self, workflow: &WorkflowId, limit: usize) -> Result<Vec<SlotRow>, StoreError>;

    /// A slot's newest events, newest first, so many at the most. Costs what is given back.
    ///
    /// # Errors
    /// When the medium fails.
    fn latest(&self, id: &SlotRef, limit: usize) -> Result<Vec<EventRecord>, StoreError> {
        Ok(self.history(id)?.into_iter().rev().take(limit).collect())
    }

    /// A slot's runs, oldest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot_runs(&self, id: &SlotRef) -> Result<Vec<Run>, StoreError>;

    /// Runs, newest dispatch first.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not one of ours.
    fn runs(&self, filter: &RunFilter, from: Option<&str>, limit: usize) -> Result<Page<Run>, StoreError>;

    /// Events after a log position, ascending. At most `limit` lines of the log are looked at where
    /// a workflow is named, so a page may be empty and the log go on: `Page::next` holds the position to
    /// go on from, none at the end of the log.
    ///
    /// # Errors
    /// When the medium fails.
    fn events(&self, after: u64, workflow: Option<&WorkflowId>, limit: usize) -> Result<Page<EventRecord>, StoreError>;

    /// Facts, newest first, before a log position where one is given. At most `limit` lines of the log are looked at that
    /// are about neither a slot nor a workflow, so a page may hold fewer rows although the list goes on.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not one of ours.
    fn facts(&self, from: Option<&str>, limit: usize) -> Result<Page<EventRecord>, StoreError>;

    /// What happened to a workflow itself, and not to its slots, newest first, before a log position where one is given. Costs
    /// what is given back.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not one of ours.
    fn workflow_events(
        &self,
        id: &WorkflowId,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Page<EventRecord>, StoreError>;

    /// Position of the last event; 0 when there is none.
    ///
    /// # Errors
    /// When the medium fails.
    fn last_seq(&self) -> Result<u64, StoreError>;

    /// The records of the turns after one, ascending; 0 begins with the first. [`Page::next`] holds the turn to go on from, none
    /// after the last.
    ///
    /// # Errors
    /// When the medium fails.
    fn turns(&self, after: u64, limit: usize) -> Result<Page<TurnRecord>, StoreError>;

    /// The digest that a turn's header and its events make as they are stored now, on that of the turn before. Costs a look at each
    /// of the events.
    ///
    /// # Errors
    /// When the medium fails.
    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError>;

    /// A reader of what is there now, whatever is written from here on. It keeps a store from giving room back, so it is not to be
    /// kept for long.
    ///
    /// # Errors
    /// When the medium fails.
    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError>;

    /// Backfills, newest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn backfills(&self) -> Result<Vec<Backfill>, StoreError>;

    /// One backfill.
    ///
    /// # Errors
    /// When the medium fails.
    fn backfill(&self, id: &BackfillId) -> Result<Option<Backfill>, StoreError>;

    /// A register's value.
    ///
    /// # Errors
    /// When the medium fails.
    fn register(&self, bucket: &str, key: &str) -> Result<Option<Value>, StoreError>;

    /// A bucket's registers whose key starts with a prefix, ascending by key.
    ///
    /// # Errors
    /// When the medium fails.
    fn registers(&self, bucket: &str, prefix: &str) -> Result<Vec<(String, Value)>, StoreError>;

    /// What is damaged, in words, so many at the most: everything is read and held against its check values, and what is kept twice
    /// is compared. Costs a look at all that there is.
    ///
    /// # Errors
    /// When the medium fails.
    fn damage(&self, limit: usize) -> Result<Vec<String>, StoreError>;

    /// The names of the buckets that have registers, ascending.
    ///
    /// # Errors
    /// When the medium fails.
    fn buckets(&self) -> Result<Vec<String>, StoreError>;
}

/// Whether events go on from a log that ends at `last`, without gaps; if not, why, in words.
pub(crate) fn follows(last: u64, events: &[EventRecord]) -> Result<(), String> {
    let mut expected = last;
    for record in events {
        expected += 1;
        if record.seq != expected {
            return Err(format!("event {} was to be written as number {expected} of the log", record.seq));
        }
    }
    Ok(())
}

/// What is wrong with a name that was written before.
pub(crate) fn named_before(FactKey { source, about, key }: &FactKey) -> String {
    format!("fact \"{key}\" of \"{source}\" about {about} was to be written again, and a name is written once")
}

/// Lines of the log, newest first, as a page.
pub(crate) fn newest_first(rows: Vec<EventRecord>, limit: usize) -> Page<EventRecord> {
    let next = rows.last().filter(|_| rows.len() >= limit).map(|record| record.seq.to_string());
    Page { rows, next }
}

/// The facts among lines of the log, newest first, as a page.
pub(crate) fn facts_of(looked_at: Vec<EventRecord>, limit: usize) -> Page<EventRecord> {
    let mut page = newest_first(looked_at, limit);
    page.rows.retain(|record| matches!(record.event, Event::Fact { .. }));
    page
}

/// When definitions came into force: the moments of the turn that brought them.
pub(crate) struct DefinedAt<'a> {
    named: BTreeMap<&'a WorkflowId, Timestamp>,
    first: Timestamp,
}

impl<'a> DefinedAt<'a> {
    pub(crate) fn of(events: &'a [EventRecord]) -> DefinedAt<'a> {
        let defined = |record: &'a EventRecord| match &record.event {
            Event::Workflow { workflow, what: WorkflowEvent::Defined { .. } } => Some((workflow, record.at)),
            _ => None,
        };
        // Of several the first counts.
        let named = events.iter().rev().filter_map(defined).collect();
        DefinedAt { named, first: events.first().map_or(Timestamp::UNIX_EPOCH, |record| record.at) }
    }

    pub(crate) fn at(&self, workflow: &WorkflowId) -> Timestamp {
        self.named.get(workflow).copied().unwrap_or(self.first)
    }
}
