//! The journal over a log: a turn is written to the local state, appended to the log, and only then made permanent in both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use jiff::Timestamp;
use kelos_model::{FactKey, Recall, Run};

use super::candidate::WallClock;
use super::entry::{AGAIN, EntryBody, Reign, entry_bytes, turn_bytes};
use super::keeper::{HeldLease, Keeper, KeeperParts, LeaseTiming, LeaseView, Monotonic};
use super::patient::PatientLog;
use super::replica::{Follower, Replica, SnapshotPolicy, Snapshots, medium, spawn};
use super::state::LocalState;
use super::status::{Copies, LogState};
use super::{Holder, LeaseRecord, Log, LogError, LogStore};
use crate::contract::{Commit, Journal, Lease, SlotRow, Snapshot, StoreError, StoredState, Watch};
use crate::queries::Queries;
use crate::unreadable::UnreadableRow;

/// How long a leader waits for the store to hear that it gives the lead back.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often a node that is unfit tests whether it is fit again: that writes to its disk.
const TEST_EVERY: Duration = Duration::from_secs(5);

/// How often a leader that begins follows the log to its end at once, if entries of the leader before come first.
const PLUG_ROUNDS: u32 = 16;

/// The parts of a [`LogJournal`].
pub struct LogParts<S> {
    /// The log.
    pub store: Arc<dyn LogStore>,
    /// The local state.
    pub state: S,
    /// A folder for files that exist for a moment.
    pub folder: PathBuf,
    /// This node.
    pub holder: Holder,
    /// The newest form of entries that this program reads and writes: [`FORM`](super::FORM), unless it pretends to be a newer program in
    /// a test.
    pub form: u32,
    /// The times of the lease.
    pub timing: LeaseTiming,
    /// The monotonic clock of this node.
    pub monotonic: Monotonic,
    /// The wall clock of this node, which is compared with others'.
    pub wall: WallClock,
    /// Random numbers.
    pub nonce: Box<dyn FnMut() -> u64 + Send>,
}

/// A journal over a log and a local state. A leader appends, all others follow.
pub struct LogJournal<S> {
    replica: Arc<Replica<S>>,
    log: Box<dyn Log>,
    reader: Arc<dyn Queries>,
    view: Arc<LeaseView>,
    monotonic: Monotonic,
    holder: Holder,
    /// The form of the entries that it appends while it leads.
    writes: u32,
    /// The keeper, where no thread runs it: then it works whenever the journal is asked for the lease.
    keeper: Option<Keeper>,
    /// When it was last found unfit, by the monotonic clock, and why; none while it is fit.
    unfit: Option<(Duration, StoreError)>,
    /// Whether the local state may lack entries of this node itself.
    is_behind: bool,
    lasts: Duration,
}

