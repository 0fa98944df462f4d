//! A slot: its state and why, its life, its runs and its dependencies.

mod act;
mod error;
mod given;
mod inputs;
mod life;
mod roots;

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::response::Response;
use jiff::Timestamp;
use jiff::civil::Date;
use kelos_engine::job::{Functions, JobInput, filled};
use kelos_explain::schedule;
use kelos_explain::why::Account;
use kelos_front::fault::{Fault, plain};
use kelos_front::{App, Links, zone};
use kelos_model::flow::is_carried_out_by_the_scheduler;
use kelos_model::time::Zone;
use kelos_model::workflow::{DefinitionVersion, ProjectVersion, WorkflowRow};
use kelos_model::{EventRecord, Run, RunId, Slot, SlotKey, SlotRef, SlotState, WorkflowId, reason};
use kelos_store::{KnownRun, PageRequest, Queries, RunFilter, SlotFilter, StoreError};
use maud::{Markup, html};
use serde::Deserialize;

use super::neighbours::{self, Neighbour, Neighbours};
use super::output::{From, Output};
use super::page::{Page, segment, slot_href, workflow_href};
use super::runs;
use super::state::badge;
use super::{asked, flow, graph, schedules, time, timeline, tree};

pub(super) use act::act;

/// How many of the newest slots are searched for the neighbours of one.
const BESIDE: usize = 1000;

/// The query of a slot's page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlotQuery {
    /// The moment of the explanation; by default now.
    at: Option<String>,
    /// Shows the output of this run; by default of the latest.
    run: Option<u32>,
    /// The part of the output: the offset of its first line, `before-` and that of the line after it, or `error`; by default its end.
    from: Option<String>,
    /// Of a run of a flow: the last step of the page of steps before this one.
    steps: Option<String>,
    /// Of a step: the last item of the page of items before this one.
    items: Option<u32>,
}

/// The content of a slot's page.
struct SlotPage {
    id: SlotRef,
    /// The moment of the explanation, if it was given.
    at: Option<Timestamp>,
    now: Timestamp,
    /// The zone of its workflow's times, in which moments of forms are read.
    zone: Zone,
    why: Account,
    roots: roots::RootList,
    slot: Option<Slot>,
    workflow: WorkflowRow,
    life: Vec<EventRecord>,
    neighbours: Neighbours,
    /// Its job as it is filled in for it, by the definition that holds now.
    job: Result<JobInput, String>,
    earlier: Option<SlotRef>,
    later: Option<SlotRef>,
    /// The facts of the slot.
    story: Option<schedules::Story>,
    /// The run of a flow, as it is now.
    flow: Option<flow::FlowPart>,
    links: Links,
    output: Option<Output>,
    shown_run: Option<u32>,
    /// With which versions of the definition its runs began.
    versions: Vec<Option<DefinitionVersion>>,
    given: Vec<given::RunAccount>,
}

pub(super) async fn show(
    Path((id, time)): Path<(String, String)>,
    wanted: Result<Query<SlotQuery>, QueryRejection>,
    app: App,
) -> Result<Response, Fault> {
    let (id, wanted) = (asked::slot(&app, &id, &time).await?, asked::query(wanted)?);
    let zone = zone::of_workflow(&app, &id.workflow).await?;
    let at = asked::filled(wanted.at).map(|at| asked::moment(&at, &zone)).transpose()?;
    let from = From::read(wanted.from.as_deref()).ok_or_else(|| {
        plain::bad_request(
            "\"from\" is no part of an output: expected the offset of a line, one after \"before-\", or \"error\".",
        )
    })?;
    let mut found = find(&app, id, (at, zone), wanted.run, from).await?;
    if at.is_none() {
        let after = flow::After { step: asked::filled(wanted.steps), item: wanted.items };
        found.flow = flow::read(&app, &found.id, &found.why.runs, found.now, after).await?;
    }
    let title = found.id.short();
    Ok(Page::new(&app, &title)
        .of_project(&found.workflow.definition.project)
        .style("pages.css")
        .style("ansi.css")
        .style("graph.css")
        .style("flow.css")
        .script("live.js")
        .script("log.js")
        .show(&found.page()))
}

