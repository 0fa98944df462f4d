//! The life of a node: it starts, stands by, leads, stands still, crashes, and starts again, with its disk or without.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_engine::turn::TurnError;
use kelos_store::log::{Holder, LeaseTiming, LogJournal, LogParts};
use kelos_store::{MemoryDisk, MemoryStore, StoreError};

use super::handle::{Body, NodeHandle};
use super::journal::NodeJournal;
use super::ledger::{NEWEST, portrait};
use super::log::NodeLogStore;
use super::reign::{self, NodeView};
use super::site::{Plant, Site, TIMING};
use crate::rng::Rng;

/// The interval at which a standby asks for the lease.
const LOOK: SignedDuration = SignedDuration::from_secs(60);

/// How long a node waits before it starts again to follow or to lead after an error.
const AFTER_ERROR: SignedDuration = SignedDuration::from_secs(5);

/// The number of folders that nodes of this process had: the same seed may be played twice at a time, with other bugs.
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// A crash of a node.
struct Crash {
    at: Timestamp,
    /// How long no process of the node runs.
    down: SignedDuration,
    loses_disk: bool,
}

/// The process of a node, and its disk.
pub(super) struct NodeLife {
    pub(super) handle: Arc<NodeHandle>,
    pub(super) rng: Rng,
    disk: MemoryDisk,
    /// A folder for files that exist for a moment.
    folder: PathBuf,
    crashes: Vec<Crash>,
    /// From when on it runs the newer program.
    upgraded_at: Timestamp,
}

impl NodeLife {
    /// The node with a number, of a seed.
    pub(super) fn new(place: &Arc<Site>, index: usize, seed: u64) -> NodeLife {
        let mut rng = Rng::new(seed ^ (0x40DE << 8) ^ index as u64);
        let mut crashes = if place.plan.hindrance.is_none() { crashes(&mut rng, place) } else { Vec::new() };
        let disk = MemoryDisk::with_copies(&place.copies);
        let upgraded_at = if place.plan.upgrades { upgrade(seed, index, place) } else { Timestamp::MAX };
        if place.plan.upgrades {
            crashes.push(Crash { at: upgraded_at, down: AFTER_ERROR, loses_disk: false });
            crashes.sort_by_key(|crash| crash.at);
        }
        let body = Body {
            dies_at: Timestamp::MAX,
            is_dead: false,
            form: 1,
            appends: false,
            shown: None,
            followed: 0,
            read: 0,
            ahead: None,
            may_be_ahead: false,
            said_ahead: false,
            is_to_be_wiped: false,
            offset: Duration::from_secs(10_000),
            rate: 1000,
            stood: Duration::ZERO,
            skew: SignedDuration::ZERO,
            disk: disk.clone(),
        };
        let handle = Arc::new(NodeHandle { place: place.clone(), index, body: Mutex::new(body) });
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kelos-sim-{}-{number}", std::process::id()));
        NodeLife { handle, rng, disk, folder, crashes, upgraded_at }
    }

    /// Lives until the simulation is over.
    pub(super) fn run(mut self) {
        let handle = self.handle.clone();
        let place = handle.place.clone();
        place.relay.join(handle.index);
        if let Err(error) = std::fs::create_dir_all(&self.folder) {
            place.fail(format!("failed to make {}: {error}", self.folder.display()));
        }
        while !place.relay.is_over() {
            let crash = self.begin();
            if let Err(error) = self.live() {
                handle.bears(&error);
            }
            if place.relay.is_over() {
                return;
            }
            let is_to_be_wiped = handle.body().is_to_be_wiped;
            let down = crash.as_ref().filter(|_| !is_to_be_wiped).map_or(LOOK, |crash| crash.down);
            // A crash that was due while the node was down comes late, and would last beyond the faults.
            let most = place.workload.end.duration_since(handle.now()).max(LOOK);
            place.relay.sleep(handle.index, handle.now() + down.min(most));
            let mut body = handle.body();
            if body.is_to_be_wiped || crash.is_some_and(|crash| crash.loses_disk) {
                self.disk = MemoryDisk::with_copies(&place.copies);
                body.disk = self.disk.clone();
                (body.ahead, body.may_be_ahead, body.said_ahead) = (None, false, false);
                (body.followed, body.read, body.is_to_be_wiped) = (0, 0, false);
            }
        }
    }

    /// Starts a process: its clocks are others.
    fn begin(&mut self) -> Option<Crash> {
        let now = self.handle.now();
        let crash = (!self.crashes.is_empty()).then(|| self.crashes.remove(0));
        let is_faulty = now < self.handle.place.workload.end && self.handle.place.plan.hindrance.is_none();
        let mut body = self.handle.body();
        body.is_dead = false;
        body.form = if now >= self.upgraded_at { NEWEST } else { 1 };
        body.dies_at = crash.as_ref().map_or(Timestamp::MAX, |crash| crash.at.max(now));
        body.offset = Duration::from_secs(100_000 + self.rng.below(100_000));
        body.rate = 900 + self.rng.below(201);
        body.skew = match is_faulty && self.rng.percent(50) {
            true => SignedDuration::from_secs(self.rng.between(-3000, 3000)),
            false => SignedDuration::ZERO,
        };
        crash
    }

