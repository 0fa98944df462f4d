//! The keeper of the lease: it renews the lease of this node, and takes that of a leader that is gone.
//!
//! No clock of another machine counts. The holder trusts its lease by its own monotonic clock, counted from *before* the request that
//! renewed it; a challenger takes a lease that it has not seen change for the whole time that a lease lasts, by its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Holder, LeaseRecord, Log, LogError};

/// The times of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTiming {
    /// How long a lease lasts that is not renewed.
    pub lasts: Duration,
    /// The interval at which it is renewed.
    pub renew: Duration,
    /// How much sooner its holder stops to trust it.
    pub margin: Duration,
    /// The interval at which a standby looks at it.
    pub look: Duration,
}

impl LeaseTiming {
    /// Take-over within about 3 seconds after a leader was killed.
    pub const DEFAULT: LeaseTiming = LeaseTiming {
        lasts: Duration::from_millis(2500),
        renew: Duration::from_millis(500),
        margin: Duration::from_millis(500),
        look: Duration::from_millis(200),
    };
}

/// The reason of a change of leader that nobody planned.
pub const NOT_HEARD_OF: &str = "the leader before was not heard of";
/// The reason for which a leader took over from itself.
const ANSWER_LOST: &str = "an answer of the store was lost, so its leader took over from itself";

/// The monotonic clock of a node: the time since some moment.
pub type Monotonic = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The right to append, as its keeper sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldLease {
    pub(super) record: LeaseRecord,
    /// Until when it may be trusted, by the monotonic clock.
    pub(super) trusted_until: Duration,
    /// Whether the log has no plug of it yet.
    pub(super) is_fresh: bool,
    /// The reason for which the leader changed.
    pub(super) reason: String,
}

/// The requests of the journal to the keeper, and what it found.
#[derive(Debug, Default)]
pub(super) struct LeaseView {
    state: Mutex<ViewState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct ViewState {
    pub(super) held: Option<HeldLease>,
    /// The lease as it was last read.
    pub(super) seen: LeaseRecord,
    /// Until when the journal wants to lead; the keeper of a leader that hangs lets the lease go.
    pub(super) wanted_until: Duration,
    /// Whether an answer was lost: the lease must be taken anew before anything else is appended.
    pub(super) is_in_doubt: bool,
    /// The form to which that of entries is to be raised. The leader takes over from itself with it.
    pub(super) raise_to: Option<u32>,
    /// Whether the lease is to be given back.
    pub(super) gives_back: bool,
    /// Whether the keeper has a thread, which has not ended.
    pub(super) is_kept: bool,
    /// Whether the keeper ends.
    pub(super) ends: bool,
    /// The last error of the store.
    pub(super) trouble: Option<LogError>,
}

impl LeaseView {
    pub(super) fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the keeper look at once.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Waits until something holds, at most for a time.
    pub(super) fn wait_for(&self, patience: Duration, holds: impl Fn(&ViewState) -> bool) {
        drop(self.changed.wait_timeout_while(self.state(), patience, |state| !holds(state)));
    }

    /// Waits until the keeper is woken, or for a time.
    fn rest(&self, state: MutexGuard<'_, ViewState>, time: Duration) {
        drop(self.changed.wait_timeout(state, time));
    }
}

/// Keeps the lease of a node, on a connection of its own.
pub struct Keeper {
    log: Box<dyn Log>,
    holder: Holder,
    /// The newest form of entries that this program reads and writes.
    form: u32,
    timing: LeaseTiming,
    monotonic: Monotonic,
    nonce: Box<dyn FnMut() -> u64 + Send>,
    view: Arc<LeaseView>,
    /// The time since which the lease has looked the same.
    same_since: Option<Duration>,
    renewed_at: Duration,
    /// The epochs and random numbers of the last takings of this node: one that was confirmed, and those whose answers were lost.
    own_takings: Vec<(u64, u64)>,
}

impl Keeper {
    pub(super) fn new(
        log: Box<dyn Log>,
        (holder, form): (Holder, u32),
        timing: LeaseTiming,
        monotonic: Monotonic,
        nonce: Box<dyn FnMut() -> u64 + Send>,
        view: Arc<LeaseView>,
    ) -> Self {
        let renewed_at = Duration::ZERO;
        Self {
            log,
            holder,
            form,
            timing,
            monotonic,
            nonce,
            view,
            same_since: None,
            renewed_at,
            own_takings: Vec::new(),
        }
    }

    /// Keeps the lease until the journal is dropped. For a thread of its own.
    pub fn run(mut self) {
        loop {
            let rest = self.tick();
            let mut state = self.view.state();
            if state.ends && state.held.is_none() && !state.gives_back {
                state.is_kept = false;
                drop(state);
                self.view.wake();
                return;
            }
            // What was taken or renewed while the journal was dropped would keep others from leading.
            state.gives_back |= state.ends;
            if !(state.is_in_doubt || state.gives_back || state.raise_to.is_some()) {
                self.view.rest(state, rest);
            }
        }
    }

