//! Submitted jobs.

use std::collections::BTreeSet;

use kelos_model::{Actor, Arguments, SlotRef, SlotState};

use crate::downstream::Tree;
use crate::past::PastOf;
use crate::warrant::Warrant;
use crate::{Core, DownstreamRequest, Refusal, SubmitOutcome, SubmitRequest};

impl Core {
    /// Brings submitted jobs into memory, and the jobs downstream of those that are reopened.
    pub(crate) fn recall_submitted<E>(&mut self, request: &SubmitRequest, past: PastOf<'_, E>) -> Result<(), E> {
        self.slots.recall(request.jobs.iter().cloned(), past)?;
        if !request.readd {
            return Ok(());
        }
        let has_ended = |job: &&SlotRef| self.slots.state(job).is_some_and(SlotState::is_final);
        let ended: Vec<SlotRef> = request.jobs.iter().filter(has_ended).cloned().collect();
        let opened: BTreeSet<SlotRef> = request.jobs.iter().cloned().collect();
        self.recall_downstream(&ended, &opened, past)
    }

    pub(crate) fn submit(
        &mut self,
        request: &SubmitRequest,
        by: &Actor,
        warrant: Option<&Warrant>,
    ) -> Result<Vec<SubmitOutcome>, Refusal> {
        let mut arguments = Vec::new();
        for job in &request.jobs {
            self.check_openable(job)?;
            arguments.push(self.accepted_by(job, &request.arguments)?);
            if warrant.is_some() && self.is_reopened(job, request) {
                self.check_spread(warrant, self.reopened_with(job).changed())?;
            }
        }
        let jobs = request.jobs.iter().zip(arguments);
        Ok(jobs.map(|(job, arguments)| self.submit_one(job, &arguments, request, by)).collect())
    }

    /// Whether a job has ended and is reopened.
    fn is_reopened(&self, job: &SlotRef, request: &SubmitRequest) -> bool {
        request.readd && self.slots.state(job).is_some_and(SlotState::is_final)
    }

    /// A job that is reopened together with the jobs downstream of it. Live runs continue; waiting jobs are evaluated again anyway.
    fn reopened_with(&self, job: &SlotRef) -> Tree {
        Tree::of(self.dependents().tree(job), &self.slots).without_live()
    }

    fn submit_one(
        &mut self,
        job: &SlotRef,
        arguments: &Arguments,
        request: &SubmitRequest,
        by: &Actor,
    ) -> SubmitOutcome {
        let outcome = self.open_submitted(job, request, by);
        if !matches!(outcome, SubmitOutcome::Existed(_)) {
            self.set_arguments(job, by, arguments);
        }
        outcome
    }

    fn open_submitted(&mut self, job: &SlotRef, request: &SubmitRequest, by: &Actor) -> SubmitOutcome {
        match self.slots.state(job) {
            None => {
                self.plan_asked(job, request.priority, Some(by.clone()), request.reason.clone());
                SubmitOutcome::Opened
            }
            Some(_) if self.is_reopened(job, request) => {
                let tree = self.reopened_with(job);
                let reason = request.reason.clone();
                let (slot, arguments) = (job.clone(), Arguments::new());
                let asked = DownstreamRequest { slot, arguments, reason, kill_live: false, dry_run: false };
                self.open_tree(&tree, &asked, request.priority, by);
                SubmitOutcome::Reopened { descendants: tree.descendants() }
            }
            Some(state) => SubmitOutcome::Existed(state),
        }
    }
}
