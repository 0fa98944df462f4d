//! The offers of workers. They are only in memory: after a change of leader the workers offer again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::{SlotRef, WorkflowId};

use crate::workers::Offer;

/// The current offers of all workers.
#[derive(Default)]
pub(crate) struct Offers {
    by_worker: BTreeMap<Arc<str>, Offer>,
    by_workflow: BTreeMap<WorkflowId, BTreeSet<Arc<str>>>,
}

/// A worker that takes a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taker {
    pub(crate) worker: Arc<str>,
    pub(crate) attempts: Option<u32>,
}

impl Offers {
    /// Forgets the offer of a worker. Returns it, and one of its workflows for which it was not listed, which is a breach.
    pub(crate) fn forget(&mut self, worker: &Arc<str>) -> (Option<Offer>, Option<WorkflowId>) {
        // Most new workers have made no offer before.
        let Some(offer) = self.by_worker.remove(worker) else { return (None, None) };
        let mut unlisted = None;
        for id in &offer.workflows {
            let workers = self.by_workflow.get_mut(id);
            if !workers.is_some_and(|workers| workers.remove(worker)) {
                unlisted = Some(id.clone());
            }
            if self.by_workflow.get(id).is_some_and(BTreeSet::is_empty) {
                self.by_workflow.remove(id);
            }
        }
        (Some(offer), unlisted)
    }

    pub(crate) fn note(&mut self, worker: Arc<str>, offer: Offer) {
        for id in &offer.workflows {
            self.by_workflow.entry(id.clone()).or_default().insert(worker.clone());
        }
        self.by_worker.insert(worker, offer);
    }

    fn of(&self, id: &WorkflowId) -> impl Iterator<Item = (&Arc<str>, &Offer)> {
        let workers = self.by_workflow.get(id).into_iter().flatten();
        workers.filter_map(|worker| Some((worker, self.by_worker.get(worker)?)))
    }

    /// Whether any worker serves a workflow, even a busy one.
    pub(crate) fn serves(&self, id: &WorkflowId) -> bool {
        self.by_workflow.contains_key(id)
    }

    /// Whether workers serve a workflow and all of them are busy.
    pub(crate) fn are_busy(&self, id: &WorkflowId) -> bool {
        self.serves(id) && self.of(id).all(|(_, offer)| offer.free == 0)
    }

    /// The workflows that a worker serves, if it is busy.
    pub(crate) fn of_busy(&self, worker: &Arc<str>) -> impl Iterator<Item = &WorkflowId> {
        let offer = self.by_worker.get(worker).filter(|offer| offer.free == 0);
        offer.into_iter().flat_map(|offer| &offer.workflows)
    }

    /// The number of further jobs of a workflow that workers offer to run, without naming one.
    pub(crate) fn free_for(&self, id: &WorkflowId) -> u32 {
        self.of(id).filter(|(_, offer)| offer.job.is_none()).fold(0, |sum, (_, offer)| sum.saturating_add(offer.free))
    }

    /// The jobs that workers offer to run by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &SlotRef> {
        self.by_worker.values().filter(|offer| offer.free > 0).filter_map(|offer| offer.job.as_ref())
    }

    /// Assigns a job to a worker: to one that asks for this job by name, or else to the one with the most room.
    pub(crate) fn take(&mut self, slot: &SlotRef) -> Option<Taker> {
        let fits =
            |(_, offer): &(&Arc<str>, &Offer)| offer.free > 0 && offer.job.as_ref().is_none_or(|job| job == slot);
        let best = self.of(&slot.workflow).filter(fits).max_by_key(|(_, offer)| (offer.job.is_some(), offer.free));
        let (worker, attempts) = best.map(|(worker, offer)| (worker.clone(), offer.attempts))?;
        let offer = self.by_worker.get_mut(&worker)?;
        offer.free -= 1;
        Some(Taker { worker, attempts })
    }
}
