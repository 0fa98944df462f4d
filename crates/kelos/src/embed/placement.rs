//! The workers that may run a job, and the treatment of its run when its worker or its program is lost.

use std::collections::BTreeSet;

use kelos_model::retry::OnUnknown;
use kelos_model::workers::{Label, LossPolicy, MOST_LABELS};
use kelos_model::{Job, RetryPolicy};
use serde_json::Map;

use super::function::FUNCTION;
use super::mistakes::Mistake;
use super::retry::Retry;

/// The labels that a job needs, and its policy for lost workers, as they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Placement {
    pub(super) labels: Vec<String>,
    pub(super) on_lost: Option<LossPolicy>,
}

impl Placement {
    /// Whether it acts only where a server hands runs to workers: it names labels, or a time for which a worker is waited for.
    pub(super) fn is_of_workers(&self) -> bool {
        !self.labels.is_empty() || matches!(self.on_lost, Some(LossPolicy::Wait(_)))
    }

    /// The retries of such a job: what is unknown because its program was killed is done again, unless it must not be done twice.
    pub(super) fn policy(&self, retry: Retry) -> RetryPolicy {
        let is_last = self.on_lost == Some(LossPolicy::End);
        let on_unknown = if is_last { OnUnknown::Fail } else { OnUnknown::Again };
        RetryPolicy { on_unknown, ..retry.policy() }
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        *self == Placement::default()
    }

    /// The placement of a step: its own, and that of its flow where it says nothing.
    pub(super) fn within(&self, flow: &Placement) -> Placement {
        let labels = if self.labels.is_empty() { &flow.labels } else { &self.labels };
        Placement { labels: labels.clone(), on_lost: self.on_lost.or(flow.on_lost) }
    }

    /// A job of a function that runs so.
    pub(super) fn job(&self) -> Job {
        let runs_on = self.labels.iter().filter_map(|label| Label::new(label).ok()).collect();
        Job { runs_on, on_lost: self.on_lost.unwrap_or_default(), ..Job::new(FUNCTION, Map::new()) }
    }

    /// Its mistakes.
    pub(super) fn mistakes(&self, mistake: impl Fn(String) -> Mistake) -> Vec<Mistake> {
        let wrong = self.labels.iter().filter_map(|label| Label::new(label).err());
        let mut all: Vec<Mistake> = wrong.map(|error| mistake(format!("failed to {error}"))).collect();
        let count = self.labels.iter().collect::<BTreeSet<_>>().len();
        if count > MOST_LABELS {
            all.push(mistake(format!("it needs {count} labels, expected at most {MOST_LABELS}")));
        }
        all
    }
}
