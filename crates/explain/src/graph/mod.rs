//! The graph of workflows: whose slots depend on whose, which schedules are shared, which programs are run, and the
//! state of each workflow.
//!
//! It is computed from the definitions and the slots in the store. Cycles are allowed.

mod cut;
pub mod layout;
mod obstacles;
mod pauses;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kelos_model::jobs::JobKeys;
use kelos_model::time::schedule::Schedule;
use kelos_model::workflow::{Keys, WorkflowRow};
use kelos_model::{SlotRef, SlotState, Subject, WorkflowId};
use kelos_store::{Columns, PageRequest, Queries, SlotFilter, StoreError};

use crate::paths;

pub use cut::{Focus, GraphQuery};
pub(crate) use obstacles::{Look, View, Wait, waits_for};
pub use obstacles::{MOST_STEPS, Obstacle, ObstacleKind, Step, Upstream, upstream};

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A workflow that is defined now.
    Workflow,
    /// A name that definitions mention and none defines.
    Missing,
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub id: WorkflowId,
    /// Its kind.
    pub kind: NodeKind,
    /// The project that owns it, where there is one.
    pub project: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whether a person paused it.
    pub is_paused: bool,
    /// Whether it is an event schedule that is disabled.
    pub is_disabled: bool,
    /// Whether it is a program: others run it, and it has slots only where people start it.
    pub is_program: bool,
    /// The number of its slots in the window, by state.
    pub counts: BTreeMap<SlotState, u64>,
    /// Its newest slot, of whatever time.
    pub newest: Option<(SlotRef, SlotState)>,
    /// Whether slots of it failed or expired, and were not repaired since, of whatever time: the worse of the two.
    pub failure: Option<SlotState>,
    /// The number of hidden nodes that it depends on.
    pub hidden_up: usize,
    /// The number of hidden nodes that depend on it.
    pub hidden_down: usize,
}

/// The meaning of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// A slot depends on the success of a slot of the other workflow.
    Success {
        /// The difference of that slot's time to its own, in seconds.
        later_seconds: i64,
    },
    /// A slot depends on the success of all slots of the other workflow whose periods intersect its own.
    Periods,
    /// Slots are at the times of the other workflow's.
    Schedule,
    /// Jobs of the other workflow have to succeed.
    Jobs,
    /// A trigger waits for the end of a run of the other.
    Ended,
    /// The other is an event schedule that runs this.
    Runs,
    /// A trigger waits for a path that the other writes.
    Paths,
}

/// An edge: `to` depends on `from`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The upstream node.
    pub from: WorkflowId,
    /// The node that depends on it.
    pub to: WorkflowId,
    /// The kind of dependency.
    pub kind: EdgeKind,
    /// The groups by which jobs wait for the other's, in their order; none where a trigger does.
    pub groups: Vec<Arc<str>>,
}

/// A graph, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The beginning of the window of counted slots; it ends at the present.
    pub since: Timestamp,
    /// Ascending by name.
    pub nodes: Vec<Node>,
    /// Ascending; both ends of each are among the nodes.
    pub edges: Vec<Edge>,
    /// The number of all nodes, shown or not.
    pub total: usize,
    /// All projects, ascending, whichever part is shown.
    pub projects: BTreeSet<String>,
    /// All tags, ascending.
    pub tags: BTreeSet<String>,
}

/// Reads the part of the graph that is wanted, with the states of slots of so many hours up to now.
///
/// # Errors
/// When the store can't be read.
pub fn read(reader: &dyn Queries, wanted: &GraphQuery, now: Timestamp, hours: u32) -> Result<Graph, StoreError> {
    let rows = reader.workflows(None)?;
    let edges = edges(&rows);
    let all = nodes(&rows, &edges);
    let shown = wanted.shown(&all, &edges);
    let since = now.checked_sub(SignedDuration::from_hours(hours.into())).unwrap_or(Timestamp::MIN);
    let mut graph = Graph {
        since,
        total: all.len(),
        projects: all.values().filter_map(|node| node.project.clone()).collect(),
        tags: all.values().flat_map(|node| node.tags.clone()).collect(),
        nodes: all.into_values().filter(|node| shown.contains(&node.id)).collect(),
        edges,
    };
    graph.count_hidden(&shown);
    graph.edges.retain(|edge| shown.contains(&edge.from) && shown.contains(&edge.to));
    fill(reader, &mut graph.nodes, since, now)?;
    Ok(graph)
}

