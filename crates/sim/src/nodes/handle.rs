//! A node, as its log, its clocks and its process see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_store::log::LogState;
use kelos_store::{MemoryDisk, StoreError};

use super::site::Site;

/// A node, as everything that belongs to it sees it.
pub(super) struct NodeHandle {
    pub(super) place: Arc<Site>,
    pub(super) index: usize,
    pub(super) body: Mutex<Body>,
}

/// The part of a node that changes.
pub(super) struct Body {
    pub(super) dies_at: Timestamp,
    pub(super) is_dead: bool,
    /// The newest form of entries that its program knows.
    pub(super) form: u32,
    /// Whether an append is under way.
    pub(super) appends: bool,
    pub(super) shown: Option<LogState>,
    pub(super) followed: u64,
    /// The last entry that it has read, which it may not have followed yet.
    pub(super) read: u64,
    /// Its last entry, if the log has lost that.
    pub(super) ahead: Option<u64>,
    /// Whether it had read entries, when the log lost them, that it had not followed: it will have them, unless it ends before.
    pub(super) may_be_ahead: bool,
    /// Whether it has said so.
    pub(super) said_ahead: bool,
    /// Whether it loses its disk at its end.
    pub(super) is_to_be_wiped: bool,
    /// The time of its monotonic clock at the start.
    pub(super) offset: Duration,
    /// How fast its monotonic clock runs, in thousandths.
    pub(super) rate: u64,
    /// How long the clock stood still.
    pub(super) stood: Duration,
    /// The error of its wall clock.
    pub(super) skew: SignedDuration,
    pub(super) disk: MemoryDisk,
}

fn millis(of: SignedDuration) -> u64 {
    u64::try_from(of.as_millis()).unwrap_or(0)
}

impl NodeHandle {
    pub(super) fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.place.relay.now()
    }

    /// The time of its wall clock.
    pub(super) fn clock(&self) -> Timestamp {
        kelos_engine::clock::whole_millis(self.now() + self.skew())
    }

    pub(super) fn skew(&self) -> SignedDuration {
        self.body().skew
    }

    pub(super) fn set_skew(&self, skew: SignedDuration) {
        self.body().skew = skew;
    }

    pub(super) fn monotonic(&self) -> Duration {
        let passed = millis(self.now().duration_since(self.place.workload.start));
        let body = self.body();
        body.offset + Duration::from_millis(passed * body.rate / 1000) - body.stood
    }

    /// Has the monotonic clock not count the time since a moment.
    pub(super) fn stand_still_since(&self, moment: Timestamp) {
        let passed = millis(self.now().duration_since(moment));
        let mut body = self.body();
        let rate = body.rate;
        body.stood += Duration::from_millis(passed * rate / 1000);
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.body().is_dead && !self.place.relay.is_over()
    }

    pub(super) fn appends(&self, does: bool) {
        self.body().appends = does;
    }

    /// Whether an append is under way.
    pub(super) fn is_appending(&self) -> bool {
        self.body().appends
    }

    /// Whether it leads, as far as it knows.
    pub(super) fn leads(&self) -> bool {
        let shown = self.body().shown.clone();
        shown.is_some_and(|shown| shown.status().leads)
    }

    /// Has it take the lease from a leader, which it does not reach.
    pub(super) fn depose_the_leader(&self) {
        if let Some(shown) = &self.body().shown {
            shown.depose(&shown.status().lease, format!("node {} does not reach the leader", self.index));
        }
    }

    /// Whether something keeps it from leading, as far as it knows.
    pub(super) fn is_troubled(&self) -> bool {
        self.body().shown.as_ref().is_some_and(|shown| shown.status().trouble.is_some())
    }

    /// Its state in words, for a finding.
    pub(super) fn told(&self) -> String {
        let shown = self.body().shown.clone();
        let index = self.index;
        match shown.map(|shown| shown.status()) {
            None => format!("node {index} is down"),
            Some(status) => {
                let does = if status.leads { "leads" } else { "stands by" };
                let trouble = status.trouble.map(|trouble| format!(", failed to {trouble}")).unwrap_or_default();
                format!(
                    "node {index} {does} at entry {} and sees epoch {}{trouble}",
                    status.followed, status.lease.epoch
                )
            }
        }
    }

    /// Has it raise the form of entries, if it leads.
    pub(super) fn raise(&self, form: u32) -> bool {
        let shown = self.body().shown.clone();
        shown.is_some_and(|shown| shown.ask_to_raise(form).is_ok())
    }

    /// Whether it would read entries of a form, or no process of it runs that could be asked.
    pub(super) fn reads(&self, form: u32) -> bool {
        let body = self.body();
        body.shown.is_none() || body.form >= form
    }

    /// The last entry that it has followed.
    pub(super) fn followed(&self) -> u64 {
        let body = self.body();
        body.shown.as_ref().map_or(body.followed, |shown| shown.status().followed)
    }

    /// Notes that the log has lost what comes after a position.
    pub(super) fn loses_after(&self, kept: u64) {
        let followed = self.followed();
        let mut body = self.body();
        body.ahead = (followed > kept).then_some(followed);
        body.may_be_ahead = body.read > kept;
    }

    /// Notes that the log has lost entries that were on their way to it.
    pub(super) fn may_be_ahead(&self) {
        self.body().may_be_ahead = true;
    }

    /// Whether it has entries that the log has lost.
    pub(super) fn is_ahead(&self) -> bool {
        self.body().ahead.is_some()
    }

    /// The same, or it has read some that it was about to follow.
    pub(super) fn is_or_gets_ahead(&self) -> bool {
        let body = self.body();
        body.ahead.is_some() || body.may_be_ahead
    }

    /// Whether it has such entries, and has followed others since without a word.
    pub(super) fn is_silently_ahead(&self) -> bool {
        let followed = self.followed();
        let body = self.body();
        !body.said_ahead && body.ahead.is_some_and(|last| followed > last)
    }

    /// Notes that entries up to a position have come.
    pub(super) fn has_read(&self, position: u64) {
        let mut body = self.body();
        body.read = body.read.max(position);
    }

    /// Has the node end at its next rest, and begin again with an empty disk.
    pub(super) fn wipe(&self) {
        let mut body = self.body();
        (body.dies_at, body.is_to_be_wiped) = (Timestamp::MIN, true);
    }

    /// Stands still, for so long as it lives.
    pub(super) fn pause(&self, length: SignedDuration) {
        if !length.is_zero() {
            self.rest(self.now() + length);
        }
    }

    /// Has others go on until a moment, or until the node dies.
    pub(super) fn rest(&self, until: Timestamp) {
        let (dies_at, is_dead) = {
            let body = self.body();
            (body.dies_at, body.is_dead)
        };
        if is_dead {
            return;
        }
        self.place.relay.sleep(self.index, until.min(dies_at));
        // Somebody else may have killed it meanwhile.
        let mut body = self.body();
        body.is_dead = body.dies_at <= until;
    }

    /// Whether an error of its journal is one that may come up. Others end the simulation.
    pub(super) fn bears(&self, error: &StoreError) {
        let is_expected = match error {
            StoreError::Medium { .. } | StoreError::Deposed { .. } | StoreError::LeaseLost { .. } => true,
            StoreError::Ahead { .. } | StoreError::Corrupt { .. } if self.is_or_gets_ahead() => {
                self.body().said_ahead = true;
                true
            }
            StoreError::NewerForm { form, reads, .. } => *reads == self.body().form && form > reads,
            _ => false,
        };
        if !is_expected {
            self.place.fail(format!("node {} failed to {error}", self.index));
        }
    }
}
