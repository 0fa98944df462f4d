//! The critical path of a slot: in words, with each link's share of the time, and as rows above the runs.

use std::collections::BTreeSet;

use kelos_explain::critical_path::{CriticalPath, Link, Step, StepKind};
use kelos_model::RunId;
use maud::{Markup, html};

use super::view::TimelineView;
use crate::page::slot_href;
use crate::state::badge;
use crate::{time, words};

/// Links that are drawn as rows, the last ones; the list has them all.
const MOST_DRAWN: usize = 30;

/// The runs that are on the path.
pub(super) fn runs(path: &CriticalPath) -> BTreeSet<RunId> {
    let of_link = |link: &Link| {
        let slot = link.slot.clone();
        let numbers: Vec<u32> = link.steps.iter().filter_map(|step| step.run).collect();
        numbers.into_iter().map(move |number| RunId { slot: slot.clone(), number })
    };
    path.links.iter().flat_map(of_link).collect()
}

/// The path as a list.
pub(super) fn list(view: &TimelineView, path: &CriticalPath) -> Markup {
    let until = if path.is_over { "it ended" } else { "now; it has not ended" };
    html! {
        section aria-labelledby="path-title" {
            h2 #path-title { "Critical path of " a href=(slot_href(&path.slot)) { (path.slot.short()) } }
            p {
                "What determined when it " @if path.is_over { "ended" } @else { "ends" } ": "
                b { (words::took(path.from, path.until)) } " from " (time::at(path.from)) " until " (until) ". "
                a href=(view.without_slot().href()) { "Show all runs alike" }
            }
            @if let Some(cut) = &path.cut { p.soft { "It is not traced further back: " (cut) "." } }
            ol.path { @for link in &path.links { (item(path, link)) } }
        }
    }
}

fn item(path: &CriticalPath, link: &Link) -> Markup {
    let percent = path.percent(link.millis());
    html! {
        li {
            meter min="0" max="100" value=(format!("{percent:.1}")) aria-label="share of the time" {}
            span.share { (format!("{percent:.0}")) " %" }
            span.took { (words::took(link.from, link.until)) }
            span.what {
                a href=(slot_href(&link.slot)) { (link.slot.short()) } " "
                @match link.state { Some(state) => (badge(state)), None => span.soft { "not there" } }
                " " (time::in_text(&path.sentence(link)))
                @if !link.besides.is_empty() { span.soft { " · also blocked by: " (link.besides.join("; ")) } }
            }
        }
    }
}

/// The path as rows of a chart, a row for each link.
pub(super) fn rows(view: &TimelineView, path: &CriticalPath) -> Markup {
    let hidden = path.links.len().saturating_sub(MOST_DRAWN);
    html! {
        tbody.path-rows {
            tr { th scope="rowgroup" colspan="2" { "Critical path" @if hidden > 0 { small { " the last " (MOST_DRAWN) " of " (path.links.len()) } } } }
            @for link in path.links.iter().skip(hidden) {
                tr {
                    th scope="row" title=(link.slot.short()) { a href=(slot_href(&link.slot)) { (link.slot.workflow) } }
                    td {
                        svg width="100%" height="20" role="group" aria-label=(path.sentence(link)) {
                            @for step in &link.steps { (drawn(view, link, step)) }
                        }
                    }
                }
            }
        }
    }
}

fn drawn(view: &TimelineView, link: &Link, step: &Step) -> Markup {
    let (left, right) = (view.percent(step.from), view.percent(step.until));
    let (class, high) = match step.kind {
        StepKind::Ran if step.words.is_empty() => ("run-succeeded", 15),
        StepKind::Ran if step.words == "it goes on" => ("run-running", 15),
        StepKind::Ran => ("run-failed", 15),
        StepKind::Waited => ("step-waited", 9),
        StepKind::Queued => ("step-queued", 9),
        StepKind::Starting => ("wait", 5),
        StepKind::BackedOff => ("step-backed-off", 9),
        StepKind::Stuck => ("step-stuck", 9),
    };
    html! {
        @if right > left {
            g {
                title { (link.slot.short()) ": " (step.sentence()) }
                rect.(class) x=(view.place(step.from)) y=((20 - high) / 2) width=(format!("{:.3}%", right - left)) height=(high) rx="2" {}
            }
        }
    }
}