async fn find(
    app: &App,
    id: SlotRef,
    (at, zone): (Option<Timestamp>, Zone),
    run: Option<u32>,
    from: From,
) -> Result<SlotPage, Fault> {
    let why = kelos_explain::why::why(app.handle(), &id, at).await?;
    let roots = roots::RootList::read(app, &id, at).await?;
    let of = id.clone();
    let functions = app.node().functions();
    let rows = app.read(move |reader| {
        let Some(rows) = read(reader, &functions, &of)? else { return Ok(None) };
        // A function of a script may block, which is fine here.
        let job = filled(
            &rows.0.definition,
            &of.key,
            rows.1.as_ref().and_then(|slot| slot.collected.as_deref()),
            None,
            &*functions,
        );
        Ok(Some((rows, job)))
    });
    let Some(((workflow, slot, life, neighbours, earlier, later, story), job)) = rows.await? else {
        return Err(plain::not_found(format!("No workflow has ever been named \"{}\".", id.workflow)));
    };
    let shown = chosen(app, &why, at, run).await?;
    let shown_run = shown.as_ref().map(|run| run.id().number);
    // The scheduler writes nothing.
    let is_silent = |run: &KnownRun| {
        is_carried_out_by_the_scheduler(match run {
            KnownRun::Kept(run) => &run.executor,
            KnownRun::Removed(_) => &workflow.definition.job.executor,
        })
    };
    let output = match &shown {
        Some(run) if !is_silent(run) => Some(Output::read(app, run, from).await),
        _ => None,
    };
    let (now, links) = (app.handle().now(), app.links().clone());
    let runs = why.runs.clone();
    let versions = app.read(move |reader| reader.run_versions(&runs)).await?;
    let collected = slot.as_ref().and_then(|slot| slot.collected.clone());
    let given = given::read(app, &why.runs, &versions, collected).await?;
    Ok(SlotPage {
        id,
        at,
        now,
        zone,
        why,
        roots,
        versions,
        given,
        slot,
        workflow,
        life,
        neighbours,
        job,
        earlier,
        later,
        story,
        flow: None,
        links,
        output,
        shown_run,
    })
}

/// The run whose output is shown: the one that is asked for, also if its record was removed, else the latest.
async fn chosen(
    app: &App,
    why: &Account,
    at: Option<Timestamp>,
    wanted: Option<u32>,
) -> Result<Option<KnownRun>, Fault> {
    let kept = |run: &Run| KnownRun::Kept(Box::new(run.clone()));
    if let Some(run) = why.runs.iter().find(|run| Some(run.id.number) == wanted) {
        return Ok(Some(kept(run)));
    }
    let latest = why.runs.last().map(kept);
    if at.is_some() || (wanted.is_none() && latest.is_some()) {
        return Ok(latest);
    }
    let slot = why.slot.clone();
    let removed = app.read(move |reader| {
        let number = match wanted {
            Some(number) => number,
            None => reader.slot(&slot)?.map_or(0, |slot| slot.last_run),
        };
        reader.known_run(&RunId { slot, number })
    });
    Ok(removed.await?.or(latest))
}

type Rows = (
    WorkflowRow,
    Option<Slot>,
    Vec<EventRecord>,
    Neighbours,
    Option<SlotRef>,
    Option<SlotRef>,
    Option<schedules::Story>,
);

fn read(reader: &dyn Queries, functions: &Arc<dyn Functions>, id: &SlotRef) -> Result<Option<Rows>, StoreError> {
    let Some(workflow) = reader.workflow(&id.workflow)? else { return Ok(None) };
    let (slot, life) = (reader.slot(id)?, reader.history(id)?);
    let neighbours = neighbours::of_slot(reader, functions, &workflow, &id.key)?;
    let (mut earlier, mut later) = (None, None);
    if let Ok(schedule) = schedule::resolved(reader, &workflow)? {
        let there = |at: Option<Timestamp>| -> Result<Option<SlotRef>, StoreError> {
            let slot = at.map(|at| SlotRef::at(id.workflow.clone(), at));
            Ok(match slot {
                Some(slot) if reader.slot(&slot)?.is_some() => Some(slot),
                _ => None,
            })
        };
        if let Some(time) = id.key.time() {
            (earlier, later) = (there(schedule.previous_before(time))?, there(schedule.next_after(time))?);
        }
    }
    if workflow.definition.keys.are_moments() {
        (earlier, later) = beside(reader, id)?;
    }
    // A step has inputs in place of arguments.
    let story = match id.key.step() {
        Some(_) => None,
        None => schedules::story(reader, &workflow, id, slot.as_ref(), &life)?,
    };
    Ok(Some((workflow, slot, life, neighbours, earlier, later, story)))
}

/// The slots before and after one that is named by the moment at which it came to be.
fn beside(reader: &dyn Queries, id: &SlotRef) -> Result<(Option<SlotRef>, Option<SlotRef>), StoreError> {
    let filter = SlotFilter { workflow: Some(id.workflow.clone()), ..SlotFilter::default() };
    let newest: Vec<SlotRef> =
        reader.slot_states(&filter, PageRequest::newest(BESIDE))?.rows.into_iter().map(|(slot, _)| slot).collect();
    // A name says nothing about when its run was started.
    let is_named = |slot: &SlotRef| matches!(slot.key, SlotKey::Named(_));
    let newest = if newest.iter().any(is_named) { begun(reader, &id.workflow)? } else { newest };
    let at = newest.iter().position(|slot| slot == id);
    let earlier = at.and_then(|at| newest.get(at + 1)).cloned();
    Ok((earlier, at.and_then(|at| newest.get(at.checked_sub(1)?)).cloned()))
}

