//! The appearance and the texts of a node, in the picture, in the list and in updates.

use std::collections::BTreeMap;

use kelos_explain::graph::{Node, NodeKind, Upstream};
use kelos_model::{SlotState, WorkflowId};

use crate::state::{BY_WEIGHT, look};
use crate::words;

/// The texts and colours of a node.
pub(super) struct Face {
    /// The class of its colour.
    pub(super) class: &'static str,
    pub(super) letter: char,
    /// A few characters below its name.
    pub(super) note: String,
    /// All of it in words.
    pub(super) told: String,
}

/// Workflows on the path to a slot's obstacles: the worst state of their slots on it, and whether anything
/// but another slot blocks them.
pub(super) type OnPath = BTreeMap<WorkflowId, (Option<SlotState>, bool)>;

/// The nodes on the path to obstacles.
pub(super) fn on_path(upstream: &Upstream) -> OnPath {
    let mut path = OnPath::new();
    for step in &upstream.steps {
        let entry = path.entry(step.slot.workflow.clone()).or_insert((step.state, false));
        entry.0 = entry.0.into_iter().chain(step.state).max_by_key(|state| weight(*state));
        entry.1 |= !step.obstacles.is_empty();
    }
    path
}

fn weight(state: SlotState) -> usize {
    BY_WEIGHT.iter().position(|one| *one == state).unwrap_or(0)
}

/// The state that colours a node: the worst of its slots in the window and of its unrepaired failures, or that of its newest slot if it has
/// neither.
pub(super) fn shown_state(node: &Node) -> Option<SlotState> {
    let worst = node.counts.keys().copied().chain(node.failure).max_by_key(|state| weight(*state));
    worst.or(node.newest.as_ref().map(|(_, state)| *state))
}

/// The texts and colours of a node; `on_path` if it is on a path.
pub(super) fn face(node: &Node, on_path: Option<&(Option<SlotState>, bool)>, hours: u32) -> Face {
    let state = match on_path {
        Some((state, _)) => *state,
        None => shown_state(node),
    };
    let (class, letter) = match (node.kind, state) {
        (NodeKind::Missing, _) => ("missing", '?'),
        (_, Some(state)) => (look(state).class, look(state).letter),
        (_, None) => ("none", '–'),
    };
    Face { class, letter, note: note(node), told: told(node, hours) }
}

fn note(node: &Node) -> String {
    let mut parts = Vec::new();
    if node.kind == NodeKind::Missing {
        parts.push("not defined".to_owned());
    } else if let Some(off) = off(node) {
        parts.push(off.to_owned());
    }
    let counts = BY_WEIGHT.iter().rev().filter_map(|state| Some((state, node.counts.get(state)?)));
    let counts: Vec<String> = counts.map(|(state, count)| format!("{count} {}", look(*state).letter)).collect();
    match (&node.newest, counts.is_empty()) {
        (_, false) => parts.push(counts.join(" · ")),
        (Some((slot, _)), true) => parts.push(slot.key.short()),
        (None, true) if node.kind == NodeKind::Workflow => parts.push(without_slots(node).to_owned()),
        (None, true) => {}
    }
    parts.join(" · ")
}

/// The label of a node that has no slots.
pub(super) fn without_slots(node: &Node) -> &'static str {
    if node.is_program { "a program" } else { "no slots" }
}

/// The label of a node that is switched off.
pub(super) fn off(node: &Node) -> Option<&'static str> {
    match (node.is_disabled, node.is_paused) {
        (true, _) => Some("disabled"),
        (false, true) => Some("paused"),
        (false, false) => None,
    }
}

fn told(node: &Node, hours: u32) -> String {
    if node.kind == NodeKind::Missing {
        return format!("{}: not defined, but others depend on it", node.id);
    }
    let counts = BY_WEIGHT.iter().rev().filter_map(|state| Some((state, node.counts.get(state)?)));
    let counts: Vec<String> = counts.map(|(state, count)| format!("{count} {}", state.as_str())).collect();
    let off = off(node).map(|off| format!("{off}; ")).unwrap_or_default();
    let counts = match counts.is_empty() {
        true if node.is_program => "a program, which has slots only where people start it".to_owned(),
        true => format!("no slots in the last {}", hours_told(hours)),
        false => format!("{} in the last {}", counts.join(", "), hours_told(hours)),
    };
    let newest =
        node.newest.as_ref().map(|(slot, state)| format!("; the newest, {}, is {}", slot.key.short(), state.as_str()));
    let failure = node.failure.filter(|state| !node.counts.contains_key(state));
    let failure = failure.map(|state| format!("; one from before is {}, and was not repaired", state.as_str()));
    format!("{}: {off}{counts}{}{}", node.id, failure.unwrap_or_default(), newest.unwrap_or_default())
}

/// `24 hours`, `7 d`.
pub(super) fn hours_told(hours: u32) -> String {
    if hours.is_multiple_of(24) && hours > 24 {
        words::span(i64::from(hours) * 3600)
    } else {
        words::count(hours.into(), "hour")
    }
}
