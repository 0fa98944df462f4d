//! A workflow: its definition and source, the states of its slots, its neighbours, pausing and backfilling it.

use std::collections::BTreeMap;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use kelos_core::{Pause, Resume};
use kelos_explain::schedule;
use kelos_front::fault::{Fault, plain};
use kelos_front::identity::Caller;
use kelos_front::{App, zone};
use kelos_model::time::Zone;
use kelos_model::time::schedule::Schedule;
use kelos_model::workflow::{Keys, PoolUse, Properties, Provenance, WaitStart, Workflow, WorkflowRow};
use kelos_model::{BatchRule, Run, RunState, SlotState, WorkflowId};
use kelos_sandbox::Problem;
use kelos_store::{PageRequest, PastDefinition, Queries, RunFilter, SlotFilter, SlotRow, StoreError, Tally};
use maud::{Markup, html};

use super::board::view::parameters;
use super::page::{Page, Tab, segment, workflow_href};
use super::state::badge;
use super::waits::{self, Waits};
use super::{
    arguments, asked, backfills, flow, graph, jobs, neighbours, plot, problems, schedules, settings, source, strip,
    time, tree, versions, words,
};
use crate::viewer;

/// Times of the future that are shown.
const NEXT_TIMES: usize = 5;
/// Slots of the strip.
const STRIP: usize = 96;
/// Workflows that are named on each side.
const NEIGHBOURS: usize = 100;
/// Runs of the plot.
const PLOTTED: usize = 120;

/// The content of a workflow's page.
struct WorkflowPage {
    row: WorkflowRow,
    times: Result<Vec<Timestamp>, String>,
    slots: Vec<SlotRow>,
    counts: BTreeMap<SlotState, u64>,
    runs: Vec<Run>,
    /// The zone of its times.
    zone: Zone,
    days: plot::Days,
    tallies: Vec<Tally>,
    waits: Waits,
    past: Vec<PastDefinition>,
    upstream: Vec<WorkflowId>,
    downstream: Vec<WorkflowId>,
    backfills: backfills::Latest,
    problems: Vec<Problem>,
    /// The sections of event schedules and programs.
    own: Option<schedules::Own>,
}

pub(super) async fn show(Path(id): Path<String>, RawQuery(query): RawQuery, app: App) -> Result<Response, Fault> {
    let id = asked::workflow(&id)?;
    let matrix = matrix(&app, &id, query.as_deref().unwrap_or_default()).await?;
    let (now, problems) = (app.handle().now(), app.node().problems());
    let of = id.clone();
    let found = app.read(move |reader| read(reader, &of, now, problems)).await?;
    let found = found.ok_or_else(|| plain::not_found(format!("No workflow has ever been named \"{id}\".")))?;
    let page = Page::new(&app, id.as_str()).of_project(&found.row.definition.project);
    let page = page.style("pages.css").script("live.js");
    let page = if found.row.definition.flow.is_some() { page.style("graph.css").style("flow.css") } else { page };
    let page = if found.is_schedule() { page.at(Tab::Schedules) } else { page };
    Ok(page.show(&found.page(now, matrix.as_ref())))
}

/// The jobs of a workflow that is keyed by job ids; none of another.
async fn matrix(app: &App, id: &WorkflowId, query: &str) -> Result<Option<jobs::MatrixPage>, Fault> {
    let (of, given) = (id.clone(), parameters(query));
    let Some(row) = app.read(move |reader| reader.workflow(&of)).await? else { return Ok(None) };
    let Some(keys) = row.definition.keys.jobs() else { return Ok(None) };
    let asked = jobs::MatrixView::read(keys, given)?;
    let definition = row.definition.clone();
    Ok(Some(app.read(move |reader| jobs::read(reader, &definition, asked)).await?))
}

