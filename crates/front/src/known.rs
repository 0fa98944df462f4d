//! The facts that a trigger is evaluated on outside the engine.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::facts::Tally;
use kelos_model::ranges::Range;
use kelos_model::trigger::{Facts, SlotTimes};
use kelos_model::{Probe, ProbeAnswer, SlotRef, SlotState, Subject, WorkflowId};
use kelos_store::StoreError;

use crate::app::App;

/// Facts of one moment. A trigger evaluates all its leaves, so evaluating one without facts lists all facts that
/// are needed.
pub struct KnownFacts {
    now: Timestamp,
    slots: BTreeMap<SlotRef, Option<SlotState>>,
    probes: BTreeMap<Probe, ProbeAnswer>,
    times: BTreeMap<WorkflowId, SlotTimes>,
}

impl KnownFacts {
    /// No fact but the clock and the times of workflows.
    #[must_use]
    pub fn nothing(now: Timestamp, times: BTreeMap<WorkflowId, SlotTimes>) -> KnownFacts {
        KnownFacts { now, slots: BTreeMap::new(), probes: BTreeMap::new(), times }
    }

    /// The same with the states of slots, read from the store, and with the answers to probes, which are made now.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn with(self, app: &App, slots: Vec<SlotRef>, probes: Vec<Probe>) -> Result<KnownFacts, StoreError> {
        let slots = app.read(move |reader| {
            let state = |slot: SlotRef| Ok((slot.clone(), reader.slot(&slot)?.map(|found| found.state)));
            slots.into_iter().map(state).collect()
        });
        Ok(KnownFacts { slots: slots.await?, probes: app.look(probes).await, ..self })
    }
}

impl Facts for KnownFacts {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        self.slots.get(slot).copied()
    }

    fn period(&self, workflow: &WorkflowId, time: Timestamp) -> Option<Range> {
        self.times.get(workflow)?.period(time)
    }

    fn slots_in(&self, workflow: &WorkflowId, interval: Range) -> Option<Vec<Timestamp>> {
        Some(self.times.get(workflow)?.slots_in(interval))
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.probes.get(probe).cloned()
    }

    fn collected(&self, _: &Subject) -> Option<&Tally> {
        None
    }
}
