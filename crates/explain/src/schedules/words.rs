//! The collections of event schedules' slots, in words.

use kelos_model::reason::words::{blockers, text};
use kelos_model::{Answer, Reason};

/// The constraints that a slot was last found to fail, in words.
pub(super) fn unmet(explanation: &Reason) -> String {
    let unmet: Vec<_> = explanation.nested.iter().filter(|one| one.answer != Answer::Met).collect();
    let never: Vec<_> = unmet.iter().filter(|one| one.answer == Answer::Never).copied().collect();
    let told = if never.is_empty() { unmet } else { never };
    let texts: Vec<String> = told.into_iter().map(text).collect();
    if texts.is_empty() { text(explanation) } else { texts.join("; ") }
}

/// The conditions that a trigger still waits for, in words.
pub(super) fn waits_for(explanation: &Reason) -> String {
    let blockers = blockers(explanation);
    if blockers.is_empty() { text(explanation) } else { blockers.join("; ") }
}
