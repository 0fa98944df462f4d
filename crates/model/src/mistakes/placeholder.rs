//! Placeholders that nothing fills: `${yaer}` for `${year}`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::similar::mistyped;
use crate::template::{END_NAMES, LAST_NAMES, TIME_NAMES};
use crate::trigger::{Leaf, Trigger};
use crate::workflow::{Keys, Properties, Workflow};

/// The executors whose settings and properties are filled in and then read by a program. Those of other kinds of jobs have
/// languages of their own.
const FILLED: [&str; 4] = ["command", "http", "oozie", "spark"];

/// The part of a definition that uses a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceholderUse {
    /// The path of a trigger, or the pattern of names in it: as nothing fills it, the trigger is not met.
    Path,
    /// The job id of a trigger.
    JobId,
    /// A path that is written.
    Written,
    /// The settings or the properties of a job.
    Job,
}

/// A placeholder that has no value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownPlaceholder {
    /// The part that uses it.
    pub used_in: PlaceholderUse,
    /// Its name: `yaer`.
    pub name: String,
    /// The name that was probably meant.
    pub meant: Option<String>,
    /// The text that contains it.
    pub text: String,
    /// The names that have values there.
    pub known: Vec<String>,
}

/// The placeholders of a workflow that have no value, each once. In a job only those count that are probably mistyped: the program
/// that it runs may know others, and so do the arguments of a run.
#[must_use]
pub fn unknown_placeholders(workflow: &Workflow) -> Vec<UnknownPlaceholder> {
    let identifiers: Vec<&str> = match &workflow.keys {
        Keys::Schedule(_) => Vec::new(),
        Keys::Jobs(jobs) => jobs.template.identifiers().map(|name| &**name).collect(),
        // Their values are those of the facts and of the requests.
        Keys::Events(_) | Keys::Requests(_) => return Vec::new(),
    };
    let of_end = workflow.keys.calendar().map_or(&[][..], |_| &END_NAMES).iter().copied();
    let known: Vec<&str> = TIME_NAMES.into_iter().chain(of_end).chain(identifiers).collect();
    let mut found = BTreeSet::new();
    let written = workflow.writes.iter().map(|path| (PlaceholderUse::Written, path.as_str()));
    for (used_in, text) in texts_of_trigger(&workflow.trigger).into_iter().chain(written) {
        found.extend(names(text).filter(|name| !known.contains(name)).map(|name| unknown(used_in, name, text, &known)));
    }
    let of_last = workflow.batch.map_or(&[][..], |_| &LAST_NAMES).iter().copied();
    let known: Vec<&str> = known.into_iter().chain(of_last).collect();
    // The arguments of a run fill in its job alone.
    let known: Vec<&str> = known.into_iter().chain(workflow.parameters.iter().map(|one| one.name.as_str())).collect();
    found.extend(of_job(workflow, &known));
    found.into_iter().collect()
}

fn unknown(used_in: PlaceholderUse, name: &str, text: &str, known: &[&str]) -> UnknownPlaceholder {
    UnknownPlaceholder {
        used_in,
        name: name.to_owned(),
        meant: mistyped(name, known.iter().copied()).map(str::to_owned),
        text: text.to_owned(),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The templates in a trigger.
fn texts_of_trigger(trigger: &Trigger) -> Vec<(PlaceholderUse, &str)> {
    let mut texts = Vec::new();
    trigger.visit_leaves(&mut |leaf| {
        if let Leaf::Job(_, job) = leaf {
            texts.push((PlaceholderUse::JobId, job));
        }
    });
    for check in trigger.paths() {
        texts.push((PlaceholderUse::Path, check.path.as_str()));
        texts.extend(check.conditions.glob.iter().map(|glob| (PlaceholderUse::Path, glob.as_str())));
    }
    texts
}

fn of_job(workflow: &Workflow, known: &[&str]) -> Vec<UnknownPlaceholder> {
    let job = &workflow.job;
    if !FILLED.contains(&job.executor.as_str()) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    texts_of(&job.settings, &mut texts);
    let mut given = BTreeSet::new();
    if let Properties::Fixed(properties) = &job.properties {
        texts_of(properties, &mut texts);
        // A name in one property may be another property: that is how Oozie reads them.
        given.extend(properties.keys().map(String::as_str));
    }
    if let Some(Value::Object(env)) = job.settings.get("env") {
        given.extend(env.keys().map(String::as_str));
    }
    let mut found = Vec::new();
    for text in texts {
        let names = names(text).filter(|name| !known.contains(name) && !given.contains(name) && !is_own(text, name));
        let unknown = names.map(|name| unknown(PlaceholderUse::Job, name, text, known));
        found.extend(unknown.filter(|one| one.meant.is_some()));
    }
    found
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

/// Whether a text says something else of a name than its value: `days=3; echo ${days}` of a shell.
fn is_own(text: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + name.len()..).unwrap_or_default());
        !before.ends_with(is_letter)
            && !after.starts_with(is_letter)
            && !before.ends_with("${")
            && !before.ends_with('$')
    })
}

