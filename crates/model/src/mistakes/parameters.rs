//! Parameters that don't fit themselves, or the kind of key of their workflow.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::arguments::{MAPPING, mapping_targets};
use crate::parameter::{Parameter, accept, required, shown};
use crate::template::KeyValues;
use crate::time::{Period, Zone};
use crate::workflow::{Keys, Workflow};

/// The mistakes in the parameters of a definition, in words. Only a program may have some that somebody must give: nobody gives any to
/// the times of a schedule, or to a job that others open. An event schedule gives those of its program.
#[must_use]
pub fn parameter_mistakes(workflow: &Workflow) -> Vec<String> {
    let parameters = &workflow.parameters;
    let mut names = BTreeSet::new();
    let mut found: Vec<String> = Vec::new();
    for parameter in parameters {
        found.extend(parameter.mistakes());
        if !names.insert(&parameter.name) {
            found.push(format!("two parameters are named {}, expected each name once", parameter.name));
        }
    }
    match &workflow.keys {
        Keys::Requests(_) => found.extend(unfilled(workflow)),
        Keys::Events(events) => found.extend(of_schedule(parameters, &events.properties)),
        Keys::Schedule(_) => {
            found.extend(required(parameters).map(|name| ungiven(name, "the times of a schedule")));
            found.extend(unfilled(workflow));
        }
        Keys::Jobs(jobs) => {
            found.extend(required(parameters).map(|name| ungiven(name, "jobs that other jobs open")));
            let identifiers =
                jobs.template.identifiers().filter(|name| parameters.iter().any(|one| one.name == ***name));
            found.extend(identifiers.map(|name| {
                format!("{name} is an identifier of the job ids, expected another name for the parameter")
            }));
        }
    }
    found
}

fn ungiven(name: &str, whom: &str) -> String {
    format!("{name} has no default, and nobody gives a value to {whom}: expected a default")
}

/// The mistakes in the arguments that an event schedule gives to its program.
fn of_schedule(parameters: &[Parameter], properties: &BTreeMap<String, String>) -> Vec<String> {
    if parameters.is_empty() {
        return Vec::new();
    }
    let mapped = properties.get(MAPPING).map(|mapping| mapping_targets(mapping)).unwrap_or_default();
    let given = properties.iter().filter(|(name, _)| *name != MAPPING);
    let given = given.map(|(name, text)| (name.clone(), text.as_str().into())).collect();
    let mut found = accept(parameters, &given).err().unwrap_or_default();
    let is_given = |name: &&str| given.contains_key(*name) || mapped.contains(*name);
    found.extend(
        required(parameters)
            .filter(|name| !is_given(name))
            .map(|name| format!("the program requires {name}, expected it among the properties")),
    );
    found
}

/// The defaults that are not of their kinds once they are filled in for some time.
fn unfilled(workflow: &Workflow) -> Vec<String> {
    let Ok(start) = Timestamp::from_millisecond(SAMPLE_MILLIS) else { return Vec::new() };
    let mut values = KeyValues::at(start).up_to(start);
    if workflow.keys.calendar().is_some() {
        values = values.about(Period { start, end: start, zone: Zone::utc() });
    }
    let templates = workflow.parameters.iter().filter(|parameter| parameter.has_template());
    let wrong = templates.filter_map(|parameter| {
        let (name, kind) = (&parameter.name, &parameter.kind);
        let Some(value) = parameter.default_at(&values) else {
            return Some(format!("the default of {name} has a part of a time that no slot has, expected {kind}"));
        };
        let is_wrong = parameter.kind.accept(&value).is_none();
        is_wrong.then(|| format!("the default of {name} is filled in as {}, expected {kind}", shown(&value)))
    });
    wrong.collect()
}

/// The moment for which templates are filled in to be tried: 2001-02-03T04:05:06.007Z.
const SAMPLE_MILLIS: i64 = 981_173_106_007;
