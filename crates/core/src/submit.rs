//! Jobs that somebody submits.

use std::collections::BTreeSet;

use kelos_model::{Recall, SlotRef};

use crate::{Core, Done, DownstreamRequest, Reply, SubmitRequest, Submitted};

impl Core {
    /// What the store must be asked before jobs are submitted.
    pub(crate) fn missing_submitted(&self, request: &SubmitRequest) -> Option<Recall> {
        let mut unknown: Vec<SlotRef> = request.jobs.iter().filter(|job| !self.is_known(job)).cloned().collect();
        if unknown.is_empty() && request.readd {
            let ended = request.jobs.iter().filter(|job| self.live(job).is_some_and(|live| live.slot.state.is_final()));
            let opened: BTreeSet<SlotRef> = request.jobs.iter().cloned().collect();
            unknown = ended.flat_map(|job| self.downstream(job, &opened).unknown).collect();
            unknown.sort();
            unknown.dedup();
        }
        (!unknown.is_empty()).then_some(Recall::Slots(unknown))
    }

    pub(crate) fn submit(&mut self, request: &SubmitRequest, by: &str) -> Reply {
        for job in &request.jobs {
            self.check_openable(job)?;
        }
        Ok(Done::Submitted(request.jobs.iter().map(|job| self.submit_one(job, request, by)).collect()))
    }

    fn submit_one(&mut self, job: &SlotRef, request: &SubmitRequest, by: &str) -> Submitted {
        match self.live(job).map(|live| live.slot.state) {
            None => {
                self.plan_asked(job, request.priority, Some(by.to_owned()), request.reason.clone());
                Submitted::Opened
            }
            Some(state) if state.is_final() && request.readd => self.readd(job, request, by),
            Some(state) => Submitted::Existed(state),
        }
    }

    /// Opens a job again with what depends on it. What runs goes on; what waits looks again anyway.
    fn readd(&mut self, job: &SlotRef, request: &SubmitRequest, by: &str) -> Submitted {
        let mut tree = self.sort_tree(self.downstream(job, &BTreeSet::new()).slots);
        tree.killed.clear();
        let descendants = u32::try_from(tree.reopened.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let asked =
            DownstreamRequest { slot: job.clone(), reason: request.reason.clone(), kill_live: false, dry_run: false };
        self.open_tree(&tree, &asked, request.priority, by);
        Submitted::Reopened { descendants }
    }
}
