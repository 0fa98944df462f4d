//! The paths that a slot reads, and the settings of its job.

use kelos_engine::job::JobInput;
use kelos_model::probe::Verdict;
use kelos_model::reason::Evidence;
use kelos_model::secret::masks;
use kelos_model::{Probe, Reason};
use maud::{Markup, html};

use crate::{settings, time};

/// The paths on which a trigger depended at its last evaluation, each once, with the findings.
pub(super) fn paths(trigger: Option<&Reason>) -> Markup {
    let mut found = Vec::new();
    trigger.into_iter().for_each(|trigger| collect(trigger, &mut found));
    html! {
        @if !found.is_empty() {
            ul.plain {
                @for leaf in found {
                    li {
                        span.mark .(leaf.class) role="img" aria-label=(leaf.word) title=(leaf.word) { (leaf.mark) }
                        " " code { (masks::masked_text(&leaf.uri)) }
                        span.evidence { " " (leaf.word) ", checked " (time::at(leaf.looked_at)) }
                    }
                }
            }
        }
    }
}

/// A path with its finding.
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

/// The settings of a slot's job, filled in for the slot; secrets are masked.
pub(super) fn job(executor: &str, filled: &Result<JobInput, String>) -> Markup {
    html! {
        details.job open {
            summary { "What its job is given" }
            dl.facts {
                dt { "Executor" } dd { (executor) }
                @match filled {
                    Ok(filled) => {
                        (settings::rows(&filled.settings))
                        (settings::rows(&filled.properties))
                    }
                    Err(error) => { dt { "Properties" } dd.bad-text { "failed to fill them in: " (error) } }
                }
            }
        }
    }
}
