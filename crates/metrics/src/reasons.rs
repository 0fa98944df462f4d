//! The reasons for which slots wait: one stable code for each slot.

use std::collections::BTreeMap;

use kelos_model::SlotState;
use kelos_model::probe::Verdict;
use kelos_model::reason::{Answer, Finding, Reason};

/// A code, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ReasonId(usize);

/// It was not evaluated since it began to wait.
const NOT_EVALUATED: &str = "not-evaluated";
/// It is a time of a backlog.
pub(crate) const BACKLOG: &str = "backlog";
/// Its workflow is paused, or a disabled event schedule.
pub(crate) const PAUSED: &str = "paused";
/// Its workflow is frozen.
pub(crate) const FROZEN: &str = "frozen";
/// Its workflow is not defined any more.
pub(crate) const REMOVED: &str = "removed";

/// All codes that slots have had.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    codes: Vec<String>,
    ids: BTreeMap<String, ReasonId>,
}

impl Reasons {
    /// The number of a code.
    pub(crate) fn id(&mut self, code: &str) -> ReasonId {
        if let Some(id) = self.ids.get(code) {
            return *id;
        }
        let id = ReasonId(self.codes.len());
        self.codes.push(code.to_owned());
        self.ids.insert(code.to_owned(), id);
        id
    }

    /// The code of a number.
    pub(crate) fn code(&self, id: ReasonId) -> &str {
        self.codes.get(id.0).map_or(NOT_EVALUATED, String::as_str)
    }
}

/// The code of a slot that just came into a state.
pub(crate) fn of_state(state: SlotState) -> &'static str {
    match state {
        SlotState::Waiting => NOT_EVALUATED,
        SlotState::Held => "constraints",
        SlotState::Queued => "capacity",
        SlotState::Backoff => "retry",
        _ => "deferred",
    }
}

/// The code of an explanation: that of the first part of the trigger or of the constraints that is not met.
pub(crate) fn of_explanation(reason: &Reason) -> &str {
    let goes_down = matches!(
        reason.finding,
        Finding::AllOf | Finding::AnyOf | Finding::Offset { .. } | Finding::ParentsAndTrigger | Finding::Constraints
    );
    let open = || reason.nested.iter().find(|nested| nested.answer == Answer::NotYet);
    match (&reason.finding, goes_down.then(open).flatten()) {
        (_, Some(open)) => of_explanation(open),
        (Finding::ProbeAnswered { verdict: Verdict::Failed, .. }, None) => "probe-failed",
        (finding, None) => finding.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kelos_model::reason::ReasonKind;

    #[test]
    fn the_code_is_that_of_the_first_part_that_is_not_met() {
        let leaf = |answer, finding| Reason::leaf(ReasonKind::Delay, answer, finding);
        let nested = vec![leaf(Answer::Met, Finding::Always), leaf(Answer::NotYet, Finding::NoDay)];
        let all = Reason { kind: ReasonKind::And, answer: Answer::NotYet, finding: Finding::AllOf, nested };
        assert_eq!(of_explanation(&all), "no-day");
    }
}
