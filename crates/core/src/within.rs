//! Permits within a run: a live run asks for permits of pools, holds them, and returns them.
//!
//! Its reports may be late, repeated or lost, and each says all that the run asks for, so that the next one heals what went wrong. A request
//! that waits is only in memory: an executor that is asked about the run reports again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{PermitAnswer, PoolId, RunId, SlotEvent, SlotRef, SlotState};

use crate::permits::{GrantedRequest, ReportAge, RequestId};
use crate::{Command, Core};

impl Core {
    /// Takes a report of all that a live run asks for.
    pub(crate) fn run_asks(&mut self, run: &RunId, version: u64, requests: &BTreeMap<u64, BTreeMap<PoolId, u32>>) {
        let age = self.permits.hear(&run.slot, version);
        if age == ReportAge::Late {
            return;
        }
        let held = self.slots.get(&run.slot).map(|live| live.slot.held.clone()).unwrap_or_default();
        let known = self.permits.requests_of(&run.slot).into_iter().chain(held.iter().map(|held| held.request));
        for number in known.collect::<BTreeSet<u64>>() {
            if !requests.contains_key(&number) {
                self.end_request(run, number);
            }
        }
        for (number, permits) in requests {
            match self.permits.answer_to(&run.slot, *number) {
                None => self.take_request(run, *number, permits),
                Some(Some(answer)) if age == ReportAge::Repeated => {
                    let answer = answer.clone();
                    self.answer_run(&run.slot, *number, answer);
                }
                Some(_) => {}
            }
        }
    }

    fn take_request(&mut self, run: &RunId, number: u64, permits: &BTreeMap<PoolId, u32>) {
        let Some(live) = self.slots.get(&run.slot) else { return self.breaches.no_slot(&run.slot) };
        // A run that is to end gets nothing more.
        if !matches!(live.slot.state, SlotState::Dispatched | SlotState::Running) {
            return;
        }
        let id = RequestId { slot: run.slot.clone(), number };
        if let Err(refusal) = self.permits.ask(id, &live.slot, permits, self.now) {
            self.answer_run(&run.slot, number, PermitAnswer::Refused(refusal));
        }
    }

    /// Takes back what a live run holds by a request, or has it wait no longer.
    fn end_request(&mut self, run: &RunId, request: u64) {
        let live = self.slots.get(&run.slot);
        if live.is_some_and(|live| live.slot.held.iter().any(|held| held.request == request)) {
            self.record(&run.slot, SlotEvent::Released { run: run.number, request });
        }
        self.permits.withdraw_request(&run.slot, request);
    }

    /// Records what a live run has taken, and lets it go on.
    pub(crate) fn give(&mut self, slot: &SlotRef, granted: GrantedRequest, spent: Vec<(PoolId, Timestamp)>) {
        self.workflows.note_spent(&slot.workflow, spent, self.now);
        let Some(live) = self.slots.get(slot) else { return self.breaches.no_slot(slot) };
        let (run, GrantedRequest { number: request, held: permits }) = (live.slot.last_run, granted);
        if permits.is_empty() {
            return self.answer_run(slot, request, PermitAnswer::Spent);
        }
        self.record(slot, SlotEvent::Acquired { run, request, permits });
        self.answer_run(slot, request, PermitAnswer::Held);
    }

    /// Refuses the requests that definitions have made impossible.
    pub(crate) fn refuse_requests(&mut self) {
        for (RequestId { slot, number }, refusal) in self.permits.take_refused() {
            self.answer_run(&slot, number, PermitAnswer::Refused(refusal));
        }
    }

    fn answer_run(&mut self, slot: &SlotRef, request: u64, answer: PermitAnswer) {
        let Some(live) = self.slots.get(slot) else { return self.breaches.no_slot(slot) };
        let run = RunId { slot: slot.clone(), number: live.slot.last_run };
        let executor = match (live.run(), self.workflows.known(&slot.workflow)) {
            (Some(known), _) => known.executor.clone(),
            (None, Some(workflow)) => workflow.definition().job.executor.clone(),
            (None, None) => return,
        };
        self.turn.command(Command::AnswerRun { run, executor, request, answer });
    }
}
