//! Going through all pages of a list.

use std::fmt::Debug;

use crate::{Page, Queries, RunFilter, SlotFilter, SlotRow, StoreError, TurnRecord};
use kelos_model::{EventRecord, Run, WorkflowId};

fn walk<T: Debug>(limit: usize, read: impl Fn(Option<&str>) -> Result<Page<T>, StoreError>) -> Vec<T> {
    let mut rows = Vec::new();
    let mut from = None;
    loop {
        let page = read(from.as_deref()).expect("a page is read");
        assert!(page.rows.len() <= limit, "a page of {} rows, asked for {limit}", page.rows.len());
        rows.extend(page.rows);
        if page.next.is_none() {
            return rows;
        }
        assert_ne!(page.next, from, "a page leads to itself");
        from = page.next;
    }
}

/// All slots of a filter.
pub(super) fn slots(reader: &dyn Queries, filter: &SlotFilter, limit: usize) -> Vec<SlotRow> {
    walk(limit, |from| reader.slots(filter, from, limit))
}

/// All runs of a filter.
pub(super) fn runs(reader: &dyn Queries, filter: &RunFilter, limit: usize) -> Vec<Run> {
    walk(limit, |from| reader.runs(filter, from, limit))
}

/// The whole log.
pub(super) fn events(reader: &dyn Queries, workflow: Option<&WorkflowId>, limit: usize) -> Vec<EventRecord> {
    walk(limit, |from| {
        let after = from.map_or(0, |from| from.parse().expect("a cursor over the log is a position"));
        reader.events(after, workflow, limit)
    })
}

/// The records of all turns.
pub(super) fn turns(reader: &dyn Queries, limit: usize) -> Vec<TurnRecord> {
    walk(limit, |from| reader.turns(from.map_or(0, |from| from.parse().expect("it is the number of a turn")), limit))
}

/// All facts.
pub(super) fn facts(reader: &dyn Queries, limit: usize) -> Vec<EventRecord> {
    walk(limit, |from| reader.facts(from, limit))
}

/// All that happened to a workflow itself.
pub(super) fn workflow_events(reader: &dyn Queries, id: &WorkflowId, limit: usize) -> Vec<EventRecord> {
    walk(limit, |from| reader.workflow_events(id, from, limit))
}

/// Holds two lists against each other and shows the first difference alone.
///
/// # Panics
/// Where they differ.
pub(super) fn same<T: PartialEq + Debug>(found: &[T], expected: &[T], what: impl std::fmt::Display) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "{what}: row {index}");
    }
    assert_eq!(found.len(), expected.len(), "{what}: the number of rows");
}
