//! The root causes of a slot's wait, with the way to each.

use jiff::Timestamp;
use kelos_explain::roots::{Root, Roots, roots};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::SlotRef;
use maud::{Markup, html};

use crate::output::last_lines;
use crate::page::slot_href;
use crate::state::badge;
use crate::time;

/// Lines of output of a failed run that are shown.
const LINES: usize = 10;

/// The roots of a slot's wait, each with the end of the output of its run.
pub(super) struct RootList {
    found: Roots,
    lines: Vec<Vec<String>>,
}

impl RootList {
    pub(super) async fn read(app: &App, slot: &SlotRef, at: Option<Timestamp>) -> Result<RootList, Fault> {
        let found = roots(app.handle(), slot, at).await?;
        let mut lines = Vec::new();
        for root in &found.rows {
            lines.push(match root.run.as_ref().filter(|run| run.slot != *slot) {
                Some(run) => last_lines(app, run, LINES).await,
                None => Vec::new(),
            });
        }
        Ok(RootList { found, lines })
    }

    /// The roots that are not the slot itself: the page says everything else about it.
    pub(super) fn show(&self) -> Markup {
        let shown: Vec<_> = self.found.rows.iter().zip(&self.lines).filter(|(root, _)| is_news(root)).collect();
        html! {
            @if !shown.is_empty() {
                h2 { @if shown.len() == 1 { "Root cause" } @else { "Root causes" } }
                ul.plain.causes { @for (root, lines) in shown { li { (one(root, lines)) } } }
                @if self.found.more > 0 { p.soft { "and " (self.found.more) " of other kinds" } }
                @if self.found.unexamined > 0 { p.soft { (self.found.unexamined) " slots on the way were not examined." } }
            }
        }
    }
}

fn is_news(root: &Root) -> bool {
    root.way.len() > 1 || root.kind == kelos_explain::graph::ObstacleKind::Circle
}

fn one(root: &Root, lines: &[String]) -> Markup {
    let middle = if root.left_out > 0 { root.way.len() / 2 } else { root.way.len() };
    html! {
        @if let Some(state) = root.state { (badge(state)) " " }
        a href=(slot_href(&root.slot)) { (root.slot.short()) } " " (time::in_text(&root.cause))
        @if root.alike > 0 { " (and " (root.alike) " more like it)" }
        @if !lines.is_empty() { pre.error tabindex="0" role="group" aria-label="the end of its output" { (lines.join("\n")) } }
        @if root.way.len() > 2 {
            div.evidence {
                "By way of "
                @for (n, step) in root.way.iter().enumerate().skip(1).take(root.way.len() - 2) {
                    @if n == middle { "… (" (root.left_out) " more) › " }
                    a href=(slot_href(&step.slot)) { (step.slot.short()) }
                    @if n + 2 < root.way.len() { " › " }
                }
            }
        }
    }
}
