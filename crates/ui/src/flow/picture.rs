//! A flow as a drawing: steps from left to right, and the ways on which a failure leads apart from the others.

use std::collections::BTreeMap;

use kelos_explain::graph::layout::{Layout, Point, Size, lay_out};
use kelos_model::flow::Step;
use maud::{Markup, html};

use crate::graph::{arrow, curve, shortened};
use crate::words;

const HIGH: f64 = 40.0;
/// Around everything; [`curve`] reckons with it.
const MARGIN: f64 = 40.0;
const LEAST_WIDE: f64 = 130.0;
const MOST_WIDE: f64 = 310.0;
/// Room for a character of a name, on the average, and for the letter beside it.
const CHARACTER: f64 = 7.9;
const BESIDE: f64 = 48.0;
/// Steps of a picture; more would say nothing.
pub(super) const MOST_DRAWN: usize = 150;

/// A step of a picture.
pub(super) struct PictureStep<'a> {
    pub(super) step: &'a Step,
    /// The class of its colour.
    pub(super) class: &'static str,
    pub(super) letter: Option<char>,
    /// The line below its name.
    pub(super) note: String,
    /// The same in a sentence.
    pub(super) told: String,
    /// The page of the step; none in a definition.
    pub(super) href: Option<String>,
    /// Whether it is on the critical path.
    pub(super) is_along: bool,
}

/// The picture of steps; the table of them is its text.
pub(super) fn picture(steps: &[PictureStep<'_>]) -> Markup {
    if steps.len() > MOST_DRAWN {
        return html! { p.soft { "It has " (steps.len()) " steps, more than the " (MOST_DRAWN) " that a picture holds." } };
    }
    let number: BTreeMap<&str, usize> =
        steps.iter().enumerate().map(|(at, one)| (one.step.name.as_str(), at)).collect();
    let mut edges: Vec<(usize, usize, bool)> = Vec::new();
    for (to, one) in steps.iter().enumerate() {
        let from = |name: &kelos_model::StepName| number.get(name.as_str()).copied();
        edges.extend(one.step.needs.iter().filter_map(from).map(|from| (from, to, false)));
        edges.extend(one.step.handles.iter().filter_map(from).map(|from| (from, to, true)));
    }
    let sizes: Vec<Size> = steps.iter().map(size).collect();
    let pairs: Vec<(usize, usize)> = edges.iter().map(|(from, to, _)| (*from, *to)).collect();
    let layout = lay_out(&sizes, &pairs);
    let (width, height) = ((layout.size.width + 2.0 * MARGIN).ceil(), (layout.size.height + 2.0 * MARGIN).ceil());
    let failures = edges.iter().filter(|(_, _, is_error)| *is_error).count() as u64;
    let told = format!(
        "{} from left to right, {} on success and {} on a failure; the table has the same as text",
        words::count(steps.len() as u64, "step"),
        words::count(edges.len() as u64 - failures, "arrow"),
        words::count(failures, "arrow"),
    );
    html! {
        div.wide.flow-picture tabindex="0" role="region" aria-label="Graph of the steps" {
            svg role="group" aria-label=(told) width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                defs { (arrow("arrow", "tip")) (arrow("arrow-error", "tip error")) (arrow("arrow-path", "tip along")) }
                g { @for ((from, to, is_error), way) in edges.iter().zip(&layout.ways) { (edge(&steps[*from], &steps[*to], *is_error, way)) } }
                g { @for (at, one) in steps.iter().enumerate() { (node(one, &layout, at, sizes[at])) } }
            }
        }
        p.soft.flow-legend {
            span.key.after-success { "after a success" }
            @if failures > 0 { span.key.after-failure { "after a failure" } }
            @if steps.iter().any(|one| one.is_along) { span.key.on-path { "critical path" } }
        }
    }
}

fn edge(from: &PictureStep<'_>, to: &PictureStep<'_>, is_error: bool, way: &[Point]) -> Markup {
    let is_along = from.is_along && to.is_along;
    let (class, tip) = match (is_along, is_error) {
        (true, true) => ("edge along error", "url(#arrow-path)"),
        (true, false) => ("edge along", "url(#arrow-path)"),
        (false, true) => ("edge error", "url(#arrow-error)"),
        (false, false) => ("edge", "url(#arrow)"),
    };
    let verb = if is_error { "handles the failure of" } else { "needs" };
    html! {
        @if !way.is_empty() {
            g class=(class) {
                title { (to.step.name) " " (verb) " " (from.step.name) }
                path d=(curve(way, 0.0).0) marker-end=(tip) {}
            }
        }
    }
}

fn node(one: &PictureStep<'_>, layout: &Layout, at: usize, size: Size) -> Markup {
    let place = layout.places[at];
    let (x, y) = ((place.x + MARGIN).round(), (place.y + MARGIN).round());
    let class = format!("node {}{}", one.class, if one.is_along { " along" } else { "" });
    let drawn = html! {
        title { (one.step.name) ": " (one.told) }
        rect x=(x) y=(y) width=(size.width) height=(HIGH) rx="6" {}
        @if let Some(letter) = one.letter { text.letter aria-hidden="true" x=(x + 9.0) y=(y + 26.0) { (letter) } }
        @let left = if one.letter.is_some() { 28.0 } else { 12.0 };
        svg x=(x + left) y=(y) width=(size.width - left - 6.0) height=(HIGH) {
            text.name y="17" aria-hidden="true" { (shortened(one.step.name.as_str())) }
            text.below y="32" aria-hidden="true" { (one.note) }
        }
    };
    html! {
        @match &one.href {
            Some(href) => a class=(class) href=(href) { (drawn) },
            None => g class=(class) role="img" aria-label=(format!("{}: {}", one.step.name, one.told)) { (drawn) },
        }
    }
}

fn size(one: &PictureStep<'_>) -> Size {
    let name = shortened(one.step.name.as_str()).chars().count();
    // The line below is of a smaller size.
    let longest = (name as f64 * CHARACTER).max(one.note.chars().count() as f64 * 6.2);
    Size { width: (longest + BESIDE).clamp(LEAST_WIDE, MOST_WIDE).ceil(), height: HIGH }
}
