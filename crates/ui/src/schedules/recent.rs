//! Recent facts, newest first, and what each led to.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_engine::sources::SourceStatus;
use kelos_front::App;
use kelos_front::fault::{Fault, plain};
use kelos_model::secret::masks;
use kelos_model::{Event, EventRecord, Fact, Occurrence, SlotEvent, SlotRef};
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError};
use kelos_trust::Right;
use maud::{Markup, html};
use serde::Deserialize;

use super::words as told;
use crate::page::{Page, Tab, slot_href};
use crate::{asked, time};

/// Facts of a page.
const SHOWN: usize = 100;
/// Lines of the log after a fact that are searched for its consequences: schedules collect a fact right after it.
const LOOKED_AT: u64 = 50;
/// Slots that are named beside a fact.
const NAMED: usize = 5;

/// The facts to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactQuery {
    /// Only before this position of the log.
    before: Option<String>,
}

/// The consequences of a fact.
#[derive(Default)]
struct Led {
    /// Those that collected it.
    collected: Vec<SlotRef>,
    /// Those of them whose trigger was met then.
    met: Vec<SlotRef>,
    /// Whether there may be more than were read.
    is_partial: bool,
}

struct FactPage {
    facts: Vec<EventRecord>,
    /// The workflows that they are about, as far as there are such.
    known: told::WorkflowPages,
    led: BTreeMap<u64, Led>,
    next: Option<String>,
    is_newest: bool,
}

pub(crate) async fn show(wanted: Result<Query<FactQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let before = asked::filled(asked::query(wanted)?.before);
    if before.as_ref().is_some_and(|before| before.parse::<u64>().is_err()) {
        return Err(plain::bad_request("\"before\" is not a position of the log, expected a number."));
    }
    let found = app.read(move |reader| read(reader, before.as_deref())).await?;
    let (sources, now) = (seen_sources(&app), app.handle().now());
    let body = html! {
        div data-events="" data-batch="700" hidden {}
        nav.crumbs aria-label="Breadcrumb" { a href="/ui/schedules" { "Schedules" } }
        h1 { "Facts" }
        p.soft { "Facts that were published to this server. It sees cron times and the ends of its own runs itself; they are not listed." }
        div #facts data-live { (page(&found)) }
        div #sources data-live { (asked_again(&sources, now)) }
    };
    Ok(Page::new(&app, "Facts").at(Tab::Schedules).style("pages.css").script("live.js").show(&body))
}

fn read(reader: &dyn Queries, before: Option<&str>) -> Result<FactPage, StoreError> {
    let page = reader.events(&EventFilter::about(About::Facts), PageRequest::newest(SHOWN).after(before))?;
    let mut all = BTreeMap::new();
    for (after, to) in parts(page.rows.iter().map(|record| record.seq)) {
        let log = reader
            .events(&EventFilter { until: to, ..EventFilter::after(after) }, PageRequest::oldest(usize::MAX))?
            .rows;
        led(&log, &mut all);
    }
    let known = told::known(
        reader,
        page.rows.iter().filter_map(|record| match &record.event {
            Event::Fact { fact, .. } => Some(&fact.what),
            _ => None,
        }),
    )?;
    Ok(FactPage { known, led: all, facts: page.rows, next: page.next, is_newest: before.is_none() })
}

/// The parts of the log with the consequences of facts, given newest first, as positions `(after, to]`: the events right after
/// each of them, without reading any twice.
fn parts(facts: impl DoubleEndedIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for seq in facts.rev() {
        let to = seq.saturating_add(LOOKED_AT);
        match parts.last_mut().filter(|(_, end)| seq <= *end) {
            Some((_, end)) => *end = to,
            None => parts.push((seq, to)),
        }
    }
    parts
}

