//! The view that functions have of the project that they are a part of: what is stored, and when that changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_model::SlotRef;
use kelos_store::{Queries, StoreError};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The stored state, and the news of its changes.
#[derive(Default)]
pub(super) struct Outlook {
    /// The reader of the store, once there is an engine.
    reader: OnceLock<Arc<dyn Queries>>,
    /// Counts what may have changed.
    changes: watch::Sender<u64>,
    /// The clock of a rehearsal; none where time passes by itself.
    clock: Option<VirtualClock>,
}

/// The clock of a rehearsal, and the moments at which functions want to go on.
struct VirtualClock(Mutex<(Timestamp, BTreeMap<u64, Timestamp>)>);

impl VirtualClock {
    fn lock(&self) -> MutexGuard<'_, (Timestamp, BTreeMap<u64, Timestamp>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlook {
    /// That of the functions of a rehearsal.
    pub(super) fn rehearsed(reader: Arc<dyn Queries>) -> Outlook {
        let clock = VirtualClock(Mutex::new((Timestamp::UNIX_EPOCH, BTreeMap::new())));
        Outlook { reader: OnceLock::from(reader), clock: Some(clock), ..Outlook::default() }
    }

    /// Lets functions read what is stored.
    pub(super) fn connect(&self, reader: Arc<dyn Queries>) {
        let _ = self.reader.set(reader);
    }

    /// Has functions look again after each commit, as long as the engine lives.
    pub(super) fn follow(self: &Arc<Self>, mut commits: watch::Receiver<u64>, runtime: &Handle) {
        let outlook = Arc::downgrade(self);
        runtime.spawn(async move {
            while commits.changed().await.is_ok() {
                let Some(outlook) = outlook.upgrade() else { return };
                outlook.changes.send_modify(|count| *count += 1);
            }
        });
    }

    /// Sets the clock of a rehearsal, and has functions look again.
    pub(super) fn pass(&self, now: Timestamp) {
        if let Some(clock) = &self.clock {
            clock.lock().0 = now;
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Moves the moments at which functions of a rehearsal want to go on with its clock.
    pub(super) fn shift(&self, by: SignedDuration) {
        if let Some(clock) = &self.clock {
            clock.lock().1.values_mut().for_each(|at| *at = at.checked_add(by).unwrap_or(*at));
        }
    }

    /// The first moment at which a function of a rehearsal wants to go on.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.clock.as_ref()?.lock().1.values().min().copied()
    }

    /// The reader of the store; none before there is an engine.
    pub(super) fn reader(&self) -> Option<&Arc<dyn Queries>> {
        self.reader.get()
    }

    /// Reports what may have changed from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.as_ref().map_or_else(Timestamp::now, |clock| clock.lock().0)
    }

    /// The signal of a name that came for a run of a flow.
    pub(super) fn signal(&self, run: &SlotRef, name: &str) -> Result<Option<Value>, StoreError> {
        let Some(reader) = self.reader() else { return Ok(None) };
        let slot = reader.slot(run)?;
        Ok(slot.and_then(|slot| slot.run_of_flow()?.signals.get(name).cloned()))
    }

    /// Waits for a time, which passes by itself; in a rehearsal [`Outlook::now`] and changes tell when it has passed.
    pub(super) async fn sleep(&self, time: Option<Duration>) {
        match time.filter(|_| self.clock.is_none()) {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    }

    /// Has a rehearsal go on at a moment, until the result is dropped.
    pub(super) fn alarm(&self, at: Option<Timestamp>) -> Option<Alarm<'_>> {
        let (clock, at) = self.clock.as_ref().zip(at)?;
        let mut known = clock.lock();
        let number = known.1.last_key_value().map_or(0, |(number, _)| number + 1);
        known.1.insert(number, at);
        drop(known);
        Some(Alarm { clock, number })
    }
}

/// A moment at which a function of a rehearsal wants to go on.
pub(super) struct Alarm<'o> {
    clock: &'o VirtualClock,
    number: u64,
}

impl Alarm<'_> {
    /// Whether the moment has come.
    pub(super) fn is_due(&self) -> bool {
        let known = self.clock.lock();
        known.1.get(&self.number).is_some_and(|at| *at <= known.0)
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.clock.lock().1.remove(&self.number);
    }
}
