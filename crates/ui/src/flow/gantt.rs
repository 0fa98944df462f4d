//! The runs of the steps of a run as bars over the time that it took.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_explain::flow::StepView;
use kelos_model::{Run, SlotRef};
use maud::{Markup, html};

use crate::page::slot_href;
use crate::{runs, time, words};

/// A bar that is narrower, in percent, would not be seen.
const NARROWEST: f64 = 0.6;
const HIGH: u32 = 20;

/// The window of a chart.
pub(super) struct Chart<'a> {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    /// What is on the critical path.
    pub(super) path: &'a BTreeSet<SlotRef>,
}

impl Chart<'_> {
    /// Steps that have run, with their runs in this window.
    pub(super) fn show(&self, steps: &[(&StepView, Vec<&Run>)]) -> Markup {
        let rows: Vec<_> = steps.iter().filter(|(_, runs)| !runs.is_empty()).collect();
        html! {
            @if !rows.is_empty() {
                h2 { "When its steps ran" }
                div.gantt {
                    table {
                        thead { tr {
                            th scope="col" { "Step" }
                            th scope="col" { span.ends { span { (time::at(self.from)) } span { (words::took(self.from, self.until)) } } }
                        } }
                        tbody { @for (view, runs) in rows { (self.row(view, runs)) } }
                    }
                }
                @if rows_on_path(self.path, steps) { p.soft { "★ is on the critical path: what determined when the run ended, or delays it now." } }
            }
        }
    }

    fn row(&self, view: &StepView, runs: &[&Run]) -> Markup {
        let is_along = self.path.contains(&view.id);
        let told: Vec<String> = runs.iter().map(|run| self.told(run)).collect();
        let mark = if is_along { " (on the critical path)" } else { "" };
        html! {
            tr.along[is_along] {
                th scope="row" title=(view.step.name) {
                    a href=(slot_href(&view.id)) { (view.step.name) }
                    @if is_along { " " span aria-hidden="true" { "★" } span.unseen { (mark) } }
                }
                td { svg width="100%" height=(HIGH) role="img" aria-label=(told.join("; ")) { @for run in runs { (self.bar(run)) } } }
            }
        }
    }

    fn bar(&self, run: &Run) -> Markup {
        let from = self.percent(begin(run));
        let wide = (self.percent(run.ended_at.unwrap_or(self.until)) - from)
            .max(NARROWEST)
            .min(100.0 - from.min(100.0 - NARROWEST));
        let from = from.min(100.0 - NARROWEST);
        html! {
            rect class=(runs::class(run.state)) x=(format!("{from:.2}%")) y="3" width=(format!("{wide:.2}%")) height=(HIGH - 6) rx="2" {
                title { (self.told(run)) }
            }
        }
    }

    fn told(&self, run: &Run) -> String {
        let (number, state, from) = (run.id.number, run.state.as_str(), begin(run));
        format!(
            "run {number}: {state}, {} from {}",
            words::took(from, run.ended_at.unwrap_or(self.until)),
            words::moment(from)
        )
    }

    fn percent(&self, at: Timestamp) -> f64 {
        let millis = |to: Timestamp| (to.as_millisecond() - self.from.as_millisecond()).max(0) as f64;
        let whole = millis(self.until);
        if whole > 0.0 { (millis(at) / whole * 100.0).min(100.0) } else { 0.0 }
    }
}

fn rows_on_path(path: &BTreeSet<SlotRef>, steps: &[(&StepView, Vec<&Run>)]) -> bool {
    steps.iter().any(|(view, runs)| !runs.is_empty() && path.contains(&view.id))
}

fn begin(run: &Run) -> Timestamp {
    run.started_at.unwrap_or(run.dispatched_at)
}
