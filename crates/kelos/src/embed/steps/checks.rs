//! The definition that a part makes, and its mistakes.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use kelos_model::flow::{Flow, FlowFlaw, FlowGraph, ItemList, MOST_ITEMS, SignalWait, Step, StepName};
use kelos_model::{Job, RetryPolicy};
use serde_json::{Map, Value};

use super::Part;
use super::graph::StepNode;
use super::step::{StepDraft, StepWork};
use crate::embed::function::FUNCTION;
use crate::embed::mistakes::Mistake;
use crate::embed::platform::{pools, within};
use crate::embed::retry::Retry;

impl Part {
    /// The definition that it makes as a flow, or all its mistakes.
    pub(in crate::embed) fn flow(&self, id: &str, place: &Location<'_>) -> Result<Flow, Vec<Mistake>> {
        let nodes = self.graph().nodes();
        let mut mistakes = doubled(id, nodes);
        mistakes.extend(flaws(id, place, nodes));
        let mut steps = Vec::with_capacity(nodes.len());
        for node in nodes {
            let draft = StepCheck { flow: id, step: &node.step };
            match StepName::new(&node.step.id) {
                Ok(name) => steps.push(draft.definition(name, nodes, node, &mut mistakes)),
                Err(error) => mistakes.push(draft.mistake(format!("its id is refused: {error}"))),
            }
        }
        if mistakes.is_empty() { Ok(Flow { steps }) } else { Err(mistakes) }
    }
}

/// A step of a flow that is checked.
struct StepCheck<'d> {
    flow: &'d str,
    step: &'d StepDraft,
}

impl StepCheck<'_> {
    fn mistake(&self, message: impl Into<String>) -> Mistake {
        let (flow, step, message) = (self.flow, &self.step.id, message.into());
        Mistake::new(flow, self.step.place, format!("flow \"{flow}\", step \"{step}\": {message}"))
    }

    /// The definition of the step.
    fn definition(&self, name: StepName, nodes: &[StepNode], node: &StepNode, mistakes: &mut Vec<Mistake>) -> Step {
        let draft = self.step;
        let words = |words: String| self.mistake(words);
        let (pools, within) =
            (pools(&draft.platforms, "each run", &words, mistakes), within(&draft.within, &words, mistakes));
        mistakes.extend(self.limits(node).into_iter().map(|(message, hint)| words(message.to_owned()).hint(hint)));
        let step = match &draft.work {
            StepWork::Function(_) => {
                mistakes.extend(draft.placement.mistakes(words));
                let function = Step::new(name, draft.placement.job());
                let signals = draft.signals.iter().map(|signal| signal.name.clone()).collect();
                Step { retry: draft.placement.policy(draft.retry), pools, within, signals, ..function }
            }
            StepWork::Signal(signal) => {
                let within_seconds = draft.wait.map(|wait| wait.as_secs());
                let wait = SignalWait { name: signal.name.clone(), within_seconds };
                Step { retry: RetryPolicy::default(), ..Step::waiting_for(name, wait) }
            }
        };
        let names = |all: &[usize]| -> Vec<StepName> {
            let name = |at: &usize| StepName::new(&nodes.get(*at)?.step.id).ok();
            all.iter().filter_map(name).collect()
        };
        Step {
            needs: names(&node.needs),
            handles: names(&node.handles),
            at_once: draft.at_once,
            for_each: self.list(mistakes),
            inputs: self.inputs(mistakes),
            about: draft.description.clone(),
            ..step
        }
    }

    fn inputs(&self, mistakes: &mut Vec<Mistake>) -> Map<String, Value> {
        match &self.step.inputs {
            Value::Object(inputs) => inputs.clone(),
            other => {
                let words = format!("its inputs are {other}, expected an object");
                mistakes.push(self.mistake(words).hint("name them: `.inputs(json!({ \"table\": \"orders\" }))`"));
                Map::new()
            }
        }
    }

    fn list(&self, mistakes: &mut Vec<Mistake>) -> Option<ItemList> {
        let list = &self.step.list;
        let Some(input) = &list.input else {
            if list.at_a_time.is_some() || list.at_most.is_some() {
                let words = "`at_a_time` and `at_most` limit the items of a list, and it has none";
                mistakes.push(self.mistake(words).hint("name the list: `.for_each(\"files\")`"));
            }
            return None;
        };
        if list.at_a_time == Some(0) {
            mistakes.push(self.mistake("`at_a_time(0)` lets no item run"));
        }
        let most = list.at_most.unwrap_or(MOST_ITEMS);
        Some(ItemList { input: input.clone(), most, concurrency: list.at_a_time })
    }

    /// Limits that say nothing about such a step, and those that let nothing run.
    fn limits(&self, node: &StepNode) -> Vec<(&'static str, &'static str)> {
        let step = self.step;
        let is_signal = matches!(step.work, StepWork::Signal(_));
        let zero = |time: Option<Duration>| time.is_some_and(|time| time.is_zero());
        let found = [
            (
                step.at_once && node.handles.is_empty(),
                (
                    "it starts at once although it handles no failure",
                    "hang it on a part: `pay.or_else(sorry.at_once())`",
                ),
            ),
            (
                step.wait.is_some() && !is_signal,
                ("`within` is the time for a signal, and it waits for none", "limit its attempts: `.timeout(time)`"),
            ),
            (
                step.timeout.is_some() && is_signal,
                ("its timeout limits attempts, and a wait for a signal has none", "limit the wait: `.within(time)`"),
            ),
            (
                step.list.input.is_some() && is_signal,
                ("it waits for one signal, and not for one of each item", "wait for the signal in a step of its own"),
            ),
            (
                (step.retry != Retry::never() || !step.platforms.is_empty()) && is_signal,
                (
                    "its retries and platforms are those of attempts, and a wait for a signal has none",
                    "give them to the step after it",
                ),
            ),
            (
                !step.signals.is_empty() && is_signal,
                (
                    "it waits for its own signal, and has no function that may wait for others",
                    "give them a step of their own",
                ),
            ),
            (
                !step.placement.is_empty() && is_signal,
                ("it waits for a signal, and no worker runs it", "give `runs_on` and `on_lost` to the step after it"),
            ),
            (zero(step.timeout), ("its timeout is zero, so every attempt fails", "leave it out for no limit")),
            (zero(step.wait), ("the time for its signal is zero, so it always fails", "leave it out for no limit")),
        ];
        found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words).collect()
    }
}

