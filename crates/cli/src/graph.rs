//! `kelos graph`: what depends on what, as a tree, for Graphviz, as a picture or as JSON.

use std::collections::{BTreeMap, BTreeSet};

use kelos_model::SlotRef;
use kelos_wire::{Code, EdgeDto, GraphDto, NodeDto, UpstreamDto};

use crate::address::{Query, slot_path};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::options::Door;
use crate::relatives::UNNAMED;
use crate::render;
use crate::text as words;

/// The format of a printed graph.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shape {
    /// Tree: under each workflow, the workflows that depend on it
    Text,
    /// Input for Graphviz
    Dot,
    /// Image
    Svg,
    /// JSON answer of the server
    Json,
}

#[derive(clap::Args)]
pub(crate) struct GraphArgs {
    /// Only the neighbourhood of this workflow
    #[arg(long, value_name = "WORKFLOW")]
    focus: Option<String>,
    /// Levels upstream of the focus [default: 2]
    #[arg(long, value_name = "N", requires = "focus")]
    up: Option<u32>,
    /// Levels downstream of the focus [default: 2]
    #[arg(long, value_name = "N", requires = "focus")]
    down: Option<u32>,
    /// Only workflows of this project
    #[arg(long)]
    project: Option<String>,
    /// Only workflows with this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only workflows with all these words in their name, project or tags
    #[arg(long, value_name = "WORDS")]
    find: Option<String>,
    /// Count slots of the last N hours [default: 24]
    #[arg(long, value_name = "N")]
    hours: Option<u32>,
    /// Show what blocks this slot upstream, instead of the graph of workflows
    #[arg(long, value_name = "WORKFLOW@TIME|JOB_ID", conflicts_with_all = ["focus", "project", "tag", "find", "hours"])]
    slot: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Shape,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &GraphArgs) -> Result<u8, Failure> {
    let client = Connection::to_read(&args.door)?;
    let shape = if args.door.form.json { Shape::Json } else { args.format };
    if let Some(slot) = &args.slot {
        return upstream(&client, slot, shape);
    }
    let query = args.query(&client)?;
    if shape == Shape::Svg {
        let answer = client.open("draw the graph", "/graph.svg", &query)?;
        words::print(&client.text(answer)?);
        return Ok(0);
    }
    let graph: Reply<GraphDto> = client.get("read the graph", "/graph", &query)?;
    match shape {
        Shape::Json => words::json(&graph),
        Shape::Dot => words::print(&dot(&graph)),
        _ => words::print(&(tree(&graph).join("\n") + "\n")),
    }
    Ok(0)
}

impl GraphArgs {
    fn query(&self, client: &Client) -> Result<Query, Failure> {
        let mut query = Query::new();
        query.add_some("focus", self.focus.as_ref().map(|name| focus(client, name)).transpose()?);
        for (name, value) in [("project", &self.project), ("tag", &self.tag), ("find", &self.find)] {
            query.add_some(name, value.as_ref());
        }
        for (name, value) in [("up", self.up), ("down", self.down), ("hours", self.hours)] {
            query.add_some(name, value);
        }
        Ok(query)
    }
}

/// The name of what is focused on: a workflow, or one that nobody defines and others wait for.
fn focus(client: &Client, name: &str) -> Result<String, Failure> {
    let doing = "read the graph";
    let is_in_graph = || {
        let mut query = Query::new();
        query.add("focus", name);
        client.get::<GraphDto>(doing, "/graph", &query).is_ok()
    };
    match client.workflow(doing, name) {
        Err(_) if is_in_graph() => Ok(name.to_owned()),
        found => found.map(|workflow| workflow.summary.id),
    }
}

