//! The part of a node that follows: entries are applied to its state, on a thread while another node leads.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::entry::{EntryBody, Reign, read_entry};
use super::state::{LocalState, Position};
use super::status::{Copies, LogState};
use super::{Log, LogEntry, LogError};
use crate::contract::StoreError;

/// Entries that are read at a time.
const PAGE: usize = 512;

/// The longest wait for a hint that the log has grown. A node that had all of the log more than 10 s ago is not ready.
const LONGEST_WAIT: Duration = Duration::from_secs(7);
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// The parts that the journal and the following thread share.
pub(super) struct Replica<S> {
    pub(super) state: Mutex<S>,
    pub(super) folder: PathBuf,
    /// The newest form of entries that it reads.
    pub(super) form: u32,
    /// The last entry of this node and the snapshot of the log that lacks it, once that was read.
    pub(super) foreign: Mutex<Option<(u64, u64)>>,
    pub(super) shown: LogState,
}

impl<S: LocalState> Copies for Replica<S> {
    fn reigns(&self, limit: usize) -> Result<Vec<Reign>, StoreError> {
        self.state().reigns(limit)
    }

    /// Stores a snapshot of the local state in the log, and trims the log before it.
    fn snapshot(&self, log: &mut dyn Log, keep: u64) -> Result<u64, StoreError> {
        // A node that adopts it is ahead of the log, too.
        self.is_true_to(log)?;
        let (position, mut copy) = self.state().copy(&self.folder)?;
        log.put_snapshot(position.entry, &mut copy).map_err(medium)?;
        // The log may have lost its end while the copy was on its way, and its entries are needed then.
        is_true(position, log, self.form)?;
        log.trim((position.entry + 1).saturating_sub(keep).max(1)).map_err(medium)?;
        Ok(position.entry)
    }

    fn is_true_to(&self, log: &mut dyn Log) -> Result<(), StoreError> {
        let position = self.state().position()?;
        is_true(position, log, self.form)
    }
}

/// When a leader stores a snapshot in the log, and trims the log behind it.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotPolicy {
    /// After so many entries.
    pub every: u64,
    /// The entries before a snapshot that are kept, for nodes that were away for a while.
    pub keep: u64,
}

impl SnapshotPolicy {
    /// A few minutes of a busy log, a week of a quiet one.
    pub const DEFAULT: SnapshotPolicy = SnapshotPolicy { every: 20_000, keep: 10_000 };
}