impl<S: LocalState + 'static> LogJournal<S> {
    /// A journal whose keeper and follower work when it is asked for the lease, on no thread of their own: for simulations.
    ///
    /// # Errors
    /// When the store or the state can't be read.
    pub fn inline(parts: LogParts<S>) -> Result<(Self, LogState), StoreError> {
        let (mut journal, keeper, shown) = Self::assemble(parts)?;
        journal.keeper = Some(keeper);
        while journal.replica.follow(&mut *journal.log)? > 0 {}
        Ok((journal, shown))
    }

    /// A journal with threads that keep the lease, follow, and store snapshots while it leads. A store that can't be reached is waited for,
    /// if the state has something to read meanwhile.
    ///
    /// # Errors
    /// When the state can't be read, or can't follow the log, or it is empty and the store can't be reached, or a thread can't be started.
    pub fn start(parts: LogParts<S>, policy: SnapshotPolicy) -> Result<(Self, LogState), StoreError> {
        let store = parts.store.clone();
        let (mut journal, keeper, shown) = Self::assemble(parts)?;
        // A node that can't follow says so before it serves anything.
        match journal.catch_up() {
            Err(error @ StoreError::Medium { .. }) if shown.followed.load(Ordering::Acquire) > 0 => {
                shown.note(Some(error.to_string()));
            }
            outcome => outcome?,
        }
        let replica = Arc::downgrade(&journal.replica);
        let follower = Follower { replica, log: PatientLog::of(&store), shown: shown.clone() };
        let snapshots = Snapshots { shown: shown.clone(), log: PatientLog::of(&store), policy, last: None };
        journal.view.state().is_kept = true;
        spawn("kelos-lease", move || keeper.run())?;
        spawn("kelos-follow", move || follower.run())?;
        spawn("kelos-snapshot", move || snapshots.run())?;
        Ok((journal, shown))
    }

    /// Follows to the end that the log has now.
    fn catch_up(&mut self) -> Result<(), StoreError> {
        let last = self.log.ends().map_err(medium)?.last;
        let is_behind = |shown: &LogState| shown.followed.load(Ordering::Acquire) < last;
        while self.replica.follow(&mut *self.log)? > 0 && is_behind(&self.replica.shown) {}
        self.replica.is_true_to(&mut *self.log)
    }

    fn assemble(parts: LogParts<S>) -> Result<(Self, Keeper, LogState), StoreError> {
        let LogParts { store, mut state, folder, holder, form, timing, monotonic, wall, nonce } = parts;
        let (log, view) = (PatientLog::of(&store), Arc::new(LeaseView::default()));
        let (kept, clock, of) = (PatientLog::of(&store), monotonic.clone(), holder.clone());
        let parts = KeeperParts { log: kept, holder: of, form, timing, monotonic: clock, wall, nonce };
        let keeper = Keeper::new(parts, view.clone());
        let followed = Arc::new(AtomicU64::new(state.position()?.entry));
        let reader = state.reader();
        let of_node = holder.address.as_deref().map(Into::into);
        let (name, node) = (store.name().into(), holder.node.as_str().into());
        let replica = Arc::new_cyclic(|replica: &Weak<Replica<S>>| {
            let replica: Weak<dyn Copies> = replica.clone();
            let shown = LogState {
                store: store.clone(),
                name,
                node,
                address: of_node,
                form,
                view: view.clone(),
                followed,
                trouble: Arc::default(),
                monotonic: monotonic.clone(),
                abreast: Arc::default(),
                applying: Arc::default(),
                replica,
            };
            Replica { state: Mutex::new(state), folder, form, foreign: Mutex::default(), shown }
        });
        let shown = replica.shown.clone();
        let journal = LogJournal {
            replica,
            log,
            reader,
            view,
            monotonic,
            holder,
            writes: form,
            keeper: None,
            unfit: None,
            is_behind: false,
            lasts: timing.lasts,
        };
        Ok((journal, keeper, shown))
    }

    /// Stores a snapshot of the local state in the log, and trims the log before it, but for a number of entries that nodes which are away
    /// for a while still follow. Returns the position of the snapshot.
    ///
    /// # Errors
    /// When the store or the state fails.
    pub fn snapshot(&mut self, keep: u64) -> Result<u64, StoreError> {
        self.replica.snapshot(&mut *self.log, keep)
    }

    /// Begins to lead under a lease that was just taken.
    fn begin(&mut self, held: &HeldLease, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        let begun = self.plug(held, now);
        self.is_behind = !matches!(begun, Ok(Some(_)));
        if let Err(error @ (StoreError::Ahead { .. } | StoreError::Corrupt { .. })) = &begun {
            self.view.state().candidate.own = Some(error.to_string());
        }
        self.stand_back(begun, held.record.epoch)
    }

    /// Gives back a lease if the local state is not fit to lead: it could only keep others from leading.
    fn stand_back<T>(&mut self, outcome: Result<T, StoreError>, epoch: u64) -> Result<T, StoreError> {
        if outcome.is_err() && self.view.state().candidate.own.is_some() {
            let now = (self.monotonic)();
            self.view.state().candidate.defer(now, self.lasts);
            self.give_back(epoch);
        }
        outcome
    }

    /// Fails for as long as the local state can't be written, or has another past than the log, as of the last test.
    fn is_fit(&mut self) -> Result<(), StoreError> {
        if self.view.state().candidate.own.is_none() {
            self.unfit = None;
            return Ok(());
        }
        self.view.state().wanted_until = Duration::ZERO;
        let now = (self.monotonic)();
        if let Some((_, why)) = self.unfit.as_ref().filter(|(tested, _)| now < *tested + TEST_EVERY) {
            return Err(why.clone());
        }
        if let Err(why) = self.test() {
            self.unfit = Some((now, why.clone()));
            return Err(why);
        }
        self.unfit = None;
        self.view.state().candidate.own = None;
        Ok(())
    }

    /// Tests whether the local state is that of the log, and can be written.
    fn test(&mut self) -> Result<(), StoreError> {
        // One that is ahead is not written to for that.
        self.replica.is_true_to(&mut *self.log)?;
        self.replica.state().test_write(&self.replica.folder)?;
        while self.replica.follow(&mut *self.log)? > 0 {}
        self.replica.is_true_to(&mut *self.log)
    }

    /// An outcome of reading the local state while it leads.
    fn own<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ (StoreError::Medium { .. } | StoreError::Corrupt { .. })) = &outcome {
            self.view.state().candidate.own = Some(error.to_string());
        }
        let held = self.view.state().held.as_ref().map(|held| held.record.epoch);
        match held {
            Some(epoch) => self.stand_back(outcome, epoch),
            None => outcome,
        }
    }

    /// Gives back the lease of an epoch, if it is held.
    fn give_back(&mut self, epoch: u64) {
        let holds = |held: &Option<HeldLease>| held.as_ref().is_some_and(|held| held.record.epoch == epoch);
        {
            let mut state = self.view.state();
            if !holds(&state.held) {
                return;
            }
            state.gives_back = true;
            state.wanted_until = Duration::ZERO;
        }
        self.view.look();
        match &mut self.keeper {
            Some(keeper) => drop(keeper.tick()),
            None => self.view.wait_for(FAREWELL, |state| !state.gives_back && !holds(&state.held)),
        }
    }

    /// Plugs the log under a lease that was just taken, once the local state has all that is before. A store that does not show the
    /// entry which came first is asked again with the next look at the lease.
    fn plug(&mut self, held: &HeldLease, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        let mut rounds = 0;
        loop {
            rounds += 1;
            while self.replica.follow(&mut *self.log)? > 0 {}
            self.replica.is_true_to(&mut *self.log)?;
            let record = &held.record;
            let reign = Reign {
                epoch: record.epoch,
                node: self.holder.node.clone(),
                address: self.holder.address.clone(),
                at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now),
                reason: held.reason.clone(),
            };
            let mut state = self.replica.state();
            let position = state.position()?.entry + 1;
            let body = entry_bytes(record.writes(), &EntryBody::Plug(reign.clone())).map_err(no_form)?;
            match self.log.append(record.epoch, position, &body) {
                Ok(()) => {
                    self.writes = record.writes();
                    let begun = state.begin(position, &reign);
                    drop(state);
                    self.replica.own(begun)?;
                    self.replica.shown.follow(position);
                    return Ok(self.view.confirm(record));
                }
                // An entry of the leader before came first.
                Err(LogError::NotNext { .. }) if rounds < PLUG_ROUNDS => {}
                Err(LogError::Deposed { .. }) => {
                    self.view.lose(record.epoch);
                    return Ok(None);
                }
                Err(LogError::Unknown { doing, cause }) => {
                    self.view.doubt();
                    return Err(StoreError::Medium { doing, cause });
                }
                Err(other) => return Err(medium(other)),
            }
        }
    }
}

