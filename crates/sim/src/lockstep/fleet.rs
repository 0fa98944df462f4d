//! The workers of a seed in lockstep: they start, offer as many runs as they have room for, and end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kelos_core::Offer;
use kelos_model::{RunId, WorkflowId};

use crate::workload::{WorkerPlan, Workload};

/// All workers, and their runs.
pub(super) struct Fleet {
    plans: Vec<WorkerPlan>,
    present: BTreeSet<Arc<str>>,
    busy: BTreeMap<RunId, Arc<str>>,
}

/// The start or the end of a worker.
pub(super) struct Turnout {
    worker: Arc<str>,
    comes: bool,
}

impl Fleet {
    pub(super) fn new(workload: &Workload) -> Fleet {
        Fleet { plans: workload.workers.clone(), present: BTreeSet::new(), busy: BTreeMap::new() }
    }

    /// The starts and ends of workers. A worker that is silent can't be told from one that has ended.
    pub(super) fn turnouts(&self) -> impl Iterator<Item = (Timestamp, Turnout)> {
        self.plans.iter().flat_map(|plan| {
            let end = plan.dies.into_iter().chain(plan.leaves).min();
            let silence = plan.silent.filter(|(from, until)| plan.born <= *from && end.is_none_or(|end| *until < end));
            let turns = [
                Some((plan.born, true)),
                silence.map(|(from, _)| (from, false)),
                silence.map(|(_, until)| (until, true)),
            ];
            let turns = turns.into_iter().chain([end.map(|end| (end.max(plan.born), false))]).flatten();
            turns.map(|(at, comes)| (at, Turnout { worker: plan.name.clone(), comes }))
        })
    }

    pub(super) fn turn_out(&mut self, turnout: &Turnout) -> Arc<str> {
        if turnout.comes {
            self.present.insert(turnout.worker.clone());
        } else {
            self.present.remove(&turnout.worker);
        }
        turnout.worker.clone()
    }

    /// The names of the live workers.
    pub(super) fn present(&self) -> Vec<Arc<str>> {
        self.present.iter().cloned().collect()
    }

    /// The current offer of a worker.
    pub(super) fn offer(&self, worker: &Arc<str>) -> Option<Offer> {
        let plan = self.plans.iter().find(|plan| plan.name == *worker).filter(|_| self.present.contains(worker))?;
        let busy = self.busy.values().filter(|one| *one == worker).count();
        let free = plan.slots.saturating_sub(u32::try_from(busy).unwrap_or(u32::MAX));
        let workflows: BTreeSet<WorkflowId> = plan.workflows.clone();
        Some(Offer {
            workflows,
            labels: plan.labels.clone(),
            job: plan.job.clone(),
            free,
            attempts: plan.attempts,
            outdated: BTreeSet::new(),
        })
    }

    pub(super) fn started(&mut self, run: &RunId, worker: Option<&Arc<str>>) {
        self.busy.extend(worker.map(|worker| (run.clone(), worker.clone())));
    }

    /// The worker of a run that has ended.
    pub(super) fn ended(&mut self, run: &RunId) -> Option<Arc<str>> {
        self.busy.remove(run)
    }
}
