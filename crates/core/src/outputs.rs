//! The outputs of the slots that slots depend on, read when these are dispatched.
//!
//! Nothing is looked for where a slot depends on no workflow of which a slot ever gave outputs. Otherwise the slots that are not in memory
//! are read with one question for all that are dispatched together, and their runs with another.
//! Absent: the merge of outputs, which is [`GivenOutputs`]'.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::sharing::Reference;
use kelos_model::trigger::Dependencies;
use kelos_model::{GivenOutputs, Run, RunState, SlotKey, SlotRef, SlotState, WorkflowId};
use serde_json::{Map, Value};

use crate::Core;
use crate::past::PastOf;
use crate::permits::Grant;
use crate::workflows::WorkflowState;

/// The most runs of a slot that are looked through for the latest that succeeded, where the slot was opened again.
const MOST_RUNS_BACK: usize = 100;

/// The most runs that are read with one question.
const READ_AT_ONCE: usize = 1000;

/// The outputs of slots.
type Outputs = BTreeMap<SlotRef, Map<String, Value>>;

/// A slot whose outputs are looked for.
struct SoughtRun {
    slot: SlotRef,
    /// The position of the run that is looked at, by its dispatch.
    seq: u64,
    /// Whether earlier runs are looked at if this one did not succeed.
    goes_back: bool,
}

impl Core {
    /// The outputs that the runs are given which are about to be dispatched, by their slots, as far as they are given any.
    pub(crate) fn outputs_for<E>(
        &mut self,
        grants: &[Grant],
        past: PastOf<'_, E>,
    ) -> Result<BTreeMap<SlotRef, GivenOutputs>, E> {
        let runs = grants.iter().filter(|grant| grant.request.is_none());
        let needs = runs.filter_map(|grant| Some((grant.slot.clone(), self.dependencies_of(grant)?)));
        let needs: BTreeMap<SlotRef, Dependencies> = needs.collect();
        if needs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let upstream: BTreeSet<&SlotRef> = needs.values().flat_map(Dependencies::slots).collect();
        self.slots.recall(upstream.iter().map(|slot| (*slot).clone()), past)?;
        let required: BTreeSet<&SlotRef> = needs.values().flat_map(|needs| &needs.required).collect();
        let outputs = self.outputs_of(&upstream, &required, past)?;
        let given = needs.iter().map(|(slot, needs)| (slot.clone(), self.merged(slot, needs, &outputs)));
        Ok(given.filter(|(_, given)| !given.is_empty()).collect())
    }

    /// The slots whose outputs the run of a slot may be given; none if there are none.
    fn dependencies_of(&self, Grant { slot, others, .. }: &Grant) -> Option<Dependencies> {
        if !matches!(slot.key, SlotKey::Time(_) | SlotKey::Job(_)) {
            return None;
        }
        let definition = self.workflows.get(&slot.workflow)?.definition();
        let gives = |id: &WorkflowId| {
            let has_given = self.workflows.get(id).is_some_and(WorkflowState::has_given);
            has_given && self.shares(&slot.workflow, &Reference::Runs(id.clone()))
        };
        let has_giving_parents = definition.keys.jobs().is_some_and(|jobs| jobs.parents().any(gives));
        if !has_giving_parents && !definition.trigger.depends_on(gives) {
            return None;
        }
        let evaluator = self.evaluator();
        let mut needs = evaluator.dependencies(slot)?;
        for time in others {
            needs.add(evaluator.dependencies(&SlotRef::at(slot.workflow.clone(), *time))?);
        }
        if definition.batch.is_some() {
            needs.may_be_several();
        }
        if has_giving_parents {
            needs.add_groups(self.jobs.written_parents(slot));
        }
        needs.required.retain(|slot| gives(&slot.workflow));
        needs.alternatives.retain(|group| group.iter().any(|slot| gives(&slot.workflow)));
        Some(needs).filter(|needs| needs.slots().next().is_some())
    }

    /// The outputs of slots that have succeeded, and the last ones of those that are required and were opened again. A slot that gave nothing
    /// has empty outputs.
    fn outputs_of<E>(
        &self,
        slots: &BTreeSet<&SlotRef>,
        required: &BTreeSet<&SlotRef>,
        past: PastOf<'_, E>,
    ) -> Result<Outputs, E> {
        let (mut outputs, mut sought) = (Outputs::new(), Vec::new());
        for slot in slots {
            let Some(live) = self.slots.get(slot) else { continue };
            let (seq, goes_back) = (live.slot.last_run_seq, live.slot.state != SlotState::Succeeded);
            if !goes_back {
                outputs.insert((*slot).clone(), Map::new());
            }
            if !goes_back || required.contains(slot) {
                sought.push(SoughtRun { slot: (*slot).clone(), seq, goes_back });
            }
        }
        for _ in 0..MOST_RUNS_BACK {
            // The first run of a slot has none before it.
            sought.retain(|one| one.seq > 0);
            if sought.is_empty() {
                break;
            }
            sought = self.look_at_runs(sought, &mut outputs, past)?;
        }
        Ok(outputs)
    }

    /// Looks at some runs, and takes the outputs of those that succeeded. Returns the runs to be looked at next.
    fn look_at_runs<E>(
        &self,
        sought: Vec<SoughtRun>,
        outputs: &mut Outputs,
        past: PastOf<'_, E>,
    ) -> Result<Vec<SoughtRun>, E> {
        let mut next = Vec::new();
        let mut see = |SoughtRun { slot, goes_back, .. }, run: &Run| {
            if run.state == RunState::Succeeded {
                outputs.insert(slot, run.outputs.as_deref().cloned().unwrap_or_default());
            } else if goes_back {
                next.push(SoughtRun { slot, seq: run.previous, goes_back });
            }
        };
        let mut unread: BTreeMap<u64, SoughtRun> = BTreeMap::new();
        for one in sought {
            let live = || self.slots.run(&one.slot).filter(|run| run.seq == one.seq);
            match self.slots.changed_run(one.seq).or_else(live) {
                Some(run) => see(one, run),
                None => drop(unread.insert(one.seq, one)),
            }
        }
        let seqs: Vec<u64> = unread.keys().copied().collect();
        for some in seqs.chunks(READ_AT_ONCE) {
            for run in past.runs(some)? {
                if let Some(one) = unread.remove(&run.seq) {
                    see(one, &run);
                }
            }
        }
        Ok(next)
    }

    /// The outputs that a slot is given of those that it depends on.
    fn merged(&self, to: &SlotRef, needs: &Dependencies, outputs: &Outputs) -> GivenOutputs {
        let are_shared = |slot: &SlotRef| self.shares(&to.workflow, &Reference::Runs(slot.workflow.clone()));
        let has_succeeded = |slot: &SlotRef| self.slots.state(slot) == Some(SlotState::Succeeded);
        let holding = needs.alternatives.iter().filter(|group| group.iter().all(has_succeeded));
        let all = needs.required.iter().chain(holding.flatten());
        let shared = all.filter(|slot| are_shared(slot));
        let given = shared.filter_map(|slot| Some((slot.clone(), outputs.get(slot)?.clone()))).collect();
        GivenOutputs::merged(&given, &needs.lists())
    }
}
