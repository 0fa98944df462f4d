//! An executor that starts nothing: each run follows that of the slot in Celos.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId, SlotRef};

use crate::celos_db::{Record, Status};

#[derive(Default)]
struct State {
    /// The current records of Celos.
    records: BTreeMap<SlotRef, Record>,
    /// Live runs here, and the channel for the report of their end.
    going: BTreeMap<RunId, Reports>,
}

/// An executor that follows Celos. Clones share everything.
#[derive(Clone, Default)]
pub(super) struct ShadowExecutor {
    state: Arc<Mutex<State>>,
}

impl ShadowExecutor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the current records of Celos.
    pub(super) fn learn(&self, records: &BTreeMap<SlotRef, Record>) {
        self.state().records.clone_from(records);
    }

    /// Slots with live runs.
    pub(super) fn following(&self) -> Vec<SlotRef> {
        self.state().going.keys().map(|run| run.slot.clone()).collect()
    }

    /// Ends the runs that have ended in Celos, given the number of failures of each slot here.
    pub(super) fn follow(&self, retries: &BTreeMap<SlotRef, u32>) {
        let mut state = self.state();
        let State { records, going } = &mut *state;
        going.retain(|run, reports| {
            let record = records.get(&run.slot);
            let outcome = record.and_then(|record| outcome(record, retries.get(&run.slot).copied().unwrap_or(0)));
            match outcome {
                Some(outcome) => {
                    reports.run(run, Report::Ended { outcome });
                    false
                }
                None => true,
            }
        });
    }
}

/// The outcome of a run, if it has ended.
fn outcome(record: &Record, retries: u32) -> Option<Outcome> {
    let failed = || Outcome::Failed { reason: "it failed in Celos".to_owned(), exit_status: None, code: None };
    match record.status {
        Status::Success => Some(Outcome::Succeeded),
        Status::Failure => Some(failed()),
        // It is retried in Celos.
        _ if record.retry_count > retries => Some(failed()),
        Status::Killed => Some(Outcome::Killed),
        // It was rerun between two comparisons: the earlier run is over.
        Status::Waiting | Status::Ready => Some(failed()),
        Status::Running | Status::WaitTimeout => None,
    }
}

fn started(record: &Record) -> bool {
    matches!(record.status, Status::Running | Status::Success | Status::Failure)
}

impl Executor for ShadowExecutor {
    fn start(&self, start: Start, reports: Reports) {
        let mut state = self.state();
        let Some(record) = state.records.get(&start.run.slot).filter(|record| started(record)).cloned() else {
            reports.run(&start.run, Report::Deferred { reason: "Celos has not started it".to_owned() });
            return;
        };
        let external_id = record.external_id.clone().unwrap_or_else(|| start.run.to_string());
        reports.run(&start.run, Report::Started { external_id });
        match outcome(&record, record.retry_count) {
            Some(outcome) => reports.run(&start.run, Report::Ended { outcome }),
            None => {
                state.going.insert(start.run, reports);
            }
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        match external_id {
            None => reports.run(run, Report::NeverStarted),
            Some(name) => {
                reports.run(run, Report::Started { external_id: name.to_owned() });
                self.state().going.insert(run.clone(), reports);
            }
        }
    }

    fn cancel(&self, run: &RunId, _external_id: Option<&str>, reports: Reports) {
        self.state().going.remove(run);
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}