fn read(
    reader: &dyn Queries,
    id: &WorkflowId,
    now: Timestamp,
    problems: Vec<Problem>,
) -> Result<Option<WorkflowPage>, StoreError> {
    let Some(row) = reader.workflow(id)? else { return Ok(None) };
    let times = schedule::resolved(reader, &row)?.map_err(|problem| problem.to_string());
    let times = times
        .map(|schedule| schedule.times(now, Timestamp::MAX).skip_while(|time| *time == now).take(NEXT_TIMES).collect());
    let filter = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
    let over = [RunState::Succeeded, RunState::Failed, RunState::Killed, RunState::Unknown].to_vec();
    let all = reader.workflows(None)?;
    let (upstream, downstream) = neighbours::of_workflow(&row, &all);
    // Problems that name another workflow of the file belong to that one.
    let own = |problem: &Problem| {
        problem.file == row.definition.source.file && problem.workflow.as_ref().is_none_or(|of| of == id)
    };
    let zone = zone::of_row(reader, &row)?.unwrap_or_default();
    let days = plot::Days::up_to(now, &zone);
    Ok(Some(WorkflowPage {
        times,
        slots: reader.slots(&filter, PageRequest::newest(STRIP))?.rows,
        counts: reader.slot_counts(&filter)?,
        runs: reader
            .runs(
                &RunFilter { workflow: Some(id.clone()), states: over, ..RunFilter::default() },
                PageRequest::newest(PLOTTED),
            )?
            .rows,
        tallies: days.tallies(reader, id)?,
        days,
        zone,
        // The page of an event schedule shows its pending slot instead.
        waits: if row.definition.keys.events().is_none() { waits::read(reader, &row, now)? } else { Waits::default() },
        past: reader.definitions(id, None)?,
        upstream,
        downstream,
        backfills: backfills::latest(reader, id, now)?,
        problems: problems.into_iter().filter(own).collect(),
        own: schedules::read(reader, &row, &all, now)?,
        row,
    }))
}

impl WorkflowPage {
    fn is_schedule(&self) -> bool {
        self.row.definition.keys.events().is_some()
    }

