//! What lies in a part of time: for each workflow its periods as boxes and its times as ticks, and what waits for what.

use std::collections::BTreeSet;
use std::ops::Deref;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::out_of_range::OutOfRange;
use kelos_explain::periods::{self, Focus, FocusBox, FocusQuery, FocusRow, MOST_FOCUS_HOURS, Selection};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::SlotState;
use kelos_model::workflow::DefinitionVersion;
use maud::{Markup, html};
use serde::Deserialize;

use super::documents::Document;
use super::page::{Page, Tab, segment, slot_href, workflow_href};
use super::selection::{Choices, SelectionFields, pairs};
use super::state::{BY_WEIGHT, badge, look};
use super::window::{TimeWindow, Widths, WindowFields};
use super::{asked, time, words};

/// Windows that buttons lead to, in hours, with their names.
const WIDTHS: [(u32, &str); 5] = [(6, "6 hours"), (24, "Day"), (168, "Week"), (744, "Month"), (8784, "Year")];
/// The widths of windows.
const HOURS: Widths = Widths { usual: 24, most: MOST_FOCUS_HOURS };
/// Height of a row, and of a box in it, in pixels.
const ROW: usize = 26;
const BOX: usize = 20;
/// The usual width of a window in pixels.
const USUAL_WIDTH: f64 = 1_100.0;
/// Pixels that a letter needs, and a share in percent.
const LETTER: f64 = 13.0;
const SHARE: f64 = 46.0;
/// Least width of a box, in pixels, and the width of a tick.
const THINNEST: f64 = 3.0;
/// How many colours versions have.
const COLOURS: u32 = 6;

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FocusPageQuery {
    workflow: Option<String>,
    project: Option<String>,
    tag: Option<String>,
    from: Option<String>,
    to: Option<String>,
    hours: Option<String>,
    zone: Option<String>,
    versions: Option<String>,
    skip: Option<String>,
}

/// The part of time that is shown, and of which workflows.
#[derive(Debug, Clone)]
struct FocusView {
    of: Selection,
    time: TimeWindow,
    versions: bool,
    skip: usize,
}

impl Deref for FocusView {
    type Target = TimeWindow;

    fn deref(&self) -> &TimeWindow {
        &self.time
    }
}

impl FocusView {
    fn read(asked: FocusPageQuery, now: Timestamp) -> Result<FocusView, Fault> {
        let of = SelectionFields { workflow: asked.workflow, project: asked.project, tag: asked.tag }.read()?;
        let fields = WindowFields { from: asked.from, to: asked.to, hours: asked.hours, zone: asked.zone };
        let time = TimeWindow::read(fields, HOURS, false, now)?;
        let skip = asked::filled(asked.skip).map_or(Ok(0), |text| {
            text.parse().map_err(|_| asked::wrong("skip", &text, "the number of workflows to pass over"))
        })?;
        Ok(FocusView { of, time, versions: asked::filled(asked.versions).is_some(), skip })
    }

    fn at(&self, time: TimeWindow) -> FocusView {
        FocusView { time, ..self.clone() }
    }

    /// The parameters of the address besides the fields of the form.
    fn kept(&self) -> Vec<(&'static str, String)> {
        let mut kept = self.time.pairs();
        kept.extend(self.versions.then(|| ("versions", "1".to_owned())));
        kept
    }

    fn href(&self) -> String {
        let kept = self.kept().into_iter().map(|(name, value)| format!("{name}={}", segment(&value)));
        let skip = (self.skip > 0).then(|| format!("skip={}", self.skip));
        let all: Vec<String> = kept.chain(pairs(&self.of)).chain(skip).collect();
        format!("/ui/focus?{}", all.join("&"))
    }
}

pub(super) async fn show(wanted: Result<Query<FocusPageQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let now = app.handle().now();
    let view = FocusView::read(asked::query(wanted)?, now)?;
    let query = FocusQuery {
        of: view.of.clone(),
        range: view.range,
        zone: view.zone().clone(),
        versions: view.versions,
        skip: view.skip,
    };
    let (found, choices) =
        app.read(move |reader| Ok((periods::focus(reader, &query, now)?, Choices::read(reader, &query.of)?))).await?;
    let page = Page::new(&app, "Focus").at(Tab::Calendar).style("pages.css").style("timeline.css").style("focus.css");
    Ok(page.script("live.js").script("timeline.js").show(&page_of(&view, &found, &choices)))
}

