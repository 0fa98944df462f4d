//! The arguments and outputs of the runs of a slot, without secrets.

use kelos_model::Run;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::settings;

/// How many bytes of JSON are shown expanded.
const SHORT: usize = 2000;

/// The arguments and outputs of each run, newest first; those of the shown run are expanded if they are short.
pub(super) fn show(runs: &[Run], shown: Option<u32>) -> Markup {
    html! { @for run in runs.iter().rev() { (of_run(run, shown == Some(run.id.number))) } }
}

fn of_run(run: &Run, is_shown: bool) -> Markup {
    let number = run.id.number;
    let arguments: Map<String, Value> =
        run.arguments.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    let nothing = Map::new();
    let outputs = run.outputs.as_deref().unwrap_or(&nothing);
    let is_short = length(&arguments) + length(outputs) <= SHORT;
    html! {
        @if !arguments.is_empty() || run.outputs.is_some() {
            details.job id=(format!("run-{number}-given")) open[is_shown && is_short] {
                summary { "What run " (number) " was given and gave" }
                @if !arguments.is_empty() { h3 { "Arguments" } dl.facts { (settings::rows(&arguments)) } }
                @if run.outputs.is_some() {
                    h3 { "Outputs" }
                    @if outputs.is_empty() { p.soft { "It gave no outputs." } }
                    @else { dl.facts { (settings::rows(outputs)) } }
                }
            }
        }
    }
}

fn length(fields: &Map<String, Value>) -> usize {
    serde_json::to_vec(fields).map_or(0, |json| json.len())
}
