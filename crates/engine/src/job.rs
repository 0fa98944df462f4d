//! Filling a job in for a slot: templates, and the functions that a script left behind.

mod address;
mod placeholders;

use std::sync::Arc;

use kelos_model::arguments::arguments;
use kelos_model::function::FunctionRef;
use kelos_model::jobs::{NamedJobs, Relation, shown};
use kelos_model::probe::Verdict;
use kelos_model::shell::{Trust, trust_of};
use kelos_model::template::KeyValues;
use kelos_model::workflow::Properties;
use kelos_model::{Batch, Collection, RunId, SlotKey, Workflow, WorkflowId};
use serde_json::{Map, Value};

use crate::executor::{RunInput, Start};

pub use address::Address;
use address::filled_url;
use placeholders::text_of_shell;

/// Functions that stayed in scripts. Calls block, within their time limit.
pub trait Functions: Send + Sync {
    /// The properties of a job for a slot.
    ///
    /// # Errors
    /// In words, when the function fails or gives something else than an object.
    fn properties(
        &self,
        function: &FunctionRef,
        workflow: &WorkflowId,
        key: &SlotKey,
    ) -> Result<Map<String, Value>, String>;

    /// The answer of a custom trigger for a slot.
    ///
    /// # Errors
    /// A message, when the function fails or returns something else than an answer.
    fn ask(&self, function: &FunctionRef, workflow: &WorkflowId, key: &SlotKey) -> Result<Verdict, String>;

    /// The normal form of an identifier of a job id.
    ///
    /// # Errors
    /// In words, when the function refuses it, fails, or gives something else than a text or a number.
    fn normal(&self, function: &FunctionRef, text: &str) -> Result<String, String>;

    /// The jobs that are related to a job, in one direction.
    ///
    /// # Errors
    /// A message, when the function fails or returns something else than jobs.
    fn related(&self, relation: &Relation) -> Result<NamedJobs, String>;
}

/// For programs without scripts: there is no function to call.
pub struct NoFunctions;

impl Functions for NoFunctions {
    fn properties(&self, function: &FunctionRef, _: &WorkflowId, _: &SlotKey) -> Result<Map<String, Value>, String> {
        Err(format!("no scripts are loaded, so function {} of {} can't be called", function.index, function.file))
    }

    fn ask(&self, function: &FunctionRef, _: &WorkflowId, _: &SlotKey) -> Result<Verdict, String> {
        Err(format!("no scripts are loaded, so function {} of {} can't be called", function.index, function.file))
    }

    fn normal(&self, function: &FunctionRef, _: &str) -> Result<String, String> {
        Err(format!("no scripts are loaded, so function {} of {} can't be called", function.index, function.file))
    }

    fn related(&self, Relation { function, .. }: &Relation) -> Result<NamedJobs, String> {
        Err(format!("no scripts are loaded, so function {} of {} can't be called", function.index, function.file))
    }
}

/// Whether filling the job in calls a script.
pub fn calls_a_script(workflow: &Workflow) -> bool {
    matches!(workflow.job.properties, Properties::Function(_))
}

/// The inputs of a job, filled in for a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct JobInput {
    /// The settings for its executor.
    pub settings: Map<String, Value>,
    /// The properties for the job itself.
    pub properties: Map<String, Value>,
}

/// Fills a job in for a slot that has not run, with what it collected, or for a batch that begins with it. Where a function of a script gives its properties, it is called, which
/// blocks.
///
/// # Errors
/// In words, when that function fails or gives something else than an object.
pub fn filled(
    workflow: &Workflow,
    key: &SlotKey,
    collected: Option<&Collection>,
    batch: Option<Batch>,
    functions: &dyn Functions,
) -> Result<JobInput, String> {
    let given = RunInput::of(workflow, key, collected, arguments(workflow, collected, key)).serving(batch);
    filled_with(workflow, key, &given, functions)
}

/// Fills a job in for a run of a slot that was given this.
///
/// # Errors
/// In words, when a function of a script fails or gives something else than an object.
pub fn filled_with(
    workflow: &Workflow,
    key: &SlotKey,
    given: &RunInput,
    functions: &dyn Functions,
) -> Result<JobInput, String> {
    let properties = match &workflow.job.properties {
        Properties::Fixed(properties) => properties.clone(),
        Properties::Function(function) => functions.properties(function, &workflow.id, given.key(key))?,
    };
    let values = given.values(workflow, key);
    let executor = &workflow.job.executor;
    let settings = fill_settings(executor, &workflow.job.settings, &values)?;
    Ok(JobInput { settings, properties: fill_settings(executor, &properties, &values)? })
}

/// Fills a job in for a run.
pub fn fill(
    run: &RunId,
    workflow: &Arc<Workflow>,
    given: RunInput,
    functions: &dyn Functions,
) -> Result<Start, String> {
    let JobInput { settings, properties } = filled_with(workflow, &run.slot.key, &given, functions)?;
    Ok(Start {
        run: run.clone(),
        workflow: workflow.clone(),
        settings,
        properties,
        given,
        worker: None,
        lease: None,
        earlier: Vec::new(),
    })
}