/// The graph as a forest: what nothing is waited for by comes first, and each workflow's branch is told once.
fn tree(graph: &GraphDto) -> Vec<String> {
    let nodes: BTreeMap<&str, &NodeDto> = graph.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut below: BTreeMap<&str, Vec<&EdgeDto>> = BTreeMap::new();
    for edge in &graph.edges {
        below.entry(&edge.from).or_default().push(edge);
    }
    let depends: BTreeSet<&str> = graph.edges.iter().map(|edge| edge.to.as_str()).collect();
    let (roots, others): (Vec<&str>, Vec<&str>) = nodes.keys().partition(|id| !depends.contains(**id));
    let mut told = BTreeSet::new();
    let mut lines = Vec::new();
    // What is left after the first ones waits for itself in a circle.
    for root in roots.into_iter().chain(others) {
        if told.contains(root) {
            continue;
        }
        let mut stack = vec![(0, root, String::new())];
        while let Some((depth, id, how)) = stack.pop() {
            let is_new = told.insert(id);
            let state = nodes.get(id).map(|node| standing(node)).unwrap_or_default();
            let rest = if is_new { format!("  {state}{how}") } else { format!("  (above){how}") };
            lines.push(format!("{}{id}{rest}", "  ".repeat(depth)));
            let edges = below.get(id).into_iter().flatten().rev();
            let next = edges.filter(|_| is_new).map(|edge| (depth + 1, edge.to.as_str(), annotation(edge)));
            stack.extend(next);
        }
    }
    if lines.is_empty() {
        lines.push("no workflows".to_owned());
    }
    lines
}

/// The label of an edge, unless it is plain success at the same time.
fn annotation(edge: &EdgeDto) -> String {
    match (edge.kind.as_str(), edge.later_seconds) {
        ("periods", _) => "  [waits for all periods that intersect]".to_owned(),
        ("schedule", _) => "  [uses its schedule]".to_owned(),
        ("jobs", _) => match groups(edge).as_str() {
            "" => "  [waits for its jobs]".to_owned(),
            groups => format!("  [waits for its jobs: {groups}]"),
        },
        ("ended", _) => "  [waits for the ends of its runs]".to_owned(),
        ("runs", _) => "  [run by it]".to_owned(),
        ("paths", _) => "  [waits for a path that it writes]".to_owned(),
        (_, Some(later)) if later != 0 => {
            let way = if later < 0 { "earlier" } else { "later" };
            format!("  [waits for the slot {} s {way}]", later.unsigned_abs())
        }
        _ => String::new(),
    }
}

/// The groups by which jobs wait for others.
fn groups(edge: &EdgeDto) -> String {
    let groups: Vec<&str> = edge.groups.iter().map(String::as_str).filter(|group| *group != UNNAMED).collect();
    groups.join(", ")
}

/// The states of a workflow's slots, in words.
fn standing(node: &NodeDto) -> String {
    if node.kind == "missing" {
        return render::paint("not defined", "failed");
    }
    let counts = node.slots.iter();
    let mut parts: Vec<String> =
        counts.map(|(state, count)| render::paint(&format!("{count} {state}"), state.as_str())).collect();
    if parts.is_empty() {
        parts.push(match &node.newest {
            Some(newest) => {
                format!("{} {}", newest.key, render::paint(newest.state.as_str(), newest.state.as_str()))
            }
            None => "no slots".to_owned(),
        });
    }
    let off = [(node.disabled, "disabled"), (node.paused, "paused")].into_iter().find(|(is_off, _)| *is_off);
    parts.extend(off.map(|(_, off)| off.to_owned()));
    let hidden = [(node.hidden_up, "upstream"), (node.hidden_down, "downstream")];
    let hidden = hidden.iter().filter(|(count, _)| *count > 0);
    parts.extend(hidden.map(|(count, side)| format!("{count} more {side}")));
    parts.join(", ")
}

