//! The visible part of the graph, from the address.

use std::collections::BTreeSet;

use kelos_explain::graph::{Focus, GraphQuery, Upstream};
use kelos_front::fault::{Fault, plain};
use kelos_model::{SlotRef, WorkflowId};
use serde::Deserialize;

use crate::asked;
use crate::page::segment;

/// The default number of levels around a focus.
pub(super) const USUAL_LEVELS: u32 = 2;
/// The most levels, which is all of them but in odd graphs.
pub(super) const MOST_LEVELS: u32 = 99;
/// The default number of hours whose slots colour the nodes.
pub(super) const USUAL_HOURS: u32 = 24;
const MOST_HOURS: u32 = 24 * 366;

/// The query of the page.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewQuery {
    focus: Option<String>,
    pub(super) up: Option<String>,
    pub(super) down: Option<String>,
    project: Option<String>,
    tag: Option<String>,
    find: Option<String>,
    hours: Option<String>,
    pub(super) slot: Option<String>,
    #[serde(rename = "as")]
    form: Option<String>,
}

/// The part of the graph that is shown, and how.
#[derive(Debug, Clone)]
pub(super) struct GraphView {
    pub(super) focus: Option<WorkflowId>,
    pub(super) up: u32,
    pub(super) down: u32,
    pub(super) project: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) find: Option<String>,
    pub(super) hours: u32,
    /// The slot whose obstacles are sought.
    pub(super) slot: Option<SlotRef>,
    /// As a list instead of a picture.
    pub(super) as_list: bool,
}

impl GraphView {
    /// Reads an address; the slot that it names was found by then.
    pub(super) fn read(asked: ViewQuery, slot: Option<SlotRef>) -> Result<GraphView, Fault> {
        let focus = asked::filled(asked.focus).map(|id| asked::workflow(&id)).transpose()?;
        let as_list = match asked::filled(asked.form).as_deref() {
            None | Some("picture") => false,
            Some("list") => true,
            Some(other) => {
                return Err(plain::bad_request(format!("\"as\" is \"{other}\", expected list or picture.")));
            }
        };
        Ok(GraphView {
            focus: focus.or_else(|| slot.as_ref().map(|slot| slot.workflow.clone())),
            up: number("up", asked.up, 0, MOST_LEVELS, USUAL_LEVELS)?,
            down: number("down", asked.down, 0, MOST_LEVELS, USUAL_LEVELS)?,
            project: asked::filled(asked.project),
            tag: asked::filled(asked.tag),
            find: asked::filled(asked.find),
            hours: number("hours", asked.hours, 1, MOST_HOURS, USUAL_HOURS)?,
            slot,
            as_list,
        })
    }

    /// The view of a workflow's surroundings, or of everything.
    pub(super) fn of(focus: Option<WorkflowId>, hours: u32) -> GraphView {
        GraphView {
            focus,
            up: USUAL_LEVELS,
            down: USUAL_LEVELS,
            project: None,
            tag: None,
            find: None,
            hours,
            slot: None,
            as_list: false,
        }
    }

    /// The query for that part of the graph; nodes on the path to obstacles are always shown.
    pub(super) fn wanted(&self, upstream: Option<&Upstream>) -> GraphQuery {
        let steps = upstream.iter().flat_map(|upstream| &upstream.steps);
        let also: BTreeSet<WorkflowId> = steps.map(|step| step.slot.workflow.clone()).collect();
        GraphQuery {
            focus: self.focus.clone().map(|on| Focus { on, up: self.up, down: self.down }),
            project: self.project.clone(),
            tag: self.tag.clone(),
            words: self.find.iter().flat_map(|find| find.split_whitespace()).map(str::to_owned).collect(),
            also,
        }
    }

    /// Whether anything narrows the graph but a focus.
    pub(super) fn is_filtered(&self) -> bool {
        self.project.is_some() || self.tag.is_some() || self.find.is_some()
    }

    /// The address of this view.
    pub(super) fn href(&self) -> String {
        let (up, down, hours) = (self.up.to_string(), self.down.to_string(), self.hours.to_string());
        let slot = self.slot.as_ref().map(SlotRef::short);
        let unless = |text: String, usual: u32| (text != usual.to_string()).then_some(text);
        let fields = [
            ("focus", self.focus.as_ref().map(WorkflowId::to_string)),
            ("up", unless(up, USUAL_LEVELS)),
            ("down", unless(down, USUAL_LEVELS)),
            ("project", self.project.clone()),
            ("tag", self.tag.clone()),
            ("find", self.find.clone()),
            ("hours", unless(hours, USUAL_HOURS)),
            ("slot", slot),
            ("as", self.as_list.then(|| "list".to_owned())),
        ];
        let said = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", segment(&value?))));
        let query = said.collect::<Vec<_>>().join("&");
        if query.is_empty() { "/ui/graph".to_owned() } else { format!("/ui/graph?{query}") }
    }

    /// The same around a workflow; filters are dropped, because they would hide its surroundings.
    pub(super) fn around(&self, id: &WorkflowId) -> GraphView {
        GraphView { focus: Some(id.clone()), slot: None, project: None, tag: None, find: None, ..self.clone() }
    }

    /// The same with the path to a slot's obstacles.
    pub(super) fn of_slot(&self, slot: &SlotRef) -> GraphView {
        GraphView { slot: Some(slot.clone()), ..self.around(&slot.workflow) }
    }

    /// All of the graph.
    pub(super) fn whole(&self) -> GraphView {
        GraphView { focus: None, slot: None, project: None, tag: None, find: None, ..self.clone() }
    }

    pub(super) fn listed(&self, as_list: bool) -> GraphView {
        GraphView { as_list, ..self.clone() }
    }
}

/// The address of a slot's obstacles.
pub(crate) fn obstacles_href(slot: &SlotRef) -> String {
    format!("/ui/graph?slot={}", segment(&slot.short()))
}

/// The address of the graph around a workflow.
pub(crate) fn graph_href(id: &WorkflowId) -> String {
    format!("/ui/graph?focus={}", segment(id.as_str()))
}

fn number(name: &str, text: Option<String>, least: u32, most: u32, usual: u32) -> Result<u32, Fault> {
    let Some(text) = asked::filled(text) else { return Ok(usual) };
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        plain::bad_request(format!("\"{name}\" is \"{text}\", expected a number from {least} to {most}."))
    })
}