impl<S: LocalState + 'static> StoredState for LogJournal<S> {
    fn restore(&mut self) -> Result<Snapshot, StoreError> {
        let outcome = self.replica.state().restore();
        self.own(outcome)
    }

    fn recall(&mut self, recall: &Recall) -> Result<Vec<SlotRow>, StoreError> {
        let outcome = self.replica.state().recall(recall);
        self.own(outcome)
    }

    fn recall_runs(&mut self, seqs: &[u64]) -> Result<Vec<Run>, StoreError> {
        let outcome = self.replica.state().recall_runs(seqs);
        self.own(outcome)
    }

    fn known_facts(&mut self, names: &[FactKey]) -> Result<Vec<FactKey>, StoreError> {
        let outcome = self.replica.state().known_facts(names);
        self.own(outcome)
    }

    fn unreadable(&self) -> Vec<UnreadableRow> {
        self.replica.state().unreadable()
    }

    fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.replica.state().watch()
    }

    fn reader(&self) -> Arc<dyn Queries> {
        self.reader.clone()
    }
}

impl<S: LocalState + 'static> Journal for LogJournal<S> {
    fn lease(&mut self, _node: &str, now: Timestamp, ttl_millis: u64) -> Result<Option<Lease>, StoreError> {
        self.is_fit()?;
        self.view.state().wanted_until = (self.monotonic)() + Duration::from_millis(ttl_millis);
        if let Some(keeper) = &mut self.keeper {
            keeper.tick();
        }
        let (held, in_doubt) = {
            let state = self.view.state();
            (state.held.clone(), state.is_in_doubt)
        };
        if in_doubt {
            self.view.look();
            return Ok(None);
        }
        match held {
            // The leader that was deposed may still perform what it has written.
            Some(held) if (self.monotonic)() < held.leads_from => Ok(None),
            Some(held) if held.is_fresh => self.begin(&held, now),
            // The renewal took too long: another node may lead by now.
            Some(held) if (self.monotonic)() >= held.trusted_until => Ok(None),
            Some(held) => {
                while self.is_behind && self.replica.follow(&mut *self.log)? > 0 {}
                self.is_behind = false;
                Ok(Some(Lease { epoch: held.record.epoch }))
            }
            None => {
                if self.keeper.is_some() {
                    self.replica.follow(&mut *self.log)?;
                }
                Ok(None)
            }
        }
    }

    fn release(&mut self, lease: Lease) -> Result<(), StoreError> {
        self.give_back(lease.epoch);
        Ok(())
    }

    fn holds(&mut self, lease: Lease) -> bool {
        let now = (self.monotonic)();
        let state = self.view.state();
        let holds = |held: &HeldLease| held.record.epoch == lease.epoch && now < held.trusted_until && !held.is_fresh;
        !state.is_in_doubt && state.held.as_ref().is_some_and(holds)
    }

    fn stand_by_millis(&self) -> u64 {
        50
    }

    fn knows_again(&self) -> bool {
        self.writes >= AGAIN
    }

    fn commit(&mut self, lease: Lease, commit: &Commit) -> Result<(), StoreError> {
        if !self.holds(lease) {
            let current = self.view.state().seen.epoch;
            return Err(match current == lease.epoch {
                true => StoreError::LeaseLost { held: lease.epoch },
                false => StoreError::Deposed { held: lease.epoch, current },
            });
        }
        if commit.is_empty() {
            return Ok(());
        }
        let (log, view, writes) = (&mut self.log, &self.view, self.writes);
        let mut state = self.replica.state();
        let position = state.position()?.entry + 1;
        let (mut is_appended, mut log_failed) = (false, false);
        let outcome = state.follow(position, lease.epoch, commit, &mut |record| {
            let body = turn_bytes(writes, *record, commit).map_err(no_form)?;
            is_appended = true;
            let appended = log.append(lease.epoch, position, &body);
            log_failed = appended.is_err();
            appended.map_err(|error| match error {
                LogError::Deposed { held, current } => {
                    view.lose(held);
                    StoreError::Deposed { held, current }
                }
                LogError::NotNext { .. } => {
                    view.doubt();
                    medium(error)
                }
                LogError::Unknown { doing, cause } => {
                    view.doubt();
                    StoreError::Medium { doing, cause }
                }
                other => medium(other),
            })
        });
        drop(state);
        match &outcome {
            Ok(()) => self.replica.shown.follow(position),
            Err(_) => self.is_behind |= is_appended,
        }
        // A turn that can't be is refused, and says nothing about the medium.
        let is_sound = || self.replica.state().test_write(&self.replica.folder).is_ok();
        if log_failed || matches!(outcome, Err(StoreError::Corrupt { .. })) && is_sound() {
            return outcome;
        }
        self.own(outcome)
    }
}