/// The names in `${…}` of a text that look like names of values, in order of appearance. Expressions of other systems, such as
/// `${wf:id()}`, look different.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    inside.filter(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::WorkflowId;
    use crate::time::{CronSchedule, Schedule};
    use crate::trigger::{FileSystem, PathCheck};
    use crate::workflow::Job;

    fn workflow(path: &str, settings: &Value) -> Workflow {
        let id = WorkflowId::new("w").expect("an id");
        let settings = settings.as_object().expect("an object").clone();
        let job = Job::new("command", settings);
        let trigger = Trigger::Path(PathCheck::new(FileSystem::Local, path, "file:///"));
        Workflow { trigger, ..Workflow::new(id, Schedule::Cron(CronSchedule::hourly()), job) }
    }

    fn found(path: &str, settings: Value) -> Vec<(PlaceholderUse, String, Option<String>)> {
        let all = unknown_placeholders(&workflow(path, &settings)).into_iter();
        all.map(|one| (one.used_in, one.name, one.meant)).collect()
    }

    fn probably(used_in: PlaceholderUse, name: &str, meant: &str) -> (PlaceholderUse, String, Option<String>) {
        (used_in, name.to_owned(), Some(meant.to_owned()))
    }

    #[test]
    fn known_names_and_other_expressions_are_fine() {
        let path = "/in/${year}-${month}-${day}/${hour}${minute}${second}.${millisecond}/${wf:id()}/${";
        assert!(found(path, json!({"command": ["a", "${year}"]})).is_empty());
    }

    #[test]
    fn a_path_needs_every_value() {
        assert_eq!(found("/in/${yaer}/${year}", json!({})), [probably(PlaceholderUse::Path, "yaer", "year")]);
        assert_eq!(found("/in/${client}", json!({})), [(PlaceholderUse::Path, "client".to_owned(), None)]);
    }

    #[test]
    fn what_is_mistyped_in_a_job_is_found_at_any_depth() {
        let nested = json!({"command": ["load", "--day=${yer}-${mouth}"], "env": {"DAY": "${dya}"}});
        let expected = [("dya", "day"), ("mouth", "month"), ("yer", "year")];
        assert_eq!(found("/in", nested), expected.map(|(name, meant)| probably(PlaceholderUse::Job, name, meant)));
    }

    #[test]
    fn names_that_the_job_has_itself_are_fine() {
        assert!(found("/in", json!({"shell": "days=3; echo ${days} ${year}"})).is_empty());
        assert!(found("/in", json!({"shell": "for hours in 1 2; do echo ${hours}; done"})).is_empty());
        assert!(found("/in", json!({"shell": "echo ${days}", "env": {"days": "3"}})).is_empty());
        assert!(found("/in", json!({"command": ["a", "${nameNode}"]})).is_empty());
        assert_eq!(found("/in", json!({"shell": "echo ${hours}"})), [probably(PlaceholderUse::Job, "hours", "hour")]);
    }
}
