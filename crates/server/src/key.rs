//! Slots as people name them: by a time, or by a job id where the workflow is keyed by job ids.

use kelos::model::time::parse_instant;
use kelos::model::workflow::Keys;
use kelos::model::{SlotKey, SlotRef, WorkflowId};

use crate::app::App;
use crate::problem::Problem;

/// The slot of a workflow that a text names. A workflow that nobody knows is taken to have times.
pub(crate) async fn slot(app: &App, workflow: &WorkflowId, text: &str) -> Result<SlotRef, Problem> {
    let id = workflow.clone();
    let row = app.read(move |reader| reader.workflow(&id)).await?;
    let key = read(row.as_ref().map(|row| &row.definition.keys), text)?;
    Ok(SlotRef::new(workflow.clone(), key))
}

/// The key that a text names for a workflow with these keys.
pub(crate) fn read(keys: Option<&Keys>, text: &str) -> Result<SlotKey, Problem> {
    match keys {
        Some(keys @ Keys::Jobs(_)) => keys.read(text).map_err(|why| Problem::bad_request("no-job-id", why)),
        // A ~ says outright that a job is meant, which may be of a workflow that is gone.
        None if text.starts_with('~') => SlotKey::parse(text).map_err(|error| bad_path(&error)),
        Some(Keys::Schedule(_)) | None => parse_instant(text).map(SlotKey::Time).map_err(|error| bad_path(&error)),
    }
}

fn bad_path(error: &dyn std::error::Error) -> Problem {
    Problem::bad_request("bad-path", error.to_string())
}
