//! Kinds of jobs that people bring: a program that reads a job as JSON from its standard input, or a module of Python with the
//! contract of Stolos, which the bridge of our Python package runs.

use std::path::Path;

use kelos_engine::executor::Start;
use serde_json::{Map, Value, json};

use super::translated::identifiers;

/// Gives the program its job. The job is in a variable, so that it is no part of what the shell parses.
const FEED: &str = "printf %s \"$KELOS_JOB\" | \"$0\"";

/// The module of Python that runs modules with the contract of Stolos.
const BRIDGE: &str = "kelos.bridge";

/// The settings of a command that has a program or a module do a job.
pub(super) fn command(start: &Start) -> Result<Map<String, Value>, String> {
    let text = |name: &str| start.settings.get(name).and_then(Value::as_str);
    let slot = &start.run.slot;
    let words = match text("module") {
        Some(module) => {
            ["python3", "-m", BRIDGE, module, slot.workflow.as_str(), &slot.key.short()].map(str::to_owned).to_vec()
        }
        None => {
            let name = text("plugin").ok_or("its settings name no program (`plugin`)")?;
            let folder = text("folder").ok_or("its settings name no folder of programs (`folder`)")?;
            let program = crate::run_by::plugin(Path::new(folder), name)?;
            ["/bin/sh", "-c", FEED, &program.to_string_lossy()].map(str::to_owned).to_vec()
        }
    };
    let job = json!({
        "app": slot.workflow, "jobId": slot.key.short(), "identifiers": identifiers(start), "run": start.run.number,
        // The text of the app, not the one that is filled in for other executors.
        "config": start.workflow.job.settings.get("config"),
    });
    let mut command = json!({ "command": words, "env": { "KELOS_JOB": job.to_string() } });
    for name in ["timeoutSeconds", "runAs"] {
        if let (Some(value), Some(command)) = (start.settings.get(name), command.as_object_mut()) {
            command.insert(name.to_owned(), value.clone());
        }
    }
    command.as_object().cloned().ok_or_else(|| "its settings make no sense".to_owned())
}
