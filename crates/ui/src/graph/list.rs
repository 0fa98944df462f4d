//! The graph as a table: for those who don't see a picture, and for copying.

use std::collections::BTreeMap;

use kelos_explain::graph::{Edge, EdgeKind, Graph, NodeKind};
use kelos_model::WorkflowId;
use maud::{Markup, html};

use super::node::{off, shown_state, without_slots};
use super::picture::later_told;
use super::view::GraphView;
use crate::page::workflow_href;
use crate::state::badge;

pub(super) fn list(graph: &Graph, view: &GraphView) -> Markup {
    let mut up: BTreeMap<&WorkflowId, Vec<&Edge>> = BTreeMap::new();
    for edge in &graph.edges {
        up.entry(&edge.to).or_default().push(edge);
    }
    html! {
        div.wide #list {
            table {
                caption.unseen { "Workflows and what they wait for" }
                thead { tr { th scope="col" { "Workflow" } th scope="col" { "State" } th scope="col" { "Project" } th scope="col" { "Waits for" } } }
                tbody {
                    @for node in &graph.nodes {
                        tr {
                            th scope="row" { a href=(view.around(&node.id).href()) { (node.id) } }
                            td {
                                @if node.kind == NodeKind::Missing { span.badge.again { "not defined" } }
                                @else {
                                    @if let Some(state) = shown_state(node) { (badge(state)) } @else { span.soft { (without_slots(node)) } }
                                    @if let Some(off) = off(node) { " " span.badge.ended { (off) } }
                                }
                            }
                            td { @if let Some(project) = &node.project { (project) } }
                            td { @for edge in up.get(&node.id).into_iter().flatten() { (looked_at(edge)) } }
                        }
                    }
                }
            }
        }
    }
}

fn looked_at(edge: &Edge) -> Markup {
    html! {
        div {
            a href=(workflow_href(&edge.from)) { (edge.from) }
            @match edge.kind {
                EdgeKind::Success { later_seconds: 0 } => {}
                EdgeKind::Success { later_seconds } => span.soft { ": " (later_told(later_seconds)) },
                EdgeKind::Periods => span.soft { ": all periods that intersect" },
                EdgeKind::Schedule => span.soft { ": the times" },
                EdgeKind::Jobs => span.soft { ": jobs" },
                EdgeKind::Ended => span.soft { ": the ends of its runs" },
                EdgeKind::Runs => span.soft { ": it runs this" },
                EdgeKind::Paths => span.soft { ": a path that it writes" },
            }
        }
    }
}
