//! The column beside the picture, in words: the path to a slot's obstacles, a focus, or the most important nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kelos_explain::graph::{EdgeKind, Node, ObstacleKind, Step, Upstream};
use kelos_model::{SlotRef, SlotState, WorkflowId};
use maud::{Markup, html};

use super::node::off;
use super::picture::later_told;
use super::{GraphPage, MOST_DRAWN};
use crate::page::{slot_href, workflow_href};
use crate::state::{BY_WEIGHT, badge, meaning};
use crate::{failures, time, words};

/// Workflows in trouble that are listed.
const TROUBLED: usize = 15;
/// How many causes are listed in words.
const CAUSES: usize = 20;

pub(super) fn beside(found: &GraphPage) -> Markup {
    html! {
        div #words {
            @if let (Some(slot), Some(upstream)) = (&found.view.slot, &found.upstream) { (path(found, slot, upstream)) }
            @else if found.view.focus.is_some() { (focus(found)) }
            @else { (all(found)) }
        }
    }
}

fn slot_link(slot: &SlotRef, state: Option<SlotState>) -> Markup {
    html! {
        @match state { Some(state) => (badge(state)), None => span.badge.again { "not there" } }
        " " a href=(slot_href(slot)) { (slot.short()) }
    }
}

/// The way from a slot to everything that is in its way.
fn path(found: &GraphPage, slot: &SlotRef, upstream: &Upstream) -> Markup {
    let mut roots: Vec<&Step> = upstream.roots().collect();
    // Causes that only a person can resolve come first.
    roots.sort_by_key(|root| root.obstacles.iter().map(|obstacle| obstacle.kind).min());
    let state = upstream.steps.first().and_then(|step| step.state);
    html! {
        h2 { "Blocked by" }
        p { (slot_link(slot, state)) }
        @if state == Some(SlotState::Succeeded) { p { "Nothing: it has succeeded." } }
        @else if roots.is_empty() { p { "These slots depend on each other in a cycle: none of them can ever run." } }
        @else {
            h3 { @if roots.len() == 1 { "The cause" } @else { "The causes" } }
            ul.plain.causes { @for root in roots.iter().take(CAUSES) { li { (cause(root)) } } }
            @if roots.len() > CAUSES { p.soft { "and " (roots.len() - CAUSES) " more on the path" } }
        }
        @if upstream.steps.len() > 1 {
            h3 { "The path" }
            (tree(upstream))
        }
        @if upstream.is_cut { p.note { "There is more: only " (upstream.steps.len()) " slots were examined." } }
        p.soft { a href=(found.view.around(&slot.workflow).href()) { "What is around " (slot.workflow) } }
    }
}

fn cause(step: &Step) -> Markup {
    html! {
        (slot_link(&step.slot, step.state))
        @for obstacle in &step.obstacles { div.evidence { b { (kind(obstacle.kind)) } ": " (time::in_text(&obstacle.words)) } }
    }
}

fn kind(kind: ObstacleKind) -> &'static str {
    match kind {
        ObstacleKind::Failed => "failed",
        ObstacleKind::Killed => "killed",
        ObstacleKind::Expired => "expired",
        ObstacleKind::Skipped => "skipped",
        ObstacleKind::Missing => "not there",
        ObstacleKind::Frozen => "frozen",
        ObstacleKind::Paused => "paused",
        ObstacleKind::Circle => "a circle",
        ObstacleKind::Undefined => "not defined",
        ObstacleKind::Backoff => "waits for its retry",
        ObstacleKind::UnderWay => "under way",
        ObstacleKind::Held => "held by its constraints",
        ObstacleKind::Queued => "queued",
        ObstacleKind::Outside => "external data",
        ObstacleKind::Clock => "the clock",
        ObstacleKind::Trigger => "its trigger",
    }
}

/// The path as a tree. A slot that several wait for is listed once; the tree is flat, with levels, for a chain may be long.
fn tree(upstream: &Upstream) -> Markup {
    let mut lines: Vec<(usize, SlotRef, bool)> = Vec::new();
    let mut told = BTreeSet::new();
    let mut stack: Vec<(usize, SlotRef)> =
        upstream.steps.first().map(|step| (0, step.slot.clone())).into_iter().collect();
    while let Some((depth, slot)) = stack.pop() {
        let is_new = told.insert(slot.clone());
        if let Some(step) = upstream.step(&slot).filter(|_| is_new) {
            stack.extend(step.waits_for.iter().rev().map(|next| (depth + 1, next.clone())));
        }
        lines.push((depth, slot, is_new));
    }
    html! {
        ol.path {
            @for (depth, slot, is_new) in &lines {
                @let step = upstream.step(slot);
                li class=(format!("depth-{}", depth.min(MOST_INDENTED))) {
                    @if *depth > 0 { span.soft { "waits for " } }
                    (slot_link(slot, step.and_then(|step| step.state)))
                    @if !is_new { span.soft { " (see above)" } }
                    @else if step.is_some_and(|step| !step.obstacles.is_empty()) { " " strong { "← here" } }
                }
            }
        }
    }
}

/// Levels that are indented further than those before.
const MOST_INDENTED: &usize = &8;

