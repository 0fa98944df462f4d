//! A run of a flow: its graph, when its steps ran, and a table of them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kelos_explain::flow::{self, FlowView, ItemCounts, StepState, StepView, Wait};
use kelos_model::flow::MOST_STEPS;
use kelos_model::{Run, SlotRef, SlotState};
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};

use super::gantt::Chart;
use super::picture::{self, PictureStep};
use super::{definition, look};
use crate::page::{segment, slot_href};
use crate::state::badge;
use crate::{time, words};

/// Steps on a page of the table.
const ON_A_PAGE: usize = 50;

/// A run of a flow.
pub(crate) struct RunPart {
    pub(super) view: FlowView,
    /// The first step of the table.
    first: usize,
    /// The runs of each step of the table that count in the present run.
    runs: Vec<Vec<Run>>,
    /// The slots on the critical path.
    path: BTreeSet<SlotRef>,
    /// When the run began; none before.
    began: Option<Timestamp>,
    pub(super) now: Timestamp,
}

impl RunPart {
    /// Reads a run of a flow, whose runs as a slot are given; none where the slot is none. `after` is the last step of the page before.
    pub(super) fn read(
        reader: &dyn Queries,
        id: &SlotRef,
        own: &[Run],
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Option<RunPart>, StoreError> {
        let Some(view) = flow::read(reader, id, now, (None, MOST_STEPS))? else { return Ok(None) };
        let since = view.slot.run_of_flow().map_or(0, |part| part.since_run);
        let began = own.iter().find(|run| run.id.number >= since.max(1)).map(|run| run.dispatched_at);
        let steps = &view.steps.rows;
        let at = after.and_then(|after| steps.iter().position(|one| one.step.name.as_str() == after));
        let first = at.map_or(0, |at| at + 1);
        let mut runs = Vec::new();
        for step in steps.iter().skip(first).take(ON_A_PAGE) {
            let all = if step.slot.is_some() { reader.slot_runs(&step.id)? } else { Vec::new() };
            runs.push(all.into_iter().filter(|run| began.is_some_and(|began| run.dispatched_at >= began)).collect());
        }
        let path = view.path.iter().flat_map(|path| path.links.iter().map(|link| link.slot.clone())).collect();
        Ok(Some(RunPart { view, first, runs, path, began, now }))
    }

    pub(super) fn steps(&self) -> &[StepView] {
        &self.view.steps.rows
    }

    /// The steps that wait for a signal, by its name.
    pub(super) fn awaited(&self) -> Vec<(&str, Vec<&StepView>)> {
        let mut found: Vec<(&str, Vec<&StepView>)> = Vec::new();
        for step in self.steps().iter().filter(|one| one.state == StepState::Waits(Wait::Signal)) {
            let Some(signal) = &step.step.signal else { continue };
            match found.iter_mut().find(|(name, _)| *name == signal.name) {
                Some((_, steps)) => steps.push(step),
                None => found.push((&signal.name, vec![step])),
            }
        }
        found
    }

    /// The state in words, with the steps that failed.
    pub(super) fn state(&self) -> Markup {
        let view = &self.view;
        html! {
            (repeated(view.repeats.as_ref()))
            @if !view.recovered.is_empty() {
                p.headline { (badge(SlotState::Succeeded)) " (recovered): the failure of " (self.named(&view.recovered)) " was handled." }
            }
            @if !view.failed.is_empty() { p.headline { "Failed steps: " (self.named(&view.failed)) "." } }
            p.soft { (words::count(self.steps().len() as u64, "step")) ": " (self.counts()) }
        }
    }

    /// `3 succeeded, 1 failed`
    fn counts(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for step in self.steps() {
            let word = look::told(step.state);
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    }

    fn named(&self, names: &[kelos_model::StepName]) -> Markup {
        let href = |name: &kelos_model::StepName| {
            self.steps().iter().find(|one| one.step.name == *name).map(|one| slot_href(&one.id)).unwrap_or_default()
        };
        html! { @for (n, name) in names.iter().enumerate() { @if n > 0 { ", " } a href=(href(name)) { (name) } } }
    }

    pub(super) fn graph(&self) -> Markup {
        let drawn: Vec<PictureStep<'_>> = self.steps().iter().map(|one| self.drawn(one)).collect();
        html! { h2 { "Steps" } (picture::picture(&drawn)) }
    }

    fn drawn<'a>(&self, one: &'a StepView) -> PictureStep<'a> {
        let (class, letter) = look::of(one.state);
        let note = match &one.items {
            Some(items) => format!("{}, {} of {} items", look::told(one.state), ended(items), items.total),
            None => look::told(one.state).to_owned(),
        };
        PictureStep {
            step: &one.step,
            class,
            letter,
            note,
            told: time::in_words(&one.words),
            href: Some(slot_href(&one.id)),
            is_along: one.slot.is_some() && self.path.contains(&one.id),
        }
    }

