//! What slots of event schedules collected, in words.

use kelos_model::facts::Tally;
use kelos_model::reason::words::{blockers, text};
use kelos_model::{Answer, Collected, Reason, Subject};

/// What was collected, a line for each subject: `4 partitions of purchases`, `signal go, 3 times`.
#[must_use]
pub fn tallies(collected: &Collected) -> Vec<String> {
    collected.tallies.iter().map(|(subject, tally)| tallied(subject, tally)).collect()
}

fn tallied(subject: &Subject, tally: &Tally) -> String {
    match (subject, &tally.first) {
        (Subject::Partitions(dataset), _) if tally.count == 1 => format!("1 partition of {dataset}"),
        (Subject::Partitions(dataset), _) => format!("{} partitions of {dataset}", tally.count),
        (_, Some(first)) if tally.facts == 1 => first.to_string(),
        (_, Some(first)) => format!("{first}, {} times", tally.facts),
        (other, None) => other.to_string(),
    }
}

/// The constraints that a slot was last found to fail, in words.
pub(super) fn unmet(explanation: &Reason) -> String {
    let unmet: Vec<_> = explanation.nested.iter().filter(|one| one.answer != Answer::Met).collect();
    let never: Vec<_> = unmet.iter().filter(|one| one.answer == Answer::Never).copied().collect();
    let told = if never.is_empty() { unmet } else { never };
    let texts: Vec<String> = told.into_iter().map(text).collect();
    if texts.is_empty() { text(explanation) } else { texts.join("; ") }
}

/// What a trigger still waits for, in words.
pub(super) fn waits_for(explanation: &Reason) -> String {
    let blockers = blockers(explanation);
    if blockers.is_empty() { text(explanation) } else { blockers.join("; ") }
}
