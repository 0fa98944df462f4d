//! The mistakes in the graph of a flow.

use std::fmt;

use crate::step_name::StepName;

/// Steps that a flow may have.
pub const MOST_STEPS: usize = 10_000;

/// Something wrong with the graph of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowFlaw {
    /// Two steps have one name.
    Doubled {
        /// The name.
        step: StepName,
    },
    /// A step needs or handles one that is not there.
    Unknown {
        /// The step.
        step: StepName,
        /// The name that no step has.
        other: StepName,
        /// The name that was probably meant.
        similar: Option<StepName>,
    },
    /// Steps wait for each other in a circle.
    Circle {
        /// The steps, each of which waits for the next, and the last for the first.
        steps: Vec<StepName>,
    },
    /// A step starts when others succeed, and when others fail.
    BothWays {
        /// The step.
        step: StepName,
        /// A step whose success it needs.
        needs: StepName,
        /// A step whose failure it handles.
        handles: StepName,
    },
    /// There are more steps than a flow may have.
    TooMany {
        /// The number of steps.
        steps: usize,
    },
}

impl FlowFlaw {
    /// The step that it is about; none where it is about the flow.
    #[must_use]
    pub fn step(&self) -> Option<&StepName> {
        match self {
            FlowFlaw::Doubled { step } | FlowFlaw::Unknown { step, .. } | FlowFlaw::BothWays { step, .. } => Some(step),
            FlowFlaw::Circle { steps } => steps.first(),
            FlowFlaw::TooMany { .. } => None,
        }
    }
}

impl fmt::Display for FlowFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowFlaw::Doubled { step } => {
                write!(
                    f,
                    "two steps are named {step}, expected a name for each: give one of them another name or a prefix"
                )
            }
            FlowFlaw::Unknown { step, other, similar } => {
                write!(f, "step {step} refers to {other}, and the flow has no such step")?;
                similar.as_ref().map_or(Ok(()), |similar| write!(f, ": did you mean {similar}?"))
            }
            FlowFlaw::Circle { steps } => match steps.as_slice() {
                [one] => write!(f, "step {one} waits for itself"),
                _ => {
                    let names: Vec<&str> = steps.iter().chain(steps.first()).map(StepName::as_str).collect();
                    write!(f, "these steps wait for each other in a circle: {}", names.join(" -> "))
                }
            },
            FlowFlaw::BothWays { step, needs, handles } => write!(
                f,
                "step {step} needs the success of {needs} and handles the failure of {handles}, expected one or the other: use two steps"
            ),
            FlowFlaw::TooMany { steps } => {
                write!(
                    f,
                    "the flow has {steps} steps, expected at most {MOST_STEPS}: use forEach for what is done many times"
                )
            }
        }
    }
}
