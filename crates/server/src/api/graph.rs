//! The graph of workflows, and what is in a slot's way upstream.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use kelos_explain::graph::{self, Edge, EdgeKind, Focus, Graph, Node, NodeKind, Obstacle, Step, Upstream, Wanted};
use kelos_model::{SlotState, WorkflowId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::dto::{Counts, Instant, SlotNameDto, counts, job, time};
use super::extract::{NoParameters, Path, Query, SlotPath};
use crate::app::App;
use crate::problem::Problem;
use crate::ui;

/// Which part of the graph.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Asked {
    /// Only what is so close to this workflow as `up` and `down` say.
    #[param(value_type = Option<String>)]
    focus: Option<WorkflowId>,
    /// Levels of what the focus depends on; 2 where not given.
    up: Option<u32>,
    /// Levels of what depends on the focus; 2 where not given.
    down: Option<u32>,
    /// Only what this project owns.
    project: Option<String>,
    /// Only what has this tag.
    tag: Option<String>,
    /// Only what has all these words in its name, project or tags.
    find: Option<String>,
    /// How many hours back slots are counted, 1 to 8784; 24 where not given.
    #[param(minimum = 1, maximum = 8784)]
    hours: Option<u32>,
}

/// Levels around a focus where nothing is said.
const USUAL_LEVELS: u32 = 2;
const USUAL_HOURS: u32 = 24;
const MOST_HOURS: u32 = 24 * 366;

impl Asked {
    fn hours(&self) -> Result<u32, Problem> {
        let hours = self.hours.unwrap_or(USUAL_HOURS);
        let refused = || Problem::bad_request("bad-query", format!("`hours` must be 1 to {MOST_HOURS}"));
        (1..=MOST_HOURS).contains(&hours).then_some(hours).ok_or_else(refused)
    }

    fn wanted(self) -> Result<Wanted, Problem> {
        if self.focus.is_none() && (self.up.is_some() || self.down.is_some()) {
            return Err(Problem::bad_request("bad-query", "`up` and `down` go with `focus`"));
        }
        let levels = |given: Option<u32>| given.unwrap_or(USUAL_LEVELS);
        let (up, down) = (levels(self.up), levels(self.down));
        Ok(Wanted {
            focus: self.focus.map(|on| Focus { on, up, down }),
            project: self.project,
            tag: self.tag,
            words: self.find.iter().flat_map(|find| find.split_whitespace()).map(str::to_owned).collect(),
            ..Wanted::default()
        })
    }
}

/// Workflows, and what depends on what.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GraphDto {
    /// From when on slots are counted, up to the present.
    since: Instant,
    /// How many nodes there are, in this part and outside of it.
    total: usize,
    /// Ascending by name.
    nodes: Vec<NodeDto>,
    /// Ascending; both ends of each are among the nodes.
    edges: Vec<EdgeDto>,
}

/// A workflow in the graph.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NodeDto {
    /// Its name.
    id: String,
    /// `workflow`, or `missing` for a name that definitions mention and none defines.
    kind: &'static str,
    /// The project that owns it.
    project: Option<String>,
    /// Its tags.
    tags: Vec<String>,
    /// Whether a person paused it.
    paused: bool,
    /// Whether it is an event schedule that is disabled.
    disabled: bool,
    /// How many of its slots since then are in each state; states without slots are left out.
    slots: Counts,
    /// Its newest slot, of whatever time.
    newest: Option<NewestDto>,
    /// How many nodes that it depends on are not in this part.
    hidden_up: usize,
    /// How many nodes that depend on it are not in this part.
    hidden_down: usize,
}

/// The newest slot of a workflow.
#[derive(Serialize, ToSchema)]
struct NewestDto {
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Its state.
    state: &'static str,
}

/// A dependency.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EdgeDto {
    /// What is depended on.
    from: String,
    /// What depends on it.
    to: String,
    /// `success`: slots wait for the success of the other's; `schedule`: slots are at the times of the other's; `jobs`: slots
    /// wait for jobs of the other; `ended`: a trigger waits for the end of a run of the other; `runs`: the other is an event
    /// schedule that runs this.
    kind: &'static str,
    /// For `success`: how many seconds later than its own the time of the slot is that is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    later_seconds: Option<i64>,
    /// For `jobs`: the groups by which jobs wait; none where a trigger does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
}

impl From<Graph> for GraphDto {
    fn from(graph: Graph) -> GraphDto {
        GraphDto {
            since: graph.since.into(),
            total: graph.total,
            nodes: graph.nodes.into_iter().map(NodeDto::from).collect(),
            edges: graph.edges.into_iter().map(EdgeDto::from).collect(),
        }
    }
}

