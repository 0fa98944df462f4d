//! What can be read of a definition that can't be read as a whole.

use kelos_model::workflow::{Job, Keys, Program, Workflow};
use kelos_model::{Trigger, WorkflowId, nesting};
use serde_json::{Map, Value};

use super::{read, text};

/// The executor in the place of a job that can't be read. There is none of this name, so that nothing runs.
const UNREADABLE: &str = "unreadable";

/// A definition with all fields of a stored text that can be read. In the place of the others are such that nothing starts: a trigger that
/// is never met, and a job that no executor does.
pub fn salvage(id: &WorkflowId, stored: &str) -> Workflow {
    let keys = Keys::Requests(Box::new(Program { name: id.to_string(), kind: None }));
    let mut workflow = Workflow::keyed(id.clone(), keys, Job::new(UNREADABLE, Map::new()));
    workflow.trigger = Trigger::Or { triggers: Vec::new() };
    let Ok(Value::Object(fields)) = nesting::read(stored.as_bytes()) else { return workflow };
    for (name, value) in fields {
        if let Some(better) = with(&workflow, name, value) {
            workflow = better;
        }
    }
    workflow.id = id.clone();
    workflow
}

/// The definition with another value of a field, if it can be read so.
fn with(workflow: &Workflow, name: String, value: Value) -> Option<Workflow> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(&text(workflow).ok()?) else { return None };
    fields.insert(name, value);
    read(&Value::Object(fields).to_string()).ok()
}