fn dot(graph: &GraphDto) -> String {
    let mut lines = vec!["digraph kelos {".to_owned(), "  rankdir=LR;".to_owned(), "  node [shape=box];".to_owned()];
    for node in &graph.nodes {
        let dashed = if node.kind == "missing" { " [style=dashed]" } else { "" };
        lines.push(format!("  {}{dashed};", quoted(&node.id)));
    }
    for edge in &graph.edges {
        let style = match (edge.kind.as_str(), edge.later_seconds) {
            ("schedule", _) => " [style=dashed]".to_owned(),
            ("jobs", _) if !groups(edge).is_empty() => format!(" [label={}]", quoted(&groups(edge))),
            (_, Some(later)) if later != 0 => format!(" [label=\"{later} s\"]"),
            _ => String::new(),
        };
        lines.push(format!("  {} -> {}{style};", quoted(&edge.from), quoted(&edge.to)));
    }
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// A name as Graphviz reads it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Workflow and key of a slot. A time has no @, but a workflow or a job id may; `WORKFLOW@~JOB_ID` says which is which.
fn named(slot: &str) -> Option<(String, String)> {
    if let Ok(slot) = slot.parse::<SlotRef>() {
        return Some((slot.workflow.to_string(), slot.key.to_string()));
    }
    slot.split_once('@').map(|(workflow, key)| (workflow.to_owned(), key.to_owned()))
}

/// The obstacles of a slot.
fn upstream(client: &Client, slot: &str, shape: Shape) -> Result<u8, Failure> {
    let expected = || Failure::usage(format!("read the slot {slot:?}: expected WORKFLOW@TIME or WORKFLOW@JOB_ID"));
    let (workflow, key) = named(slot).ok_or_else(expected)?;
    if matches!(shape, Shape::Dot | Shape::Svg) {
        return Err(Failure::usage("print what blocks a slot: expected --format text or json"));
    }
    let doing = "find what blocks the slot";
    let workflow = client.workflow(doing, &workflow)?;
    let key = client.key(doing, &workflow, &key)?;
    let path = format!("{}/upstream", slot_path(&workflow.summary.id, &key));
    let found: Reply<UpstreamDto> = client.get(doing, &path, &Query::new())?;
    match shape {
        Shape::Json => words::json(&found),
        _ => words::print(&(steps(&found).join("\n") + "\n")),
    }
    Ok(0)
}

fn steps(found: &UpstreamDto) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &found.steps {
        let indent = "  ".repeat(usize::try_from(step.level).unwrap_or_default());
        let state = step.state.as_ref().map_or("not there", Code::as_str);
        lines.push(format!("{indent}{}  {}", step.slot, render::paint(state, state)));
        lines.extend(step.obstacles.iter().map(|obstacle| format!("{indent}  <- {}", obstacle.text)));
    }
    if found.cut {
        lines.push("there is more: only these slots were examined".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> GraphDto {
        let node = |id: &str| NodeDto {
            id: id.to_owned(),
            kind: "workflow".into(),
            paused: id == "b",
            slots: [("failed".into(), 1)].into(),
            ..NodeDto::default()
        };
        let edge = |from: &str, to: &str, later: i64| EdgeDto {
            from: from.to_owned(),
            to: to.to_owned(),
            kind: "success".into(),
            later_seconds: Some(later),
            groups: Vec::new(),
        };
        let gone = NodeDto { id: "gone".to_owned(), kind: "missing".into(), ..NodeDto::default() };
        let schedule = EdgeDto { kind: "schedule".into(), later_seconds: None, ..edge("x\"y", "x\"y", 0) };
        let edges =
            [edge("a", "b", 0), edge("a", "c", 0), edge("b", "c", -3600), edge("c", "c", 0), edge("gone", "a", 0)];
        GraphDto {
            nodes: vec![node("a"), node("b"), node("c"), node("x\"y"), gone],
            edges: edges.into_iter().chain([schedule]).collect(),
            ..GraphDto::default()
        }
    }

    #[test]
    fn a_tree_tells_each_branch_once() {
        let expected = [
            "gone  not defined",
            "  a  1 failed",
            "    b  1 failed, paused",
            "      c  1 failed  [waits for the slot 3600 s earlier]",
            "        c  (above)",
            "    c  (above)",
            "x\"y  1 failed",
            "  x\"y  (above)  [uses its schedule]",
        ];
        assert_eq!(tree(&graph()), expected);
        assert_eq!(tree(&GraphDto::default()), ["no workflows"]);
    }

    #[test]
    fn graphviz_reads_any_name() {
        let dot = dot(&graph());
        assert!(dot.contains("  \"b\" -> \"c\" [label=\"-3600 s\"];\n"), "{dot}");
        assert!(dot.contains("  \"x\\\"y\" -> \"x\\\"y\" [style=dashed];\n"), "{dot}");
    }
}
