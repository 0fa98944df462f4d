//! Definitions that can't be read as a whole: all fields that can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use kelos_model::workflow::{Job, Keys, Program, Workflow};
use kelos_model::{Trigger, WorkflowId, nesting};
use serde_json::{Map, Value};

use super::v1::StoredEntry;
use super::{read, text};
use crate::entry::EntryBody;

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

/// The turn of an entry that can't be read because of definitions in it. All that can be read of these is in the rows of their workflows,
/// and their texts are kept beside them. None where the entry can't be read for another reason.
pub(super) fn salvage_entry(entry: &[u8]) -> Option<EntryBody> {
    let mut entry: Value = nesting::read(entry).ok()?;
    let mut unread: BTreeMap<(WorkflowId, u32), Arc<str>> = BTreeMap::new();
    for row in entry.get_mut("turn")?.get_mut("workflows")?.as_array_mut()? {
        let id: WorkflowId = row.get("id")?.as_str()?.parse().ok()?;
        let version = row.get("version")?.as_u64()?.try_into().ok()?;
        let definition = row.get_mut("definition")?;
        let stored = definition.to_string();
        if read::<Workflow>(&stored).is_err() {
            *definition = serde_json::from_str(&text(&salvage(&id, &stored)).ok()?).ok()?;
            unread.insert((id, version), stored.into());
        }
    }
    match EntryBody::from(nesting::read::<StoredEntry<'static>>(entry.to_string().as_bytes()).ok()?) {
        EntryBody::Turn { record, mut commit } if !unread.is_empty() => {
            commit.unread = unread;
            Some(EntryBody::Turn { record, commit })
        }
        _ => None,
    }
}

/// The definition with another value of a field, if it can be read so.
fn with(workflow: &Workflow, name: String, value: Value) -> Option<Workflow> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(&text(workflow).ok()?) else { return None };
    fields.insert(name, value);
    read(&Value::Object(fields).to_string()).ok()
}