/// The slots of a workflow in the order of their first runs, the latest first.
fn begun(reader: &dyn Queries, workflow: &WorkflowId) -> Result<Vec<SlotRef>, StoreError> {
    let filter = RunFilter { workflow: Some(workflow.clone()), ..RunFilter::default() };
    let runs = reader.runs(&filter, PageRequest::newest(BESIDE))?.rows;
    Ok(runs.into_iter().filter(|run| run.id.number == 1).map(|run| run.id.slot).collect())
}

impl SlotPage {
    /// The version of the project that made what is done.
    fn maker(&self) -> Option<&ProjectVersion> {
        let version = self.why.version.as_ref().filter(|_| self.why.state == Some(SlotState::Succeeded));
        version?.project.as_ref()
    }

    fn page(&self) -> Markup {
        html! {
            div data-events=(format!("?workflow={}", segment(self.id.workflow.as_str()))) hidden {}
            (self.heading())
            div #why data-live { (self.headline()) (error::show(self)) (self.roots.show()) @if !self.has_failed() { (self.account()) } }
            @if self.at.is_none() { div #actions data-live { (self.actions()) } }
            @if let Some(flow) = &self.flow { (flow.sections()) }
            // A failure is to be repaired; why it ran comes second.
            div #why-it-ran data-live { @if self.has_failed() { (self.account()) } }
            @if let Some(story) = &self.story { div #story data-live { (story.show(self.at.is_none())) } }
            div #runs data-live { (self.runs()) }
            @if let Some(output) = &self.output { (output.show()) }
            @if !self.is_step() { div #neighbours data-live { (self.around()) } }
            @if self.at.is_none() && !self.is_of_flow() { div #job { (inputs::job(&self.workflow.definition.job.executor, &self.job)) } }
            div #life data-live { (life::show(&self.id, &self.life, self.at, self.now)) }
        }
    }

    /// Whether it is a run of a flow, or a step of one.
    fn is_of_flow(&self) -> bool {
        self.is_step() || self.workflow.definition.flow.is_some()
    }

    fn is_step(&self) -> bool {
        self.id.key.step().is_some()
    }

    /// The day with which its period begins, where that is a day of another zone than UTC, and the zone.
    fn day(&self, at: Timestamp) -> Option<(Date, &Zone)> {
        let calendar = self.workflow.definition.keys.calendar()?;
        let zone = calendar.zone();
        Some((calendar.day(at).filter(|_| *zone != Zone::utc())?, zone))
    }

    fn heading(&self) -> Markup {
        html! {
            nav.crumbs aria-label="Breadcrumb" {
                a href="/ui" { "Board" } " › " a href=(workflow_href(&self.id.workflow)) { (self.id.workflow) }
                @if let Some(run) = self.flow.as_ref().and_then(flow::FlowPart::run_of_step) { " › " a href=(slot_href(run)) { (time::key(&run.key)) } }
            }
            h1 { (self.id.short()) }
            // The name is in UTC, for it is the same for everybody.
            @if let Some(at) = self.id.key.time() {
                p.soft {
                    "of " (time::at_and_ago(at, self.now))
                    @if let Some((day, zone)) = self.day(at) { ", whose period begins on " (day) " in " (zone) }
                }
            }
            nav.bar aria-label="Slots of this workflow" {
                @if let Some(slot) = &self.earlier { a.button rel="prev" href=(slot_href(slot)) { "← " (time::key(&slot.key)) } }
                @if let Some(slot) = &self.later { a.button rel="next" href=(slot_href(slot)) { (time::key(&slot.key)) " →" } }
            }
        }
    }

    fn headline(&self) -> Markup {
        html! {
            p.headline aria-live="polite" {
                @if let Some(state) = self.why.state { (badge(state)) " " }
                (time::in_text(&self.why.headline))
            }
            @if let Some(words) = self.why.deadline_words() { p.note[self.why.late] { (time::in_text(&words)) "." } }
            @if let Some(words) = self.why.outlook() { p { (time::in_text(&words)) "." } }
            @if let Some(flow) = &self.flow { (flow.state()) }
        }
    }

    fn account(&self) -> Markup {
        let why = &self.why;
        html! {
            @if let Some(at) = self.at {
                p.note { "This is how it was at " (time::at(at)) ". " a href=(slot_href(&self.id)) { "See it now" } }
            }
            @if let Some(version) = self.maker() { p.soft { "Made by version " (version) "." } }
            @if let Some(reason) = &why.out_of_range { p.note { "Out of range: " (reason) "." } }
            @if let Some(no_group) = &why.no_group { p.note { "It waits for no job: " (no_group) "." } }
            @if let Some(children) = &why.nameless_children { p.note { "It does not open all of its children: " (children) "." } }
            @if let Some(trigger) = &why.trigger {
                h2 { @if self.has_failed() { "Why it ran" } @else { "Why" } }
                (tree::answered(trigger))
                @if let Some(at) = why.found_at { p.soft { "as of " (time::at(at)) } }
            }
            @if let Some(seen) = &why.constraints {
                h2 { "Constraints" }
                (schedules::gates(seen))
                @if let Some(at) = why.constraints_at { p.soft { "as of " (time::at(at)) } }
            }
            @if self.says_more() {
                h2 { "Blocked by" }
                ul { @for blocker in &why.blockers { li { (time::in_text(blocker)) } } }
            }
            @if self.at.is_none() && self.id.key.job().is_some() {
                p { a href=(graph::family_href(&self.id)) { "Its ancestors and descendants" } span.soft { ", and what blocks it, at any distance upstream" } }
            } @else if self.at.is_none() && self.waits_for_slots() {
                p { a href=(graph::obstacles_href(&self.id)) { "What blocks it, at any distance upstream" } }
            }
            // The expiry is shown already.
            @if let Some(next) = why.next_look.filter(|_| why.expires.is_none()) { p.soft { "Next check at " (time::at(next)) "." } }
        }
    }

    /// Whether there are reasons besides the tree: the sentence of a trigger with one leaf repeats the tree.
    fn says_more(&self) -> bool {
        let blockers = &self.why.blockers;
        let trigger = self.why.trigger.as_ref().is_some_and(|trigger| *blockers == [reason::words::text(trigger)]);
        let said =
            trigger || self.why.constraints.as_ref().is_some_and(|seen| *blockers == reason::words::blockers(seen));
        !blockers.is_empty() && !said && !self.why.is_told()
    }

    fn waits_for_slots(&self) -> bool {
        let waits = matches!(self.why.state, Some(SlotState::Waiting | SlotState::Held | SlotState::Expired));
        waits && !self.neighbours.upstream.is_empty()
    }

    fn actions(&self) -> Markup {
        html! { div.bar { (act::forms(self)) (self.moment_form()) } }
    }

    fn moment_form(&self) -> Markup {
        let first = self.life.first().map(|first| first.at);
        let Some(first) = first else { return html! {} };
        let local = first.to_zoned(self.zone.rules().clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
        html! {
            details.action {
                summary.button { "At an earlier moment…" }
                form method="get" action=(slot_href(&self.id)) {
                    p { "How it was, and why, read from the log." }
                    label { "Moment, in " (self.zone) " " input type="datetime-local" step="1" name="at" required value=(local); }
                    " " button { "Show" }
                }
            }
        }
    }

    fn runs(&self) -> Markup {
        html! {
            h2 { "Runs" }
            @if self.why.runs.is_empty() { p.soft { (self.no_runs()) } }
            @else { (runs::table(&self.id, &self.why.runs, &self.versions, self.shown_run, &self.links)) }
            (given::show(&self.given, self.shown_run))
            @if self.slot.is_some() {
                p { a href=(timeline::path_href(&self.id)) { "Critical path" } span.soft { ": what determined when it ended, or delays it now" } }
            }
        }
    }

    fn no_runs(&self) -> &'static str {
        let is_removed = self.at.is_none() && self.slot.as_ref().is_some_and(|slot| slot.last_run > 0);
        if is_removed { "Removed with the history." } else { "None yet." }
    }

    fn around(&self) -> Markup {
        html! {
            div.columns {
                section {
                    h2 { "Inputs" }
                    (inputs::paths(self.why.trigger.as_ref()))
                    (list(&self.neighbours.upstream, self.neighbours.more_upstream, "It waits for no other slot."))
                }
                section { h2 { "Downstream" } (list(&self.neighbours.downstream, self.neighbours.more_downstream, "No other slot waits for it.")) }
            }
        }
    }
}

fn list(slots: &[Neighbour], more: usize, none: &str) -> Markup {
    html! {
        @if slots.is_empty() { p.soft { (none) } }
        ul.plain {
            @for slot in slots {
                li {
                    a href=(slot_href(&slot.id)) { (slot.id.short()) } " "
                    @match slot.state { Some(state) => (badge(state)), None => span.soft { "not there" } }
                }
            }
        }
        @if more > 0 { p.soft { "and " (more) " more" } }
    }
}
