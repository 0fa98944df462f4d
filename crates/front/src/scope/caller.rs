//! A reader that answers a caller by the rights that they have at that moment, so that streams lose what was taken away.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::backfill::Backfill;
use kelos_model::history::RemovedHistory;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{EventRecord, Run, Slot, SlotRef, SlotState, WorkflowId};
use kelos_store::{
    BackfillFilter, Columns, Digest, EventFilter, Page, PageRequest, PastDefinition, Queries, Recount, Register,
    RegisterKeys, RunFilter, SlotFilter, SlotRow, Space, StoreError, Tally, TurnColumns, TurnContent, TurnRecord,
};

use super::{ScopedQueries, View};

/// The part of the server that a caller may see at this moment; none if they see everything.
pub(crate) type ViewNow = Box<dyn Fn() -> Result<Option<Arc<View>>, StoreError> + Send + Sync>;

/// A reader for the caller of a request.
pub(crate) struct CallerQueries {
    all: Arc<dyn Queries>,
    view: ViewNow,
}

impl CallerQueries {
    /// A reader by another one that sees everything.
    pub(crate) fn new(all: Arc<dyn Queries>, view: ViewNow) -> CallerQueries {
        CallerQueries { all, view }
    }

    fn now<T>(&self, read: impl FnOnce(&dyn Queries) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match (self.view)()? {
            None => read(&*self.all),
            Some(view) => read(&ScopedQueries::new(self.all.clone(), view)),
        }
    }
}

impl Queries for CallerQueries {
    fn workflows(&self, only: Option<&WorkflowId>) -> Result<Vec<WorkflowRow>, StoreError> {
        self.now(|reader| reader.workflows(only))
    }

    fn definitions(&self, id: &WorkflowId, version: Option<u32>) -> Result<Vec<PastDefinition>, StoreError> {
        self.now(|reader| reader.definitions(id, version))
    }

    fn slot(&self, id: &SlotRef) -> Result<Option<Slot>, StoreError> {
        self.now(|reader| reader.slot(id))
    }

    fn slots(&self, filter: &SlotFilter, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        self.now(|reader| reader.slots(filter, paging))
    }

    fn slot_states(
        &self,
        filter: &SlotFilter,
        paging: PageRequest<'_>,
    ) -> Result<Page<(SlotRef, SlotState)>, StoreError> {
        self.now(|reader| reader.slot_states(filter, paging))
    }

    fn slot_counts(&self, filter: &SlotFilter) -> Result<BTreeMap<SlotState, u64>, StoreError> {
        self.now(|reader| reader.slot_counts(filter))
    }

    fn live_slots(&self) -> Result<Vec<SlotRow>, StoreError> {
        self.now(|reader| reader.live_slots())
    }

    fn space(&self) -> Result<Option<Space>, StoreError> {
        self.now(|reader| reader.space())
    }

    fn slot_tallies(
        &self,
        columns: &Columns,
        workflow: Option<&WorkflowId>,
    ) -> Result<BTreeMap<WorkflowId, Vec<Tally>>, StoreError> {
        self.now(|reader| reader.slot_tallies(columns, workflow))
    }

    fn steps(&self, run: &SlotRef, paging: PageRequest<'_>) -> Result<Page<SlotRow>, StoreError> {
        self.now(|reader| reader.steps(run, paging))
    }

    fn runs(&self, filter: &RunFilter, paging: PageRequest<'_>) -> Result<Page<Run>, StoreError> {
        self.now(|reader| reader.runs(filter, paging))
    }

    fn events(&self, filter: &EventFilter, paging: PageRequest<'_>) -> Result<Page<EventRecord>, StoreError> {
        self.now(|reader| reader.events(filter, paging))
    }

    fn turns(&self, paging: PageRequest<'_>) -> Result<Page<TurnRecord>, StoreError> {
        self.now(|reader| reader.turns(paging))
    }

    fn turn_body(&self, turn: &TurnRecord, columns: &mut dyn TurnColumns) -> Result<TurnContent, StoreError> {
        self.now(|reader| reader.turn_body(turn, columns))
    }

    fn recount(&self, turn: &TurnRecord, before: &Digest) -> Result<Recount, StoreError> {
        self.now(|reader| reader.recount(turn, before))
    }

    fn removed_history(&self) -> Result<RemovedHistory, StoreError> {
        self.now(|reader| reader.removed_history())
    }

    fn frozen(&self) -> Result<Arc<dyn Queries>, StoreError> {
        self.now(|reader| reader.frozen())
    }

    fn backfills(&self, filter: &BackfillFilter) -> Result<Vec<Backfill>, StoreError> {
        self.now(|reader| reader.backfills(filter))
    }

    fn registers(&self, bucket: Option<&str>, keys: RegisterKeys<'_>) -> Result<Vec<Register>, StoreError> {
        self.now(|reader| reader.registers(bucket, keys))
    }

    fn damage(&self, limit: usize) -> Result<Vec<String>, StoreError> {
        self.now(|reader| reader.damage(limit))
    }
}