    fn page(&self, now: Timestamp, matrix: Option<&jobs::MatrixPage>) -> Markup {
        let id = &self.row.id;
        let keys = self.row.definition.keys.jobs();
        // The schedules that run a program are shown on its page, too.
        let of = if self.row.definition.keys.are_moments() {
            String::new()
        } else {
            format!("?workflow={}", segment(id.as_str()))
        };
        html! {
            div data-events=(of) hidden {}
            nav.crumbs aria-label="Breadcrumb" {
                @if self.is_schedule() { a href="/ui/schedules" { "Schedules" } } @else { a href="/ui" { "Board" } }
            }
            h1 { (id) }
            div #state data-live { (self.state()) }
            @if !self.problems.is_empty() {
                h2 { "Problems of its file" }
                @for problem in &self.problems { (problems::definition(problem)) }
            }
            // Those of a file are among its problems.
            @if !self.problems.iter().any(|problem| problem.workflow.as_ref() == Some(id)) { (schedules::warnings(&self.row)) }
            @if let Some(own) = &self.own { div #own data-live { (own.show(&self.row, now)) } }
            @if let Some(flow) = &self.row.definition.flow { div #flow { (flow::defined(flow)) } }
            @if let (Some(matrix), Some(keys)) = (matrix, keys) {
                (matrix.show(&self.row.definition, keys))
                div #counts data-live { (self.counts()) (self.waits.show()) (self.plots()) }
            } @else {
                div #slots data-live { (self.strip()) }
            }
            div.columns {
                section { h2 { "Definition" } (self.definition()) }
                section {
                    (self.next())
                    h2 { "Waits for" } (workflows(&self.upstream, "It waits for no other workflow."))
                    h2 { "Downstream" } (workflows(&self.downstream, "No other workflow waits for it."))
                }
            }
            @if self.row.present && self.row.definition.keys.schedule().is_some() {
                section.changes { h2 #backfill { "Backfill" } (backfills::form(id, &self.zone, now)) }
            }
            div #backfills data-live { (self.backfills.show(id, now)) }
            (self.source())
        }
    }

    fn state(&self) -> Markup {
        let (id, about) = (&self.row.id, &self.row.definition.about);
        html! {
            @if let Some(description) = &about.description { p { (description) } }
            div.bar {
                @if !self.row.present { span.badge.ended { "removed" } " Its definition was removed; its slots are unchanged." }
                (schedules::state(&self.row))
                @let is_schedule = self.is_schedule();
                @if self.row.paused { span.badge.again { "paused" } " Nothing of it is planned, evaluated or started." }
                @if self.row.frozen().is_some() {
                    span.badge.bad { "frozen" } " " a href="/ui/problems" { "Problems" } " says why."
                    form method="post" action=(format!("{}/resume", workflow_href(id))) { (viewer::proof()) (schedules::why()) " " button { "Resume" } }
                } @else if self.row.present && !is_schedule {
                    @let action = if self.row.paused { "resume" } else { "pause" };
                    form method="post" action=(format!("{}/{action}", workflow_href(id))) { (viewer::proof())
                        (schedules::why()) " " button { @if self.row.paused { "Resume" } @else { "Pause" } }
                    }
                }
                a href=(format!("/ui/activity?workflow={}", segment(id.as_str()))) { "its activity" }
                a href=(graph::graph_href(id)) { "in the graph" }
                @if let Some(keys) = self.row.definition.keys.jobs().filter(|_| self.row.present) {
                    (jobs::form(id, keys.template.as_str(), &self.row.definition.parameters))
                }
            }
        }
    }

    fn strip(&self) -> Markup {
        html! {
            h2 { "Latest slots" }
            @if self.slots.is_empty() { p.soft { "It has no slots yet." } }
            (strip::strip(&self.slots))
            (self.counts())
            (self.waits.show())
            (self.plots())
        }
    }

    fn counts(&self) -> Markup {
        html! {
            p.bar { @for (state, number) in self.counts.iter().filter(|(_, number)| **number > 0) {
                span { (badge(*state)) " " (number) }
            } }
        }
    }

    fn plots(&self) -> Markup {
        html! {
            div.columns {
                @if let Some(plot) = plot::durations(&self.runs) { section { h2 { "How long its runs took" } (plot) } }
                @if let Some(plot) = plot::successes(&self.days, &self.tallies) { section { h2 { "How many of its slots succeeded" } (plot) } }
            }
        }
    }

    /// The next cron time, if there is one.
    fn next(&self) -> Markup {
        let of_events = self.own.as_ref().and_then(schedules::Own::next);
        let by_time = || self.row.definition.keys.schedule().map(|_| self.next_times());
        html! { @if let Some(next) = of_events.or_else(by_time) { h2 { "Next times" } (next) } }
    }

    fn next_times(&self) -> Markup {
        match &self.times {
            Ok(times) if times.is_empty() => html! { p.soft { "None." } },
            Ok(times) => html! { ul.plain { @for time in times { li { (time::at(*time)) } } } },
            Err(problem) => html! { p.bad-text { (problem) } },
        }
    }

    fn definition(&self) -> Markup {
        let definition: &Workflow = &self.row.definition;
        let about = &definition.about;
        html! {
            dl.facts {
                dt { "Schedule" } dd { (schedule_words(&definition.keys)) }
                @if let Some(keys) = definition.keys.jobs() { (jobs::facts(keys)) }
                @if !matches!(definition.keys, Keys::Requests(_)) { dt { "Trigger" } dd { (tree::defined(&definition.trigger)) } }
                @if !definition.constraints.is_empty() { dt { "Constraints" } dd { (schedules::constraints(&definition.constraints)) } }
                @if let Some(events) = definition.keys.events() { (schedules::facts(events)) }
                dt { "At a time" } dd { (definition.concurrency.map_or("any number".to_owned(), |most| words::count(u64::from(most), "slot"))) }
                @if let Some(batch) = definition.batch { dt { "Batches" } dd { (batches(batch)) } }
                @if !definition.pools.is_empty() { dt { "Pools" } dd { (pools(&definition.pools)) } }
                @if !definition.within.is_empty() { dt { "Pools within runs" } dd { (pools(&definition.within)) } }
                @if !definition.parameters.is_empty() { dt { "Parameters" } dd { (arguments::list(&definition.parameters)) } }
                dt { "Retry" } dd { (words::retry(&definition.retry)) }
                @if let Some(start) = definition.start_time { dt { "Starts" } dd { (time::at(start)) } }
                @if let Some(end) = definition.end_time { dt { "Ends" } dd { (time::at(end)) } }
                @if let Some(policy) = definition.catch_up { dt { "Catch-up" } dd { (policy.as_str()) } }
                @if let Some(seconds) = definition.wait_timeout_seconds {
                    dt { "Expires" } dd { "when it still waits " (words::span(i64::try_from(seconds).unwrap_or(i64::MAX))) " after " (wait_start(definition.wait_from)) }
                }
                @if let Some(deadline) = &definition.deadline { dt { "Deadline" } dd { (deadline) } }
                dt { "Executor" } dd { (definition.job.executor) }
                (settings::rows(&definition.job.settings))
                @match &definition.job.properties {
                    Properties::Fixed(properties) => (settings::rows(properties)),
                    Properties::Function(function) => { dt { "Properties" } dd { "a function of " (function.file) " gives them" } }
                }
                dt { "Project" } dd { (definition.project) @if let Some(version) = &definition.version { ", version " (version) } }
                dt { "Comes from" } dd { (provenance(definition)) }
                @if !about.tags.is_empty() { dt { "Tags" } dd { (about.tags.join(", ")) } }
                @if let Some(url) = &about.url { dt { "Page" } dd { (link(url)) } }
                @for contact in &about.contacts {
                    dt { "Contact" } dd { (contact.name.as_deref().unwrap_or_default()) " " (contact.email.as_deref().unwrap_or_default()) }
                }
                dt { "Definition" } dd { "version " (self.row.version) @if let Some(now) = self.past.first() { ", since " (time::at(now.at)) } }
            }
        }
    }

    fn source(&self) -> Markup {
        let place = &self.row.definition.source;
        let text = self.past.first().and_then(|past| past.source.as_deref());
        html! {
            h2 { "Source" }
            @if !place.file.is_empty() { p { code { (place.file) @if place.line > 0 { ":" (place.line) } } } }
            @match text {
                Some(text) => (source::file(text, place.line)),
                None => p.soft { "Its text was not kept." },
            }
            (versions::list(&self.row.id, &self.past))
        }
    }
}

/// The source of a definition.
fn provenance(definition: &Workflow) -> Markup {
    let file = &definition.source.file;
    match definition.provenance() {
        Provenance::File => html! { code { (file) } },
        Provenance::Api if file.is_empty() => html! { "a request" },
        Provenance::Api => html! { "a request, changed from what " code { (file) } " says" },
        Provenance::Code => html! { "the program that embeds Kelos" },
    }
}

fn schedule_words(keys: &Keys) -> Markup {
    match keys {
        Keys::Schedule(Schedule::Dependent(on)) => html! { "that of " a href=(workflow_href(on)) { (on) } },
        Keys::Schedule(schedule) => html! { (words::cron(schedule).unwrap_or_default()) },
        Keys::Events(_) => html! { "whenever its trigger is met" },
        Keys::Requests(_) => html! { "when a person or an event schedule starts it" },
        Keys::Jobs(jobs) => html! { "job ids " code { (jobs.template.as_str()) } },
    }
}

fn workflows(ids: &[WorkflowId], none: &str) -> Markup {
    html! {
        @if ids.is_empty() { p.soft { (none) } }
        ul.plain {
            @for id in ids.iter().take(NEIGHBOURS) { li { a href=(workflow_href(id)) { (id) } } }
            @if ids.len() > NEIGHBOURS { li.soft { "and " (ids.len() - NEIGHBOURS) " more" } }
        }
    }
}

/// A link, if the text is the address of a page; else a text, because a script may contain anything.
fn link(url: &str) -> Markup {
    let lower = url.to_ascii_lowercase();
    let is_page = lower.starts_with("https://") || lower.starts_with("http://");
    html! { @if is_page { a href=(url) rel="noreferrer noopener" { (url) } } @else { (url) } }
}

/// Pauses or resumes a workflow, and leads back to it; or submits one of its jobs, and leads to that.
pub(super) async fn act(
    Path((id, action)): Path<(String, String)>,
    app: App,
    Caller(who): Caller,
    fields: Result<Form<jobs::Submit>, FormRejection>,
) -> Result<Response, Fault> {
    let (id, fields) = (asked::workflow(&id)?, asked::form(fields)?);
    match action.as_str() {
        "pause" => app.ask(&who, Pause { workflow: id.clone(), reason: asked::filled(fields.reason) }).await?,
        "resume" => app.ask(&who, Resume { workflow: id.clone(), reason: asked::filled(fields.reason) }).await?,
        "submit" => return jobs::submit(&app, &who, id, fields).await,
        _ => return Err(plain::of(StatusCode::NOT_FOUND, format!("There is no action \"{action}\" on workflows."))),
    }
    Ok(asked::back_to(&workflow_href(&id)))
}

/// The rule by which adjacent slots are put together.
fn batches(batch: BatchRule) -> String {
    let most = format!("up to {} adjacent slots a run", batch.size);
    match i64::try_from(batch.delay_millis / 1000) {
        Ok(0) => most,
        seconds => format!("{most}; fewer wait for others, up to {}", words::span(seconds.unwrap_or(i64::MAX))),
    }
}

/// The permits that each run takes from its pools.
fn pools(uses: &[PoolUse]) -> Markup {
    html! {
        @for (n, one) in uses.iter().enumerate() {
            @if n > 0 { ", " }
            a href=(format!("/ui/capacity#pool-{}", segment(one.pool.as_str()))) { (one.pool) } " (" (one.permits)
            @if let Some(size) = one.limit() { " of " (size) }
            @if let Some(rate) = &one.rate { ", " (rate) }
            ")"
        }
    }
}

/// The moment from which a wait timeout counts, in words.
fn wait_start(from: WaitStart) -> &'static str {
    match from {
        WaitStart::Time => "its time",
        WaitStart::Opening => "it could first have gone",
    }
}
