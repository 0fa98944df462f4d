//! The log as a node sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::entry::Reign;
use super::keeper::{LeaseView, Monotonic, twin_words};
use super::{LeaseRecord, Log, LogStore};
use crate::contract::StoreError;
use crate::durations::{CountedDurations, Durations};

/// The log as a node sees it. Cheap to clone; it stays up to date.
#[derive(Clone)]
pub struct LogState {
    pub(super) store: Arc<dyn LogStore>,
    pub(super) name: Arc<str>,
    pub(super) node: Arc<str>,
    /// The address at which this node answers.
    pub(super) address: Option<Arc<str>>,
    /// The newest form of entries that this node reads and writes.
    pub(super) form: u32,
    pub(super) view: Arc<LeaseView>,
    pub(super) followed: Arc<AtomicU64>,
    pub(super) trouble: Arc<Mutex<Option<String>>>,
    pub(super) monotonic: Monotonic,
    /// The latest moment of the monotonic clock at which this node had all that the log had; none before the first.
    pub(super) abreast: Arc<Mutex<Option<Duration>>>,
    /// The durations of applying an entry that was read from the log.
    pub(super) applying: Arc<Durations>,
    pub(super) replica: Weak<dyn Copies>,
}

/// The longest time that the leader has for taking over from itself.
const RAISED_WITHIN: Duration = Duration::from_secs(5);

/// The reason for which the form of entries was not raised. Messages complete "failed to …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RaiseError {
    /// Another node leads.
    #[error("raise the form of entries: this node does not lead")]
    Standby,
    /// The form is not newer, or this program does not know it.
    #[error(
        "raise the form of entries to {to}: it is written in form {writes}, and this program writes up to form {newest}"
    )]
    OutOfReach {
        /// The form that was asked for.
        to: u32,
        /// The form in which entries are written.
        writes: u32,
        /// The newest form that this program writes.
        newest: u32,
    },
    /// The store did not answer in time: it may have been raised.
    #[error("hear from the store whether the form of entries was raised; look at it again before you go on")]
    Unknown,
}

/// The status of a node at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// The lease, as this node read it last.
    pub lease: LeaseRecord,
    /// Whether this node leads.
    pub leads: bool,
    /// The last entry that it has followed.
    pub followed: u64,
    /// The reason for which it does not follow or the lease can't be kept, completing "failed to …".
    pub trouble: Option<String>,
    /// The reason for which the leader can't be reached, if it can't, completing "failed to …".
    pub unreached: Option<String>,
}

