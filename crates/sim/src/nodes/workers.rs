//! Workers on machines of their own, to which the nodes leave runs: they are killed and started again, lose questions and answers, and
//! end their commands by themselves once they have heard nothing for the time of their lease.
//!
//! The hub of a leader knows what the log tells and what workers say to it. It dies with the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_core::Offer;
use kelos_model::RunId;

use crate::rng::Rng;
use crate::workload::{WORKED, Workload};
use crate::world::World;

/// How long a command goes on without an answer of a leader.
const LEASE: SignedDuration = SignedDuration::from_secs(900);

/// How long a leader waits until such a command is surely over.
pub(super) const SURELY_OVER: SignedDuration = SignedDuration::from_secs(960);

/// The number of runs that a worker accepts at a time.
const AT_A_TIME: u32 = 40;

/// A machine with a worker.
#[derive(Debug)]
pub(super) struct WorkerMachine {
    pub(super) name: Arc<str>,
    /// When its process is killed, and how long none runs.
    kills: Vec<(Timestamp, SignedDuration)>,
    down_until: Timestamp,
    /// When it last asked something that was answered.
    pub(super) answered: Timestamp,
    /// The newest epoch of a leader that it has heard of.
    pub(super) epoch: u64,
    /// The runs on its disk, and whether each has begun.
    pub(super) held: BTreeMap<RunId, bool>,
}

impl WorkerMachine {
    /// The machines of a seed.
    pub(super) fn some(seed: u64, workload: &Workload) -> Vec<WorkerMachine> {
        let mut rng = Rng::new(seed ^ 0x3041);
        let count = rng.between(1, 3);
        let span = workload.end.as_second() - workload.start.as_second();
        let mut machine = |number: i64| {
            let mut kill = || {
                let at = workload.start + SignedDuration::from_secs(rng.between(0, span));
                // Shorter than a lease, about as long, or much longer.
                let most = *rng.pick(&[300, 1200, 7200]);
                let down = SignedDuration::from_secs(rng.between(1, most)).min(workload.end.duration_since(at));
                (at, down)
            };
            let mut kills: Vec<_> = (0..6).map(|_| kill()).collect();
            kills.sort();
            let (down_until, answered) = (workload.start, workload.start);
            WorkerMachine {
                name: format!("w{number}").into(),
                kills,
                down_until,
                answered,
                epoch: 0,
                held: BTreeMap::new(),
            }
        };
        (1..=count).map(&mut machine).collect()
    }

    /// Lets time pass until now: its process is killed, and commands end whose lease is over.
    pub(super) fn live(&mut self, world: &mut World, now: Timestamp) {
        while let Some((at, down)) = self.kills.first().copied().filter(|(at, _)| *at <= now) {
            self.kills.remove(0);
            self.down_until = self.down_until.max(at + down);
        }
        let over = self.answered + LEASE;
        if over < now {
            for run in self.held.iter().filter(|(_, begun)| **begun).map(|(run, _)| run) {
                world.cancel(run, over);
            }
        }
    }

    /// Whether it has heard of a leader within its lease, so that its commands go on.
    pub(super) fn is_connected(&self, now: Timestamp) -> bool {
        self.is_up(now) && now <= self.answered + LEASE
    }

    /// Has its process end at this moment.
    pub(super) fn dies(&mut self, until: Timestamp) {
        self.down_until = self.down_until.max(until);
    }

    pub(super) fn is_up(&self, now: Timestamp) -> bool {
        self.down_until <= now
    }
}

/// Leaves the runs of all workflows but those of flows to workers.
pub(super) fn leave_to_workers(workload: &mut Workload) {
    for workflow in workload.definitions.iter_mut().flat_map(|(_, set)| set).filter(|one| one.flow.is_none()) {
        let job = &mut Arc::make_mut(workflow).job;
        job.executor = WORKED.to_owned();
        job.runs_on.clear();
    }
    workload.config.by_workers = [WORKED.to_owned()].into();
}

/// The place of a run, as the hub of a leader knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunPlace {
    /// At the worker that it was dispatched to, which may know of it or not.
    Given { worker: Arc<str>, is_told: bool },
    /// An earlier leader gave it to this worker. If nobody said that it began, the worker's word without it says that it did not.
    Handed { worker: Arc<str>, was_confirmed: bool },
}

impl RunPlace {
    pub(super) fn worker(&self) -> &Arc<str> {
        match self {
            RunPlace::Given { worker, .. } | RunPlace::Handed { worker, .. } => worker,
        }
    }
}

/// A worker as the hub knows it.
#[derive(Debug)]
pub(super) struct WorkerSession {
    pub(super) heard: Timestamp,
    pub(super) believed: Option<u32>,
}

/// The hub of a leader.
#[derive(Debug, Default)]
pub(super) struct NodeHub {
    pub(super) sessions: BTreeMap<Arc<str>, WorkerSession>,
    pub(super) runs: BTreeMap<RunId, RunPlace>,
    /// The runs that are to end.
    pub(super) cancelled: BTreeSet<RunId>,
}

impl NodeHub {
    /// The offer of a worker, if the core has another one.
    pub(super) fn offer(&mut self, worker: &Arc<str>, workload: &Workload) -> Option<Offer> {
        let busy = self.runs.values().filter(|place| place.worker() == worker).count();
        let free = AT_A_TIME.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX));
        let session = self.sessions.get_mut(worker)?;
        let is_news = session.believed.replace(free) != Some(free);
        let workflows = workload.definitions.iter().flat_map(|(_, set)| set).map(|one| one.id.clone()).collect();
        is_news.then(|| Offer { workflows, free, ..Offer::default() })
    }

    /// Notes that a run was dispatched to a worker; false if that is not there.
    pub(super) fn give(&mut self, run: &RunId, worker: &Arc<str>) -> bool {
        let Some(session) = self.sessions.get_mut(worker) else { return false };
        session.believed = session.believed.map(|free| free.saturating_sub(1));
        let place = RunPlace::Given { worker: worker.clone(), is_told: false };
        self.runs.entry(run.clone()).or_insert(place);
        true
    }

    /// The runs at a worker.
    pub(super) fn at(&self, worker: &Arc<str>) -> Vec<(RunId, RunPlace)> {
        let its = self.runs.iter().filter(|(_, place)| place.worker() == worker);
        its.map(|(run, place)| (run.clone(), place.clone())).collect()
    }

    pub(super) fn forget(&mut self, run: &RunId) {
        self.runs.remove(run);
        self.cancelled.remove(run);
    }
}
