//! The look of steps: that of their slots, and that of states that no slot has.

use kelos_explain::flow::{StepState, Wait};
use maud::{Markup, html};

use crate::state::{self, look};

/// The class of the colour and the letter of a step; none has a letter that is not open.
pub(crate) fn of(state: StepState) -> (&'static str, Option<char>) {
    match state {
        StepState::NotOpened | StepState::NeverRuns | StepState::NotInRun => ("none", None),
        StepState::Waits(_) => ("waits", Some('W')),
        StepState::In(state) => (look(state).class, Some(look(state).letter)),
    }
}

/// The state of a step in a few words.
pub(crate) fn told(state: StepState) -> &'static str {
    match state {
        StepState::NotOpened => "not started",
        StepState::NeverRuns => "never runs",
        StepState::NotInRun => "not in this run",
        StepState::Waits(Wait::Signal) => "waits for a signal",
        StepState::Waits(Wait::Others) => "waits for others",
        StepState::In(state) => state.as_str(),
    }
}

/// A step's state on its colour, for the middle of text.
pub(super) fn badge(state: StepState) -> Markup {
    match state {
        StepState::In(state) => state::badge(state),
        StepState::Waits(_) => html! { span.badge.waits { b aria-hidden="true" { "W" } " " (told(state)) } },
        StepState::NotOpened | StepState::NeverRuns | StepState::NotInRun => html! { span.soft { (told(state)) } },
    }
}
