//! The outcome of a run whose worker is gone: its command is ended, and its folder is read.

use std::sync::Arc;
use std::time::Duration;

use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use serde::{Deserialize, Serialize};

use crate::local::{self, Check, Exit, Launcher};
use crate::{insist, outcome_of, run_ref};

/// Ends the rest of a run of a worker that is gone.
pub(super) async fn end(launcher: &Launcher, run: &RunId, why: &str) -> Report {
    ended(insist(run, || async { launcher.cancel(&run_ref(run)).await }).await, why)
}

fn ended(exit: Exit, why: &str) -> Report {
    let outcome = match exit.outcome {
        // It was not cancelled, and its supervisor can't say more.
        local::Outcome::Killed | local::Outcome::Unknown { .. } => Outcome::Unknown { reason: why.to_owned() },
        _ => outcome_of(exit),
    };
    Report::Ended { outcome }
}

/// The outcome of a run, if its folder has it.
pub(super) async fn found(launcher: &Launcher, run: &RunId) -> Option<Report> {
    match insist(run, || async { launcher.check(&run_ref(run)).await }).await {
        Check::Ended(exit) => Some(Report::Ended { outcome: outcome_of(exit) }),
        Check::NotStarted | Check::Running { .. } => None,
    }
}

/// The report on a run that no worker claimed.
pub(super) async fn unclaimed(launcher: &Launcher, run: &RunId, was_confirmed: bool, why: &str) -> Report {
    match insist(run, || async { launcher.check(&run_ref(run)).await }).await {
        Check::NotStarted if !was_confirmed => {
            // Lest a command that is just about to start begins after all.
            let exit = insist(run, || async { launcher.cancel(&run_ref(run)).await }).await;
            match (&exit.outcome, exit.started_at_ms) {
                (local::Outcome::Killed, None) => Report::NeverStarted,
                _ => ended(exit, why),
            }
        }
        Check::Ended(exit) => Report::Ended { outcome: outcome_of(exit) },
        Check::NotStarted | Check::Running { .. } => end(launcher, run, why).await,
    }
}

/// The agreement about the loss of a run with a worker on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    /// How long the run may go on without an answer of the leader.
    pub(super) lease: Duration,
    /// Whether no attempt follows.
    pub(super) ends: bool,
}

impl Loss {
    /// The report on a run whose worker was silent for so long that its command is surely over.
    pub(super) fn report(self, worker: &str, silence: Duration) -> Report {
        Report::Ended {
            outcome: self.outcome(format!("its worker {worker} was not heard of for {} s", silence.as_secs())),
        }
    }

    /// The outcome of a run that is lost for this reason.
    pub(super) fn outcome(self, reason: String) -> Outcome {
        if self.ends { Outcome::Lost { reason } } else { Outcome::Unknown { reason } }
    }
}

/// A run that an earlier leader gave to a worker, and of which nobody said that it began, as the log tells of it.
#[derive(Debug, Clone)]
pub(super) struct HandedRun {
    pub(super) worker: Option<Arc<str>>,
    /// The agreement about its loss, if its worker is on another machine.
    pub(super) loss: Option<Loss>,
    /// Whether no other worker can have been told of it.
    pub(super) is_sure: bool,
}

/// A time in milliseconds, as records have it.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The name of a run at its worker, with what the next leader has to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ExternalId<'t> {
    /// The name that the worker's executor gave it.
    pub(super) own: &'t str,
    pub(super) worker: Option<Arc<str>>,
    /// Of a worker on another machine, what was agreed about its loss.
    pub(super) loss: Option<Loss>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkerNote {
    worker: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_millis: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ends: bool,
}

impl ExternalId<'_> {
    pub(super) fn read(text: &str) -> ExternalId<'_> {
        let read = text.split_once(" {").and_then(|(own, kept)| {
            let kept: WorkerNote = serde_json::from_str(&format!("{{{kept}")).ok()?;
            let loss = kept.lease_millis.map(|millis| Loss { lease: Duration::from_millis(millis), ends: kept.ends });
            Some(ExternalId { own, worker: kept.worker, loss })
        });
        read.unwrap_or(ExternalId { own: text, ..ExternalId::default() })
    }

    pub(super) fn text(&self) -> String {
        let lease_millis = self.loss.map(|loss| u64::try_from(loss.lease.as_millis()).unwrap_or(u64::MAX));
        let ends = self.loss.is_some_and(|loss| loss.ends);
        let kept = WorkerNote { worker: self.worker.clone(), lease_millis, ends };
        format!("{} {}", self.own, serde_json::to_string(&kept).unwrap_or_default())
    }
}
