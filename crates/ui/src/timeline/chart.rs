//! The timeline as HTML. Places are attributes of SVG, in percent of the window, so that bars fit any width.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kelos_model::{Run, RunId, RunState};
use maud::{Markup, html};

use super::lanes::{self, Mark, USUAL_WIDTH};
use super::view::{By, TimelineView, WIDTHS};
use super::{MOST_ROWS, MOST_RUNS, Name, TimelineData, path};
use crate::documents::Document;
use crate::page::{segment, slot_href, workflow_href};
use crate::runs::{class, letter};
use crate::selection::choice;
use crate::words;

/// Height of a lane, and of a bar in it, in pixels.
const LANE: usize = 20;
const BAR: usize = 15;
/// Least width of a bar, in pixels.
const THINNEST: i64 = 3;
/// Width of a bar that has room for a letter, in pixels.
const LETTERED: i64 = 13;
/// Rows of the table at the most.
const MOST_LISTED: usize = 500;

pub(super) fn page(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    html! {
        @if view.is_live() { div data-events="" data-batch="900" hidden {} }
        h1 { "Timeline" }
        div #nav data-live { (navigation(shown)) }
        (filters(shown))
        div #path data-live { @if let Some(found) = &shown.path { (path::list(view, found)) } }
        div #runs data-live {
            (summary(shown))
            @if shown.rows.is_empty() && shown.path.is_none() { (nothing(shown)) }
            @else if view.is_table { (table(shown)) }
            @else { (chart(shown)) }
        }
        @if !view.is_table {
            p #told .told .scripted-only role="status" { "Point at a bar, or move to it with the Tab key, to see its details here." }
            (legend())
        }
    }
}

fn navigation(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    let later = view.later();
    html! {
        div.bar role="toolbar" aria-label="What of time is shown" {
            span.group {
                a.button #earlier href=(view.earlier().href()) title="Earlier ([)" { "‹ Earlier" }
                a.button #now href=(view.of_now(view.hours()).href()) title="Follow the clock (n)" aria-current=[view.follows().then_some("true")] { "Now" }
                @if let Some(later) = later { a.button #later href=(later.href()) title="Later (])" { "Later ›" } }
            }
            span.group role="group" aria-label="How much of time" {
                @for hours in WIDTHS {
                    a.button href=(view.of_now(hours).href()) aria-current=[view.is_width(hours).then_some("true")] { (hours_name(hours)) }
                }
            }
            span.group {
                a.button #nearer href=(view.zoomed(false).href()) title="Zoom in (+)" aria-label="nearer" { "+" }
                a.button #wider href=(view.zoomed(true).href()) title="Wider (-)" aria-label="wider" { "−" }
            }
            @if shown.has_pools {
                span.group role="group" aria-label="Rows" {
                    a.button href=(view.by(By::Workflow).href()) aria-current=[(view.by == By::Workflow).then_some("true")] { "By workflow" }
                    a.button href=(view.by(By::Pool).href()) aria-current=[(view.by == By::Pool).then_some("true")] { "By pool" }
                }
            }
            span.group {
                a.button href=(view.as_table(!view.is_table).href()) { @if view.is_table { "As bars" } @else { "As a table" } }
            }
            @if let Some(zone) = &view.zone {
                a.button href=(view.in_usual_zone().href()) title="Times are in the zone of this address; change to yours" { "In " (zone.name()) " ×" }
            }
        }
    }
}

fn hours_name(hours: u32) -> String {
    if hours < 24 || !hours.is_multiple_of(24) { format!("{hours} h") } else { format!("{} d", hours / 24) }
}

fn filters(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    let states: Vec<String> = RunState::ALL.iter().map(|state| state.as_str().to_owned()).collect();
    html! {
        form.bar method="get" action="/ui/timeline" role="search" {
            @for (name, value) in view.kept() { input type="hidden" name=(name) value=(value); }
            input #find type="search" name="find" value=(view.find) placeholder="Find workflows (/)" aria-label="Find workflows" autocomplete="off";
            (choice("project", "All projects", view.project.as_deref(), &shown.projects))
            (choice("tag", "All tags", view.tag.as_deref(), &shown.tags))
            (choice("state", "All states", view.state.map(RunState::as_str), &states))
            button { "Show" }
        }
    }
}

/// The runs that are shown, each once.
fn all_runs(shown: &TimelineData) -> Vec<&Run> {
    let mut runs: Vec<&Run> = shown.rows.iter().flat_map(|(_, runs)| runs).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.seq));
    runs.dedup_by_key(|run| run.seq);
    runs
}

