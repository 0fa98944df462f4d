//! Placeholders that nothing fills: `${yaer}` for `${year}`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::id::WorkflowId;
use crate::jobs::JobKeys;
use crate::similar::mistyped;
use crate::template::{END_NAMES, LAST_NAMES, TIME_NAMES};
use crate::trigger::{Leaf, Trigger};
use crate::workflow::flow::{Flow, Step, StepName, formatted_key};
use crate::workflow::{Job, Keys, Properties, Workflow};

/// The executors whose settings and properties are filled in and then read by a program. Those of other kinds of jobs have
/// languages of their own.
pub(super) const FILLED: [&str; 4] = ["command", "http", "oozie", "spark"];

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
    /// Those of a step of a flow.
    Step,
    /// The same, where a step is certainly not given a value of that name.
    NoInput,
}

/// A placeholder that has no value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnknownPlaceholder {
    /// The part that uses it.
    pub used_in: PlaceholderUse,
    /// The step whose part that is.
    pub step: Option<StepName>,
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
        // A flow is checked where it is defined.
        Keys::Events(_) => return Vec::new(),
        // Their values are those of the requests.
        Keys::Requests(_) => return of_steps(workflow, &TIME_NAMES),
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
    // The arguments of a run fill in its job alone, and so do the outputs of what its slot depends on.
    let lists: Vec<String> = covered(workflow).map(|upstream| formatted_key(upstream.as_str())).collect();
    let given = workflow.parameters.iter().map(|one| one.name.as_str()).chain(lists.iter().map(String::as_str));
    let known: Vec<&str> = known.into_iter().chain(given).collect();
    let may_be_given = workflow.trigger.depends_on(|_| true) || workflow.keys.jobs().is_some_and(has_parents);
    found.extend(of_job(&workflow.job, &known).into_iter().filter(|one| !may_be_given || !is_plural(one)));
    found.into_iter().chain(of_steps(workflow, &known)).collect()
}

/// The placeholders of the steps of a flow. Any name may be that of an output or an argument, so that only those count that are probably
/// mistyped, and those that certainly have no value.
fn of_steps(workflow: &Workflow, known: &[&str]) -> Vec<UnknownPlaceholder> {
    let Some(flow) = &workflow.flow else { return Vec::new() };
    let mut found = BTreeSet::new();
    for step in &flow.steps {
        let inputs = names_of_inputs(flow, step);
        let known: Vec<&str> = inputs.iter().map(String::as_str).chain(known.iter().copied()).collect();
        let of_step = |one| UnknownPlaceholder { step: Some(step.name.clone()), ..one };
        let mistyped = of_job(&step.job, &known).into_iter().filter(|one| !is_plural(one));
        found.extend(mistyped.map(|one| of_step(UnknownPlaceholder { used_in: PlaceholderUse::Step, ..one })));
        found.extend(without_input(step, &inputs, &known).into_iter().map(of_step));
    }
    found.into_iter().collect()
}

/// Whether a name is the plural of the one that was probably meant: outputs are often called by what they are many of, such as days.
fn is_plural(one: &UnknownPlaceholder) -> bool {
    one.name.strip_suffix('s') == one.meant.as_deref()
}

/// The workflows whose periods a workflow covers: their outputs are a list of their name.
fn covered(workflow: &Workflow) -> impl Iterator<Item = &WorkflowId> {
    workflow.trigger.covered().into_iter().map(|covered| covered.workflow)
}

fn has_parents(jobs: &JobKeys) -> bool {
    jobs.parents().next().is_some()
}

/// The names of inputs that the definition of a step shows.
fn names_of_inputs(flow: &Flow, step: &Step) -> BTreeSet<String> {
    let defaults = step.inputs.keys().map(|name| formatted_key(name));
    let of_item = step.for_each.iter().flat_map(|_| ["item", "index"]);
    let of_errors = step.handles.iter().take(1).flat_map(|_| ["failed", "error", "errors"]);
    let before = step.needs.iter().filter_map(|name| flow.step(name.as_str()));
    let given = before.filter_map(|step| match (&step.for_each, &step.signal) {
        (Some(_), _) => Some(formatted_key(step.name.as_str())),
        (None, Some(signal)) => Some(formatted_key(&signal.name)),
        (None, None) => None,
    });
    let named = of_item.chain(of_errors).map(str::to_owned);
    defaults.chain(named).chain(given).collect()
}

