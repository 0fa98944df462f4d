//! The runs of the steps of a run as bars over the time that it took.

use jiff::Timestamp;
use kelos_explain::critical_path::{Link, Step, StepKind};
use kelos_explain::flow::{StepState, StepView};
use kelos_model::Run;
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
    /// The links of the critical path.
    pub(super) path: &'a [Link],
}

/// A stretch of time in which a step waited.
struct WaitBar {
    class: &'static str,
    from: Timestamp,
    until: Timestamp,
}

impl WaitBar {
    fn told(&self) -> String {
        let verb = if self.class == "stretch-again" { "in back-off" } else { "waited" };
        format!("{verb} for {}", words::took(self.from, self.until))
    }
}

impl Chart<'_> {
    /// Steps that have run, with their runs in this window.
    pub(super) fn show(&self, steps: &[(&StepView, Vec<&Run>)]) -> Markup {
        let rows: Vec<_> =
            steps.iter().filter(|(view, runs)| !runs.is_empty() || !self.stretches(view).is_empty()).collect();
        html! {
            @if !rows.is_empty() {
                h2 { "When its steps ran" }
                div.gantt {
                    table {
                        thead { tr {
                            th scope="col" { "Step" }
                            th scope="col" { span.ends { span { (time::at(self.from)) } span { (words::took(self.from, self.until)) } } }
                        } }
                        tbody { @for (view, runs) in &rows { (self.row(view, runs)) } }
                    }
                }
                @if rows.iter().any(|(view, _)| self.link(view).is_some()) { p.soft { "★ is on the critical path: what determined when the run ended, or delays it now." } }
            }
        }
    }

    fn row(&self, view: &StepView, runs: &[&Run]) -> Markup {
        let (is_along, stretches) = (self.link(view).is_some(), self.stretches(view));
        let told: Vec<String> =
            runs.iter().map(|run| self.told(run)).chain(stretches.iter().map(WaitBar::told)).collect();
        let mark = if is_along { " (on the critical path)" } else { "" };
        html! {
            tr.along[is_along] {
                th scope="row" title=(view.step.name) {
                    a href=(slot_href(&view.id)) { (view.step.name) }
                    @if is_along { " " span aria-hidden="true" { "★" } span.unseen { (mark) } }
                }
                td { svg width="100%" height=(HIGH) role="img" aria-label=(told.join("; ")) {
                    @for one in &stretches { (self.bar(one.class, one.from, Some(one.until), &one.told())) }
                    @for run in runs { (self.bar(runs::class(run.state), begin(run), run.ended_at, &self.told(run))) }
                } }
            }
        }
    }

    fn link(&self, view: &StepView) -> Option<&Link> {
        self.path.iter().find(|link| link.slot == view.id).filter(|_| view.slot.is_some())
    }

    /// The waits of a step: all that count on the critical path, and elsewhere the present one.
    fn stretches(&self, view: &StepView) -> Vec<WaitBar> {
        let part = |step: &Step| {
            let class = match step.kind {
                StepKind::Ran | StepKind::Starting => return None,
                StepKind::BackedOff => "stretch-again",
                StepKind::Waited | StepKind::Queued | StepKind::Stuck => "stretch-waits",
            };
            let is_seen = step.until > step.from && step.until > self.from;
            is_seen.then_some(WaitBar { class, from: step.from.max(self.from), until: step.until.min(self.until) })
        };
        if let Some(link) = self.link(view) {
            return link.steps.iter().filter_map(part).collect();
        }
        let slot = view.slot.as_ref().filter(|_| matches!(view.state, StepState::Waits(_)));
        slot.map(|slot| WaitBar { class: "stretch-waits", from: slot.since, until: self.until }).into_iter().collect()
    }

    fn bar(&self, class: &str, begin: Timestamp, end: Option<Timestamp>, told: &str) -> Markup {
        let from = self.percent(begin).min(100.0 - NARROWEST);
        let wide = (self.percent(end.unwrap_or(self.until)) - from).max(NARROWEST);
        html! {
            rect class=(class) x=(format!("{from:.2}%")) y="3" width=(format!("{wide:.2}%")) height=(HIGH - 6) rx="2" {
                title { (told) }
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

fn begin(run: &Run) -> Timestamp {
    run.started_at.unwrap_or(run.dispatched_at)
}
