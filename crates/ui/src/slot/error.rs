//! The error of a failed slot, before everything else: the end of its output, and what can be done.

use kelos_model::SlotState;
use maud::{Markup, html};

use super::SlotPage;

/// Lines of output that are shown.
const LINES: usize = 30;

/// The error of a slot that has failed; nothing for all others.
pub(super) fn show(found: &SlotPage) -> Markup {
    let last_run = found.why.runs.last().map(|run| run.id.number);
    let output = found.output.as_ref().filter(|_| found.shown_run == last_run);
    let lines = output.and_then(|output| Some((output, output.last_lines(LINES)?)));
    html! {
        @if found.has_failed() {
            @if let Some((output, lines)) = lines {
                pre.error.output tabindex="0" role="group" aria-label="the end of the output" { (lines) }
                p.soft { "The last lines of " a href="#log" { "its output" } ". " a href=(output.error_href()) { "The first error in it" } "." }
            } @else if found.output.is_some() || !found.is_of_flow() { p.soft { "Its last run has left no output here." } }
            @let again = if found.is_of_flow() { "resume" } else { "rerun" };
            p { b { "What to do: " } "repair the cause and " (again) " it; if its work is done, mark it as succeeded; if it is not needed, skip it." }
        }
    }
}

impl SlotPage {
    /// Whether it is a failure now.
    pub(super) fn has_failed(&self) -> bool {
        self.at.is_none() && self.why.state == Some(SlotState::Failed)
    }
}