impl<S> Drop for LogJournal<S> {
    fn drop(&mut self) {
        {
            let mut state = self.view.state();
            state.ends = true;
            state.wanted_until = Duration::ZERO;
            // The keeper may be about to take the lease.
            state.gives_back = true;
        }
        self.view.look();
        match &mut self.keeper {
            Some(keeper) => drop(keeper.tick()),
            None => self.view.wait_for(FAREWELL, |state| !state.is_kept),
        }
    }
}

impl LeaseView {
    /// The lease of an epoch is lost; a later one of this node is not.
    fn lose(&self, epoch: u64) {
        let mut state = self.state();
        if state.held.as_ref().is_some_and(|held| held.record.epoch == epoch) {
            state.held = None;
            state.is_in_doubt = false;
        }
    }

    /// An answer was lost: nothing more is appended before the lease is taken anew.
    fn doubt(&self) {
        self.state().is_in_doubt = true;
        self.look();
    }

    /// The log has the plug of a lease; none if that was lost meanwhile.
    fn confirm(&self, record: &LeaseRecord) -> Option<Lease> {
        let mut state = self.state();
        let held = state.held.as_mut().filter(|held| held.record.is_same_taking(record))?;
        held.is_fresh = false;
        Some(Lease { epoch: record.epoch })
    }
}

fn no_form(what: String) -> StoreError {
    StoreError::Corrupt { place: "a turn".to_owned(), what }
}
