//! What a run is given of what its slot collected: its arguments.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::facts::{Collection, Occurrence, Subject};
use crate::id::WorkflowId;
use crate::inputs::GivenOutputs;
use crate::key::SlotKey;
pub use crate::parameter::Arguments;
use crate::parameter::complete;
use crate::project::{DEFAULT_NAMESPACE, Member};
use crate::run::{Outcome, beyond_largest};
pub use crate::template::text;
use crate::template::{END_NAMES, KeyValues, LAST_NAMES, TIME_NAMES};
use crate::trigger::Trigger;
use crate::workflow::Workflow;
use crate::workflow::flow::formatted_key;

/// The property of a schedule that says which arguments come from the run that triggered it.
pub const MAPPING: &str = "triggering.properties.mapping";

/// The scheduled time, in milliseconds since 1970.
pub const LOGICAL_START_TIME: &str = "logicalStartTime";

/// The arguments of a slot's runs: the defaults of the parameters, then the schedule's properties, then what they take over from the run
/// that triggered it, then the time, then those of a manual start, then those of later requests; the later take precedence.
#[must_use]
pub fn arguments(workflow: &Workflow, collected: Option<&Collection>, key: &SlotKey) -> Arguments {
    judged(workflow, collected, key, &GivenOutputs::default()).0
}

/// The same with the outputs of the slots that it depends on, and with what is wrong with all that.
fn judged(
    workflow: &Workflow,
    collected: Option<&Collection>,
    key: &SlotKey,
    outputs: &GivenOutputs,
) -> (Arguments, Vec<String>) {
    let asked = collected.map(|collected| gathered(workflow, collected, key)).unwrap_or_default();
    let given = with_outputs(asked, workflow, outputs);
    if workflow.parameters.is_empty() {
        return (given, Vec::new());
    }
    complete(&workflow.parameters, given, &KeyValues::of(&workflow.keys, key), |name| outputs.source(name))
}

/// Arguments with outputs, which go before what was asked under the same name. One that is named like a parameter is its value.
fn with_outputs(mut given: Arguments, workflow: &Workflow, outputs: &GivenOutputs) -> Arguments {
    if outputs.is_empty() {
        return given;
    }
    given.retain(|name, _| !outputs.values().contains_key(&formatted_key(name)));
    for (name, value) in outputs.values() {
        let parameter = workflow.parameters.iter().find(|one| formatted_key(&one.name) == *name);
        given.insert(parameter.map_or(name, |one| &one.name).clone(), value.clone());
    }
    given
}

/// The names of what a run is given that are no arguments of its own, and that its key has values for: templates get the values of the key.
#[must_use]
pub fn behind_key(
    workflow: &Workflow,
    collected: Option<&Collection>,
    key: &SlotKey,
    given: &Arguments,
) -> BTreeSet<String> {
    if key.step().is_some() {
        return BTreeSet::new();
    }
    let of_key = KeyValues::of(&workflow.keys, key);
    let identifiers = of_key.identifiers().iter().map(|(name, _)| &**name);
    let names = TIME_NAMES.into_iter().chain(END_NAMES).chain(LAST_NAMES).chain(identifiers);
    let names: BTreeSet<&str> = names.filter(|name| given.contains_key(*name)).collect();
    if names.is_empty() {
        return BTreeSet::new();
    }
    let asked = collected.map(|collected| gathered(workflow, collected, key)).unwrap_or_default();
    let is_own = |name: &str| asked.contains_key(name) || workflow.parameters.iter().any(|one| one.name == name);
    names.into_iter().filter(|name| !is_own(name)).map(str::to_owned).collect()
}

/// The arguments without defaults.
fn gathered(workflow: &Workflow, collected: &Collection, key: &SlotKey) -> Arguments {
    let mut all = Arguments::new();
    if let Some(events) = workflow.keys.events() {
        all.extend(events.properties.iter().map(|(name, text)| (name.clone(), text.as_str().into())));
        if let Some(mapping) = events.properties.get(MAPPING) {
            all.extend(mapped(mapping, collected));
        }
    }
    if workflow.keys.are_moments()
        && let Some(at) = logical_start(&workflow.trigger, collected).or_else(|| key.time())
    {
        all.insert(LOGICAL_START_TIME.to_owned(), at.as_millisecond().to_string().into());
    }
    all.extend(collected.asked.iter().flat_map(|asked| asked.arguments.clone()));
    all.extend(collected.arguments.clone());
    all
}

