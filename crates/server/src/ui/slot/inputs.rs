//! What a slot reads and what its job is given.

use kelos_engine::job::JobInput;
use kelos_model::reason::Evidence;
use kelos_model::trigger::Verdict;
use kelos_model::{Probe, Reason};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::ui::words;
use kelos_wire::secrets;

/// The paths that a trigger was last found to look at, each once, with what was found.
pub(super) fn paths(trigger: Option<&Reason>) -> Markup {
    let mut found = Vec::new();
    trigger.into_iter().for_each(|trigger| collect(trigger, &mut found));
    html! {
        @if !found.is_empty() {
            ul.plain {
                @for leaf in found {
                    li {
                        span.mark .(leaf.class) role="img" aria-label=(leaf.word) title=(leaf.word) { (leaf.mark) }
                        " " code { (secrets::masked_text(&leaf.uri)) }
                        span.evidence { " " (leaf.word) ", checked " (words::moment(leaf.looked_at)) }
                    }
                }
            }
        }
    }
}

/// A path with what was found there.
struct Leaf {
    uri: String,
    class: &'static str,
    mark: &'static str,
    word: &'static str,
    looked_at: jiff::Timestamp,
}

fn collect(node: &Reason, found: &mut Vec<Leaf>) {
    if let Some(Evidence::Probe { probe: Probe::Path { uri, .. }, verdict, looked_at, .. }) = node.evidence() {
        let (class, mark, word) = match verdict {
            Verdict::Yes => ("good", "✓", "there"),
            Verdict::No => ("waits", "…", "missing, or conditions not met"),
            Verdict::Never => ("bad", "✗", "never"),
            Verdict::Failed => ("bad", "?", "could not look"),
        };
        if found.iter().all(|leaf| leaf.uri != *uri) {
            found.push(Leaf { uri: uri.clone(), class, mark, word, looked_at });
        }
    }
    node.nested.iter().for_each(|nested| collect(nested, found));
}

/// What its job is given, filled in for the slot, without secrets.
pub(super) fn job(executor: &str, filled: &Result<JobInput, String>) -> Markup {
    html! {
        details.job open {
            summary { "What its job is given" }
            dl.facts {
                dt { "Executor" } dd { (executor) }
                @match filled {
                    Ok(filled) => {
                        (fields(&filled.settings))
                        (fields(&filled.properties))
                    }
                    Err(error) => { dt { "Properties" } dd.bad-text { "failed to fill them in: " (error) } }
                }
            }
        }
    }
}

/// What a job is given, without its secrets.
pub(in crate::ui) fn fields(fields: &Map<String, Value>) -> Markup {
    html! {
        @for (name, value) in &secrets::masked_fields(fields) {
            dt { code { (name) } }
            dd {
                @match value {
                    Value::String(text) => code { (text) },
                    other => code { (serde_json::to_string_pretty(other).unwrap_or_default()) },
                }
            }
        }
    }
}
