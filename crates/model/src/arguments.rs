//! What a run is given of what its slot collected: its arguments.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::facts::{Collection, Occurrence, Subject};
use crate::id::WorkflowId;
use crate::key::SlotKey;
use crate::project::{DEFAULT_NAMESPACE, Member};
use crate::run::beyond_largest;
use crate::trigger::Trigger;
use crate::workflow::Workflow;

/// The property of a schedule that says which arguments come from the run that triggered it.
pub const MAPPING: &str = "triggering.properties.mapping";

/// The scheduled time, in milliseconds since 1970.
pub const LOGICAL_START_TIME: &str = "logicalStartTime";

/// The arguments of a slot's runs: the schedule's properties, then what they take over from the run that triggered it,
/// then the time, then those of a manual start; the later take precedence.
#[must_use]
pub fn arguments(workflow: &Workflow, collected: Option<&Collection>, key: &SlotKey) -> BTreeMap<String, String> {
    let Some(collected) = collected else { return BTreeMap::new() };
    let mut all = BTreeMap::new();
    if let Some(events) = workflow.keys.events() {
        all.extend(events.properties.clone());
        if let Some(mapping) = events.properties.get(MAPPING) {
            all.extend(mapped(mapping, collected));
        }
    }
    if workflow.keys.are_moments()
        && let Some(at) = logical_start(&workflow.trigger, collected).or_else(|| key.time())
    {
        all.insert(LOGICAL_START_TIME.to_owned(), at.as_millisecond().to_string());
    }
    all.extend(collected.asked.iter().flat_map(|asked| asked.arguments.clone()));
    all
}

/// The same where a run keeps so much.
///
/// # Errors
/// How many bytes they have as JSON, where that is more than [`LARGEST_GIVEN`](crate::run::LARGEST_GIVEN).
pub fn kept_arguments(
    workflow: &Workflow,
    collected: Option<&Collection>,
    key: &SlotKey,
) -> Result<BTreeMap<String, String>, usize> {
    let all = arguments(workflow, collected, key);
    beyond_largest(&all).map_or(Ok(all), Err)
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
fn upstream(
    collected: &Collection,
) -> impl Iterator<Item = (&BTreeMap<String, String>, &Map<String, Value>, &WorkflowId)> {
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
fn mapped(mapping: &str, collected: &Collection) -> BTreeMap<String, String> {
    let Ok(Value::Object(mapping)) = serde_json::from_str(mapping) else { return BTreeMap::new() };
    let mut taken = BTreeMap::new();
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
            Some((target(entry, source), argument_text(value)))
        }));
    }
    taken
}

/// The output in which a pipeline keeps the properties of its stages.
const PLUGIN_PROPERTIES: &str = "resolved.plugin.properties.map";

fn flat<'a>(
    mapping: &'a Map<String, Value>,
    arguments: &'a BTreeMap<String, String>,
    outputs: &'a Map<String, Value>,
) -> impl Iterator<Item = (String, String)> + 'a {
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
fn argument(name: &str, arguments: &BTreeMap<String, String>, outputs: &Map<String, Value>) -> Option<String> {
    arguments.get(name).cloned().or_else(|| outputs.get(name).map(argument_text))
}

/// A value as the text of an argument: a text as it is, all else as JSON.
#[must_use]
pub fn argument_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
