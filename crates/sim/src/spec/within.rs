//! Requests of live runs for permits beside those of their start.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kelos_model::{PermitAnswer, PermitRefusal, PoolId, PoolUse, RunId, SlotRef, SlotState, WorkflowId};

use super::Spec;

/// A request of a live run.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecRequest {
    /// The permits that it asks for.
    pub uses: Vec<PoolUse>,
    /// The answer; none while it waits.
    pub answer: Option<PermitAnswer>,
    /// The permits that it holds.
    pub held: BTreeMap<PoolId, u32>,
    /// When it was made, with the priority of its slot then.
    pub(super) since: Timestamp,
    pub(super) priority: i32,
}

/// An answer to a request of a run.
pub type RunAnswer = (RunId, u64, PermitAnswer);

impl Spec {
    /// Takes all that a run asks for. What it asked for before and is not there is returned.
    pub fn asks(&mut self, run: &RunId, all: &BTreeMap<u64, BTreeMap<PoolId, u32>>, repeated: bool, now: Timestamp) {
        self.now = now;
        let Some(state) = self.slots.get_mut(&run.slot).filter(|state| state.alive && state.last_run == run.number)
        else {
            return;
        };
        state.requests.retain(|number, _| all.contains_key(number));
        let (is_running, priority) = (state.state == SlotState::Running, state.priority);
        for (number, permits) in all {
            let known = self.slots[&run.slot].requests.get(number);
            let answer = match known {
                Some(known) => known.answer.clone().filter(|_| repeated),
                None if is_running => {
                    let wanted = self.wanted(&run.slot.workflow, permits);
                    let answer = wanted.as_ref().err().cloned().map(PermitAnswer::Refused);
                    let uses = wanted.unwrap_or_default();
                    let request =
                        SpecRequest { uses, answer: answer.clone(), held: BTreeMap::new(), since: now, priority };
                    self.slots.get_mut(&run.slot).into_iter().for_each(|state| {
                        state.requests.insert(*number, request.clone());
                    });
                    answer
                }
                None => None,
            };
            self.answers.extend(answer.map(|answer| (run.clone(), *number, answer)));
        }
    }

    /// The answers since they were last taken.
    pub fn take_answers(&mut self) -> Vec<RunAnswer> {
        std::mem::take(&mut self.answers)
    }

    /// Forgets what only the memory of a leader has.
    pub(super) fn forget_requests(&mut self) {
        for state in self.slots.values_mut() {
            state.requests.retain(|_, request| request.answer == Some(PermitAnswer::Held));
        }
    }

    /// Refuses the requests that can't be met any more.
    pub(super) fn refuse_requests(&mut self) {
        for (slot, number) in self.waiting_requests() {
            let request = &self.slots[&slot].requests[&number];
            let permits = request.uses.iter().map(|one| (one.pool.clone(), one.permits)).collect();
            if let Err(refusal) = self.wanted(&slot.workflow, &permits) {
                self.answer(&slot, number, PermitAnswer::Refused(refusal), BTreeMap::new());
            }
        }
    }

    /// The requests that wait.
    pub(super) fn waiting_requests(&self) -> Vec<(SlotRef, u64)> {
        let running = self.slots.iter().filter(|(_, state)| state.alive && state.state == SlotState::Running);
        let waiting = running.flat_map(|(slot, state)| {
            let waiting = state.requests.iter().filter(|(_, request)| request.answer.is_none());
            waiting.map(|(number, _)| (slot.clone(), *number))
        });
        waiting.collect()
    }

    pub(super) fn answer(&mut self, slot: &SlotRef, number: u64, answer: PermitAnswer, held: BTreeMap<PoolId, u32>) {
        let Some(state) = self.slots.get_mut(slot) else { return };
        let run = RunId { slot: slot.clone(), number: state.last_run };
        let Some(request) = state.requests.get_mut(&number) else { return };
        request.answer = Some(answer.clone());
        request.held = held;
        self.answers.push((run, number, answer));
    }

    /// The uses of pools that are asked for, if they could ever be given.
    fn wanted(&self, id: &WorkflowId, permits: &BTreeMap<PoolId, u32>) -> Result<Vec<PoolUse>, PermitRefusal> {
        let (sizes, rates) = (self.sizes(), self.rates());
        let mut uses = Vec::new();
        for (pool, permits) in permits {
            let within = self.workflows.get(id).map_or(&[][..], |workflow| &workflow.within);
            let (Some(one), Some(size)) = (within.iter().find(|one| one.pool == *pool), sizes.get(pool)) else {
                return Err(PermitRefusal::Undeclared { pool: pool.clone() });
            };
            let (pool, permits, size) = (pool.clone(), *permits, *size);
            if permits > size {
                return Err(PermitRefusal::TooMany { pool, permits, size });
            }
            if let Some(rate) = rates.get(&pool).filter(|rate| permits > rate.burst) {
                return Err(PermitRefusal::BeyondBurst { pool, tokens: permits, burst: rate.burst });
            }
            uses.push(PoolUse { permits, ..one.clone() });
        }
        Ok(uses)
    }
}
