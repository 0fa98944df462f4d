//! The graph as a drawing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kelos_explain::graph::layout::{Layout, Point, Size, lay_out};
use kelos_explain::graph::{Edge, EdgeKind, Graph, Node, Upstream};
use kelos_model::WorkflowId;
use maud::{Markup, PreEscaped, html};

use super::node::{Face, OnPath, face, on_path};
use super::view::GraphView;
use crate::words;

/// Height of a node.
const HIGH: f64 = 40.0;
const LEAST_WIDE: f64 = 130.0;
const MOST_WIDE: f64 = 310.0;
/// Room for a character of a name, on the average, and for the marks beside names.
const CHARACTER: f64 = 7.9;
const BESIDE: f64 = 48.0;
/// Characters of a name that are shown.
const NAME: usize = 36;
/// The group of those who gave it no name.
const UNNAMED: &str = "default";
/// The margin around everything, with room for loops and notes beside nodes.
const MARGIN: f64 = 40.0;

/// All edges of one kind from one node to another.
struct Bundle<'a> {
    from: &'a WorkflowId,
    to: &'a WorkflowId,
    /// The kind of the first of its edges.
    kind: EdgeKind,
    is_schedule: bool,
    /// How much later than the own slot the upstream ones are, ascending.
    later: Vec<i64>,
    /// The groups by which jobs wait, where jobs do.
    groups: Option<&'a [Arc<str>]>,
}

/// A graph with places for everything.
pub(super) struct Picture<'a> {
    graph: &'a Graph,
    view: &'a GraphView,
    bundles: Vec<Bundle<'a>>,
    layout: Layout,
    sizes: Vec<Size>,
    path: OnPath,
    /// The edges of the path.
    along: BTreeSet<(&'a WorkflowId, &'a WorkflowId)>,
}

impl<'a> Picture<'a> {
    pub(super) fn new(graph: &'a Graph, view: &'a GraphView, upstream: Option<&'a Upstream>) -> Picture<'a> {
        let number: BTreeMap<&WorkflowId, usize> =
            graph.nodes.iter().enumerate().map(|(number, node)| (&node.id, number)).collect();
        let bundles = bundles(&graph.edges);
        let pairs: Vec<(usize, usize)> =
            bundles.iter().filter_map(|one| Some((*number.get(one.from)?, *number.get(one.to)?))).collect();
        let sizes: Vec<Size> = graph.nodes.iter().map(size).collect();
        let steps = upstream.into_iter().flat_map(|upstream| &upstream.steps);
        let along = steps.flat_map(|step| step.waits_for.iter().map(|on| (&on.workflow, &step.slot.workflow)));
        Picture {
            along: along.collect(),
            path: upstream.map(on_path).unwrap_or_default(),
            layout: lay_out(&sizes, &pairs),
            graph,
            view,
            bundles,
            sizes,
        }
    }

    /// The drawing as part of a page.
    pub(super) fn inline(&self) -> Markup {
        let told = format!(
            "{} and {}, which lead from what is waited for to what waits",
            words::count(self.graph.nodes.len() as u64, "workflow"),
            words::count(self.bundles.len() as u64, "arrow"),
        );
        let Size { width, height } = self.whole();
        html! {
            svg #picture role="group" aria-label=(told) tabindex="0" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                (self.contents(true))
            }
        }
    }