impl From<Node> for NodeDto {
    fn from(node: Node) -> NodeDto {
        let newest = node.newest.map(|(slot, state)| NewestDto {
            time: time(&slot.key),
            job: job(&slot.key),
            state: state.as_str(),
        });
        NodeDto {
            id: node.id.to_string(),
            kind: match node.kind {
                NodeKind::Workflow => "workflow",
                NodeKind::Missing => "missing",
            },
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

impl From<Edge> for EdgeDto {
    fn from(edge: Edge) -> EdgeDto {
        let (kind, later_seconds) = match edge.kind {
            EdgeKind::Success { later_seconds } => ("success", Some(later_seconds)),
            EdgeKind::Schedule => ("schedule", None),
            EdgeKind::Jobs => ("jobs", None),
            EdgeKind::Ended => ("ended", None),
            EdgeKind::Runs => ("runs", None),
        };
        let groups = edge.groups.iter().map(|group| group.to_string()).collect();
        EdgeDto { from: edge.from.to_string(), to: edge.to.to_string(), kind, later_seconds, groups }
    }
}

/// Shows workflows and what depends on what, with the states of their slots.
#[utoipa::path(get, path = "/graph", tag = "workflows", params(Asked), responses(
    (status = 200, description = "The graph, or a part of it", body = GraphDto),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn read(Query(asked): Query<Asked>, State(app): State<App>) -> Result<Json<GraphDto>, Problem> {
    find(&app, asked).await.map(|found| Json(found.graph.into()))
}

struct Found {
    graph: Graph,
    focus: Option<WorkflowId>,
    hours: u32,
}

async fn find(app: &App, asked: Asked) -> Result<Found, Problem> {
    let (now, hours) = (app.handle().now(), asked.hours()?);
    let wanted = asked.wanted()?;
    let focus = wanted.focus.as_ref().map(|focus| focus.on.clone());
    let graph = app.read(move |reader| graph::read(reader, &wanted, now, hours)).await?;
    match &focus {
        Some(focus) if graph.nodes.is_empty() => Err(super::workflows::unknown(focus)),
        _ => Ok(Found { graph, focus, hours }),
    }
}

/// Draws workflows and what depends on what.
#[utoipa::path(get, path = "/graph.svg", tag = "workflows", params(Asked), responses(
    (status = 200, description = "The picture", body = String, content_type = "image/svg+xml"),
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn draw(Query(asked): Query<Asked>, State(app): State<App>) -> Result<Response, Problem> {
    let found = find(&app, asked).await?;
    ui::graph_file(&found.graph, found.focus, found.hours).map_err(|said| Problem::bad_request("too-many", said))
}

/// What is in a slot's way, however far upstream.
#[derive(Serialize, ToSchema)]
pub(super) struct UpstreamDto {
    /// The slot itself, then what it waits for, level by level; each slot once.
    steps: Vec<StepDto>,
    /// Whether there is more than was looked at.
    cut: bool,
}

/// A slot on the way.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UpstreamStepDto)]
struct StepDto {
    /// Whose slot.
    workflow: String,
    /// Its scheduled time; not there for a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Instant>,
    /// Its job id; only there for a job, the slot of a workflow that is keyed by job ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Its state; none where it does not exist.
    state: Option<&'static str>,
    /// How far up it is; 0 is the slot that was asked about.
    level: u32,
    /// Where it stands, in one sentence.
    headline: String,
    /// The slots that it waits for.
    waits_for: Vec<SlotNameDto>,
    /// What is in its way beside those: where there is any, the way ends.
    obstacles: Vec<ObstacleDto>,
}

/// Something that is in a slot's way and no other slot.
#[derive(Serialize, ToSchema)]
struct ObstacleDto {
    /// `failed`, `killed`, `expired`, `skipped`, `missing`, `paused`, `undefined`, `backoff`, `under-way`, `queued`,
    /// `outside`, `clock` or `trigger`.
    kind: &'static str,
    /// In words.
    text: String,
}

impl From<Upstream> for UpstreamDto {
    fn from(upstream: Upstream) -> UpstreamDto {
        UpstreamDto { steps: upstream.steps.into_iter().map(StepDto::from).collect(), cut: upstream.is_cut }
    }
}

impl From<Step> for StepDto {
    fn from(step: Step) -> StepDto {
        let told = |Obstacle { kind, words }| ObstacleDto { kind: kind.as_str(), text: words };
        StepDto {
            workflow: step.slot.workflow.to_string(),
            time: time(&step.slot.key),
            job: job(&step.slot.key),
            state: step.state.map(SlotState::as_str),
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
    (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn upstream(
    Path(path): Path<SlotPath>,
    _: Query<NoParameters>,
    State(app): State<App>,
) -> Result<Json<UpstreamDto>, Problem> {
    let (slot, now) = (path.slot(&app).await?, app.handle().now());
    let read = app.read(move |reader| {
        let is_known = reader.workflow(&slot.workflow)?.is_some();
        Ok((graph::upstream(reader, &slot, now)?, is_known, slot.workflow))
    });
    match read.await? {
        (upstream, true, _) => Ok(Json(upstream.into())),
        (_, false, workflow) => Err(super::workflows::unknown(&workflow)),
    }
}
