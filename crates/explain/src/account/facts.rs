//! What a trigger may know of a store, at present. What it asks of the outside is unknown.

use std::cell::RefCell;

use jiff::Timestamp;
use kelos_model::facts::Tally;
use kelos_model::ranges::Range;
use kelos_model::trigger::{Facts, SlotTimes};
use kelos_model::{Probe, ProbeAnswer, SlotRef, SlotState, Subject, WorkflowId};
use kelos_store::{Queries, StoreError};

use crate::schedule;

/// The slots of a store, and their times.
pub(super) struct StoreFacts<'a> {
    reader: &'a dyn Queries,
    now: Timestamp,
    failed: RefCell<Option<StoreError>>,
}

impl<'a> StoreFacts<'a> {
    pub(super) fn new(reader: &'a dyn Queries, now: Timestamp) -> StoreFacts<'a> {
        StoreFacts { reader, now, failed: RefCell::new(None) }
    }

    /// Checks that all that was asked could be read.
    pub(super) fn check(self) -> Result<(), StoreError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }

    fn read<T>(&self, answer: Result<T, StoreError>) -> Option<T> {
        answer.map_err(|error| self.failed.replace(Some(error))).ok()
    }
}

impl Facts for StoreFacts<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        Some(self.read(self.reader.slot(slot))?.map(|slot| slot.state))
    }

    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        self.read(schedule::times(self.reader, workflow))??.period(time)
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        let times: SlotTimes = self.read(schedule::times(self.reader, workflow))??;
        Some(times.slots_in(interval))
    }

    fn probe(&self, _: &Probe) -> Option<ProbeAnswer> {
        None
    }

    fn collected(&self, _: &Subject) -> Option<&Tally> {
        None
    }
}
