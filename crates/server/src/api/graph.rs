//! The graph of workflows, and the slots that block a slot upstream.

use axum::Json;
use axum::response::Response;
use kelos_explain::graph::{self, Edge, EdgeKind, Focus, Graph, GraphQuery, Node, NodeKind, Obstacle, Step, Upstream};
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::WorkflowId;
use kelos_wire::{
    EdgeDto, GraphDto, NewestDto, NodeDto, ObstacleDto, ProblemDetailsDto, SlotNameDto, UpstreamDto, UpstreamStepDto,
    counts,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::dto::FromLibrary;
use super::extract::{NoParameters, Path, Query, SlotPath};

/// The part of the graph to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GraphRequest {
    /// Only workflows within `up` and `down` levels of this one.
    #[param(value_type = Option<String>)]
    focus: Option<WorkflowId>,
    /// How many levels upstream of the focus; by default 2.
    up: Option<u32>,
    /// How many levels downstream of the focus; by default 2.
    down: Option<u32>,
    /// Only what this project owns.
    project: Option<String>,
    /// Only workflows with this tag.
    tag: Option<String>,
    /// Only workflows with all these words in their name, project or tags.
    find: Option<String>,
    /// How many hours back slots are counted, 1 to 8784; by default 24.
    #[param(minimum = 1, maximum = 8784)]
    hours: Option<u32>,
}

/// The default number of levels around a focus.
const USUAL_LEVELS: u32 = 2;
const USUAL_HOURS: u32 = 24;
const MOST_HOURS: u32 = 24 * 366;

impl GraphRequest {
    fn hours(&self) -> Result<u32, Fault> {
        let hours = self.hours.unwrap_or(USUAL_HOURS);
        let refused = || Fault::bad_request("bad-query", format!("`hours` must be 1 to {MOST_HOURS}"));
        (1..=MOST_HOURS).contains(&hours).then_some(hours).ok_or_else(refused)
    }

    fn wanted(self) -> Result<GraphQuery, Fault> {
        if self.focus.is_none() && (self.up.is_some() || self.down.is_some()) {
            return Err(Fault::bad_request("bad-query", "`up` and `down` go with `focus`"));
        }
        let levels = |given: Option<u32>| given.unwrap_or(USUAL_LEVELS);
        let (up, down) = (levels(self.up), levels(self.down));
        Ok(GraphQuery {
            focus: self.focus.map(|on| Focus { on, up, down }),
            project: self.project,
            tag: self.tag,
            words: self.find.iter().flat_map(|find| find.split_whitespace()).map(str::to_owned).collect(),
            ..GraphQuery::default()
        })
    }
}

impl FromLibrary<Graph> for GraphDto {
    fn from_library(graph: Graph) -> GraphDto {
        GraphDto {
            since: graph.since.into(),
            total: graph.total,
            nodes: graph.nodes.into_iter().map(NodeDto::from_library).collect(),
            edges: graph.edges.into_iter().map(EdgeDto::from_library).collect(),
        }
    }
}

impl FromLibrary<Node> for NodeDto {
    fn from_library(node: Node) -> NodeDto {
        let newest =
            node.newest.map(|(slot, state)| NewestDto { key: (&slot.key).into(), state: state.as_str().into() });
        NodeDto {
            id: node.id.to_string(),
            kind: match node.kind {
                NodeKind::Workflow => "workflow",
                NodeKind::Missing => "missing",
            }
            .into(),
            project: node.project,
            tags: node.tags,
            paused: node.is_paused,
            disabled: node.is_disabled,
            slots: counts(node.counts),
            newest,
            hidden_up: node.hidden_up,
            hidden_down: node.hidden_down,
        }
    }
}