    /// One process, from its start to its end.
    fn live(&mut self) -> Result<(), StoreError> {
        let mut journal = loop {
            match self.open() {
                Ok(journal) => break journal,
                Err(error) => self.handle.bears(&error),
            }
            self.handle.rest(self.handle.now() + AFTER_ERROR);
            if !self.handle.is_alive() {
                return Ok(());
            }
        };
        while self.handle.is_alive() {
            let wait = match self.look(&mut journal) {
                Ok(wait) => wait,
                Err(error) => {
                    self.handle.bears(&error);
                    AFTER_ERROR
                }
            };
            if self.rng.percent(1) {
                self.portray(&mut journal)?;
            }
            if self.handle.is_alive() {
                self.handle.rest(self.handle.now() + wait);
            }
        }
        self.portray(&mut journal)?;
        let followed = self.handle.followed();
        let mut body = self.handle.body();
        (body.shown, body.followed) = (None, followed);
        Ok(())
    }

    fn open(&mut self) -> Result<NodeJournal, StoreError> {
        let handle = self.handle.clone();
        let plant = handle.place.plan.plant;
        // The first node keeps to the times, so that there is somebody to be overtaken.
        let is_early = plant == Some(Plant::EarlyChallenge) && handle.index > 0;
        let timing =
            if is_early { LeaseTiming { lasts: TIMING.margin, margin: Duration::ZERO, ..TIMING } } else { TIMING };
        let mut nonces = Rng::new(self.rng.bits());
        let (clock, wall) = (handle.clone(), handle.clone());
        let form = handle.body().form;
        let (inner, shown) = LogJournal::inline(LogParts {
            store: Arc::new(NodeLogStore(handle.clone())),
            state: MemoryStore::on(&self.disk),
            folder: self.folder.clone(),
            holder: Holder { node: format!("n{}", handle.index), ..Holder::default() },
            form,
            timing,
            monotonic: Arc::new(move || clock.monotonic()),
            wall: Arc::new(move || wall.clock().as_millisecond()),
            nonce: Box::new(move || nonces.bits()),
        })?;
        handle.body().shown = Some(shown.clone());
        Ok(NodeJournal { inner, shown, always_holds: plant == Some(Plant::AlwaysHolds) })
    }

    /// Asks for the lease once, and leads while it is held. Returns how long to wait before the next time.
    fn look(&mut self, journal: &mut NodeJournal) -> Result<SignedDuration, StoreError> {
        let Some(lease) = journal.ask(&self.handle)? else { return Ok(LOOK) };
        let view = NodeView { handle: self.handle.clone(), rng: &mut self.rng, disk: &self.disk };
        match reign::lead(view, journal, lease) {
            Ok(()) => Ok(LOOK),
            Err(TurnError::Store(error)) => Err(error),
            Err(TurnError::Broken(breach)) => {
                self.handle.place.fail(format!("an invariant is broken: {breach}"));
                Ok(LOOK)
            }
            Err(TurnError::Unreadable(unreadable)) => {
                self.handle.place.fail(format!("failed to {unreadable}"));
                Ok(LOOK)
            }
        }
    }

    /// Notes the state of the node in the ledger. That of one that is ahead of the log is its own.
    fn portray(&mut self, journal: &mut NodeJournal) -> Result<(), StoreError> {
        if self.handle.is_or_gets_ahead() {
            return Ok(());
        }
        let position = journal.shown.status().followed;
        let reigns = journal.shown.reigns(usize::MAX)?;
        let digest = portrait(&mut journal.inner, &reigns)?;
        self.handle.place.common().ledger.portray(self.handle.index, position, digest);
        Ok(())
    }
}

/// When a node is upgraded: while faults go on, and not all at the same time.
fn upgrade(seed: u64, index: usize, place: &Site) -> Timestamp {
    let span = place.workload.end.as_second() - place.workload.start.as_second();
    let mut rng = Rng::new(seed ^ (0x0F02 << 8) ^ index as u64);
    place.workload.start + SignedDuration::from_secs(rng.between(span / 10, span * 9 / 10))
}

fn crashes(rng: &mut Rng, place: &Site) -> Vec<Crash> {
    let span = place.workload.end.as_second() - place.workload.start.as_second();
    let count = rng.below(5);
    let mut crash = || {
        let at = place.workload.start + SignedDuration::from_secs(rng.between(0, span));
        let down =
            SignedDuration::from_secs(if rng.percent(60) { rng.between(1, 300) } else { rng.between(1, 4 * 3600) });
        Crash { at, down, loses_disk: rng.percent(30) }
    };
    let mut crashes: Vec<Crash> = (0..count).map(|_| crash()).collect();
    crashes.sort_by_key(|crash| crash.at);
    crashes
}

impl Drop for NodeLife {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
