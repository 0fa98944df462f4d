//! Secrets and users of the system in definitions: values that should not be there, and what the operator does not allow.

use std::sync::Arc;

use kelos_model::secret::masks::literal_secrets;
use kelos_model::secret::{AllowList, secret_paths};
use kelos_model::workflow::Properties;
use kelos_model::{Job, Workflow};
use serde_json::{Map, Value};

use crate::code::ProblemCode;
use crate::load::LoadResult;
use crate::position::{at_text, warning};
use crate::problem::{Problem, Severity};

/// The jobs of a workflow: its own and those of its steps, each with its place in words.
fn jobs(workflow: &Workflow) -> impl Iterator<Item = (String, &Job)> {
    let steps = workflow.flow.iter().flat_map(|flow| &flow.steps);
    let of_steps = steps.map(|step| (format!("step {} of \"{}\"", step.name, workflow.id), &step.job));
    std::iter::once((format!("\"{}\"", workflow.id), &workflow.job)).chain(of_steps)
}

/// The settings of a job, and the properties that it is given.
fn parts(job: &Job) -> impl Iterator<Item = &Map<String, Value>> {
    let fixed = match &job.properties {
        Properties::Fixed(properties) => Some(properties),
        Properties::Function(_) => None,
    };
    std::iter::once(&job.settings).chain(fixed)
}

/// Warnings about values that look like secrets, which everybody sees who sees the file.
pub(crate) fn literals(loaded: &LoadResult) -> Vec<Problem> {
    let mut found: Vec<Problem> = Vec::new();
    for workflow in loaded.read().values() {
        for (place, job) in jobs(workflow) {
            for path in parts(job).flat_map(literal_secrets) {
                let name = path.rsplit(['.', '[']).find(|part| !part.ends_with(']')).unwrap_or(&path);
                let words = format!("{path} of {place} looks like a secret, and everybody can read it here");
                let hint = format!("declare where it is: {}", declared_instead(&path, name));
                let problem = warning(loaded, workflow, ProblemCode::SecretInScript, words, Some(hint));
                found.push(at_text(loaded, workflow, problem, name));
            }
        }
    }
    found
}

/// The text to write in the place of a value.
fn declared_instead(path: &str, name: &str) -> String {
    let variable: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let source = format!("{{secret: \"env:KELOS_SECRET_{}\"}}", variable.to_ascii_uppercase());
    match path.split(['.', '[']).next() {
        Some("command" | "shell" | "args" | "conf") => {
            format!("env: {{NAME: {source}}}, and read the variable NAME in the command")
        }
        Some("url") => format!("headers: {{Authorization: {source}}}"),
        _ => format!("{name}: {source}"),
    }
}

/// Problems of jobs that can never run, because the operator does not allow the secret, or the user of the system, that they name.
#[must_use]
pub fn not_allowed(loaded: &LoadResult, allowed: &AllowList) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |workflow: &Arc<Workflow>, place: &str, why: String, text: &str| {
        let words = format!("{place} can never run: {why}");
        let problem = warning(loaded, workflow, ProblemCode::NotAllowed, words, None);
        let problem = at_text(loaded, workflow, Problem { severity: Severity::Error, ..problem }, text);
        if !found.contains(&problem) {
            found.push(problem);
        }
    };
    for workflow in loaded.read().values() {
        for (place, job) in jobs(workflow) {
            for (_, declared) in parts(job).flat_map(secret_paths) {
                let Ok(declared) = declared else { continue };
                if let Err(why) = allowed.secret(&workflow.project, &declared.source) {
                    add(workflow, &place, why, &declared.source.to_string());
                }
            }
            let asked = job.settings.get("runAs").and_then(Value::as_str);
            if let Err(why) = allowed.user(&workflow.project, asked) {
                add(workflow, &place, why, "runAs");
            }
        }
    }
    found
}
