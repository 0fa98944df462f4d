//! Dispatch: slots that were granted their permits start a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_model::arguments::{ArgumentFault, kept_inputs};
use kelos_model::flow::is_carried_out_by_the_scheduler;
use kelos_model::{Arguments, Batch, Flow, GivenOutputs, PoolId, PoolUse, RunId, SlotEvent, SlotRef, WorkflowId};

use crate::batches::Candidates;
use crate::past::PastOf;
use crate::permits::{Grant, QueueId, Terms};
use crate::{Command, Core, WorkflowFilter};

impl Core {
    /// Starts runs for all slots that are granted their permits.
    pub(crate) fn dispatch<E>(&mut self, only: &WorkflowFilter, past: PastOf<'_, E>) -> Result<(), E> {
        self.refuse_requests();
        let (now, workflows, slots, wakes, planner) =
            (self.now, &self.workflows, &self.slots, &self.wakes, &self.planner);
        let candidates = Candidates { now, workflows, slots, wakes, planner };
        let grants = self.permits.grant(self.now, only, &candidates);
        let mut outputs = self.outputs_for(&grants, past)?;
        for grant in grants {
            match grant.request {
                Some(request) => self.give(&grant.slot, request, grant.spent),
                None => {
                    let given = outputs.remove(&grant.slot).unwrap_or_default();
                    self.start(grant, &given);
                }
            }
        }
        Ok(())
    }

    /// Records the intent to run a slot, and commands its start, by a worker if one takes it. A run that can't be started with what it is
    /// given ends here.
    fn start(&mut self, Grant { slot, taker, spent, others, .. }: Grant, outputs: &GivenOutputs) {
        self.workflows.note_spent(&slot.workflow, spent, self.now);
        let is_flow = slot.key.step().is_none() && self.definition_of(&slot).is_some_and(|one| one.flow.is_some());
        if is_flow {
            self.pin_flow(&slot);
        }
        let Some(live) = self.slots.get(&slot) else { return self.breaches.no_slot(&slot) };
        let run = RunId { slot: slot.clone(), number: live.slot.last_run + 1 };
        let number = run.number;
        let worker = taker.as_ref().map(|taker| taker.worker.clone());
        let batch = slot.key.scheduled().zip(others.last().copied()).map(|(first, last)| {
            let slots = u32::try_from(others.len() + 1).unwrap_or(u32::MAX);
            Batch { first, run: number, last, slots }
        });
        let what = SlotEvent::Dispatched { run: number, worker: worker.as_deref().map(str::to_owned), batch };
        self.record(&slot, what);
        if let Some(batch) = batch {
            self.dispatch_others(&run, batch, others);
        }
        match self.inputs_of_run(&slot, outputs) {
            Err(fault) => return self.ended(&run, fault.outcome()),
            Ok(inputs) if !outputs.is_empty() => {
                self.record_of_run(&run, |run| SlotEvent::Given { run, inputs: inputs.clone() });
            }
            Ok(_) => {}
        }
        if is_flow {
            return self.begin_flow(&run);
        }
        match self.slots.run_mut(&slot) {
            Some(run) => run.attempts = taker.and_then(|taker| taker.attempts),
            None => self.breaches.no_slot(&slot),
        }
        self.have_started(run, worker);
    }

    /// All that a run is given, or what is wrong with it. The inputs of a step were put together when it became ready.
    fn inputs_of_run(&self, slot: &SlotRef, outputs: &GivenOutputs) -> Result<Arguments, ArgumentFault> {
        match self.definition_of(slot).filter(|_| slot.key.step().is_none()) {
            Some(definition) => kept_inputs(&definition, self.slots.collected(slot), &slot.key, outputs),
            None => Ok(Arguments::new()),
        }
    }

    /// Commands the start of a run whose intent is recorded.
    pub(crate) fn have_started(&mut self, run: RunId, worker: Option<Arc<str>>) {
        let Some(workflow) = self.definition_of(&run.slot) else { return };
        let Some(live) = self.slots.get(&run.slot) else { return self.breaches.no_slot(&run.slot) };
        if is_carried_out_by_the_scheduler(&workflow.job.executor) {
            return;
        }
        let collected = live.slot.collected.as_deref().map(|collected| Arc::new(collected.clone()));
        let batch = live.run().and_then(|run| run.batch);
        let inputs = Arc::new(live.run().map(|run| run.arguments.clone()).unwrap_or_default());
        let about = self.about(&run.slot);
        self.turn.command(Command::StartRun { run, workflow, worker, collected, batch, inputs, about });
    }

