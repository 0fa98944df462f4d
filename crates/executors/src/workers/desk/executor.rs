//! The hub as the engine sees it: an executor like any other.

use kelos_engine::executor::{Executor, Reports, Start};
use kelos_model::run::Report;
use kelos_model::workers::FUNCTION;
use kelos_model::{Outcome, PermitAnswer, RunId};
use kelos_wire::PermitAnswerDto;

use super::Hub;
use crate::workers::entry::Place;
use crate::workers::session::Now;
use crate::workers::verdict::{self, ExternalId};

impl Executor for Hub {
    fn start(&self, start: Start, reports: Reports) {
        let mut state = self.inner.state();
        if *self.inner.closing.borrow() {
            return reports.run(&start.run, Report::NeverStarted);
        }
        let is_function = start.workflow.job.executor == FUNCTION;
        let run = start.run.clone();
        state.start(start, reports);
        self.inner.stirred.notify_one();
        self.inner.tell(&mut state);
        if is_function {
            self.inner.runtime.spawn(self.inner.clone().find_program(run));
        }
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let mut state = self.inner.state();
        if let Some(entry) = state.runs.get_mut(run) {
            entry.reports = reports;
            if let Some(external_id) = entry.external_id.clone() {
                entry.reports.run(run, Report::Started { external_id });
            }
            return;
        }
        self.inner.expect(&mut state, run, external_id, reports);
    }

    fn cancel(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let mut state = self.inner.state();
        if state.cancel(run, reports.clone()) {
            return;
        }
        let is_here = external_id.is_some_and(|external_id| ExternalId::read(external_id).loss.is_none());
        if !is_here {
            // Its worker ends it once it has come back, if it has it.
            self.inner.expect(&mut state, run, external_id, reports.clone());
            let _ = state.cancel(run, reports);
            return;
        }
        drop(state);
        let (launcher, run) = (self.inner.launcher.clone(), run.clone());
        self.inner.runtime.spawn(async move {
            let ended = verdict::end(&launcher, &run, "killed").await;
            let killed = matches!(ended, Report::Ended { outcome: Outcome::Unknown { .. } | Outcome::Lost { .. } });
            reports.run(&run, if killed { Report::Ended { outcome: Outcome::Killed } } else { ended });
        });
    }

    fn answer(&self, run: &RunId, request: u64, answer: PermitAnswer, _: Reports) {
        self.inner.state().permit(PermitAnswerDto { run: run.clone(), request, answer });
    }

    fn lead(&self, epoch: u64) {
        self.inner.state().begin(epoch, !self.inner.terms.is_of_several, Now::read());
        self.inner.elsewhere.begin(epoch);
        self.inner.epoch.send_replace(Some(epoch));
    }

    fn stand_by(&self) {
        self.inner.elsewhere.forget();
        if self.inner.terms.is_of_several {
            // Another node leads, and what its workers have is known there. They say it again when this one leads.
            self.inner.epoch.send_replace(None);
            self.inner.state().clear();
        }
    }

    fn note(&self, run: &RunId) -> Option<String> {
        let state = self.inner.state();
        let entry = state.runs.get(run)?;
        match &entry.place {
            Place::Given(worker) => Some(format!("worker {worker} does it")),
            Place::Unread => Some("the log is being read for the worker that has it".to_owned()),
            Place::Unclaimed(_) => Some(match entry.named() {
                Some(worker) => format!("it waits for worker {worker} to come back"),
                None => "it waits for its worker to come back".to_owned(),
            }),
            Place::Ending => Some("its worker is gone, and what is left of it is being ended".to_owned()),
        }
    }
}
