//! Whether a job uses values that nothing but the outputs of other slots can give it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::template::{END_NAMES, LAST_NAMES, TIME_NAMES};
use crate::workflow::{Job, Keys, Properties, Workflow};

/// The variable with all that a command is given, and the prefix of those with one value each.
const ARGUMENTS: &str = "KELOS_ARGUMENTS";
const ARGUMENT: &str = "KELOS_ARG_";

/// Whether the settings of a job or of a step take a value that is neither of the key, nor a parameter, nor set beside it. A program that
/// a command starts may look for more; it finds nothing then.
pub(super) fn uses_outputs(workflow: &Workflow) -> bool {
    let mut known: BTreeSet<&str> = TIME_NAMES.into_iter().chain(END_NAMES).chain(LAST_NAMES).collect();
    known.extend(workflow.parameters.iter().map(|one| one.name.as_str()));
    if let Keys::Jobs(jobs) = &workflow.keys {
        known.extend(jobs.template.identifiers().map(|name| &**name));
    }
    let steps = workflow.flow.iter().flat_map(|flow| &flow.steps);
    // What a step is given by others of its flow is its own flow's.
    let mut jobs = std::iter::once(&workflow.job)
        .chain(steps.filter(|step| step.needs.is_empty() && step.handles.is_empty()).map(|step| &step.job));
    jobs.any(|job| takes_more(job, &known))
}

fn takes_more(job: &Job, known: &BTreeSet<&str>) -> bool {
    let mut texts = Vec::new();
    texts_of(&job.settings, &mut texts);
    let mut known = known.clone();
    if let Properties::Fixed(properties) = &job.properties {
        texts_of(properties, &mut texts);
        known.extend(properties.keys().map(String::as_str));
    }
    if let Some(Value::Object(env)) = job.settings.get("env") {
        known.extend(env.keys().map(String::as_str));
    }
    let whole = texts.join("\n");
    texts.iter().any(|text| {
        text.contains(ARGUMENTS)
            || arguments(text).any(|name| !known.contains(name))
            || placeholders(text).any(|name| !known.contains(name) && !is_set(&whole, name))
    })
}

fn texts_of<'v>(map: &'v Map<String, Value>, texts: &mut Vec<&'v str>) {
    let mut open: Vec<&Value> = map.values().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
}

/// The names of single arguments whose variables a text names.
fn arguments(text: &str) -> impl Iterator<Item = &str> {
    text.split(ARGUMENT).skip(1).map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    })
}

/// The names in `${…}` that may be those of outputs. Names in capitals are variables of a shell.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inside.filter(|name| {
        let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        is_name && name.contains(char::is_lowercase)
    })
}

/// Whether a shell sets a variable itself: `days=3; echo ${days}`, `for day in …`, `read day`.
fn is_set(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + name.len()..).unwrap_or_default());
        after.starts_with('=') && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            || ["for ", "read ", "read -r "].iter().any(|word| before.ends_with(word))
    })
}
