//! A trigger as a tree: as it is defined, and as it answered.

use std::borrow::Cow;

use kelos_model::probe::Verdict;
use kelos_model::reason::{self, Evidence};
use kelos_model::time::format_full;
use kelos_model::{Answer, Reason, ReasonKind, Trigger};
use maud::{Markup, html};

use super::page::{slot_href, workflow_href};
use super::state::badge;
use super::{time, words};

/// A trigger in words.
pub(super) fn defined(trigger: &Trigger) -> Markup {
    html! { ul.tree { (defined_node(trigger)) } }
}

fn defined_node(trigger: &Trigger) -> Markup {
    let (said, workflow) = words::trigger(trigger);
    html! {
        li {
            (said)
            @if let Some(id) = workflow { " " a href=(workflow_href(id)) { (id) } }
            @if !trigger.nested().is_empty() {
                ul { @for inner in trigger.nested() { (defined_node(inner)) } }
            }
        }
    }
}

/// Every node's answer with what its leaves read.
pub(super) fn answered(explanation: &Reason) -> Markup {
    html! { ul.tree { (answered_node(explanation)) } }
}

fn answered_node(node: &Reason) -> Markup {
    let (class, mark, meaning) = match node.answer {
        Answer::Met => ("good", "✓", "met"),
        Answer::NotYet => ("waits", "…", "not yet met"),
        Answer::Never => ("bad", "✗", "never met"),
    };
    html! {
        li {
            span.mark .(class) role="img" aria-label=(meaning) title=(meaning) { (mark) }
            " " (time::in_text(&said(node))) " " (evidence(node))
            @if !node.nested.is_empty() {
                ul { @for inner in &node.nested { (answered_node(inner)) } }
            }
        }
    }
}

/// The text of a node repeats those of its leaves, so a node with leaves shows only how they are combined.
fn said(node: &Reason) -> Cow<'static, str> {
    match node.kind {
        ReasonKind::And if !node.nested.is_empty() => "all of".into(),
        ReasonKind::Or if !node.nested.is_empty() => "one of".into(),
        ReasonKind::Not if !node.nested.is_empty() => "not".into(),
        _ => reason::words::text(node).into(),
    }
}

/// The evidence of a leaf.
fn evidence(node: &Reason) -> Markup {
    let text = reason::words::text(node);
    match node.evidence() {
        None => html! {},
        Some(Evidence::Asked) => html! { span.evidence { "asked, no answer yet" } },
        Some(Evidence::Clock { now, until }) => html! {
            span.evidence {
                @if !text.contains(&format_full(until)) && !text.contains(&words::moment(until)) { "until " (time::at(until)) ", " }
                "checked " (time::at(now))
            }
        },
        Some(Evidence::Slot { slot, state }) => html! {
            span.evidence {
                a href=(slot_href(slot)) { (slot.short()) } " is "
                @match state { Some(state) => (badge(state)), None => "not there" }
            }
        },
        Some(Evidence::Probe { probe, verdict, detail, looked_at }) => {
            let (class, verdict) = verdict_words(verdict, node.kind == ReasonKind::Function);
            let probe = probe.to_string();
            html! {
                span.evidence {
                    @if node.kind != ReasonKind::Function && !text.contains(&probe) { (probe) " " }
                    span .(class) { (verdict) }
                    @if !detail.is_empty() && !text.contains(detail) { ": " (detail) }
                    ", checked " (time::at(looked_at))
                }
            }
        }
    }
}

fn verdict_words(verdict: Verdict, is_function: bool) -> (&'static str, &'static str) {
    match (verdict, is_function) {
        (Verdict::Yes, true) => ("good-text", "yes"),
        (Verdict::Yes, false) => ("good-text", "there"),
        (Verdict::No, true) => ("waits-text", "no"),
        (Verdict::No, false) => ("waits-text", "missing, or conditions not met"),
        (Verdict::Never, _) => ("bad-text", "never"),
        (Verdict::Failed, _) => ("bad-text", "could not look"),
    }
}
