//! Workers, and what they offer to do. Only memory knows: whoever leads next hears from them again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::{SlotRef, WorkflowId};

use crate::workers::Offer;

/// What all workers would do now.
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
    /// Forgets what a worker offered. Gives a workflow of that for which it was not listed: there is never one.
    pub(crate) fn forget(&mut self, worker: &Arc<str>) -> Option<WorkflowId> {
        // Most workers that come have offered nothing before.
        let offer = self.by_worker.remove(worker)?;
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
        unlisted
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

    /// Whether any worker serves a workflow, be it busy.
    pub(crate) fn serves(&self, id: &WorkflowId) -> bool {
        self.by_workflow.contains_key(id)
    }

    /// Whether workers serve a workflow, and none of them would do one more of its jobs.
    pub(crate) fn are_busy(&self, id: &WorkflowId) -> bool {
        self.serves(id) && self.of(id).all(|(_, offer)| offer.free == 0)
    }

    /// The workflows that a worker serves, where it would do no more of their jobs now.
    pub(crate) fn of_busy(&self, worker: &Arc<str>) -> impl Iterator<Item = &WorkflowId> {
        let offer = self.by_worker.get(worker).filter(|offer| offer.free == 0);
        offer.into_iter().flat_map(|offer| &offer.workflows)
    }

    /// How many more jobs of a workflow workers would do, whichever they are.
    pub(crate) fn free_for(&self, id: &WorkflowId) -> u32 {
        self.of(id).filter(|(_, offer)| offer.job.is_none()).fold(0, |sum, (_, offer)| sum.saturating_add(offer.free))
    }

    /// The jobs that workers offer to do and no others.
    pub(crate) fn named(&self) -> impl Iterator<Item = &SlotRef> {
        self.by_worker.values().filter(|offer| offer.free > 0).filter_map(|offer| offer.job.as_ref())
    }

    /// Gives a job to a worker: to one that waits for this very job, or to the one with most room.
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