/// The arguments with which a run can't be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentFault {
    /// They are more than a run keeps.
    TooLarge {
        /// Their bytes as JSON.
        bytes: usize,
        /// The workflows whose outputs are a part of it, in words, if there are any.
        givers: Option<String>,
    },
    /// They are not those that the parameters expect. In words.
    Mismatched(Vec<String>),
}

impl ArgumentFault {
    /// The end of a run that was not started because of them.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            ArgumentFault::TooLarge { bytes, givers: None } => Outcome::given_too_much(*bytes),
            ArgumentFault::TooLarge { bytes, givers: Some(givers) } => Outcome::given_too_much_by(*bytes, givers),
            ArgumentFault::Mismatched(mistakes) => Outcome::given_wrongly(mistakes),
        }
    }
}

/// The same where a run can be started with them.
///
/// # Errors
/// When they have more than [`LARGEST_GIVEN`](crate::run::LARGEST_GIVEN) bytes as JSON, or the parameters expect others.
pub fn kept_arguments(
    workflow: &Workflow,
    collected: Option<&Collection>,
    key: &SlotKey,
) -> Result<Arguments, ArgumentFault> {
    kept_inputs(workflow, collected, key, &GivenOutputs::default())
}

/// All that a run is given: the outputs of the slots that its own depends on, and its arguments under the names that are left.
///
/// # Errors
/// When that has more than [`LARGEST_GIVEN`](crate::run::LARGEST_GIVEN) bytes as JSON, or the parameters expect something else.
pub fn kept_inputs(
    workflow: &Workflow,
    collected: Option<&Collection>,
    key: &SlotKey,
    outputs: &GivenOutputs,
) -> Result<Arguments, ArgumentFault> {
    let (all, mistakes) = judged(workflow, collected, key, outputs);
    if !mistakes.is_empty() {
        return Err(ArgumentFault::Mismatched(mistakes));
    }
    let givers = || Some(outputs.sources()).filter(|_| !outputs.is_empty());
    beyond_largest(&all).map_or(Ok(all), |bytes| Err(ArgumentFault::TooLarge { bytes, givers: givers() }))
}

/// The arguments that a mapping may take over, by name.
#[must_use]
pub fn mapping_targets(mapping: &str) -> BTreeSet<String> {
    let Ok(Value::Object(mapping)) = serde_json::from_str(mapping) else { return BTreeSet::new() };
    if !has_lists(&mapping) {
        return mapping.keys().cloned().collect();
    }
    let all = LISTS.iter().filter_map(|list| mapping.get(*list)?.as_array()).flatten();
    all.filter_map(|entry| Some(target(entry, entry.get("source")?.as_str()?))).collect()
}

/// The time that was scheduled: that of the first cron time that the slot collected.
#[must_use]
pub fn logical_start(trigger: &Trigger, collected: &Collection) -> Option<Timestamp> {
    let fired = trigger.firings().into_iter().filter_map(|firing| collected.of(&Subject::Fired(firing.name())));
    let times = fired.filter_map(|tally| match tally.first.as_deref() {
        Some(Occurrence::Fired { time, .. }) => Some(*time),
        _ => None,
    });
    times.min()
}

/// The runs that triggered a slot, in the order of their subjects.
fn upstream(collected: &Collection) -> impl Iterator<Item = (&Arguments, &Map<String, Value>, &WorkflowId)> {
    collected.tallies.values().filter_map(|tally| match tally.first.as_deref() {
        Some(Occurrence::Ended { program, arguments, outputs, .. }) => Some((arguments, outputs, program)),
        _ => None,
    })
}

/// Says what is wrong with a mapping, in words.
///
/// # Errors
/// When it is none of the two forms that are known.
pub fn check_mapping(mapping: &str) -> Result<(), String> {
    let checked = match serde_json::from_str(mapping) {
        Ok(Value::Object(mapping)) if has_lists(&mapping) => {
            mapping.iter().try_for_each(|(name, value)| check_list(name, value))
        }
        Ok(Value::Object(mapping)) => mapping.iter().try_for_each(|(target, source)| match source.as_str() {
            Some(source) if !source.is_empty() => Ok(()),
            _ => Err(format!("{target} is {source}, expected what it is called upstream")),
        }),
        _ => Err(
            "expected a JSON object, from arguments to what they are called upstream, or with lists `arguments` and \
                  `pluginProperties`"
                .to_owned(),
        ),
    };
    checked.map_err(|why| format!("property {MAPPING}: {why}"))
}

/// The lists of the form that pipelines have.
const LISTS: [&str; 2] = ["arguments", "pluginProperties"];

