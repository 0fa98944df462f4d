//! Whether a workflow was paused at a past moment, by the log.

use jiff::Timestamp;
use kelos_model::{Event, WorkflowEvent, WorkflowId};
use kelos_store::{About, EventFilter, PageRequest, Queries, StoreError};

/// Events of a workflow that are read at a time.
const READ_AT_ONCE: usize = 100;
/// How often so many are read, before it is taken not to be paused: each plan of its slots is an event, too.
const READS: usize = 20;

/// Whether a person had paused a workflow by then.
pub(super) fn was_paused(reader: &dyn Queries, id: &WorkflowId, at: Timestamp) -> Result<bool, StoreError> {
    let until = last_event(reader, at)?;
    let filter = EventFilter { until, ..EventFilter::about(About::WorkflowItself(id.clone())) };
    let mut from = None;
    for _ in 0..READS {
        let page = reader.events(&filter, PageRequest::newest(READ_AT_ONCE).after(from.as_deref()))?;
        for record in page.rows {
            match record.event {
                Event::Workflow { what: WorkflowEvent::Paused { .. }, .. } => return Ok(true),
                Event::Workflow { what: WorkflowEvent::Resumed { .. }, .. } => return Ok(false),
                _ => {}
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(false)
}

/// The position of the last event by a moment: a binary search, because the log is in the order of time but for jumps of the clock.
fn last_event(reader: &dyn Queries, at: Timestamp) -> Result<u64, StoreError> {
    let (mut before, mut after) = (0, reader.last_seq()?);
    while before < after {
        let middle = before + (after - before).div_ceil(2);
        let next = EventFilter { after: middle - 1, ..EventFilter::default() };
        let found = reader.events(&next, PageRequest::oldest(1))?.rows.pop();
        match found.filter(|record| record.at <= at) {
            Some(_) => before = middle,
            None => after = middle - 1,
        }
    }
    Ok(before)
}
