//! The queue of a workflow, in numbers.

use axum::Json;
use jiff::Timestamp;
use kelos_front::App;
use kelos_front::fault::Fault;
use kelos_model::{SlotState, WorkflowId};
use kelos_store::{PageRequest, Queries, SlotFilter, StoreError};
use kelos_wire::{ProblemDetailsDto, QueueDto};

use super::extract::{NoParameters, Path, Query, WorkflowPath};

/// Queued slots that are read to find the one that has waited longest.
const MOST_READ: usize = 20_000;
/// Those that are read at a time.
const PAGE: usize = 1000;

/// Counts the slots of a workflow that could start, run, wait and have failed, for programs that start and stop workers.
#[utoipa::path(get, path = "/workflows/{id}/queue", tag = "workflows", params(WorkflowPath), responses(
    (status = 200, description = "Its queue", body = QueueDto),
    (status = "default", description = "A problem", body = ProblemDetailsDto, content_type = "application/problem+json"),
))]
pub(super) async fn queue(
    Path(path): Path<WorkflowPath>,
    _: Query<NoParameters>,
    app: App,
) -> Result<Json<QueueDto>, Fault> {
    let now = app.handle().now();
    let id = path.id.clone();
    let read = move |reader: &dyn Queries| match reader.workflow(&id)? {
        Some(row) => read_queue(reader, &id, row.paused, now).map(Some),
        None => Ok(None),
    };
    let found = app.read(read).await?;
    found.map(Json).ok_or_else(|| super::workflows::unknown(&path.id))
}

fn read_queue(reader: &dyn Queries, id: &WorkflowId, paused: bool, now: Timestamp) -> Result<QueueDto, StoreError> {
    let of_workflow = SlotFilter { workflow: Some(id.clone()), ..SlotFilter::default() };
    let counts = reader.slot_counts(&of_workflow)?;
    let sum = |states: &[SlotState]| states.iter().filter_map(|state| counts.get(state)).sum();
    let oldest = oldest(reader, &SlotFilter { states: vec![SlotState::Queued], ..of_workflow })?;
    Ok(QueueDto {
        workflow: id.to_string(),
        queued: sum(&[SlotState::Queued]),
        running: sum(&[SlotState::Dispatched, SlotState::Running]),
        waiting: sum(&[SlotState::Waiting, SlotState::Held]),
        backoff: sum(&[SlotState::Backoff]),
        failed: sum(&[SlotState::Failed]),
        oldest_since: oldest.map(Into::into),
        // The clock may have been set back since.
        oldest_seconds: oldest.map(|since| u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0)),
        paused,
    })
}

/// Since when the slot has been in its state that has been in it longest.
fn oldest(reader: &dyn Queries, filter: &SlotFilter) -> Result<Option<Timestamp>, StoreError> {
    let (mut oldest, mut read, mut cursor): (Option<Timestamp>, usize, Option<String>) = (None, 0, None);
    loop {
        let page = reader.slots(filter, PageRequest::oldest(PAGE).after(cursor.as_deref()))?;
        read += page.rows.len();
        oldest = page.rows.iter().map(|row| row.slot.since).chain(oldest).min();
        cursor = page.next;
        if cursor.is_none() || read >= MOST_READ {
            return Ok(oldest);
        }
    }
}