/// The placeholders of a step that certainly have no value: the list of whose items it is given one, and names that are not formatted.
fn without_input(step: &Step, inputs: &BTreeSet<String>, known: &[&str]) -> Vec<UnknownPlaceholder> {
    if !FILLED.contains(&step.job.executor.as_str()) {
        return Vec::new();
    }
    let list = step.for_each.as_ref().map(|list| formatted_key(&list.input));
    let mut texts = Vec::new();
    // A shell has an expansion of its own for names with a dash.
    for (_, value) in step.job.settings.iter().filter(|(name, _)| *name != "shell") {
        texts_in(value, &mut texts);
    }
    let mut found = Vec::new();
    for text in texts {
        for name in text.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)) {
            let formatted = formatted_key(name);
            let meant = match () {
                () if list.as_deref() == Some(name) => "item",
                () if formatted != name && inputs.contains(&formatted) => formatted.as_str(),
                () => continue,
            };
            let one = unknown(PlaceholderUse::NoInput, name, text, known);
            found.push(UnknownPlaceholder { meant: Some(meant.to_owned()), ..one });
        }
    }
    found
}

fn unknown(used_in: PlaceholderUse, name: &str, text: &str, known: &[&str]) -> UnknownPlaceholder {
    UnknownPlaceholder {
        used_in,
        step: None,
        name: name.to_owned(),
        meant: mistyped(name, known.iter().copied()).map(str::to_owned),
        text: text.to_owned(),
        known: known.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The templates in a trigger.
pub(super) fn texts_of_trigger(trigger: &Trigger) -> Vec<(PlaceholderUse, &str)> {
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

fn of_job(job: &Job, known: &[&str]) -> Vec<UnknownPlaceholder> {
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

pub(super) fn texts_of<'v>(map: &'v Map<String, Value>, texts: &mut Vec<&'v str>) {
    map.values().for_each(|value| texts_in(value, texts));
}

pub(super) fn texts_in<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    let mut open = vec![value];
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
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
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
    use crate::time::{CronSchedule, Schedule};
    use crate::trigger::{FileSystem, PathCheck};

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
    fn a_step_knows_its_inputs_and_those_that_it_can_not_have() {
        let step = |json: Value| serde_json::from_value::<Step>(json).expect("a step");
        let job = |words: &[&str]| json!({"executor": "command", "settings": {"command": words}});
        let steps = vec![
            step(
                json!({"name": "list", "inputs": {"day-of": 1}, "job": job(&["${day-of}", "${day_of}", "${rows}", "${yaer}"])}),
            ),
            step(json!({"name": "load-each", "needs": ["list"], "forEach": {"input": "files"},
                "job": job(&["${item}", "${index}", "${files}", "${itm}", "${days}", "${wf:id()}"])})),
            step(json!({"name": "sum", "needs": ["load-each"], "job": job(&["${load_each}", "${load_ecah}"])})),
        ];
        let id = WorkflowId::new("w").expect("an id");
        let flow = Workflow {
            flow: Some(std::sync::Arc::new(Flow { steps })),
            ..Workflow::new(
                id,
                Schedule::Cron(CronSchedule::hourly()),
                Job::new(crate::workflow::flow::FLOW, Map::new()),
            )
        };
        let found = unknown_placeholders(&flow).into_iter();
        let found: Vec<_> = found.map(|one| (one.used_in, one.name, one.meant.unwrap_or_default())).collect();
        let (step, none) = (PlaceholderUse::Step, PlaceholderUse::NoInput);
        let expected = [
            (step, "yaer", "year"),
            (step, "itm", "item"),
            (step, "load_ecah", "load_each"),
            (none, "day-of", "day_of"),
            (none, "files", "item"),
        ];
        assert_eq!(found, expected.map(|(used_in, name, meant)| (used_in, name.to_owned(), meant.to_owned())));
    }

    #[test]
    fn what_others_may_give_is_fine() {
        let command = json!({"command": ["load", "${rows}", "${days}", "${yaer}", "${hour_ly}", "${hour_yl}"]});
        let plain = workflow("/in", &command);
        let names = |trigger| {
            let found = unknown_placeholders(&Workflow { trigger, ..plain.clone() });
            found.into_iter().map(|one| format!("{}: {}", one.name, one.meant.unwrap_or_default())).collect::<Vec<_>>()
        };
        assert_eq!(names(Trigger::Always), ["days: day", "yaer: year"]);
        assert_eq!(names("success(hour-ly)".parse().expect("a trigger")), ["yaer: year"]);
        let covers = names("and(covers(hour-ly),success(b))".parse().expect("a trigger"));
        assert_eq!(covers, ["hour_yl: hour_ly", "yaer: year"]);
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
