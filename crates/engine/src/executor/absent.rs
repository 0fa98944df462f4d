//! The executor for kinds of jobs that this server can't run: it defers them, with the reason.

use kelos_model::run::Report;
use kelos_model::{Outcome, RunId};

use super::{Executor, Reports, Start};

/// Replaces a missing executor. Slots keep their state until there is one.
pub struct AbsentExecutor {
    reason: String,
}

impl AbsentExecutor {
    /// An executor for a name that isn't known.
    #[must_use]
    pub fn new(name: &str, known: Vec<String>) -> Self {
        let known = known.join(", ");
        Self { reason: format!("this server has no executor named \"{name}\"; it has: {known}") }
    }

    /// An executor that is missing for a reason that people need to know.
    #[must_use]
    pub fn because(reason: &str) -> Self {
        Self { reason: reason.to_owned() }
    }
}

impl Executor for AbsentExecutor {
    fn start(&self, start: Start, reports: Reports) {
        reports.run(&start.run, Report::Deferred { reason: self.reason.clone() });
    }

    fn check(&self, run: &RunId, external_id: Option<&str>, reports: Reports) {
        let report = match external_id {
            None => Report::NeverStarted,
            // The program or service that began it may still be running it.
            Some(_) => Report::Ended { outcome: Outcome::Lost { reason: self.reason.clone() } },
        };
        reports.run(run, report);
    }

    fn cancel(&self, run: &RunId, _external_id: Option<&str>, reports: Reports) {
        reports.run(run, Report::Ended { outcome: Outcome::Killed });
    }
}
