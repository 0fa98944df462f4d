//! Runs that no worker has any more, or none has claimed yet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos_engine::executor::Reports;
use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};

use super::HubState;
use crate::local::surely_over;
use crate::run_ref;
use crate::workers::entry::{Entry, Place};
use crate::workers::state::{Absence, State};
use crate::workers::verdict::{self, ExternalId};

/// The wait before the log is read again, which is there only once the engine leads.
const READ_AGAIN: Duration = Duration::from_millis(20);

/// How long the first answer to a worker is delayed by runs of which it is being found out whether they began.
const DOUBT: Duration = Duration::from_secs(1);

impl HubState {
    /// Sends the last report on a run that no worker has.
    pub(super) async fn conclude(&self, run: &RunId, report: Report) {
        let outputs = self.launcher.outputs(&run_ref(run)).await;
        let entry = {
            let mut state = self.state();
            // Another epoch may have begun meanwhile, in which a worker claimed it.
            let is_ending = state.runs.get(run).is_some_and(|entry| entry.place == Place::Ending);
            if is_ending { state.runs.remove(run) } else { None }
        };
        let Some(entry) = entry else { return };
        let report = match report {
            Report::Ended { outcome: Outcome::Unknown { .. } | Outcome::Lost { .. } } | Report::NeverStarted
                if entry.cancelled =>
            {
                Report::Ended { outcome: Outcome::Killed }
            }
            other => other,
        };
        let report = match (report, outputs) {
            (Report::Ended { outcome: Outcome::Succeeded }, Err(outcome)) => Report::Ended { outcome },
            (report @ Report::Ended { .. }, Ok(Some(outputs))) => {
                entry.reports.run(run, Report::Gave { outputs });
                report
            }
            (report, _) => report,
        };
        entry.reports.run(run, report);
        self.concluded.notify_waiters();
    }

    /// Waits until it is known whether the runs that another leader assigned began, so that they can be assigned again.
    pub(super) async fn end_doubt(&self) {
        let ended = async {
            loop {
                let concluded = self.concluded.notified();
                tokio::pin!(concluded);
                concluded.as_mut().enable();
                if !self.state().is_in_doubt() {
                    return;
                }
                concluded.await;
            }
        };
        let _ = tokio::time::timeout(DOUBT, ended).await;
    }

    /// Takes over the runs that another leader assigned and no worker claims.
    pub(super) fn look_for_left(self: &Arc<Self>, now: Instant) {
        if self.leads().is_none() || !self.state().has_unclaimed() {
            return;
        }
        self.state().seek();
        let living = self.roll.living(self.terms.lease);
        let left = self.state().left(&living, now);
        for (run, left) in left {
            self.take_over(&run, left);
        }
    }

    /// Ends a run that another leader assigned, unless a worker claimed it meanwhile.
    pub(super) fn take_over(self: &Arc<Self>, run: &RunId, left: Absence) {
        let mut state = self.state();
        let unclaimed = |entry: &&mut Entry| matches!(entry.place, Place::Unclaimed(_));
        let Some(entry) = state.runs.get_mut(run).filter(unclaimed) else { return };
        entry.place = Place::Ending;
        let (was_confirmed, loss) = (entry.external_id.is_some(), entry.loss);
        state.fenced += u64::from(loss.is_some() && matches!(left, Absence::Unclaimed(_)));
        drop(state);
        let (desk, run) = (self.clone(), run.clone());
        self.runtime.spawn(async move {
            let report = match (left, loss) {
                (Absence::NeverStarted, _) => Report::NeverStarted,
                (Absence::Unclaimed(why), Some(loss)) => Report::Ended { outcome: loss.outcome(why.to_owned()) },
                (Absence::Unclaimed(why), None) => verdict::unclaimed(&desk.launcher, &run, was_confirmed, why).await,
            };
            desk.conclude(&run, report).await;
        });
    }

    /// Reads from the log who has a run that another leader assigned. Nothing is decided about it before.
    pub(super) async fn read_of(&self, run: &RunId) {
        while self.state().is_unread(run) {
            // An engine asks before it shows that it leads, and before the hub is connected to it.
            if let (Some(engine), Some(epoch)) = (self.engine.get(), self.leads()) {
                match self.elsewhere.handed(engine, run).await {
                    Ok(handed) if self.leads() == Some(epoch) => {
                        return self.state().read_of(run, handed, Instant::now(), self.terms.lease);
                    }
                    Ok(_) => tracing::debug!(%run, "another epoch has begun; trying again"),
                    Err(error) => tracing::debug!(%run, "failed to {error}; trying again"),
                }
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    /// Removes workers from the log that did not come back, or have left.
    pub(super) async fn strike(self: Arc<Self>, workers: Vec<Arc<str>>) {
        let Some(engine) = self.engine.get() else { return };
        for worker in workers {
            if let Err(error) = self.elsewhere.strike(engine, &worker, &self.state).await {
                tracing::debug!(worker = &*worker, "failed to {error}; trying again");
                return;
            }
        }
    }

    /// Notes a run that another leader assigned, and finds out what became of it.
    pub(super) fn expect(
        self: &Arc<Self>,
        state: &mut State,
        run: &RunId,
        external_id: Option<&str>,
        reports: Reports,
    ) {
        let claimed_within = match external_id.map(|id| ExternalId::read(id).loss) {
            Some(Some(loss)) => surely_over(loss.lease),
            _ => self.terms.lease,
        };
        let place = match external_id {
            None => Place::Unread,
            Some(_) => Place::Unclaimed(Instant::now() + claimed_within),
        };
        let entry = Entry::of_another(reports, place, external_id.map(str::to_owned));
        state.runs.insert(run.clone(), entry);
        self.stirred.notify_one();
        self.runtime.spawn(self.clone().look_at(run.clone()));
    }

    /// Checks a run that another leader assigned at once: it may have ended, and its worker with it.
    pub(super) async fn look_at(self: Arc<Self>, run: RunId) {
        self.read_of(&run).await;
        if self.state().runs.get(&run).is_none_or(|entry| entry.loss.is_some()) {
            return self.look_for_left(Instant::now());
        }
        if let Some(report) = verdict::found(&self.launcher, &run).await {
            let is_taken = {
                let mut state = self.state();
                let unclaimed = |entry: &&mut Entry| matches!(entry.place, Place::Unclaimed(_));
                state.runs.get_mut(&run).filter(unclaimed).map(|entry| entry.place = Place::Ending).is_some()
            };
            if is_taken {
                self.conclude(&run, report).await;
            }
            return;
        }
        self.look_for_left(Instant::now());
    }
}
