//! Events in words, with links to their subjects.

use kelos_model::{Event, EventRecord, SlotEvent};
use kelos_wire::{EventDto, words};
use maud::{Markup, html};

use super::backfills;
use super::page::{segment, slot_href, workflow_href};
use super::time;

/// The name of an event, and its details.
pub(super) fn what(record: &EventRecord) -> Markup {
    html! { span.what { (said(record)) } }
}

/// The same, as a part of something else.
pub(super) fn said(record: &EventRecord) -> Markup {
    let (name, words) = told(record);
    html! { b .(class(&name)) { (name) } @if !words.is_empty() { " " (time::in_text(&words)) } }
}

/// The name of an event.
pub(super) fn name(record: &EventRecord) -> String {
    words::name(&EventDto::from(record.clone())).to_owned()
}

/// The same as text: its name and its details.
pub(super) fn told(record: &EventRecord) -> (String, String) {
    let event = EventDto::from(record.clone());
    (words::name(&event).to_owned(), words::details(&event))
}

/// The thing that an event is about.
pub(super) fn subject(record: &EventRecord) -> Markup {
    match &record.event {
        Event::Slot { slot, .. } => html! { a href=(slot_href(slot)) { (slot.short()) } },
        Event::Workflow { workflow, .. } => html! { a href=(workflow_href(workflow)) { (workflow) } },
        Event::Backfill { backfill, .. } => html! { "backfill " a href=(backfills::href(backfill)) { (backfill) } },
        Event::Fact { fact, .. } => html! { "fact of " (fact.source) },
        Event::Access { .. } => html! { "access" },
        Event::Register { .. } => html! { (words::subject(&EventDto::from(record.clone()))) },
    }
}

/// The person behind an event, if there is one.
pub(super) fn by(record: &EventRecord) -> Option<String> {
    // Every event that a person causes names the person so.
    words::by(&EventDto::from(record.clone())).map(str::to_owned)
}

/// Whether it only records an evaluation that still holds a slot back.
pub(super) fn is_a_look(record: &EventRecord) -> bool {
    matches!(record.event, Event::Slot { what: SlotEvent::Looked { .. }, .. })
}

/// The address of a person's activity.
pub(super) fn by_href(who: &str) -> String {
    format!("/ui/activity?who={}", segment(who))
}

fn class(name: &str) -> &'static str {
    match name {
        "succeeded" => "good-text",
        "failed" | "expired" | "backed-off" | "deferred" => "bad-text",
        "killed" | "skipped" | "cancelled" | "removed" => "ended-text",
        _ => "plain-text",
    }
}
