//! Outcomes of runs, as programs read them.

use kelos_model::Outcome;

/// The reason for which a run did not succeed, with the causes of its error; none if it did.
pub(super) fn reason(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Succeeded => None,
        Outcome::Killed => Some("killed"),
        Outcome::Failed { reason, .. }
        | Outcome::Refused { reason, .. }
        | Outcome::Unknown { reason }
        | Outcome::Lost { reason } => Some(reason),
    }
}
