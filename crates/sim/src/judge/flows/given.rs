//! The inputs of a step and the outputs of a flow, by the rules that the documentation states: written anew here, to compare.

use std::collections::BTreeMap;

use kelos_model::Step;
use serde_json::{Map, Value};

/// A step before another, with what it gave, and what went wrong where it failed.
pub(super) struct Before<'a> {
    pub(super) name: &'a str,
    pub(super) outputs: Map<String, Value>,
    pub(super) error: Option<String>,
}

/// The inputs of a step after others.
pub(super) fn inputs(step: &Step, arguments: &Map<String, Value>, before: &[Before<'_>]) -> Map<String, Value> {
    let own = step.inputs.iter().filter(|(name, _)| !arguments.contains_key(*name));
    let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut sources = vec![(step.name.as_str(), &own)];
    sources.extend(before.iter().map(|one| (one.name, &one.outputs)));
    let mut all = merged(&sources);
    let failed: Vec<&Before<'_>> = before.iter().filter(|one| one.error.is_some()).collect();
    if let Some(first) = failed.first() {
        let error = |one: &Before<'_>| Value::from(one.error.clone().unwrap_or_default());
        all.insert("failed".to_owned(), first.name.into());
        all.insert("error".to_owned(), error(first));
        let errors = failed.iter().map(|one| (one.name.to_owned(), error(one)));
        all.insert("errors".to_owned(), Value::Object(errors.collect()));
    }
    for (name, value) in arguments {
        if !all.contains_key(name) {
            all.insert(name.clone(), value.clone());
        }
    }
    plain(&all)
}

/// The outputs of a flow whose last steps gave this.
pub(super) fn outputs(last: &[Before<'_>]) -> Map<String, Value> {
    let sources: Vec<_> = last.iter().map(|one| (one.name, &one.outputs)).collect();
    plain(&merged(&sources))
}

/// A name that one source has keeps its value; what several have becomes an object with the value of each.
fn merged(sources: &[(&str, &Map<String, Value>)]) -> Map<String, Value> {
    let mut givers: BTreeMap<&String, Vec<(&str, &Value)>> = BTreeMap::new();
    for (giver, values) in sources {
        for (name, value) in *values {
            givers.entry(name).or_default().push((giver, value));
        }
    }
    let value = |all: Vec<(&str, &Value)>| match all.as_slice() {
        [(_, one)] => (*one).clone(),
        many => Value::Object(many.iter().map(|(giver, value)| ((*giver).to_owned(), (*value).clone())).collect()),
    };
    givers.into_iter().map(|(name, all)| (name.clone(), value(all))).collect()
}

/// The same with plain names, also in objects within, but not in lists. A name that is plain itself comes last, so that it counts.
pub(super) fn plain(values: &Map<String, Value>) -> Map<String, Value> {
    let inner = |value: &Value| value.as_object().map_or_else(|| value.clone(), |inner| Value::Object(plain(inner)));
    let mut values: Vec<(&String, &Value)> = values.iter().collect();
    values.sort_by_key(|(name, _)| (plain_name(name) == **name, *name));
    values.into_iter().map(|(name, value)| (plain_name(name), inner(value))).collect()
}

/// The name with an underscore in the place of each run of letters that a name can't have.
pub(super) fn plain_name(name: &str) -> String {
    let is_other = |letter: char| letter.is_whitespace() || ".-*+?$`^/\\".contains(letter);
    let marked: String = name.chars().map(|letter| if is_other(letter) { '\0' } else { letter }).collect();
    let mut parts: Vec<&str> = marked.split('\0').collect();
    let (first, last) = (parts.remove(0), parts.len());
    parts.iter().enumerate().fold(first.to_owned(), |all, (n, part)| match part.is_empty() && n + 1 < last {
        true => all,
        false => format!("{all}_{part}"),
    })
}
