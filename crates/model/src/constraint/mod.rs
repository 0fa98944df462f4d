//! Constraints: checks after the trigger, each of which lets a slot start, makes it wait, or aborts it.

mod judge;

use serde::{Deserialize, Serialize};

pub use judge::{Circumstances, Judgement, LastStart, judge};

use crate::time::Window;

/// A gate after the trigger, and what happens to a slot that it doesn't let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Constraint {
    /// The gate.
    pub gate: Gate,
    /// The treatment of a slot that the gate does not let through.
    pub otherwise: Otherwise,
}

/// A condition on the start of a slot, beside its trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// Fewer runs of its program than this are live, whatever started them.
    Concurrency(u32),
    /// So many milliseconds have passed since it came to be.
    Delay(u64),
    /// The clock is in a window of the day.
    Window(Window),
    /// So many milliseconds have passed since the start of the last run of its program that succeeded, or is live.
    SinceLastRun(u64),
}

/// The treatment of a slot whose constraint is not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// It waits until it is.
    Wait,
    /// It is skipped.
    Abort,
}

impl Gate {
    /// The default treatment of a slot that it does not let through.
    #[must_use]
    pub fn by_default(&self) -> Otherwise {
        match self {
            Gate::Concurrency(_) | Gate::SinceLastRun(_) => Otherwise::Abort,
            Gate::Delay(_) | Gate::Window(_) => Otherwise::Wait,
        }
    }
}

impl Constraint {
    /// A gate with what happens by default.
    #[must_use]
    pub fn new(gate: Gate) -> Constraint {
        Constraint { otherwise: gate.by_default(), gate }
    }

    /// Checks that it can ever be met.
    ///
    /// # Errors
    /// When a number is 0, or a delay is to abort, which could never be met.
    pub fn check(&self) -> Result<(), String> {
        match (&self.gate, self.otherwise) {
            (Gate::Concurrency(0), _) => Err("a concurrency of 0 lets nothing run: expected at least 1".to_owned()),
            (Gate::Delay(0), _) => Err("a delay of 0 delays nothing: expected at least 1 millisecond".to_owned()),
            (Gate::Delay(_), Otherwise::Abort) => {
                Err("a delay can't abort: nothing would ever run. Expected it to wait".to_owned())
            }
            (Gate::SinceLastRun(0), _) => {
                Err("0 since the last run holds nothing back: expected at least 1 millisecond".to_owned())
            }
            _ => Ok(()),
        }
    }
}
