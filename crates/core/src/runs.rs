//! Reports of executors. They may be late, repeated, or about old runs; each one is judged.

use kelos_model::flow::{FLOW, FOR_EACH, is_carried_out_by_the_scheduler};
use kelos_model::retry::scramble;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, SlotEvent, SlotKey, SlotRef, SlotState};

use serde_json::{Map, Value};

use crate::wakes::Waits;
use crate::{Command, Core};

impl Core {
    pub(crate) fn run_reported(&mut self, run: &RunId, report: Report) {
        // A late report may be about a slot that has ended and left memory, or about a run before the latest.
        let Some(live) = self.slots.get(&run.slot) else { return };
        let is_old = !live.slot.run_alive || live.slot.last_run != run.number;
        if is_old || self.workflows.is_unheard(run) || self.is_follower(&run.slot) {
            return;
        }
        if live.run.as_ref().is_some_and(|run| is_carried_out_by_the_scheduler(&run.run.executor)) {
            // No executor reports on it; its success may have waited for the names of jobs that wait for it.
            return self.flows.touch(&run.slot);
        }
        match (live.slot.state, report) {
            (SlotState::Dispatched, Report::Started { external_id }) => {
                self.record_of_run(run, |run| SlotEvent::Started { run, external_id: external_id.clone() });
            }
            (SlotState::Running, Report::Started { .. }) => {}
            // The kill came before the start was confirmed. Now that the executor's id is known, the run can be
            // cancelled.
            (_, Report::Started { external_id }) => {
                self.slots.name_run(&run.slot, external_id);
                self.cancel(run);
            }
            (SlotState::Dispatched | SlotState::Running, Report::Gave { outputs }) => self.gave(run, outputs),
            (_, Report::Asks { version, requests }) => self.run_asks(run, version, &requests),
            // The permit must not wait for a worker that may never return, and is given to the next slot by priority.
            (SlotState::Dispatched, Report::NeverStarted)
                if live.run.as_ref().is_some_and(|run| run.is_by_worker()) =>
            {
                self.record_of_run(run, |run| SlotEvent::Withdrawn { run });
            }
            (SlotState::Dispatched | SlotState::Running, Report::GivenBack) => {
                self.record_of_run(run, |run| SlotEvent::Withdrawn { run });
            }
            (_, Report::GivenBack) => {
                self.record_of_run(run, |run| SlotEvent::RunEnded { run, outcome: Outcome::Killed });
            }
            (SlotState::Dispatched, Report::NeverStarted) => self.start_again(&run.slot),
            (SlotState::Dispatched, Report::Deferred { reason }) => self.deferred(run, reason),
            (SlotState::Dispatched | SlotState::Running, Report::Ended { outcome }) => self.ended(run, outcome),
            // Late answers from before the start was confirmed or the run was cancelled: the end will be reported.
            (_, Report::NeverStarted | Report::Deferred { .. } | Report::Gave { .. }) => {}
            (_, Report::Ended { outcome }) => {
                self.record_of_run(run, |run| SlotEvent::RunEnded { run, outcome: outcome.clone() });
            }
        }
    }

    /// Asks the executor again to start a run whose intent is recorded.
    pub(crate) fn start_again(&mut self, slot: &SlotRef) {
        let Some(live) = self.slots.get(slot) else { return self.breaches.no_slot(slot) };
        let run = RunId { slot: slot.clone(), number: live.slot.last_run };
        let (is_by_worker, worker) =
            live.run.as_ref().map_or((false, None), |run| (run.is_by_worker(), run.worker.clone()));
        if is_by_worker && worker.is_none() {
            // The worker is not known after a restart; the next one that offers may take the run.
            self.record_of_run(&run, |run| SlotEvent::Withdrawn { run });
            return;
        }
        self.have_started(run, worker);
    }

    /// The executor can't start the run now: record a new reason, and ask again later.
    fn deferred(&mut self, run: &RunId, reason: String) {
        let id = &run.slot;
        let Some(live) = self.slots.get(id) else { return self.breaches.no_slot(id) };
        let (before, times) = live
            .run
            .as_ref()
            .and_then(|run| run.deferred.clone())
            .map_or((None, 0), |(before, times)| (Some(before), times));
        if before.as_ref() != Some(&reason) {
            self.record_of_run(run, |run| SlotEvent::Deferred { run, reason: reason.clone() });
        }
        let wait = Waits::of(&self.config).after(times);
        // An adopted run has no record here, and its deferrals are not counted.
        if let Some(run) = self.slots.run_mut(id) {
            run.deferred = Some((reason, times.saturating_add(1)));
        }
        if let Ok(at) = self.now.checked_add(wait) {
            self.wakes.look_at_moment(id, at);
        }
    }

