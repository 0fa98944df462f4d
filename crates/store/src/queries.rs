//! The queries that a store answers: few, each with a filter, and lists by pages in either order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::backfill::Backfill;
use kelos_model::history::RemovedHistory;
use kelos_model::ranges::Range;
use kelos_model::workflow::{DefinedVersion, DefinitionVersion, Workflow, WorkflowRow};
use kelos_model::{
    BackfillId, Event, EventRecord, Run, RunId, RunState, Slot, SlotEvent, SlotRef, SlotState, WorkflowEvent,
    WorkflowId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{SlotRow, StoreError};
use crate::record::{Digest, DigestBuilder, Recount, TurnColumns, TurnContent, TurnRecord};
use crate::tally::{Columns, Tally};
use crate::unreadable::UnreadableRow;

pub use crate::paging::{Cursor, Order, Page, PageRequest};

/// The pending states: the slot neither runs nor has ended.
pub const PENDING: [SlotState; 4] = [SlotState::Waiting, SlotState::Held, SlotState::Queued, SlotState::Backoff];

/// A choice of slots.
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
    /// Only those that have begun to collect facts, and have not ended.
    pub collecting: bool,
    /// Only those with rows of their own: without the times of backlogs.
    pub without_backlogs: bool,
}

/// A choice of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only of this workflow.
    pub workflow: Option<WorkflowId>,
    /// Only of this slot. Costs as much as the rows it returns.
    pub slot: Option<SlotRef>,
    /// Only in one of these states; empty means any.
    pub states: Vec<RunState>,
    /// Only those that were live within this range of wall-clock time: dispatched before its end, and ended
    /// after its start. Runs that have ended are found if they were dispatched within [`RUN_LOOK_BACK_MILLIS`] before its
    /// start; live runs are found however long ago they began.
    pub range: Option<Range>,
    /// Also those of steps of flows, which are far more than all others where there are flows. Otherwise they are found by their slot
    /// alone.
    pub with_steps: bool,
}

/// How long before a range a run that has ended may have been dispatched to be found in the range.
pub const RUN_LOOK_BACK_MILLIS: i64 = 48 * 3_600_000;

/// The time by which the clock may have been set back without a store missing runs of a range. Runs are stored in the order
/// of their dispatch, which is the order of their moments unless the clock jumped.
pub const CLOCK_SLACK_MILLIS: i64 = 3_600_000;

impl RunFilter {
    /// Whether the filter selects a run.
    pub fn passes(&self, run: &Run) -> bool {
        let millis = Timestamp::as_millisecond;
        (self.states.is_empty() || self.states.contains(&run.state))
            && self.workflow.as_ref().is_none_or(|workflow| run.id.slot.workflow == *workflow)
            && self.slot.as_ref().is_none_or(|slot| run.id.slot == *slot)
            && (self.with_steps || self.slot.is_some() || run.id.slot.key.step().is_none())
            && self.has_time(run.state, millis(run.dispatched_at), run.ended_at.map(millis))
    }

    /// Whether a run with these moments is in the range.
    pub fn has_time(&self, state: RunState, dispatched_at: i64, ended_at: Option<i64>) -> bool {
        let Some(range) = &self.range else { return true };
        let (start, end) = (range.start.as_millisecond(), range.end.as_millisecond());
        // If the clock was set back, a run may end before it was dispatched.
        let over_at = ended_at.unwrap_or(dispatched_at).max(dispatched_at);
        let reaches_it = over_at >= start && dispatched_at >= start.saturating_sub(RUN_LOOK_BACK_MILLIS);
        start < end && dispatched_at < end && (reaches_it || !state.is_final())
    }
}

/// Events of a workflow that are read at a time to find its definitions.
const DEFINED_AT_ONCE: usize = 100;

/// Runs of a slot that are read at a time to find one of them.
const RUNS_AT_ONCE: usize = 10;

/// The subject of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum About {
    /// Any subject.
    #[default]
    Anything,
    /// A workflow or its slots. Costs a read of each event in between.
    Workflow(WorkflowId),
    /// A workflow itself, without its slots. Costs as much as the events it returns.
    WorkflowItself(WorkflowId),
    /// A slot. Costs as much as the events it returns, or all of the slot's events if the oldest come first.
    Slot(SlotRef),
    /// Published facts. Costs a read of the events that are about neither a slot nor a workflow.
    Facts,
    /// Access: people who came in, actors who were refused, and changes of users and tokens. Costs the same.
    Access,
}