impl<S: LocalState> Replica<S> {
    pub(super) fn state(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the next entries of the log, and returns their number. A node that has another past does not compete from then on.
    pub(super) fn follow(&self, log: &mut dyn Log) -> Result<usize, StoreError> {
        let outcome = self.follow_page(log);
        if let Err(error @ (StoreError::Ahead { .. } | StoreError::Corrupt { .. })) = &outcome {
            self.shown.view.state().candidate.own = Some(error.to_string());
        }
        outcome
    }

    fn follow_page(&self, log: &mut dyn Log) -> Result<usize, StoreError> {
        let mut state = self.state();
        let after = self.own(state.position())?.entry;
        let asked = (self.shown.monotonic)();
        let entries = match log.read(after, PAGE) {
            Ok(entries) => entries,
            Err(LogError::RemovedHistory { .. }) => {
                let adopted = self.adopt(log, &mut state);
                self.own(adopted)?;
                return Ok(1);
            }
            Err(other) => return Err(medium(other)),
        };
        for (nth, entry) in entries.iter().enumerate() {
            // A plug says nothing about the entries before it. Those of the same page were just read from the same log.
            if nth == 0 && matches!(read_entry(entry, self.form), Ok(EntryBody::Plug(_))) {
                is_true(state.position()?, log, self.form)?;
            }
            let began = (self.shown.monotonic)();
            if let Err(error) = self.own(apply(&mut *state, entry, self.form)) {
                drop(state);
                // A log that lost its end, and has another one now, says so.
                self.is_true_to(log)?;
                return Err(match error {
                    StoreError::Deposed { held, current } => StoreError::Corrupt {
                        place: format!("entry {} of the log", entry.position),
                        what: format!("it is of epoch {held}, and epoch {current} was the last to begin"),
                    },
                    other => other,
                });
            }
            self.shown.applying.add((self.shown.monotonic)().saturating_sub(began));
            self.shown.follow(entry.position);
        }
        if entries.len() < PAGE {
            // A store may give fewer than it has where they are large, and the next read finds the rest.
            self.shown.was_abreast(asked);
        }
        Ok(entries.len())
    }

    /// Notes an error of the local state: the node does not compete before it can write again.
    pub(super) fn own<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::Medium { .. }) = &outcome {
            self.shown.view.state().candidate.own = Some(error.to_string());
        }
        outcome
    }

    /// Replaces the local state by the snapshot of the log.
    fn adopt(&self, log: &mut dyn Log, state: &mut S) -> Result<(), StoreError> {
        let none = || StoreError::Corrupt {
            place: "the log".to_owned(),
            what: "its first entries are trimmed, and it has no snapshot".to_owned(),
        };
        let position = log.snapshot().map_err(medium)?.ok_or_else(none)?;
        let own = state.position()?.entry;
        if *self.foreign() == Some((own, position)) {
            return Err(StoreError::Ahead { local: own, log: position });
        }
        let path = self.folder.join("snapshot.part");
        let file = |error: std::io::Error| StoreError::Medium {
            doing: format!("write {}", path.display()),
            cause: error.to_string(),
        };
        let mut copy = std::fs::File::create(&path).map_err(file)?;
        log.read_snapshot(position, &mut copy).map_err(medium)?;
        drop(copy);
        let adopted = std::fs::File::open(&path)
            .map_err(file)
            .and_then(|mut copy| state.adopt(&mut copy, &self.folder, &mut |found| is_of_log(found, log, self.form)));
        let _ = std::fs::remove_file(&path);
        if matches!(adopted, Err(StoreError::Ahead { .. })) {
            // It is large, and says the same each time.
            *self.foreign() = Some((own, position));
        }
        adopted?;
        self.shown.follow(state.position()?.entry);
        Ok(())
    }

    fn foreign(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if the log has another entry at a position, or none.
fn is_true(position: Position, log: &mut dyn Log, form: u32) -> Result<(), StoreError> {
    if position.entry == 0 {
        return Ok(());
    }
    let found = match log.read(position.entry - 1, 1) {
        Err(LogError::RemovedHistory { .. }) => return Ok(()),
        found => found.map_err(medium)?,
    };
    let Some(entry) = found.first() else {
        let last = log.ends().map_err(medium)?.last;
        if last < position.entry {
            return Err(StoreError::Ahead { local: position.entry, log: last });
        }
        return Err(StoreError::Medium {
            doing: format!("read entry {} of the log", position.entry),
            cause: "the store has it, and does not show it yet".to_owned(),
        });
    };
    let is_same = match read_entry(entry, form).map_err(medium)? {
        EntryBody::Plug(reign) => reign.epoch == position.epoch,
        EntryBody::Turn { record, .. } => position.turn == Some(record),
    };
    if is_same {
        return Ok(());
    }
    let last = log.ends().map_err(medium)?.last;
    Err(StoreError::Ahead { local: position.entry, log: last })
}

/// Fails if a snapshot is not that of the log: its leader stored it while the log lost its end.
fn is_of_log(position: Position, log: &mut dyn Log, form: u32) -> Result<(), StoreError> {
    is_true(position, log, form).map_err(|error| match error {
        StoreError::Ahead { local, log } => StoreError::Medium {
            doing: format!("follow the log from its snapshot of entry {local}"),
            cause: format!(
                "the log, whose last entry is {log}, lacks that entry or has it differently; the next snapshot replaces it, or \
                 `kelos recover --append-tail` at the node that stored it"
            ),
        },
        other => other,
    })
}

/// Applies an entry to a state.
fn apply(state: &mut dyn LocalState, entry: &LogEntry, form: u32) -> Result<(), StoreError> {
    match read_entry(entry, form).map_err(medium)? {
        EntryBody::Plug(reign) => state.begin(entry.position, &reign),
        EntryBody::Turn { record, commit } => state.follow(entry.position, entry.epoch, &commit, &mut |followed| {
            if *followed == record {
                return Ok(());
            }
            let (turn, digest) = (record.turn, record.digest);
            Err(StoreError::Corrupt {
                place: format!("entry {} of the log", entry.position),
                what: format!(
                    "its turn {turn} has the digest {digest}, and turn {} of this node has {}: they have different pasts",
                    followed.turn, followed.digest
                ),
            })
        }),
    }
}

/// The thread that follows while another node leads.
pub(super) struct Follower<S> {
    /// It keeps no state open while it waits.
    pub(super) replica: Weak<Replica<S>>,
    pub(super) log: Box<dyn Log>,
    pub(super) shown: LogState,
}

impl<S: LocalState> Follower<S> {
    pub(super) fn run(mut self) {
        let view = self.shown.view.clone();
        let mut was_told = false;
        while !view.state().ends {
            // A leader writes its state itself.
            if view.state().held.is_some() {
                view.wait_for(LONGEST_WAIT, |state| state.held.is_none() || state.ends);
                continue;
            }
            let Some(followed) = self.replica.upgrade().map(|replica| replica.follow(&mut *self.log)) else { return };
            let outcome = match followed {
                Ok(0) => {
                    if was_told {
                        // There is no entry, so the lease may have been given back.
                        view.look();
                    }
                    self.wait().map(|is_told| was_told = is_told)
                }
                followed => followed.map(|_| was_told = false),
            };
            let failed = outcome.is_err();
            self.shown.note(outcome.err().map(|error| error.to_string()));
            if failed {
                was_told = false;
                view.wait_for(PAUSE, |state| state.ends);
            }
        }
    }

    /// Waits for the store to tell of something; whether it did.
    fn wait(&mut self) -> Result<bool, StoreError> {
        let began = (self.shown.monotonic)();
        self.log.wait(self.shown.followed.load(Ordering::Acquire), LONGEST_WAIT).map_err(medium)?;
        Ok((self.shown.monotonic)().saturating_sub(began) < LONGEST_WAIT)
    }
}

/// The thread that stores snapshots while this node leads.
pub(super) struct Snapshots {
    pub(super) shown: LogState,
    pub(super) log: Box<dyn Log>,
    pub(super) policy: SnapshotPolicy,
    /// The position of the latest snapshot, once it is known.
    pub(super) last: Option<u64>,
}

impl Snapshots {
    /// The interval at which it checks whether one is due.
    const LOOK: Duration = Duration::from_secs(15);

    pub(super) fn run(mut self) {
        let mut is_troubled = false;
        while !self.shown.view.state().ends {
            if self.shown.status().leads {
                let outcome = self.verify().and_then(|()| self.store_if_due());
                if outcome.is_err() {
                    // The next one is tried soon, and the log is longer until then.
                    self.last = None;
                }
                if outcome.is_err() || is_troubled {
                    is_troubled = outcome.is_err();
                    self.shown.note(outcome.err().map(|error| error.to_string()));
                }
            }
            self.shown.view.wait_for(Self::LOOK, |state| state.ends);
        }
    }

    /// Fails if the log has lost what this node has: a leader with nothing to append would not notice, as when a standby is promoted that
    /// lacks the end.
    fn verify(&mut self) -> Result<(), StoreError> {
        let Some(replica) = self.shown.replica.upgrade() else { return Ok(()) };
        let outcome = replica.is_true_to(&mut *self.log);
        if let Err(error @ StoreError::Ahead { .. }) = &outcome {
            // It can't append any more, and would keep others from leading.
            self.shown.view.state().candidate.own = Some(error.to_string());
        }
        outcome
    }

    fn store_if_due(&mut self) -> Result<(), StoreError> {
        let last = match self.last {
            Some(last) => last,
            None => {
                let found = self.log.snapshot().map_err(medium)?.unwrap_or(0);
                *self.last.insert(found)
            }
        };
        if self.shown.followed.load(Ordering::Acquire) < last + self.policy.every {
            return Ok(());
        }
        if let Some(replica) = self.shown.replica.upgrade() {
            self.last = Some(replica.snapshot(&mut *self.log, self.policy.keep)?);
        }
        Ok(())
    }
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started
        .map(drop)
        .map_err(|error| StoreError::Medium { doing: format!("start the thread {name}"), cause: error.to_string() })
}

/// The error of a store, from that of its log.
pub(super) fn medium(error: LogError) -> StoreError {
    match error {
        LogError::Deposed { held, current } => StoreError::Deposed { held, current },
        LogError::NewerForm { position: entry, form, reads } => StoreError::NewerForm { entry, form, reads },
        LogError::Corrupt { place, what } => StoreError::Corrupt { place, what },
        LogError::Unknown { doing, cause } | LogError::Medium { doing, cause } => StoreError::Medium { doing, cause },
        other @ (LogError::NotNext { .. } | LogError::RemovedHistory { .. }) => {
            StoreError::Medium { doing: other.to_string(), cause: "another node wrote to it meanwhile".to_owned() }
        }
    }
}
