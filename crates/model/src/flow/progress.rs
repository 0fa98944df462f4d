//! How far the steps of a run are, and how the run ends.

use serde::{Deserialize, Serialize};

use super::{FlowGraph, StepName};
use crate::key::StepKey;
use crate::slot::Slot;
use crate::state::SlotState;

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StepProgress {
    /// It was not opened in this run.
    #[default]
    Unopened,
    /// It waits or runs.
    Live,
    /// It succeeded, or a person said so.
    Succeeded,
    /// It failed, waited too long, or a person killed it.
    Failed,
    /// A person skipped it: what needs it never runs, and nothing has failed.
    Skipped,
}

impl From<SlotState> for StepProgress {
    fn from(state: SlotState) -> StepProgress {
        match state {
            SlotState::Succeeded => StepProgress::Succeeded,
            SlotState::Failed | SlotState::Expired | SlotState::Killed => StepProgress::Failed,
            SlotState::Skipped => StepProgress::Skipped,
            _ => StepProgress::Live,
        }
    }
}

/// A step that was opened, in this run of its flow or in an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedStep {
    /// Its position in the graph.
    pub at: usize,
    /// The run that opened it last.
    pub run: u32,
    /// How far it is.
    pub state: StepProgress,
    /// Whether a person has said since the run began that it is done.
    pub is_marked: bool,
}

impl OpenedStep {
    /// A step as its slot says; none where it is an item of a list or no step of the graph. `begun` is the position of the log at which
    /// the run was dispatched.
    #[must_use]
    pub fn of(graph: &FlowGraph, key: &StepKey, slot: &Slot, begun: u64) -> Option<OpenedStep> {
        let at = graph.position(key.step()).filter(|_| key.item_number().is_none())?;
        let run = slot.step_of_run().map_or(0, |step| step.run);
        let is_marked = slot.state == SlotState::Succeeded && slot.last_event > begun;
        Some(OpenedStep { at, run, state: slot.state.into(), is_marked })
    }
}

/// How a run of a flow ends, once none of its steps is live and none may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum FlowEnd {
    /// No step failed.
    Succeeded,
    /// Steps failed, and an error step handled each of these failures.
    Recovered {
        /// The steps that failed.
        failed: Vec<StepName>,
    },
    /// Steps failed, and nothing handled it.
    Failed {
        /// These steps.
        failed: Vec<StepName>,
    },
}
