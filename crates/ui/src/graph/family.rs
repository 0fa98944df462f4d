//! A job with its ancestors and descendants, as a picture and as a list.

use kelos_explain::graph::Upstream;
use kelos_explain::graph::layout::{Layout, Point, Size, lay_out};
use kelos_explain::jobs::{Family, FamilyMember};
use kelos_model::SlotRef;
use maud::{Markup, html};

use super::picture::{arrow, curve, shortened};
use crate::page::{segment, slot_href, workflow_href};
use crate::state::{badge, look};
use crate::words;

const HIGH: f64 = 40.0;
const MARGIN: f64 = 40.0;
const LEAST_WIDE: f64 = 130.0;
const MOST_WIDE: f64 = 370.0;
/// Room for a character in bold, most of which are digits here, and for the marks beside names.
const CHARACTER: f64 = 8.7;
const BESIDE: f64 = 48.0;
/// Jobs of a picture.
pub(super) const MOST_DRAWN: usize = 150;

/// A job and those around it.
pub(super) struct FamilyPage {
    pub(super) job: SlotRef,
    pub(super) family: Family,
    pub(super) upstream: Upstream,
}

impl FamilyPage {
    pub(super) fn show(&self) -> Markup {
        html! {
            div data-events="" data-batch="900" hidden {}
            nav.crumbs aria-label="Breadcrumb" {
                a href="/ui/graph" { "Graph" } " › " a href=(workflow_href(&self.job.workflow)) { (self.job.workflow) }
                " › " a href=(slot_href(&self.job)) { (self.job.key.short()) }
            }
            h1 { (self.job.short()) " and what is around it" }
            div #family-told data-live { (self.told()) }
            div.wide.family #family data-live { (self.picture()) }
            div #family-way data-live { (self.way()) }
        }
    }

    fn told(&self) -> Markup {
        let count = |is: fn(&&FamilyMember) -> bool| self.family.members.iter().filter(is).count() as u64;
        html! {
            p.headline {
                (words::count(count(|one| one.above > 0), "ancestor")) " and " (words::count(count(|one| one.above < 0), "descendant"))
                @if self.family.left_out > 0 { "; at least " (self.family.left_out) " more are left out: a picture holds " (MOST_DRAWN) ", those first that have not succeeded" }
                "."
            }
        }
    }

    /// The obstacles of a job, at any distance upstream.
    fn way(&self) -> Markup {
        let roots: Vec<_> = self.upstream.roots().collect();
        html! {
            @if !roots.is_empty() {
                h2 { "Blocked by" }
                ul.causes { @for step in roots {
                    li {
                        a href=(slot_href(&step.slot)) { (step.slot.short()) }
                        @if let Some(state) = step.state { " " (badge(state)) }
                        @for obstacle in &step.obstacles { br; (obstacle.words) }
                    }
                } }
                @if self.upstream.is_cut { p.soft { "There is more: only a part of the jobs was examined." } }
            }
        }
    }

    fn picture(&self) -> Markup {
        let sizes: Vec<Size> = self.family.members.iter().map(size).collect();
        let pairs: Vec<(usize, usize)> = self.family.edges.keys().copied().collect();
        let layout = lay_out(&sizes, &pairs);
        let (width, height) = (whole(layout.size.width), whole(layout.size.height));
        let told = format!("{} and who waits for whom, from left to right", words::count(sizes.len() as u64, "job"));
        html! {
            svg role="group" aria-label=(told) width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                defs { (arrow("arrow", "tip")) }
                g { @for (((from, to), groups), way) in self.family.edges.iter().zip(&layout.ways) { (self.edge(*from, *to, groups, way)) } }
                g { @for (number, member) in self.family.members.iter().enumerate() { (self.node(number, member, &layout, &sizes)) } }
            }
        }
    }

    fn edge(
        &self,
        from: usize,
        to: usize,
        groups: &std::collections::BTreeSet<std::sync::Arc<str>>,
        way: &[Point],
    ) -> Markup {
        let name = |number: usize| self.family.members.get(number).map(|one| one.job.short()).unwrap_or_default();
        let groups: Vec<&str> = groups.iter().map(|group| &**group).collect();
        html! {
            g.edge {
                title { (name(to)) " waits for " (name(from)) " (" (groups.join(", ")) ")" }
                path d=(curve(way, 0.0).0) marker-end="url(#arrow)" {}
            }
        }
    }

    fn node(&self, number: usize, member: &FamilyMember, layout: &Layout, sizes: &[Size]) -> Markup {
        let (place, size) = (layout.places[number], sizes[number]);
        let (x, y) = ((place.x + MARGIN).round(), (place.y + MARGIN).round());
        let (class, letter, state) = match member.state {
            Some(state) => (look(state).class, look(state).letter.to_string(), state.as_str()),
            None => ("none", String::new(), "never opened"),
        };
        let told = format!("{}: {state}", member.job.short());
        html! {
            a class=(format!("node {class}{}", if number == 0 { " focus" } else { "" }))  href=(slot_href(&member.job)) {
                title { (told) }
                rect x=(x) y=(y) width=(size.width) height=(HIGH) rx="6" {}
                text.letter aria-hidden="true" x=(x + 9.0) y=(y + 26.0) { (letter) }
                svg x=(x + 28.0) y=(y) width=(size.width - 34.0) height=(HIGH) {
                    text.name y="17" aria-hidden="true" { (shortened(&member.job.key.short())) }
                    text.below y="32" aria-hidden="true" { (shortened(member.job.workflow.as_str())) }
                }
            }
        }
    }
}

fn whole(length: f64) -> f64 {
    (length + 2.0 * MARGIN).ceil()
}

fn size(member: &FamilyMember) -> Size {
    let shown = |text: &str| shortened(text).chars().count();
    let longest = shown(&member.job.key.short()).max(shown(member.job.workflow.as_str()));
    let width = (longest as f64 * CHARACTER + BESIDE).clamp(LEAST_WIDE, MOST_WIDE);
    Size { width: width.round(), height: HIGH }
}

/// The address of a job's parents and children.
pub(crate) fn family_href(job: &SlotRef) -> String {
    format!("/ui/graph?slot={}", segment(&job.to_string()))
}
