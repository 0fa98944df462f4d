//! Dispatch: slots that were granted their permits start a run.

use std::sync::Arc;

use kelos_model::arguments::kept_arguments;
use kelos_model::{Outcome, RunId, SlotEvent, SlotKey, SlotRef, WorkflowId};

use crate::permits::{Grant, Terms};
use crate::{Command, Core, WorkflowFilter};

impl Core {
    /// Starts runs for all slots that are granted their permits.
    pub(crate) fn dispatch(&mut self, only: &WorkflowFilter) {
        self.refuse_requests();
        let (workflows, slots) = (&self.workflows, &self.slots);
        // A killed run that has not ended yet blocks its slot; so does a time that is no longer in the schedule.
        let is_ready = |id: &WorkflowId, key: &_| {
            let live = slots.get(&SlotRef::new(id.clone(), SlotKey::clone(key)));
            live.filter(|live| !live.slot.run_alive)
                .is_some_and(|live| workflows.get(id).is_some_and(|one| one.dormant(key, Some(&live.slot)).is_none()))
        };
        for grant in self.permits.grant(self.now, only, &is_ready) {
            match grant.request {
                Some(request) => self.give(&grant.slot, request, grant.spent),
                None => self.start(grant),
            }
        }
    }

    /// Records the intent to run a slot, and commands its start, by a worker if one takes it.
    fn start(&mut self, Grant { slot, taker, spent, .. }: Grant) {
        self.workflows.note_spent(&slot.workflow, spent, self.now);
        let Some(live) = self.slots.get(&slot) else { return self.breaches.no_slot(&slot) };
        let run = RunId { slot: slot.clone(), number: live.slot.last_run + 1 };
        let number = run.number;
        let worker = taker.as_ref().map(|taker| taker.worker.clone());
        let what = SlotEvent::Dispatched { run: number, worker: worker.as_deref().map(str::to_owned) };
        self.record(&slot, what);
        match self.slots.run_mut(&slot) {
            Some(run) => run.attempts = taker.and_then(|taker| taker.attempts),
            None => self.breaches.no_slot(&slot),
        }
        self.have_started(run, worker);
    }

    /// Commands the start of a run whose intent is recorded. One with arguments beyond the limit ends here.
    pub(crate) fn have_started(&mut self, run: RunId, worker: Option<Arc<str>>) {
        let Some(workflow) = self.workflows.known(&run.slot.workflow) else { return };
        let Some(live) = self.slots.get(&run.slot) else { return self.breaches.no_slot(&run.slot) };
        let workflow = workflow.definition().clone();
        let collected = live.slot.collected.as_deref().map(|collected| Arc::new(collected.clone()));
        match kept_arguments(&workflow, collected.as_deref(), &run.slot.key) {
            Err(bytes) => self.ended(&run, Outcome::given_too_much(bytes)),
            Ok(_) => self.turn.command(Command::StartRun { run, workflow, worker, collected }),
        }
    }

    /// Updates the terms on which a workflow runs.
    pub(crate) fn agree_on_terms(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let terms = Terms {
            concurrency: workflow.definition().concurrency,
            pools: workflow.definition().pools.clone(),
            within: workflow.definition().within.clone(),
            is_present: workflow.is_present(),
            is_paused: workflow.rests(),
            by_workers: self.config.by_workers && workflow.has_jobs(),
        };
        self.permits.agree(id, terms);
    }
}
