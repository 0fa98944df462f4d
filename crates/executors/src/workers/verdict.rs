//! The outcome of a run whose worker is gone: its command is ended, and its folder is read.

use std::sync::Arc;

use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};
use serde::Deserialize;

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

/// The worker that a desk wrote into an external id.
pub(super) fn worker_of(external_id: &str) -> Option<Arc<str>> {
    #[derive(Deserialize)]
    struct Kept {
        worker: Option<Arc<str>>,
    }
    let (_, kept) = external_id.split_once(" {")?;
    serde_json::from_str::<Kept>(&format!("{{{kept}")).ok()?.worker
}
