//! The offers of workers. They are only in memory: after a change of leader the workers offer again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::workers::Label;
use kelos_model::{SlotRef, WorkflowId};

use crate::workers::Offer;

/// The current offers of all workers.
#[derive(Default)]
pub(crate) struct Offers {
    by_worker: BTreeMap<Arc<str>, Offer>,
    by_workflow: BTreeMap<WorkflowId, BTreeSet<Arc<str>>>,
}

/// The workers for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkersOf {
    /// It needs none, or one of them has room.
    Enough,
    /// It needs one, and none serves its workflow. So many have its functions in another version than the one in force.
    None(u32),
    /// So many serve its workflow, and none of them has the labels that it needs.
    OtherLabels(u32),
    /// All that may run it are busy.
    Busy,
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

    /// The workers for the jobs of a workflow that need these labels.
    pub(crate) fn standing(&self, id: &WorkflowId, labels: &BTreeSet<Label>) -> WorkersOf {
        let mut fitting = self.of(id).filter(|(_, offer)| labels.is_subset(&offer.labels)).peekable();
        if fitting.peek().is_some() {
            return if fitting.all(|(_, offer)| offer.free == 0) { WorkersOf::Busy } else { WorkersOf::Enough };
        }
        let served = u32::try_from(self.of(id).count()).unwrap_or(u32::MAX);
        if served > 0 {
            return WorkersOf::OtherLabels(served);
        }
        let outdated = self.by_worker.values().filter(|offer| offer.outdated.contains(id));
        WorkersOf::None(u32::try_from(outdated.count()).unwrap_or(u32::MAX))
    }

    /// The workflows that a worker serves, if it is busy.
    pub(crate) fn of_busy(&self, worker: &Arc<str>) -> impl Iterator<Item = &WorkflowId> {
        let offer = self.by_worker.get(worker).filter(|offer| offer.free == 0);
        offer.into_iter().flat_map(|offer| &offer.workflows)
    }

    /// The number of further jobs of a workflow that workers with these labels offer to run, without naming one.
    pub(crate) fn free_for(&self, id: &WorkflowId, labels: &BTreeSet<Label>) -> u32 {
        let fits = |offer: &Offer| offer.job.is_none() && labels.is_subset(&offer.labels);
        let fitting = self.of(id).filter(|(_, offer)| fits(offer));
        fitting.fold(0, |sum, (_, offer)| sum.saturating_add(offer.free))
    }

    /// The jobs that workers offer to run by name, with the labels of these workers.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&SlotRef, &BTreeSet<Label>)> {
        let free = self.by_worker.values().filter(|offer| offer.free > 0);
        free.filter_map(|offer| Some((offer.job.as_ref()?, &offer.labels)))
    }

    /// Assigns a job to a worker with the labels that it needs: to one that asks for this job by name, or else to the one with the most
    /// room.
    pub(crate) fn take(&mut self, slot: &SlotRef, labels: &BTreeSet<Label>) -> Option<Taker> {
        let fits = |(_, offer): &(&Arc<str>, &Offer)| {
            let takes = offer.free > 0 && offer.job.as_ref().is_none_or(|job| job == slot);
            takes && labels.is_subset(&offer.labels)
        };
        let best = self.of(&slot.workflow).filter(fits).max_by_key(|(_, offer)| (offer.job.is_some(), offer.free));
        let (worker, attempts) = best.map(|(worker, offer)| (worker.clone(), offer.attempts))?;
        let offer = self.by_worker.get_mut(&worker)?;
        offer.free -= 1;
        Some(Taker { worker, attempts })
    }
}
