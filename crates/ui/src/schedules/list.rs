//! All event schedules, by project: the state of each, and its actions.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::Response;
use jiff::Timestamp;
use kelos_explain::schedules::overview::{self, Overview, PendingSlot};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::project::{Member, ProjectName};
use kelos_model::workflow::WorkflowRow;
use kelos_store::{Queries, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::{act, words as told};
use crate::documents::Document;
use crate::page::{Page, Tab, segment, slot_href, workflow_href};
use crate::state::badge;
use crate::{asked, runs, time, words};

/// Schedules of a page.
const LISTED: usize = 100;

/// The schedules to show.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleQuery {
    /// Only those with these words in their names or triggers.
    find: Option<String>,
    /// Only those that are `enabled`, or `disabled`.
    only: Option<String>,
    /// After so many of them.
    after: Option<usize>,
}

impl ScheduleQuery {
    fn accepts(&self, row: &WorkflowRow) -> bool {
        let is_wanted = match self.only.as_deref() {
            Some("enabled") => row.enabled,
            Some("disabled") => !row.enabled,
            _ => true,
        };
        is_wanted && self.finds(row)
    }

    fn finds(&self, row: &WorkflowRow) -> bool {
        let Some(find) = &self.find else { return true };
        let definition = &row.definition;
        let text = format!("{} {} {}", row.id, definition.program(), definition.trigger).to_lowercase();
        find.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    fn href(&self, after: usize) -> String {
        let of = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={}", segment(value)));
        let after = (after > 0).then(|| format!("after={after}"));
        let parts: Vec<String> =
            [of("find", &self.find), of("only", &self.only), after].into_iter().flatten().collect();
        format!("/ui/schedules?{}", parts.join("&"))
    }
}

/// A schedule and its state.
pub(super) type Line = (WorkflowRow, Overview);

/// The content of the page.
struct SchedulePage {
    lines: BTreeMap<String, Vec<Line>>,
    all: usize,
    enabled: usize,
    matching: usize,
    shown: usize,
    after: usize,
}

pub(crate) async fn show(wanted: Result<Query<ScheduleQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let wanted: ScheduleQuery = asked::query(wanted)?;
    let wanted =
        ScheduleQuery { find: asked::filled(wanted.find), only: asked::filled(wanted.only), after: wanted.after };
    let now = app.handle().now();
    let (found, wanted) = app.read(move |reader| Ok((read(reader, &wanted, now)?, wanted))).await?;
    let body = html! {
        div data-events="" data-batch="700" hidden {}
        h1 { "Schedules" }
        (filter(&wanted))
        div #schedules data-live { (page(&found, &wanted, now)) }
        p { a href="/ui/facts" { "Recent facts" } span.soft { ", and what each led to" } }
    };
    Ok(Page::new(&app, "Schedules").at(Tab::Schedules).style("pages.css").script("live.js").show(&body))
}

fn read(reader: &dyn Queries, wanted: &ScheduleQuery, now: Timestamp) -> Result<SchedulePage, StoreError> {
    let mut rows = reader.workflows(None)?;
    rows.retain(|row| row.present && row.definition.keys.events().is_some());
    let (all, enabled) = (rows.len(), rows.iter().filter(|row| row.enabled).count());
    rows.retain(|row| wanted.accepts(row));
    rows.sort_by(|one, other| (&one.definition.project, &one.id).cmp(&(&other.definition.project, &other.id)));
    let (matching, after) = (rows.len(), wanted.after.unwrap_or(0));
    let mut lines: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    let mut shown = 0;
    for row in rows.into_iter().skip(after).take(LISTED) {
        shown += 1;
        let how = overview::read(reader, &row, now)?;
        lines.entry(row.definition.project.clone()).or_default().push((row, how));
    }
    Ok(SchedulePage { lines, all, enabled, matching, shown, after })
}

fn filter(wanted: &ScheduleQuery) -> Markup {
    let only = wanted.only.as_deref().unwrap_or_default();
    html! {
        form.bar method="get" action="/ui/schedules" role="search" {
            label { "Find " input type="search" name="find" value=[&wanted.find] placeholder="name, program, dataset" size="28" autocomplete="off"; }
            label { "Show " select name="only" {
                @for (value, name) in [("", "all"), ("enabled", "enabled"), ("disabled", "disabled")] {
                    option value=(value) selected[value == only] { (name) }
                }
            } }
            button { "Show" }
        }
    }
}

fn page(found: &SchedulePage, wanted: &ScheduleQuery, now: Timestamp) -> Markup {
    html! {
        (headline(found))
        @for (project, lines) in &found.lines {
            h2 { (project) }
            (table(lines, now))
        }
        @if found.shown < found.matching {
            nav.bar aria-label="Pages of schedules" {
                span.soft { (found.after + 1) " to " (found.after + found.shown) " of " (found.matching) }
                @if found.after > 0 { a.button rel="prev" href=(wanted.href(found.after.saturating_sub(LISTED))) { "← Before" } }
                @if found.after + found.shown < found.matching { a.button rel="next" href=(wanted.href(found.after + LISTED)) { "After →" } }
            }
        }
    }
}

fn headline(found: &SchedulePage) -> Markup {
    html! {
        @if found.all == 0 {
            p.headline { "There are no event schedules." }
            p.soft {
                "One runs a program when facts come, such as new partitions of a dataset, the end of another program, or a time. For a program, that is a "
                "workflow without a schedule of its own, " code { "kelos schedule add NAME for PROGRAM --partitions DATASET=4" } " makes one; scripts define them, too. "
                (Document::EventSchedules.link("More about event schedules"))
            }
        } @else {
            p.headline { (words::count(found.all as u64, "event schedule")) ", " (found.enabled) " of them enabled." }
            @if found.matching == 0 { p.soft { "None is like that." } }
        }
    }
}

/// Schedules, one below the other.
pub(super) fn table(lines: &[Line], now: Timestamp) -> Markup {
    html! {
        div.wide { table.schedules {
            thead { tr { th { "Schedule" } th { "Trigger" } th { "Next time" } th { "Pending" } th { "Last run" } th { span.unseen { "Actions" } } } }
            tbody { @for (row, how) in lines { (line(row, how, now)) } }
        } }
    }
}

fn line(row: &WorkflowRow, how: &Overview, now: Timestamp) -> Markup {
    let definition = &row.definition;
    html! {
        tr {
            td.subject {
                a href=(workflow_href(&row.id)) { (name(row)) } " " (switch(row))
                br; span.soft { "runs " a href=(workflow_href(definition.program())) { (program(row)) } }
            }
            td.reason {
                code { (definition.trigger) }
                @for one in &definition.constraints { br; span.soft title=(told::constraint(one)) { (one) } }
            }
            td { @if let Some(next) = &how.next { (time::at(next.at)) br; span.soft title=(format!("{}, in {}", next.cron, next.zone)) { (time::ahead(next.at, now)) } } }
            td.reason { (pending(row, how)) }
            td {
                @if let Some(run) = &how.last_run {
                    a.plain-link href=(slot_href(&run.id.slot)) { (runs::badge(run.state)) }
                    br; span.soft { (time::ago(run.dispatched_at, now)) }
                }
            }
            td.acts { (act::buttons(row, "list")) }
        }
    }
}

fn name(row: &WorkflowRow) -> &str {
    row.definition.keys.events().map_or(row.id.as_str(), |events| &events.name)
}

/// The name of its program, shortened if that is of the same project.
fn program(row: &WorkflowRow) -> String {
    let program = row.definition.program();
    match ProjectName::read(&row.definition.project).member_name(program) {
        Some(Member { kind: None, name, .. }) => name,
        _ => program.to_string(),
    }
}

/// Whether it is enabled.
pub(super) fn switch(row: &WorkflowRow) -> Markup {
    match (row.present, row.enabled) {
        (false, _) => html! { span.badge.ended { "deleted" } },
        (true, false) => html! { span.badge.ended { "disabled" } },
        (true, true) => html! { span.badge.good { "enabled" } },
    }
}

fn pending(row: &WorkflowRow, how: &Overview) -> Markup {
    html! {
        @for one in &how.pending { div.pending { (brief(row, one)) } }
        @if how.pending.is_empty() { span.soft { "–" } }
    }
}

/// A pending slot in short: its state, its progress, and the trigger it waits for.
pub(super) fn brief(row: &WorkflowRow, pending: &PendingSlot) -> Markup {
    html! {
        a.plain-link href=(slot_href(&pending.slot)) { (badge(pending.state)) } " "
        (told::bar(&row.definition.trigger, pending)) " " (time::in_text(&pending.text))
    }
}