/// Fills every text, but for shell scripts: those get the values as variables, never pasted in. In URLs that are asked with
/// secrets a value stays one part of the URL.
fn fill_settings(
    executor: &str,
    settings: &Map<String, Value>,
    values: &KeyValues,
) -> Result<Map<String, Value>, String> {
    placeholders::check(executor, settings, values)?;
    let mut filled = fill_map(settings, values);
    if let (Some(filled), Some(script)) = (filled.get_mut("shell"), settings.get("shell")) {
        filled.clone_from(script);
    }
    if let Some(Value::Array(command)) = settings.get("command").filter(|_| executor == "command") {
        judge_shell(command, values)?;
    }
    if executor == "http" {
        fill_url(settings, &mut filled, values)?;
        for part in ["poll", "cancel"] {
            let (template, filled) = (settings.get(part), filled.get_mut(part));
            if let (Some(Value::Object(template)), Some(Value::Object(filled))) = (template, filled) {
                fill_url(template, filled, values)?;
            }
        }
    }
    Ok(filled)
}

/// Refuses values that a shell would read as a part of its commands, as `["sh", "-c", "… ${name} …"]` pastes them.
fn judge_shell(command: &[Value], values: &KeyValues) -> Result<(), String> {
    let text = text_of_shell(command).and_then(|text| command.get(text)?.as_str());
    let Some(text) = text else { return Ok(()) };
    let named = values.named();
    for (at, (name, value)) in named.iter().enumerate() {
        let is_hidden = named.iter().take(at).any(|(earlier, _)| earlier == name);
        if !is_hidden && trust_of(value) == Trust::Free && text.contains(&format!("${{{name}}}")) {
            return Err(format!(
                "${{{name}}} is a part of what a shell runs and is \"{}\", expected a plain word: give the text as `shell`, which \
                 reads it from a variable, or the value as an argument behind the text",
                shown(value)
            ));
        }
    }
    Ok(())
}

fn fill_url(template: &Map<String, Value>, filled: &mut Map<String, Value>, values: &KeyValues) -> Result<(), String> {
    if let Some(Value::String(url)) = template.get("url") {
        filled.insert("url".to_owned(), Value::String(filled_url(url, &values.named())?));
    }
    Ok(())
}

fn fill_map(map: &Map<String, Value>, values: &KeyValues) -> Map<String, Value> {
    map.iter().map(|(name, value)| (name.clone(), fill_value(value, values))).collect()
}

fn fill_value(value: &Value, values: &KeyValues) -> Value {
    match value {
        Value::String(text) => Value::String(values.fill(text).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill_value(item, values)).collect()),
        Value::Object(map) => Value::Object(fill_map(map, values)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(executor: &str, settings: Value, client: &str) -> Result<Map<String, Value>, String> {
        let given = [("client".to_owned(), json!(client))];
        let values = KeyValues::at("2015-09-03T04:05:06Z".parse().unwrap());
        let values = values.with(given.iter().map(|(name, value)| (name, value)));
        fill_settings(executor, settings.as_object().unwrap(), &values)
    }

    /// An argument was run as a command where a template pasted it into the text of a shell.
    #[test]
    fn no_value_becomes_a_part_of_what_a_shell_runs() {
        let evil = "a; touch PWN";
        for words in [
            json!(["sh", "-c", "echo ${client}"]),
            json!(["/bin/bash", "-ec", "echo '${client}'"]),
            json!(["sudo", "sh", "-c", "echo ${year} ${client}"]),
        ] {
            let told = filled("command", json!({ "command": words }), evil).unwrap_err();
            assert!(told.starts_with("${client} is a part of what a shell runs and is \"a; touch PWN\""), "{told}");
            assert!(filled("command", json!({ "command": words }), "eu-1").is_ok());
        }
        for words in [json!(["echo", "${client}"]), json!(["sh", "-c", "echo \"$1\" ${year}", "_", "${client}"])] {
            let kept = filled("command", json!({ "command": words }), evil).unwrap();
            assert_eq!(kept["command"].as_array().unwrap().last(), Some(&json!(evil)));
        }
    }

    #[test]
    fn a_value_in_the_url_of_a_service_leads_nowhere_else() {
        let job = |client: &str| {
            let settings = json!({
                "url": "https://a.org/v1/${client}/run",
                "poll": {"url": "/v1/${client}/${answer/id}"},
                "body": {"client": "${client}"},
            });
            filled("http", settings, client)
        };
        let kept = job("../../admin?x").unwrap();
        assert_eq!(kept["url"], "https://a.org/v1/..%2F..%2Fadmin%3Fx/run");
        assert_eq!(kept["poll"]["url"], "/v1/..%2F..%2Fadmin%3Fx/${answer/id}");
        assert_eq!(kept["body"]["client"], "../../admin?x");
        assert!(job("..").is_err());
    }
}
