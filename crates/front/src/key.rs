//! Slots as people name them: by a time, which is a moment in workflows that are keyed by moments, or by a job id in workflows that
//! are keyed by job ids.

use jiff::Timestamp;
use kelos_core::Refusal;
use kelos_explain::jobs::read_key;
use kelos_model::time::parse_instant;
use kelos_model::workflow::Keys;
use kelos_model::{SlotKey, SlotRef, WorkflowId};

use crate::app::App;
use crate::fault::Fault;

/// The slot of a workflow that a text names. An unknown workflow is assumed to be keyed by time.
pub async fn slot(app: &App, workflow: &WorkflowId, text: &str) -> Result<SlotRef, Fault> {
    let id = workflow.clone();
    let row = app.read(move |reader| reader.workflow(&id)).await?;
    let keys = row.as_ref().map(|row| &row.definition.keys);
    let key = match keys {
        Some(keys @ Keys::Jobs(_)) => job(app, keys, text).await?,
        Some(keys) => match read(Some(keys), text) {
            Ok(key) => key,
            Err(fault) => named(app, workflow, keys, text).await?.map_err(|hint| Fault { hint, ..fault })?,
        },
        // A text that is no time may be a job of an app with a typo in its name.
        None => read(None, text).map_err(|_| Fault::from(Refusal::NoWorkflow(workflow.clone())))?,
    };
    Ok(SlotRef::new(workflow.clone(), key))
}

/// The run that a text names which reads as a mistyped time, such as `monday`, or a step of it: only if there is such a run. Otherwise what
/// to write for one.
async fn named(
    app: &App,
    workflow: &WorkflowId,
    keys: &Keys,
    text: &str,
) -> Result<Result<SlotKey, Option<String>>, Fault> {
    let Some(key) = keys.read(&format!(".{text}")).ok() else { return Ok(Err(None)) };
    let run = SlotRef::new(workflow.clone(), key.of_run());
    let name = run.key.short();
    let is_there = app.read(move |reader| Ok(reader.slot(&run)?.is_some())).await?;
    let hint = || format!("no run of {workflow} is named {name}; one that nobody has started yet is written .{text}");
    Ok(if is_there { Ok(key) } else { Err(Some(hint())) })
}

/// The key of a job that a text names, for a workflow that is keyed by job ids. Functions of its script may change it.
pub async fn job(app: &App, keys: &Keys, text: &str) -> Result<SlotKey, Fault> {
    let bad = |why| Fault::bad_request("no-job-id", why);
    if keys.jobs().is_none_or(|jobs| jobs.checks.is_empty()) {
        return keys.read(text).map_err(bad);
    }
    let (keys, text, functions) = (keys.clone(), text.to_owned(), app.node().functions());
    let read = tokio::task::spawn_blocking(move || read_key(&keys, &text, &*functions));
    read.await.unwrap_or_else(|error| Err(error.to_string())).map_err(bad)
}

/// The key that a text names for a workflow with these keys.
pub fn read(keys: Option<&Keys>, text: &str) -> Result<SlotKey, Fault> {
    match keys {
        Some(keys @ Keys::Jobs(_)) => keys.read(text).map_err(|why| Fault::bad_request("no-job-id", why)),
        // The first letter of a complete key shows its kind; its workflow may be removed.
        None if text.starts_with(['~', '_', '.']) => SlotKey::parse(text).map_err(|error| bad_path(&error)),
        Some(keys) if text.starts_with(['_', '.']) => {
            keys.read(text).map_err(|why| Fault::bad_request("bad-path", why))
        }
        // A text that is no name either is taken for a mistyped time.
        Some(keys) => keys.read(text).or_else(|_| time(text).map(|at| keys.resolve(SlotKey::Time(at)))),
        None => time(text).map(SlotKey::Time),
    }
}

fn time(text: &str) -> Result<Timestamp, Fault> {
    parse_instant(text).map_err(|error| bad_path(&error))
}

fn bad_path(error: &dyn std::error::Error) -> Fault {
    Fault::bad_request("bad-path", error.to_string())
}