    /// The drawing as a file of its own, without links.
    pub(super) fn file(&self, style: &str) -> String {
        let Size { width, height } = self.whole();
        let svg = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                style { (PreEscaped(style)) }
                rect.paper width=(width) height=(height) {}
                (self.contents(false))
            }
        };
        svg.into_string()
    }

    fn whole(&self) -> Size {
        let Size { width, height } = self.layout.size;
        Size { width: (width + 2.0 * MARGIN).ceil(), height: (height + 2.0 * MARGIN).ceil() }
    }

    fn contents(&self, with_links: bool) -> Markup {
        html! {
            defs { (arrow("arrow", "tip")) (arrow("arrow-path", "tip along")) }
            g #edges { @for (bundle, way) in self.bundles.iter().zip(&self.layout.ways) { (self.edge(bundle, way)) } }
            g #nodes {
                @for (number, node) in self.graph.nodes.iter().enumerate() {
                    @let face = face(node, self.path.get(&node.id), self.view.hours);
                    @let class = self.classes(node, &face);
                    @if with_links {
                        a class=(class) href=(self.view.around(&node.id).href()) data-w=(node.id) {
                            (self.drawn(number, node, &face))
                        }
                    } @else {
                        g class=(class) { (self.drawn(number, node, &face)) }
                    }
                }
            }
        }
    }

    fn classes(&self, node: &Node, face: &Face) -> String {
        let mut class = format!("node {}", face.class);
        for (holds, name) in [
            (self.view.focus.as_ref() == Some(&node.id), " focus"),
            (self.path.contains_key(&node.id), " along"),
            (self.path.get(&node.id).is_some_and(|(_, is_root)| *is_root), " root"),
            (!self.path.is_empty() && !self.path.contains_key(&node.id), " aside"),
            (node.is_paused || node.is_disabled, " paused"),
        ] {
            if holds {
                class += name;
            }
        }
        class
    }

    fn drawn(&self, number: usize, node: &Node, face: &Face) -> Markup {
        let place = self.layout.places[number];
        let (x, y, width) = (round(place.x + MARGIN), round(place.y + MARGIN), round(self.sizes[number].width));
        html! {
            title { (face.told) }
            rect x=(x) y=(y) width=(width) height=(HIGH) rx="6" {}
            // The title names the link, and says all of this in words.
            text.letter aria-hidden="true" x=(x + 9.0) y=(y + 26.0) { (face.letter) }
            // Names may run from right to left, and be wider than was reckoned with.
            svg x=(x + 28.0) y=(y) width=(width - 34.0) height=(HIGH) {
                text.name y="17" aria-hidden="true" { (shortened(node.id.as_str())) }
                text.below y="32" aria-hidden="true" { (face.note) }
            }
            @if node.hidden_up > 0 { text.more aria-hidden="true" x=(x - 4.0) y=(y + 10.0) text-anchor="end" { "+" (node.hidden_up) } }
            @if node.hidden_down > 0 { text.more aria-hidden="true" x=(x + width + 4.0) y=(y + 10.0) { "+" (node.hidden_down) } }
        }
    }

    fn edge(&self, bundle: &Bundle<'_>, way: &[Point]) -> Markup {
        let along = self.along.contains(&(bundle.from, bundle.to)) && !bundle.is_schedule;
        let mut class = if bundle.is_schedule { "edge schedule".to_owned() } else { "edge".to_owned() };
        if along {
            class += " along";
        } else if !self.path.is_empty() {
            class += " aside";
        }
        let shift = if bundle.is_schedule { 6.0 } else { 0.0 };
        let (d, label) = match way.is_empty() {
            true => self.circle(bundle.from),
            false => curve(way, shift),
        };
        let arrow = if along { "url(#arrow-path)" } else { "url(#arrow)" };
        html! {
            g class=(class) {
                title { (bundle.told()) }
                path d=(d) marker-end=(arrow) {}
                @if let Some(text) = bundle.label() { text x=(round(label.x)) y=(round(label.y - 4.0)) text-anchor="middle" { (text) } }
            }
        }
    }

    /// The path of an edge from a node to itself: around the upper right corner.
    fn circle(&self, id: &WorkflowId) -> (String, Point) {
        let Some(number) = self.graph.nodes.iter().position(|node| node.id == *id) else {
            return (String::new(), Point { x: 0.0, y: 0.0 });
        };
        let place = self.layout.places[number];
        let (x, y) = (round(place.x + MARGIN + self.sizes[number].width), round(place.y + MARGIN));
        let d =
            format!("M{x} {} C{} {} {} {} {} {}", y + 12.0, x + 26.0, y + 12.0, x - 10.0, y - 24.0, x - 18.0, y - 1.0);
        (d, Point { x: x - 10.0, y: y - 8.0 })
    }
}