    /// Updates the terms on which a workflow runs.
    pub(crate) fn agree_on_terms(&mut self, id: &WorkflowId) {
        let Some(workflow) = self.workflows.known(id) else { return };
        let terms = Terms {
            concurrency: workflow.definition().concurrency,
            batch: workflow.definition().batch,
            pools: workflow.definition().pools.clone(),
            within: workflow.definition().within.clone(),
            is_present: workflow.is_present(),
            is_paused: workflow.rests(),
            by_workers: self.config.leaves_to_workers(workflow.definition()),
            runs_on: workflow.definition().job.runs_on.clone(),
            by_scheduler: workflow.definition().flow.is_some(),
        };
        self.permits.agree(id, terms);
        self.agree_on_steps(id);
    }

    /// Updates the terms on which the queued and live steps of a workflow run.
    fn agree_on_steps(&mut self, id: &WorkflowId) {
        let steps = self.slots.steps_of_workflow(id).filter_map(|(step, _)| step.key.step());
        let queues: BTreeSet<(String, bool)> =
            steps.map(|key| (key.step().to_owned(), key.item_number().is_some())).collect();
        queues.iter().for_each(|(step, is_item)| self.agree_on_queue(id, step, *is_item));
    }

    /// Updates the terms on which a step runs, in all runs of its flow.
    pub(crate) fn agree_on_step(&mut self, step: &SlotRef) {
        if let Some(key) = step.key.step() {
            self.agree_on_queue(&step.workflow, key.step(), key.item_number().is_some());
        }
    }

    /// Updates the terms of the queue of a step, in which all runs of its flow stand. While these follow several definitions, what any of
    /// them says holds for all, so that no limit is passed.
    fn agree_on_queue(&mut self, workflow: &WorkflowId, step: &str, is_item: bool) {
        let mut all = self.flows.definitions_of(workflow, step, is_item);
        let Some(state) = self.workflows.get(workflow) else { return };
        if all.is_empty() {
            let present = state.definition();
            let step = present.flow.as_ref().and_then(|flow| flow.step(step)).filter(|_| state.is_present());
            all.extend(step.map(|step| Arc::new(Flow::as_workflow(present, step, is_item))));
        }
        let terms = Terms {
            concurrency: all.iter().filter_map(|one| one.concurrency).min(),
            batch: None,
            pools: of_all(all.iter().map(|one| &one.pools)),
            within: of_all(all.iter().map(|one| &one.within)),
            is_present: !all.is_empty(),
            is_paused: state.rests(),
            // Runs of an older definition may need an executor that no worker has.
            by_workers: !all.is_empty() && all.iter().all(|one| self.config.leaves_to_workers(one)),
            runs_on: all.iter().flat_map(|one| &one.job.runs_on).cloned().collect(),
            by_scheduler: false,
        };
        self.permits.agree(QueueId::of_step(workflow, step, is_item), terms);
    }

    /// Updates the terms of all steps of a flow that no run follows any more.
    pub(crate) fn agree_without(&mut self, workflow: &WorkflowId, left: &Arc<Flow>) {
        let present = self.workflows.get(workflow).and_then(|state| state.definition().flow.as_ref());
        if present.is_some_and(|present| Arc::ptr_eq(present, left)) && !self.flows.is_any_pinned(workflow) {
            // The terms are the same with the next run.
            return;
        }
        for step in &left.steps {
            self.agree_on_queue(workflow, step.name.as_str(), false);
            if step.for_each.is_some() {
                self.agree_on_queue(workflow, step.name.as_str(), true);
            }
        }
    }
}

/// The pools that several definitions name, the newest last: of each the most permits that any takes, as far as the newest lets them.
fn of_all<'w>(uses: impl Iterator<Item = &'w Vec<PoolUse>>) -> Vec<PoolUse> {
    let mut all: BTreeMap<PoolId, PoolUse> = BTreeMap::new();
    for one in uses.flatten() {
        let before = all.get(&one.pool).map_or(0, |before| before.permits);
        let most = one.rate.map_or(one.size, |rate| rate.burst).max(one.permits);
        all.insert(one.pool.clone(), PoolUse { permits: before.min(most).max(one.permits), ..one.clone() });
    }
    all.into_values().collect()
}