/// A choice of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Only about this subject.
    pub about: About,
    /// Only those after this position of the log.
    pub after: u64,
    /// Only those up to and including this position of the log.
    pub until: u64,
}

impl Default for EventFilter {
    fn default() -> Self {
        Self { about: About::Anything, after: 0, until: u64::MAX }
    }
}

impl EventFilter {
    /// Events after a position of the log.
    #[must_use]
    pub fn after(after: u64) -> Self {
        Self { after, ..Self::default() }
    }

    /// Events about something.
    #[must_use]
    pub fn about(about: About) -> Self {
        Self { about, ..Self::default() }
    }
}

/// A choice of backfills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackfillFilter {
    /// Only the one with this id.
    pub id: Option<BackfillId>,
    /// Only of this workflow.
    pub workflow: Option<WorkflowId>,
}

/// A choice of a bucket's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterKeys<'a> {
    /// The one with this key.
    One(&'a str),
    /// Those whose key starts with this text.
    Prefix(&'a str),
}

/// A register.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    /// Its bucket.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// A definition of the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastDefinition {
    /// The number of the definition, counted from 1 for each workflow.
    pub version: u32,
    /// When it came into force.
    pub at: Timestamp,
    /// The definition.
    pub definition: Workflow,
    /// The text of its file, if known.
    pub source: Option<String>,
}

impl PastDefinition {
    /// Its version.
    #[must_use]
    pub fn named(&self) -> DefinitionVersion {
        DefinitionVersion { number: self.version, project: self.definition.version.clone() }
    }
}

/// The space that data takes on its medium, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// The file, with what is free in it.
    pub file: u64,
    /// The part of the file that is free for new data.
    pub free: u64,
    /// Its write-ahead log.
    pub log: u64,
}

/// The reader's side: it never waits for the writer, and may lag behind by the turn that is being written.
///
/// Lists that grow with time are read by pages. A page is found by key, so that a deep one costs as much as the first one, and rows
/// that are added while a client pages neither shift nor repeat the others. A [`Cursor`] is made of names, times and
/// positions of the log, never of anything that only one store knows.
pub trait Queries: Send + Sync {
    /// Every workflow that was ever defined, or the one with this id, ascending by id.
    ///
    /// # Errors
    /// When the medium fails.
    fn workflows(&self, only: Option<&WorkflowId>) -> Result<Vec<WorkflowRow>, StoreError>;

    /// The definitions of a workflow, or the one of this version, newest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn definitions(&self, id: &WorkflowId, version: Option<u32>) -> Result<Vec<PastDefinition>, StoreError>;

    /// One slot, which may be a step of a flow.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError>;

    /// Slots by time, including those of backlogs. If the newest come first, slots of one time ascend by the name of their workflow
    /// and then by key.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn slots(&self, filter: &SlotFilter, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError>;