/// Whether a mapping has the form of pipelines.
fn has_lists(mapping: &Map<String, Value>) -> bool {
    LISTS.iter().any(|name| mapping.get(*name).is_some_and(Value::is_array))
}

fn check_list(name: &str, value: &Value) -> Result<(), String> {
    match value {
        _ if !LISTS.contains(&name) => {
            Err(format!("{name} is unknown beside the lists, expected {}", LISTS.join(" or ")))
        }
        Value::Null => Ok(()),
        Value::Array(entries) => {
            let at = |number: usize| format!("{name}[{number}]");
            entries.iter().enumerate().try_for_each(|(number, entry)| check_entry(&at(number), entry, name == LISTS[1]))
        }
        other => Err(format!("{name} is {other}, expected a list")),
    }
}

fn check_entry(at: &str, entry: &Value, of_stage: bool) -> Result<(), String> {
    let Value::Object(fields) = entry else { return Err(format!("{at} is {entry}, expected an object with a source")) };
    let check = |name: &str, must_be: bool| match fields.get(name) {
        None | Some(Value::Null) if must_be => Err(format!("{at}.{name} is missing, expected a text")),
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if !text.is_empty() => Ok(()),
        Some(other) => Err(format!("{at}.{name} is {other}, expected a text")),
    };
    check("source", true)?;
    check("target", false)?;
    check("stageName", of_stage)?;
    match fields.get("pipelineId") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(pipeline)) if pipeline.get("pipelineName").is_some_and(Value::is_string) => Ok(()),
        Some(other) => Err(format!("{at}.pipelineId is {other}, expected an object with a pipelineName")),
    }
}

/// The arguments that a mapping takes over. It has one of two forms: an object from each argument to its name upstream, and that of
/// pipelines, with lists of `arguments` and `pluginProperties`. What upstream does not have is left out.
fn mapped(mapping: &str, collected: &Collection) -> Arguments {
    let Ok(Value::Object(mapping)) = serde_json::from_str(mapping) else { return Arguments::new() };
    let mut taken = Arguments::new();
    for (arguments, outputs, program) in upstream(collected) {
        if !has_lists(&mapping) {
            taken.extend(flat(&mapping, arguments, outputs));
            continue;
        }
        taken.extend(entries(&mapping, "arguments", program).filter_map(|entry| {
            let source = entry.get("source")?.as_str()?;
            let value = argument(source, arguments, outputs)?;
            Some((target(entry, source), value))
        }));
        taken.extend(entries(&mapping, "pluginProperties", program).filter_map(|entry| {
            let source = entry.get("source")?.as_str()?;
            let stage = entry.get("stageName")?.as_str()?;
            let value = outputs.get(PLUGIN_PROPERTIES)?.get(stage)?.get(source)?;
            Some((target(entry, source), text(value).into_owned().into()))
        }));
    }
    taken
}

/// The output in which a pipeline keeps the properties of its stages.
const PLUGIN_PROPERTIES: &str = "resolved.plugin.properties.map";

fn flat<'a>(
    mapping: &'a Map<String, Value>,
    arguments: &'a Arguments,
    outputs: &'a Map<String, Value>,
) -> impl Iterator<Item = (String, Value)> + 'a {
    mapping
        .iter()
        .filter_map(|(target, source)| Some((target.clone(), argument(source.as_str()?, arguments, outputs)?)))
}

fn entries<'a>(
    mapping: &'a Map<String, Value>,
    list: &str,
    program: &'a WorkflowId,
) -> impl Iterator<Item = &'a Value> {
    let all = mapping.get(list).and_then(Value::as_array).into_iter().flatten();
    all.filter(move |entry| entry.get("pipelineId").is_none_or(|pipeline| is_of(pipeline, program)))
}

/// Whether a program is one of the pipeline that an entry is about: programs are named by their project.
fn is_of(pipeline: &Value, program: &WorkflowId) -> bool {
    let Some(name) = pipeline.get("pipelineName").and_then(Value::as_str) else { return pipeline.is_null() };
    let namespace = pipeline.get("namespace").and_then(Value::as_str).unwrap_or(DEFAULT_NAMESPACE);
    let project = Member::read(program).map(|member| member.project);
    project.is_some_and(|project| project.namespace == namespace && project.application == name)
}

fn target(entry: &Value, source: &str) -> String {
    entry.get("target").and_then(Value::as_str).unwrap_or(source).to_owned()
}

/// An argument of the run upstream, or else what it gave.
fn argument(name: &str, arguments: &Arguments, outputs: &Map<String, Value>) -> Option<Value> {
    arguments.get(name).or_else(|| outputs.get(name)).cloned()
}
