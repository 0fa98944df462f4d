//! The graph: workflows, their dependencies, and the path from a slot to its obstacles.
//!
//! The picture is drawn here; the script moves it, and requests the appearance of nodes whose slots changed. What is *absent*:
//! the rules of dependencies, and the layout of nodes: both are in the library.

mod beside;
mod family;
mod list;
mod node;
mod picture;
mod view;

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, RawQuery};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kelos_explain::failures::{self, Failures};
use kelos_explain::graph::{self, Graph, Upstream};
use kelos_explain::jobs::{self, Jobs, Reach};
use kelos_front::fault::{Fault, plain};
use kelos_front::{App, Front};
use kelos_model::{SlotRef, SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;

use self::family::FamilyPage;
use self::picture::Picture;
use self::view::{GraphView, ViewQuery};
use super::documents::Document;
use super::page::{Page, Tab};
use super::{asked, assets, words};

pub(super) use family::family_href;
pub(super) use picture::{arrow, curve, shortened};
pub(super) use view::{graph_href, obstacles_href};

/// The most nodes that are drawn.
const MOST_DRAWN: usize = 1_500;
/// Slots of a focus that are listed.
const SLOTS_LISTED: usize = 12;
/// How many nodes are updated in one answer; if more have changed, the page reloads itself.
const MOST_TOLD: usize = 300;

pub(super) fn router() -> Router<Front> {
    Router::new().route("/ui/graph", get(show)).route("/ui/graph.svg", get(file)).route("/ui/graph/nodes", get(nodes))
}

/// The content of the page.
struct GraphPage {
    view: GraphView,
    graph: Graph,
    upstream: Option<Upstream>,
    /// Slots of the focus that have not succeeded, newest first.
    slots: Vec<(SlotRef, SlotState)>,
    /// The unrepaired failures; read unless a workflow or a slot is in focus.
    failures: Failures,
    /// The end of the log before the data was read: the script gets later events.
    seq: u64,
}

async fn find(app: &App, view: GraphView) -> Result<GraphPage, Fault> {
    let now = app.handle().now();
    let of = view.clone();
    let read = move |reader: &dyn Queries| -> Result<_, StoreError> {
        let seq = reader.last_seq()?;
        let upstream = of.slot.as_ref().map(|slot| graph::upstream(reader, slot, now)).transpose()?;
        let graph = graph::read(reader, &of.wanted(upstream.as_ref()), now, of.hours)?;
        let slots = match &of.focus {
            Some(focus) if of.slot.is_none() => unfinished(reader, focus)?,
            _ => Vec::new(),
        };
        let has_focus = of.slot.is_some() || of.focus.is_some();
        let failures = if has_focus { Failures::default() } else { failures::find(reader, now)? };
        Ok((graph, upstream, slots, failures, seq))
    };
    let (graph, upstream, slots, failures, seq) = app.read(read).await?;
    Ok(GraphPage { view, graph, upstream, slots, failures, seq })
}

/// The newest slots of a workflow that have not succeeded.
fn unfinished(reader: &dyn Queries, id: &WorkflowId) -> Result<Vec<(SlotRef, SlotState)>, StoreError> {
    let states = SlotState::ALL.iter().copied().filter(|state| *state != SlotState::Succeeded).collect();
    let filter = SlotFilter { workflow: Some(id.clone()), states, ..SlotFilter::default() };
    Ok(reader.slot_states(&filter, PageRequest::newest(SLOTS_LISTED))?.rows)
}

async fn view_of(app: &App, asked: Result<Query<ViewQuery>, QueryRejection>) -> Result<GraphView, Fault> {
    let mut asked = asked::query(asked)?;
    let slot = match asked::filled(asked.slot.take()) {
        Some(text) => Some(asked::slot_of(app, "slot", &text).await?),
        None => None,
    };
    let of_job = slot.as_ref().is_some_and(|slot| slot.key.job().is_some());
    if of_job && asked.up.is_none() && asked.down.is_none() {
        // A job is shown with all relatives, up to the limit of a picture.
        let all = view::MOST_LEVELS.to_string();
        (asked.up, asked.down) = (Some(all.clone()), Some(all));
    }
    GraphView::read(asked, slot)
}

/// A job with its ancestors and descendants.
async fn show_family(app: &App, job: SlotRef, view: &GraphView) -> Result<Response, Fault> {
    let reach = Reach { up: view.up, down: view.down, most: family::MOST_DRAWN };
    let (of, now, functions) = (job.clone(), app.handle().now(), app.node().functions());
    let read = move |reader: &dyn Queries| -> Result<_, StoreError> {
        let jobs = Jobs::read(reader)?.asking(functions);
        Ok((jobs::family(&jobs, reader, &of, reach)?, graph::upstream(reader, &of, now)?))
    };
    let (family, upstream) = app.read(read).await?;
    let page = Page::new(app, "Graph").at(Tab::Graph).style("pages.css").style("graph.css").script("live.js");
    Ok(page.show(&FamilyPage { job, family, upstream }.show()))
}

async fn show(asked: Result<Query<ViewQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let view = view_of(&app, asked).await?;
    if let Some(job) = view.slot.clone().filter(|slot| slot.key.job().is_some()) {
        return show_family(&app, job, &view).await;
    }
    let found = find(&app, view).await?;
    let page = Page::new(&app, "Graph").at(Tab::Graph).style("pages.css").style("graph.css").script("graph.js");
    let page = if found.is_drawn() { page.filling() } else { page };
    Ok(page.show(&found.page()))
}

/// The picture as a file, for documents and slides.
async fn file(asked: Result<Query<ViewQuery>, QueryRejection>, app: App) -> Result<Response, Fault> {
    let found = find(&app, view_of(&app, asked).await?).await?;
    drawing(&found.graph, &found.view, found.upstream.as_ref()).map_err(plain::bad_request)
}

fn drawing(graph: &Graph, view: &GraphView, upstream: Option<&Upstream>) -> Result<Response, String> {
    if graph.nodes.len() > MOST_DRAWN {
        return Err(too_many(graph));
    }
    let svg = Picture::new(graph, view, upstream).file(assets::text("graph-file.css"));
    let name = "attachment; filename=\"graph.svg\"";
    Ok(([(header::CONTENT_TYPE, "image/svg+xml"), (header::CONTENT_DISPOSITION, name)], svg).into_response())
}

/// A graph as a file of SVG; the error is a sentence.
pub fn file_of(graph: &Graph, focus: Option<WorkflowId>, hours: u32) -> Result<Response, String> {
    drawing(graph, &GraphView::of(focus, hours), None)
}

/// The current appearance of some nodes: `[[id, class, letter, note, words], …]`.
async fn nodes(RawQuery(query): RawQuery, app: App) -> Result<Response, Fault> {
    let (mut of, mut hours) = (BTreeSet::new(), view::USUAL_HOURS);
    for (name, value) in query.as_deref().unwrap_or_default().split('&').filter_map(|field| field.split_once('=')) {
        let value = percent_decode_str(value).decode_utf8_lossy();
        match name {
            "of" => drop(of.insert(asked::workflow(&value)?)),
            "hours" => hours = value.parse().map_err(|_| plain::bad_request("\"hours\" is no number."))?,
            _ => return Err(plain::bad_request(format!("There is no parameter \"{name}\"."))),
        }
    }
    if of.len() > MOST_TOLD {
        return Err(plain::bad_request(format!("{} workflows are more than {MOST_TOLD}.", of.len())));
    }
    let now = app.handle().now();
    let nodes = app.read(move |reader| graph::states(reader, &of, now, hours)).await?;
    let told: Vec<_> = nodes
        .iter()
        .map(|node| {
            let face = node::face(node, None, hours);
            (node.id.to_string(), face.class, face.letter, face.note, face.told)
        })
        .collect();
    Ok(axum::Json(told).into_response())
}

fn too_many(graph: &Graph) -> String {
    format!(
        "{} are too many for one picture, which holds {MOST_DRAWN}.",
        words::count(graph.nodes.len() as u64, "workflow")
    )
}

impl GraphPage {
    fn is_drawn(&self) -> bool {
        !self.view.as_list && (1..=MOST_DRAWN).contains(&self.graph.nodes.len())
    }

    fn page(&self) -> Markup {
        html! {
            div #since data-after=(self.seq) hidden {}
            @if self.graph.total == 0 { (nothing()) }
            @else if self.is_drawn() { (self.drawn()) }
            @else {
                h1 { "Graph" }
                (self.bar())
                @if self.graph.nodes.is_empty() { p.headline { "No workflow matches. " a href=(self.view.whole().href()) { "Show all " (self.graph.total) } } }
                @else if self.view.as_list { (beside::beside(self)) (list::list(&self.graph, &self.view)) }
                @else { (self.projects()) }
            }
        }
    }

    fn drawn(&self) -> Markup {
        let picture = Picture::new(&self.graph, &self.view, self.upstream.as_ref());
        html! {
            h1.unseen { "Graph" }
            (self.bar())
            div.stage {
                div #canvas data-hours=(self.view.hours) { (picture.inline()) }
                aside #beside aria-label="About the graph" { (beside::beside(self)) (beside::legend()) }
            }
        }
    }

    fn bar(&self) -> Markup {
        let view = &self.view;
        html! {
            form.bar #choose method="get" action="/ui/graph" role="search" {
                input type="search" name="find" placeholder="Find workflows (/)" aria-label="Find workflows" value=[view.find.as_deref()] autocomplete="off";
                (choice("project", "All projects", &self.graph.projects, view.project.as_deref()))
                (choice("tag", "All tags", &self.graph.tags, view.tag.as_deref()))
                @if let Some(focus) = &view.focus {
                    input type="hidden" name="focus" value=(focus);
                    @if let Some(slot) = &view.slot { input type="hidden" name="slot" value=(slot.short()); }
                    label { input.level type="number" name="up" min="0" max=(view::MOST_LEVELS) value=(view.up); " levels up" }
                    label { input.level type="number" name="down" min="0" max=(view::MOST_LEVELS) value=(view.down); " levels down" }
                }
                label { "Coloured by the last " (hours(view.hours)) }
                @if view.as_list { input type="hidden" name="as" value="list"; }
                button { "Show" }
                @if view.focus.is_some() || view.is_filtered() { a.button href=(view.whole().href()) { "All " (self.graph.total) } }
                span.spring {}
                @if self.is_drawn() {
                    span.group.scripted-only role="group" aria-label="Zoom" {
                        button type="button" data-zoom="out" title="Smaller (-)" { "−" }
                        button type="button" data-zoom="fit" title="All of it (0)" { "Fit" }
                        button type="button" data-zoom="in" title="Larger (+)" { "+" }
                    }
                    a.button href=(view.href().replacen("/ui/graph", "/ui/graph.svg", 1)) download="graph.svg" { "SVG" }
                }
                a.button href=(view.listed(!view.as_list).href()) { @if view.as_list { "As a picture" } @else { "As a list" } }
            }
        }
    }

    /// The projects, as a way into a graph that is too large to draw.
    fn projects(&self) -> Markup {
        html! {
            p.headline { (too_many(&self.graph)) " Choose a project, find some by name, or see them as a list." }
            ul.plain {
                @for project in &self.graph.projects {
                    @let view = GraphView { project: Some(project.clone()), ..self.view.whole() };
                    li { a href=(view.href()) { (project) } }
                }
            }
        }
    }
}

fn choice(name: &str, all: &str, names: &BTreeSet<String>, chosen: Option<&str>) -> Markup {
    html! {
        @if names.len() > 1 || chosen.is_some() {
            select name=(name) aria-label={ "Only of one " (name) } {
                option value="" { (all) }
                @for one in names { option value=(one) selected[chosen == Some(one)] { (one) } }
            }
        }
    }
}

fn hours(chosen: u32) -> Markup {
    let mut offered = BTreeSet::from([6, 24, 72, 168, 720]);
    offered.insert(chosen);
    html! {
        select name="hours" {
            @for hours in offered { option value=(hours) selected[hours == chosen] { (node::hours_told(hours)) } }
        }
    }
}

/// First steps, while there is no workflow.
fn nothing() -> Markup {
    html! {
        section.narrow data-nothing {
            h1 { "No workflows yet" }
            p { "Each workflow will be a node here, with arrows from what it waits for. A trigger such as" }
            pre { "trigger: celos.successTrigger(\"upstream\")" }
            p { "lets a slot start once the slot of " code { "upstream" } " with the same time has succeeded, and draws an arrow. " a href="/ui" { "The board" } " shows how to write a first workflow. " (Document::Concepts.link("How workflows depend on each other")) }
        }
    }
}
