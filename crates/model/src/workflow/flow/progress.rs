//! The progress of the steps of a run, and the end of the run.

use serde::{Deserialize, Serialize};

use crate::state::SlotState;
use crate::step_name::StepName;

/// The progress of a step.
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

/// The end of a run of a flow, once none of its steps is live and none may start.
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