/// The states of these workflows' slots, for those of them that are defined.
///
/// # Errors
/// When the store can't be read.
pub fn states(
    reader: &dyn Queries,
    of: &BTreeSet<WorkflowId>,
    now: Timestamp,
    hours: u32,
) -> Result<Vec<Node>, StoreError> {
    let rows: Vec<WorkflowRow> =
        of.iter().map(|id| reader.workflow(id)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let mut nodes: Vec<Node> = nodes(&rows, &[]).into_values().collect();
    let since = now.checked_sub(SignedDuration::from_hours(hours.into())).unwrap_or(Timestamp::MIN);
    fill(reader, &mut nodes, since, now)?;
    Ok(nodes)
}

impl Graph {
    fn count_hidden(&mut self, shown: &BTreeSet<WorkflowId>) {
        let mut hidden: BTreeMap<&WorkflowId, (BTreeSet<&WorkflowId>, BTreeSet<&WorkflowId>)> = BTreeMap::new();
        for edge in &self.edges {
            if !shown.contains(&edge.from) {
                hidden.entry(&edge.to).or_default().0.insert(&edge.from);
            }
            if !shown.contains(&edge.to) {
                hidden.entry(&edge.from).or_default().1.insert(&edge.to);
            }
        }
        for node in &mut self.nodes {
            if let Some((up, down)) = hidden.get(&node.id) {
                (node.hidden_up, node.hidden_down) = (up.len(), down.len());
            }
        }
    }
}

/// The edges between definitions, sorted and without duplicates.
fn edges(rows: &[WorkflowRow]) -> Vec<Edge> {
    let mut edges = BTreeSet::new();
    for row in rows.iter().filter(|row| row.present) {
        let edge = |from: &WorkflowId, kind| Edge { from: from.clone(), to: row.id.clone(), kind, groups: Vec::new() };
        let looks = row.definition.trigger.looks_at();
        edges.extend(looks.into_iter().map(|(on, later_seconds)| edge(on, EdgeKind::Success { later_seconds })));
        let covered = row.definition.trigger.covered().into_iter();
        edges.extend(covered.map(|covered| edge(covered.workflow, EdgeKind::Periods)));
        match &row.definition.keys {
            Keys::Schedule(Schedule::Dependent(on)) => drop(edges.insert(edge(on, EdgeKind::Schedule))),
            Keys::Schedule(_) | Keys::Requests(_) => {}
            Keys::Events(events) => {
                let (from, to) = (row.id.clone(), events.program.clone());
                edges.insert(Edge { from, to, kind: EdgeKind::Runs, groups: Vec::new() });
            }
            Keys::Jobs(jobs) => edges
                .extend(by_groups(jobs).into_iter().map(|(on, groups)| Edge { groups, ..edge(on, EdgeKind::Jobs) })),
        }
        let subjects = row.definition.trigger.subjects();
        edges.extend(subjects.iter().filter_map(|subject| match subject {
            Subject::Ended(program, _) => Some(edge(program, EdgeKind::Ended)),
            _ => None,
        }));
        let jobs = row.definition.trigger.upstream_jobs();
        let is_told =
            |on: &WorkflowId| row.definition.keys.jobs().is_some_and(|jobs| jobs.parents().any(|one| one == on));
        edges.extend(jobs.into_iter().filter(|on| !is_told(on)).map(|on| edge(on, EdgeKind::Jobs)));
    }
    let paths = paths::graph(rows);
    edges.extend(paths.edges().into_iter().map(|(from, to)| Edge {
        from: from.clone(),
        to: to.clone(),
        kind: EdgeKind::Paths,
        groups: Vec::new(),
    }));
    edges.into_iter().collect()
}

/// The workflows whose jobs some jobs wait for, each with the groups that say so.
fn by_groups(jobs: &JobKeys) -> BTreeMap<&WorkflowId, Vec<Arc<str>>> {
    let mut found: BTreeMap<&WorkflowId, Vec<Arc<str>>> = BTreeMap::new();
    for group in &jobs.depends_on {
        for on in group.members.iter().flat_map(|member| &member.workflows) {
            let groups = found.entry(on).or_default();
            if groups.last().is_none_or(|last| **last != *group.name) {
                groups.push(group.name.as_str().into());
            }
        }
    }
    found
}

/// All that is defined, and all that is mentioned.
fn nodes(rows: &[WorkflowRow], edges: &[Edge]) -> BTreeMap<WorkflowId, Node> {
    let mut nodes: BTreeMap<WorkflowId, Node> =
        rows.iter().filter(|row| row.present).map(|row| (row.id.clone(), node(row))).collect();
    for edge in edges {
        for end in [&edge.from, &edge.to] {
            nodes.entry(end.clone()).or_insert_with(|| bare(end, NodeKind::Missing));
        }
    }
    nodes
}

fn bare(id: &WorkflowId, kind: NodeKind) -> Node {
    Node {
        id: id.clone(),
        kind,
        project: None,
        tags: Vec::new(),
        is_paused: false,
        is_disabled: false,
        is_program: false,
        counts: BTreeMap::new(),
        newest: None,
        failure: None,
        hidden_up: 0,
        hidden_down: 0,
    }
}

fn node(row: &WorkflowRow) -> Node {
    Node {
        project: Some(row.definition.project.clone()),
        tags: row.definition.about.tags.clone(),
        is_paused: row.paused,
        is_disabled: !row.enabled,
        is_program: matches!(row.definition.keys, Keys::Requests(_)),
        ..bare(&row.id, NodeKind::Workflow)
    }
}

/// Nodes beyond which all workflows are counted in one go.
const ONE_BY_ONE: usize = 25;
/// Failed and expired slots, of each the newest, that colour their nodes.
const MOST_FAILED: usize = 1_000;

/// Reads how the slots of nodes do.
fn fill(reader: &dyn Queries, nodes: &mut [Node], since: Timestamp, now: Timestamp) -> Result<(), StoreError> {
    let width = now.as_millisecond().saturating_sub(since.as_millisecond()).saturating_add(1);
    let columns = Columns { start: since, width, count: 1 };
    let mut all = if nodes.len() > ONE_BY_ONE { Some(reader.slot_tallies(&columns, None)?) } else { None };
    let beginning = Columns { start: Timestamp::UNIX_EPOCH, width: 1, count: 1 };
    let mut all_jobs = if nodes.len() > ONE_BY_ONE { Some(reader.slot_tallies(&beginning, None)?) } else { None };
    let failing = failing(reader)?;
    for node in nodes.iter_mut().filter(|node| node.kind == NodeKind::Workflow) {
        node.failure = failing.get(&node.id).copied();
    }
    for node in nodes {
        let tallies = match &mut all {
            Some(all) => all.remove(&node.id),
            None => reader.slot_tallies(&columns, Some(&node.id))?.remove(&node.id),
        };
        // Jobs have no time: all of them count.
        let jobs = match &mut all_jobs {
            Some(all) => all.remove(&node.id),
            None => reader.slot_tallies(&beginning, Some(&node.id))?.remove(&node.id),
        };
        let tallies = tallies.into_iter().chain(jobs).flatten();
        for tally in tallies {
            *node.counts.entry(tally.state).or_default() += u64::from(tally.count);
        }
        let filter = SlotFilter { workflow: Some(node.id.clone()), ..SlotFilter::default() };
        node.newest = reader.slot_states(&filter, PageRequest::newest(1))?.rows.pop();
    }
    Ok(())
}

/// The workflows with slots that failed or expired, as far as the newest of them tell.
fn failing(reader: &dyn Queries) -> Result<BTreeMap<WorkflowId, SlotState>, StoreError> {
    let mut failing = BTreeMap::new();
    for state in [SlotState::Expired, SlotState::Failed] {
        let filter = SlotFilter { states: vec![state], ..SlotFilter::default() };
        let page = reader.slot_states(&filter, PageRequest::newest(MOST_FAILED))?;
        failing.extend(page.rows.into_iter().map(|(slot, _)| (slot.workflow, state)));
    }
    Ok(failing)
}

#[cfg(test)]
mod tests;