impl FromLibrary<Edge> for EdgeDto {
    fn from_library(edge: Edge) -> EdgeDto {
        let (kind, later_seconds) = match edge.kind {
            EdgeKind::Success { later_seconds } => ("success", Some(later_seconds)),
            EdgeKind::Periods => ("periods", None),
            EdgeKind::Schedule => ("schedule", None),
            EdgeKind::Jobs => ("jobs", None),
            EdgeKind::Ended => ("ended", None),
            EdgeKind::Runs => ("runs", None),
            EdgeKind::Paths => ("paths", None),
        };
        let groups = edge.groups.iter().map(|group| group.to_string()).collect();
        EdgeDto { from: edge.from.to_string(), to: edge.to.to_string(), kind: kind.into(), later_seconds, groups }
    }
}

/// Shows workflows and what depends on what, with the states of their slots.
#[utoipa::path(get, path = "/graph", tag = "workflows", params(GraphRequest), responses(
    (status = 200, description = "The graph, or a part of it", body = GraphDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn read(Query(asked): Query<GraphRequest>, app: App) -> Result<Json<GraphDto>, Fault> {
    find(&app, asked).await.map(|found| Json(GraphDto::from_library(found.graph)))
}

struct GraphAnswer {
    graph: Graph,
    focus: Option<WorkflowId>,
    hours: u32,
}

async fn find(app: &App, asked: GraphRequest) -> Result<GraphAnswer, Fault> {
    let (now, hours) = (app.handle().now(), asked.hours()?);
    let wanted = asked.wanted()?;
    let focus = wanted.focus.as_ref().map(|focus| focus.on.clone());
    let graph = app.read(move |reader| graph::read(reader, &wanted, now, hours)).await?;
    match &focus {
        Some(focus) if graph.nodes.is_empty() => Err(super::workflows::unknown(focus)),
        _ => Ok(GraphAnswer { graph, focus, hours }),
    }
}

/// Draws workflows and what depends on what.
#[utoipa::path(get, path = "/graph.svg", tag = "workflows", params(GraphRequest), responses(
    (status = 200, description = "The picture", body = String, content_type = "image/svg+xml"),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn draw(Query(asked): Query<GraphRequest>, app: App) -> Result<Response, Fault> {
    let found = find(&app, asked).await?;
    kelos_ui::graph_file(&found.graph, found.focus, found.hours).map_err(|said| Fault::bad_request("too-many", said))
}

impl FromLibrary<Upstream> for UpstreamDto {
    fn from_library(upstream: Upstream) -> UpstreamDto {
        UpstreamDto {
            steps: upstream.steps.into_iter().map(UpstreamStepDto::from_library).collect(),
            cut: upstream.is_cut,
        }
    }
}

impl FromLibrary<Step> for UpstreamStepDto {
    fn from_library(step: Step) -> UpstreamStepDto {
        let told = |Obstacle { kind, words, .. }| ObstacleDto { kind: kind.as_str().into(), text: words };
        UpstreamStepDto {
            slot: (&step.slot).into(),
            state: step.state.map(|state| state.as_str().into()),
            level: step.level,
            headline: step.words,
            waits_for: step.waits_for.iter().map(SlotNameDto::from).collect(),
            obstacles: step.obstacles.into_iter().map(told).collect(),
        }
    }
}

/// Goes from a slot to everything that is in its way, through the slots that it waits for.
#[utoipa::path(get, path = "/workflows/{id}/slots/{time}/upstream", tag = "slots", params(SlotPath), responses(
    (status = 200, description = "The way", body = UpstreamDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn upstream(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<UpstreamDto>, Fault> {
    let (slot, now) = (path.slot(&app).await?, app.handle().now());
    let read = app.read(move |reader| {
        let is_known = reader.workflow(&slot.workflow)?.is_some();
        Ok((graph::upstream(reader, &slot, now)?, is_known, slot.workflow))
    });
    match read.await? {
        (upstream, true, _) => Ok(Json(UpstreamDto::from_library(upstream))),
        (_, false, workflow) => Err(super::workflows::unknown(&workflow)),
    }
}