    /// The states of slots and nothing else, in the order of [`Queries::slots`], for overviews. Costs a third of it.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn slot_states(
        &self,
        filter: &SlotFilter,
        paging: PageRequest<'_>,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        let Page { rows, next } = self.slots(filter, paging)?;
        Ok(Page { rows: rows.into_iter().map(|row| (row.id, row.slot.state)).collect(), next })
    }

    /// How many slots that a filter selects are in each state.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError>;

    /// How many slots of each workflow, or of one, are in each state in each column of time, ascending by column
    /// and state. Workflows without any are left out. Costs as much as the slots between the first column and the
    /// last, however many others there are.
    ///
    /// # Errors
    /// When the medium fails.
    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError>;

    /// The live slots ([`Slot::is_live`]) with steps of flows among them and without the times of backlogs, in no particular order. Costs as
    /// much as the rows it returns.
    ///
    /// # Errors
    /// When the medium fails.
    fn live_slots(&self) -> Result<Vec<SlotRow>, StoreError>;

    /// The space that the data takes on its medium; none where it takes none.
    ///
    /// # Errors
    /// When the medium fails.
    fn space(&self) -> Result<Option<Space>, StoreError>;

    /// The steps of a run of a flow, with the items of its lists, ascending by the text of their keys if the newest come first. Costs as
    /// much as the rows it returns. No other list and no count of slots has steps.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn steps(&self, run: &SlotRef, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError>;

    /// Runs by their dispatch. A cursor is the position of a dispatch in the log.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn runs(&self, filter: &RunFilter, paging: PageRequest<'_>) -> Result<Page<Run>, StoreError>;

    /// Events by their position in the log. A cursor is the position of the last event that was read.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn events(&self, filter: &EventFilter, paging: PageRequest<'_>) -> Result<Page<EventRecord>, StoreError>;

    /// The records of the turns. A cursor is the number of a turn.
    ///
    /// # Errors
    /// When the medium fails or the cursor is not from this list.
    fn turns(&self, paging: PageRequest<'_>) -> Result<Page<TurnRecord>, StoreError>;

    /// Reads the body of a turn as it is stored: its columns go to a receiver in the order of its digest. Costs a read of each of the
    /// events.
    ///
    /// # Errors
    /// When the medium fails.
    fn turn_body(&self, turn: &TurnRecord, columns: &mut dyn TurnColumns) -> Result<TurnContent, StoreError>;

    /// The digest of a turn, recomputed from its header, its stored body and the digest of the turn before.
    ///
    /// # Errors
    /// When the medium fails.
    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError> {
        let mut digesting = DigestBuilder::begin(before, *turn);
        let TurnContent { missing, deletions } = self.turn_body(turn, &mut digesting)?;
        Ok(Recount { digest: digesting.end().digest, missing, deletions })
    }

    /// The part of the history that was removed.
    ///
    /// # Errors
    /// When the medium fails.
    fn removed_history(&self) -> Result<RemovedHistory, StoreError>;

    /// A reader of a snapshot of the data, unaffected by later writes. While it exists a store can't reclaim space, so it should not be
    /// kept for long.
    ///
    /// # Errors
    /// When the medium fails.
    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError>;

    /// Backfills, newest first.
    ///
    /// # Errors
    /// When the medium fails.
    fn backfills(&self, filter: &BackfillFilter) -> Result<Vec<Backfill>, StoreError>;

    /// Registers of a bucket, or of all, ascending by bucket and key.
    ///
    /// # Errors
    /// When the medium fails.
    fn registers(&self, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, StoreError>;

    /// The rows that can't be read although they are as they were written, at most so many. Costs a read of all data.
    ///
    /// # Errors
    /// When the medium fails.
    fn unreadable(&self, _limit: usize) -> Result<Vec<UnreadableRow>, StoreError> {
        Ok(Vec::new())
    }

    /// Descriptions of damaged data, at most so many: everything is read and compared with its checksums, and redundant data is
    /// compared. Costs a read of all data.
    ///
    /// # Errors
    /// When the medium fails.
    fn damage(&self, limit: usize) -> Result<Vec<String>, StoreError>;
}

/// Frequent queries, in terms of the contract.
impl dyn Queries + '_ {
    /// One workflow.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn workflow(&self, id: &WorkflowId) -> Result<Option<WorkflowRow>, StoreError> {
        Ok(self.workflows(Some(id))?.pop())
    }

    /// One backfill.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn backfill(&self, id: &BackfillId) -> Result<Option<Backfill>, StoreError> {
        Ok(self.backfills(&BackfillFilter { id: Some(id.clone()), workflow: None })?.pop())
    }

    /// A register's value.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn register(&self, bucket: &str, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.registers(Some(bucket), RegisterKeys::One(key))?.pop().map(|register| register.value))
    }

    /// All events of a slot, oldest first.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn history(&self, id: &SlotRef) -> Result<Vec<EventRecord>, StoreError> {
        Ok(self.events(&EventFilter::about(About::Slot(id.clone())), PageRequest::oldest(usize::MAX))?.rows)
    }

    /// Whether events of a slot were removed, so that its history, which is given, lacks its beginning or is empty.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn lacks_history(&self, id: &SlotRef, history: &[EventRecord]) -> Result<bool, StoreError> {
        match history.first() {
            Some(first) => Ok(first.previous > 0),
            None => Ok(self.slot(id)?.is_some_and(|slot| slot.last_event > 0)),
        }
    }

    /// All runs of a slot, oldest first.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn slot_runs(&self, id: &SlotRef) -> Result<Vec<Run>, StoreError> {
        let filter = RunFilter { slot: Some(id.clone()), ..RunFilter::default() };
        Ok(self.runs(&filter, PageRequest::oldest(usize::MAX))?.rows)
    }

    /// The worker that a run was dispatched to; none if it was for no worker, or there is no such run.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn worker_of(&self, run: &RunId) -> Result<Option<Arc<str>>, StoreError> {
        let filter = RunFilter { slot: Some(run.slot.clone()), ..RunFilter::default() };
        let mut from = None;
        let found = loop {
            // It is nearly always the last one.
            let page = self.runs(&filter, PageRequest::newest(RUNS_AT_ONCE).after(from.as_deref()))?;
            let found = page.rows.into_iter().find(|row| row.id.number == run.number);
            from = page.next;
            if found.is_some() || from.is_none() {
                break found;
            }
        };
        let Some(Run { seq, .. }) = found else { return Ok(None) };
        let about = About::Slot(run.slot.clone());
        let filter = EventFilter { after: seq.saturating_sub(1), until: seq, ..EventFilter::about(about) };
        let event = self.events(&filter, PageRequest::oldest(1))?.rows.pop().map(|record| record.event);
        match event {
            Some(Event::Slot { what: SlotEvent::Dispatched { worker, .. }, .. }) => Ok(worker.map(Arc::from)),
            _ => Ok(None),
        }
    }

    /// The versions of the definition with which runs of one workflow began, in the order of the runs: for each the last one that was
    /// defined before its dispatch; none if the log doesn't contain it.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn run_versions(&self, runs: &[Run]) -> Result<Vec<Option<DefinitionVersion>>, StoreError> {
        let began: Vec<u64> = runs.iter().map(|run| run.seq).collect();
        runs.first().map_or(Ok(Vec::new()), |run| self.versions_at(&run.id.slot.workflow, &began))
    }

    /// The versions of the definition of a workflow at these positions of the log: for each the last one that was defined before it;
    /// none if the log doesn't contain it.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn versions_at(
        &self,
        id: &WorkflowId,
        positions: &[u64],
    ) -> Result<Vec<Option<DefinitionVersion>>, StoreError> {
        let numbers = self.definition_numbers(id, positions)?;
        let mut named = BTreeMap::new();
        for number in numbers.iter().flatten().collect::<BTreeSet<_>>() {
            let past = self.definitions(id, Some(*number))?.pop();
            let unnamed = DefinitionVersion { number: *number, project: None };
            named.insert(*number, past.map_or(unnamed, |past| past.named()));
        }
        Ok(numbers.iter().map(|number| named.get(number.as_ref()?).cloned()).collect())
    }

    /// The numbers of the definitions of a workflow at these positions of the log.
    fn definition_numbers(&self, id: &WorkflowId, positions: &[u64]) -> Result<Vec<Option<u32>>, StoreError> {
        let mut versions = vec![None; positions.len()];
        let Some(last) = positions.iter().max() else { return Ok(versions) };
        let filter = EventFilter { until: *last, ..EventFilter::about(About::WorkflowItself(id.clone())) };
        let mut from = None;
        while versions.contains(&None) {
            let page = self.events(&filter, PageRequest::newest(DEFINED_AT_ONCE).after(from.as_deref()))?;
            for record in page.rows {
                let Event::Workflow { what: WorkflowEvent::Defined { version, .. }, .. } = record.event else {
                    continue;
                };
                let after = positions.iter().zip(&mut versions).filter(|(position, _)| **position > record.seq);
                after.for_each(|(_, known)| *known = known.or(Some(version)));
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        Ok(versions)
    }

    /// The definitions of a workflow as they came into force, ascending. Costs a read of all of them.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn defined_versions(&self, id: &WorkflowId) -> Result<Vec<DefinedVersion>, StoreError> {
        let all = self.definitions(id, None)?.into_iter();
        let mut named: BTreeMap<u32, DefinitionVersion> = all.map(|past| (past.version, past.named())).collect();
        let filter = EventFilter::about(About::WorkflowItself(id.clone()));
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let page = self.events(&filter, PageRequest::oldest(DEFINED_AT_ONCE).after(from.as_deref()))?;
            for EventRecord { seq, event, .. } in page.rows {
                let Event::Workflow { what: WorkflowEvent::Defined { version: number, .. }, .. } = event else {
                    continue;
                };
                // A workflow that was removed is defined again under the number that it had.
                found.extend(named.remove(&number).map(|version| DefinedVersion { seq, version }));
            }
            from = page.next;
            if from.is_none() {
                return Ok(found);
            }
        }
    }

    /// The position of the last event; 0 if there is none.
    ///
    /// # Errors
    /// When the medium fails.
    pub fn last_seq(&self) -> Result<u64, StoreError> {
        let last = self.events(&EventFilter::default(), PageRequest::newest(1))?;
        Ok(last.rows.first().map_or(0, |record| record.seq))
    }
}
