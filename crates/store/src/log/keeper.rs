//! The keeper of the lease: it renews the lease of this node, and takes that of a leader that is gone.
//!
//! No clock of another machine counts. The holder trusts its lease by its own monotonic clock, counted from *before* the request that
//! renewed it; a challenger takes a lease that it has not seen change for the whole time that a lease lasts, by its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::candidate::{Candidate, MOST_CLOCK_ERROR, WallClock, clock_error};
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
    /// The interval at which a standby looks at it when it is due to be renewed.
    pub look: Duration,
}

impl LeaseTiming {
    /// Take-over within 3.5 seconds after a leader was killed, and about one request of each node a second.
    pub const DEFAULT: LeaseTiming = LeaseTiming {
        lasts: Duration::from_secs(3),
        renew: Duration::from_millis(1300),
        margin: Duration::from_millis(500),
        look: Duration::from_millis(150),
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
    /// The moment from which on this node leads, by the monotonic clock. A leader that was deposed trusts its lease until then.
    pub(super) leads_from: Duration,
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
    /// When the lease was last seen to be another one, by the monotonic clock.
    pub(super) changed_at: Duration,
    /// Until when the journal wants to lead; the keeper of a leader that hangs lets the lease go.
    pub(super) wanted_until: Duration,
    /// Whether an answer was lost: the lease must be taken anew before anything else is appended.
    pub(super) is_in_doubt: bool,
    /// The form to which that of entries is to be raised. The leader takes over from itself with it.
    pub(super) raise_to: Option<u32>,
    /// Whether the lease is to be given back.
    pub(super) gives_back: bool,
    /// Whether the keeper is to look at the lease at once.
    pub(super) looks_now: bool,
    /// Whether the keeper has a thread, which has not ended.
    pub(super) is_kept: bool,
    /// Whether the keeper ends.
    pub(super) ends: bool,
    /// The last error of the store.
    pub(super) trouble: Option<LogError>,
    /// Whether this node may compete.
    pub(super) candidate: Candidate,
}

impl LeaseView {
    pub(super) fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has those who wait check again whether what they wait for holds.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Has the keeper look at the lease at once.
    pub(super) fn look(&self) {
        self.state().looks_now = true;
        self.wake();
    }

    /// Waits until something holds, at most for a time.
    pub(super) fn wait_for(&self, patience: Duration, holds: impl Fn(&ViewState) -> bool) {
        drop(self.changed.wait_timeout_while(self.state(), patience, |state| !holds(state)));
    }