impl Bundle<'_> {
    /// Whether another edge is drawn as the same line.
    fn joins(&self, edge: &Edge, is_schedule: bool) -> bool {
        let alone = |kind| matches!(kind, EdgeKind::Runs | EdgeKind::Ended | EdgeKind::Paths);
        let is_alone = alone(self.kind) || alone(edge.kind);
        !is_alone && (self.from, self.to) == (&edge.from, &edge.to) && self.is_schedule == is_schedule
    }

    fn told(&self) -> String {
        if self.kind == EdgeKind::Runs {
            return format!("{} runs {}", self.from, self.to);
        }
        if self.kind == EdgeKind::Ended {
            return format!("{} waits for the ends of runs of {}", self.to, self.from);
        }
        if self.kind == EdgeKind::Paths {
            return format!("{} waits for a path that {} writes", self.to, self.from);
        }
        if self.is_schedule {
            return format!("{} has slots at the times of {}", self.to, self.from);
        }
        let times = self.later.iter().map(|later| later_told(*later));
        let jobs = self.groups.map(|groups| match groups {
            [] => "its jobs".to_owned(),
            groups => format!("its jobs (group {})", groups.join(", ")),
        });
        let times: Vec<String> = times.chain(jobs).collect();
        format!("{} waits for {}: {}", self.to, self.from, times.join(", "))
    }

    fn label(&self) -> Option<String> {
        match self.kind {
            EdgeKind::Runs => return Some("runs".to_owned()),
            EdgeKind::Ended => return Some("ended".to_owned()),
            EdgeKind::Paths => return Some("path".to_owned()),
            _ => {}
        }
        if let Some(groups) = self.groups.filter(|_| self.later.is_empty()) {
            let named = groups.iter().map(|group| &**group).filter(|group| *group != UNNAMED);
            return Some(named.collect::<Vec<_>>().join(", ")).filter(|label| !label.is_empty());
        }
        let is_plain = self.is_schedule || self.later == [0];
        let times = self
            .later
            .iter()
            .map(|later| if *later > 0 { format!("+{}", words::span(*later)) } else { words::span(*later) });
        (!is_plain).then(|| times.take(3).collect::<Vec<_>>().join(", "))
    }
}

/// The offset of an edge in words.
pub(super) fn later_told(later: i64) -> String {
    match later {
        0 => "the slot of the same time".to_owned(),
        later if later < 0 => format!("the slot {} earlier", words::span(later.saturating_neg())),
        later => format!("the slot {} later", words::span(later)),
    }
}

fn bundles(edges: &[Edge]) -> Vec<Bundle<'_>> {
    let mut bundles: Vec<Bundle<'_>> = Vec::new();
    for edge in edges {
        let (is_schedule, later, groups) = match edge.kind {
            EdgeKind::Schedule => (true, None, None),
            EdgeKind::Periods | EdgeKind::Jobs | EdgeKind::Ended | EdgeKind::Paths => {
                (false, None, Some(edge.groups.as_slice()))
            }
            EdgeKind::Runs => (true, None, None),
            EdgeKind::Success { later_seconds } => (false, Some(later_seconds), None),
        };
        match bundles.last_mut() {
            Some(last) if last.joins(edge, is_schedule) => {
                last.later.extend(later);
                last.groups = last.groups.or(groups);
            }
            _ => {
                let later = later.into_iter().collect();
                bundles.push(Bundle { from: &edge.from, to: &edge.to, kind: edge.kind, is_schedule, later, groups });
            }
        }
    }
    bundles
}

fn size(node: &Node) -> Size {
    let shown = node.id.as_str().chars().count().min(NAME) as f64;
    Size { width: (shown * CHARACTER + BESIDE).clamp(LEAST_WIDE, MOST_WIDE).ceil(), height: HIGH }
}

/// The beginning and the end of a name that is too long: names differ in either.
pub(crate) fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        return name.to_owned();
    }
    let begin: String = name.chars().take(NAME / 2 - 1).collect();
    let end: String = name.chars().skip(count - NAME / 2).collect();
    format!("{begin}…{end}")
}

/// A line through points that leaves and enters each flat, and its middle.
pub(crate) fn curve(way: &[Point], shift: f64) -> (String, Point) {
    let at: Vec<Point> = way.iter().map(|p| Point { x: round(p.x + MARGIN), y: round(p.y + MARGIN + shift) }).collect();
    let mut d = format!("M{} {}", at[0].x, at[0].y);
    for (n, pair) in at.windows(2).enumerate() {
        let (from, to) = (pair[0], pair[1]);
        if from.y == to.y || n % 2 == 1 {
            d += &format!("L{} {}", to.x, to.y);
        } else {
            let middle = round((from.x + to.x) / 2.0);
            d += &format!("C{middle} {} {middle} {} {} {}", from.y, to.y, to.x, to.y);
        }
    }
    let middle = match at.len() {
        2 => Point { x: (at[0].x + at[1].x) / 2.0, y: (at[0].y + at[1].y) / 2.0 },
        count => Point { x: (at[count / 2 - 1].x + at[count / 2].x) / 2.0, y: at[count / 2].y },
    };
    (d, middle)
}

pub(crate) fn arrow(id: &str, class: &str) -> Markup {
    html! {
        marker id=(id) viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto" {
            path class=(class) d="M0 .5L8 4L0 7.5z" {}
        }
    }
}

fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
