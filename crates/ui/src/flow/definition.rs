//! The graph of a flow as it is defined.

use kelos_model::StepName;
use kelos_model::flow::{Flow, SIGNAL, Step};
use maud::{Markup, html};

use super::picture::{self, PictureStep};
use crate::words;

/// Steps that are listed; of the others there is the number.
const LISTED: usize = 200;

/// The steps of a flow, as a picture and as a table.
pub(crate) fn show(flow: &Flow) -> Markup {
    let drawn: Vec<PictureStep<'_>> = flow.steps.iter().map(drawn).collect();
    html! {
        h2 { "Steps" }
        (picture::picture(&drawn))
        div.wide tabindex="0" role="region" aria-label="Table of the steps" {
            table.flow-steps {
                thead { tr { th { "Step" } th { "Does" } th { "Starts after" } th { "Retry" } th { "Description" } } }
                tbody {
                    @for step in flow.steps.iter().take(LISTED) {
                        tr {
                            td { (step.name) }
                            td { (does(step)) }
                            td { (starts_after(step)) }
                            td.what { @if step.retry.count > 0 { (words::retry(&step.retry)) } }
                            td.what { (step.about.as_deref().unwrap_or_default()) }
                        }
                    }
                }
            }
        }
        @if flow.steps.len() > LISTED { p.soft { "and " (flow.steps.len() - LISTED) " more" } }
    }
}

fn drawn(step: &Step) -> PictureStep<'_> {
    let note = does(step);
    PictureStep {
        step,
        class: "none",
        letter: None,
        told: format!("{note}, starts after {}", starts_after(step)),
        note,
        href: None,
        is_along: false,
    }
}

/// The work of a step in a few words: its executor, and the signal or list that it has.
pub(super) fn does(step: &Step) -> String {
    let executor = &step.job.executor;
    match (&step.signal, &step.for_each) {
        (Some(signal), _) => match signal.within_seconds {
            Some(seconds) => {
                format!("waits for {}, up to {}", signal.name, words::span(i64::try_from(seconds).unwrap_or(i64::MAX)))
            }
            None => format!("waits for {}", signal.name),
        },
        (None, Some(list)) => format!("{executor} for each of {}", list.input),
        (None, None) if executor == SIGNAL => "waits".to_owned(),
        (None, None) => executor.to_string(),
    }
}

/// The steps after whose end it starts.
pub(super) fn starts_after(step: &Step) -> String {
    let list = |names: &[StepName]| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (step.needs.is_empty(), step.handles.is_empty()) {
        (true, true) => "its run began".to_owned(),
        (false, _) => list(&step.needs),
        (true, false) => format!("a failure of {}", list(&step.handles)),
    }
}
