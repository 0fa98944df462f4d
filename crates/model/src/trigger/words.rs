//! Triggers in words, for people who read a page.

use super::{PathCheck, Trigger};
use crate::id::WorkflowId;
use crate::state::SlotState;
use crate::time::text::span;

/// A node of a trigger in words, without what is nested in it; the workflow that it names, if any, comes after them.
#[must_use]
pub fn node_words(node: &Trigger) -> (String, Option<&WorkflowId>) {
    let words = match node {
        Trigger::Always => "always".to_owned(),
        Trigger::And { .. } => "all of".to_owned(),
        Trigger::Or { .. } => "one of".to_owned(),
        Trigger::Not { .. } => "not".to_owned(),
        Trigger::Offset { seconds, .. } if *seconds < 0 => {
            format!("for the slot {} earlier", span(seconds.saturating_neg()))
        }
        Trigger::Offset { seconds, .. } => format!("for the slot {} later", span(*seconds)),
        Trigger::Delay { seconds } => format!("{} after its time", span(*seconds)),
        Trigger::Success { workflow } => return ("success of the same slot of".to_owned(), Some(workflow)),
        Trigger::Covers { workflow, from: 0, to: 0 } => {
            return ("success of all periods that intersect its own of".to_owned(), Some(workflow));
        }
        Trigger::Covers { workflow, from, to } => {
            let words = format!("success of all periods from {} to {} of", moved(*from, "start"), moved(*to, "end"));
            return (words, Some(workflow));
        }
        Trigger::Job { workflow, job } => return (format!("success of the job {job} of"), Some(workflow)),
        Trigger::Path(check) => path(check),
        Trigger::Partitions { dataset, count: 1 } => format!("a new partition of {dataset}"),
        Trigger::Partitions { dataset, count } => format!("{count} new partitions of {dataset}"),
        Trigger::Ended { program, states } => {
            let ends = states.iter().map(|state| end(*state)).collect::<Vec<_>>().join(" or ");
            return (format!("{ends} of a run of"), Some(program));
        }
        Trigger::Fired { firing } => format!("a time of {}", firing.name()),
        Trigger::Signal { name } => format!("the signal {name}"),
        Trigger::Function { function } => format!("a function in {}", function.file),
    };
    (words, None)
}

/// A boundary of a slot's own period, shifted: `its start`, `1 day before its start`.
fn moved(seconds: i64, boundary: &str) -> String {
    match seconds {
        0 => format!("its {boundary}"),
        seconds if seconds < 0 => format!("{} before its {boundary}", span(seconds.saturating_neg())),
        seconds => format!("{} after its {boundary}", span(seconds)),
    }
}

/// The end of a run, as a verb.
const fn end(state: SlotState) -> &'static str {
    match state {
        SlotState::Failed => "failure",
        SlotState::Killed => "kill",
        _ => "success",
    }
}

fn path(check: &PathCheck) -> String {
    let of = if check.base.is_empty() || check.base == "file:///" || check.path.contains("://") {
        String::new()
    } else {
        format!(" of {}", check.base)
    };
    let conditions = if check.conditions.is_empty() { String::new() } else { format!(", with {}", check.conditions) };
    format!("there is {}{of}{conditions}", check.path)
}