impl LogState {
    /// The store of the log.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn LogStore> {
        &self.store
    }

    /// The address of the log, without passwords.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of this node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The address at which this node answers; none if it answers none.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// The time since this node saw the lease of another leader change, as it is renewed.
    #[must_use]
    pub fn leader_silence(&self) -> Duration {
        (self.monotonic)().saturating_sub(self.view.state().changed_at)
    }

    /// The newest form of entries that this node reads and writes.
    #[must_use]
    pub fn form(&self) -> u32 {
        self.form
    }

    /// Has the leader write a newer form: it takes over from itself. From then on no program leads that does not read it.
    ///
    /// # Errors
    /// When this node does not lead, the form is not newer, or this program does not write it.
    pub fn raise(&self, form: u32) -> Result<(), RaiseError> {
        self.ask_to_raise(form)?;
        self.view
            .wait_for(RAISED_WITHIN, |state| state.ends || state.raise_to.is_none() && state.seen.writes() >= form);
        if self.status().lease.writes() >= form { Ok(()) } else { Err(RaiseError::Unknown) }
    }

    /// Asks for the same, and does not wait for it.
    ///
    /// # Errors
    /// Like those of [`LogState::raise`].
    pub fn ask_to_raise(&self, form: u32) -> Result<(), RaiseError> {
        let mut state = self.view.state();
        if state.held.as_ref().is_none_or(|held| held.is_fresh) {
            return Err(RaiseError::Standby);
        }
        let writes = state.seen.writes();
        if form <= writes || form > self.form {
            return Err(RaiseError::OutOfReach { to: form, writes, newest: self.form });
        }
        state.raise_to = Some(form);
        drop(state);
        self.view.look();
        Ok(())
    }

    /// The last times of leading, the newest first; none once the node has ended.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn reigns(&self, limit: usize) -> Result<Vec<Reign>, StoreError> {
        self.replica.upgrade().map_or(Ok(Vec::new()), |replica| replica.reigns(limit))
    }

    pub(super) fn note(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Notes that this node had all entries of the log at a moment of the monotonic clock.
    pub(super) fn was_abreast(&self, at: Duration) {
        *self.abreast.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// The time since this node last had all that the log has: zero while it leads; none if it never had since it started.
    #[must_use]
    pub fn lag(&self) -> Option<Duration> {
        if self.status().leads {
            return Some(Duration::ZERO);
        }
        let abreast = (*self.abreast.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some((self.monotonic)().saturating_sub(abreast))
    }

    /// The durations of applying entries that were read from the log, which are those of other leaders, since this node started.
    #[must_use]
    pub fn applied(&self) -> CountedDurations {
        self.applying.now()
    }

    /// The time for which this node may still trust its lease if that is not renewed; none while it does not lead.
    #[must_use]
    pub fn lease_remaining(&self) -> Option<Duration> {
        let state = self.view.state();
        let held = state.held.as_ref().filter(|held| !held.is_fresh)?;
        Some(held.trusted_until.saturating_sub((self.monotonic)()))
    }

    /// Notes that an entry is followed.
    pub(super) fn follow(&self, position: u64) {
        self.followed.store(position, Ordering::Release);
        // Whoever is about to wait has not checked yet, or hears of it.
        drop(self.view.state());
        self.view.wake();
    }

    /// Waits until the entry at a position is followed, at most for a time; false if it is not by then.
    #[must_use]
    pub fn wait_for(&self, position: u64, patience: Duration) -> bool {
        let is_there = || self.followed.load(Ordering::Acquire) >= position;
        if !is_there() {
            self.view.wait_for(patience, |_| is_there());
        }
        is_there()
    }

    /// The status now.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        let state = self.view.state();
        let own = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        NodeStatus {
            lease: state.seen.clone(),
            leads: state.held.as_ref().is_some_and(|held| !held.is_fresh),
            followed: self.followed.load(Ordering::Acquire),
            trouble: state
                .candidate
                .obstacle()
                .cloned()
                .or(own)
                .or_else(|| state.trouble.as_ref().map(ToString::to_string)),
            unreached: state.candidate.unreached.clone(),
        }
    }

    /// Notes what the other nodes say of this one's clock; nothing if it agrees with theirs. It decides where the store tells no time.
    pub fn note_clock(&self, error: Option<String>) {
        self.view.state().candidate.clock_of_nodes = error;
    }

    /// Notes that another process, at an address, has the name of this node, or that none has.
    pub fn note_twin(&self, found: Option<Option<&str>>) {
        self.view.state().candidate.reported_twin = found.map(|address| twin_words(&self.node, address));
    }

    /// Notes why the leader can't be reached; nothing if it can. Either way the lease is not taken from it before that is asked for again.
    pub fn note_unreached(&self, why: Option<String>) {
        let mut state = self.view.state();
        state.candidate.deposes = None;
        state.candidate.unreached = why;
    }

    /// Notes whether other nodes reach this one, which leads.
    pub fn note_reached(&self, is_reached: bool) {
        self.view.state().candidate.is_reached = is_reached;
    }

    /// Takes the lease from a leader that renews it, for a reason, unless it has changed since it was seen. Safe at any time: the log refuses
    /// the epoch of before. A node from which the lease was taken so itself waits for longer.
    pub fn depose(&self, seen: &LeaseRecord, reason: String) {
        self.view.state().candidate.deposes = Some(((seen.epoch, seen.nonce), reason));
        self.view.look();
    }
}

/// The local state of a node, whatever keeps it.
pub(super) trait Copies: Send + Sync {
    fn reigns(&self, limit: usize) -> Result<Vec<Reign>, StoreError>;

    fn snapshot(&self, log: &mut dyn Log, keep: u64) -> Result<u64, StoreError>;

    /// Fails if the local state has what the log has not: a store that lost its end, or was put back.
    fn is_true_to(&self, log: &mut dyn Log) -> Result<(), StoreError>;
}