    /// The steps of this page with their runs.
    fn shown(&self) -> Vec<(&StepView, Vec<&Run>)> {
        self.steps().iter().skip(self.first).zip(&self.runs).map(|(one, runs)| (one, runs.iter().collect())).collect()
    }

    pub(super) fn gantt(&self) -> Markup {
        let Some(from) = self.began else { return html! {} };
        let slot = &self.view.slot;
        let until = if slot.state.is_final() { slot.since } else { self.now }.max(from);
        let path = self.view.path.as_ref().map_or(&[][..], |path| &path.links);
        Chart { from, until, path }.show(&self.shown())
    }

    pub(super) fn table(&self) -> Markup {
        let (shown, all) = (self.shown(), self.steps().len());
        let end = self.first + shown.len();
        html! {
            div.wide {
                table.flow-steps {
                    thead { tr { th { "Step" } th { "State" } th { "Since" } th { "Took" } th { "Attempts" } th { "Starts after" } th { "Why" } } }
                    tbody { @for (one, runs) in &shown { (self.row(one, runs)) } }
                }
            }
            @if all > ON_A_PAGE {
                nav.bar aria-label="Pages of steps" {
                    span { "Steps " (self.first + 1) " to " (end) " of " (all) }
                    @if self.first > 0 { a.button href=(slot_href(&self.view.run)) { "First" } }
                    @if let (true, Some((last, _))) = (end < all, shown.last()) {
                        a.button rel="next" href=(format!("{}?steps={}", slot_href(&self.view.run), segment(last.step.name.as_str()))) { "Next" }
                    }
                }
            }
        }
    }

    fn row(&self, one: &StepView, runs: &[&Run]) -> Markup {
        let slot = one.slot.as_ref();
        let took = one.last_run.as_ref().filter(|_| !runs.is_empty());
        html! {
            tr id=(format!("step-{}", one.step.name)) {
                td { a href=(slot_href(&one.id)) { (one.step.name) } @if self.path.contains(&one.id) { " " span title="on the critical path" { "★" } } }
                td { (look::badge(one.state)) }
                td { @if let Some(slot) = slot { (time::at(slot.since)) } }
                td { @if let Some(run) = took { @match run.ended_at { Some(end) => (words::took(run.started_at.unwrap_or(run.dispatched_at), end)), None => { "…" } } } }
                td { @if !runs.is_empty() { (runs.len()) } }
                td { (definition::starts_after(&one.step)) }
                td.what { (time::in_text(&one.words)) @if let Some(items) = &one.items { (items_told(one, items)) } }
            }
        }
    }
}

/// The step of another run that a run does again, with the way to both.
pub(super) fn repeated(step: Option<&SlotRef>) -> Markup {
    let Some(step) = step else { return html! {} };
    let run = SlotRef::new(step.workflow.clone(), step.key.of_run());
    let name = step.key.step().map_or("", |key| key.within_run());
    html! {
        p.headline.repeats {
            "Does the step " a href=(slot_href(step)) { (name) } " of the run " a href=(slot_href(&run)) { (time::key(&run.key)) }
            " again, and nothing else."
        }
    }
}

fn ended(items: &ItemCounts) -> u64 {
    items.counts.iter().filter(|(state, _)| state.is_final()).map(|(_, count)| count).sum()
}

/// The items of a list by their states, with the way to them.
fn items_told(one: &StepView, items: &ItemCounts) -> Markup {
    html! {
        details id=(format!("items-{}", one.step.name)) {
            summary { (words::count(items.total, "item")) }
            p.bar {
                @for (state, count) in &items.counts { span { (badge(*state)) " " (count) } }
                @if items.is_partial { span.soft { "more are not counted" } }
                a href=(format!("{}#items", slot_href(&one.id))) { "all items" }
            }
        }
    }
}