fn focus(found: &GraphPage) -> Markup {
    let Some(id) = &found.view.focus else { return html! {} };
    let Some(node) = found.graph.nodes.iter().find(|node| node.id == *id) else {
        return html! { p { "No workflow is named " b { (id) } "." } };
    };
    html! {
        h2 { a href=(workflow_href(id)) { (id) } }
        (counts(node))
        @if found.slots.is_empty() { p { "Every slot that it has succeeded." } }
        @else {
            h3 { "Slots that have not succeeded" }
            ul.plain {
                @for (slot, state) in &found.slots {
                    li {
                        (slot_link(slot, Some(*state)))
                        @if matches!(state, SlotState::Waiting | SlotState::Held | SlotState::Expired | SlotState::Skipped) {
                            div.evidence { a href=(found.view.of_slot(slot).href()) { "What blocks it?" } }
                        }
                    }
                }
            }
        }
        div { (edges(found, node, true)) (edges(found, node, false)) }
    }
}

fn counts(node: &Node) -> Markup {
    html! {
        p {
            @if let Some(off) = off(node) { span.badge.ended { (off) } " " }
            @for state in BY_WEIGHT.iter().rev() {
                @if let Some(count) = node.counts.get(state) { (badge(*state)) " " (count) " " }
            }
        }
    }
}

/// The edges of a node in one direction, as far as they are shown.
fn edges(found: &GraphPage, node: &Node, up: bool) -> Markup {
    let is_own = |edge: &&kelos_explain::graph::Edge| if up { edge.to == node.id } else { edge.from == node.id };
    let edges: Vec<_> = found.graph.edges.iter().filter(is_own).collect();
    let hidden = if up { node.hidden_up } else { node.hidden_down };
    html! {
        @if !edges.is_empty() || hidden > 0 {
            h3 { @if up { "Waits for" } @else { "Downstream" } }
            ul.plain {
                @for edge in edges {
                    @let other = if up { &edge.from } else { &edge.to };
                    li {
                        a href=(found.view.around(other).href()) { (other) }
                        @match edge.kind {
                            EdgeKind::Success { later_seconds: 0 } => {}
                            EdgeKind::Success { later_seconds } => span.soft { ": " (later_told(later_seconds)) },
                            EdgeKind::Periods => span.soft { ": all periods that intersect" },
                            EdgeKind::Schedule => span.soft { ": the times" },
                            EdgeKind::Jobs => span.soft { ": jobs" },
                            EdgeKind::Ended => span.soft { ": the ends of runs" },
                            EdgeKind::Paths => span.soft { ": by a path" },
                            EdgeKind::Runs => span.soft { @if up { ": it runs this" } @else { ": this runs it" } },
                        }
                    }
                }
            }
            @if hidden > 0 { p.soft { (hidden) " more, which are not shown" } }
        }
    }
}

/// The workflows with failures, to be looked at first.
fn all(found: &GraphPage) -> Markup {
    let failing = failing(found);
    let (shown, total) = (found.graph.nodes.len(), found.graph.total);
    let listed: usize = failing.iter().map(|one| one.failures).sum();
    let outside = found.failures.rows.len() - listed;
    html! {
        h2 { @if shown == total { (words::count(total as u64, "workflow")) } @else { (shown) " of " (words::count(total as u64, "workflow")) } }
        @if shown <= MOST_DRAWN { p.soft { "A click on a workflow shows what is around it." } }
        @if found.failures.rows.is_empty() { p { span.badge.good { "fine" } " Nothing has failed." } }
        @if !failing.is_empty() {
            h3 { "Failing" }
            ul.plain {
                @for one in failing.iter().take(TROUBLED) {
                    li data-failing=(one.id) {
                        (badge(one.state)) " " a href=(found.view.around(one.id).href()) { (one.id) }
                        span.soft { " " (words::count(one.failures as u64, "failure")) @if one.followers > 0 { "; " (failures::waiting(one.followers)) } }
                    }
                }
            }
            @if failing.len() > TROUBLED { p.soft { "and " (failing.len() - TROUBLED) " more" } }
        }
        @if outside > 0 { p { a href=(failures::HREF) { (words::count(outside as u64, "failure")) " outside of what is shown" } } }
    }
}

/// A workflow with failures.
struct NodeFailures<'a> {
    id: &'a WorkflowId,
    /// The state of the latest.
    state: SlotState,
    failures: usize,
    followers: usize,
}

/// The workflows with failures among those that are shown: those that most wait for come first.
fn failing(found: &GraphPage) -> Vec<NodeFailures<'_>> {
    let shown: BTreeSet<&WorkflowId> = found.graph.nodes.iter().map(|node| &node.id).collect();
    let mut failing: BTreeMap<&WorkflowId, NodeFailures<'_>> = BTreeMap::new();
    for row in found.failures.rows.iter().filter(|row| shown.contains(&row.slot.workflow)) {
        let id = &row.slot.workflow;
        let one = failing.entry(id).or_insert(NodeFailures { id, state: row.state, failures: 0, followers: 0 });
        one.failures += 1;
        one.followers += row.followers.len();
    }
    let mut failing: Vec<NodeFailures<'_>> = failing.into_values().collect();
    failing.sort_by_key(|one| (Reverse(one.followers), one.id));
    failing
}

pub(super) fn legend() -> Markup {
    html! {
        details.legend {
            summary { "Legend" }
            p { "A workflow has the colour of the worst of its slots in the time that is chosen above, and of failures from before that were not repaired; one without any has that of its newest slot. On a path it has that of the slot on it." }
            ul.plain {
                @for state in SlotState::ALL { li { (badge(state)) " " span.soft { (meaning(state)) } } }
                li { "→ " span.soft { "waits for the success of" } }
                li { "⇢ " span.soft { "dashed: uses the schedule of, or is run by" } }
                li { "ended " span.soft { "waits for the ends of runs of" } }
                li { "−1 h " span.soft { "depends on the slot an hour earlier" } }
                li { "+2 " span.soft { "workflows beyond it that are not shown" } }
            }
        }
    }
}
