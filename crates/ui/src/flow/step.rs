//! A step of a run of a flow, or an item of its list: what is beside it, what it is given, and its items.

use kelos_explain::flow::{self, Beside, ItemView, StepInRun, StepState, Wait};
use kelos_model::{Slot, SlotRef};
use kelos_store::{Page, Queries, StoreError};
use maud::{Markup, html};

use super::{act, definition, look};
use crate::page::{segment, slot_href};
use crate::state::badge;
use crate::{settings, time, words};

/// Items on a page.
const ON_A_PAGE: usize = 50;

/// A step of a run.
pub(crate) struct StepPart {
    id: SlotRef,
    /// The slot of the step or item; none where it does not exist.
    slot: Option<Slot>,
    step: StepInRun,
    /// A page of its items, if it is done for each item of a list.
    items: Option<Page<ItemView>>,
}

impl StepPart {
    /// Reads a step; none where the slot is none. `after` is the number of the last item of the page before.
    pub(super) fn read(reader: &dyn Queries, id: &SlotRef, after: Option<u32>) -> Result<Option<StepPart>, StoreError> {
        let Some(step) = flow::step(reader, id)? else { return Ok(None) };
        let after = after.map(|after| after.to_string());
        let items = flow::items(reader, id, (after.as_deref(), ON_A_PAGE))?;
        Ok(Some(StepPart { id: id.clone(), slot: reader.slot(id)?, step, items }))
    }

    pub(super) fn run(&self) -> &SlotRef {
        &self.step.run
    }

    fn is_item(&self) -> bool {
        self.id != self.step.view.id
    }

    /// The run, or the step of an item, to which it belongs.
    pub(super) fn state(&self) -> Markup {
        html! {
            p.soft {
                @if self.is_item() { "An item of the step " a href=(slot_href(&self.step.view.id)) { (self.step.view.step.name) } " of the run " }
                @else { "A step of the run " }
                a href=(slot_href(&self.step.run)) { (time::key(&self.step.run.key)) }
                @if let Some(state) = self.step.run_state { ", which is " (badge(state)) }
            }
        }
    }

    /// The button that resumes the run from this step on, once the run has ended.
    pub(super) fn resume(&self) -> Markup {
        let is_over = self.step.run_state.is_some_and(|state| state.is_final());
        html! { @if is_over && !self.is_item() { (act::resume_from(&self.id)) } }
    }

    /// The button that does this step or item again, as a run of its own, once the run has ended.
    pub(super) fn repeat(&self) -> Markup {
        let slot = self.slot.as_ref().filter(|slot| slot.last_run > 0 && self.step.view.step.signal.is_none());
        let is_over = self.step.run_state.is_some_and(|state| state.is_final());
        let given = slot.filter(|_| is_over).map(|slot| slot.step_of_run().map(|step| &step.inputs));
        html! { @if let Some(given) = given { (act::repeat(&self.id, given)) } }
    }

    /// The form of the signal that it waits for.
    pub(super) fn signal(&self) -> Markup {
        let waits = self.step.view.state == StepState::Waits(Wait::Signal);
        let signal = self.step.view.step.signal.as_ref().filter(|_| waits);
        html! {
            @if let Some(signal) = signal {
                section.pool { h2 { "Waits for the signal " (signal.name) } (act::signal_form(&self.step.run, &signal.name)) }
            }
        }
    }

    pub(super) fn about(&self) -> Markup {
        let step = &self.step.view.step;
        html! {
            div.columns {
                section {
                    h2 { "Step" }
                    dl.facts {
                        @if let Some(about) = &step.about { dt { "Description" } dd { (about) } }
                        dt { "Does" } dd { (definition::does(step)) }
                        (beside("Needs", &self.step.needs))
                        (beside("Handles a failure of", &self.step.handles))
                        @if self.step.needs.is_empty() && self.step.handles.is_empty() { dt { "Starts" } dd { "with its run" } }
                        (beside("Needed by", &self.step.feeds))
                        (beside("Its failure is handled by", &self.step.handlers))
                        dt { "Retry" } dd { (words::retry(&step.retry)) }
                        (settings::rows(&step.job.settings))
                        dt { "Definition" } dd { "version " (self.step.definition) ", which its run follows" }
                    }
                }
                section { h2 { "Inputs" } (self.inputs()) }
            }
        }
    }

    fn inputs(&self) -> Markup {
        let given = self.slot.as_ref().and_then(|slot| slot.step_of_run()).map(|step| &step.inputs);
        html! {
            @match given {
                Some(inputs) if !inputs.is_empty() => dl.facts { (settings::rows(inputs)) },
                Some(_) => p.soft { "It is given nothing yet, or nothing at all." },
                None => p.soft { "It was not opened." },
            }
        }
    }

    pub(super) fn items(&self) -> Markup {
        let Some(items) = &self.items else { return html! {} };
        html! {
            h2 { "Items" }
            @if let Some(counts) = &self.step.view.items {
                p.bar {
                    span { (words::count(counts.total, "item")) ":" }
                    @for (state, count) in &counts.counts { span { (badge(*state)) " " (count) } }
                }
            } @else { p.soft { "Its list is not known yet." } }
            @if !items.rows.is_empty() {
                div.wide { table {
                    thead { tr { th { "Item" } th { "State" } th { "Since" } th { "Took" } th { "Runs" } } }
                    tbody { @for item in &items.rows { (row(item)) } }
                } }
            }
            @if let Some(next) = &items.next {
                p { a.button rel="next" href=(format!("{}?items={}#items", slot_href(&self.id), segment(next))) { "Next items" } }
            }
        }
    }
}

fn row(item: &ItemView) -> Markup {
    let took =
        item.last_run.as_ref().and_then(|run| Some((run.started_at.unwrap_or(run.dispatched_at), run.ended_at?)));
    html! {
        tr {
            td { a href=(slot_href(&item.id)) { "item " (item.number) } }
            td { (badge(item.slot.state)) }
            td { (time::at(item.slot.since)) }
            td { @if let Some((begin, end)) = took { (words::took(begin, end)) } }
            td { (item.slot.last_run) }
        }
    }
}

fn beside(name: &str, steps: &[Beside]) -> Markup {
    html! {
        @if !steps.is_empty() {
            dt { (name) }
            dd { ul.plain { @for one in steps { li { a href=(slot_href(&one.id)) { (one.name) } " " (look::badge(one.state)) } } } }
        }
    }
}
