//! A run as its hub knows it: where it is, and what was agreed about the loss of its worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kelos_engine::executor::{Reports, RunInput, Start};
use kelos_model::Outcome;
use kelos_model::run::Report;
use kelos_model::workers::{FUNCTION, Label, LossPolicy};
use kelos_wire::{RunInputDto, RunOrderDto};

use super::verdict::{ExternalId, HandedRun, Loss};

/// A run that the hub knows.
pub(super) struct Entry {
    pub(super) reports: Reports,
    pub(super) place: Place,
    pub(super) start: Option<Start>,
    /// Whether an answer to its worker contained it.
    pub(super) told: bool,
    pub(super) external_id: Option<String>,
    pub(super) cancelled: bool,
    /// Of a run that a worker on another machine has, or may have: what was agreed about its loss.
    pub(super) loss: Option<Loss>,
    /// The account of it in the log, if another leader gave it away and nobody said that it began.
    pub(super) handed: Option<HandedRun>,
    /// Of a run of a function, the version of its workflow's definition when it was dispatched, or a later one; none until that was read.
    pub(super) version: Option<u32>,
}

/// The needs of a run beside labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunNeed {
    /// A program that has the functions of this definition of its workflow; of none while the definition is not known.
    Functions(Option<u32>),
    /// Any worker that does runs of its workflow.
    Any,
}

/// The place of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// With a worker, the one that it was dispatched to.
    Given(Arc<str>),
    /// Another leader gave it away, and to whom is being read from the log.
    Unread,
    /// Another leader gave it to a worker that has not come yet.
    Unclaimed(Instant),
    /// Its worker is gone, and it is being ended.
    Ending,
}

impl Entry {
    /// A run that another leader gave to a worker.
    pub(super) fn of_another(reports: Reports, place: Place, external_id: Option<String>) -> Entry {
        let loss = external_id.as_deref().and_then(|id| ExternalId::read(id).loss);
        Entry {
            reports,
            place,
            start: None,
            told: true,
            external_id,
            cancelled: false,
            loss,
            handed: None,
            version: None,
        }
    }

    /// A run for the worker that it was dispatched to.
    pub(super) fn given(start: Start, reports: Reports, worker: Arc<str>) -> Entry {
        Entry {
            reports,
            place: Place::Given(worker),
            start: Some(start),
            told: false,
            external_id: None,
            cancelled: false,
            loss: None,
            handed: None,
            version: None,
        }
    }

    /// The needs of the run beside labels.
    pub(super) fn needed(&self) -> RunNeed {
        let is_function = self.start.as_ref().is_some_and(|start| start.workflow.job.executor == FUNCTION);
        if is_function { RunNeed::Functions(self.version) } else { RunNeed::Any }
    }

    /// The report on the run as its policy has it: a run that is lost with its worker may be the last of its slot.
    pub(super) fn judged(&self, report: Report) -> Report {
        match (report, self.loss) {
            (Report::Ended { outcome: Outcome::Unknown { reason } }, Some(loss)) => {
                Report::Ended { outcome: loss.outcome(reason) }
            }
            (report, _) => report,
        }
    }

    /// The worker that the log names.
    pub(super) fn named(&self) -> Option<Arc<str>> {
        match &self.external_id {
            Some(external_id) => ExternalId::read(external_id).worker,
            None => self.handed.as_ref()?.worker.clone(),
        }
    }

    /// Whether a worker may know of it.
    pub(super) fn is_told(&self) -> bool {
        self.told || self.external_id.is_some()
    }

    /// Whether a worker has it, or may have it.
    pub(super) fn may_be_at(&self, worker: &Arc<str>) -> bool {
        match &self.place {
            Place::Given(other) => other == worker,
            Place::Unread | Place::Unclaimed(_) | Place::Ending => self.named().as_ref() == Some(worker),
        }
    }

    /// How long it may go on at a worker on another machine without an answer of the leader.
    pub(super) fn lease(&self, lease: Duration) -> Duration {
        let wait = || self.start.as_ref().map(|start| start.workflow.job.on_lost.wait_seconds()).unwrap_or_default();
        self.loss.map_or_else(|| lease.max(Duration::from_secs(wait())), |loss| loss.lease)
    }

    /// The labels that its worker needs.
    pub(super) fn labels(&self) -> Option<&BTreeSet<Label>> {
        self.start.as_ref().map(|start| &start.workflow.job.runs_on)
    }

    /// Agrees with a worker on another machine about the loss of a run.
    pub(super) fn agree(&mut self, lease: Duration) -> Loss {
        let on_lost = self.start.as_ref().map(|start| start.workflow.job.on_lost).unwrap_or_default();
        let lease = self.lease(lease);
        *self.loss.get_or_insert(Loss { lease, ends: on_lost == LossPolicy::End })
    }
}

/// The order to a worker to start a run.
pub(super) fn order(start: &Start, loss: Option<Loss>) -> RunOrderDto {
    let Start { run, workflow, settings, properties, given, earlier, .. } = start.clone();
    let RunInput { arguments, behind_key, triggered_by, batch, about, traceparent } = given;
    let given = RunInputDto { arguments, behind_key, triggered_by, batch, about, traceparent };
    let lease_millis = loss.map(|loss| u64::try_from(loss.lease.as_millis()).unwrap_or(u64::MAX));
    RunOrderDto { run, workflow, settings, properties, given, lease_millis, earlier }
}