/// Steps of one id, each with the line of the other.
fn doubled(flow: &str, nodes: &[StepNode]) -> Vec<Mistake> {
    let mut first: BTreeMap<&str, &Location<'_>> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for node in nodes {
        let step = &node.step;
        if let Some(other) = first.get(step.id.as_str()) {
            let words = format!("its id is taken by the step of {}:{}", other.file(), other.line());
            let hint = "give one of them another id or a prefix: `part.prefix(\"eu-\")`";
            mistakes.push(StepCheck { flow, step }.mistake(words).hint(hint));
        } else {
            first.insert(step.id.as_str(), step.place);
        }
    }
    mistakes
}

/// The mistakes of the graph: circles, and too many steps.
fn flaws(flow: &str, place: &Location<'_>, nodes: &[StepNode]) -> Vec<Mistake> {
    // Positions are the names here, so that a mistake in an id does not hide one in the graph.
    let name = |at: usize| StepName::new(&at.to_string()).ok();
    let names = |all: &[usize]| all.iter().filter_map(|at| name(*at)).collect();
    let steps = nodes.iter().enumerate().filter_map(|(at, node)| {
        let step = Step::new(name(at)?, Job::new(FUNCTION, Map::new()));
        Some(Step { needs: names(&node.needs), handles: names(&node.handles), ..step })
    });
    let graph = Arc::new(Flow { steps: steps.collect() });
    let step = |name: &StepName| nodes.get(name.as_str().parse::<usize>().ok()?).map(|node| &*node.step);
    let id = |name: &StepName| step(name).map_or("", |step| step.id.as_str()).to_owned();
    let mistake = |flaw: FlowFlaw| {
        let words = match &flaw {
            FlowFlaw::Circle { steps } => {
                let ids: Vec<String> = steps.iter().chain(steps.first()).map(id).collect();
                format!("it waits for itself: {}", ids.join(" -> "))
            }
            FlowFlaw::BothWays { needs, handles, .. } => format!(
                "it needs the success of \"{}\" and handles the failure of \"{}\", expected one or the other",
                id(needs),
                id(handles)
            ),
            other => other.to_string(),
        };
        match flaw.step().and_then(step) {
            Some(step) => StepCheck { flow, step }.mistake(words),
            None => Mistake::new(flow, place, format!("flow \"{flow}\": {words}")),
        }
    };
    FlowGraph::new(&graph).err().into_iter().flatten().map(mistake).collect()
}