    /// Does what is due, and returns the time until there may be something to do again.
    pub fn tick(&mut self) -> Duration {
        let outcome = self.keep();
        let mut state = self.view.state();
        match outcome {
            Ok(()) => state.trouble = None,
            Err(error) => state.trouble = Some(error),
        }
        self.view.wake();
        match state.held {
            Some(_) => self.timing.renew.min(self.timing.look),
            None => self.timing.look,
        }
    }

    fn keep(&mut self) -> Result<(), LogError> {
        let now = (self.monotonic)();
        let (held, wanted, in_doubt, gives_back, raise_to) = {
            let mut state = self.view.state();
            let raise_to = state.raise_to.take();
            (state.held.clone(), now < state.wanted_until, state.is_in_doubt, state.gives_back, raise_to)
        };
        match held {
            Some(held) if gives_back || !wanted => self.give_back(&held.record),
            Some(held) if in_doubt => self.take(&held.record, ANSWER_LOST),
            Some(held) if let Some(form) = raise_to => self.raise(&held.record, form),
            Some(held) if now >= self.renewed_at + self.timing.renew => self.renew(&held, now),
            Some(_) => Ok(()),
            None if gives_back => {
                self.view.state().gives_back = false;
                Ok(())
            }
            None => self.challenge(wanted),
        }
    }

    fn give_back(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        // From here on nothing is appended under it, whether the store hears of it or not.
        self.lose();
        self.same_since = None;
        let released = self.log.release(held);
        // Whoever waits for this may end the process.
        self.view.state().gives_back = false;
        released
    }

    fn lose(&self) {
        let mut state = self.view.state();
        state.held = None;
        state.is_in_doubt = false;
    }

    fn renew(&mut self, held: &HeldLease, sent: Duration) -> Result<(), LogError> {
        match self.log.renew(&held.record) {
            Ok(Some(record)) => {
                self.renewed_at = sent;
                let mut state = self.view.state();
                state.seen = record.clone();
                if let Some(held) = &mut state.held {
                    held.record = record;
                    held.trusted_until = sent + self.timing.lasts - self.timing.margin;
                }
                Ok(())
            }
            Ok(None) => {
                self.lose();
                self.same_since = None;
                Ok(())
            }
            Err(error) => {
                // It may still be renewed in time; without that it is not trusted any more.
                if (self.monotonic)() >= held.trusted_until {
                    self.lose();
                    self.same_since = None;
                }
                Err(error)
            }
        }
    }

    /// Looks at the lease of another node, and takes it where that has run out.
    fn challenge(&mut self, wanted: bool) -> Result<(), LogError> {
        let record = self.log.lease()?;
        let now = (self.monotonic)();
        let is_same = {
            let mut state = self.view.state();
            let is_same = state.seen == record && self.same_since.is_some();
            state.seen = record.clone();
            is_same
        };
        if !is_same {
            self.same_since = Some(now);
        }
        let unchanged = self.same_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let reason = if record.epoch == 0 {
            "the first leader"
        } else if record.is_free {
            "the leader before gave the lead back"
        } else if self.own_takings.contains(&(record.epoch, record.nonce)) {
            // No other node holds it.
            ANSWER_LOST
        } else if unchanged >= self.timing.lasts {
            NOT_HEARD_OF
        } else {
            return Ok(());
        };
        if wanted && record.least() <= self.form { self.take(&record, reason) } else { Ok(()) }
    }

    /// Takes a lease with the forms that it has. A new log begins with those of this program.
    fn take(&mut self, seen: &LeaseRecord, reason: &str) -> Result<(), LogError> {
        let (writes, least) = if seen.epoch == 0 { (self.form, self.form) } else { (seen.writes(), seen.least()) };
        self.take_with(seen, reason, Holder { writes, least, ..self.holder.clone() })
    }

    /// Takes a lease over from itself, with a newer form.
    fn raise(&mut self, held: &LeaseRecord, form: u32) -> Result<(), LogError> {
        if form <= held.writes() || form > self.form {
            return Ok(());
        }
        let reason = format!("the form of entries was raised from {} to {form}", held.writes());
        self.take_with(held, &reason, Holder { writes: form, least: form, ..self.holder.clone() })
    }

    fn take_with(&mut self, seen: &LeaseRecord, reason: &str, holder: Holder) -> Result<(), LogError> {
        let sent = (self.monotonic)();
        let nonce = (self.nonce)();
        let taken = self.log.take(seen, nonce, &holder);
        let own = (seen.epoch + 1, nonce);
        match taken {
            Ok(None) => {}
            Ok(Some(_)) => self.own_takings = vec![own],
            Err(_) => self.own_takings.push(own),
        }
        let mut state = self.view.state();
        self.same_since = None;
        state.is_in_doubt = false;
        state.held = None;
        let Some(record) = taken? else { return Ok(()) };
        self.renewed_at = sent;
        let trusted_until = sent + self.timing.lasts - self.timing.margin;
        state.seen = record.clone();
        state.held = Some(HeldLease { record, trusted_until, is_fresh: true, reason: reason.to_owned() });
        Ok(())
    }
}