/// The consequences of facts, by their positions, in a part of the log.
fn led(log: &[EventRecord], all: &mut BTreeMap<u64, Led>) {
    let mut latest: BTreeMap<&SlotRef, u64> = BTreeMap::new();
    for record in log {
        match &record.event {
            Event::Slot { slot, what: SlotEvent::Collected { fact: Some(fact), .. } } => {
                all.entry(*fact).or_default().collected.push(slot.clone());
                latest.insert(slot, *fact);
            }
            Event::Slot { slot, what: SlotEvent::TriggerMet { .. } | SlotEvent::Held { .. } } => {
                if let Some(fact) = latest.remove(slot) {
                    all.entry(fact).or_default().met.push(slot.clone());
                }
            }
            _ => {}
        }
    }
    // If the last one that was read collects a fact, the next may do so, too.
    if let Some(Event::Slot { what: SlotEvent::Collected { fact: Some(fact), .. }, .. }) =
        log.last().map(|last| &last.event)
    {
        all.entry(*fact).or_default().is_partial = true;
    }
}

fn page(found: &FactPage) -> Markup {
    html! {
        @if found.facts.is_empty() {
            p.headline { @if found.is_newest { "No facts have been published yet." } @else { "There are none before that." } }
            p.soft { "Publish new partitions with " code { "kelos tell partitions DATASET" } "." }
        } @else {
            div.wide { table.told {
                thead { tr { th { "When" } th { "What" } th { "Source" } th { "Led to" } } }
                tbody { @for record in &found.facts { (line(record, found.led.get(&record.seq), &found.known)) } }
            } }
        }
        @if let Some(next) = &found.next {
            nav.bar aria-label="Pages of facts" { a.button rel="next" href=(format!("/ui/facts?before={next}")) { "Earlier →" } }
        }
    }
}

/// The sources that this server polls for facts.
fn asked_again(sources: &[SourceStatus], now: Timestamp) -> Markup {
    html! {
        @if !sources.is_empty() {
            h2 { "Sources that are asked" }
            div.wide { table.told {
                thead { tr { th { "Source" } th { "Answered" } th { "New facts" } th { "Passed over" } th { "Fault" } } }
                tbody { @for source in sources { tr {
                    td { (source.name) }
                    td { @if let Some(at) = source.answered_at { (time::ago(at, now)) } @else { "never yet" } }
                    td { (source.new) }
                    td { (source.passed_over) }
                    td.reason.bad-text { @if let Some(problem) = &source.problem { "failed to " (masks::masked_text(problem)) } }
                } } }
            } }
        }
    }
}

fn line(record: &EventRecord, led: Option<&Led>, known: &told::WorkflowPages) -> Markup {
    let Event::Fact { fact, .. } = &record.event else { return html! {} };
    html! {
        tr id=(format!("fact-{}", record.seq)) {
            td.when { (time::at(record.at)) }
            td.reason { (told::occurrence(&fact.what, known)) (keys(fact)) }
            td { (fact.source) @if let Some(key) = &fact.key { br; code.soft { (key) } } }
            td.reason { (consequences(fact, led)) }
        }
    }
}

/// The names of partitions, if a fact has them.
fn keys(fact: &Fact) -> Markup {
    let Occurrence::Partitions { keys, .. } = &fact.what else { return html! {} };
    html! {
        @if !keys.is_empty() {
            br; span.soft {
                (keys.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "))
                @if keys.len() > NAMED { " and " (keys.len() - NAMED) " more" }
            }
        }
    }
}

fn consequences(fact: &Fact, led: Option<&Led>) -> Markup {
    if let Some(run) = fact.what.run_of_flow() {
        return html! { "for " a href=(slot_href(run)) { (run.short()) } };
    }
    let Some(led) = led else { return html! { span.soft { "no schedule waited for it" } } };
    html! {
        ul.plain {
            @for slot in led.collected.iter().take(NAMED) {
                li {
                    a href=(slot_href(slot)) { (slot.short()) }
                    @if led.met.contains(slot) { " " span.badge.good { "trigger met" } } @else { span.soft { " collected it" } }
                }
            }
            @if led.collected.len() > NAMED {
                li.soft { "and " (led.collected.len() - NAMED) " more" @if led.is_partial { ", or more of them" } }
            }
        }
    }
}

/// The sources of facts; they belong to no project.
fn seen_sources(app: &App) -> Vec<SourceStatus> {
    if app.may(Right::View, None) { app.node().sources().standings() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_lie_together_are_looked_at_together_and_the_others_alone() {
        assert_eq!(parts([900, 130, 100].into_iter()), [(100, 180), (900, 950)]);
        assert_eq!(parts(std::iter::empty()), []);
    }
}
