//! Steps that callers request: the present one, and the work that it still waits for.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;
use kelos_core::{Command, Input, WorkflowFilter};
use kelos_model::jobs::Relation;
use kelos_model::run::Report;
use kelos_model::{Probe, RunId};
use tokio::sync::oneshot;

/// A step that was requested.
pub(super) struct StepRequest {
    pub(super) at: Timestamp,
    pub(super) only: WorkflowFilter,
    pub(super) done: oneshot::Sender<()>,
}

/// Questions and starts that have been sent out and not been answered.
#[derive(Default)]
pub(super) struct StepQueue {
    waiting: VecDeque<StepRequest>,
    current: Option<StepRequest>,
    probes: BTreeSet<Probe>,
    starts: BTreeSet<RunId>,
    /// Runs that are being cancelled: a step doesn't wait for them, which may take as long as another system is down.
    cancelled: BTreeSet<RunId>,
    relations: BTreeSet<Relation>,
}

impl StepQueue {
    pub(super) fn want(&mut self, wanted: StepRequest) {
        self.waiting.push_back(wanted);
    }

    /// Notes what was sent out.
    pub(super) fn sent(&mut self, command: &Command) {
        match command {
            Command::Probe(probe) => {
                self.probes.insert(probe.clone());
            }
            Command::StartRun { run, .. } | Command::CheckRun { run, .. } if !self.cancelled.contains(run) => {
                self.starts.insert(run.clone());
            }
            Command::CancelRun { run, .. } => {
                self.starts.remove(run);
                self.cancelled.insert(run.clone());
            }
            Command::Relate(relation) => {
                self.relations.insert(relation.clone());
            }
            _ => {}
        }
    }

    /// Notes what came back.
    pub(super) fn came_back(&mut self, input: &Input) {
        match input {
            Input::ProbeAnswered { probe, .. } => {
                self.probes.remove(probe);
            }
            // If it is started after all, the command follows in the turn that takes this input, before the step can
            // end.
            Input::RunReported { run, report } => {
                self.starts.remove(run);
                if matches!(report, Report::Ended { .. }) {
                    self.cancelled.remove(run);
                }
            }
            Input::Related { relation, .. } => {
                self.relations.remove(relation);
            }
            _ => {}
        }
    }

    /// The moment of the present step.
    pub(super) fn now(&self) -> Option<Timestamp> {
        self.current.as_ref().map(|current| current.at)
    }

    /// The tick that the step needs after other inputs; the first one of a step evaluates everything again.
    pub(super) fn tick(&mut self) -> Option<Input> {
        if let Some(current) = &self.current {
            return Some(Input::Woke { only: current.only.clone(), look_again: false });
        }
        let next = self.waiting.pop_front()?;
        let tick = Input::Woke { only: next.only.clone(), look_again: true };
        self.current = Some(next);
        Some(tick)
    }

    /// Ends the step once no work is left. Returns whether it ended.
    pub(super) fn finish_if_quiet(&mut self) -> bool {
        if !(self.probes.is_empty() && self.starts.is_empty() && self.relations.is_empty()) {
            return false;
        }
        let Some(current) = self.current.take() else { return false };
        let _ = current.done.send(());
        true
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.current.is_none() && !self.waiting.is_empty()
    }
}