fn summary(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    let runs = all_runs(shown);
    let mut states: BTreeMap<RunState, u64> = BTreeMap::new();
    runs.iter().for_each(|run| *states.entry(run.state).or_default() += 1);
    let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {}", state.as_str())).collect();
    let form = "%Y-%m-%d %H:%M";
    html! {
        p.headline {
            (view.told(view.range.start, form)) " – " (view.told(view.range.end, form)) " " (view.told(view.range.end, "%Z"))
            ": " (words::count(runs.len() as u64, "run"))
            @if !states.is_empty() { " (" (states.join(", ")) ")" }
            @if shown.more_rows > 0 { " in the rows shown" }
        }
        @if let Some(since) = shown.complete_since {
            p.note {
                "These are only the newest of the runs of this time: those dispatched since " (view.told(since, "%Y-%m-%d %H:%M:%S"))
                ". A page reads at most " (MOST_RUNS) " runs; look " a href=(view.zoomed(false).href()) { "nearer" } ", or filter by a workflow."
            }
        }
        @if shown.more_rows > 0 {
            p.note { (words::count(shown.more_rows as u64, "more row")) " had runs; " (MOST_ROWS) " are shown. Filter by a word, a project or a tag to see the others." }
        }
    }
}

fn nothing(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    html! {
        section.empty {
            @if !shown.has_runs {
                p { "No run has ever been dispatched here. When the trigger of a slot is met its job runs, and the run is a bar on this page." }
                p { "To see why slots still wait, open " a href="/ui" { "the board" } ". " (Document::Timeline.link("How to read the timeline")) }
            } @else {
                p {
                    "No run was under way in this time"
                    @if view.find.is_empty() && view.project.is_none() && view.tag.is_none() && view.state.is_none() { "." }
                    @else { " that passes the filter." }
                }
                p { a href=(view.zoomed(true).href()) { "Zoom out" } " or " a href=(view.earlier().href()) { "earlier" } "." }
            }
        }
    }
}

fn chart(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    let on_path = shown.path.as_ref().map(path::runs).unwrap_or_default();
    let rows: Vec<Vec<&Run>> = shown.rows.iter().map(|(_, runs)| runs.iter().collect()).collect();
    let marks = lanes::arrange(&rows, view.width(), view.now, |run| on_path.contains(&run.id));
    html! {
        div.timeline.with-path[!on_path.is_empty()] #timeline data-start=(view.range.start.as_millisecond()) data-width=(view.width()) data-now=(view.now.as_millisecond()) {
            (grid(view))
            table {
                thead { tr { th scope="col" { (view.told(view.range.start, "%-d %b %Y")) } td { (head(view)) } } }
                @if let Some(found) = &shown.path { (path::rows(view, found)) }
                tbody {
                    @for ((name, runs), marks) in shown.rows.iter().zip(&marks) { (row(view, name, runs.len(), marks, &on_path)) }
                }
            }
        }
    }
}

