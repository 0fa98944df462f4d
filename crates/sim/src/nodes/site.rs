//! The things that nodes of a simulation share: the time, the log, the outside, and the ledger.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kelos_core::Ask;
use kelos_store::MemoryCopies;
use kelos_store::log::{LeaseTiming, Log, LogEntry, LogError, MemoryLogStore};

use super::ledger::Ledger;
use super::relay::Relay;
use super::workers::WorkerMachine;
use crate::Figures;
use crate::rng::Rng;
use crate::workload::Workload;
use crate::world::World;

/// The times of the lease: minutes, since a workload takes hours.
pub(super) const TIMING: LeaseTiming = LeaseTiming {
    lasts: Duration::from_secs(600),
    renew: Duration::from_secs(120),
    margin: Duration::from_secs(120),
    look: Duration::from_secs(60),
};

/// A bug that is put into the nodes, or into the log, on purpose. The judges must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// A plug is acknowledged, and written only with the first turn.
    LatePlug,
    /// A renewed lease is trusted from the moment of the answer on, not from that of the request.
    TrustFromAnswer,
    /// Challengers wait too short a time, and the log appends whatever it gets.
    EarlyChallenge,
    /// A leader takes it for granted that its lease is held.
    AlwaysHolds,
    /// A leader hears workers before it has restored their runs, and takes their silence for the word that a run never began.
    HearsTooEarly,
    /// A leader that was deposed tells the workers that wait there that their runs were taken away.
    AnswersTooLate,
    /// A worker forgets a result that the leader has heard and not stored.
    ForgetsTooEarly,
}

impl Plant {
    /// Whether it is a bug of workers and those who hear them.
    pub(super) fn is_of_workers(self) -> bool {
        matches!(self, Plant::HearsTooEarly | Plant::AnswersTooLate | Plant::ForgetsTooEarly)
    }
}

/// Something that keeps a leader from doing its work while it goes on renewing its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// It can't write its state.
    FullDisk,
    /// No other node reaches it.
    OutOfReach,
    /// Its clock is put ahead of that of the store.
    WrongClock,
}

/// The choices of a seed about the nodes as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) nodes: usize,
    /// Whether an entry that was sent under an epoch in force lands wherever its position fits, as in a store of numbered objects.
    pub(super) is_fenced_by_position: bool,
    /// Whether the store loses its last entries once.
    pub(super) loses: bool,
    /// Whether the nodes are upgraded one after the other, and the form of entries is raised.
    pub(super) upgrades: bool,
    /// Whether runs are left to workers.
    pub(super) has_workers: bool,
    pub(super) plant: Option<Plant>,
    /// The fault that befalls each leader, one after the other; nothing else goes wrong then.
    pub(super) hindrance: Option<Hindrance>,
}

/// The things that all nodes share.
pub(super) struct Site {
    pub(super) relay: Relay,
    pub(super) log: MemoryLogStore,
    pub(super) copies: MemoryCopies,
    pub(super) plan: Plan,
    pub(super) workload: Workload,
    common: Mutex<Common>,
}

/// An append that is still on its way although its sender has given up waiting.
pub(super) struct LateEntry {
    pub(super) at: Timestamp,
    pub(super) entry: LogEntry,
    /// Whether its epoch was in force when the store received it.
    pub(super) is_in_force: bool,
}

/// The part that changes. Whoever holds it does not sleep.
pub(super) struct Common {
    pub(super) rng: Rng,
    /// How many of a thousand requests have each kind of fault.
    pub(super) per_mille: u64,
    pub(super) world: World,
    /// The machines with workers; none if the nodes have runs done by executors of their own.
    pub(super) workers: Vec<WorkerMachine>,
    pub(super) asks: VecDeque<(Timestamp, u64, Ask)>,
    pub(super) late: Vec<LateEntry>,
    /// The epochs of entries, where the log checks none.
    pub(super) epochs: BTreeMap<u64, u64>,
    pub(super) ledger: Ledger,
    pub(super) figures: Figures,
    pub(super) failure: Option<String>,
    /// The last entry that was kept when the store lost its end.
    pub(super) lost_after: Option<u64>,
}

impl Common {
    /// The length of a pause: often short, and often longer than a lease lasts.
    pub(super) fn pause(&mut self) -> SignedDuration {
        let millis = match self.rng.below(3) {
            0 => self.rng.between(1, 20_000),
            1 => self.rng.between(20_000, 600_000),
            _ => self.rng.between(300_000, 1_800_000),
        };
        SignedDuration::from_millis(millis)
    }
}

impl Site {
    pub(super) fn new(seed: u64, workload: Workload, plan: Plan, per_mille: u64) -> Site {
        let asks = workload.asks.iter().cloned().enumerate();
        let common = Common {
            rng: Rng::new(seed ^ 0x40DE5),
            per_mille,
            world: World::new(seed),
            workers: if plan.has_workers { WorkerMachine::some(seed, &workload) } else { Vec::new() },
            asks: asks.map(|(token, (at, ask))| (at, token as u64, ask)).collect(),
            late: Vec::new(),
            epochs: BTreeMap::new(),
            ledger: Ledger::default(),
            figures: Figures::default(),
            failure: None,
            lost_after: None,
        };
        Site {
            // The last one is not a node, but what happens around them.
            relay: Relay::new(plan.nodes + 1, workload.start),
            log: MemoryLogStore::new(),
            copies: MemoryCopies::default(),
            plan,
            workload,
            common: Mutex::new(common),
        }
    }

    pub(super) fn common(&self) -> MutexGuard<'_, Common> {
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the simulation with the first finding.
    pub(super) fn fail(&self, wrong: String) {
        self.common().failure.get_or_insert(wrong);
        self.relay.end();
    }
}

impl Site {
    /// Writes what was on its way until now, as far as it still fits.
    pub(super) fn land(&self) {
        let now = self.relay.now();
        let due: Vec<LateEntry> = {
            let mut common = self.common();
            let (due, later) = std::mem::take(&mut common.late).into_iter().partition(|late| late.at <= now);
            common.late = later;
            due
        };
        for LateEntry { entry, is_in_force, .. } in due {
            // The asker may have gone.
            let _ = self.append(entry, is_in_force);
        }
    }

    /// Writes an entry, and notes it in the ledger. A store that puts numbered objects checks the epoch when it receives the
    /// entry, and only the position when it writes it.
    pub(super) fn append(&self, entry: LogEntry, is_in_force: bool) -> Result<(), LogError> {
        let mut log = self.log.connect();
        let current = log.lease()?.epoch;
        let is_unfenced = self.plan.plant == Some(Plant::EarlyChallenge);
        let epoch = if is_unfenced || self.plan.is_fenced_by_position && is_in_force { current } else { entry.epoch };
        let position = if is_unfenced { log.ends()?.last + 1 } else { entry.position };
        log.append(epoch, position, &entry.body)?;
        let entry = LogEntry { position, ..entry };
        let mut common = self.common();
        common.epochs.insert(position, entry.epoch);
        if let Err(wrong) = common.ledger.append(self.relay.now(), entry) {
            drop(common);
            self.fail(wrong);
        }
        Ok(())
    }
}
