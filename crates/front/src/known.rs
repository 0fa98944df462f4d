//! The facts that a trigger is evaluated on outside the engine.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::facts::Tally;
use kelos_model::trigger::Facts;
use kelos_model::{Probe, ProbeAnswer, SlotRef, SlotState, Subject};
use kelos_store::StoreError;

use crate::app::App;

/// Facts of one moment. A trigger evaluates all its leaves, so evaluating one without facts lists all facts that
/// are needed.
pub struct KnownFacts {
    now: Timestamp,
    slots: BTreeMap<SlotRef, Option<SlotState>>,
    probes: BTreeMap<Probe, ProbeAnswer>,
}

impl KnownFacts {
    /// No fact but the time.
    #[must_use]
    pub fn nothing(now: Timestamp) -> KnownFacts {
        KnownFacts { now, slots: BTreeMap::new(), probes: BTreeMap::new() }
    }

    /// Reads the states of slots from the store, and makes the probes now.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find(app: &App, slots: Vec<SlotRef>, probes: Vec<Probe>) -> Result<KnownFacts, StoreError> {
        let slots = app.read(move |reader| {
            let state = |slot: SlotRef| Ok((slot.clone(), reader.slot(&slot)?.map(|found| found.state)));
            slots.into_iter().map(state).collect()
        });
        Ok(KnownFacts { slots: slots.await?, probes: app.look(probes).await, now: app.handle().now() })
    }
}

impl Facts for KnownFacts {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn slot(&self, slot: &SlotRef) -> Option<Option<SlotState>> {
        self.slots.get(slot).copied()
    }

    fn probe(&self, probe: &Probe) -> Option<ProbeAnswer> {
        self.probes.get(probe).cloned()
    }

    fn collected(&self, _: &Subject) -> Option<&Tally> {
        None
    }
}
