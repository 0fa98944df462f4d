//! The appearance of states: a letter and a colour for each, the same on every page.

use kelos_model::SlotState;
use maud::{Markup, html};

/// The appearance of a state.
pub(super) struct Look {
    /// Its letter, no other state's in either case.
    pub(super) letter: char,
    /// The class of its colour, which similar states share.
    pub(super) class: &'static str,
}

/// The appearance of a state.
pub(super) const fn look(state: SlotState) -> Look {
    let (letter, class) = match state {
        SlotState::Waiting => ('W', "waits"),
        SlotState::Held => ('H', "waits"),
        SlotState::Queued => ('Q', "goes"),
        SlotState::Dispatched => ('D', "goes"),
        SlotState::Running => ('R', "goes"),
        SlotState::Backoff => ('B', "again"),
        SlotState::Succeeded => ('S', "good"),
        SlotState::Failed => ('F', "bad"),
        SlotState::Expired => ('E', "bad"),
        SlotState::Skipped => ('X', "ended"),
        SlotState::Killed => ('K', "ended"),
    };
    Look { letter, class }
}

/// The meaning of a state, for tooltips and the legend.
pub(super) const fn meaning(state: SlotState) -> &'static str {
    match state {
        SlotState::Waiting => "its trigger is not met",
        SlotState::Held => "a constraint is not met",
        SlotState::Queued => "it may run and waits for a permit",
        SlotState::Dispatched => "its start is under way",
        SlotState::Running => "its run is live",
        SlotState::Backoff => "its run failed and will be retried",
        SlotState::Succeeded => "its run succeeded",
        SlotState::Failed => "its last run failed and no retry is left",
        SlotState::Expired => "it waited longer than its workflow allows",
        SlotState::Skipped => "it ended without a run",
        SlotState::Killed => "a person ended it",
    }
}

/// Whether a slot in this state needs attention.
pub(super) const fn is_trouble(state: SlotState) -> bool {
    matches!(state, SlotState::Failed | SlotState::Expired | SlotState::Killed | SlotState::Backoff)
}

/// A state's letter on its colour, for the middle of text.
pub(super) fn badge(state: SlotState) -> Markup {
    let Look { letter, class } = look(state);
    html! { span.badge .(class) title=(meaning(state)) { b aria-hidden="true" { (letter) } " " (state.as_str()) } }
}

/// How bad a state is among slots that share a place: any failure is worse than anything under way, and
/// that is worse than success, as in Celos; the worst is the last.
pub(super) const BY_WEIGHT: [SlotState; 11] = [
    SlotState::Succeeded,
    SlotState::Skipped,
    SlotState::Waiting,
    SlotState::Held,
    SlotState::Queued,
    SlotState::Dispatched,
    SlotState::Running,
    SlotState::Backoff,
    SlotState::Killed,
    SlotState::Expired,
    SlotState::Failed,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_state_has_a_letter_of_its_own_and_a_weight() {
        let letters: BTreeSet<_> =
            SlotState::ALL.iter().map(|state| look(*state).letter.to_ascii_lowercase()).collect();
        assert_eq!(letters.len(), SlotState::ALL.len());
        assert_eq!(BTreeSet::from(BY_WEIGHT), BTreeSet::from(SlotState::ALL));
        let best = BY_WEIGHT.iter().position(|state| is_trouble(*state)).unwrap();
        assert!(BY_WEIGHT[best..].iter().all(|state| is_trouble(*state)), "a cell would hide its trouble");
    }
}
