//! The facts that a slot collected, the arguments of its runs, and the slots that these opened.

use kelos_model::arguments::arguments;
use kelos_model::workflow::WorkflowRow;
use kelos_model::{Collection, Event, EventRecord, Occurrence, Slot, SlotEvent, SlotRef};
use kelos_store::{EventFilter, PageRequest, Queries, StoreError};
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::words as told;
use crate::page::slot_href;
use crate::{settings, time};

/// How many events after the end of a run are read for its consequences: slots that wait for it collect it in the same
/// commit.
const LOOKED_AT: usize = 500;
/// Facts that are listed, the newest.
const LISTED: usize = 100;

/// The facts of a slot: those it collected, and those its runs published.
pub(crate) struct Story {
    collected: Option<Box<Collection>>,
    /// The facts that it collected, oldest first.
    facts: Vec<EventRecord>,
    /// The slots that collected the ends of its runs.
    led_to: Vec<SlotRef>,
    arguments: Map<String, Value>,
    /// The workflows that its facts are about, as far as there are such.
    known: told::WorkflowPages,
}

/// Reads it; none where facts are nothing to a slot.
pub(crate) fn story(
    reader: &dyn Queries,
    row: &WorkflowRow,
    id: &SlotRef,
    slot: Option<&Slot>,
    life: &[EventRecord],
) -> Result<Option<Story>, StoreError> {
    let is_collected =
        |record: &&EventRecord| matches!(record.event, Event::Slot { what: SlotEvent::Collected { .. }, .. });
    let facts: Vec<EventRecord> = life.iter().filter(is_collected).cloned().collect();
    let collected = slot.and_then(|slot| slot.collected.clone());
    let led_to = led_to(reader, id, life)?;
    let is_plain = row.definition.parameters.is_empty() && !row.definition.keys.are_moments();
    if facts.is_empty() && collected.is_none() && led_to.is_empty() && is_plain {
        return Ok(None);
    }
    let arguments = arguments(&row.definition, collected.as_deref(), &id.key).into_iter().collect();
    // Only listed ones are looked up.
    let listed = facts.iter().skip(facts.len().saturating_sub(LISTED));
    let known = told::known(
        reader,
        listed.filter_map(|record| match &record.event {
            Event::Slot { what: SlotEvent::Collected { what, .. }, .. } => Some(what),
            _ => None,
        }),
    )?;
    Ok(Some(Story { collected, facts, led_to, arguments, known }))
}

/// The slots that collected the ends of a slot's runs.
fn led_to(reader: &dyn Queries, id: &SlotRef, life: &[EventRecord]) -> Result<Vec<SlotRef>, StoreError> {
    let mut found = Vec::new();
    let run_of = |what: &Occurrence| match what {
        Occurrence::Ended { run: Some(run), .. } => run.rsplit_once('#').map(|(slot, _)| slot.to_owned()),
        _ => None,
    };
    let own = id.short();
    for end in life.iter().filter(|record| ends(record)) {
        for record in reader.events(&EventFilter::after(end.seq), PageRequest::oldest(LOOKED_AT))?.rows {
            let Event::Slot { slot, what: SlotEvent::Collected { what, fact: None } } = record.event else { continue };
            if run_of(&what).is_some_and(|run| run == own) && !found.contains(&slot) {
                found.push(slot);
            }
        }
    }
    Ok(found)
}

fn ends(record: &EventRecord) -> bool {
    let Event::Slot { what, .. } = &record.event else { return false };
    matches!(what, SlotEvent::Succeeded { .. } | SlotEvent::Failed { .. } | SlotEvent::Killed { .. })
}

impl Story {
    /// The facts that it collected, the arguments of its runs, and the slots that these opened.
    pub(crate) fn show(&self, at_present: bool) -> Markup {
        html! {
            @if !self.facts.is_empty() { h2 { "What it collected" } (self.facts()) }
            @if at_present && !self.arguments.is_empty() {
                h2 { "Arguments of its runs" }
                dl.facts { (settings::rows(&self.arguments)) }
            }
            @if !self.led_to.is_empty() {
                h2 { "What the ends of its runs led to" }
                ul.plain { @for slot in &self.led_to { li { a href=(slot_href(slot)) { (slot.short()) } } } }
            }
        }
    }

    fn facts(&self) -> Markup {
        let hidden = self.facts.len().saturating_sub(LISTED);
        let had = self.collected.as_deref().map(kelos_model::Collection::words).unwrap_or_default();
        html! {
            @if self.facts.len() > 1 { p { (had.join(", ")) "." } }
            @if hidden > 0 { p.soft { (hidden) " earlier ones are left out." } }
            ul.plain.collected-facts { @for record in self.facts.iter().skip(hidden) { (fact(record, &self.known)) } }
        }
    }
}

fn fact(record: &EventRecord, known: &told::WorkflowPages) -> Markup {
    let Event::Slot { what: SlotEvent::Collected { what, fact }, .. } = &record.event else { return html! {} };
    html! {
        li {
            span.when { (time::at(record.at)) } " " (told::occurrence(what, known))
            @if let Some(seq) = fact {
                " " a.soft href=(format!("/ui/facts?before={}#fact-{seq}", seq + 1)) aria-label="the fact, among others" { "fact" }
            }
        }
    }
}