/// Lines behind all rows: the marks of time, and now.
fn grid(view: &TimelineView) -> Markup {
    let is_shown = view.range.contains(view.now);
    html! {
        svg.lines aria-hidden="true" {
            @for (at, _) in view.marks() { line x1=(view.place(at)) x2=(view.place(at)) y1="0" y2="100%" {} }
            @if is_shown { line #now-line .now x1=(view.place(view.now)) x2=(view.place(view.now)) y1="0" y2="100%" {} }
        }
    }
}

fn head(view: &TimelineView) -> Markup {
    html! {
        svg.head width="100%" height="18" aria-hidden="true" {
            @for (at, text) in view.marks() { text x=(view.place(at)) y="13" dx="3" { (text) } }
        }
    }
}

fn row(view: &TimelineView, name: &Name, runs: usize, marks: &[Mark<'_>], on_path: &BTreeSet<RunId>) -> Markup {
    let lanes = marks.iter().map(|mark| mark.lane + 1).max().unwrap_or(1);
    html! {
        tr {
            th scope="row" {
                @match name {
                    Name::Workflow(id) => a href=(workflow_href(id)) { (id) },
                    Name::Pool(pool) => span { (pool) },
                    Name::NoPool => em { "no pool" },
                }
                " " small { (runs) }
            }
            td {
                svg width="100%" height=(lanes * LANE) role="group" aria-label=(words::count(runs as u64, "run")) {
                    @for mark in marks {
                        @match &mark.runs[..] {
                            [run] => (bar(view, mark, run, on_path.contains(&run.id))),
                            _ => (block(view, name, mark)),
                        }
                    }
                }
            }
        }
    }
}

/// The place of a bar: its left edge, and its width in the unit that keeps it visible.
struct Place {
    x: String,
    width: String,
    pixels: i64,
}

fn place(view: &TimelineView, from: i64, until: i64) -> Place {
    let at = |millis| Timestamp::from_millisecond(millis).unwrap_or_default();
    let (left, right) = (view.percent(at(from)), view.percent(at(until)));
    let pixels = ((right - left) * USUAL_WIDTH as f64 / 100.0) as i64;
    let width = if pixels < THINNEST { THINNEST.to_string() } else { format!("{:.3}%", right - left) };
    Place { x: format!("{left}%"), width, pixels }
}

fn bar(view: &TimelineView, mark: &Mark<'_>, run: &Run, on_path: bool) -> Markup {
    let began = run.started_at.map_or(mark.from, |at| at.as_millisecond()).clamp(mark.from, mark.until);
    let whole = place(view, mark.from, mark.until);
    let ran = place(view, began, mark.until);
    // Bars that can't be seen apart are drawn as one.
    let waited = place(view, mark.from, began);
    let (ran, waited) = if waited.pixels < 2 { (whole, None) } else { (ran, Some(waited)) };
    let y = mark.lane * LANE + 2;
    let is_open = !run.state.is_final() && view.is_live();
    let href = format!("{}?run={}", slot_href(&run.id.slot), run.id.number);
    html! {
        a href=(href) class=[on_path.then_some("on")] {
            title { (told(view, run)) }
            @if let Some(waited) = waited {
                rect.wait x=(waited.x) y=(y + 5) width=(waited.width) height=(BAR - 10) {}
            }
            rect.(class(run.state)) x=(ran.x) y=(y) width=(ran.width) height=(BAR) rx="2" data-from=[is_open.then_some(began)] {}
            @if ran.pixels >= LETTERED { text x=(ran.x) y=(y + 12) dx="3" { (letter(run.state)) } }
        }
    }
}

fn block(view: &TimelineView, name: &Name, mark: &Mark<'_>) -> Markup {
    let y = mark.lane * LANE + 2;
    let state = mark.state();
    let lies = place(view, mark.from, mark.until);
    let count = mark.runs.len();
    let find = if let Name::Workflow(id) = name { id.as_str() } else { &view.find };
    let digits = count.to_string();
    let room = 7 * digits.len() as i64 + 5;
    html! {
        a href=(view.narrowed(find, mark.from, mark.until).href()) {
            title { (words::count(count as u64, "run")) " from " (view.told(mark.runs[0].dispatched_at, "%H:%M:%S")) " on, the worst " (state.as_str()) "; zoom in" }
            rect.many.(class(state)) x=(lies.x) y=(y) width=(lies.width) height=(BAR) {}
            @if lies.pixels >= room { text x=(lies.x) y=(y + 12) dx="3" { (digits) } }
        }
    }
}

/// A run and its outcome in one line.
fn told(view: &TimelineView, run: &Run) -> String {
    let began = run.started_at.unwrap_or(run.dispatched_at);
    let until = run.ended_at.unwrap_or(view.now);
    let mut parts = vec![format!("{} run {}: {}", run.id.slot.short(), run.id.number, run.state.as_str())];
    parts.extend(run.started_at.map(|at| format!("waited {} for its start", words::took(run.dispatched_at, at))));
    let verb = match run.state {
        RunState::Dispatched => "waits for its start for",
        RunState::Running => "runs for",
        _ => "ran",
    };
    parts.push(format!("{verb} {}", words::took(began, until)));
    let end = run.ended_at.map_or("now".to_owned(), |at| view.told(at, "%H:%M:%S"));
    parts.push(format!("{} – {end}", view.told(run.dispatched_at, "%H:%M:%S")));
    parts.join("; ")
}

/// The same as text, newest first.
fn table(shown: &TimelineData) -> Markup {
    let view = &shown.view;
    let runs = all_runs(shown);
    html! {
        div.wide {
            table.runs {
                thead { tr { th { "Slot" } th { "Run" } th { "State" } th { "Dispatched" } th { "Waited for its start" } th { "Took" } } }
                tbody { @for run in runs.iter().take(MOST_LISTED) { (listed(view, run)) } }
            }
        }
        @if runs.len() > MOST_LISTED { p.soft { "and " (runs.len() - MOST_LISTED) " more; zoom in, or filter." } }
    }
}

fn listed(view: &TimelineView, run: &Run) -> Markup {
    let began = run.started_at.unwrap_or(run.dispatched_at);
    let href = format!("{}?run={}", slot_href(&run.id.slot), segment(&run.id.number.to_string()));
    html! {
        tr {
            td { a href=(href) { (run.id.slot.short()) } }
            td { "#" (run.id.number) }
            td { (crate::runs::badge(run.state)) }
            td { (view.told(run.dispatched_at, "%Y-%m-%d %H:%M:%S")) }
            td { @if let Some(at) = run.started_at { (words::took(run.dispatched_at, at)) } }
            td { @if let Some(end) = run.ended_at { (words::took(began, end)) } @else { (words::took(began, view.now)) " so far" } }
        }
    }
}

fn legend() -> Markup {
    html! {
        footer.legend {
            @for state in RunState::ALL {
                span { svg width="18" height="16" aria-hidden="true" { rect.(class(state)) x="0" y="0" width="18" height=(BAR) rx="2" {} text x="4" y="12" { (letter(state)) } } " " (state.as_str()) }
            }
            span { svg width="18" height="16" aria-hidden="true" { rect.wait x="0" y="5" width="18" height=(BAR - 10) {} } " dispatched, not yet started" }
            span { svg width="22" height="16" aria-hidden="true" { rect.many.run-succeeded x="0" y="0" width="22" height=(BAR) {} text x="4" y="12" { "37" } } " so many short runs" }
        }
    }
}