    /// Waits until the keeper is to look at the lease, or for a time.
    fn rest(&self, state: MutexGuard<'_, ViewState>, time: Duration) {
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.looks_now);
        waited.unwrap_or_else(PoisonError::into_inner).0.looks_now = false;
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
    /// Whether the last look found that another node had renewed the lease.
    was_renewed: bool,
    /// When the taking that the lease shows was first seen.
    taking_since: Duration,
    renewed_at: Duration,
    /// When this node last began to lead.
    led_since: Duration,
    /// The epochs and random numbers of the last takings of this node: one that was confirmed, and those whose answers were lost.
    own_takings: Vec<(u64, u64)>,
    wall: WallClock,
    /// When the clock of the store was last read, by the monotonic clock.
    clock_read_at: Option<Duration>,
    /// The last lease of another process with the name of this node, and the times that it was seen to be renewed.
    twin: (LeaseRecord, u32),
}

/// The parts of a [`Keeper`] that are about its node.
pub(super) struct KeeperParts {
    pub(super) log: Box<dyn Log>,
    pub(super) holder: Holder,
    /// The newest form of entries that its program reads and writes.
    pub(super) form: u32,
    pub(super) timing: LeaseTiming,
    pub(super) monotonic: Monotonic,
    pub(super) wall: WallClock,
    pub(super) nonce: Box<dyn FnMut() -> u64 + Send>,
}

/// How often a lease with the name of this node is seen to be renewed before another process must have the name.
const RENEWALS_OF_TWIN: u32 = 2;

/// How often a leader, or a node whose clock was wrong, compares its clock with that of the store, in times of a lease.
const COMPARE_OFTEN: u32 = 3;

/// How often any other standby does. It also compares them before it takes the lease.
const COMPARE_SELDOM: u32 = 7;

impl Keeper {
    pub(super) fn new(parts: KeeperParts, view: Arc<LeaseView>) -> Self {
        let KeeperParts { log, holder, form, timing, monotonic, wall, nonce } = parts;
        Self {
            log,
            holder,
            form,
            timing,
            monotonic,
            nonce,
            view,
            same_since: None,
            was_renewed: false,
            taking_since: Duration::ZERO,
            renewed_at: Duration::ZERO,
            led_since: Duration::ZERO,
            own_takings: Vec::new(),
            wall,
            clock_read_at: None,
            twin: (LeaseRecord::default(), 0),
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
        self.rest(&state)
    }

    /// The time until there may be something to do again.
    fn rest(&self, state: &ViewState) -> Duration {
        let LeaseTiming { lasts, renew, look, .. } = self.timing;
        let due = match (&state.held, self.same_since) {
            (Some(_), _) => self.renewed_at + renew,
            // The next renewal is soon after this, so that the one that does not come is missed early.
            (None, Some(since)) if self.was_renewed => {
                return (since + renew - look / 50).saturating_sub((self.monotonic)());
            }
            (None, Some(since)) => since + lasts,
            (None, None) => return look,
        };
        match due.saturating_sub((self.monotonic)()) {
            // It was tried, and failed.
            Duration::ZERO => look,
            left => left.min(look),
        }
    }

    fn keep(&mut self) -> Result<(), LogError> {
        self.was_renewed = false;
        let every = {
            let state = self.view.state();
            let is_pressing = state.held.is_some() || state.candidate.clock_of_store.is_some();
            if is_pressing { COMPARE_OFTEN } else { COMPARE_SELDOM }
        };
        let clock = self.compare_clocks(self.timing.lasts * every);
        let now = (self.monotonic)();
        let (held, wanted, in_doubt, gives_back, raise_to) = {
            let mut state = self.view.state();
            let raise_to = state.raise_to.take();
            let is_wanted = now < state.wanted_until && state.candidate.obstacle().is_none();
            (state.held.clone(), is_wanted, state.is_in_doubt, state.gives_back, raise_to)
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
            None => self.challenge(wanted && self.clock_read_at.is_some()).and(clock),
        }
    }

    /// Compares the wall clock with that of the store, unless it did so within `age`. A request that took long says nothing.
    fn compare_clocks(&mut self, age: Duration) -> Result<(), LogError> {
        let before = (self.monotonic)();
        if self.clock_read_at.is_some_and(|last| before < last + age) {
            return Ok(());
        }
        let there = self.log.clock_millis()?;
        let (here, now) = ((self.wall)(), (self.monotonic)());
        if there.is_some() && now.saturating_sub(before) > MOST_CLOCK_ERROR / 2 {
            return Ok(());
        }
        self.clock_read_at = Some(now);
        let error = there.and_then(|there| clock_error(here - there, "that of the store"));
        let mut state = self.view.state();
        state.candidate.tells_time = there.is_some();
        state.candidate.clock_of_store = error;
        Ok(())
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
        let was_before = self.was_before(&record);
        let (is_same, extra, deposes) = {
            let mut state = self.view.state();
            let is_same = state.seen == record && self.same_since.is_some();
            if !is_same {
                state.changed_at = now;
            }
            let is_news = !state.seen.is_same_taking(&record);
            state.seen = record.clone();
            if is_news {
                self.taking_since = now;
            }
            if is_news && record.holder.deposed.is_some() && was_before {
                // The others could not reach it, and it may not know why.
                let led_for = now.saturating_sub(self.led_since);
                state.candidate.was_deposed(now, led_for, self.timing.lasts);
            }
            let extra = state.candidate.extra_wait(now);
            let has_waited = now.saturating_sub(self.taking_since) >= extra;
            let deposes = state.candidate.deposes(&record).filter(|_| has_waited).map(str::to_owned);
            (is_same, extra, deposes)
        };
        if !is_same {
            self.same_since = Some(now);
            self.was_renewed = record.epoch > 0 && !record.is_free;
        }
        let unchanged = self.same_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.look_for_twin(&record, unchanged);
        let reason = if record.epoch == 0 {
            "the first leader"
        } else if record.is_free && unchanged >= extra {
            "the leader before gave the lead back"
        } else if !record.is_free && self.own_takings.contains(&(record.epoch, record.nonce)) {
            // No other node holds it.
            ANSWER_LOST
        } else if !record.is_free && unchanged >= self.timing.lasts + extra {
            NOT_HEARD_OF
        } else if let Some(reason) = &deposes {
            reason
        } else {
            return Ok(());
        };
        if !wanted || record.least() > self.form {
            return Ok(());
        }
        self.compare_clocks(self.timing.lasts)?;
        if self.view.state().candidate.obstacle().is_some() {
            return Ok(());
        }
        match &deposes {
            Some(deposes) if deposes == reason => self.depose(&record, reason),
            _ => self.take(&record, reason),
        }
    }

    /// Takes the lease of a leader that renews it and that no node can reach.
    fn depose(&mut self, seen: &LeaseRecord, reason: &str) -> Result<(), LogError> {
        let (writes, least, deposed) = (seen.writes(), seen.least(), Some(reason.to_owned()));
        self.take_with(seen, reason, Holder { writes, least, deposed, ..self.holder.clone() })
    }

    /// Whether the last lease of this node was the one before a record.
    fn was_before(&self, record: &LeaseRecord) -> bool {
        self.own_takings.iter().any(|(epoch, _)| *epoch + 1 == record.epoch)
    }

    /// Notes that another process with the name of this node leads: its lease goes on being renewed. It is forgotten when another node
    /// leads, which hears of both processes if there are two, and when no node leads for the time of a lease.
    fn look_for_twin(&mut self, record: &LeaseRecord, unchanged: Duration) {
        let is_own = self.own_takings.contains(&(record.epoch, record.nonce));
        let is_silent = unchanged >= self.timing.lasts;
        let is_of_another = is_own || record.holder.node != self.holder.node;
        if is_silent || !record.is_free && is_of_another {
            self.view.state().candidate.leading_twin = None;
        }
        if is_silent || record.epoch == 0 || record.is_free || is_of_another {
            self.twin = (LeaseRecord::default(), 0);
            return;
        }
        let renewed = self.twin.0.is_same_taking(record) && self.twin.0.renewals < record.renewals;
        let seen = if self.twin.0.is_same_taking(record) { self.twin.1 + u32::from(renewed) } else { 0 };
        self.twin = (record.clone(), seen);
        if seen >= RENEWALS_OF_TWIN {
            let words = twin_words(&self.holder.node, record.holder.address.as_deref());
            self.view.state().candidate.leading_twin = Some(words);
        }
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
        // One that is taken over from itself, since an answer was lost, may have been deposing.
        let was_deposing = seen.holder.deposed.is_some() && seen.holder.node == holder.node;
        let is_deposing = holder.deposed.is_some() || was_deposing;
        let taken = self.log.take(seen, nonce, &holder);
        let own = (seen.epoch + 1, nonce);
        if seen.is_free || !self.own_takings.contains(&(seen.epoch, seen.nonce)) {
            self.led_since = sent;
        }
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
        // The store has the answer to the last renewal of a leader that was deposed from before this.
        let leads_from = if is_deposing { (self.monotonic)() + self.timing.lasts } else { sent };
        state.seen = record.clone();
        state.held = Some(HeldLease { record, leads_from, trusted_until, is_fresh: true, reason: reason.to_owned() });
        Ok(())
    }
}

/// The words for a second process of one name, completing "failed to …".
pub(super) fn twin_words(node: &str, address: Option<&str>) -> String {
    let place = address.map(|address| format!(" at {address}")).unwrap_or_default();
    format!(
        "take part as node {node}: another process{place} has this name and is alive; end one of them, or start it with another --node and a \
         folder of its own"
    )
}