fn page_of(view: &FocusView, found: &Focus, choices: &Choices) -> Markup {
    html! {
        @if view.is_live() { div data-events="" data-batch="900" hidden {} }
        h1 { "Focus" }
        div #nav data-live { (navigation(view)) }
        form.bar method="get" action="/ui/focus" role="search" {
            @for (name, value) in view.kept() { input type="hidden" name=(name) value=(value); }
            (choices.fields(&view.of))
            button { "Show" }
        }
        (choices.note())
        div #boxes data-live {
            p.headline { (summary(view, found)) }
            @if found.rows.is_empty() { (nothing()) } @else { (chart(view, found)) }
            (others(view, found))
            (blocked(found))
        }
        p #told .told .scripted-only role="status" { "Point at a box, or move to it with the Tab key, to see its details here." }
        (legend(view, found))
    }
}

fn navigation(view: &FocusView) -> Markup {
    let later = view.later().map(|time| view.at(time));
    html! {
        div.bar role="toolbar" aria-label="What of time is shown" {
            span.group {
                a.button #earlier href=(view.at(view.earlier()).href()) title="Earlier ([)" { "‹ Earlier" }
                a.button #now href=(view.at(view.of_now(view.hours())).href()) title="Follow the clock (n)" aria-current=[view.follows().then_some("true")] { "Now" }
                @if let Some(later) = later { a.button #later href=(later.href()) title="Later (])" { "Later ›" } }
            }
            span.group role="group" aria-label="How much of time" {
                @for (hours, name) in WIDTHS {
                    a.button href=(view.at(view.of_now(hours)).href()) aria-current=[view.is_width(hours).then_some("true")] { (name) }
                }
            }
            span.group {
                a.button #nearer href=(view.at(view.zoomed(false)).href()) title="Zoom in (+)" aria-label="nearer" { "+" }
                a.button #wider href=(view.at(view.zoomed(true)).href()) title="Wider (-)" aria-label="wider" { "−" }
            }
            span.group {
                a.button href=(FocusView { versions: !view.versions, ..view.clone() }.href()) aria-current=[view.versions.then_some("true")] { "Versions" }
            }
            span.group { a.button href=(calendar_href(view)) { "Calendar" } }
            @if let Some(zone) = &view.zone {
                a.button href=(view.at(view.in_usual_zone()).href()) title="Times are in the zone of this address; change to yours" { "In " (zone.name()) " ×" }
            }
        }
    }
}

fn calendar_href(view: &FocusView) -> String {
    let zone = view.zone.as_ref().map(|zone| format!("zone={}", segment(zone.name())));
    let all: Vec<String> = pairs(&view.of).into_iter().chain(zone).collect();
    if all.is_empty() { "/ui/calendar".to_owned() } else { format!("/ui/calendar?{}", all.join("&")) }
}

/// `2026-03-28 23:00 – 2026-03-29 22:00 UTC: 3 workflows, 72 slots (70 succeeded, 2 waiting)`.
fn summary(view: &FocusView, found: &Focus) -> String {
    let form = "%Y-%m-%d %H:%M";
    let boxes = || found.rows.iter().flat_map(|row| &row.boxes);
    let total: u64 = boxes().map(FocusBox::total).sum();
    let count = |state: SlotState| boxes().filter_map(|one| one.states.get(&state)).sum::<u64>();
    let states = BY_WEIGHT.map(|state| (count(state), state.as_str()));
    let to_come = (boxes().map(|one| one.to_come).sum::<u64>(), "to come");
    let states: Vec<String> = states
        .into_iter()
        .chain([to_come])
        .filter(|(count, _)| *count > 0)
        .map(|(count, state)| format!("{count} {state}"))
        .collect();
    let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    format!(
        "{} – {} {}: {}, {}{states}",
        view.told(view.range.start, form),
        view.told(view.range.end, form),
        view.told(view.range.end, "%Z"),
        words::count(found.rows.len() as u64, "workflow"),
        words::count(total, "slot"),
    )
}

fn nothing() -> Markup {
    html! {
        section.empty {
            p { "No workflow with a schedule is chosen. " (Document::Calendar.link("How to read this page")) }
        }
    }
}

/// The ways to the workflows before and after those that are shown.
fn others(view: &FocusView, found: &Focus) -> Markup {
    let skip = |skip| FocusView { skip, ..view.clone() }.href();
    html! {
        @if found.before + found.more > 0 {
            nav.bar aria-label="Other workflows" {
                @if found.before > 0 { a.button href=(skip(found.before.saturating_sub(periods::MOST_ROWS))) { (words::count(found.before as u64, "workflow")) " before" } }
                @if found.more > 0 { a.button rel="next" href=(skip(found.before + found.rows.len())) { (words::count(found.more as u64, "workflow")) " more" } }
            }
        }
    }
}

/// The waiting slots with their obstacles.
fn blocked(found: &Focus) -> Markup {
    html! {
        @if !found.blocked.is_empty() {
            h2 #blocked { "Blocked by" }
            ul.plain {
                @for one in &found.blocked {
                    li {
                        a href=(slot_href(&one.slot)) { (one.slot.short()) } " " (badge(one.state))
                        @if !one.blockers.is_empty() { " " (time::in_text(&one.blockers.join("; "))) }
                    }
                }
            }
            @if found.is_partial { p.soft { "These are the oldest of those that wait." } }
        }
    }
}

fn chart(view: &FocusView, found: &Focus) -> Markup {
    let is_shown = view.range.contains(view.now);
    html! {
        div.timeline.focus #timeline data-start=(view.range.start.as_millisecond()) data-width=(view.width()) data-now=(view.now.as_millisecond()) {
            svg.lines aria-hidden="true" {
                defs { pattern #hatch width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" { rect width="2" height="6" {} } }
                @for (at, _) in view.marks() { line x1=(view.place(at)) x2=(view.place(at)) y1="0" y2="100%" {} }
                @if is_shown { line #now-line .now x1=(view.place(view.now)) x2=(view.place(view.now)) y1="0" y2="100%" {} }
            }
            table {
                thead { tr { th scope="col" { (view.told(view.range.start, "%-d %b %Y")) } td {
                    svg.head width="100%" height="18" aria-hidden="true" {
                        @for (at, text) in view.marks() { text x=(view.place(at)) y="13" dx="3" { (text) } }
                    }
                } } }
                tbody { @for row in &found.rows { (row_of(view, row)) } }
            }
        }
    }
}

fn row_of(view: &FocusView, row: &FocusRow) -> Markup {
    let total: u64 = row.boxes.iter().map(FocusBox::total).sum();
    html! {
        tr {
            th scope="row" {
                a href=(workflow_href(&row.workflow)) { (row.workflow) }
                @if row.is_paused { " " small { "paused" } }
                @if row.is_removed { " " small { "removed" } }
            }
            td {
                svg width="100%" height=(ROW) role="group" aria-label=(words::count(total, "slot")) {
                    @for one in &row.boxes { (drawn(view, row, one)) }
                }
            }
        }
    }
}

/// The worst state of a box; none if nothing of it is planned.
fn worst(one: &FocusBox) -> Option<SlotState> {
    BY_WEIGHT.into_iter().rev().find(|state| one.states.contains_key(state))
}

/// How many of a hundred succeeded, as [`kelos_explain::periods::DayCompletion`] counts them.
fn percent(one: &FocusBox) -> u64 {
    let done = one.states.get(&SlotState::Succeeded).copied().unwrap_or(0);
    if done == 0 { 0 } else { (done * 100 / one.total().max(1)).max(1) }
}

fn drawn(view: &FocusView, row: &FocusRow, one: &FocusBox) -> Markup {
    let (left, right) = (view.percent(one.range.start), view.percent(one.range.end));
    let pixels = (right - left) * USUAL_WIDTH / 100.0;
    let width = if pixels < THINNEST { THINNEST.to_string() } else { format!("{:.3}%", right - left) };
    let state = worst(one);
    let class = state.map_or("to-come", |state| look(state).class);
    let is_mixed = one.only().is_none() && !one.states.is_empty();
    let letter = state.map(|state| look(state).letter.to_string());
    let text = match (is_mixed || one.slot.is_none(), letter) {
        (true, _) if pixels >= SHARE && !one.states.is_empty() => Some(format!("{} %", percent(one))),
        (false, Some(letter)) if pixels >= LETTER => Some(letter),
        _ => None,
    };
    let href = one.slot.as_ref().map_or_else(|| zoomed(view, row, one), slot_href);
    html! {
        a href=(href) {
            title { (told(view, row, one)) }
            rect.(class) .mixed[is_mixed] x=(format!("{left}%")) y="3" width=(width) height=(BOX) rx="2" {}
            @if !one.out_of_range.is_empty() {
                rect.out-of-range fill="url(#hatch)" x=(format!("{left}%")) y="3" width=(width) height=(BOX) rx="2" {}
            }
            @if let Some(version) = &one.version {
                rect.(version_class(version)) x=(format!("{left}%")) y=(BOX - 1) width=(width) height="4" {}
            }
            @if let Some(text) = text { text.(class) x=(format!("{left}%")) y="17" dx="3" { (text) } }
        }
    }
}

/// A box of several slots, by itself.
fn zoomed(view: &FocusView, row: &FocusRow, one: &FocusBox) -> String {
    let of = Selection { workflow: Some(row.workflow.clone()), ..Selection::default() };
    let (start, end) = (one.range.start.as_millisecond(), one.range.end.as_millisecond());
    FocusView { of, skip: 0, ..view.at(view.fixed(start, end)) }.href()
}

/// `visits, 2026-03-28 to 2026-03-30: 48 slots, 46 succeeded, 2 waiting, version 3`.
fn told(view: &FocusView, row: &FocusRow, one: &FocusBox) -> String {
    let from = view.told(one.range.start, "%Y-%m-%d %H:%M");
    let to = if one.range.is_empty() {
        String::new()
    } else {
        format!(" to {}", view.told(one.range.end, "%Y-%m-%d %H:%M"))
    };
    let zone = view.told(one.range.end, "%Z");
    let states = one.states.iter().map(|(state, count)| (*count, state.as_str()));
    let states: Vec<String> = states
        .chain((one.to_come > 0).then_some((one.to_come, "to come")))
        .map(|(count, state)| if one.total() == 1 { state.to_owned() } else { format!("{count} {state}") })
        .collect();
    let many = if one.total() == 1 { String::new() } else { format!("{}, ", words::count(one.total(), "slot")) };
    let version = one.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    format!("{}, {from}{to} {zone}: {many}{}{version}{}", row.workflow, states.join(", "), out_of_range(one))
}

/// `; 3 out of range: its workflow starts later, at 2026-03-28T00:00Z`.
fn out_of_range(one: &FocusBox) -> String {
    let each = |(reason, count): (&OutOfRange, &u64)| match one.total() {
        total if total == *count => format!("; out of range: {reason}"),
        _ => format!("; {count} out of range: {reason}"),
    };
    one.out_of_range.iter().map(each).collect()
}

/// The colour of a version.
fn version_class(version: &DefinitionVersion) -> String {
    format!("version-{}", version.number % COLOURS)
}

fn legend(view: &FocusView, found: &Focus) -> Markup {
    let states = [
        SlotState::Succeeded,
        SlotState::Failed,
        SlotState::Backoff,
        SlotState::Running,
        SlotState::Waiting,
        SlotState::Killed,
    ];
    let versions: BTreeSet<&DefinitionVersion> =
        found.rows.iter().flat_map(|row| &row.boxes).filter_map(|one| one.version.as_ref()).collect();
    html! {
        p.legend {
            @for state in states { (badge(state)) " " }
            span.badge.to-come-badge { "to come" }
            span { "Hatched: out of range, as a start was moved, a calendar changed or a workflow removed. Slots that succeeded side by side, and those that are too many, are one box; a box of several states has the colour of the worst." }
            (Document::Calendar.link("More"))
        }
        @if view.versions && !versions.is_empty() {
            p.legend #versions data-live {
                "Versions: "
                @for version in versions { span.version-key { svg width="12" height="12" aria-hidden="true" { rect.(version_class(version)) width="12" height="12" {} } " " (version) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(query: &str) -> FocusView {
        let uri: axum::http::Uri = format!("/ui/focus?{query}").parse().unwrap();
        let asked = Query::<FocusPageQuery>::try_from_uri(&uri).unwrap().0;
        FocusView::read(asked, "2026-03-29T23:30:00Z".parse().unwrap()).ok().unwrap()
    }

    #[test]
    fn an_address_says_the_view_again() {
        assert_eq!(view("").href(), "/ui/focus?hours=24");
        let address = "from=2026-03-01T00:00Z&to=2026-03-02T00:00Z&zone=Europe%2FParis&versions=1&workflow=w&project=p&tag=t&skip=50";
        assert_eq!(view(address).href(), format!("/ui/focus?{address}"));
        assert_eq!(calendar_href(&view(address)), "/ui/calendar?workflow=w&project=p&tag=t&zone=Europe%2FParis");
    }

    #[test]
    fn wide_windows_have_marks_of_months() {
        let told = |query: &str| view(query).marks().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
        assert_eq!(told("from=2025-01-01&to=2026-01-01&zone=Europe/Paris"), "Jan 2025 Apr 2025 Jul 2025 Oct 2025");
        assert_eq!(told("from=2016-01-01&to=2026-01-01").split(' ').count(), 20);
        assert_eq!(
            told("from=2026-03-27&to=2026-04-02&zone=Europe/Paris"),
            "Fri 27 Mar 12:00 Sat 28 Mar 12:00 Sun 29 Mar 12:00 Mon 30 Mar 12:00 Tue 31 Mar 12:00 Wed 1 Apr 12:00"
        );
    }
}