    /// Asks the executor about a run without recent news: its report may be lost.
    pub(crate) fn ask_about(&mut self, slot: &SlotRef) {
        // It may have ended meanwhile.
        let Some(live) = self.slots.get(slot).filter(|live| live.slot.run_alive) else { return };
        // A run that another scheduler started and this one adopted has no record here.
        let Some(run) = live.run().cloned() else { return };
        if is_carried_out_by_the_scheduler(&run.executor) {
            if slot.key.job().is_some() {
                // Its success may have waited for an answer that was lost.
                self.flows.touch(slot);
            }
            return;
        }
        let wanted = matches!(live.slot.state, SlotState::Dispatched | SlotState::Running);
        let (id, executor, external_id) = (run.id, run.executor, run.external_id);
        self.wakes.watch_run(slot, true, self.now);
        if !wanted {
            self.turn.command(Command::CancelRun {
                run: id.clone(),
                executor: executor.clone(),
                external_id: external_id.clone(),
            });
        }
        self.turn.command(Command::CheckRun { run: id, executor, external_id });
    }

    /// Commands the executor to end a run, with the id that it gave when it confirmed the start.
    pub(crate) fn cancel(&mut self, run: &RunId) {
        let known = self.slots.run(&run.slot);
        // An adopted run has no record here, and its executor ends it when it is checked.
        let Some(known) = known else { return };
        let (executor, external_id) = (known.executor.clone(), known.external_id.clone());
        match executor.as_str() {
            FLOW => return self.flows.touch(&run.slot),
            FOR_EACH => {
                return self.record(&run.slot, SlotEvent::RunEnded { run: run.number, outcome: Outcome::Killed });
            }
            _ => {}
        }
        self.turn.command(Command::CancelRun { run: run.clone(), executor, external_id });
    }

    /// Takes the outputs of a run. If they are too large or too deep they are not kept and the run fails when it ends, since
    /// the slots that wait for them would go without.
    fn gave(&mut self, run: &RunId, outputs: Map<String, Value>) {
        // A run that another scheduler started and this one adopted may have no record here.
        let Some(known) = self.slots.run_mut(&run.slot) else { return };
        known.gave_wrong = Outcome::of_unkept(&outputs);
        if known.gave_wrong.is_none() && known.run.outputs.as_deref() != Some(&outputs) {
            self.record_of_run(run, |run| SlotEvent::Gave { run, outputs: outputs.clone() });
        }
    }

    /// Records the end of a run that was not cancelled.
    pub(crate) fn ended(&mut self, run: &RunId, outcome: Outcome) {
        let wrong = self.slots.run_mut(&run.slot).and_then(|run| run.gave_wrong.clone());
        let outcome = match (outcome, wrong) {
            (Outcome::Succeeded, Some(failed)) => failed,
            (outcome, _) => outcome,
        };
        if outcome == Outcome::Succeeded {
            if !self.may_succeed(run) {
                return;
            }
            self.record_of_run(run, |run| SlotEvent::Succeeded { run });
            return;
        }
        let Some(workflow) = self.workflows.known(&run.slot.workflow) else { return };
        let is_present = workflow.is_present();
        let gone = !is_present && workflow.is_event_schedule();
        let Some(policy) = self.definition_of(&run.slot).map(|one| one.retry) else { return };
        let Some(live) = self.slots.get(&run.slot) else { return self.breaches.no_slot(&run.slot) };
        let retry = live.slot.retries + 1;
        let given_up = policy.gives_up(&outcome);
        let attempts = live.run.as_ref().and_then(|run| run.attempts);
        let retries = attempts.map_or(policy.count, |attempts| attempts.saturating_sub(1));
        // A job that was removed may never come back to be done again.
        let again = policy.done_again(&outcome, live.slot.again).filter(|_| is_present);
        // What was done again has used up no retry.
        let is_used_up = again.is_none() && retry > retries.saturating_add(live.slot.again);
        if is_used_up || given_up || gone {
            self.record_of_run(run, |run| SlotEvent::Failed { run, outcome: outcome.clone() });
            return;
        }
        let due = policy.due(retry, self.now, jitter_seed(run));
        let again = again.unwrap_or(0);
        self.record_of_run(run, |run| SlotEvent::BackedOff { run, outcome: outcome.clone(), due, again });
    }
}

/// The seed of a run's jitter: different for each run, and the same at each call.
#[must_use]
pub fn jitter_seed(run: &RunId) -> u64 {
    let named = run.slot.workflow.as_str().bytes().fold(0_u64, |hash, byte| scramble(hash ^ u64::from(byte)));
    let drawn = |text: &str| text.bytes().fold(1, |hash, byte| scramble(hash ^ u64::from(byte)));
    let key = match &run.slot.key {
        SlotKey::Time(at) | SlotKey::Moment(at) => at.as_millisecond().cast_unsigned(),
        SlotKey::Job(id) => drawn(id),
        SlotKey::Named(_) | SlotKey::Step(_) => drawn(&run.slot.key.to_string()),
    };
    scramble(named ^ key ^ u64::from(run.number).rotate_left(40))
}
